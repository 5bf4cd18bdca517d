"""Finds questionable labels: not errors, but a user of a benchmark should know them before trusting a score.

Only records are read, neither files nor images. A coordinate outside the screen cannot be in a record, so loaders refuse it
as damage. Every kind of finding explains why it matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from guieval.actions import Boxes, Click, LongPress, Scroll
from guieval.data.doctor import characters
from guieval.steps import StepKey, StepTaskModel

SHOWN = 3
"""Number of examples kept per kind."""
MOST_KEPT = 100
"""Steps kept of a kind that is looked at more closely."""
HALF = 500_000.0
"""Half of the screen's area, in square thousandths."""


@dataclass(frozen=True)
class LintKind:
    """One kind of finding: what is counted, among what, and why it matters."""

    name: str
    what: str
    among: str
    why: str


KINDS: tuple[LintKind, ...] = (
    LintKind(
        "outside-targets",
        "have their reference point outside every target",
        "click and long-press steps with targets",
        "a protocol that asks for a point inside a target calls the reference itself wrong, or must rely on distance alone",
    ),
    LintKind(
        "outside-elements",
        "have their reference point outside every element",
        "click and long-press steps with elements and no target",
        "a protocol that asks for an element around the reference accepts none there, or must rely on distance alone",
    ),
    LintKind(
        "large-box",
        "have a target or element that covers more than half of the screen",
        "click steps",
        "a protocol that accepts any point inside any element accepts nearly every click there, so that its score is too high",
    ),
    LintKind(
        "empty-box",
        "have a target or element without an area",
        "steps with targets or elements",
        "only a point on its very edge is in it, so it accepts next to none; the element was hidden, or its label is wrong",
    ),
    LintKind(
        "box-off-screen",
        "have a target or element that is wholly off the screen",
        "steps with targets or elements",
        "it can never be hit; many of them hint at boxes of another screenshot or in another unit",
    ),
    LintKind(
        "empty-instruction", "have no instruction", "steps", "the model does not see what to do, so only chance can be right"
    ),
    LintKind(
        "empty-low-level",
        "have no instruction of their own",
        "steps of the low-level setting",
        "in this setting the step's own instruction is what the model is to follow",
    ),
    LintKind(
        "empty-text",
        "have an empty text or app name",
        "typing and app-opening steps",
        "protocols that compare texts divide by its length, accept everything or accept nothing",
    ),
    LintKind(
        "odd-characters",
        "have a label with characters that cannot be seen or look like others",
        "typing and app-opening steps",
        "a response that looks equal to the label is not",
    ),
    LintKind(
        "scroll-word",
        "have an instruction that says to swipe another way",
        'scroll steps whose instruction says to "swipe" one way',
        "label or words are wrong, or the writer meant the content's direction; a model that follows the instruction is "
        "scored wrong (instructions to scroll are not counted, as that word is commonly used in both senses)",
    ),
    LintKind(
        "duplicated-id",
        "have the id of an earlier step",
        "steps",
        "results are kept by id, so that one of the two is lost or the run is refused",
    ),
    LintKind(
        "repeated-step",
        "repeat an earlier step's screenshot, instructions and action",
        "steps",
        "the same question counts twice, which gives it twice the weight; within one episode it may be a true repetition",
    ),
)
"""Every kind, in the order of a report."""

_OUTSIDE = ("outside-targets", "outside-elements")
_SWIPE = re.compile(r"\bswip(?:e|es|ing)\b", re.IGNORECASE)
_WAY = re.compile(r"\b(up|down|left|right)\b", re.IGNORECASE)


