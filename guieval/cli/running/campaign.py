"""``guieval campaign``: all runs of a file, one after the other or one process for each model, then one leaderboard."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.running.perform import perform
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo, say, show
from guieval.errors import UsageError
from guieval.reports.campaign import board_of_campaign, comparison_table
from guieval.reports.exchange.exported import slug
from guieval.reports.leaderboards.formats import board_tables, format_named, written
from guieval.reports.tables.table import Number, Table, columns
from guieval.running.campaign import Campaign, PlannedRun, planned, read_campaign
from guieval.running.estimate import Estimate, estimates
from guieval.running.execute import resolve_jobs
from guieval.telemetry.costs import amount

_LOADING = ("vllm", "vllm-inprocess", "transformers")
"""Engines that load a model on this machine."""


def campaign(
    file: Annotated[Path, path_argument("FILE", "The campaign: a YAML file, or the name of a shipped one.")],
    out: Annotated[Path | None, path_option("Folder of the runs (default: runs/NAME); the same folder continues them.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this model of the campaign; may be repeated.")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Run so many models at once, each in a process of its own.")] = 1,
    data: Annotated[Path | None, path_option("Data folder of a campaign with one benchmark.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Server of a campaign with one model.")] = None,
    override: options.Override = None,
    pace: Annotated[float | None, typer.Option(min=0, help="Answers a second, for the estimate of the time.")] = None,
    quiet: options.Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs, cost, time and power; send nothing.")] = False,
) -> None:
    """Run models x benchmarks x modes x seeds from one file, and print one leaderboard and one comparison.

    The same command continues a campaign that was stopped. Cost, time and the smallest difference that the steps can show are
    estimated first.
    """
    read = read_campaign(file)
    folder = out or Path("runs") / file.stem
    _check_single(read, data, base_url)
    flags = {"data": None if data is None else str(data), "base_urls": base_url}
    runs = planned(read, folder, override or [], only or (), **flags)
    if parallel > 1 and not dry_run:
        _refuse_loading(runs)
    jobs = resolve_jobs([(run.config, run.directory) for run in runs], root=folder)
    found = estimates(jobs, pace=pace, disagreement=read.disagreement, icc=read.icc)
    _print_estimates(found)
    if dry_run:
        echo("nothing was sent, and no run directory was made")
        return
    if parallel > 1:
        _side_by_side(file, folder, runs, parallel, [*(override or []), *(f"{k}={v}" for k, v in flags.items() if v)])
        _print_board(read, runs, folder)
        return
    configs = [(run.config, run.directory) for run in runs]
    perform(configs, fresh=False, quiet=quiet, root=folder, show=lambda _: _print_board(read, runs, folder))


def _check_single(read: Campaign, data: Path | None, base_url: str | None) -> None:
    if data is not None and len(read.benchmarks) > 1:
        raise UsageError("--data is for a campaign with one benchmark; give each of several its own 'data' in the file")
    if base_url is not None and len(read.models) > 1:
        raise UsageError("--base-url is for a campaign with one model; give each of several its own 'base_urls' in the file")


def _refuse_loading(runs: Sequence[PlannedRun]) -> None:
    for run in runs:
        if run.config.engine in _LOADING:
            loads = f"engine {run.config.engine!r} of {run.model} loads a model on this machine"
            raise UsageError(f"--parallel is for servers that are already up, and {loads}")


def _print_estimates(found: Sequence[Estimate]) -> None:
    """A line for each run, then the sums and what the steps can show."""
    rows = tuple((each.name, each.steps, each.left, *_sizes(each)) for each in found)
    show(Table("Runs", columns("run", "steps", "left", "tokens in", "tokens out at most", "cost about"), rows))
    seconds = [each.seconds for each in found]
    known = [value for value in seconds if value is not None]
    time = _hours(sum(known)) if len(known) == len(seconds) else "not known before each model has finished a run (--pace)"
    say(f"time:     {time}")
    costs: dict[str, float] = {}
    for each in found:
        if (made := _cost(each)) is not None:
            costs[made[1]] = costs.get(made[1], 0.0) + made[0] * each.left / max(1, each.steps)
    for currency, value in costs.items():
        say(f"cost:     about {amount(value, currency)} for what is left, without discounts")
    for steps, episodes, smallest in dict.fromkeys((each.steps, each.episodes, each.detectable) for each in found):
        points = "no difference" if smallest is None else f"a difference of {100 * smallest:.1f} points"
        say(f"power:    {steps:,} steps of {episodes:,} episodes show {points} in exact match 4 times out of 5")


def _sizes(each: Estimate) -> tuple[Number | None, Number | None, str]:
    made = each.forecast
    if made is None or made.prompt_tokens is None:
        return None, None, "no model is asked" if made is None else "not known"
    out = None if made.reply_tokens is None else Number(made.requests * made.reply_tokens, ",.0f")
    cost = _cost(each)
    return Number(made.requests * made.prompt_tokens, ",.0f"), out, "no price" if cost is None else amount(*cost)


def _cost(each: Estimate) -> tuple[float, str] | None:
    """Amount and currency of all prompts of a run, and of replies as long as they may be."""
    made = each.forecast
    if made is None or made.price is None or made.prompt_tokens is None:
        return None
    tokens = made.prompt_tokens * made.price.input + (made.reply_tokens or 0) * made.price.output
    return made.requests * tokens / 1e6, made.price.currency


def _hours(seconds: float) -> str:
    return f"about {seconds / 3600:.1f} h" if seconds >= 3600 else f"about {seconds / 60:.0f} min"


def _side_by_side(file: Path, folder: Path, runs: Sequence[PlannedRun], parallel: int, settings: Sequence[str]) -> None:
    """Run each model in a process of its own, ``parallel`` at a time; its output goes to ``MODEL.log`` in the folder.

    Ctrl-C reaches these processes too, so that their runs stop in order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given = [word for setting in settings for word in ("--set", setting)]

    def one(model: str) -> tuple[str, int]:
        command = [sys.executable, "-m", "guieval", "campaign", str(file), "--out", str(folder), "--only", model, "--quiet"]
        with (folder / f"{slug(model)}.log").open("ab") as log:
            return model, subprocess.run([*command, *given], stdout=log, stderr=log, check=False).returncode

    with ThreadPoolExecutor(parallel) as pool:
        for model, code in pool.map(one, dict.fromkeys(run.model for run in runs)):
            echo(f"{model}: {'done' if code == 0 else f'exit code {code}'}; its output is in {folder / f'{slug(model)}.log'}")


def _print_board(read: Campaign, runs: Sequence[PlannedRun], folder: Path) -> None:
    """Print the leaderboard and the comparison, and write the leaderboard beside the runs."""
    board = board_of_campaign([run.directory for run in runs], read.protocols, read.references, read.figures)
    if board is None:
        return
    first = runs[0].model
    by_rest: dict[str, dict[str, PlannedRun]] = {}
    for run in runs:
        by_rest.setdefault(run.rest, {})[run.model] = run
    pairs = [
        (rest, same[first].directory, run.directory)
        for rest, same in by_rest.items()
        for model, run in same.items()
        if first in same and model != first
    ]
    show(*board_tables(board), comparison_table(pairs))
    for name in ("leaderboard.md", "leaderboard.html", "leaderboard.tex"):
        (folder / name).write_text(written(board, format_named(None, folder / name)), encoding="utf-8")
    echo(f"written:  {folder / 'leaderboard'}.md, .html and .tex")
