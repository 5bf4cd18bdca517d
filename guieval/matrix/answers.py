"""One set of answers under every protocol: a journal, or a file of predictions, becomes columns of steps.

Answers are read once and judged once for each distinct set of deciding rules, however many protocols there are; which steps
count is chosen afterwards, so that every protocol can be looked at on its own sample set. No model is asked.

Of several records of a step the last finished one counts. In a mode that ends an episode at its first mismatch, what lies
behind the first measured step that a protocol calls no exact match is *not reached* under that protocol, recorded or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from guieval.actions import Action, ActionSpace
from guieval.evaluation import ActionEvaluator, Protocol, list_protocols
from guieval.journal import Records, read_manifest, read_planned
from guieval.matrix.ledger import Ledger, stopped
from guieval.metrics.columns import NOT_RUN, RunColumns
from guieval.modes import get_mode
from guieval.overlays import Overlaid, Overlay, describe_overlay
from guieval.registry import load_benchmark, load_model
from guieval.scoring import (
    RecordedLabels,
    described_steps,
    part_of_run,
    read_again,
    read_prediction,
    read_predictions,
    recorded_model,
)
from guieval.selection import Choice, Selection, select
from guieval.steps import Plan, Sample, StepKey, StepRecord, StepTaskModel

ALL = "all"
"""Stands in a list of protocols for every one written for the data set, the run's own first."""

Answer: TypeAlias = tuple[StepTaskModel, Action | None]


def protocols_for(dataset: str) -> list[str]:
    """Names of the protocols that were written for a data set."""
    return list_protocols(dataset)


def score_run(
    directory: Path | str,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    choice: Choice | None = None,
    overlay: Overlay | None = None,
) -> RunColumns:
    """A run directory under ``protocols`` (default: the one it was run with), as columns; see :func:`judge_run`.

    ``choice`` restricts it to a part of what was run. Raises :class:`guieval.errors.UsageError` when there is no run, no such
    protocol, or when the run does not hold all of that part.
    """
    return judge_run(directory, protocols, overlay=overlay).columns(choice)


def score_predictions(
    file: Path,
    bench: str,
    data: Path | None,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    model: str | None = None,
    mode: str = "offline",
    bench_options: Mapping[str, Any] | None = None,
    choice: Choice | None = None,
    overlay: Overlay | None = None,
) -> RunColumns:
    """A predictions file under ``protocols`` (default: the benchmark's own), as columns; see :func:`judge_predictions`."""
    judged = judge_predictions(
        file, bench, data, protocols, model=model, mode=mode, bench_options=bench_options, overlay=overlay
    )
    return judged.columns(choice)


