"""Tests in which coordinate frame a model really answers: the field's classic bug, found from the answers themselves.

The numbers that a model wrote are read in every frame known to the field, and with the axes swapped; the right reading is the
one that lands in the targets. Only clicks on steps whose reference is a click are counted. :class:`FrameAudit` does it for
any numbers, :func:`audit_records` for a journal, :class:`FrameWatch` while a run goes on. What to do about it is the user's.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from guieval.actions import BORDER, Action, Click, Point, type_of
from guieval.evaluation.click_rule import smallest_box
from guieval.frames import PER_999, PER_1000, PIXELS, Frame, Normalised, ResizedPixels, Size
from guieval.models import ABCModel
from guieval.models.composition import stages_in
from guieval.steps import Sample, StepRecord, StepTaskModel

ENOUGH = 50
"""Fewest grounded steps for a verdict."""
GAIN = 0.20
"""How much more of the steps another reading has to hit than the declared one, ..."""
CHANCE = 1e-6
"""... and the two-sided p of McNemar's exact paired test has to be below this: some 15 readings are tried, several times."""
ALIKE = 0.05
"""Readings whose paired difference from the best has a p above this cannot be distinguished from it."""
NEAR = 50.0
"""If no box gives the target, a point within this many thousandths of the reference on both axes hits it."""
WIDE = 100_000.0
"""A box larger than this many square thousandths (a tenth of the screen) does not locate a target."""

Region: TypeAlias = tuple[float, float, float, float]
"""x1, y1, x2, y2 of a target in the unified frame."""

_USUAL: tuple[Frame, ...] = (
    PIXELS,
    ResizedPixels(28),
    ResizedPixels(32, 4 * 32 * 32, 16384 * 32 * 32),
    ResizedPixels(max_pixels=1280 * 28 * 28),  # with the limit that Qwen's READMEs give as an example
    Normalised(1.0, digits=4),
    PER_999,
    PER_1000,
)


@dataclass(frozen=True)
class FrameFit:
    """How one reading fits. ``gained`` are the steps that it hits and the declared one does not, ``lost`` the reverse;
    ``chance`` is their two-sided exact McNemar p; ``outside`` are the steps whose numbers it cannot place on the screen."""

    name: str
    hits: int
    outside: int
    gained: int = 0
    lost: int = 0
    chance: float = 1.0


@dataclass(frozen=True)
class FrameReport:
    """An audit's findings. ``declared`` is the adapter's own frame and the first of ``fits``, the others follow best first.

    ``alike`` names the readings that fit best or cannot be distinguished from the best. ``enough`` and ``chance`` are the
    fewest steps and the highest p of a verdict.
    """

    steps: int
    fits: tuple[FrameFit, ...]
    alike: tuple[str, ...]
    enough: int = ENOUGH
    chance: float = CHANCE

    @property
    def declared(self) -> FrameFit:
        return self.fits[0]

    @property
    def better(self) -> FrameFit | None:
        """The best reading that fits far better than the declared one by the rule of this module."""
        if self.steps < self.enough:
            return None
        ahead = (fit for fit in self.fits[1:] if fit.hits - self.declared.hits >= GAIN * self.steps)
        return next((fit for fit in ahead if fit.chance < self.chance), None)

    @property
    def sentence(self) -> str:
        own = f"the declared frame {self._hits(self.declared)}"
        if self.steps < self.enough:
            return f"{self.steps:,} grounded steps are too few for a verdict, which takes {self.enough}: {own}"
        best = self.better or self.declared
        others = " or ".join(name for name in self.alike if name != best.name)
        equal = f"; these steps cannot tell it apart from {others}" if others else ""
        if best is not self.declared:
            return f"another frame fits far better: {self._hits(best)}, but {own} (McNemar p = {best.chance:.1e}){equal}"
        if not self.alike:
            return f"{own}, and no reading hits any"
        if best.name not in self.alike:
            return f"{own}; {self.alike[0]} fits a little better, which may be chance or a small error of scale"
        return f"{own}, and no reading fits better{equal}"

    def _hits(self, fit: FrameFit) -> str:
        return f"{fit.name} hits {fit.hits:,} of {self.steps:,} targets ({fit.hits / max(self.steps, 1):.1%})"


