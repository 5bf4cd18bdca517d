"""Does the runs of ``guieval run``, ``rollout`` and ``mix``, and prints their results."""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer

from guieval.cli.tables import echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.data.overlays import describe_overlay
from guieval.engines import describe_endpoint
from guieval.engines.vllm.server import ServerFailure
from guieval.errors import GuievalError, TrainingStopped, harmless
from guieval.history.modes import get_mode
from guieval.journal import RunFolder, is_run
from guieval.journal.caveats import describe_served
from guieval.journal.repeats import FOLDER
from guieval.journal.run_files import setup_line
from guieval.models.unlisted import resolution
from guieval.reports.console import Run, online_tables, report_json, report_tables, warning_lines
from guieval.running.api import common_folder
from guieval.running.costs import Tokens, bill, describe
from guieval.running.engine_choice import asks_a_model, never_asked
from guieval.running.execute import Job, Result, execute, repeated, resolve_jobs
from guieval.running.forecast import forecast
from guieval.running.kinds import KINDS
from guieval.running.progress.dashboard import PLAIN_SECONDS, Dashboard
from guieval.running.progress.display import Cost, Display, RunDisplay, Waited
from guieval.running.resume.trust import resume_command
from guieval.scoring.score import summary_of_runs
from guieval.settings import RunConfig
from guieval.wings import offered


class Terminal(Display):
    """Shows runs on standard error, or only notes if it is ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def following(self, title: str, cost: Cost) -> AbstractContextManager[RunDisplay]:
        return Dashboard(title, quiet=self._quiet, cost=cost)

    @contextmanager
    def starting(self, title: str) -> Iterator[Waited]:
        """Show the time and the log's last line: on a line that changes on a terminal, on a new line at times elsewhere."""
        status: Any = None
        shown = time.monotonic()
        closed = self._quiet
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console

            status = Console(stderr=True).status(_unmarked(f"{title} is starting"))

        def update(seconds: float, line: str) -> None:
            nonlocal shown, closed
            if closed:
                return
            text = harmless(f"{title} is starting, {seconds:.0f} s: {line}")
            try:
                if status is not None:
                    status.update(_unmarked(text[:200]))
                elif time.monotonic() - shown >= PLAIN_SECONDS:
                    shown = time.monotonic()
                    print(text, file=sys.stderr, flush=True)
            except OSError:  # the terminal is closed
                closed = True

        with status or nullcontext():
            yield update

    def note(self, text: str) -> None:
        say(text)


def _unmarked(text: str) -> Any:
    """A text in which rich looks for no markup."""
    from rich.text import Text

    return Text(harmless(text))


def print_failure(failure: ServerFailure) -> None:
    """Print on standard error how a server failed, with the last lines of its log."""
    if isinstance(failure.__cause__, type(failure)):  # the run adds a sentence to the original error
        failure = failure.__cause__
    say(f"guieval: {failure}" + ("; its last lines:" if failure.lines else ""), err=True)
    for line in failure.lines:
        say(f"  {line}", err=True)


