"""Makes runs of what other evaluations left: files of answers to steps, and outcomes of tasks.

An imported run is a run folder like any other, so that every command takes it. Who answered, and how, is not known of it, and
nothing of it can be sent again.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from guieval.actions import ActionSpace
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.content_digest import Content, read_content
from guieval.data.doctor.counts import counted
from guieval.data.editions import Edition, labels_of
from guieval.data.plugin_options import check_options
from guieval.data.selection import Choice, Selection, select
from guieval.errors import DataError, UsageError, known_name, nearest
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.evaluation.table.online import ENVIRONMENT
from guieval.exchange.atif import ENDING
from guieval.exchange.atif_reading import make_run
from guieval.exchange.imported import Found, Given, Imported, words_of, write_imported
from guieval.exchange.osworld import is_osworld, osworld_tasks, write_trajectories
from guieval.exchange.predictions import FORMATS, Predictions, detect_format, get_format, read_predictions
from guieval.exchange.predictions.predicted import Predicted, PredictedTask
from guieval.exchange.webarena_verified.judge import PACKAGE, WebArenaJudge, outcome_of, version_of
from guieval.given import AnyPath, OneOrMore, every, one_path
from guieval.journal import refuse_nested
from guieval.models import ABCModel
from guieval.models.scored_response import read_response
from guieval.registry import benchmarks, load_benchmark, reading_model
from guieval.running.kinds import kind_of_mode
from guieval.steps import (
    EpisodeKey,
    Plan,
    Record,
    Sample,
    StepError,
    StepKey,
    StepOutcome,
    StepRecord,
    StepTaskModel,
    TaskRecord,
)

ATIF, OSWORLD = "atif", "osworld"
FOLDERS = (ATIF, OSWORLD, PACKAGE)
"""The formats of folders; those of files are :data:`guieval.exchange.predictions.FORMATS`."""
_FOR_FILES = frozenset(
    {"--map", "--bench", "--data", "--model", "--protocol", "--mode", "--answered-only", "--anyway", "--skip-damaged"}
)
"""Options of which a folder has none."""
OWN = "guieval"
"""The format that names steps of a benchmark and nothing else."""
NAMED = 50
"""How many rows with another label than the benchmark's a note names."""


def import_predictions(
    source: AnyPath,
    out: AnyPath,
    *,
    format: str | None = None,
    map: Mapping[str, str] | None = None,
    bench: str | None = None,
    data: AnyPath | None = None,
    bench_options: Mapping[str, Any] | None = None,
    model: str | None = None,
    adapter: AnyPath | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    mode: str = "offline",
    protocol: str | None = None,
    sample_set: str | None = None,
    split: str | None = None,
    subset: OneOrMore | None = None,
    episodes: AnyPath | None = None,
    answered_only: bool = False,
    skip_damaged: bool = False,
    anyway: bool = False,
    note: str | None = None,
) -> Imported:
    """Make a run directory ``out`` of another evaluation's file or folder; the arguments are options of `guieval data import`.

    ``format`` names how the source is written (default: what it looks like); ``map`` says instead which field of a file is
    what. A file that has its steps counts these, unless ``data`` is the folder of a benchmark (``bench``), all of whose
    steps then count, or those of ``sample_set``, ``split``, ``subset`` and ``episodes``; with ``answered_only`` only those that
    the file answers. ``model`` (or ``adapter``, a family) reads the raw responses in the file, ``name`` is what tables call the
    model that gave them. ``bench_options`` are of the benchmark's loader and ``options`` of the adapter, which the command has
    as ``--set``. ``skip_damaged`` leaves rows out that cannot be read; ``anyway`` takes rows that state another target than
    the benchmark's label, which decides. ``note`` is kept with the run, e.g. the file's address.

    Raises :class:`UsageError` and :class:`DataError` naming what is wrong: a format, benchmark, model or field that is
    unknown, steps that the file does not hold, a damaged row, an ``out`` that exists.
    """
    words = words_of(dict(locals()))
    source, out, data = Path(source), Path(out), one_path(data)
    choice = Choice(split, tuple(every(subset)), sample_set, one_path(episodes))
    _check_places(source, out)
    if source.is_dir() or format in FOLDERS:
        return _of_folder(Given(source, name or "", words=words, note=note), out, format, dict(bench_options or {}))
    reader = reading_model(model, None if adapter is None else str(adapter), options)
    named = name or (reader.config.name if reader is not None else _plain_name(source))
    chosen = "mapped" if map else _format(source, format, owned=bench is not None)
    opened, steps = _opened(chosen, bench, data, bench_options)
    read = read_predictions(
        source, None if map else chosen, mapping=map, steps=steps, skip_damaged=skip_damaged, repeats=chosen != OWN
    )
    if not anyway:
        read.refuse_other_labels(source)
    if read.tasks:
        about, found = Given(source, named, answered_only=answered_only), _of_tasks(source, read.tasks)
    else:
        about = Given(source, named, mode, protocol, reader, choice, answered_only, bench, opened, data, bench_options or {})
        found = _of_steps(about, read)
    found = found._replace(notes=[*_notes(read, source), *found.notes])
    about = about._replace(words=words, note=note)
    return replace(write_imported(out, about, read.format, found), read=read)


