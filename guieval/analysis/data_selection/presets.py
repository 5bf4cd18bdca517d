"""Published selections by name."""

from __future__ import annotations

from guieval.analysis.data_selection.quotas import Quota
from guieval.analysis.data_selection.stages import Recipe, Source
from guieval.errors import UsageError, nearest

UI_R1 = Recipe(
    clean=(Source("screenspot", {"platform": "mobile"}),),
    others=(Source("androidcontrol"),),
    other_episodes=1000,
    quotas=(Quota(101, "CLICK"), Quota(5, "SCROLL"), Quota(2, "TYPE"), Quota(9, "BACK"), Quota(19, "OPEN")),
)
"""UI-R1's 136 training steps (section 3.3; appendix A.2, Table 5).

Where the paper is silent: which of its hard steps were taken (here: drawn by the seed), and how clicks divide over icons and
texts (here: evenly, as far as there are enough of both).
"""
PRESETS = {"ui-r1": UI_R1}


def get_preset(name: str) -> Recipe:
    """A published recipe; :class:`UsageError` with the nearest name when there is none."""
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name!r}{nearest(name, PRESETS)}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