def perform(
    configs: list[tuple[RunConfig, Path]],
    *,
    fresh: bool,
    quiet: bool,
    accept: bool = False,
    root: Path | None = None,
    resume: str | None = None,
    stages: Iterable[list[tuple[RunConfig, Path]]] | None = None,
    first: Callable[[], None] = lambda: None,
    show: Callable[[list[Result]], None],
) -> None:
    """Do runs one after the other, then print their results (with ``show``) and the command to continue.

    ``root`` is the folder that contains all runs, if their directories do not determine it, and ``resume`` the command that
    continues them, by default ``guieval run --resume``. ``stages`` are the runs in groups, of which each is begun once the one
    before is complete, and may need work before it, as a training. The other arguments are those of
    :func:`guieval.running.execute.execute`, the exit codes those of ``guieval run``.
    """
    directories = [directory for _, directory in configs]
    root = root or common_folder(directories)
    resume = resume or resume_command(root, [config for config, _ in configs])
    left, results = list(directories), list[Result]()
    directories = []
    try:
        for group in [configs] if stages is None else stages:
            jobs = resolve_jobs(group, root=root, accept_changes=accept)
            _print_resolution(jobs)
            directories += [job.directory for job in jobs]
            left = left[len(group) :]
            for result in execute(jobs, fresh=fresh, display=Terminal(quiet=quiet), first=first):
                results.append(result)
            if len(results) < len(directories) or not all(result.complete for result in results):
                break
    except ServerFailure as failure:  # what was answered is kept, and another server can go on with it
        if results:
            show(results)
        print_failure(failure)
        if results:
            _finish(results, [*directories, *left], root, resume)
        else:
            echo(f"resume:   {resume}")
        raise typer.Exit(1) from None
    except TrainingStopped as stopped:
        if results:
            show(results)
        say(f"stopped:  {stopped}")
        echo(f"resume:   {resume}")
        raise typer.Exit(130 if stopped.code == 130 else 1) from None
    except GuievalError:
        if results:
            show(results)
            _print_problems(results)
        raise
    except KeyboardInterrupt:  # while no run was under way
        if any(map(is_run, directories)) or stages is not None:
            echo(f"resume:   {resume}")
        raise
    show(results)
    _finish(results, [*directories, *left], root, resume)


def print_forecast(configs: list[tuple[RunConfig, Path]]) -> None:
    """Print what runs would send, from their beginning; nothing is sent or written."""
    configs = [(never_asked(config), directory) for config, directory in configs]
    jobs = resolve_jobs(configs, root=common_folder([directory for _, directory in configs]))
    _print_resolution(jobs)
    for job in jobs:
        if not asks_a_model(job.run.config, job.run.model.config):
            say(f"requests: none: {job.run.config.model.name} answers in this process or from an earlier run")
            continue
        for label, text in forecast(job.run).lines():
            say(f"{label + ':':<10}{text}")
    say("nothing was sent, and nothing was written")


def _print_resolution(jobs: list[Job]) -> None:
    """Print on standard error what was chosen for each unlisted checkpoint, and why."""
    for lines in dict.fromkeys(tuple(resolution(job.run.model.config)) for job in jobs):
        for line in lines:
            say(line, err=True, indent=10)


def print_results(results: list[Result], *, json: bool) -> None:
    """Print the tables of the runs, or their metrics as JSON, and what a reader should know with them."""
    groups = repeated(results)
    shown = [(get_mode(own[0].config.history.mode), _run(own)) for own in groups]
    drawn = [own[0].outcome.run.benchmark.perturbation for own in groups]
    effects = offered("perturbed", "effects")([own[0].directory for own in groups]) if any(drawn) else []
    if json:
        plain = [{**_plain(own), **report_json(run.summary)} for own, (_, run) in zip(groups, shown, strict=True)]
        print_json({"runs": plain, **({"effects": effects} if effects else {})})
    else:
        clean = [each for each, how in zip(shown, drawn, strict=True) if not how] or shown
        steps, tasks = ([run for mode, run in clean if mode.is_over(kind)] for kind in KINDS)
        show(*(report_tables(steps) if steps else ()), *(online_tables(tasks) if tasks else ()))
        if effects:
            show(None, *offered("perturbed", "tables")(effects))
        for line in warning_lines(steps):
            say(f"Warning: {line}")
    print_notes(results)


def _run(own: Sequence[Result]) -> Run[Any]:
    """A run, or the mean over repeats, with its heading for tables."""
    config, outcome, summary = own[0][:3]
    if len(own) > 1:
        summary = summary_of_runs([result.directory for result in own])
    run, protocol = outcome.run, outcome.run.protocol.name * own[0].kind.judged_again
    lines = [f"{config.data.bench} {summary.mode}", run.selection.title, protocol]
    lines += [f"{len(own)} repeats"] * (len(own) > 1)
    marks = [run.foreign] * bool(run.foreign) + ["with overlay"] * (run.overlay is not None)
    return Run("\n".join(filter(None, (RunFolder(outcome.directory).label, *lines, *marks))), summary)