def _check_places(source: Path, out: Path) -> None:
    if not source.exists():
        raise UsageError(f"{str(source)!r} does not exist; expected a file of predictions, or a folder of results")
    if out.exists():
        raise UsageError(f"the directory {str(out)!r} exists; give another --out")
    refuse_nested(out)


def _of_steps(given: Given, read: Predictions) -> Found:
    """Answers to one benchmark's steps: over all of that benchmark's if its data are there, else over the file's own."""
    benchmark = _benchmark_of(given.source, read, given.bench)
    rows, notes = [row for row in read.rows if row.benchmark in (benchmark, "")], []
    if given.reader is not None:
        rows = _with_responses(given.source, rows, read.format)
        notes.append(f"the raw responses are read by {given.reader.config.name}")
    elif any(row.response is not None for row in rows):
        raise UsageError(f"{str(given.source)!r} has raw responses; add --model, the checkpoint that wrote them")
    kind = benchmarks().get(benchmark)
    relabelled = read.format in FORMATS and get_format(read.format).relabelled
    if relabelled or (given.opened is None and (kind is None or kind.needs_data)):
        found = _by_itself(given, benchmark, rows)._replace(left_out=len(read.skipped) + read.unanswered)
        notes += read.assumed
    else:
        found = _of_benchmark(given, given.opened or load_benchmark(benchmark, given.data, **given.options), rows)
    return found._replace(notes=[*notes, *found.notes])


def _opened(
    format: str, bench: str | None, data: Path | None, options: Mapping[str, Any] | None
) -> tuple[ABCBenchmark | None, Iterable[StepTaskModel]]:
    """The benchmark that the user names, and its steps if its data are given; a file may need them to name its steps."""
    if data is None and options:
        raise UsageError("--set is for a benchmark's loader: add --data, its data folder")
    first = bench or (format if format in benchmarks() else None)
    if first is None or (data is None and (first not in benchmarks() or benchmarks()[first].needs_data)):
        if format in (OWN, "mapped") and bench in benchmarks():
            raise UsageError(f"--bench {bench} needs --data, its data folder")
        if format == OWN:
            raise UsageError(f"the format {OWN!r} names no benchmark: add --bench, and --data, its data folder")
        return None, ()
    opened = load_benchmark(first, data, **(options or {}))
    return opened, () if format == OWN else (step for ref in opened.index() for step in opened.load(ref).steps)


def _format(file: Path, format: str | None, *, owned: bool) -> str:
    if format is not None:
        return FORMATS[known_name("format", format, (*FORMATS, *FOLDERS))].name
    try:
        return detect_format(file).name
    except (UsageError, DataError):
        if not owned or file.suffix in (".csv", ".tsv", ".xlsx"):
            raise
        return OWN  # with a benchmark named it is most likely our own format, whose reader names the line and field


