"""A run directory as answers to be scored; its raw responses are parsed again on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from sys import intern
from typing import Any

from pydantic import ValidationError

from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.overlays import Overlay, describe_overlay
from guieval.data.sample_sets import StepLabel
from guieval.data.selection import Choice, Selection, check_dataset, narrow, restrict
from guieval.errors import UsageError, first_problem
from guieval.evaluation import ActionEvaluator
from guieval.journal import Planned, RunFolder, caveats
from guieval.journal.run_files import Manifest, RecordedSelection
from guieval.models import ABCModel, ModelConfig
from guieval.models.response import recorded_response
from guieval.models.scored_response import read_response
from guieval.registry import build_model, load_benchmark
from guieval.scoring.answered import Scorable
from guieval.steps import EpisodeKey, Sample, StepKey, StepTaskModel
from guieval.wings import offered


def recorded_answers(
    directory: Path | str, *, reparse: bool = False, adapter: str | None = None, overlay: Overlay | None = None
) -> Scorable:
    """Open a run directory.

    ``reparse`` parses the raw responses again with today's adapter, also those that crashed the parser during the run; an
    adapter in a file of its own has to be named as ``adapter``. The run's plug-ins are needed only for that. ``overlay`` adds
    accepted actions to its steps. Raises :class:`UsageError` when there is no run.
    """
    directory = Path(directory)
    folder = RunFolder(directory)
    if reparse or overlay is not None:
        folder.expect("steps", "leave out --reparse and --overlay")
    manifest, planned, records = folder.manifest, folder.planned, folder.records
    model = recorded_model(manifest, adapter) if reparse else None
    first = next(iter(records), None)
    labels = _RecordedLabels()
    overlaid: set[StepKey] = set()
    whole = _whole_run(manifest, planned)

    def answers(evaluator: ActionEvaluator) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        for record in records:
            task: Any = record.task
            samples: tuple[Any, ...] = record.billed
            if overlay is not None and (changed := overlay.apply(task)) is not task:
                overlaid.add(task.key)
                task = changed
            if isinstance(task, StepTaskModel):  # a choice among tasks is by their names
                labels.add(task)
            if model is not None:
                samples = tuple(read_again(evaluator, model, task, sample) for sample in samples)
            yield task, samples

    def select(choice: Choice) -> Selection:
        return _part(directory, planned, choice, labels, whole) if choice.narrows else whole

    name = caveats.model_label(manifest)
    overlays = (manifest.overlay, overlay)
    return Scorable(
        title=f"{name} on {manifest.benchmark.name}, {manifest.mode.label}",
        benchmark=manifest.benchmark.name,
        dataset=manifest.benchmark.name if first is None else first.task.dataset,
        setting=getattr(first and first.task, "setting", "high"),
        protocol=manifest.protocol.name,
        model=name,
        mode=manifest.mode,
        spaces=(manifest.action_spaces.model.space, manifest.action_spaces.benchmark.space),
        plan=planned.plan,
        refs=planned.refs,
        answers=answers,
        select=select,
        notes=lambda others: _notes(folder, others, overlay, len(overlaid)),
        types=planned.types,
        overlays=tuple(describe_overlay(used.file, used.sha256, used.steps) for used in overlays if used is not None),
        left_out=0 if manifest.imported is None else manifest.imported.left_out,
        served=caveats.mark(manifest),
        edition=manifest.benchmark.edition,
        scaffold=manifest.scaffold_line,
    )


def _notes(folder: RunFolder, others: Sequence[str], overlay: Overlay | None, overlaid: int) -> list[str]:
    """What is to be said of a run; ``overlaid``: how many of its steps the overlay adds to."""
    records, imported = folder.records, folder.manifest.imported
    damaged = [f"line {number} of {records.path} has no record and was passed over" for number in records.damaged]
    lines = [*damaged, *caveats.notes(folder.manifest), *(imported.lines if imported is not None else ()), *others]
    if overlay is not None and overlaid < overlay.steps:
        lines.append(f"{overlaid:,} of the {overlay.steps:,} steps that the overlay adds to are recorded in this run")
    return lines


class _RecordedLabels:
    """The steps of a journal in little memory: their labels, and the splits of their episodes."""

    def __init__(self) -> None:
        self.splits: dict[EpisodeKey, str] = {}
        self.datasets: dict[str, None] = {}
        self._labels: dict[EpisodeKey, dict[int, StepLabel]] = {}
        self._shared: dict[tuple[str, tuple[tuple[str, str], ...]], StepLabel] = {}

    def add(self, task: StepTaskModel) -> None:
        key = task.episode_key
        if key not in self.splits:
            self.splits[key] = intern(task.split)
            self._labels[key] = {}
        self.datasets[task.dataset] = None
        kind = (task.action.type, tuple(task.groups.items()))
        label = self._shared.get(kind)
        if label is None:
            label = self._shared[kind] = StepLabel.of(task)
        self._labels[key][task.step_index] = label

    def labels(self, ref: EpisodeRef) -> Mapping[int, StepLabel]:
        """The labels of an episode's recorded steps, by their index."""
        return self._labels.get(ref.key, {})


