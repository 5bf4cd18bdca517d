"""A published evaluation as one frozen value: its steps, its rules, how failures count, and its metrics.

Two papers' numbers often differ by a threshold or a denominator, so a protocol fixes all of it under a name and can describe it
in words. The protocols are listed by :mod:`guieval.evaluation.protocols`, their rules are in :mod:`guieval.evaluation.rules`,
and their metrics are computed by :mod:`guieval.metrics.protocol_metric`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeAlias

from guieval.actions import ActionType
from guieval.evaluation.click_rule import in_earlier_words
from guieval.evaluation.rules import StepRules

Measure: TypeAlias = Literal["type", "exact", "exact-given-type", "exact-given-place", "graded", "progress", "success", "score"]
"""``type``, ``exact``: share of steps; ``exact-given-type``: exact matches / type matches; ``exact-given-place``: exact
matches / answers that are a click or a long press; ``graded``: as exact, but a point earns 1 - sqrt(2) d, at least 0, at a
distance of d screens (each axis by its side; ScreenSuite); ``progress``: exact prefix of an episode / its length; ``success``:
episodes exact throughout; ``score``: mean of progress and success (UI-S1, appendix C)."""
Average: TypeAlias = Literal["all", "episodes", "cells", "cells-by-size"]
"""``all``: everything weighs the same (of progress: sum of prefixes / sum of lengths); ``episodes``: mean over episodes;
``cells``: mean over the cells of ``keys``; ``cells-by-size``: cells weighted by their number of steps squared over its sum
(VLMEvalKit weights a mean that is weighted already)."""
Fate: TypeAlias = Literal["wrong", "left-out", "episode-left-out", "zero"]
"""How a step without a judgement counts. ``wrong``: it is a mismatch. ``left-out``: it is in neither part of the fraction,
and its episode is the sequence of the other steps. ``episode-left-out``: the same, but metrics over whole episodes
leave out its episode (GUI-Odyssey). ``zero``: left out too, but its episode counts 0 in such metrics unless a mismatch comes
before it (UI-S1; in GUIEvalKit a gap in the step numbers, of which its code does not notice one at an episode's very end)."""


@dataclass(frozen=True)
class FailurePolicy:
    """How a source counts steps that are neither right nor wrong.

    ``unparseable``: the response has no action. ``unsupported``: it has one outside the unified space. ``missing``: no answer,
    because the request failed or was never made. ``outside``: the prediction is outside the action space of the benchmark or
    of the model (GUIEvalKit's unified actions, paper 3.3.1; labels do not matter); the others are checked first.
    """

    unparseable: Fate = "wrong"
    unsupported: Fate = "wrong"
    missing: Fate = "wrong"
    outside: Fate = "wrong"

    def describe(self) -> str:
        fates = {
            "responses without an action": self.unparseable,
            "actions outside the unified space": self.unsupported,
            "steps without an answer": self.missing,
            "actions outside the two action spaces": self.outside,
        }
        words: dict[Fate, str] = {
            "wrong": "count as wrong",
            "left-out": "are left out",
            "episode-left-out": "are left out, and so is their episode from metrics of whole episodes",
            "zero": "make their episode's progress 0",
        }
        # An action outside the two spaces that is judged like any other is not a failure, so it is not mentioned.
        return "; ".join(f"{what} {words[fate]}" for what, fate in fates.items() if not (fate == "wrong" and "two" in what))


@dataclass(frozen=True)
class Metric:
    """One number that a source leads with, under the source's name for it, as the source computes it.

    ``over`` are the reference action types it counts (``None``: all) and ``without`` those it does not. ``keys`` are the
    labels of ``task.groups`` by which cells are formed, if ``average`` is over cells; ``subset`` is the episode's, if no
    label of that name is given. ``failure`` replaces the protocol's own policy.
    """

    name: str
    measure: Measure
    over: frozenset[ActionType] | None = None
    without: frozenset[ActionType] = frozenset()
    average: Average = "all"
    keys: tuple[str, ...] = ()
    failure: FailurePolicy | None = None

    def denominator(self, policy: FailurePolicy) -> str:
        """What it is an average of, in words, under the protocol's ``policy``."""
        if self.average.startswith("cells"):
            return f"cells of {' x '.join(self.keys)}"
        if self.measure in ("success", "score") or self.average == "episodes":
            words = "episodes"
        elif self.measure == "exact-given-type":
            words = "steps of the right type"
        else:
            words = "steps" if self.over is None else f"{', '.join(sorted(self.over))} steps"
            words += " whose answer has a place" if self.measure == "exact-given-place" else ""
        if self.without:
            words += f" without {', '.join(sorted(self.without))}"
        own = self.failure or policy
        fates = {"unparseable": own.unparseable, "unsupported": own.unsupported, "missing": own.missing, "outside": own.outside}
        dropped = [name for name, fate in fates.items() if fate != "wrong"]
        if not dropped:
            return words
        names = " and ".join(filter(None, (", ".join(dropped[:-1]), dropped[-1])))
        counted = self.measure in ("progress", "success", "score")
        effect = {"zero": ", their episode counts 0", "episode-left-out": ", with their episode"}
        more = next((effect[fate] for fate in fates.values() if fate in effect), "") if counted else ""
        return f"{words}, {names} ones dropped{more}"

    @property
    def meaning(self) -> str:
        what = {
            "type": "share of steps of the right type",
            "exact": "share of steps that match exactly",
            "exact-given-type": "exact matches among the steps of the right type",
            "exact-given-place": "exact matches among the steps whose answer is a click or a long press",
            "graded": "mean credit of a step: of a point 1 - sqrt(2) x its distance in screens, at least 0; else 1 or 0",
            "progress": "steps before an episode's first mismatch / its length",
            "success": "share of episodes in which every step matches",
            "score": "mean of progress and success",
        }[self.measure]
        if self.over is not None:
            what += f", over {', '.join(sorted(self.over))} steps"
        if self.without:
            what += f", without {', '.join(sorted(self.without))} steps"
        if self.average == "episodes":
            what += ", mean over episodes"
        elif self.average != "all":
            weights = ", each weighing by its size once more" if self.average == "cells-by-size" else ""
            what += f", mean over the cells of {' x '.join(self.keys)}{weights}"
        elif self.measure == "progress":
            what += ", summed over all episodes first"
        if self.failure is not None:
            what += f" ({self.failure.describe()})"
        return what

    def describe(self) -> str:
        return f"{self.name}: {self.meaning}"


ALL_STEPS = FailurePolicy()
"""Whatever has no verdict is wrong, so no step is dropped."""
TYPE_MATCH = Metric("type match", "type")
EXACT_MATCH = Metric("exact match", "exact")
PROGRESS = Metric("progress", "progress", average="episodes")
WEIGHTED_PROGRESS = Metric("step-weighted progress", "progress")
SUCCESS_RATE = Metric("success rate", "success")
SHARED = (EXACT_MATCH, TYPE_MATCH, SUCCESS_RATE, PROGRESS, WEIGHTED_PROGRESS)
"""The metrics of every run, over all of its steps; a protocol's own metric may have such a name only if it is that number."""


@dataclass(frozen=True)
class Protocol:
    """How one published evaluation judges a step, and which metrics it reports.

    ``rules`` apply unless ``variants`` names others for the step's ``dataset``. ``datasets`` are those it was written for
    (``None``: any). ``sample_sets`` names, by data set, the steps that its published numbers count. ``failure`` and ``metrics``
    change no verdict. ``notes`` state in whole sentences what the source is lenient or strict about, which defects it has, and
    what of it is outside a judgement of unified actions (e.g. how it misreads numbers). ``mends`` is the protocol of which
    this one is the intended version, the other keeping the source's defects. ``version`` grows when a row is corrected.
    """

    name: str
    source: str
    summary: str
    rules: StepRules
    variants: Mapping[str, StepRules] = field(default_factory=dict, hash=False)
    datasets: frozenset[str] | None = None
    sample_sets: Mapping[str, str] = field(default_factory=dict, hash=False)
    metrics: tuple[Metric, ...] = (TYPE_MATCH, EXACT_MATCH)
    failure: FailurePolicy = FailurePolicy()
    notes: tuple[str, ...] = ()
    mends: str | None = None
    version: int = 1

    def __post_init__(self) -> None:
        shared = {metric.name: metric for metric in SHARED}
        for metric in self.metrics:
            given = metric, ALL_STEPS if self.judges_outcomes else metric.failure or self.failure
            if metric.name in shared and given != (shared[metric.name], ALL_STEPS):
                raise ValueError(f"{self.name}: {metric.name!r} is the name of a metric over all steps; give this one another")

    @property
    def judges_outcomes(self) -> bool:
        """Whether it is that of online runs, whose steps have no reference actions."""
        return self.datasets == frozenset({"online"})

    def rules_for(self, dataset: str) -> StepRules:
        return self.variants.get(dataset, self.rules)

    def applies_to(self, dataset: str) -> bool:
        return self.datasets is None or dataset in self.datasets

    def foreign_mark(self, datasets: Iterable[str]) -> str:
        """The mark next to a metric over data that the source does not evaluate; "" if it evaluates all of it."""
        others = [dataset for dataset in dict.fromkeys(datasets) if not self.applies_to(dataset)]
        return f"not written for {', '.join(others)}" if others else ""

    def foreign_note(self, dataset: str) -> str:
        """The mark as a sentence, with the data that the source does evaluate."""
        mark = self.foreign_mark([dataset])
        return f"{self.name} is written for {', '.join(sorted(self.datasets or ()))}, not for {dataset}" if mark else ""

    def judgement(self) -> str:
        """How steps are judged, in words; equal texts mean equal judgements."""
        lines: list[str] = []
        for dataset, rules in sorted(self.variants.items()):
            lines += [f"on data set {dataset}:", *_indented(rules.describe())]
        lines += ["on every other data set:" if self.variants else "on every data set:", *_indented(self.rules.describe())]
        return "\n".join(lines)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal judgements."""
        return _digest(self.judgement())

    @property
    def earlier_fingerprint(self) -> str:
        """The fingerprint of the same judgement as versions wrote it for which targets and elements were one list of boxes."""
        return _digest(in_earlier_words(self.judgement()))

    def describe(self) -> str:
        lines = [f"{self.name} (version {self.version}): {self.summary}", f"source: {self.source}"]
        if self.mends is not None:
            lines.append(f"the intended version of {self.mends}, which keeps the source's defects")
        if self.datasets is not None:
            lines.append(f"written for: {', '.join(sorted(self.datasets))}")
        lines += [f"steps on {dataset}: sample set {name}" for dataset, name in sorted(self.sample_sets.items())]
        lines.append(self.judgement())
        lines += [f"failures: {self.failure.describe()}", "metrics:", *(f"  {metric.describe()}" for metric in self.metrics)]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def _digest(text: str) -> str:
    return sha256(json.dumps(text).encode()).hexdigest()[:16]


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
