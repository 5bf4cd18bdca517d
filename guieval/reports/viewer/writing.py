"""Writes the viewer: the page, a small index for filtering, and the steps in chunks that are loaded on demand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal.caveats import model_label
from guieval.journal.served_model import describe_served
from guieval.reports.viewer.folder import PAGE, ReportFolder, Written, prepare
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import ABSENT, SeenStep, ShownRun
from guieval.reports.viewer.step import clipped, decision_values, seen_values, task_values
from guieval.steps import EpisodeKey, StepRecord, StepTaskModel

CHUNK = 200
"""Number of steps per data file, loaded when one of them is shown."""
SEARCH_CHUNK = 2000
"""Number of steps per file of texts, loaded for a search."""
SEARCH_LIMIT = 4000
INSTRUCTION_LIMIT = 300
SCRIPT_PARTS = (
    "build",
    "nodes",
    "marks",
    "data",
    "state",
    "filters",
    "episodes",
    "moving",
    "filmstrip",
    "decisions",
    "screen",
    "panel",
    "page",
)
"""The page's script, in the order in which its parts are joined."""
STYLE_PARTS = ("base", "marks", "style")
OWN = Path(__file__).parent
SCRIPT_FOLDER = OWN / "script"
_NONE = -1


def write_report(
    out: Path,
    run: ShownRun,
    pictures: Pictures,
    protocols: Sequence[str],
    *,
    against: ShownRun | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Write the viewer of ``run`` into ``out``, judged under each of ``protocols``, side by side with ``against`` if given.

    ``on_progress`` is called with (steps done, all steps). An earlier report in the folder is replaced; its images are
    reused. Raises :class:`UsageError` for a folder with other contents, or a run to compare with that shares no step.
    """
    prepare(out)
    runs = [run] if against is None else [run, against]
    notes = list(run.notes)
    if against is not None:
        notes += [f"Compared run: {note}" for note in against.notes]
        notes += _compared(run, against)
    folder = ReportFolder(out, _folders(runs, pictures))
    evaluators = [ActionEvaluator(name) for name in protocols]
    index = _Index(len(runs), len(protocols))
    chunk = _Chunk()
    texts: list[str] = []
    total = sum(map(len, run.planned.plan.values()))
    for key, counted in run.planned.plan.items():
        known = [shown.read(key) for shown in runs]
        seen = [shown.walk(key, records, evaluators) for shown, records in zip(runs, known, strict=True)]
        tasks = _tasks(counted, known)
        index.begin_episode(key, next(iter(tasks.values()), None))
        for step in counted:
            both = [steps.get(step, SeenStep((ABSENT,) * len(protocols))) for steps in seen]
            task = tasks.get(step)
            index.add(step, task, both)
            prompts = [_prompt(shown, records, one.record) for shown, records, one in zip(runs, known, both, strict=True)]
            chunk.add(key, step, task, both, prompts, evaluators)
            texts.append(_searched(task, both))
            last = len(index) == total
            if last or len(chunk.rows) == CHUNK:
                folder.script("steps", "chunk", (len(index) - 1) // CHUNK, chunk.values(pictures))
                chunk = _Chunk()
                on_progress(len(index), total)
            if last or len(texts) == SEARCH_CHUNK:
                folder.script("text", "text", (len(index) - 1) // SEARCH_CHUNK, texts)
                texts = []
    head = {
        "chunk": CHUNK,
        "search": SEARCH_CHUNK,
        "notes": notes,
        "runs": [_described(shown) for shown in runs],
        "protocols": [{"name": evaluator.protocol.name, "summary": evaluator.protocol.summary} for evaluator in evaluators],
        "shown": protocols.index(run.protocol) if run.protocol in protocols else 0,
    }
    folder.script("index", "index", None, {**head, **index.values()})
    scripts = [SCRIPT_FOLDER / f"{name}.js" for name in SCRIPT_PARTS]
    folder.page(
        OWN / "page.html.jinja", scripts, [OWN / f"{name}.css" for name in STYLE_PARTS], title=folder.shortened(_title(run))
    )
    return Written(out / PAGE, len(index), len(run.planned.plan), pictures.made, pictures.lacking, notes)


@dataclass
class _Chunk:
    """Up to :data:`CHUNK` steps; lines of prompts are stored once, since most repeat from step to step."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[int, StepTaskModel] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        key: EpisodeKey,
        step: int,
        task: StepTaskModel | None,
        both: Sequence[SeenStep],
        prompts: Sequence[tuple[str, str]],
        evaluators: Sequence[ActionEvaluator],
    ) -> None:
        values: dict[str, Any] = {"key": str(key), "step": step, "runs": [seen_values(seen) for seen in both]}
        for seen, one in zip(both, values["runs"], strict=True):
            if seen.record is not None and (decided := decision_values(seen.record, evaluators)) is not None:
                one["decisions"] = decided
        if task is not None:
            values["task"] = task_values(task, evaluators)
            self.tasks[len(self.rows)] = task
        for one, (text, note) in zip(values["runs"], prompts, strict=True):
            one["prompt"] = [self.lines.setdefault(line, len(self.lines)) for line in text.split("\n")] if text else []
            one["note"] = note
        self.rows.append(values)

    def values(self, pictures: Pictures) -> dict[str, Any]:
        for place, picture in zip(self.tasks, pictures.of(list(self.tasks.values())), strict=True):
            self.rows[place]["image"] = picture.name
            self.rows[place]["why"] = picture.why
        return {"rows": self.rows, "lines": list(self.lines)}


