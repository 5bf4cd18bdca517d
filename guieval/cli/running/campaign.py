"""``guieval campaign``: all runs of a file, one after the other or one process for each model, then one leaderboard."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.running.perform import perform
from guieval.cli.settings import RUN, Given, path_argument, path_option
from guieval.cli.tables import echo, say, show
from guieval.data.doctor.counts import counted
from guieval.data.names import name_part
from guieval.errors import UsageError
from guieval.reports.campaign import planned_campaign, written_board
from guieval.reports.leaderboards.formats import board_tables
from guieval.reports.tables.table import Number, Row, Table, bare, columns
from guieval.running.campaign import Campaign, PlannedRun, staged, trainings_of
from guieval.running.costs import amount
from guieval.running.engine_choice import LOADING
from guieval.running.estimate import Estimate, estimates, of_jobs, side_by_side, without_servers
from guieval.running.execute import resolve_jobs
from guieval.running.kinds import kind_of
from guieval.settings.sampling import OPTIONS
from guieval.wings import offered


@RUN.options(
    *("data", "base_urls", "scaffold", "limit", "seed", "concurrency", "timeout", "max_attempts", "patience"),
    *("budget", "prices", "tags", "note", *OPTIONS),
    data="Data folder, of a campaign with one benchmark.",
    base_urls="Server, of a campaign with one model; may be repeated.",
)
def campaign(
    settings: Given,
    file: Annotated[Path, path_argument("FILE", "The campaign: a YAML file, or the name of a shipped one.")],
    out: Annotated[Path | None, path_option("Folder of the runs (default: runs/NAME); the same folder continues them.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this model of the campaign; may be repeated.")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Number of models to run at once, each in a process of its own.")] = 1,
    override: options.Override = None,
    pace: Annotated[float | None, typer.Option(min=0, help="Responses per second of one model, to estimate the time.")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Rank and compare runs whose labels differ too.")] = False,
    quiet: options.Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print runs, cost, time and power; start nothing.")] = False,
) -> None:
    """Run every model on every benchmark in every mode with every seed of a file; print one leaderboard and one comparison.

    The same command continues a campaign that was stopped. Cost, time and the smallest detectable difference are estimated
    first. With `train`, each training of the file comes first, then its evaluations.
    """
    read, folder, runs = planned_campaign(file, out, override or [], only or (), settings)
    trainings = trainings_of(runs)
    if parallel > 1 and not dry_run:
        _refuse_loading(runs)
    configs = [(run.config, run.directory) for run in runs]
    unfinished = any(training.state != "finished" for training in trainings)
    early = dry_run or unfinished
    sized = without_servers(configs) if early else of_jobs(resolve_jobs(configs, root=folder))
    found = estimates(sized, pace=pace, disagreement=read.disagreement, icc=read.icc)
    models = {run.directory: run.model for run in runs}
    if trainings and early:
        offered("campaigns", "plan")(trainings, runs, {each.directory: own for each, own in zip(sized, found, strict=True)})
    _print_estimates(found, [models[each.directory] for each in sized], parallel, whole=dry_run and not trainings)
    if dry_run:
        say("nothing was sent, and nothing was written")
        return
    given = {f"sampling.{OPTIONS[name]}" if name in OPTIONS else name: value for name, value in settings.items()}
    same = [*(override or []), *(f"{name}={dumps(value)}" for name, value in given.items())]
    words = ["guieval", "campaign", str(file), "--out", str(folder), *(word for value in same for word in ("--set", value))]
    resume = shlex.join([*words, *(word for name in only or () for word in ("--only", name))])
    if parallel > 1:
        failed = _side_by_side(words, folder, runs, parallel)
        _print_board(read, runs, folder, anyway)
        echo(f"run:      {folder} (leaderboard.md, .html and .tex)")
        if failed:
            for model, code in failed.items():
                say(f"stopped:  {model}: exit code {code}; its output is in {folder / f'{name_part(model)}.log'}")
            echo(f"resume:   {resume} --parallel {parallel}")
            raise typer.Exit(max(1, *failed.values()))
        return
    board = partial(_print_board, read, runs, folder, anyway)
    stages = staged(runs, say) if trainings else None
    perform(configs, fresh=False, quiet=quiet, root=folder, resume=resume, stages=stages, show=lambda _: board())


def _refuse_loading(runs: Sequence[PlannedRun]) -> None:
    for run in runs:
        if run.training is not None:
            raise UsageError("--parallel is for servers that are already up, and trainings need these GPUs: use --only")
        if run.config.server.engine in LOADING:
            loads = f"engine {run.config.server.engine!r} of {run.model} loads a model on this machine"
            raise UsageError(f"--parallel is for servers that are already up, and {loads}")


def _print_estimates(found: Sequence[Estimate], models: Sequence[str], parallel: int, *, whole: bool) -> None:
    """A row for each run and one for all, then what is left and what the steps can show; ``models`` are those of the runs.

    Unless it is the ``whole`` estimate, one line in place of the rows.
    """
    left = [each for each in found if each.left != 0]
    time = _time(found, models, parallel) if left else ""
    lacking = ["time (--pace)"] * (time is None)
    priceless = [each.config.model.name for each in left if each.forecast and each.forecast.price is None]
    if priceless:
        some = f" of {', '.join(dict.fromkeys(priceless))}" if len(priceless) < sum(each.asks for each in left) else ""
        lacking.append(f"price{some} (--prices)")
    unknown = " and ".join(lacking)
    if not whole:
        number = counted(sum(each.left or 0 for each in left), kind_of(found[0].config).unit)
        more = f"{number} left" + f"; {unknown} unknown" * bool(lacking) if left else "nothing is left to run"
        say(f"runs:     {counted(len(found), 'run')}, {more}")
    else:
        rows: list[Row] = [(each.name, each.steps, each.left, *_sizes(each)) for each in found]
        if len(found) > 1:
            rows += [(), _in_all(found)]
        names = ("run", "steps", "left", "tokens in", "tokens out (at most)", "cost (about)")
        heads = columns(*names, spare=("tokens out (at most)",))
        show(Table("Runs", heads, tuple(rows)), full="A wider terminal shows all.")
        if lacking:
            say(f"unknown:  {unknown}")
    without = [each.config for each in found if each.missing_data]
    away = (each for each in found if each.missing_data and not kind_of(each.config).needs_data(each.config))
    for line in dict.fromkeys(map(_server_away, away)):
        say(f"server:   {line}")
    data = [each.data for each in without if kind_of(each).needs_data(each)]
    if missing := dict.fromkeys(each.folder or f"the data of {each.bench}" for each in data):
        say(f"data:     not found: {', '.join(missing)}; tokens and cost are not known, and the steps are published numbers")
    if time:
        say(f"time:     {time}")
    costs: dict[str, float] = {}
    for each in found:
        if (made := _cost(each)) is not None:
            costs[made[1]] = costs.get(made[1], 0.0) + made[0] * (each.left or 0) / max(1, each.steps or 0)
    for currency, value in costs.items():
        say(f"cost:     about {amount(value, currency)} for what is left, without discounts")
    worst: dict[str, float] = {}
    for each in found:
        expected = each.forecast
        if expected is None or expected.price is None or (most := expected.worst_cost(each.left or 0)) is None:
            continue
        worst[expected.price.currency] = worst.get(expected.price.currency, 0.0) + most
    for currency, value in worst.items():
        say(f"at worst: {amount(value, currency)} for what is left, if every attempt but the last fails after it was paid")
    few = [each for each in found if each.steps and each.detectable is None]
    if few:
        sizes = dict.fromkeys(each.steps or 0 for each in few)
        number = " or ".join(
            [*(f"{each:,}" for each in list(sizes)[:-1]), counted(list(sizes)[-1], kind_of(few[0].config).unit)]
        )
        say(f"power:    {number} {'is' if [*sizes] == [1] else 'are'} too few to detect any difference (power 80 %)")
    for line in dict.fromkeys(_power(each, most) for each in found if each.steps and (most := each.detectable) is not None):
        say(f"power:    {line}")


def _server_away(each: Estimate) -> str:
    """What is not known of a run whose environment does not answer."""
    known = "the tasks and their time are"
    if each.steps is not None:
        known = f"the {counted(each.steps, 'task')} are the published ones, and their time is"
    return f"of {each.config.data.bench} does not answer, so {known} not known"


def _time(found: Sequence[Estimate], models: Sequence[str], parallel: int) -> str | None:
    """How long the runs that are left take, ``parallel`` models at a time; ``None`` if that is known of none."""
    by_model: dict[str, float] = {}
    for each, model in zip(found, models, strict=True):
        by_model[model] = by_model.get(model, 0.0) + (each.seconds or 0.0)
    known = sum(each.seconds is not None for each in found)
    state_pace = "--pace N states how many responses one model gives per second"
    if not any(each.seconds for each in found):
        return None
    sure = "at most" if any(each.at_most and each.seconds for each in found) else "about"
    at_once = f", {min(parallel, len(by_model))} models at once" if parallel > 1 and len(by_model) > 1 else ""
    text = f"{sure} {_hours(side_by_side(list(by_model.values()), parallel))}{at_once}"
    if known == len(found):
        return text
    uncounted = all(each.left is None for each in found if each.seconds is None)
    why = "the steps of the others are not known without their data" if uncounted else f"of the others not known; {state_pace}"
    return f"{text} for {known} of {counted(len(found), 'run')}; {why}"


def _power(each: Estimate, detectable: float) -> str:
    kind = kind_of(each.config)
    number = counted(each.steps or 0, kind.unit)
    steps = f"{number} of {counted(each.episodes or 0, 'episode')}" if each.episodes != each.steps else number
    return f"{steps} can detect a difference of {100 * detectable:.1f} points in {kind.measure} (power 80 %)"


def _sizes(each: Estimate) -> tuple[Number | None, Number | None, str]:
    made = each.forecast
    if made is None or made.prompt_tokens is None:
        return None, None, "not known" if each.asks else "no model"
    out = None if made.response_tokens is None else bare(made.requests * made.response_tokens, ",.0f")
    cost = _cost(each)
    return bare(made.requests * made.prompt_tokens, ",.0f"), out, "no price" if cost is None else amount(*cost)


def _cost(each: Estimate) -> tuple[float, str] | None:
    """Amount and currency of all prompts of a run, and of responses as long as they may be."""
    made = each.forecast
    if made is None or made.price is None or made.prompt_tokens is None:
        return None
    tokens = made.prompt_tokens * made.price.input + (made.response_tokens or 0) * made.price.output
    return made.requests * tokens / 1e6, made.price.currency


def _in_all(found: Sequence[Estimate]) -> Row:
    """The sums over all runs; without a number that one of them does not have, but for the cost of those with a price."""
    asking = [_sizes(each) for each in found if each.asks]
    counts = [[each.steps for each in found], [each.left for each in found]]
    tokens = [[None if size is None else size.of.value for size in sizes[:2]] for sizes in asking]
    sums = [None if None in values else sum(filter(None, values)) for values in (*counts, *zip(*tokens, strict=True))]
    costs: dict[str, float] = {}
    for each in found:
        if (made := _cost(each)) is not None:
            costs[made[1]] = costs.get(made[1], 0.0) + made[0]
    cost = " + ".join(amount(value, currency) for currency, value in costs.items()) or ("no price" if asking else None)
    cells = [*sums[:2], *(None if value is None else bare(value, ",.0f") for value in (*sums[2:], None, None)[:2])]
    return "in all", *cells, cost


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{max(1, round(seconds / 60))} min"


def _side_by_side(words: Sequence[str], folder: Path, runs: Sequence[PlannedRun], parallel: int) -> dict[str, int]:
    """Run each model in a process of its own, ``parallel`` at a time; its output goes to ``MODEL.log`` in the folder.

    The exit codes of those that failed, by model. Ctrl-C reaches these processes too, so that their runs stop in order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    failed: dict[str, int] = {}

    def one(model: str) -> tuple[str, int]:
        command = [sys.executable, "-m", *words, "--only", model, "--quiet"]
        with (folder / f"{name_part(model)}.log").open("ab") as log:
            return model, subprocess.run(command, stdout=log, stderr=log, check=False).returncode

    with ThreadPoolExecutor(parallel) as pool:
        for model, code in pool.map(one, dict.fromkeys(run.model for run in runs)):
            if code:
                failed[model] = code
            else:
                say(f"{model}: done; its output is in {folder / f'{name_part(model)}.log'}")
    return failed


def _print_board(read: Campaign, runs: Sequence[PlannedRun], folder: Path, anyway: bool) -> None:
    """Print the leaderboard and the comparison, or the table of trainings; the leaderboard is written next to the runs."""
    board, against_first = written_board(read, runs, folder, anyway=anyway)
    if any(run.training is not None for run in runs):
        show(offered("campaigns", "results")(read, runs, folder, anyway=anyway))
    elif board is not None:
        show(*board_tables(board, brief=True), against_first)
