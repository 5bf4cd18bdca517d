"""Answers from a predictions file of any format that guieval reads, together with the steps they answer.

Most formats hold the labels too, so such a file is scored by itself; otherwise, or to have a benchmark's whole data as the
denominator, its data folder gives the steps. The formats are in :mod:`guieval.scoring.predictions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from guieval.actions import ActionSpace
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.overlays import Overlaid, Overlay, describe_overlay
from guieval.data.sample_sets import StepLabel
from guieval.data.selection import Choice, Selection, check_dataset, narrow, restrict, select
from guieval.errors import DataError, UsageError, nearest
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.evaluator import infrastructure_failure
from guieval.evaluation.table.online import ENVIRONMENT
from guieval.history.modes import get_mode
from guieval.models import ABCModel
from guieval.models.scored_response import read_response
from guieval.registry import benchmarks, load_benchmark, load_model
from guieval.scoring import predictions
from guieval.scoring.answered import Answered, Unkept
from guieval.scoring.predictions import Predicted, Predictions
from guieval.steps import EpisodeKey, Sample, StepKey, StepTaskModel

OWN = "guieval"
"""The format that names steps of a benchmark and nothing else, and may hold raw replies."""
DEFAULT_PROTOCOL = "guievalkit"
"""Under which answers are scored whose data has no loader, and so no protocol of its own."""
NAMED = 50
"""How many rows with another label than the benchmark's are named."""


def answered_file(
    file: Path,
    bench: str | None = None,
    data: Path | None = None,
    *,
    format: str | None = None,
    model: str | ABCModel | None = None,
    mode: str = "offline",
    bench_options: Mapping[str, Any] | None = None,
    overlay: Overlay | None = None,
    skip_damaged: bool = False,
    anyway: bool = False,
) -> Answered:
    """Open a predictions file; ``format`` names how it is written (default: what it looks like).

    A file that holds its steps counts these alone, unless ``data`` names the folder of a benchmark, all of whose steps then
    count; of a file with answers to several benchmarks ``bench`` chooses one. ``model`` is the checkpoint, or the adapter, that
    reads the raw replies in the file, also where it holds the actions that its authors read in them; ``skip_damaged`` leaves
    rows out that cannot be read; ``anyway`` takes rows that state another target than the benchmark's label, which decides.

    Raises :class:`UsageError` and :class:`DataError` naming what is wrong: an unknown format, benchmark or model, steps that
    the file does not hold, a damaged row.
    """
    chosen = _format(file, format, owned=bench is not None)
    reader = load_model(model) if isinstance(model, str) else model
    if chosen == OWN:
        if bench is None:
            raise UsageError(
                f"a predictions file needs --bench, the benchmark its steps are of (format {OWN!r} does not name it)"
            )
        benchmark = load_benchmark(bench, data, **(bench_options or {}))
        own = predictions.read_predictions(file, OWN, repeats=False)
        _check_reader(file, own.rows, reader)
        return _of_benchmark(benchmark, own.rows, file.name, adapter=reader, mode=mode, overlay=overlay)
    if data is None and bench_options:
        raise UsageError("--set is for a benchmark's loader: add --data, its data folder")
    first = bench or (chosen if chosen in benchmarks() else None)
    opened = load_benchmark(first, data, **(bench_options or {})) if first is not None and data is not None else None
    steps = () if opened is None else (step for ref in opened.index() for step in opened.load(ref).steps)
    read = predictions.read_predictions(file, chosen, steps=steps, skip_damaged=skip_damaged)
    if not anyway:
        read.refuse_other_labels(file)
    name = _benchmark_of(file, read, bench)
    rows = [row for row in read.rows if row.benchmark in (name, "")]
    _check_reader(file, rows, reader)
    notes = list(_notes(read))
    if reader is not None:
        rows = _with_replies(file, rows, chosen)
        notes.append(f"the raw replies in the file are read by {reader.config.name}")
    relabelled = predictions.get_format(chosen).relabelled
    if relabelled or (data is None and (name not in benchmarks() or benchmarks()[name].needs_data)):
        left_out = len(read.skipped) + read.unanswered
        return _by_itself(file, name, rows, mode, overlay, [*notes, *read.assumed], left_out, reader)
    if opened is None:
        opened = load_benchmark(name, data, **(bench_options or {}))
    return _of_benchmark(opened, rows, file.name, adapter=reader, mode=mode, overlay=overlay, notes=notes)


