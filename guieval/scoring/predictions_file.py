"""Predictions for a benchmark's steps as answers to be scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from guieval.actions import ActionSpace
from guieval.data.benchmark import ABCBenchmark
from guieval.data.overlays import Overlaid, Overlay, describe_overlay
from guieval.data.selection import select
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import get_mode
from guieval.models import ABCModel
from guieval.models.scored_reply import read_reply
from guieval.scoring.answered import Answered
from guieval.scoring.predictions import Predicted
from guieval.steps import EpisodeKey, Sample, StepKey, StepTaskModel


def answered_by(
    benchmark: ABCBenchmark,
    rows: Iterable[Predicted],
    title: str,
    *,
    adapter: ABCModel | None = None,
    mode: str = "offline",
    overlay: Overlay | None = None,
    notes: Sequence[str] = (),
) -> Answered:
    """The predictions in ``rows``, whose benchmark is not looked at; a step without one counts as not run.

    ``adapter`` parses raw replies, ``overlay`` adds accepted actions. Raises :class:`DataError` for a prediction of a step that
    the benchmark does not have.
    """
    if overlay is not None:
        benchmark = Overlaid(benchmark, overlay)
    refs = list(benchmark.index())
    lengths = {ref.key: ref.length for ref in refs}
    predictions: dict[EpisodeKey, dict[int, Predicted]] = {}
    for row in rows:
        key = EpisodeKey(benchmark.name, row.subset, row.episode_id)
        if row.step_index >= lengths.get(key, 0):
            raise DataError(f"{title!r} predicts step {StepKey(*key, row.step_index)}, which {benchmark.name!r} does not have")
        predictions.setdefault(key, {})[row.step_index] = row
    predicted = [ref for ref in refs if ref.key in predictions]

    def answers(evaluator: ActionEvaluator) -> Iterator[tuple[StepTaskModel, tuple[Sample, ...]]]:
        for ref in predicted:
            by_step = predictions[ref.key]
            for task in benchmark.load(ref).steps:
                row = by_step.get(task.step_index)
                yield task, () if row is None else (_sample(evaluator, adapter, task, row),)

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
        overlays=() if overlay is None else (describe_overlay(overlay.file, overlay.sha256, overlay.steps),),
        count=sum(map(len, predictions.values())),
    )


def _sample(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, prediction: Predicted) -> Sample:
    """A prediction as the sample it would be in a journal."""
    if prediction.response is not None and model is not None:
        return read_reply(model, evaluator, task, prediction.response)
    return Sample(raw_response="", action=prediction.action, outcome=evaluator.evaluate(task, prediction.action))