class Part(NamedTuple):
    """Which steps count: the plan, a short title, and in words."""

    plan: Plan
    title: str
    text: str


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers judged under some protocols, before it is said which steps count.

    ``own`` is the protocol they were made under. ``notes`` say what the reader should know of the input, ``overlays`` what else
    was accepted. ``part`` finds the steps that a choice asks for (``None``: all that the run set out to do) and raises
    :class:`guieval.errors.UsageError` when there are none, or not all of them. ``again`` reads the answers that count once
    more, each with its step.
    """

    title: str
    benchmark: str
    dataset: str
    model: str
    mode: str
    stop: str
    own: str
    notes: tuple[str, ...]
    overlays: tuple[str, ...]
    part: Callable[[Choice | None], Part]
    again: Callable[[], Iterator[Answer]]
    _ledger: Ledger

    @property
    def evaluators(self) -> tuple[ActionEvaluator, ...]:
        """What judged, in the order of the protocols."""
        return self._ledger.evaluators

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols' names."""
        return tuple(each.protocol.name for each in self._ledger.evaluators)

    def hold(self, plan: Plan) -> bool:
        """Whether there is a record of every step of ``plan``, be it of a request that failed."""
        rows = self._ledger.rows_of(plan)
        return bool((self._ledger.base_end[rows] != NOT_RUN).all())

    def columns(self, choice: Choice | None = None, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``choice`` (default: all that the run set out to do) under ``protocols`` (default: all that judged).

        Raises :class:`guieval.errors.UsageError` when there are no such steps, or not all of them.
        """
        return self.columns_of(self.part(choice), protocols)

    def columns_of(self, part: Part, protocols: Sequence[str] | None = None) -> RunColumns:
        """The steps of ``part``, which must lie within the answers' plan, as :meth:`columns`."""
        ledger = self._ledger
        rows = ledger.rows_of(part.plan)
        names = self.protocols if protocols is None else tuple(protocols)
        numbers = np.repeat(np.arange(len(part.plan), dtype=np.int32), [len(steps) for steps in part.plan.values()])
        starts = np.searchsorted(numbers, np.arange(len(part.plan)))
        judged = {name: ledger.judged(self.protocols.index(name), rows) for name in names}
        if self.stop == "first-mismatch":
            judged = {name: stopped(each, numbers, starts) for name, each in judged.items()}
        return RunColumns(
            title=self.title,
            benchmark=self.benchmark,
            dataset=self.dataset,
            model=self.model,
            mode=self.mode,
            stop=self.stop,
            selection=part.text,
            episodes=tuple(part.plan),
            episode=numbers,
            step_index=ledger.step_index[rows],
            length=ledger.length[rows],
            reference_type=ledger.reference_type[rows],
            predicted_type=ledger.predicted_type[rows],
            covered=ledger.covered[rows],
            samples=ledger.samples[rows],
            groups=ledger.groups(rows),
            judged=judged,
            elsewhere=ledger.elsewhere[rows],
        )


def judge_run(
    directory: Path | str,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    reparse: bool = False,
    overlay: Overlay | None = None,
) -> JudgedAnswers:
    """Read a run directory once and judge its answers under ``protocols`` (default: the one it was run with).

    :data:`ALL` among them stands for every protocol written for the run's data set. ``reparse`` reads the raw replies again
    with the adapter as it is now. Raises :class:`guieval.errors.UsageError` when there is no run, or no such protocol.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    own = manifest["protocol"]["name"]
    records = Records(directory)
    first = next(iter(records), None)
    dataset = manifest["benchmark"]["name"] if first is None else first.task.dataset
    evaluators = _evaluators(protocols, own, dataset)
    spaces = [ActionSpace.from_json(manifest["action_spaces"][side]) for side in ("model", "benchmark")]
    planned = read_planned(directory)
    model = recorded_model(manifest) if reparse else None
    known = RecordedLabels()
    ledger = Ledger(planned.plan, planned.refs, evaluators, spaces)
    overlaid: set[StepKey] = set()

    def read() -> Iterator[StepRecord]:
        for record in records:
            if overlay is not None and (task := overlay.apply(record.task)) is not record.task:
                overlaid.add(task.key)
                record = record.model_copy(update={"task": task})
            if model is not None:
                samples = tuple(read_again(evaluators[0], model, record.task, one) for one in record.samples)
                record = record.model_copy(update={"samples": samples})
            yield record

    def again() -> Iterator[Answer]:
        for number, record in enumerate(read()):
            if ledger.counts(number, record.task):
                yield record.task, record.sample.action

    for number, record in enumerate(read()):
        known.add(record.task)
        ledger.add(number, record.task, record.samples)
    notes = [f"line {number} of {records.path} holds no record and was passed over" for number in records.damaged]
    if overlay is not None and len(overlaid) < overlay.steps:
        notes.append(f"{len(overlaid):,} of the {overlay.steps:,} steps that the overlay adds to are recorded in this run")
    if ledger.unplanned:
        notes.append(f"{ledger.unplanned:,} records are of steps outside the plan and count nowhere")
    title, text = described_steps(manifest, len(planned.plan))

    def part(choice: Choice | None) -> Part:
        if choice is None or not choice.narrows:
            return Part(planned.plan, title, text)
        chosen = part_of_run(directory, planned, choice, known)
        short = chosen.title if choice.sample_set is not None or not title else f"{chosen.title} of {title}"
        return Part(chosen.plan, short, f"{chosen.text}, of a run over {text}")

    name = manifest["model"].get("name") or manifest["config"]["model"]
    mode = manifest["mode"]
    return JudgedAnswers(
        title=f"{name} on {manifest['benchmark']['name']}, {mode['name']}",
        benchmark=manifest["benchmark"]["name"],
        dataset=dataset,
        model=name,
        mode=mode["name"],
        stop=mode["stop"],
        own=own,
        notes=tuple(notes),
        overlays=tuple(describe_overlay(each) for each in (manifest.get("overlay"), overlay and overlay.to_json()) if each),
        part=part,
        again=again,
        _ledger=ledger,
    )


def judge_predictions(
    file: Path,
    bench: str,
    data: Path | None,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    model: str | None = None,
    mode: str = "offline",
    bench_options: Mapping[str, Any] | None = None,
    overlay: Overlay | None = None,
) -> JudgedAnswers:
    """Judge a predictions file under ``protocols`` (default: the benchmark's own); a step without a line counts as not run.

    Arguments and errors as in :func:`guieval.scoring.evaluate_predictions`.
    """
    benchmark = load_benchmark(bench, data, **(bench_options or {}))
    if overlay is not None:
        benchmark = Overlaid(benchmark, overlay)
    played = get_mode(mode)
    adapter = load_model(model) if model is not None else None
    predictions = read_predictions(file, benchmark, raw=adapter is not None)
    refs = list(benchmark.index())
    predicted = [ref for ref in refs if ref.key in predictions]
    dataset = benchmark.dataset or benchmark.load(predicted[0] if predicted else refs[0]).steps[0].dataset
    evaluators = _evaluators(protocols, benchmark.protocol, dataset)
    plan: Plan = {ref.key: range(ref.length) for ref in refs}
    spaces = [adapter.action_space if adapter else ActionSpace(), benchmark.action_space]
    ledger = Ledger(plan, refs, evaluators, spaces)

    def read() -> Iterator[tuple[StepTaskModel, Sample | None]]:
        for ref in predicted:
            lines = predictions[ref.key]
            for task in benchmark.load(ref).steps:
                line = lines.get(task.step_index)
                yield task, None if line is None else read_prediction(evaluators[0], adapter, task, line)

    for number, (task, sample) in enumerate(read()):
        ledger.add(number, task, () if sample is None else (sample,))

    def part(choice: Choice | None) -> Part:
        chosen: Selection = select(benchmark, choice or Choice())
        for ref in chosen.refs:  # what was not predicted has a label all the same, and belongs into its cell
            if ref.key not in predictions:
                for task in benchmark.load(ref).steps:
                    ledger.label(task)
        return Part(chosen.plan, chosen.title, chosen.text)

    total = sum(map(len, predictions.values()))
    return JudgedAnswers(
        title=file.name,
        benchmark=benchmark.name,
        dataset=dataset,
        model=model or "",
        mode=played.name,
        stop=played.stop,
        own=benchmark.protocol,
        notes=(f"{total:,} predictions",),
        overlays=() if overlay is None else (describe_overlay(overlay.to_json()),),
        part=part,
        again=lambda: ((task, sample.action) for task, sample in read() if sample is not None),
        _ledger=ledger,
    )


def _evaluators(protocols: Sequence[str | Protocol] | None, own: str, dataset: str) -> tuple[ActionEvaluator, ...]:
    asked: list[str | Protocol] = []
    for each in [own] if protocols is None else protocols:
        asked += [own, *protocols_for(dataset)] if each == ALL else [each]
    evaluators = [ActionEvaluator(each) for each in dict.fromkeys(asked)]
    return tuple({each.protocol.name: each for each in evaluators}.values())