def _check_reader(file: Path, rows: Iterable[Predicted], reader: ABCModel | None) -> None:
    if reader is None and any(row.response is not None for row in rows):
        raise UsageError(f"{str(file)!r} holds raw replies; add --model, the checkpoint that wrote them")


def _with_replies(file: Path, rows: Sequence[Predicted], format: str) -> list[Predicted]:
    """The rows with their raw reply in place of the action; one without a reply keeps what the file says of it."""
    if not any(row.raw is not None or row.response is not None for row in rows):
        raise UsageError(
            f"--model and --adapter read raw replies, and {str(file)!r} of format {format!r} holds none; leave them out"
        )
    return [row if row.raw is None else replace(row, action=None, response=row.raw) for row in rows]


def _format(file: Path, format: str | None, *, owned: bool) -> str:
    if format is not None:
        return predictions.get_format(format).name
    try:
        return predictions.detect_format(file).name
    except (UsageError, DataError) as error:
        if not owned and isinstance(error, DataError):
            raise
        if not owned:
            raise UsageError(f"{error}; a file of guieval's own format needs --bench, the benchmark its steps are of") from None
        return OWN  # with a benchmark named it is most likely our own format, whose reader names the line and field


def _benchmark_of(file: Path, read: Predictions, bench: str | None) -> str:
    names = read.benchmarks
    if not read.rows:
        raise UsageError(f"{str(file)!r} holds no answer that can be scored")
    if not names and bench is None:
        raise UsageError(
            f"{str(file)!r} of format {read.format!r} names no benchmark and holds no labels: add --bench and --data, the "
            "benchmark that has them (--bench episodes reads a file of your own)"
        )
    names = names or (bench or "",)
    if bench is None and len(names) > 1:
        raise UsageError(f"{str(file)!r} holds answers to steps of {', '.join(names)}; choose one of them by --bench")
    if bench is not None and bench not in names:
        raise UsageError(f"{str(file)!r} holds answers to steps of {', '.join(names)}, not of {bench!r}{nearest(bench, names)}")
    return bench or names[0]


def _notes(read: Predictions) -> Iterator[str]:
    yield f"read as format {read.format}"
    if read.repeated:
        yield f"{read.repeated:,} rows are repeated word for word and count once"
    if read.unanswered:
        yield f"{read.unanswered:,} rows hold no answer (the source kept none) and count nowhere"
    if read.skipped:
        yield f"{len(read.skipped):,} damaged rows are left out, the first: {read.skipped[0]}"
    if read.differing:
        named = [f"{row.episode_id} ({row.differs})" for row in read.differing[:NAMED]]
        more = f" and {len(read.differing) - NAMED:,} more" if len(read.differing) > NAMED else ""
        yield (
            f"{len(read.differing):,} rows state another box than the benchmark, whose own label decides: "
            f"{', '.join(named)}{more}"
        )


def _of_benchmark(
    benchmark: ABCBenchmark,
    rows: Iterable[Predicted],
    title: str,
    *,
    adapter: ABCModel | None = None,
    mode: str = "offline",
    overlay: Overlay | None = None,
    notes: Sequence[str] = (),
) -> Answered:
    """Predictions for a benchmark's steps, all of which count; a step without a prediction counts as not run."""
    if overlay is not None:
        benchmark = Overlaid(benchmark, overlay)
    refs = list(benchmark.index())
    lengths = {ref.key: ref.length for ref in refs}
    by_episode: dict[EpisodeKey, dict[int, Predicted]] = {}
    for row in rows:
        key = EpisodeKey(benchmark.name, row.subset, row.episode_id)
        if row.step_index >= lengths.get(key, 0):
            raise DataError(f"{title!r} predicts step {StepKey(*key, row.step_index)}, which {benchmark.name!r} does not have")
        by_episode.setdefault(key, {})[row.step_index] = row
    predicted = [ref for ref in refs if ref.key in by_episode]

    def answers(evaluator: ActionEvaluator) -> Iterator[tuple[StepTaskModel, tuple[Sample, ...]]]:
        for ref in predicted:
            by_step = by_episode[ref.key]
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
        unanswered=lambda ref: benchmark.load(ref).steps if ref.key not in by_episode else (),
        overlays=() if overlay is None else (describe_overlay(overlay.file, overlay.sha256, overlay.steps),),
        count=sum(map(len, by_episode.values())),
    )


