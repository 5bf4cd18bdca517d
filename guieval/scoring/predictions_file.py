"""A predictions file of our own format as answers to be scored.

Each line of the JSONL file names a step of a benchmark and holds either a unified ``action`` (``null``: the reply held none) or
a raw ``response`` that a checkpoint's adapter parses::

    {"subset": "", "episode_id": "17", "step_index": 0, "action": {"type": "CLICK", "point": [500, 250]}}
    {"episode_id": "17", "step_index": 1, "response": "Thought: ...\\nAction: press_back()"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guieval.actions import Action, ActionSpace
from guieval.data.benchmark import ABCBenchmark
from guieval.data.overlays import Overlaid, Overlay, describe_overlay
from guieval.data.selection import select
from guieval.data.text_files import read_lines
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import get_mode
from guieval.models import ABCModel
from guieval.models.scored_reply import read_reply
from guieval.scoring.answered import Answered
from guieval.steps import EpisodeKey, Sample, StepKey, StepTaskModel


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


def read_predictions(file: Path, benchmark: str, *, raw: bool) -> dict[EpisodeKey, dict[int, Prediction]]:
    """The lines of a predictions file by episode and step; ``raw``: there is an adapter to parse replies with.

    Raises :class:`UsageError` for replies without an adapter, and :class:`DataError` for a line that is not a prediction and
    for a step that is predicted twice.
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

    ``adapter`` parses raw replies, ``overlay`` adds accepted actions. Raises :class:`DataError` for a prediction of a step that
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

    def answers(evaluator: ActionEvaluator) -> Iterator[tuple[StepTaskModel, tuple[Sample, ...]]]:
        for ref in predicted:
            lines = predictions[ref.key]
            for task in benchmark.load(ref).steps:
                line = lines.get(task.step_index)
                yield task, () if line is None else (_sample(evaluator, adapter, task, line),)

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
        answers=answers,
        select=lambda choice: select(benchmark, choice),
        notes=lambda others: [*notes, *others],
        unanswered=lambda ref: benchmark.load(ref).steps if ref.key not in predictions else (),
        overlays=() if overlay is None else (describe_overlay(overlay),),
        count=sum(map(len, predictions.values())),
    )


def _sample(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, prediction: Prediction) -> Sample:
    """A prediction as the sample it would be in a journal."""
    if prediction.response is not None and model is not None:
        return read_reply(model, evaluator, task, prediction.response)
    return Sample(raw_response="", action=prediction.action, outcome=evaluator.evaluate(task, prediction.action))
