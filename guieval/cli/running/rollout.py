"""``guieval rollout``: many samples of every step, in rounds of one seed each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.analysis.decisions.executions import read_executions
from guieval.analysis.decisions.subset import get_subset
from guieval.cli import options
from guieval.cli.running.perform import perform, print_notes
from guieval.cli.settings import RUN, Given, path_option
from guieval.cli.tables import JSON, echo, print_json, show
from guieval.errors import UsageError
from guieval.journal import new_directory, refuse_nested
from guieval.journal.run_folders import is_rollout
from guieval.registry import load_benchmark
from guieval.reports.tables.table import Cell, Table, columns, share
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.execute import Result
from guieval.running.kinds import kind_of
from guieval.running.resume.trust import resumed
from guieval.running.rollouts import PAPER_SAMPLES, plan_rounds, read_rollout, write_rollout
from guieval.settings import RunConfig
from guieval.settings.sampling import OPTIONS

_MOST_DIGITS = 20
"""Of a seed. Python refuses to convert thousands of digits; a number that is too large for a server is refused later."""


@RUN.options(
    *(
        "model",
        "bench",
        "mode",
        "limit",
        "seed",
        "data",
        "split",
        "subset",
        "episodes",
        "protocol",
        "adapter",
        "scaffold",
        "thinking",
    ),
    *("base_urls", "engine", "served_model", "concurrency", "timeout", "max_attempts", "patience", "fixed_thoughts", "samples"),
    *OPTIONS,
    mode="Mode: offline or soeval; soeval continues with a round's first sample.",
    samples="Samples of each step in a round (default: 64).",
)
def rollout(
    settings: Given,
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
    file = run_file(config)
    if resume is not None:
        for option, value in {"out": out, "rounds": rounds, "seeds": seeds, "preset": preset}.items():
            if value is not None:
                raise UsageError(f"--resume goes on with the rounds that are there; leave out --{option}")
        directory = resume
        base, known = read_rollout(resume)
        merged = resumed(base, file, override or [], settings, trust=trust_run, folder=resume)
        planned = plan_rounds(merged, seeds=known)
    else:
        merged = new_config(file, override or [], settings, fallback={"samples": PAPER_SAMPLES})
        if preset is not None:
            merged = _drawn_as(preset, merged)
        if "seed" in settings and merged.data.limit is None:
            raise UsageError(
                f"--seed {settings['seed']} draws the episodes of --limit N, and there is no --limit; "
                f"the rounds' seeds are --seeds A,B,..."
            )
        planned = plan_rounds(merged, rounds, _numbers(seeds))
        directory = out or new_directory(merged.model.name, merged.data.bench, "rollout", merged.history.mode)
        if not is_rollout(directory):  # beginning one where there is one already has its own answer
            refuse_nested(directory)
    if merged.cluster.kind != "none":
        raise UsageError("a rollout is done on one machine: leave out the setting 'cluster'")
    if kind_of(merged).unit != "step":
        raise UsageError("a rollout samples recorded steps; online, `guieval run --mode online --samples N` repeats every task")
    perform(
        [(each.config, directory / each.folder) for each in planned],
        fresh=resume is None,
        accept=accept_changes,
        quiet=quiet,
        root=directory,
        first=lambda: None if resume is not None else write_rollout(directory, merged, planned),
        show=lambda results: _show(directory, results, json=json),
    )


def _drawn_as(preset: str, settings: RunConfig) -> RunConfig:
    if settings.data.limit is not None:
        raise UsageError("--preset says how many episodes are drawn: leave out --limit")
    benchmark = load_benchmark(settings.data.bench, settings.data.folder, **settings.data.bench_options)
    subset = get_subset(preset)
    dataset = benchmark.dataset or benchmark.load(next(iter(benchmark.index()))).steps[0].dataset
    return settings.having(limit=subset.limit(dataset))


def _numbers(text: str | None) -> list[int]:
    numbers = []
    for part in (text or "").replace(",", " ").split():
        if not part.isdecimal() or len(part) > _MOST_DIGITS:
            raise UsageError(f"--seeds has {part!r:.80}: expected whole numbers like 7278727,7779397")
        numbers.append(int(part))
    return numbers


def _show(directory: Path, results: list[Result], *, json: bool) -> None:
    rows: list[tuple[Cell, ...]] = []
    plain: list[dict[str, Any]] = []
    measured = {each.outcome.directory.name: each.outcome.directory for each in results}
    for name, where in {**measured, "all rounds": directory}.items():
        steps = executions = different = without = failed = exact = 0
        for step in read_executions(where):
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
    print_notes(results)
    echo(f"decisions: guieval decisions {directory}")
