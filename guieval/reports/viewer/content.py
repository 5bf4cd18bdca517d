"""The viewer's data on one or more runs over the same steps, in parts that can be made one by one.

``guieval report`` writes every part to a folder, ``guieval view`` makes a part when the page asks for it. A part is a pure
function of the runs' journals and its number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import RunFolder
from guieval.reports.notes import read_notes
from guieval.reports.past_runs import described
from guieval.reports.viewer.index import INSTRUCTION_LIMIT, Index
from guieval.reports.viewer.pictures import Picture
from guieval.reports.viewer.reading import ABSENT, Prompter, SeenStep, walk
from guieval.reports.viewer.sources import PlannedTasks
from guieval.reports.viewer.step import clipped, seen_values, task_values
from guieval.steps import EpisodeKey, StepKey, StepRecord, StepTaskModel
from guieval.wings import offered, offers

CHUNK = 200
"""Number of steps per data file of a report, loaded when one of them is shown."""
SEARCH_CHUNK = 2000
"""Number of steps per file of texts, loaded for a search."""
SEARCH_LIMIT = 4000
MOST_RUNS = 8
"""Number of runs that can be shown side by side; the page has as many letters."""


@dataclass(frozen=True)
class StepRow:
    """A planned step: its task, if it is known, and for each run its result and the records of its episode."""

    number: int
    key: EpisodeKey
    step: int
    task: StepTaskModel | None
    seen: tuple[SeenStep, ...]
    known: tuple[dict[int, StepRecord], ...]
    recorded: bool


class RunSteps:
    """The steps of the first of ``runs``, judged under each of ``protocols``, with what the others did at them.

    ``tasks`` provides steps without a record, e.g. those after the first mismatch. ``chunk`` is the number of steps in a part.
    ``prompters`` rebuild the prompts of each run. Raises :class:`UsageError` for a run that shares no step with the first.
    """

    def __init__(
        self,
        runs: Sequence[RunFolder],
        protocols: Sequence[str],
        tasks: PlannedTasks | None = None,
        chunk: int = CHUNK,
        prompters: Sequence[Prompter] = (),
    ) -> None:
        if len(runs) > MOST_RUNS:
            raise UsageError(f"{len(runs)} runs are too many to show side by side; at most {MOST_RUNS}")
        self.runs = tuple(runs)
        self.prompters = tuple(prompters) or (None,) * len(runs)
        self.evaluators = [ActionEvaluator(name) for name in protocols]
        self.chunk = chunk
        self._tasks = tasks or PlannedTasks(None)
        self._plan = list(runs[0].plan.items())
        self._starts = [0, *accumulate(len(counted) for _, counted in self._plan)]
        self.notes = _all_notes(self.runs)

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def episodes(self) -> int:
        return len(self._plan)

    @cached_property
    def title(self) -> str:
        first = self.runs[0]
        return f"{first.label} on {first.manifest.benchmark.name}, {first.manifest.mode.label}"

    def folders(self) -> list[Path]:
        """Local folders that error messages and data may contain."""
        return [run.directory for run in self.runs] + [
            Path(data) for run in self.runs if (data := run.manifest.config.data.folder) is not None
        ]

    def rows(self, first: int = 0, last: int | None = None) -> Iterator[StepRow]:
        """The steps from number ``first`` up to, not including, ``last``; one episode is in memory at a time."""
        end = len(self) if last is None else last
        for (key, planned), start in zip(self._plan, self._starts, strict=False):
            if start >= end or start + len(planned) <= first:
                continue
            known = tuple(run.read(key) for run in self.runs)
            seen = [walk(run, key, records, self.evaluators) for run, records in zip(self.runs, known, strict=True)]
            tasks = self._episode(key, planned, known)
            absent = SeenStep((ABSENT,) * len(self.evaluators))
            for number, step in enumerate(planned, start):
                if first <= number < end:
                    both = tuple(steps.get(step, absent) for steps in seen)
                    recorded = any(step in records for records in known)
                    yield StepRow(number, key, step, tasks.get(step), both, known, recorded)

    def index(self, rows: Iterator[StepRow] | None = None) -> dict[str, Any]:
        """The index of all steps, with what the page shows of the runs."""
        index = Index(len(self.runs), len(self.evaluators))
        for row in self.rows() if rows is None else rows:
            index.add(row.key, row.step, row.task, row.seen)
        return {**self.head(), **index.values()}

    def head(self) -> dict[str, Any]:
        """The page's data besides the steps."""
        own = self.runs[0].protocol
        names = [evaluator.protocol.name for evaluator in self.evaluators]
        return {
            "chunk": self.chunk,
            "search": SEARCH_CHUNK,
            "notes": self.notes,
            "runs": [described(run.manifest, run.directory) for run in self.runs],
            "protocols": [{"name": each.protocol.name, "summary": each.protocol.summary} for each in self.evaluators],
            "shown": names.index(own) if own in names else 0,
            "noted": [self._noted(run) for run in self.runs],
            **({"running": True} if any(part.held for run in self.runs for part in (run, *run.further)) else {}),
        }

    def task(self, number: int) -> StepTaskModel | None:
        """The step of a number, if it is known; :class:`UsageError` for a number that there is not."""
        if not 0 <= number < len(self):
            raise UsageError(f"there is no step {number}: the run has {len(self):,} steps, counted from 0")
        place = bisect_right(self._starts, number) - 1
        key, counted = self._plan[place]
        step = counted[number - self._starts[place]]
        return self._episode(key, [step], [run.read(key, step) for run in self.runs]).get(step)

    def _episode(
        self, key: EpisodeKey, counted: Sequence[int], known: Sequence[dict[int, StepRecord]]
    ) -> dict[int, StepTaskModel]:
        """The tasks of an episode by step: as recorded, else as the data has them."""
        recorded = [(step, [records[step].task for records in known if step in records]) for step in counted]
        tasks = {step: of_runs[0] for step, of_runs in recorded if of_runs}
        if len(tasks) < len(counted):
            planned = self._tasks.of(key)
            tasks |= {step: planned[step] for step in counted if step not in tasks and step in planned}
        return tasks

    def _noted(self, run: RunFolder) -> dict[str, str]:
        texts = read_notes(run.directory).steps
        if not texts:
            return {}
        numbered: dict[str, str] = {}
        for (key, planned), start in zip(self._plan, self._starts, strict=False):
            for number, step in enumerate(planned, start):
                if (text := texts.get(StepKey(*key, step))) is not None:
                    numbered[str(number)] = text
        return numbered


