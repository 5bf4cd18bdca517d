"""Examines a data folder: counts against the published ones, screenshots against their records, and questionable labels.

One pass over the benchmark; damaged episodes are left out and reported. Remarks have a weight: an *error* makes results
wrong or impossible (damage, some screenshots missing), a *warning* concerns labels or counts, a *note* is neither.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from guieval.actions import Unsupported
from guieval.data.benchmark import ABCBenchmark
from guieval.data.doctor import counts as published
from guieval.data.doctor.counts import CountComparison, counted
from guieval.data.doctor.labels import LintReport
from guieval.data.editions import Edition, LabelDigest, known_editions, labels_of
from guieval.data.files import exists, read_bytes
from guieval.data.sample_sets import get_sample_set
from guieval.data.screenshots import MAX_BYTES, Header, probe, resolve
from guieval.data.selection import Choice, select
from guieval.errors import DataError, ScreenshotError
from guieval.steps import Episode, Plan, StepKey, StepTaskModel

SHOWN = 5
"""Number of examples kept for a problem with files."""

Weight: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Remark:
    """A remark about a data folder: what it is, why it matters or what causes it, and the first cases."""

    weight: Weight
    what: str
    why: str = ""
    examples: Sequence[str] = ()


@dataclass
class Part:
    """Episodes, steps, and steps by reference type, of a part of the data."""

    episodes: int = 0
    steps: int = 0
    types: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "steps": self.steps, "types": dict(self.types)}


@dataclass
class Examination:
    """The result of an examination; :attr:`remarks` are ordered by weight."""

    benchmark: str
    folder: str
    whole: Part = field(default_factory=Part)
    parts: dict[tuple[str, str], Part] = field(default_factory=dict)
    """By split and subset."""
    groups: dict[str, Counter[str]] = field(default_factory=dict)
    """Steps by group label and its values."""
    boxes: dict[str, tuple[int, int]] = field(default_factory=lambda: {"targets": (0, 0), "elements": (0, 0)})
    """The number of targets and of elements, each with the number of steps that have any."""
    edition: Edition | None = None
    """The edition of the labels; ``None`` if there is no step."""
    unsupported: Counter[str] = field(default_factory=Counter)
    """Reference actions outside the unified space, by their own names."""
    screenshots: int = 0
    """Number of distinct screenshots of the steps."""
    remarks: list[Remark] = field(default_factory=list)
    seconds: float = 0.0

    def of(self, weight: Weight) -> list[Remark]:
        return [remark for remark in self.remarks if remark.weight == weight]

    def to_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "folder": self.folder,
            "counts": self.whole.to_json(),
            "parts": [{"split": split, "subset": subset, **part.to_json()} for (split, subset), part in self.parts.items()],
            "groups": {name: dict(values) for name, values in self.groups.items()},
            **{name: {"boxes": boxes, "steps": steps} for name, (boxes, steps) in self.boxes.items()},
            "edition": None if self.edition is None else self.edition.model_dump(mode="json"),
            "unsupported": dict(self.unsupported),
            "screenshots": self.screenshots,
            "remarks": [asdict(remark) for remark in self.remarks],
        }


def examine(
    benchmark: ABCBenchmark, sample_set: str | None = None, cost: Callable[[Sequence[StepTaskModel]], str] | None = None
) -> Examination:
    """Read all data, or the steps of a sample set, with the existing screenshots.

    ``cost`` says what odd characters in the labels of some steps cost (:func:`guieval.evaluation.label_cost.cost`).

    Damaged episodes are left out and become an error remark. Raises :class:`UsageError` if the folder does not have the
    benchmark's format, or cannot fill the sample set.
    """
    started = time.perf_counter()
    examination = Examination(benchmark.name, str(benchmark.root))
    benchmark = benchmark.skipping_damaged()
    plan = None
    if sample_set is not None:
        selection = select(benchmark, Choice(sample_set=sample_set))
        plan = selection.plan
    counts = published.Counts()
    images, labels = _Images(benchmark.root), LintReport()
    digests: dict[StepKey, LabelDigest] = {}
    benchmark.skipped.clear()  # index() adds every damaged row again
    for episode in _episodes(benchmark, plan):
        steps = episode.steps if plan is None else [episode.steps[index] for index in plan[episode.key]]
        _count(examination, steps)
        counts.add(steps[0].split, steps[0].subset, ((step.groups, step.action.type) for step in steps))
        digests |= labels_of(steps)
        for step in steps:
            images.add(step)
            labels.add(step)
    examination.screenshots = images.named
    remarks = [*_damaged(benchmark.skipped, examination.whole.steps), *images.remarks()]
    if unsupported := examination.unsupported:
        names = [f"{name}: {count:,}" for name, count in unsupported.most_common()]
        what = f"{unsupported.total():,} of {examination.whole.steps:,} steps are labelled with an action of no unified type"
        why = "only a model whose adapter reads the same action can be right there"
        remarks.append(Remark("note", what, why, names[:SHOWN]))
    if sample_set is None:
        remarks += _compared(published.compare(benchmark.published, counts))
    else:
        remarks.append(_filled(sample_set, examination.whole))
    if digests:
        examination.edition = Edition.of(benchmark.dataset or steps[0].dataset, digests)
        remarks += _of_edition(examination.edition, digests)
    for count in labels.found:
        costs = f": {cost(count.steps)}" if cost is not None and count.kind.name == "odd-characters" else ""
        remarks.append(Remark("warning", str(count), count.why + costs, count.examples))
    examination.remarks = sorted(remarks, key=lambda remark: ("error", "warning", "note").index(remark.weight))
    examination.seconds = time.perf_counter() - started
    return examination


def _episodes(benchmark: ABCBenchmark, plan: Plan | None) -> Iterator[Episode]:
    """The episodes to examine; the benchmark records those that cannot be loaded."""
    for ref in benchmark.index():
        if plan is not None and ref.key not in plan:
            continue
        try:
            yield benchmark.load(ref)
        except DataError as error:
            benchmark.refuse(error)


def _count(examination: Examination, steps: Sequence[StepTaskModel]) -> None:
    first = steps[0]
    for counts in (examination.whole, examination.parts.setdefault((first.split, first.subset), Part())):
        counts.episodes += 1
        counts.steps += len(steps)
        counts.types.update(step.action.type for step in steps)
    for step in steps:
        for name, (boxes, having) in examination.boxes.items():
            more = len(getattr(step, name))
            examination.boxes[name] = boxes + more, having + (more > 0)
        if isinstance(step.action, Unsupported):
            examination.unsupported[step.action.name] += 1
        for name, value in step.groups.items():
            examination.groups.setdefault(name, Counter())[value] += 1


def _damaged(skipped: Sequence[DataError], read: int) -> list[Remark]:
    if not skipped:
        return []
    rows = f"damaged rows or episodes: {len(skipped):,}"
    why = "a run stops there, or with --skip-damaged leaves such episodes out and counts fewer steps than are published"
    if not read:
        rows, why = f"nothing could be read; {rows}", "no run can start; the messages name the line and the field"
    return [Remark("error", rows, why, [str(error) for error in skipped[:SHOWN]])]


class _Images:
    """Checks every screenshot once: whether it exists, is a complete image, has the size in its record, and needs a change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._headers: dict[str, Header | None] = {}
        self._missing: list[str] = []
        self._unusable: list[str] = []
        self._mismatched: list[str] = []
        self._windows: list[str] = []
        self._turned: list[str] = []
        self._transparent: list[str] = []

    @property
    def named(self) -> int:
        return len(self._headers)

    def add(self, step: StepTaskModel) -> None:
        path = step.screenshot
        if path not in self._headers:
            found = self._headers[path] = self._header(step)
            if found is not None and found.orientation != 1:
                self._turned.append(f"{step.key}: {path} has orientation {found.orientation}, {found.turned}")
            if found is not None and found.transparent:
                self._transparent.append(f"{step.key}: {path}")
        found = self._headers[path]
        if found is not None and (other := found.other_size(step.screenshot_size)):
            self._mismatched.append(f"{step.key}: {path} {other}")

    def _header(self, step: StepTaskModel) -> Header | None:
        """What the image is; ``None`` for an unusable image, whose reason is recorded."""
        path = self._root / step.screenshot
        try:
            file = resolve(self._root, step.screenshot)
            if file.stat().st_size > MAX_BYTES:
                raise ValueError(f"is larger than {MAX_BYTES // 1024**2} MiB")
            return probe(read_bytes(file))
        except ScreenshotError as error:
            absent = not exists(path)
            if absent and "\\" in step.screenshot and exists(self._root / step.screenshot.replace("\\", "/")):
                self._windows.append(f"{step.key}: {step.screenshot}")
                return None
            (self._missing if absent else self._unusable).append(f"{step.key}: {step.screenshot if absent else error}")
        except (ValueError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._unusable.append(f"{step.key}: {step.screenshot} {reason}")
        return None

    def remarks(self) -> list[Remark]:
        missing = len(self._missing)
        remarks: list[Remark] = []
        if self._windows:
            why = "steps that show one of them fail in every run; the files are there under the same paths with /"
            what = f"screenshots whose paths have Windows' separator \\: {len(self._windows):,} of {self.named:,}"
            remarks.append(Remark("error", what, why, self._windows[:SHOWN]))
        if missing and missing == self.named:
            why = "labels can be counted and recorded predictions be scored, but no model can be run; the folder has no images"
            remarks.append(
                Remark(
                    "note", f"annotations only: none of the {counted(self.named, 'screenshot')} is here", why, self._missing[:1]
                )
            )
        elif missing:
            why = "steps that show one of them fail in every run; get them from where the others come from"
            remarks.append(Remark("error", f"missing screenshots: {missing:,} of {self.named:,}", why, self._missing[:SHOWN]))
        if self._unusable:
            why = "a damaged image cannot be shown to a model, so that its steps fail in every run"
            what = f"unusable screenshots: {len(self._unusable):,} of {self.named:,}"
            remarks.append(Remark("error", what, why, self._unusable[:SHOWN]))
        if self._mismatched:
            why = "places are converted by the recorded size, so that labels and answers would lie elsewhere than they seem to"
            what = f"screenshots of another size than recorded: at {counted(len(self._mismatched), 'step')}"
            remarks.append(Remark("error", what, why, self._mismatched[:SHOWN]))
        if self._turned:
            why = "a model is shown them turned, and sizes are those then; labels made without the turn lie elsewhere"
            what = f"screenshots that their EXIF orientation turns: {len(self._turned):,} of {self.named:,}"
            remarks.append(Remark("warning", what, why, self._turned[:SHOWN]))
        if self._transparent:
            why = "a model is shown them on white, without transparency; an alpha channel that is opaque changes nothing"
            what = f"screenshots that can be transparent: {len(self._transparent):,} of {self.named:,}"
            remarks.append(Remark("note", what, why, self._transparent[:SHOWN]))
        return remarks


def _compared(comparisons: Sequence[CountComparison]) -> list[Remark]:
    remarks: list[Remark] = []
    if other := [str(comparison) for comparison in comparisons if comparison.verdict == "differs"]:
        why = "the published numbers are over other steps or other labels than these"
        remarks.append(Remark("warning", "the counts differ from what is published", why, other))
    if less := [str(comparison) for comparison in comparisons if comparison.verdict == "part"]:
        why = "a result on a part of the benchmark cannot be compared with published numbers on all of it"
        remarks.append(Remark("note", "only a part of what is published is here", why, less))
    if same := [str(comparison) for comparison in comparisons if comparison.verdict == "agrees"]:
        remarks.append(Remark("note", "the counts agree with what is published", "", same))
    return remarks


def _of_edition(edition: Edition, digests: Mapping[StepKey, LabelDigest]) -> list[Remark]:
    """The remark on the edition of a data set that exists in several: which one it is, or what differs from the nearest."""
    if not edition.line:
        return []
    if edition.names:
        return [Remark("note", f"the labels are {edition}")]
    near = min((known.unlike(digests) for known in known_editions(edition.dataset)), key=len, default=list(digests))
    nearest = next((known.name for known in known_editions(edition.dataset) if known.unlike(digests) == near), "")
    why = "a number on them can be compared with numbers on the same labels alone"
    if len(near) == len(digests):
        return [Remark("note", f"the labels are {edition}", why)]
    what = f"the labels are {edition}, not those of edition {nearest!r} at {counted(len(near), 'step')} of {len(digests):,}"
    return [Remark("warning", what, why, [str(key) for key in near[:SHOWN]])]


def _filled(name: str, part: Part) -> Remark:
    """The remark on a filled sample set: whether its labels have the published types."""
    types = get_sample_set(name).types
    differing = [
        f"{part.types[kind]:,} {kind} instead of {count:,}" for kind, count in types.items() if part.types[kind] != count
    ]
    if differing:
        why = "all of the set's steps are here, but some are labelled otherwise than published"
        return Remark("warning", f"the sample set {name!r} has other labels: {', '.join(differing)}", why)
    size = f"{counted(part.episodes, 'episode')}, {counted(part.steps, 'step')}"
    return Remark("note", f"has the whole sample set {name!r}: {size}")