class FrameAudit:
    """Counts which readings hit. ``declared`` is the frame the adapter declares; ``frames`` are further
    candidates, besides the usual ones, e.g. with a checkpoint's own image limits."""

    def __init__(self, declared: Frame, frames: Iterable[Frame] = ()) -> None:
        # by title: frames that differ in how many decimals a model writes read the same numbers alike
        others = {title(frame): frame for frame in (*_USUAL, *frames)}
        others.pop(title(declared), None)
        self._frames = (declared, *others.values())
        self.names = tuple(f"{title(frame)}{swapped}" for swapped in ("", ", x and y swapped") for frame in self._frames)
        self.steps = 0
        self._hits: Counter[int] = Counter()  # which readings hit, as a bit set, with the number of steps
        self._outside: Counter[int] = Counter()

    def add(self, x: float, y: float, size: Size, targets: Sequence[Region], declared: Frame | None = None) -> None:
        """Add one answer: the numbers as the model wrote them, on a screenshot of ``size``.

        ``declared`` replaces the declared frame for an answer that the adapter reads in another one.
        """
        hits = outside = 0
        frames = self._frames if declared is None else (declared, *self._frames[1:])
        for index, frame in enumerate(frames):
            across, down = _scale(frame, size)
            swapped = index + len(frames)
            for u, v, reading in ((x * across, y * down, 1 << index), (y * across, x * down, 1 << swapped)):
                # what was decoded and encoded again may miss the edge by a float's last digit
                if not (-BORDER <= u <= 1000.0 + BORDER and -BORDER <= v <= 1000.0 + BORDER):
                    outside |= reading
                elif any(
                    left - BORDER <= u <= right + BORDER and top - BORDER <= v <= bottom + BORDER
                    for left, top, right, bottom in targets
                ):
                    hits |= reading
        self.steps += 1
        self._hits[hits] += 1
        self._outside[outside] += 1

    def report(self) -> FrameReport:
        own, *others = (self._fit(index) for index in range(len(self.names)))
        others.sort(key=lambda fit: (-fit.hits, fit.outside))
        best = max((own, *others), key=lambda fit: fit.hits)
        ahead = self.names.index(best.name)
        alike: list[str] = []
        for fit in (own, *others):
            index = self.names.index(fit.name)
            if fit.hits and mcnemar(self._only(index, ahead), self._only(ahead, index)) > ALIKE:
                alike.append(fit.name)
        return FrameReport(self.steps, (own, *others), tuple(alike))

    def _fit(self, index: int) -> FrameFit:
        gained, lost = self._only(index, 0), self._only(0, index)
        hits, outside = (
            sum(number for bits, number in counts.items() if bits >> index & 1) for counts in (self._hits, self._outside)
        )
        return FrameFit(self.names[index], hits, outside, gained, lost, mcnemar(gained, lost))

    def _only(self, one: int, other: int) -> int:
        """The number of steps that one reading hits and the other does not."""
        return sum(number for bits, number in self._hits.items() if bits >> one & 1 and not bits >> other & 1)


def _scale(frame: Frame, size: Size) -> tuple[float, float]:
    try:
        width, height = frame.extent(size)
    except ValueError:  # a screen too narrow for smart_resize: nothing can be read in that frame
        return math.inf, math.inf
    return 1000.0 / width, 1000.0 / height


def title(frame: Frame) -> str:
    """A frame's name, with its limits in pixels if they are not the usual ones."""
    if not isinstance(frame, ResizedPixels):
        return frame.name
    least, most = 4 * frame.factor**2, 16384 * frame.factor**2
    limits = [f"at least {frame.min_pixels:,}"] if frame.min_pixels != least else []
    limits += [f"at most {frame.max_pixels:,}"] if frame.max_pixels != most else []
    words = [frame.name, *([f"({' and '.join(limits)} pixels)"] if limits else [])]
    return " ".join([*words, *([f"after {title(frame.first)}"] if frame.first is not None else [])])


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p of McNemar's test: how odd this split of the steps on which two readings differ would be."""
    total, fewer = gained + lost, min(gained, lost)
    term = tail = 1
    for k in range(fewer):
        term = term * (total - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << total))


def targets_of(task: StepTaskModel) -> tuple[Region, ...]:
    """Where a click is right: per accepted click the smallest target or element around it, else its near surroundings."""
    return tuple(_target(action.point, task) for action in (task.action, *task.alternatives) if isinstance(action, Click))


def _target(point: Point, task: StepTaskModel) -> Region:
    x, y = point
    boxes = task.targets if task.targets.containing(point).any() else task.elements
    smallest = smallest_box(boxes, point)
    if smallest is not None:
        left, top, right, bottom = boxes[smallest]
        if (right - left) * (bottom - top) <= WIDE:
            return left, top, right, bottom
    return x - NEAR, y - NEAR, x + NEAR, y + NEAR


