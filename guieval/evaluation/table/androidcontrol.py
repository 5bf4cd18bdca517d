"""Protocols of papers that score AndroidControl by rules of their own."""

from __future__ import annotations

from guieval.evaluation.protocol import Figure, Protocol
from guieval.evaluation.rules import ClickRule, OpenRule, ScrollRule, StepRules

_UI_S1_CLICK = ClickRule(enlarge=1.2, boxes="any", fallback=0.04)

PROTOCOLS = (
    Protocol(
        name="ui-s1-sop",
        source="UI-S1 paper, appendix C; X-PLUG/MobileAgent, UI-S1/evaluation/qwenvl_utils.py",
        summary="any candidate box x1.2, else 0.04; every scroll agrees; an app may be opened by clicking its icon",
        rules=StepRules(click=_UI_S1_CLICK, scroll=ScrollRule("type-only"), open=OpenRule(icon=_UI_S1_CLICK)),
        figures=(
            Figure("PG", "progress", average="episodes"),
            Figure("TSR", "success"),
            Figure("score", "score"),
        ),
    ),
    Protocol(
        name="ui-s1-reward-match",
        source="X-PLUG/MobileAgent, UI-S1/verl/utils/reward_score/gui_utils/utils.py",
        # The released matcher meets boxes only as four bare numbers; a list of boxes is read here as it is meant there.
        summary="the matcher UI-S1 trains with: as ui-s1-sop, but scrolls are checked and an icon click opens nothing",
        rules=StepRules(click=_UI_S1_CLICK, scroll=ScrollRule("ui-s1-reward")),
    ),
)