class _Index:
    """The data of filters: a character or a small number per step, a line per episode."""

    def __init__(self, runs: int, protocols: int) -> None:
        self._labels: dict[str, None] = {}
        self._instructions: list[str] = []
        self._subsets: defaultdict[str, int] = defaultdict(count().__next__)  # numbered by first occurrence
        self._subset: list[int] = []
        self._starts: list[int] = []
        self._steps: list[int] = []
        self._types: defaultdict[str, int] = defaultdict(count().__next__)
        self._reference: list[int] = []
        self._predicted: list[list[int]] = [[] for _ in range(runs)]
        self._ends: list[list[list[str]]] = [[[] for _ in range(protocols)] for _ in range(runs)]
        self._groups: dict[str, tuple[dict[str, int], list[int]]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def begin_episode(self, key: EpisodeKey, task: StepTaskModel | None) -> None:
        label = name = "/".join(part for part in (key.subset, key.episode_id) if part)
        repeated = 1
        while label in self._labels:  # a/b may be episode b of subset a, or an episode of that name without subset
            repeated += 1
            label = f"{name} ({repeated})"
        self._labels[label] = None
        self._instructions.append("" if task is None else clipped(task.instruction, INSTRUCTION_LIMIT) or "")
        self._subset.append(self._subsets[key.subset])
        self._starts.append(len(self._steps))

    def add(self, step: int, task: StepTaskModel | None, both: Sequence[SeenStep]) -> None:
        row = len(self._steps)
        self._steps.append(step)
        self._reference.append(_NONE if task is None else self._types[task.action.type])
        for seen, predicted, ends in zip(both, self._predicted, self._ends, strict=True):
            action = None if seen.record is None else seen.record.sample.action
            predicted.append(_NONE if action is None else self._types[action.type])
            for column, code in zip(ends, seen.ends, strict=True):
                column.append(str(code))
        for name, value in ({} if task is None else task.groups).items():
            values, column_of = self._groups.setdefault(name, ({}, []))
            column_of += [_NONE] * (row - len(column_of))
            column_of.append(values.setdefault(value, len(values)))

    def values(self) -> dict[str, Any]:
        return {
            "labels": list(self._labels),
            "instructions": self._instructions,
            "subsets": list(self._subsets),
            "subset": self._subset,
            "starts": self._starts,
            "steps": self._steps,
            "types": list(self._types),
            "reference": self._reference,
            "predicted": self._predicted,
            "ends": [["".join(column) for column in ends] for ends in self._ends],
            "groups": [
                {"name": name, "values": list(values), "of": column + [_NONE] * (len(self) - len(column))}
                for name, (values, column) in self._groups.items()
            ],
        }


def _tasks(counted: Sequence[int], known: Sequence[dict[int, StepRecord]]) -> dict[int, StepTaskModel]:
    recorded = [(step, [records[step].task for records in known if step in records]) for step in counted]
    return {step: tasks[0] for step, tasks in recorded if tasks}


def _prompt(run: ShownRun, records: dict[int, StepRecord], record: StepRecord | None) -> tuple[str, str]:
    if record is None:
        return "", "There is no record of this step."
    if run.prompter is None:
        return "", "The report was written without prompts."
    text, note = run.prompter(record, records)
    return clipped(text) or "", note


def _searched(task: StepTaskModel | None, both: Sequence[SeenStep]) -> str:
    """The searchable text: instructions, texts and apps of the reference, labels, and the first replies."""
    parts: list[str] = []
    if task is not None:
        instruction = task.instruction if len(task.instruction) > INSTRUCTION_LIMIT else ""
        parts += [instruction, task.low_level_instruction or "", *task.groups.values()]
        parts += [str(getattr(task.action, name, "")) for name in ("text", "app", "name")]
    for seen in both:
        if seen.record is not None:
            sample = seen.record.sample
            parts += [sample.raw_response or "", sample.reasoning or ""]
            parts += [] if sample.error is None else [sample.error.message]
    return "\n".join(filter(None, parts))[:SEARCH_LIMIT]


def _described(run: ShownRun) -> dict[str, str]:
    manifest = run.manifest
    return {
        "model": model_label(manifest),
        "benchmark": manifest.benchmark.name,
        "mode": manifest.mode.label,
        "protocol": run.protocol,
        "created": manifest.created,
        "steps": (manifest.selection and manifest.selection.text) or "",
        "served": "; ".join(describe_served(entry) for entry in manifest.served or () if entry.servers),
    }


def _title(run: ShownRun) -> str:
    description = _described(run)
    return f"{description['model']} on {description['benchmark']}, {description['mode']}"


def _compared(run: ShownRun, against: ShownRun) -> list[str]:
    """Notes on steps that only one of two runs has; :class:`UsageError` if they share none."""
    other = {key: frozenset(steps) for key, steps in against.planned.plan.items()}
    total = sum(map(len, run.planned.plan.values()))
    shared = sum(len(other.get(key, frozenset()).intersection(steps)) for key, steps in run.planned.plan.items())
    if not shared:
        raise UsageError(
            f"the runs {str(run.directory)!r} and {str(against.directory)!r} share no step, so they cannot "
            f"be compared: they are over {_described(run)['benchmark']!r} and {_described(against)['benchmark']!r}"
        )
    more = sum(map(len, other.values())) - shared
    notes = []
    if shared < total:
        notes.append(f"The compared run does not have {total - shared:,} of the {total:,} steps.")
    if more:
        notes.append(f"The compared run has {more:,} more steps, which are not shown.")
    return notes


def _folders(runs: Sequence[ShownRun], pictures: Pictures) -> list[Path]:
    """Local folders that error messages and data may contain."""
    folders = [run.directory for run in runs]
    if pictures.root is not None:
        folders.append(pictures.root)
    return folders + [Path(data) for run in runs if (data := run.manifest.config.data)]