def _benchmark_of(file: Path, read: Predictions, bench: str | None) -> str:
    names = read.benchmarks
    if not read.rows:
        raise UsageError(f"{str(file)!r} has no response that can be scored")
    if not names and bench is None:
        raise UsageError(
            f"{str(file)!r} of format {read.format!r} names no benchmark and has no labels: add --bench and --data, the "
            "benchmark that has them (--bench episodes reads a file of your own)"
        )
    names = names or (bench or "",)
    if bench is None and len(names) > 1:
        raise UsageError(f"{str(file)!r} holds answers to steps of {', '.join(names)}; choose one of them by --bench")
    if bench is not None and bench not in names:
        raise UsageError(f"{str(file)!r} holds answers to steps of {', '.join(names)}, not of {bench!r}{nearest(bench, names)}")
    return bench or names[0]


def _plain_name(file: Path) -> str:
    """What the file is called, without its endings."""
    return re.sub(r"(\.(jsonl?|csv|tsv|xlsx|gz|eval))+$", "", file.name) or file.name


def _with_responses(file: Path, rows: Sequence[Predicted], format: str) -> list[Predicted]:
    """The rows with their raw response in place of the action; one without a response keeps what the file says of it."""
    if not any(row.raw is not None or row.response is not None for row in rows):
        raise UsageError(
            f"--model and --adapter read raw responses, and {str(file)!r} of format {format!r} has none; leave them out"
        )
    return [row if row.raw is None else replace(row, action=None, response=row.raw) for row in rows]


def _notes(read: Predictions, file: Path) -> Iterator[str]:
    if read.repeated:
        yield f"{read.repeated:,} rows are repeated word for word and count once"
    if read.unanswered:
        yield f"{read.unanswered:,} rows hold no answer (the source kept none), so their steps are missing"
    if read.skipped:
        first = str(read.skipped[0]).replace(str(file), file.name)
        yield f"{len(read.skipped):,} damaged rows are left out, the first: {first}"
    if read.differing:
        stated = read.differences(NAMED)
        yield f"{len(read.differing):,} rows state another box than the benchmark, whose own label decides: {stated}"
    for protocol, count in read.unkept.items():
        yield (
            f"the file names {count:,} steps as right under {protocol}, without the responses: they count as right under that "
            "protocol, and are missing under any other"
        )


def _of_benchmark(given: Given, benchmark: ABCBenchmark, rows: Iterable[Predicted]) -> Found:
    """Answers to a benchmark's steps, all of which count, or those of the choice; a step without an answer is missing."""
    refs = {ref.key: ref for ref in benchmark.index()}
    by_episode: dict[EpisodeKey, dict[int, Predicted]] = {}
    for row in rows:
        key = EpisodeKey(benchmark.name, row.subset, row.episode_id)
        if key not in refs or row.step_index >= refs[key].length:
            near = nearest(row.episode_id, [each.episode_id for each in refs])
            lacking = f"{StepKey(*key, row.step_index)}, which {benchmark.name!r} in this data does not have"
            raise DataError(f"{str(given.source)!r} answers step {lacking}{near}")
        by_episode.setdefault(key, {})[row.step_index] = row
    chosen = select(benchmark, given.choice)
    if not given.choice.narrows and not by_episode.keys() <= chosen.plan.keys():  # it answers other splits than the default one
        chosen = select(benchmark, Choice(split="all"))
    if given.answered_only:
        chosen = _answered_only(chosen, by_episode, given.source)
    found = get_protocol(given.protocol or benchmark.protocol)
    evaluator = ActionEvaluator(found)

    def records() -> Iterator[Record]:
        for key, of_episode in by_episode.items():
            for task in benchmark.load(refs[key]).steps if key in chosen.plan else ():
                row = of_episode.get(task.step_index)
                if row is not None and task.step_index in chosen.plan[key]:
                    yield _record(evaluator, given.reader, task, row)

    content = read_content(chosen.refs, chosen.plan, benchmark.load)
    outside = sum(index not in chosen.plan.get(key, ()) for key, steps in by_episode.items() for index in steps)
    notes = [f"{counted(outside, 'answer')} to other steps than those chosen left out"] if outside else []
    return Found(benchmark.name, found.name, chosen, records(), notes, content, benchmark.action_space)