def _plain(own: Sequence[Result]) -> dict[str, Any]:
    result, several = own[0], len(own) > 1
    config, outcome = result.config, result.outcome
    failures: Counter[str] = Counter()
    for each in own:
        failures.update({stage: found.count for stage, found in each.outcome.progress.by_stage.items()})
    return {
        "directory": outcome.directory.parent if several else outcome.directory,
        **({"repeats": [each.directory for each in own]} if several else {}),
        "model": config.model.name,
        "benchmark": config.data.bench,
        "mode": result.summary.mode,
        "protocol": outcome.run.protocol.name,
        "selection": outcome.run.selection.text,
        "interrupted": any(each.outcome.interrupted for each in own),
        "failures": failures if several else outcome.progress.by_stage,
        "warnings": list(dict.fromkeys(warning for each in own for warning in each.outcome.progress.warnings)),
        "frame_audit": _frame_audits(own),
    }


def _frame_audits(results: Sequence[Result]) -> list[str]:
    """The findings of the frame audits of an unlisted checkpoint's runs, each once."""
    found = (RunFolder(result.outcome.directory).manifest.frame_audit for result in results)
    return list(dict.fromkeys(filter(None, found)))


def print_notes(results: list[Result], *, rounds: bool = False) -> None:
    """Print notes below the metrics: steps, overlays and servers. ``rounds``: the runs are those of rollouts."""
    manifests = [RunFolder(result.outcome.directory).manifest for result in results]
    for text in dict.fromkeys(line for manifest in manifests for line in describe_served(manifest)):
        say(f"served:   {text}")
    of_setup: defaultdict[str, list[str]] = defaultdict(list)
    groups = repeated(results)
    if rounds:
        of_rollout: dict[Path, list[Result]] = {}
        for result in results:
            of_rollout.setdefault(result.directory.parent, []).append(result)
        groups = [*of_rollout.values()]
    several = len({result.mode for result in results}) < len(groups)  # e.g. models, or rollouts of several benchmarks
    for own in groups:
        drawn = bool(own[0].outcome.run.benchmark.perturbation)  # each picture makes another request
        text = setup_line([RunFolder(each.directory).manifest for each in own], request=not drawn)
        of_setup[text].append((own[0].directory.parent if rounds else own[0].directory).name if several else own[0].mode)
    for text, names in of_setup.items():
        say(f"set-up:   {', '.join(names) + ': ' if len(of_setup) > 1 else ''}{text}")
    for text in dict.fromkeys(result.outcome.run.selection.text for result in results):
        say(f"data:     {text}")
    for text in dict.fromkeys(filter(None, (manifest.benchmark.edition_line for manifest in manifests))):
        say(f"labels:   {text}")
    for text in dict.fromkeys(each.scaffold_line for each in manifests):
        say(f"scaffold: {text}")
    for text in _frame_audits(results):
        say(f"frame:    {text}")
    overlays = [result.outcome.run.overlay for result in results if result.outcome.run.overlay is not None]
    for text in dict.fromkeys(describe_overlay(overlay.file, overlay.sha256, overlay.steps) for overlay in overlays):
        say(f"overlay:  {text}")
    for text in dict.fromkeys(filter(None, (result.config.history.fixed_thoughts for result in results))):
        say(f"thoughts: those of the run {text}")
    damaged = [error for result in results[:1] for error in result.outcome.run.selection.damaged]
    if damaged:
        say(f"damaged:  {len(damaged):,} left out, first: {damaged[0]}")
    for own in groups:
        spent = [each.spent for each in own if each.spent is not None]
        line = describe(bill(sum((each.tokens for each in spent), Tokens()), spent[0].price)) if spent else None
        if line is not None:
            label = f"{'cost:' if spent[0].price else 'tokens:':<10}{own[0].config.history.mode}"
            named = f" of {own[0].directory.parent.name}" * (rounds and several)
            of = f" ({counted(len(own), 'round' if rounds else 'repeat')})" * (len(own) > 1)
            say(f"{label}{named}{of}: {line}")
    for result in results:
        for note in result.notes:
            say(note)
        for server in result.outcome.endpoints if len(result.outcome.endpoints) > 1 else ():
            say(f"server:   {result.config.history.mode}: {describe_endpoint(server)}")


