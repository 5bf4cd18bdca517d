"""``guieval record``: make an offline benchmark of what succeeded online, or of an expert's demonstrations."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.options import loader_options
from guieval.cli.running.online import is_online
from guieval.cli.running.run_folders import several_runs
from guieval.cli.settings import path_option
from guieval.cli.tables import echo
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.journal import Records
from guieval.online.demonstrate import demonstrate
from guieval.online.find import load_environment
from guieval.online.record import record as write_episodes

EXPERT = "expert"


def record(
    out: Annotated[Path, path_option("Folder to write.")],
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help="Online runs, or folders of runs.")] = None,
    bench: Annotated[str | None, typer.Option(help="Environment whose expert acts, instead of runs, e.g. miniwob.")] = None,
    agent: Annotated[str, typer.Option(help="Who acts in --bench: expert, the environment's own.")] = EXPERT,
    seed: Annotated[int, typer.Option(help="First seed of the expert's tasks.")] = 0,
    seeds: Annotated[int, typer.Option(help="Seeds per task, from --seed on.")] = 1,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="Option of the environment, e.g. scale=4.")] = None,
) -> None:
    """Make an offline benchmark of the successful trajectories of online runs, or of an environment's own expert.

    `--bench episodes` reads it.
    """
    if (bench is None) == (not runs):
        raise UsageError("name online runs, or an environment with --bench")
    if bench is not None:
        if agent != EXPERT:
            instead = f"guieval run --model {agent} --bench {bench} --mode online"
            raise UsageError(f"--agent is {agent!r}; expected 'expert'; to record a model: `{instead}`, `guieval record RUN`")
        if seeds < 1:
            raise UsageError(f"--seeds is {seeds}; expected at least 1")
        _demonstrations(bench, out, range(seed, seed + seeds), task, override or ())
    else:
        _successes(runs or [], out)
    echo(f"next: guieval run --model NAME --bench episodes --data {shlex.quote(str(out))}")


def _successes(runs: list[Path], out: Path) -> None:
    chosen = [run for run in several_runs(runs) if is_online(run)]
    if not chosen:
        raise UsageError(f"{str(runs[0])!r} holds no online run; `guieval run --mode online` makes one")
    recorded = write_episodes({run: list(Records(run)) for run in chosen}, out)
    parts = counted(recorded.episodes, "episode"), counted(recorded.steps, "step"), counted(recorded.failed, "task")
    echo("{}: {}, {}; {} without a success".format(out, *parts))


def _demonstrations(bench: str, out: Path, seeds: range, tasks: list[str] | None, overrides: list[str] | tuple[()]) -> None:
    environment = load_environment(bench, **loader_options(overrides))
    done = demonstrate(environment, out, seeds, tasks)
    count = len(done.succeeded) + len(done.failed) + len(done.unknown)
    echo(f"{out}: {counted(done.episodes, 'episode')}, {counted(done.steps, 'step')}")
    echo(f"the expert succeeds in {len(done.succeeded):,} of {counted(count, 'task')}")
    for what, names in (("fails in", done.failed), ("knows no way in", done.unknown)):
        if names:
            echo(f"it {what} {len(names):,}: {', '.join(names)}")
