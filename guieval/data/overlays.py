"""Overlays: further accepted actions for steps of a benchmark, in a separate file, so that the data is never edited.

An overlay is JSONL; a line names a step and adds alternatives (unified actions), targets (boxes), or regular expressions that a
typed text may match instead::

    {"episode_id": "17", "step_index": 2, "alternatives": [{"type": "PRESS", "button": "BACK"}], "note": "both close it"}
    {"subset": "general", "episode_id": "4", "step_index": 0, "targets": [[0, 0, 500, 80]], "text_patterns": ["tea( shop)?"]}

Coordinates are unified, [0, 1000] per axis. Several lines may add to one step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from guieval.actions import Action, Boxes, Frozen
from guieval.data.benchmark import CLASS_ATTRIBUTES, ABCBenchmark, EpisodeRef
from guieval.data.files import read_bytes
from guieval.data.patterns import pattern_problem
from guieval.errors import DataError, UsageError
from guieval.steps import Episode, StepTaskModel, validated

TEXT_PATTERNS = "text_patterns"
"""The key in a step's ``extras`` under which the text rules look up regular expressions."""


class Addition(Frozen):
    """One line: the further answers that a step accepts."""

    subset: str = ""
    episode_id: str = Field(min_length=1)
    step_index: int = Field(ge=0)
    alternatives: tuple[Action, ...] = ()
    targets: Boxes = Field(default_factory=Boxes)
    text_patterns: tuple[str, ...] = ()
    note: str = ""

    @field_validator("text_patterns")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if problem := next(filter(None, map(pattern_problem, patterns)), None):
            raise ValueError(problem)
        return patterns

    @model_validator(mode="after")
    def _adds_something(self) -> Addition:
        if not (self.alternatives or len(self.targets) or self.text_patterns):
            raise ValueError("a line must add alternatives, targets or text_patterns")
        return self


@dataclass(frozen=True)
class Overlay:
    """A file's additions by step; ``sha256`` is the file's and part of the identity of a run."""

    file: Path
    sha256: str
    lines: Mapping[tuple[str, str], Sequence[tuple[int, Addition]]]
    """Line numbers and additions by subset and episode id."""

    @property
    def steps(self) -> int:
        return len({(key, addition.step_index) for key, lines in self.lines.items() for _, addition in lines})

    def apply(self, task: StepTaskModel) -> StepTaskModel:
        """The step with the overlay's additions. Raises :class:`DataError` for a step that the episode does not have."""
        lines = self.lines.get((task.subset, task.episode_id))
        if lines is None:
            return task
        self.check(task.subset, task.episode_id, task.episode_length)
        added = [addition for _, addition in lines if addition.step_index == task.step_index]
        if not added:
            return task
        accepted = list(task.alternatives)
        for action in chain.from_iterable(addition.alternatives for addition in added):
            if action != task.action and action not in accepted:
                accepted.append(action)
        targets = list(task.targets)  # duplicates in the data itself are kept
        further = dict.fromkeys(chain.from_iterable(addition.targets for addition in added))
        targets += [box for box in further if box not in targets]
        patterns = [*task.extras.get(TEXT_PATTERNS, ()), *chain.from_iterable(addition.text_patterns for addition in added)]
        extras = {**task.extras, TEXT_PATTERNS: list(dict.fromkeys(patterns))} if patterns else task.extras
        return task.model_copy(update={"alternatives": tuple(accepted), "targets": Boxes(targets), "extras": extras})

    def check(self, subset: str, episode_id: str, length: int) -> None:
        """Raise :class:`DataError` for a line that names a step that the episode does not have."""
        for number, addition in self.lines.get((subset, episode_id), ()):
            if addition.step_index >= length:
                raise DataError(
                    f"{self.file}, line {number}: episode {episode_id!r} has no step {addition.step_index}; "
                    f"its {length} steps are counted from 0"
                )


def describe_overlay(file: Path | str, sha256: str, steps: int) -> str:
    """The line in results that describes an overlay."""
    return f"{Path(file).name} (sha256 {sha256[:12]}), further accepted answers at {steps:,} step{'s' * (steps != 1)}"


def read_overlay(file: Path) -> Overlay:
    """Read an overlay. Raises :class:`UsageError` for a missing or empty file, :class:`DataError` with line and field."""
    try:
        data = read_bytes(file)
    except OSError as error:
        raise UsageError(f"the overlay {str(file)!r} cannot be read: {error.strerror}") from None
    lines: defaultdict[tuple[str, str], list[tuple[int, Addition]]] = defaultdict(list)
    for number, text in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if text.strip():
            addition = validated(Addition, text, file=file, line=number)
            lines[addition.subset, addition.episode_id].append((number, addition))
    if not lines:
        raise UsageError(f"the overlay {str(file)!r} adds nothing")
    return Overlay(file, sha256(data).hexdigest(), dict(lines))


class Overlaid(ABCBenchmark):
    """A benchmark of any format with an overlay's additions; everything else is the benchmark's own."""

    def __init__(self, benchmark: ABCBenchmark, overlay: Overlay) -> None:
        super().__init__(benchmark.root)
        self._inner = benchmark
        self._overlay = overlay
        self.skip_damaged = benchmark.skip_damaged
        self.skipped = benchmark.skipped
        vars(self).update({name: getattr(benchmark, name) for name in CLASS_ATTRIBUTES})

    def skipping_damaged(self) -> Overlaid:
        return Overlaid(self._inner.skipping_damaged(), self._overlay)

    def index(self) -> Sequence[EpisodeRef]:
        """The benchmark's episodes. Raises :class:`DataError` for a line whose step does not exist."""
        refs = self._inner.index()
        lengths = {(ref.key.subset, ref.key.episode_id): ref.length for ref in refs}
        for (subset, episode_id), lines in self._overlay.lines.items():
            if (subset, episode_id) not in lengths:
                if self.skipped:  # it may be an episode that could not be listed
                    continue
                name = f"{subset}/{episode_id}" if subset else episode_id
                others = sorted(other for other, known in lengths if known == episode_id)
                raise DataError(
                    f"{self._overlay.file}, line {lines[0][0]}: benchmark {self.name!r} has no episode {name!r}"
                    + (f", but one in subset {others[0]!r}" if others else "")
                )
            self._overlay.check(subset, episode_id, lengths[subset, episode_id])
        return refs

    def load(self, ref: EpisodeRef) -> Episode:
        episode = self._inner.load(ref)
        if (ref.key.subset, ref.key.episode_id) not in self._overlay.lines:
            return episode
        return Episode(steps=tuple(map(self._overlay.apply, episode.steps)))