def _answered_only(chosen: Selection, answered: Mapping[EpisodeKey, Container[int]], file: Path) -> Selection:
    """Those of the chosen steps that the file answers."""
    kept = {key: [i for i in steps if i in answered.get(key, ())] for key, steps in chosen.plan.items()}
    plan = {key: steps for key, steps in kept.items() if steps}
    if not plan:
        raise UsageError(f"{str(file)!r} answers none of the chosen steps")
    counts = f"{sum(map(len, plan.values())):,} of {sum(map(len, chosen.plan.values())):,} steps"
    return replace(
        chosen,
        refs=[ref for ref in chosen.refs if ref.key in plan],
        plan=plan,
        title=f"{chosen.title}, answered only",
        text=f"the {counts} that {file.name} answers, of {chosen.text}",
    )


def _by_itself(given: Given, name: str, rows: Sequence[Predicted]) -> Found:
    """Answers with the steps that their own rows describe; nothing else is known, so nothing else counts."""
    if given.choice.narrows:
        raise UsageError("the file has its own steps: --split, --subset, --sample-set and --episodes are for `guieval score`")
    tasks: dict[StepKey, tuple[StepTaskModel, Predicted]] = {}
    by_episode: dict[EpisodeKey, dict[int, StepTaskModel]] = {}
    for row in rows:
        if row.task is None:
            raise UsageError(
                f"{str(given.source)!r} does not hold the steps that it answers; add --data, the data folder of {name}"
            )
        task = row.task if row.task.benchmark == name else row.task.model_copy(update={"benchmark": name})
        tasks[task.key] = task, row
        by_episode.setdefault(task.episode_key, {})[task.step_index] = task
    plan: Plan = {key: sorted(steps) for key, steps in by_episode.items()}
    firsts = {key: next(iter(steps.values())) for key, steps in by_episode.items()}
    refs = [EpisodeRef(key, first.episode_length, split=first.split) for key, first in firsts.items()]
    lacking = sum(len(plan[ref.key]) < ref.length for ref in refs)
    notes = [f"the file lacks steps of {lacking:,} of its {len(refs):,} episodes; their metrics are over the steps it has"]
    text = f"the {len(tasks):,} steps of {name} that {given.source.name} holds, in {len(refs):,} episodes"
    first = next(iter(firsts.values()))
    kind = benchmarks().get(name)
    unkept = next((row.right_under for row in rows if row.right_under), None)
    found = get_protocol(given.protocol or unkept or (_default(first) if kind is None else kind.protocol))
    evaluator = ActionEvaluator(found)
    types = {key: {index: step.action.type for index, step in steps.items()} for key, steps in by_episode.items()}
    edition = Edition.of(first.dataset, labels_of(task for task, _ in tasks.values()))
    return Found(
        name,
        found.name,
        Selection(refs, plan, "", text),
        (_record(evaluator, given.reader, task, row) for task, row in tasks.values()),
        notes if lacking else (),
        Content(types, None, edition),
        ActionSpace() if kind is None else kind.action_space,
    )


def _default(first: StepTaskModel) -> str:
    """The protocol of data without a loader."""
    return "sspro-official" if first.setting == "grounding" else "guievalkit"


def _record(evaluator: ActionEvaluator, reader: ABCModel | None, task: StepTaskModel, row: Predicted) -> StepRecord:
    return StepRecord(task=task, samples=(_sample(evaluator, reader, task, row),))


def _sample(evaluator: ActionEvaluator, reader: ABCModel | None, task: StepTaskModel, row: Predicted) -> Sample:
    if row.right_under:
        known = StepOutcome(verdict="right", type_match=True, exact_match=True, reason="the verdict of the source")
        return Sample(right_under=row.right_under, outcome=known)
    if row.response is not None and reader is not None:
        return read_response(reader, evaluator, task, row.response)
    error = StepError(stage="parse", message=row.reason) if row.action is None and row.reason else None
    return Sample(raw_response=row.raw, action=row.action, error=error, outcome=evaluator.evaluate(task, row.action))


