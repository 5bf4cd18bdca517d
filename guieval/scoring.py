"""Scores what is already there: a run's journal, or a file of predictions, under any protocol. No model is asked.

A predictions file is JSONL; each line names a step of a benchmark and holds either a unified ``action`` (``null``: the reply
held none) or a raw ``response`` that a checkpoint's adapter reads::

    {"subset": "", "episode_id": "17", "step_index": 0, "action": {"type": "CLICK", "point": [500, 250]}}
    {"episode_id": "17", "step_index": 1, "response": "Thought: ...\\nAction: press_back()"}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from guieval.actions import Action, ActionSpace
from guieval.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, UsageError, first_problem
from guieval.evaluation import ActionEvaluator
from guieval.journal import METRICS, Planned, Records, read_manifest, read_planned, write_atomically
from guieval.metrics import RunSummary, RunTally
from guieval.models import ABCModel, ModelConfig
from guieval.modes import Mode, get_mode, recorded_mode
from guieval.overlays import Overlaid, Overlay, describe_overlay
from guieval.registry import build_model
from guieval.replies import read_reply
from guieval.sample_sets import StepLabel
from guieval.selection import Choice, Selection, check_dataset, narrow, restrict, select
from guieval.steps import EpisodeKey, Plan, Sample, Setting, StepKey, StepRecord, StepTaskModel, read_lines


@dataclass(frozen=True)
class Scored:
    """A summary, the protocol it is under, which steps it is over, and what the reader should know of the input.

    ``steps_title`` fits a table's head; ``steps`` says exactly what is counted; ``overlays`` says what else was accepted.
    """

    protocol: str
    summary: RunSummary
    warnings: tuple[str, ...] = ()
    steps_title: str = ""
    steps: str = ""
    overlays: tuple[str, ...] = ()


def evaluate_run(
    directory: Path | str,
    protocol: str | None = None,
    *,
    reparse: bool = False,
    choice: Choice | None = None,
    overlay: Overlay | None = None,
) -> Scored:
    """Score a run directory under ``protocol`` (default: the one it was run with).

    ``reparse`` reads the raw replies again with the adapter as it is now, also those that crashed its parser then. The
    plug-ins of the run are needed only for that. ``choice`` restricts the figures to a part of what was run, ``overlay`` adds
    accepted actions to its steps. Raises :class:`UsageError` when there is no run, no such protocol, or when the run does not
    hold all of that part.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    evaluator = ActionEvaluator(manifest["protocol"]["name"] if protocol is None else protocol)
    model = recorded_model(manifest) if reparse else None
    spaces = manifest["action_spaces"]
    mode = recorded_mode(manifest["mode"])
    tally = RunTally(mode, ActionSpace.from_json(spaces["model"]), ActionSpace.from_json(spaces["benchmark"]))
    records = Records(directory)
    known = RecordedLabels()
    overlaid: set[StepKey] = set()
    for record in records:
        task = record.task
        if overlay is not None and (changed := overlay.apply(task)) is not task:
            overlaid.add(task.key)
            task = changed
        if choice is not None:
            known.add(task)
        samples = tuple(read_again(evaluator, model, task, one) for one in record.samples)
        tally.add(record.model_copy(update={"task": task, "samples": samples}))
    warnings = [f"line {number} of {records.path} holds no record and was passed over" for number in records.damaged]
    if overlay is not None and len(overlaid) < overlay.steps:
        warnings.append(f"{len(overlaid):,} of the {overlay.steps:,} steps that the overlay adds to are recorded in this run")
    planned = read_planned(directory)
    plan: Plan = planned.plan
    title, text = described_steps(manifest, len(plan))
    if choice is not None:
        chosen = part_of_run(directory, planned, choice, known)
        plan = chosen.plan
        title = chosen.title if choice.sample_set is not None or not title else f"{chosen.title} of {title}"
        text = f"{chosen.text}, of a run over {text}"
    summary = tally.summary(plan, within=planned.plan)
    overlays = (manifest.get("overlay"), overlay and overlay.to_json())
    worn = tuple(describe_overlay(each) for each in overlays if each)
    return Scored(evaluator.protocol.name, summary, tuple(warnings), title, text, worn)


class RecordedLabels:
    """What a journal tells of the steps it holds, in little memory: their labels, and of which split their episodes are."""

    def __init__(self) -> None:
        self.splits: dict[EpisodeKey, str] = {}
        self.datasets: dict[str, None] = {}
        self._labels: dict[EpisodeKey, dict[int, StepLabel]] = {}
        self._shared: dict[tuple[str, tuple[tuple[str, str], ...]], StepLabel] = {}

    def add(self, task: StepTaskModel) -> None:
        """Take in one recorded step."""
        key = task.episode_key
        self.splits[key] = intern(task.split)
        self.datasets[task.dataset] = None
        label = self._shared.setdefault((task.action.type, tuple(task.groups.items())), StepLabel.of(task))
        self._labels.setdefault(key, {})[task.step_index] = label

    def labels(self, ref: EpisodeRef) -> Mapping[int, StepLabel]:
        """The labels of an episode's recorded steps, by their index."""
        return self._labels.get(ref.key, {})