def _whole_run(manifest: Manifest, planned: Planned) -> Selection:
    """All steps of a run; runs of earlier versions did not write down which these are, and have no title."""
    selection = manifest.selection or RecordedSelection()
    text = selection.text or f"all episodes of the run ({len(planned.plan):,})"
    return Selection(planned.refs, planned.plan, selection.title, text)


def _part(directory: Path, planned: Planned, choice: Choice, labels: _RecordedLabels, whole: Selection) -> Selection:
    """A part of a run; :class:`UsageError` when the run does not hold all of it.

    Runs of earlier versions did not write splits down, but their records have them.
    """
    run = f"the run {str(directory)!r}"
    refs = [replace(ref, split=labels.splits.get(ref.key, ref.split)) for ref in planned.refs]
    if choice.sample_set is not None:
        for dataset in labels.datasets:
            check_dataset(choice.sample_set, dataset, run)
    part = restrict(narrow(refs, choice, labels.labels, run, plan=planned.plan), planned.plan, run)
    title = part.title if choice.sample_set is not None or not whole.title else f"{part.title} of {whole.title}"
    return replace(part, title=title, text=f"{part.text}, of a run over {whole.text}")


def recorded_benchmark(manifest: Manifest, data: Path | None) -> ABCBenchmark:
    """The benchmark of a run on its data folder, or on ``data``; :class:`UsageError` when it cannot be opened."""
    config = manifest.config.data
    benchmark = load_benchmark(config.bench, data or config.folder, **(config.bench_options or {}))
    if config.perturb is None:
        return benchmark
    model = cache(lambda: recorded_model(manifest))
    found: ABCBenchmark = offered("perturbed", "benchmark").of(benchmark, config, lambda task: model().frame(task))
    return found


def recorded_model(manifest: Manifest, adapter: str | None = None) -> ABCModel:
    """The adapter of the checkpoint that a run's manifest names, set up as it was; :class:`UsageError` when it cannot be.

    A manifest is data: an adapter file that it names is not imported unless the caller names it as ``adapter``.
    """
    recorded = {**manifest.checkpoint, **({} if adapter is None else {"adapter": adapter})}
    if manifest.imported is not None and "adapter" not in recorded:
        raise UsageError("the run was imported without an adapter that reads its responses: add --adapter FAMILY")
    try:
        config = ModelConfig.model_validate(recorded, context=recorded["scaffold"])
    except ValidationError as error:
        raise UsageError(
            f"the manifest's model has a field {first_problem(error).field!r} that this version cannot read"
        ) from None
    if adapter is None and config.adapter.endswith(".py"):
        raise UsageError(
            f"the run was made with the adapter file {config.adapter!r}, and guieval runs no code that only a run folder "
            f"names: look at it, then add --adapter {config.adapter}"
        )
    return build_model(config, thinking=manifest.config.model.thinking)


def read_again(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, sample: Sample) -> Sample:
    """A recorded answer as ``evaluator`` judges it; its response is parsed again if a ``model`` is given."""
    if model is not None and sample.raw_response is not None:
        return read_response(model, evaluator, task, recorded_response(sample), seconds=sample.seconds)
    return sample.model_copy(update={"outcome": evaluator.rescore(task, sample)})
