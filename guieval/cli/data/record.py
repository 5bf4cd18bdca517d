"""``guieval data record``: make an offline benchmark of what succeeded online, or of an expert's demonstrations."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.cli.options import loader_options
from guieval.cli.settings import RUN, Given, path_option
from guieval.cli.tables import echo, say
from guieval.data.doctor.counts import counted
from guieval.errors import GuievalError, UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import runs_over, several_runs
from guieval.online.demonstrate import Demonstrations, demonstrate
from guieval.online.find import load_environment
from guieval.online.record import record as write_episodes
from guieval.online.record import record_every
from guieval.running.api import run
from guieval.running.progress.bar import progress_bar
from guieval.wings import offered

EXPERT = "expert"


@RUN.options(
    *("bench", "base_urls", "adapter", "engine", "seed"),
    bench="Environment whose expert acts, instead of runs, e.g. miniwob.",
    seed="First seed of the tasks (default: 0).",
)
def record(
    settings: Given,
    out: Annotated[Path, path_option("Folder to write.")],
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help="Online runs, or folders of runs.")] = None,
    agent: Annotated[str, typer.Option(help="Agent that acts in --bench: a model, or expert, the environment's own.")] = EXPERT,
    seeds: Annotated[int, typer.Option(help="Seeds per task, from --seed on.")] = 1,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Also what other actions lead to, for mode graph.")] = False,
    depth: Annotated[int, typer.Option(help="With --graph: how far from the expert's screens all is tried.")] = 0,
    every: Annotated[bool, typer.Option("--every", help="Every repetition of one run, whatever it came to.")] = False,
    override: Annotated[list[str] | None, typer.Option("--set", help="Option of the environment, e.g. scale=4.")] = None,
) -> None:
    """Make an offline benchmark of successful trajectories: of online runs, of a model, or of an environment's own expert.

    `--bench episodes` reads it. A model's run stays next to it, in OUT-run. The same command continues what was stopped.
    """
    bench, seed = settings.pop("bench", None), settings.get("seed", 0)
    if (bench is None) == (not runs):
        raise UsageError("name online runs, or an environment with --bench")
    if seeds < 1:
        raise UsageError(f"--seeds is {seeds}; expected at least 1")
    if agent == EXPERT and settings.keys() & {"base_urls", "adapter", "engine"}:
        raise UsageError("--base-url, --adapter and --engine belong to a model: add --agent MODEL")
    if graph and (bench is None or agent != EXPERT or seeds > 1 or every):
        raise UsageError("--graph is of an environment's expert and one seed: name the environment with --bench")
    if depth and not graph:
        raise UsageError("--depth is for --graph")
    if depth < 0:
        raise UsageError(f"--depth is {depth}; expected at least 0")
    if every:
        if bench is not None:
            raise UsageError("--every records a run: name one in place of --bench")
        _every(runs or [], out)
        return
    if bench is not None and agent != EXPERT:
        if task:
            raise UsageError(
                "--task chooses tasks of the expert; for a model: `guieval run --episodes FILE`, then `guieval data record RUN`"
            )
        _successes([_acted(bench, out, {**settings, "model": agent, "samples": seeds}, override or ())], out)
    elif bench is not None and graph:
        environment = load_environment(bench, **loader_options(override or ()))
        with progress_bar(f"recording {bench}", "attempts and graphs") as bar:
            made = offered("recorders", "graph")(environment, out, seed=seed, tasks=task, depth=depth, on_progress=bar)
        _say_demonstrations(out, made.demonstrations)
        say(f"{counted(made.graphs, 'graph')}: {counted(made.screens, 'screen')}, {counted(made.edges, 'edge')}")
        echo(f"next: guieval run --model NAME --bench episodes --data {shlex.quote(str(out))} --mode graph")
        return
    elif bench is not None:
        _demonstrations(bench, out, range(seed, seed + seeds), task, override or ())
    else:
        _successes(runs or [], out)
    echo(f"next: guieval run --model NAME --bench episodes --data {shlex.quote(str(out))}")


def _acted(bench: str, out: Path, settings: Mapping[str, Any], overrides: Sequence[str]) -> Path:
    """The online run of a model, continued if it was stopped."""
    if out.exists():
        raise UsageError(f"{str(out)!r} exists; name a new folder")
    directory = out.with_name(f"{out.name}-run")
    if directory.exists():
        again = {name: settings[name] for name in ("base_urls", "adapter") if name in settings}  # a folder's own: not trusted
        done = run(resume=directory, **again)
    else:
        done = run(mode="online", bench=bench, bench_options=loader_options(overrides), out=directory, **settings)
    if not done.complete:
        raise GuievalError(f"the run {str(directory)!r} is not complete; give the same command again to continue it")
    return directory


def _successes(runs: list[Path], out: Path) -> None:
    chosen = runs_over("tasks", several_runs(runs), "`guieval run --mode online` makes one")
    recorded = write_episodes({directory: list(RunFolder(directory).tasks) for directory in chosen}, out)
    parts = counted(recorded.episodes, "episode"), counted(recorded.steps, "step"), counted(recorded.failed, "task")
    say("{}: {}, {}; {} without a success".format(out, *parts))


def _every(runs: list[Path], out: Path) -> None:
    run, *others = runs_over("tasks", several_runs(runs), "`guieval run --mode online` makes one")
    if others:
        raise UsageError(f"--every records one run, and these are {1 + len(others)}")
    done = record_every(run, RunFolder(run).tasks, out)
    parts = counted(done.episodes, "episode"), counted(done.steps, "step"), counted(done.failed, "repetition")
    say("{}: {}, {}; {} without a success".format(out, *parts))
    judge = f"--model JUDGE --bench episodes --data {shlex.quote(str(out))}"
    echo(f"next: guieval run --fixed-thoughts {shlex.quote(str(run))} {judge}")


def _demonstrations(bench: str, out: Path, seeds: range, tasks: list[str] | None, overrides: Sequence[str]) -> None:
    environment = load_environment(bench, **loader_options(overrides))
    with progress_bar(f"recording {bench}", "attempts") as bar:
        done = demonstrate(environment, out, seeds, tasks, on_progress=bar)
    _say_demonstrations(out, done)


def _say_demonstrations(out: Path, done: Demonstrations) -> None:
    count = len(done.succeeded) + len(done.failed) + len(done.unknown)
    say(f"{out}: {counted(done.episodes, 'episode')}, {counted(done.steps, 'step')}")
    say(f"the expert succeeds in {len(done.succeeded):,} of {counted(count, 'task')}")
    for what, names in (("fails in", done.failed), ("has no rule for", done.unknown)):
        if names:
            say(f"it {what} {counted(len(names), 'task')}: {', '.join(names)}")