def part_of_run(directory: Path, planned: Planned, choice: Choice, known: RecordedLabels) -> Selection:
    """A part of a run; :class:`UsageError` when the run does not hold all of it.

    Runs of earlier versions did not write splits down, but their records know them.
    """
    run = f"the run {str(directory)!r}"
    refs = [replace(ref, split=known.splits.get(ref.key, ref.split)) for ref in planned.refs]
    if choice.sample_set is not None:
        for dataset in known.datasets:
            check_dataset(choice.sample_set, dataset, run)
    chosen = narrow(refs, choice, known.labels, run, plan=planned.plan)
    return restrict(chosen, planned.plan, run)


def described_steps(manifest: Mapping[str, Any], episodes: int) -> tuple[str, str]:
    """The steps a run is over, as a short title and in words; runs of earlier versions do not say, and have no title."""
    selection = manifest.get("selection") or {}
    return selection.get("title", ""), selection.get("text", f"all {episodes:,} episodes that it set out to do")


def recorded_model(manifest: Mapping[str, Any]) -> ABCModel:
    """The adapter of the checkpoint that a run's manifest names, set up as it was; :class:`UsageError` when it cannot be."""
    try:
        config = ModelConfig.model_validate(manifest["model"])
    except ValidationError as error:
        raise UsageError(
            f"the manifest's model has a field {first_problem(error).field!r} that this version cannot read"
        ) from None
    return build_model(config, thinking=manifest["config"].get("thinking"))


def read_again(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, sample: Sample) -> Sample:
    """A recorded answer as ``evaluator`` judges it; its reply is parsed anew where a ``model`` is given."""
    if model is not None and sample.raw_response is not None:
        kept = {name: getattr(sample, name) for name in ("reasoning", "usage", "finish_reason", "seconds", "attempts")}
        return read_reply(model, evaluator, task, sample.raw_response, **kept)
    if sample.outcome.verdict == "infrastructure_failure":
        return sample  # nobody answered, or nobody could read it: there is nothing to score
    return sample.model_copy(update={"outcome": evaluator.evaluate(task, sample.action)})


class Prediction(BaseModel):
    """One line of a predictions file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    subset: str = ""
    episode_id: str
    step_index: int = Field(ge=0)
    action: Action | None = None
    response: str | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Prediction:
        if len({"action", "response"} & self.model_fields_set) != 1:
            raise ValueError("a prediction holds either an action (null: the reply held none) or a response")
        return self


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers from outside a run directory, and the steps they answer, before anything is judged.

    ``title`` names them, ``protocol`` is the one they are scored under by default, ``spaces`` are the model's and the
    benchmark's, ``plan`` and ``refs`` all steps that may count, ``count`` how many are answered. ``answers`` yields every step
    of the episodes that have an answer, with the sample that an evaluator makes of it or ``None`` where it has none;
    ``unanswered`` the steps of another episode. ``select`` finds the steps that a choice asks for; it raises
    :class:`UsageError` when there are none, or not all of them.
    """

    title: str
    benchmark: str
    dataset: str
    setting: Setting
    protocol: str
    model: str
    mode: Mode
    spaces: tuple[ActionSpace, ActionSpace]
    plan: Plan
    refs: Sequence[EpisodeRef]
    count: int
    answers: Callable[[ActionEvaluator], Iterator[tuple[StepTaskModel, Sample | None]]]
    unanswered: Callable[[EpisodeRef], Iterable[StepTaskModel]]
    select: Callable[[Choice], Selection]
    notes: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()