def _of_folder(about: Given, out: Path, format: str | None, options: dict[str, Any]) -> Imported:
    source = about.source
    chosen = _folder_format(source) if format is None else known_name("format", format, (*FORMATS, *FOLDERS))
    if chosen not in FOLDERS:
        raise UsageError(f"{str(source)!r} is a folder, and the format {chosen!r} is of files")
    if given := next((word for word in about.words if word in _FOR_FILES), None):
        raise UsageError(f"{given} is not for the format {chosen}")
    if options and chosen != PACKAGE:
        raise UsageError(f"--set is not for the format {chosen}")
    if chosen == ATIF:
        if about.model or about.note is not None:
            option = "--name" if about.model else "--note"
            raise UsageError(f"{option} is not for the format {ATIF}, whose files name the model and have notes")
        made = make_run(source, out)
        return Imported(out, ATIF, "", made.planned, made.tasks, kind_of_mode("online"), trajectories=made)
    if chosen == OSWORLD:
        read = list(osworld_tasks(source))
        if not read:
            raise UsageError(f"{str(source)!r} has no task: expected <domain>/<task>/result.txt or traj.jsonl")
        notes = ["the most steps of a task are taken to be the most that any of them took"]
        about = about._replace(model=about.model or read[0].place.parent.parent.name)
        found = _of_tasks(source, [each.task for each in read], notes)
        return write_imported(out, about, chosen, found, lambda directory: write_trajectories(read, directory))
    check_options(WebArenaJudge, options, f"the format {chosen!r}")
    rows = list(WebArenaJudge(**options).rows(source))
    outcomes = [outcome_of(row) for row in rows]
    keys = [each.task.episode_key if isinstance(each, PredictedTask) else each for each in outcomes]
    notes = [f"judged by {PACKAGE} {version}"] if (version := version_of(rows)) else []
    tasks = [each for each in outcomes if isinstance(each, PredictedTask)]
    about = about._replace(model=about.model or source.resolve().name)
    return write_imported(out, about, chosen, _of_tasks(source, tasks, notes, keys))


def _folder_format(folder: Path) -> str:
    if any(folder.glob(f"*{ENDING}")):
        return ATIF
    if any(folder.glob("*/agent_response.json")):
        return PACKAGE
    if is_osworld(folder):
        return OSWORLD
    raise UsageError(
        f"{str(folder)!r} is a folder of no known format: expected trajectories (*{ENDING}), OSWorld's results "
        f"(<domain>/<task>/result.txt) or a folder a task with agent_response.json ({PACKAGE})"
    )


def _of_tasks(
    source: Path, tasks: Sequence[PredictedTask], notes: Sequence[str] = (), planned: Iterable[EpisodeKey] | None = None
) -> Found:
    """Outcomes of tasks in an environment; one of the ``planned`` without an outcome is missing."""
    keys = dict.fromkeys((each.task.episode_key for each in tasks) if planned is None else planned)

    def records() -> Iterator[Record]:
        ordered = sorted(tasks, key=lambda each: (each.task.episode_key, each.number))
        for _, same in groupby(ordered, key=lambda each: each.task.episode_key):
            repetitions = list(same)
            yield TaskRecord(task=repetitions[0].task, samples=tuple(each.repetition for each in repetitions))

    names = {key.benchmark for key in keys}
    if len(names) > 1:
        raise UsageError(f"the file has outcomes of several environments ({', '.join(sorted(names))}); keep the rows of one")
    text = f"the {len(keys):,} tasks of {source.name}"
    chosen = Selection([EpisodeRef(key, 1) for key in keys], {key: range(1) for key in keys}, "", text)
    return Found(next(iter(names)), ENVIRONMENT.name, chosen, records(), notes)