@dataclass
class LintCount:
    """The number of steps with a kind, the number that could have it, and the first examples."""

    kind: LintKind
    count: int = 0
    among: int = 0
    examples: list[str] = field(default_factory=list)
    steps: list[StepTaskModel] = field(default_factory=list)
    """Steps of this kind, for a kind that is looked at more closely."""

    @property
    def share(self) -> float:
        """The share among the steps that could have it, 0 if there are none."""
        return self.count / self.among if self.among else 0.0

    @property
    def why(self) -> str:
        if self.kind.name in _OUTSIDE and self.steps and all(map(_fits_as_width_and_height, self.steps)):
            return f"read as [x, y, width, height] each step's would hold its point; {self.kind.why}"
        return self.kind.why

    def __str__(self) -> str:
        share = f"{self.share:.1%}" if self.share >= 0.001 else "under 0.1%"
        return f"{self.count:,} of {self.among:,} {self.kind.among} ({share}) {self.kind.what}"


class LintReport:
    """Counts every kind over the added steps; memory grows by a few dozen bytes per step."""

    def __init__(self, steps: Iterable[StepTaskModel] = ()) -> None:
        self.counts: dict[str, LintCount] = {kind.name: LintCount(kind) for kind in KINDS}
        self._keys: set[StepKey] = set()
        self._questions: set[int] = set()
        for step in steps:
            self.add(step)

    @property
    def found(self) -> list[LintCount]:
        return [count for count in self.counts.values() if count.count]

    def add(self, step: StepTaskModel) -> None:
        self._boxes(step)
        self._words(step)
        self._count("duplicated-id", step, step.key in self._keys)
        self._keys.add(step.key)
        question = hash((step.screenshot, step.instruction, step.low_level_instruction, step.action.model_dump_json()))
        self._count("repeated-step", step, question in self._questions)
        self._questions.add(question)

    def _count(self, name: str, step: StepTaskModel, has_kind: bool, note: str = "") -> None:
        count = self.counts[name]
        count.among += 1
        if has_kind:
            count.count += 1
            if len(count.steps) < MOST_KEPT and name in ("odd-characters", *_OUTSIDE):
                count.steps.append(step)
            if len(count.examples) < SHOWN:
                count.examples.append(f"{step.key}{note}")

    def _boxes(self, step: StepTaskModel) -> None:
        point = step.action.point if isinstance(step.action, Click | LongPress) else None
        click = isinstance(step.action, Click)  # long presses are reported as a separate type
        boxes = step.boxes_of_screen
        if not len(boxes):
            if click:
                self._count("large-box", step, False)
            return
        x1, y1, x2, y2 = boxes.array.T
        areas = (x2 - x1) * (y2 - y1)
        if point is not None:
            own = "outside-targets" if len(step.targets) else "outside-elements"
            outside = not (step.targets if len(step.targets) else boxes).containing(point).any()
            self._count(own, step, outside, f": ({point.x:.0f}, {point.y:.0f})")
        if click:
            self._count("large-box", step, bool((areas > HALF).any()), f": {areas.max() / (2 * HALF):.0%}")
        self._count("empty-box", step, bool((areas <= 0).any()))
        self._count("box-off-screen", step, bool(((x2 <= 0) | (y2 <= 0) | (x1 >= 1000) | (y1 >= 1000)).any()))

    def _words(self, step: StepTaskModel) -> None:
        self._count("empty-instruction", step, not step.instruction.strip())
        own = step.low_level_instruction or ""
        if step.setting == "low":
            self._count("empty-low-level", step, not own.strip())
        if (text := characters.label(step)) is not None:
            self._count("empty-text", step, not text.strip())
            odd = characters.odd(text)
            self._count("odd-characters", step, odd is not None, f": {text!r:.60} has {odd}")
        if isinstance(step.action, Scroll):
            words = {word.lower() for word in _WAY.findall(own)} if _SWIPE.search(own) else set()
            if len(words) == 1:  # "from left to right" would need parsing
                note = f": {own!r:.60}, but the finger moves {step.action.direction}"
                self._count("scroll-word", step, words != {step.action.direction}, note)


def _fits_as_width_and_height(step: StepTaskModel) -> bool:
    """Whether the point is in a box whose second pair of numbers is its width and height."""
    assert isinstance(step.action, Click | LongPress)
    boxes = (step.targets if len(step.targets) else step.elements).array
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    return bool(Boxes(corners).containing(step.action.point).any())