def answered_by(
    benchmark: ABCBenchmark,
    predictions: Mapping[EpisodeKey, Mapping[int, Prediction]],
    title: str,
    *,
    adapter: ABCModel | None = None,
    mode: str = "offline",
    overlay: Overlay | None = None,
    notes: Sequence[str] = (),
) -> Answered:
    """Predictions for a benchmark's steps (see :func:`read_predictions`); a step without one counts as not run.

    ``adapter`` reads raw replies, ``overlay`` adds accepted actions. Raises :class:`DataError` for a prediction of a step that
    the benchmark does not have.
    """
    if overlay is not None:
        benchmark = Overlaid(benchmark, overlay)
    refs = list(benchmark.index())
    lengths = {ref.key: ref.length for ref in refs}
    for key, steps in predictions.items():
        for index in steps:
            if index >= lengths.get(key, 0):
                raise DataError(f"{title!r} predicts step {StepKey(*key, index)}, which {benchmark.name!r} does not have")
    predicted = [ref for ref in refs if ref.key in predictions]

    def answers(evaluator: ActionEvaluator) -> Iterator[tuple[StepTaskModel, Sample | None]]:
        for ref in predicted:
            lines = predictions[ref.key]
            for task in benchmark.load(ref).steps:
                line = lines.get(task.step_index)
                yield task, None if line is None else _read_prediction(evaluator, adapter, task, line)

    return Answered(
        title=title,
        benchmark=benchmark.name,
        dataset=benchmark.dataset or benchmark.load(predicted[0] if predicted else refs[0]).steps[0].dataset,
        setting=benchmark.setting,
        protocol=benchmark.protocol,
        model=adapter.config.name if adapter else "",
        mode=get_mode(mode),
        spaces=(adapter.action_space if adapter else ActionSpace(), benchmark.action_space),
        plan={ref.key: range(ref.length) for ref in refs},
        refs=refs,
        count=sum(map(len, predictions.values())),
        answers=answers,
        unanswered=lambda ref: benchmark.load(ref).steps if ref.key not in predictions else (),
        select=lambda choice: select(benchmark, choice),
        notes=tuple(notes),
        overlays=() if overlay is None else (describe_overlay(overlay.to_json()),),
    )


def evaluate_answers(answered: Answered, protocol: str | None = None, *, choice: Choice | None = None) -> Scored:
    """Score answers under ``protocol`` (default: their own); ``choice`` says over which steps.

    Raises :class:`UsageError` for an unknown protocol, and as :attr:`Answered.select` does.
    """
    evaluator = ActionEvaluator(answered.protocol if protocol is None else protocol)
    selection = answered.select(choice or Choice())
    tally = RunTally(answered.mode, *answered.spaces)
    for task, sample in answered.answers(evaluator):
        if sample is not None:
            tally.add(StepRecord(task=task, samples=(sample,)))
    steps = sum(map(len, selection.plan.values()))
    warnings = (*answered.notes, f"{answered.count} predictions for {steps} steps")
    summary = tally.summary(selection.plan)
    return Scored(evaluator.protocol.name, summary, warnings, selection.title, selection.text, answered.overlays)


def read_predictions(file: Path, benchmark: str, *, raw: bool) -> dict[EpisodeKey, dict[int, Prediction]]:
    """The lines of a predictions file of our own by episode and step; ``raw``: there is an adapter to read replies with.

    Raises :class:`UsageError` for replies that nobody can read, and :class:`DataError` for a line that is no prediction and for
    a step that is predicted twice.
    """
    predictions: dict[EpisodeKey, dict[int, Prediction]] = {}
    for line in read_lines(Prediction, file):
        if line.response is not None and not raw:
            raise UsageError(f"{str(file)!r} holds raw replies; add --model, the checkpoint that wrote them")
        steps = predictions.setdefault(EpisodeKey(benchmark, line.subset, line.episode_id), {})
        if line.step_index in steps:
            raise DataError(f"{str(file)!r} predicts step {line.step_index} of episode {line.episode_id!r} twice")
        steps[line.step_index] = line
    return predictions


def _read_prediction(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, prediction: Prediction) -> Sample:
    """One line of a predictions file as the sample it would be in a journal."""
    if prediction.response is not None and model is not None:
        return read_reply(model, evaluator, task, prediction.response)
    return Sample(raw_response="", action=prediction.action, outcome=evaluator.evaluate(task, prediction.action))


def store_summary(
    directory: Path,
    tally: RunTally,
    plan: Plan,
    *,
    cost: Mapping[str, Any] | None = None,
    servers: Sequence[Mapping[str, Any]] = (),
) -> RunSummary:
    """Compute a run's summary and write it to ``metrics.json``, with the protocol, the steps and the overlay it is under.

    ``cost`` says, as JSON, what the run's answers cost, ``servers`` how each server fared in the last session; both stand
    there too.
    """
    summary = tally.summary(plan)
    manifest = read_manifest(directory)
    values = {
        "protocol": manifest["protocol"],
        "selection": manifest.get("selection"),
        "overlay": manifest.get("overlay"),
        "summary": summary.model_dump(mode="json"),
        **({} if cost is None else {"cost": dict(cost)}),
        **({"servers": [dict(server) for server in servers]} if servers else {}),
    }
    write_atomically(directory / METRICS, json.dumps(values, indent=2) + "\n")
    return summary
