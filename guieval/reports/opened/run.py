"""A run directory, or a rollout, as an object for scripts and notebooks.

Opening a run reads its files and does not run code that they name. Answers are judged when they are read, as ``guieval score``
judges them, so that the rows of :meth:`OpenedRun.steps` and :meth:`OpenedRun.metrics` agree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.actions import Action
from guieval.data.benchmark import named_key
from guieval.data.screenshots import read_picture
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.judgement import Judgement
from guieval.history.modes import Kind
from guieval.journal import RunFolder
from guieval.journal.run_files import Manifest
from guieval.journal.run_folders import is_rollout, one_run, open_folder
from guieval.metrics.of_run import Metrics, data_frame
from guieval.reports.marks import step_overlay
from guieval.reports.opened.online import OpenedOnlineRun
from guieval.reports.past_runs import RunState, past_run
from guieval.reports.trajectories.reading import OnlineTrajectories
from guieval.reports.viewer.reading import NOT_REACHED, SeenStep, walk
from guieval.reports.viewer.sources import open_data, prompter
from guieval.reports.viewer.step import task_values
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import scored
from guieval.steps import EpisodeKey, Sample, StepOutcome, StepRecord, StepTaskModel, Usage

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # nothing is printed unless the user's program sets logging up
_COLUMNS = {
    "number": "int64",
    "subset": "string",
    "episode": "string",
    "step": "int64",
    "sample": "Int64",
    "split": "string",
    "setting": "string",
    "instruction": "string",
    "step_instruction": "string",
    "reference_type": "string",
    "reference": "object",
    "predicted_type": "string",
    "predicted": "object",
    "raw_response": "string",
    "thought": "string",
    "reasoning": "string",
    "verdict": "string",
    "type_match": "boolean",
    "exact_match": "boolean",
    "distance": "Float64",
    "text_similarity": "Float64",
    "reason": "string",
    "failure": "string",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "seconds": "Float64",
}


def open_run(path: Path | str, *, data: Path | str | None = None) -> OpenedRun | OpenedOnlineRun:
    """Open a run directory, a folder with one run in it, or a rollout directory.

    An online run is an :class:`OpenedOnlineRun`, every other an :class:`OpenedRun`.

    ``data`` is the benchmark's data folder, if it has moved since the run; only pictures need it. Damaged lines of the
    journal are logged. Raises :class:`guieval.errors.UsageError` without a run, or for several.
    """
    directory = Path(path)
    run = open_folder(directory if is_rollout(directory) else one_run(directory))
    for note in run.notes:
        _LOG.warning("%s: %s", directory, note)
    return run.manifest.mode.of_kind(_OPENED)(
        run, directory if run.further else run.directory, None if data is None else Path(data)
    )


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run: its manifest, its steps as a table or one by one, and its metrics."""

    directory: Path
    manifest: Manifest = field(repr=False)
    data: Path | None
    _run: RunFolder = field(repr=False)

    def __len__(self) -> int:
        """How many steps the run planned."""
        return sum(map(len, self._run.plan.values()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the metrics, e.g. on damaged lines of the journal."""
        return tuple(self._run.notes)

    def steps(self, protocol: str | None = None) -> pd.DataFrame:
        """One row for each planned step, judged under ``protocol`` (default: the run's own), or for each sample of it.

        The index is the number that :meth:`step` takes. ``reference`` and ``predicted`` are dictionaries of the actions'
        values, coordinates in thousandths of the screen. A step without a record has the verdict ``not_run``, or
        ``not_reached`` if the mode ends its episode earlier.

        Raises :class:`guieval.errors.UsageError` without pandas (the extra ``pandas``) and for an unknown protocol.
        """
        return data_frame([row for step in self.walk(protocol) for row in step.rows()], _COLUMNS, index="number")

    def step(
        self, which: int | str, index: int | None = None, *, subset: str | None = None, protocol: str | None = None
    ) -> OpenedStep:
        """A step by its number in :meth:`steps`, or by its episode's id and its index in the episode.

        Raises :class:`guieval.errors.UsageError` if the run has no such step, or several subsets have the episode.
        """
        if isinstance(which, int):
            if index is not None:
                raise UsageError("give a step's number alone, or its episode's id, which is text, and its index in the episode")
            if not 0 <= which < len(self):
                raise UsageError(f"there is no step {which}: the run has {len(self):,} steps, counted from 0")
            ends = accumulate(map(len, self._run.plan.values()))
            key = next(key for key, end in zip(self._run.plan, ends, strict=True) if which < end)
            return next(step for step in self.walk(protocol, key) if step.number == which)
        key = named_key(self._run.plan, which, subset, "the run")
        for step in self.walk(protocol, key):
            if step.index == index:
                return step
        raise UsageError(f"episode {which!r} has no step {index!r} in this run; its steps are {spans(self._run.plan[key])}")

    def metrics(self, protocol: str | None = None) -> Metrics:
        """The metrics with intervals that ``guieval score`` prints, under ``protocol`` (default: the run's own).

        Raises :class:`guieval.errors.UsageError` for an unknown protocol, and for a rollout, whose
        rounds are runs by themselves.
        """
        if self._run.further:
            rounds = ", ".join(repr(str(part.directory)) for part in (self._run, *self._run.further))
            raise UsageError(f"metrics are of one run, and this is a rollout: open one of its rounds {rounds}")
        return scored(judge_run(self.directory, None if protocol is None else [protocol]))

    @property
    def state(self) -> RunState:
        """How far the run came: finished, stopped with steps missing, never answered, or running."""
        return past_run(self._run.directory, "").state

    @cached_property
    def screenshots(self) -> Path:
        """The folder of the screenshots; :class:`UsageError` if the data cannot be opened."""
        benchmark, why = open_data(self.manifest, self.data)
        if benchmark is None:
            raise UsageError(f"{why}, or data=FOLDER in Python")
        return benchmark.root

    def records_of(self, key: EpisodeKey) -> Mapping[int, StepRecord]:
        """The records of an episode by the index of their steps."""
        return self._run.read(key)

    def walk(self, protocol: str | None = None, only: EpisodeKey | None = None) -> Iterator[OpenedStep]:
        """The planned steps in order, or those of one episode, read one episode at a time; needs no pandas."""
        evaluator = ActionEvaluator(self._run.protocol if protocol is None else protocol)
        number = 0
        for key, counted in self._run.plan.items():
            if only in (None, key):
                seen = walk(self._run, key, self._run.read(key), [evaluator], samples=None)
                for place, index in enumerate(counted):
                    yield OpenedStep(number + place, key, index, evaluator.protocol.name, self, seen[index])
            number += len(counted)


class JudgedAction(NamedTuple):
    """How a prediction compares with one accepted action, by a rule in words."""

    accepted: Action
    judgement: Judgement
    rule: str


class RebuiltPrompt(NamedTuple):
    """A prompt as text, and a note on it."""

    text: str
    note: str


@dataclass(frozen=True, eq=False)
class OpenedStep:
    """A planned step of a run: its record, if it has one, and how each sample is judged under ``protocol``."""

    number: int
    key: EpisodeKey
    index: int
    protocol: str
    run: OpenedRun = field(repr=False)
    _seen: SeenStep = field(repr=False)

    @property
    def record(self) -> StepRecord | None:
        """The step's record in the journal, if any."""
        return self._seen.record

    @property
    def task(self) -> StepTaskModel:
        """The step as the benchmark gives it; :class:`UsageError` without a record."""
        if self.record is None:
            raise UsageError(f"step {self.index} of episode {self.key} has no record: it was not run")
        return self.record.task

    @property
    def outcomes(self) -> tuple[StepOutcome, ...]:
        """The judgement of each sample."""
        return tuple(outcome for (outcome,) in self._seen.outcomes)

    @property
    def verdict(self) -> str:
        """The verdict of the first sample, or ``not_run``, or ``not_reached``."""
        if self._seen.ends[0] == NOT_REACHED:
            return "not_reached"
        return self.outcomes[0].verdict if self.outcomes else "not_run"

    def rows(self) -> list[dict[str, Any]]:
        """The step's rows in :meth:`OpenedRun.steps`: one for each sample, or a single one without."""
        values = {**dict.fromkeys(_COLUMNS), "number": self.number, "step": self.index, "verdict": self.verdict}
        values |= {"subset": self.key.subset, "episode": self.key.episode_id}
        if self.record is None:
            return [values]
        task = self.record.task
        values |= {name: getattr(task, name) for name in ("split", "setting", "instruction")}
        values |= {"step_instruction": task.low_level_instruction, **_action_values("reference", task.action)}
        judged = zip(self.record.billed, self.outcomes, strict=True)
        reached = self.verdict != "not_reached"
        return [{**values, "sample": place, **_sample_values(*pair, reached)} for place, pair in enumerate(judged)]

    def judged(self, sample: int = 0) -> list[JudgedAction]:
        """A sample's action compared with each accepted action of the step by the rules of ``protocol``; empty without one."""
        task, given = self.task, self._sample(sample).action
        rules = ActionEvaluator(self.protocol).protocol.rules_for(task.dataset)
        if given is None:
            return []
        accepted = (task.action, *task.alternatives)
        return [JudgedAction(each, rules.judge(task, each, given), rules.describe_for(each)) for each in accepted]

    def prompt(self, adapter: Path | str | None = None) -> RebuiltPrompt:
        """What the model was sent, rebuilt by its adapter, with screenshots as name and size; ``adapter`` names a file of one.

        The text is empty if it cannot be rebuilt, and the note then says why.
        """
        if self.record is None:
            return RebuiltPrompt("", f"step {self.index} of episode {self.key} has no record: it was not run")
        rebuild = prompter(self.run.manifest, None if adapter is None else str(adapter))
        return RebuiltPrompt(*rebuild(self.record, self.run.records_of(self.key)))

    def texts(self, sample: int = 0) -> dict[str, str]:
        """The texts of a step: the instructions, the reference, and a sample's response, thought, action and judgement."""
        task, answer = self.task, self._sample(sample)
        row = self.rows()[sample]
        texts = {
            "instruction": task.instruction,
            "step instruction": task.low_level_instruction,
            "reference": as_text(task.action),
            "prediction": None if answer.action is None else as_text(answer.action),
            "raw response": answer.raw_response,
            "reasoning": answer.reasoning,
            "thought": answer.thought,
            "conclusion": answer.conclusion,
            "verdict": row["verdict"],
            "reason": row["reason"],
            "failure": row["failure"],
        }
        return {name: text for name, text in texts.items() if text}

    def image(self, sample: int = 0, *, boxes: bool = True) -> Image:
        """The screenshot with the viewer's marks: reference, alternatives, targets and elements, accepted area, prediction.

        Raises :class:`guieval.errors.GuievalError` if the screenshot cannot be read.
        """
        task, answer = self.task, self._sample(sample)
        screenshot = read_picture(self.run.screenshots, task.screenshot, task.screenshot_size)
        values = task_values(task, [ActionEvaluator(self.protocol)])
        (area,) = values["area"]
        shown = None if area < 0 else values["areas"][area]
        overlay = step_overlay(screenshot.size, task, answer.action, area=shown, polygon=values["polygon"], boxes=boxes)
        return overlay.over(screenshot)

    def _sample(self, sample: int) -> Sample:
        samples = () if self.record is None else self.record.samples
        if not 0 <= sample < len(samples):
            raise UsageError(f"there is no sample {sample}: the step has {len(samples)}, counted from 0")
        return samples[sample]


_OPENED: Mapping[Kind, Callable[[RunFolder, Path, Path | None], OpenedRun | OpenedOnlineRun]] = {
    "steps": lambda run, folder, data: OpenedRun(folder, run.manifest, data, run),
    "tasks": lambda run, folder, data: OpenedOnlineRun(folder, run.manifest, OnlineTrajectories(run)),
}


def _action_values(name: str, action: Action | None) -> dict[str, Any]:
    if action is None:
        return {f"{name}_type": None, name: None}
    return {f"{name}_type": action.type, name: action.model_dump(mode="json", exclude={"type"})}


def spans(numbers: Sequence[int]) -> str:
    """Numbers in words, of several in a row the ends."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 1 else str(row[0]) for row in rows)


def as_text(action: Action) -> str:
    """An action in one line, its coordinates with at most two decimals."""
    values = action.model_dump(mode="json", exclude={"type"})
    return f"{action.type}({', '.join(f'{name}={_rounded(value)!r}' for name, value in values.items())})"


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_rounded, value)]
    return round(value, 2) if isinstance(value, float) else value


def _sample_values(sample: Sample, outcome: StepOutcome, reached: bool) -> dict[str, Any]:
    usage = sample.paid or Usage()
    judged: Mapping[str, Any] = outcome.model_dump() if reached else {"distance": outcome.distance}
    return {
        **_action_values("predicted", sample.action),
        **{name: getattr(sample, name) for name in ("raw_response", "thought", "reasoning", "seconds")},
        **judged,
        "failure": None if sample.error is None else f"{sample.error.stage}: {sample.error.message}",
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }
