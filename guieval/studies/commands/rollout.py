"""``guieval study rollout``: many samples of every step, in rounds of one seed each."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.running.perform import perform, print_notes
from guieval.cli.settings import RUN, Given, path_option
from guieval.cli.tables import JSON, echo, print_json, show
from guieval.errors import UsageError
from guieval.reports.tables.table import Cell, Table, columns, share
from guieval.running.execute import Result
from guieval.settings.sampling import OPTIONS
from guieval.studies.decisions.executions import read_executions
from guieval.studies.rollout import planned_rollouts

_MOST_DIGITS = 20
"""Of a seed. Python refuses to convert thousands of digits; a number that is too large for a server is refused later."""


@RUN.options(
    *("model", "mode", "limit", "seed", "data", "split", "subset", "episodes", "protocol", "adapter", "scaffold", "thinking"),
    *("base_urls", "engine", "served_model", "concurrency", "timeout", "max_attempts", "patience", "fixed_thoughts", "samples"),
    *OPTIONS,
    mode="Mode: offline or soeval; soeval continues with a round's first sample.",
    samples="Samples of each step in a round (default: 64).",
)
def rollout(
    settings: Given,
    bench: Annotated[
        list[str] | None,
        typer.Option(
            help="Benchmark; may be repeated: then --out has a rollout for each, --data and --fixed-thoughts a folder for each."
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds, each with a seed of its own (default 8).")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Seed of each round (default: those of the GUIEvalKit paper).")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Draw as many episodes as a study did, e.g. guievalkit-table-17.")] = None,
    out: Annotated[Path | None, path_option("Rollout directory to create (default: below runs/).")] = None,
    resume: Annotated[Path | None, path_option("Continue the rounds in this directory.")] = None,
    config: options.Config = None,
    override: options.Override = None,
    trust_run: options.TrustRun = False,
    accept_changes: options.AcceptChanges = False,
    quiet: options.Quiet = False,
    json: JSON = False,
) -> None:
    """Draw many samples of every step, in rounds of one seed each, or continue one that was stopped."""
    directory, planned = planned_rollouts(
        bench or [],
        config,
        override or [],
        settings,
        rounds=rounds,
        seeds=None if seeds is None else _numbers(seeds),
        preset=preset,
        out=out,
        resume=resume,
        trust=trust_run,
    )

    def begin() -> None:
        for each in planned:
            each.begin()

    perform(
        [run for each in planned for run in each.runs],
        fresh=planned[0].fresh,
        accept=accept_changes,
        quiet=quiet,
        root=directory,
        resume=f"guieval study rollout --resume {shlex.quote(str(directory))}" if len(planned) > 1 else None,
        first=begin,
        show=lambda results: _show(directory, results, json=json),
    )


def _numbers(text: str) -> list[int]:
    numbers = []
    for part in text.replace(",", " ").split():
        if not part.isdecimal() or len(part) > _MOST_DIGITS:
            raise UsageError(f"--seeds has {part!r:.80}: expected whole numbers like 7278727,7779397")
        numbers.append(int(part))
    return numbers


def _show(directory: Path, results: list[Result], *, json: bool) -> None:
    rows: list[tuple[Cell, ...]] = []
    plain: list[dict[str, Any]] = []
    runs = [each.outcome.directory for each in results]
    rollouts = [*dict.fromkeys(run.parent for run in runs)]  # the directory itself, or one for each benchmark in it
    shown = {str(run.relative_to(directory)): (run, [run]) for run in runs} | {"all rounds": (directory, rollouts)}
    for name, (where, parts) in shown.items():
        steps = executions = different = without = failed = exact = 0
        for step in chain.from_iterable(map(read_executions, parts)):
            steps += 1
            executions += step.n
            different += len(step.actions)
            without += step.unparseable
            failed += step.failed
            exact += step.right
        counts = {"steps": steps, "executions": executions, "different": different, "no action": without, "failed": failed}
        exact_share = exact / executions if executions else None
        rows.append((name, *counts.values(), share(exact_share, unit=False)))
        plain.append({"round": name, "directory": where, **counts, "exact": exact, "exact_executions": exact_share})
    if json:
        print_json({"directory": directory, "rounds": plain})
    else:
        show(Table("Rollout", columns("round", *counts, "exact executions (%)", spare=("no action",)), tuple(rows)))
    print_notes(results, rounds=True)
    echo(f"decisions: guieval study decisions {directory}{'' if rollouts == [directory] else ' --pool'}")