@dataclass
class Chunk:
    """Some steps in full; lines of prompts are stored once, since most repeat from step to step."""

    content: RunSteps
    rows: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[int, StepTaskModel] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def add(self, row: StepRow) -> None:
        """Append a step. Lines of prompts are stored once for all steps, by their place in :attr:`lines`."""
        evaluators = self.content.evaluators
        values: dict[str, Any] = {
            "key": str(row.key),
            "names": list(row.key),
            "step": row.step,
            "runs": [seen_values(seen) for seen in row.seen],
            "recorded": row.recorded,
        }
        if row.task is not None:
            values["task"] = task_values(row.task, evaluators)
            self.tasks[len(self.rows)] = row.task
        for prompter, seen, records, one in zip(self.content.prompters, row.seen, row.known, values["runs"], strict=True):
            if seen.record is not None and len(seen.record.samples) > 1 and "step" in offers("pages"):
                one["decisions"] = offered("pages", "step")(seen.record, evaluators)
            text, one["note"] = _prompt(prompter, records, seen.record)
            one["prompt"] = [self.lines.setdefault(line, len(self.lines)) for line in text.split("\n")] if text else []
        self.rows.append(values)

    def values(self, pictures: Sequence[Picture]) -> dict[str, Any]:
        """The page's data; ``pictures`` are those of :attr:`tasks`, in order."""
        for place, picture in zip(self.tasks, pictures, strict=True):
            self.rows[place] |= {"image": picture.name, "thumb": picture.thumb, "why": picture.why}
            self.rows[place] |= {"clean": picture.clean} if picture.clean else {}
        return {"rows": self.rows, "lines": list(self.lines)}


def searched(row: StepRow) -> str:
    """The searchable text: instructions, texts and apps of the reference, labels, and the first responses."""
    parts: list[str] = []
    task = row.task
    if task is not None:
        instruction = task.instruction if len(task.instruction) > INSTRUCTION_LIMIT else ""
        parts += [instruction, task.low_level_instruction or "", *task.groups.values()]
        parts += [str(getattr(task.action, name, "")) for name in ("text", "app", "name")]
    for seen in row.seen:
        if seen.record is not None:
            sample = seen.record.sample
            parts += [sample.raw_response or "", sample.reasoning or ""]
            parts += [] if sample.error is None else [sample.error.message]
    return "\n".join(filter(None, parts))[:SEARCH_LIMIT]


def _prompt(prompter: Prompter | None, records: dict[int, StepRecord], record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return "", "There is no record of this step."
    if prompter is None:
        return "", "The report was written without prompts."
    text, note = prompter(record, records)
    return clipped(text) or "", note


def _all_notes(runs: Sequence[RunFolder]) -> list[str]:
    """The notes of the runs, and on steps that only some of them have; :class:`UsageError` if they share none."""
    first, *others = runs
    notes = list(first.notes)
    for place, other in enumerate(others, 1):
        named = "Compared run" if len(others) == 1 else f"Run {chr(ord('A') + place)}"
        notes += [f"{named}: {note}" for note in other.notes]
        notes += _compared(first, other, named)
    return notes


def _compared(run: RunFolder, against: RunFolder, named: str) -> list[str]:
    other = {key: frozenset(steps) for key, steps in against.plan.items()}
    total = sum(map(len, run.plan.values()))
    shared = sum(len(other.get(key, frozenset()).intersection(steps)) for key, steps in run.plan.items())
    if not shared:
        raise UsageError(
            f"the runs {str(run.directory)!r} and {str(against.directory)!r} share no step, so they cannot be compared: they "
            f"are over {run.manifest.benchmark.name!r} and {against.manifest.benchmark.name!r}"
        )
    more = sum(map(len, other.values())) - shared
    it = "The compared run" if named == "Compared run" else named
    notes = []
    if shared < total:
        notes.append(f"{it} does not have {total - shared:,} of the {total:,} steps.")
    if more:
        notes.append(f"{it} has {counted(more, 'further step')}, not shown here.")
    return notes
