"""The table of named protocols: which published scorer compares steps by which rules, and which figures it leads with.

Two papers' numbers often differ by a threshold, so a protocol fixes every one of them under a name, and prints them
(:meth:`Protocol.describe`). Adding one is adding an entry to ``PROTOCOLS``, or an entry point in the group
``guieval.protocols`` that loads to a :class:`Protocol` of the entry's name. Rules are in :mod:`guieval.evaluation.rules`;
which steps a number counts is the benchmark's business, and computing aggregates that of :mod:`guieval.metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, TypeAlias

from guieval.actions import ActionType
from guieval.errors import UsageError, nearest
from guieval.evaluation.rules import ClickRule, OpenRule, ScrollRule, StepRules

PROTOCOLS_GROUP = "guieval.protocols"

Progress: TypeAlias = Literal["episode-mean", "step-weighted"]
"""``episode-mean``: mean over episodes of exact prefix / length; ``step-weighted``: sum of prefixes / sum of lengths."""


@dataclass(frozen=True)
class Protocol:
    """How one published evaluation judges a step, and which aggregates it reports.

    ``rules`` holds unless ``variants`` names others for the step's ``dataset``. The rest is for whoever prints a result
    and changes no verdict: ``metrics`` are the figures the source leads with; ``covered_only`` tells that it computes them
    only on steps whose prediction lies in both action spaces; ``excluded_types`` are the reference action types it leaves
    out, by data set.
    """

    name: str
    source: str
    summary: str
    rules: StepRules
    variants: Mapping[str, StepRules] = field(default_factory=dict, hash=False)
    metrics: tuple[str, ...] = ("type match", "exact match")
    covered_only: bool = False
    progress: Progress = "episode-mean"
    excluded_types: Mapping[str, frozenset[ActionType]] = field(default_factory=dict, hash=False)

    def rules_for(self, dataset: str) -> StepRules:
        """The step rules for a step of ``dataset``."""
        return self.variants.get(dataset, self.rules)

    def describe(self) -> str:
        """Everything the protocol fixes, in words; equal texts mean equal judgements, so it also serves as a fingerprint."""
        lines = [f"{self.name}: {self.summary}", f"source: {self.source}"]
        for dataset, rules in sorted(self.variants.items()):
            lines += [f"on data set {dataset}:", *_indented(rules.describe())]
        lines += ["on every other data set:" if self.variants else "on every data set:", *_indented(self.rules.describe())]
        lines.append(f"figures: {', '.join(self.metrics)}; progress is {self.progress}")
        if self.covered_only:
            lines.append("the source counts only steps whose prediction lies in the action spaces of benchmark and model")
        for dataset, types in sorted(self.excluded_types.items()):
            lines.append(f"the source leaves out {', '.join(sorted(types))} steps of {dataset}")
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


_GUIEVALKIT_COMMON = StepRules(
    click=ClickRule(enlarge=1.2, clip=True, boxes="containing-reference", fallback=0.14), tap_limit=200.0
)
_GUIEVALKIT_ANDROIDCONTROL = StepRules(
    click=ClickRule(enlarge=1.2, clip=True, boxes="nearest", nearest=5, fallback=0.04), tap_limit=200.0
)
_UI_S1_CLICK = ClickRule(enlarge=1.2, boxes="any", fallback=0.04)

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            name="guievalkit",
            source="GUIEvalKit paper, section 3.3; xiaomi-research/guievalkit, guieval/eval/evaluator.py",
            summary="boxes x1.2 (AndroidControl: the 5 nearest, else 0.04; elsewhere: those around the target, else 0.14)",
            rules=_GUIEVALKIT_COMMON,
            variants={"androidcontrol": _GUIEVALKIT_ANDROIDCONTROL},
            metrics=("type match", "exact match", "progress", "success rate"),
            covered_only=True,
            progress="step-weighted",
            excluded_types={"androidcontrol": frozenset({"OPEN"}), "hypertrack": frozenset({"OPEN"})},
        ),
        Protocol(
            name="ui-s1-sop",
            source="UI-S1 paper, appendix C; X-PLUG/MobileAgent, UI-S1/evaluation/qwenvl_utils.py",
            summary="any candidate box x1.2, else 0.04; every scroll agrees; an app may be opened by clicking its icon",
            rules=StepRules(click=_UI_S1_CLICK, scroll=ScrollRule("type-only"), open=OpenRule(icon=_UI_S1_CLICK)),
            metrics=("PG", "TSR", "score"),
        ),
        Protocol(
            name="ui-s1-reward-match",
            source="X-PLUG/MobileAgent, UI-S1/verl/utils/reward_score/gui_utils/utils.py",
            # The released matcher meets boxes only as four bare numbers; a list of boxes is read here as it is meant there.
            summary="the matcher UI-S1 trains with: as ui-s1-sop, but scrolls are checked and an icon click opens nothing",
            rules=StepRules(click=_UI_S1_CLICK, scroll=ScrollRule("ui-s1-reward")),
        ),
        Protocol(
            name="seeclick-official",
            source="SeeClick paper (ScreenSpot); njucckevin/SeeClick, pretrain/screenspot_test.py",
            summary="grounding: the point lies inside the target box, border included, without enlargement or slack",
            rules=StepRules(click=ClickRule()),
            metrics=("exact match",),
        ),
    )
}


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=PROTOCOLS_GROUP) if entry.name not in PROTOCOLS}


def list_protocols() -> list[str]:
    """Names of all protocols: the table's in its order, then installed entry points by name."""
    return [*PROTOCOLS, *sorted(_entries())]


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``.

    Raises :class:`UsageError` with the nearest name when there is none, or when an entry point of that name cannot be
    imported or is no protocol of that name.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    entry = _entries().get(name)
    if entry is None:
        known = list_protocols()
        raise UsageError(f"unknown protocol {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the protocol {name!r} ({entry.value}) cannot be imported: {error}") from error
    if not isinstance(loaded, Protocol) or loaded.name != name:
        raise UsageError(f"the entry point {entry.value!r} must be a guieval Protocol named {name!r}, got {loaded!r:.120}")
    return loaded