def _sample(evaluator: ActionEvaluator, model: ABCModel | None, task: StepTaskModel, prediction: Predicted) -> Sample:
    if prediction.failed:
        return Sample(outcome=infrastructure_failure(prediction.failed))
    if prediction.right_under:  # Answered.unkept decides
        return Sample(raw_response="", action=task.action, outcome=evaluator.evaluate(task, task.action))
    if prediction.response is not None and model is not None:
        return read_response(model, evaluator, task, prediction.response)
    return Sample(raw_response="", action=prediction.action, outcome=evaluator.evaluate(task, prediction.action))


def _own_protocol(dataset: str) -> str:
    """The protocol of data without a loader: outcomes of tasks are judged already."""
    return ENVIRONMENT.name if dataset in (ENVIRONMENT.datasets or ()) else DEFAULT_PROTOCOL


def _by_itself(
    file: Path,
    name: str,
    rows: Sequence[Predicted],
    mode: str,
    overlay: Overlay | None,
    notes: list[str],
    left_out: int,
    reader: ABCModel | None,
) -> Answered:
    """Answers with the steps that their own rows describe; nothing else is known, so nothing else counts."""
    answers: list[tuple[StepTaskModel, Predicted]] = []
    for row in rows:
        if row.task is None:
            raise UsageError(f"{str(file)!r} does not hold the steps that it answers; add --data, the data folder of {name}")
        answers.append((row.task if overlay is None else overlay.apply(row.task), row))
    by_episode: dict[EpisodeKey, dict[int, StepTaskModel]] = {}
    for task, _ in answers:
        by_episode.setdefault(task.episode_key, {})[task.step_index] = task
    plan = {key: sorted(steps) for key, steps in by_episode.items()}
    firsts = {key: next(iter(steps.values())) for key, steps in by_episode.items()}
    refs = [EpisodeRef(key, first.episode_length, split=first.split) for key, first in firsts.items()]
    lacking = sum(len(plan[ref.key]) < ref.length for ref in refs)
    if lacking:
        notes.append(
            f"the file lacks steps of {lacking:,} of its {len(refs):,} episodes; their metrics are over the steps it has"
        )
    if overlay is not None:
        added = sum(task is not row.task for task, row in answers)
        if added < overlay.steps:
            notes.append(f"{added:,} of the {overlay.steps:,} steps that the overlay adds to are in the file")
    where = f"the file {str(file)!r}"
    text = f"the {len(answers):,} steps of {name} that {file.name} holds, in {len(refs):,} episodes"
    first = answers[0][0]

    def select(choice: Choice) -> Selection:
        if not choice.narrows:
            return Selection(refs, plan, "", text)
        if choice.sample_set is not None:
            check_dataset(choice.sample_set, first.dataset, where)
        chosen = narrow(refs, choice, lambda ref: StepLabel.of_steps(by_episode[ref.key].values()), where, plan=plan)
        return restrict(chosen, plan, where)

    def judged(evaluator: ActionEvaluator) -> Iterator[tuple[StepTaskModel, tuple[Sample, ...]]]:
        for task, row in answers:
            yield task, (_sample(evaluator, reader, task, row),)

    unkept = _unkept(rows)
    if unkept is not None:
        notes.append(
            f"the file names {len(unkept.steps):,} steps as right under {unkept.protocol}, without the replies: they count as "
            "right under that protocol, and are not measured under any other"
        )
    loader = benchmarks().get(name)
    labels = ActionSpace() if loader is None else loader.action_space
    return Answered(
        title=file.name,
        benchmark=name,
        dataset=first.dataset,
        setting=first.setting,
        protocol=unkept.protocol if unkept else _own_protocol(first.dataset) if loader is None else loader.protocol,
        model="" if reader is None else reader.config.name,
        mode=get_mode(mode),
        spaces=(ActionSpace() if reader is None else reader.action_space, labels),
        plan=plan,
        refs=refs,
        answers=judged,
        select=select,
        notes=lambda others: [*notes, *others],
        overlays=() if overlay is None else (describe_overlay(overlay.file, overlay.sha256, overlay.steps),),
        left_out=left_out,
        count=len(answers),
        unkept=unkept,
    )


def _unkept(rows: Sequence[Predicted]) -> Unkept | None:
    protocol = next((row.right_under for row in rows if row.right_under), None)
    steps = frozenset(StepKey(*row.key) for row in rows if row.right_under)
    return None if protocol is None else Unkept(protocol, steps)
