"""evalscope: the benchmark ``guieval_steps``, which is registered when this module is imported.

evalscope finds benchmarks within its own package only, so its command line is started from here:
``python -m guieval.plugins.evalscope_tasks eval ...`` takes the words of ``evalscope eval ...``.
"""

from __future__ import annotations

import sys

try:
    from evalscope.api.benchmark import BenchmarkMeta, DefaultDataAdapter
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    print(f"this needs evalscope, which is not installed here ({error}): pip install 'guieval[evalscope]'", file=sys.stderr)
    sys.exit(2)
from evalscope.api.dataset import DatasetDict, MemoryDataset, Sample
from evalscope.api.dataset.dataset import resolve_dataset_limit
from evalscope.api.evaluator import TaskState
from evalscope.api.messages import ChatMessageUser
from evalscope.api.metric import AggScore, SampleScore, Score
from evalscope.api.model import Model, ModelOutput
from evalscope.api.registry import register_benchmark
from evalscope.models.utils.openai import chat_messages_from_openai

from guieval.errors import UsageError
from guieval.models import Response
from guieval.plugins.harness_steps import HarnessSteps, harness_steps
from guieval.steps import StepRecord

_METRICS = {"exact_match": "exact match", "type_match": "type match"}
"""The metrics by their names in evalscope and in ``guieval score``."""
_SETTINGS = {"type": "dict", "description": "the settings of a run: model, bench, data, protocol and the others", "value": {}}


class StepsAdapter(DefaultDataAdapter):
    """A sample is a step; its request is written when the model is queried, since the screenshots of all are too many."""

    def load(self) -> tuple[DatasetDict, None]:
        """All steps, or the first ``--limit``, once: a verdict is of one response."""
        if self.repeats != 1:
            raise UsageError(f"guieval_steps scores one response of each step, not {self.repeats}: leave out --repeats")
        steps = self._steps()
        keys = steps.keys[: resolve_dataset_limit(self.limit, len(steps.keys))]
        samples = [Sample(input=[ChatMessageUser(content=steps.task(key).instruction)], metadata={"key": key}) for key in keys]
        (dataset := MemoryDataset(samples, name=steps.run.benchmark.name)).reindex()
        return DatasetDict({"default": dataset}), None

    def _on_inference(self, model: Model, sample: Sample) -> ModelOutput:
        steps = self._steps()
        asked = steps.messages(steps.body(sample.metadata["key"]))
        return model.generate(input=chat_messages_from_openai(model.name, asked))

    def match_score(self, original_prediction: str, filtered_prediction: str, reference: str, task_state: TaskState) -> Score:
        """The protocol's verdict of the step. Raises ``RuntimeError`` for a request that failed, which has none."""
        steps, key, output = self._steps(), task_state.metadata["key"], task_state.output
        read = Response.of(output.message)
        ended = None if output.stop_reason == "unknown" else output.stop_reason
        sample = steps.scored(key, Response(read.text, read.reasoning, None, ended, calls=read.calls))
        if not sample.answered:
            raise RuntimeError(sample.outcome.reason)
        record = StepRecord(task=steps.task(key), samples=(sample,))
        return Score(
            value={"exact_match": float(record.exact), "type_match": float(sample.outcome.type_match)},
            prediction=original_prediction,
            explanation=sample.outcome.reason or sample.outcome.verdict,
            metadata={"key": key, "verdict": sample.outcome.verdict, "record": record.model_dump_json()},
            main_score_name="exact_match",
        )

    def aggregate_scores(self, sample_scores: list[SampleScore]) -> list[AggScore]:
        """The metrics as ``guieval score`` has them."""
        records = [StepRecord.model_validate_json((each.score.metadata or {})["record"]) for each in sample_scores]
        found, size = self._steps().metrics(records), len(records)
        return [AggScore(score=found[name], metric_name=own, aggregation="mean", num=size) for own, name in _METRICS.items()]

    def _steps(self) -> HarnessSteps:
        return harness_steps((self.extra_params or {})["settings"])


register_benchmark(
    BenchmarkMeta(
        name="guieval_steps",
        pretty_name="guieval",
        dataset_id="guieval",
        description="Steps of a benchmark under a protocol of guieval.",
        metric_list=list(_METRICS),
        primary_metric="exact_match",
        few_shot_mode="disabled",
        extra_params={"settings": _SETTINGS},
    )
)(StepsAdapter)

if __name__ == "__main__":
    from evalscope.cli.cli import run_cmd

    try:
        run_cmd()
    except UsageError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