class _Probe(Frame):
    """A frame without bounds, so that an adapter hands out the numbers it read; ``used`` records whether it did."""

    name = "probe"
    used = False

    def extent(self, size: Size) -> tuple[float, float]:
        return 1e7, 1e7

    def decode(self, x: float, y: float, size: Size) -> Point:
        self.used = True
        return super().decode(x, y, size)


class StepAudit:
    """An audit of one model's steps; the declared frame is the adapter's at the first step, ``frames`` further candidates."""

    def __init__(self, model: ABCModel, frames: Sequence[Frame] = ()) -> None:
        self._model = model
        self._more = frames
        self._probe, self._places = _Probe(), _Probe()
        self.audit: FrameAudit | None = None

    @cached_property
    def _bare(self) -> ABCModel:
        model = copy.copy(self._model)
        vars(model)["frame"] = lambda task: self._probe
        vars(model)["place_frame"] = lambda task: self._places
        return model

    def add(self, task: StepTaskModel, sample: Sample, *, reread: bool) -> None:
        """Add an answer, if it is a click on a step whose reference is one.

        The numbers come from the raw response, or, unless ``reread``, from re-encoding the recorded action wherever there is
        one: that is the quicker way, and exact as long as the adapter is the one that read the response.
        """
        if not isinstance(task.action, Click):
            return
        if stages := stages_in(sample.raw_response or ""):  # the first one's click is of this adapter, on the whole screen
            sample, reread = sample.model_copy(update={"raw_response": stages[0].text, "action": None}), True
        numbers = declared = None
        if reread or not isinstance(sample.action, Click):
            numbers = self._written(task, sample.raw_response)
            declared = self._model.place_frame(task) if self._places.used else None
        if numbers is None and isinstance(sample.action, Click):
            numbers = self._model.frame(task).encode(sample.action.point, task.screenshot_size)
        if numbers is None:
            return
        if self.audit is None:
            own = self._model.frame(task)
            limited = _limited(own, self._model.config.options)
            self.audit = FrameAudit(own, [*limited, *self._model.disputed_frames, *self._more])
        self.audit.add(*numbers, task.screenshot_size, targets_of(task), declared)

    def _written(self, task: StepTaskModel, text: str | None) -> tuple[float, float] | None:
        """The numbers of a response's click in any frame; ``None`` for any other, and if the adapter ignores its frame."""
        if text is None:
            return None
        self._probe.used = self._places.used = False
        try:
            action: Action = self._bare.parse_response(task, text).action
        except Exception:  # no action in it, or a bug of a third-party adapter; a run reports both
            return None
        if not isinstance(action, Click) or self._probe.used == self._places.used:
            return None
        return self._probe.encode(action.point, task.screenshot_size)


def _limited(declared: Frame, options: dict[str, Any]) -> list[Frame]:
    """The resized frames with the family's own limits: of its frame, and of the checkpoint's options."""
    frames: list[Frame] = []
    if isinstance(declared, ResizedPixels):
        frames += [replace(declared, factor=28), replace(declared, factor=32)]
    limits = {name: options[name] for name in ("min_pixels", "max_pixels") if isinstance(options.get(name), int)}
    if limits:
        frames += [replace(ResizedPixels(28), **limits), replace(_USUAL[2], **limits)]  # type: ignore[type-var]
    return frames


def audit_records(model: ABCModel, records: Iterable[StepRecord]) -> FrameReport | None:
    """The audit of a journal, whose responses are read again; ``None`` if it has no click on a step whose reference is one."""
    audit = StepAudit(model)
    for record in records:
        audit.add(record.task, record.sample, reread=True)
    return None if audit.audit is None else audit.audit.report()


class FrameWatch:
    """An audit during a run: looks after 50, 100, 200, ... grounded steps, until another frame fits far better."""

    def __init__(self, model: ABCModel) -> None:
        self._audit = StepAudit(model)
        self._next: float = ENOUGH

    def add(self, task: StepTaskModel, sample: Sample) -> FrameReport | None:
        """Add an answer and return the report if it is time to look. Raises nothing, since a check must not end a run."""
        placed = sample.action is not None and type_of(sample.action) == "CLICK"
        if self._next == math.inf or not placed or not isinstance(task.action, Click):
            return None
        try:
            self._audit.add(task, sample, reread=False)
            audit = self._audit.audit
            if audit is None or audit.steps < self._next:
                return None
            self._next *= 2
            report = audit.report()
        except Exception:  # the adapter may be third-party code; its error is reported where it reads the response
            self._next = math.inf
            return None
        if report.better is not None:
            self._next = math.inf
        return report