def _finish(results: list[Result], directories: list[Path], root: Path, resume: str) -> None:
    """Print the paths, and last why the runs stopped and the command to continue; exit code 0 only if every run is complete."""
    complete = len(results) == len(directories) and all(result.complete for result in results)
    board = " (leaderboard.md, .html and .tex)" * (root / "leaderboard.md").is_file()
    echo(f"run:      {root}{board}")
    if any(result.kind.judged_again for result in results):
        echo(f"re-score: guieval score {shlex.quote(str(root))} --protocol NAME")
    _print_problems(results)
    if left := len(directories) - len(results):
        say(f"not begun: {left:,} of {counted(len(directories), 'run')}, the first {directories[len(results)]}")
    if not complete:
        echo(f"resume:   {resume}")
    if any(result.outcome.interrupted for result in results):
        raise typer.Exit(130)
    if not complete or any(result.unread for result in results):
        raise typer.Exit(1)


def _print_problems(results: list[Result]) -> None:
    """Print what went wrong and, last, why a run stopped: one line for each kind, with the runs that had it."""
    modes = [result.config.history.mode for result in results]
    found: dict[str, list[str]] = {}
    failed: dict[str, tuple[int, str, list[str]]] = {}
    for result, mode in zip(results, modes, strict=True):
        run = mode if len(set(modes)) == len(modes) else _place(result.directory)
        for stage, failures in result.outcome.progress.by_stage.items():
            count, example, runs = failed.setdefault(stage, (0, failures.example, []))
            failed[stage] = (count + failures.count, example, [*runs, run])
        for problem in _problems(result):
            found.setdefault(problem, []).append(run)
    for stage, (count, example, runs) in failed.items():
        say(f"failed:   {', '.join(dict.fromkeys(runs))}: {counted(count, 'step')} at {stage}, first: {example}")
    for problem, runs in sorted(found.items(), key=lambda each: each[0].startswith("stopped:")):
        label, _, text = problem.partition(":")
        say(f"{label + ':':<10}{', '.join(dict.fromkeys(runs))}: {text.strip()}")


def _place(directory: Path) -> str:
    """A run by the name of its directory, a repeat in a folder of its model's by the name of that folder."""
    return (directory.parent if FOLDER.fullmatch(directory.name) else directory).name


def _problems(result: Result) -> Iterator[str]:
    outcome = result.outcome
    yield from (f"warning: {warning}" for warning in outcome.progress.warnings)
    if result.unread:
        records = RunFolder(outcome.directory).records
        texts = any(getattr(sample, "raw_response", None) for record in records for sample in record.samples)
        again = "; after a change of the adapter `guieval score RUN --reparse` reads them again" if texts else ""
        yield (
            f"unread: none of the {result.summary.verdicts.unparseable:,} responses could be read as an action, so the metrics "
            f"say nothing about the model{again}"
        )
    if outcome.interrupted:
        yield "stopped: on request"
    elif outcome.progress.halted:
        yield f"stopped: {outcome.progress.halted}"
    elif outcome.gave_up:
        alone = result.config.cluster.kind == "none"
        yield "stopped: " + ("too many requests in a row were not answered" if alone else "no worker is left")
