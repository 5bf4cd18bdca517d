"""Scores what is already there: a run's journal, or a file of predictions, under any protocol. No model is asked.

A predictions file is JSONL; each line names a step of a benchmark and holds either a unified ``action`` (``null``: the reply
held none) or a raw ``response`` that a checkpoint's adapter reads::

    {"subset": "", "episode_id": "17", "step_index": 0, "action": {"type": "CLICK", "point": [500, 250]}}
    {"episode_id": "17", "step_index": 1, "response": "Thought: ...\\nAction: press_back()"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from guieval.actions import Action, ActionSpace
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import METRICS, Records, read_manifest, read_plan, write_atomically
from guieval.metrics import RunSummary, RunTally
from guieval.models import ABCModel, ModelConfig
from guieval.modes import Mode, get_mode
from guieval.registry import build_model, load_benchmark, load_model
from guieval.replies import read_reply
from guieval.steps import EpisodeKey, Sample, StepKey, StepRecord, StepTaskModel, read_lines


@dataclass(frozen=True)
class Scored:
    """A summary, the protocol it is under, and what the reader should know of the input."""

    protocol: str
    summary: RunSummary
    warnings: tuple[str, ...] = ()


def evaluate_run(directory: Path | str, protocol: str | None = None, *, reparse: bool = False) -> Scored:
    """Score a run directory under ``protocol`` (default: the one it was run with).

    ``reparse`` reads the raw replies again with the adapter as it is now, also those that crashed its parser then. The
    plug-ins of the run are needed only for that. Raises :class:`UsageError` when there is no run or no such protocol.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    evaluator = ActionEvaluator(manifest["protocol"]["name"] if protocol is None else protocol)
    model = _model_of(manifest) if reparse else None
    spaces = manifest["action_spaces"]
    mode = Mode(**manifest["mode"], summary="")
    tally = RunTally(mode, ActionSpace.from_json(spaces["model"]), ActionSpace.from_json(spaces["benchmark"]))
    records = Records(directory)
    for record in records:
        samples = tuple(_again(evaluator, model, record.task, one) for one in record.samples)
        tally.add(record.model_copy(update={"samples": samples}))
    warnings = [f"line {number} of {records.path} holds no record and was passed over" for number in records.damaged]
    return Scored(evaluator.protocol.name, tally.summary(read_plan(directory)), tuple(warnings))


def _model_of(manifest: Mapping[str, Any]) -> ABCModel:
    try:
        config = ModelConfig.model_validate(manifest["model"])
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UsageError(f"the manifest's model has a field {field!r} that this version cannot read") from None
    return build_model(config, thinking=manifest["config"].get("thinking"))


def _again(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, sample: Sample) -> Sample:
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


def evaluate_predictions(
    file: Path,
    bench: str,
    data: Path | None,
    *,
    protocol: str | None = None,
    model: str | None = None,
    mode: str = "offline",
) -> Scored:
    """Score a predictions file against a benchmark; a step without a line counts as not run.

    Raises :class:`UsageError` and :class:`guieval.errors.DataError` naming what is wrong: an unknown name, a line that is no
    prediction, a step that the benchmark does not have, raw replies without a ``model`` to read them.
    """
    benchmark = load_benchmark(bench, data)
    evaluator = ActionEvaluator(benchmark.protocol if protocol is None else protocol)
    played = get_mode(mode)
    adapter = load_model(model) if model is not None else None
    predictions: dict[EpisodeKey, dict[int, Prediction]] = {}
    total = 0
    for line in read_lines(Prediction, file):
        if line.response is not None and adapter is None:
            raise UsageError(f"{str(file)!r} holds raw replies; add --model, the checkpoint that wrote them")
        steps = predictions.setdefault(EpisodeKey(benchmark.name, line.subset, line.episode_id), {})
        if line.step_index in steps:
            raise DataError(f"{str(file)!r} predicts step {line.step_index} of episode {line.episode_id!r} twice")
        steps[line.step_index] = line
        total += 1
    plan = {ref.key: ref.length for ref in benchmark.index()}
    for key, steps in predictions.items():
        for index in steps:
            if index >= plan.get(key, 0):
                raise DataError(f"{str(file)!r} predicts step {StepKey(*key, index)}, which {benchmark.name!r} does not have")
    tally = RunTally(played, adapter.action_space if adapter else ActionSpace(), benchmark.action_space)
    for ref in benchmark.index():
        steps = predictions.get(ref.key, {})
        for task in benchmark.load(ref).steps if steps else ():
            if task.step_index in steps:
                tally.add(StepRecord(task=task, samples=(_sample(evaluator, adapter, task, steps[task.step_index]),)))
    return Scored(evaluator.protocol.name, tally.summary(plan), (f"{total} predictions for {sum(plan.values())} steps",))


def _sample(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, prediction: Prediction) -> Sample:
    if prediction.response is not None and model is not None:
        return read_reply(model, evaluator, task, prediction.response)
    return Sample(raw_response="", action=prediction.action, outcome=evaluator.evaluate(task, prediction.action))


def store_summary(directory: Path, tally: RunTally, plan: Mapping[EpisodeKey, int]) -> RunSummary:
    """Compute a run's summary and write it to ``metrics.json``."""
    summary = tally.summary(plan)
    protocol = read_manifest(directory)["protocol"]
    values = {"protocol": protocol, "summary": summary.model_dump(mode="json")}
    write_atomically(directory / METRICS, json.dumps(values, indent=2) + "\n")
    return summary
