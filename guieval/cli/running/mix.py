"""``guieval mix``: one model over many mixtures of reference and on-policy history, and how exact match goes with them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from guieval.analysis.mix_sweep.running import OpenSweep
from guieval.analysis.mix_sweep.sweep import (
    MixOutcome,
    RegimeMetrics,
    Sweep,
    as_csv,
    by_regime,
    get_preset,
    points_by_regime,
    read_outcomes,
    read_sweep,
)
from guieval.cli import options
from guieval.cli.running.perform import Terminal, print_failure
from guieval.cli.settings import RUN, Given, Settings, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.engines.vllm.server import ServerFailure
from guieval.errors import FatalEngineError, ServersAway, UsageError
from guieval.journal import SWEEP, new_directory, refuse_nested, write_atomically
from guieval.metrics.rounding import percentage
from guieval.reports.plots.paper import Width, check_file, write
from guieval.reports.plots.scaling import mixing
from guieval.reports.tables.table import Table, columns
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.running.outcome import RunOutcome
from guieval.running.resume.trust import resumed
from guieval.settings import RunConfig
from guieval.settings.sampling import OPTIONS

TABLE = "mixing.csv"
SWEEP_SETTINGS = Settings.of(Sweep, {"seed": "mix_seed"})


@SWEEP_SETTINGS.options(into="sweep_settings")
@RUN.options(
    *("model", "bench", "mix_artifacts", "data", "base_urls", "engine", "subset", "sample_set", "episodes", "limit"),
    *("protocol", "scaffold", "thinking", "concurrency", "patience", *OPTIONS),
)
def mix(
    settings: Given,
    sweep_settings: Given,
    preset: Annotated[
        str | None, typer.Option(help="paper: 16 pairs of probabilities at 50 means; try (default): 9 pairs at 4.")
    ] = None,
    out: Annotated[Path | None, path_option("Folder to create for the sweep.")] = None,
    resume: Annotated[Path | None, path_option("Continue the sweep in this folder, or show its metrics.")] = None,
    plot: options.Picture = None,
    width: options.Width = "column",
    drop_answers: Annotated[
        bool, typer.Option("--drop-answers", help="Keep only the metrics of a finished setting, not its run.")
    ] = False,
    config: options.Config = None,
    override: options.Override = None,
    trust_run: options.TrustRun = False,
    quiet: options.Quiet = False,
    json: JSON = False,
) -> None:
    """Run a model under mixed histories, and correlate exact match with the online source ratio, regime by regime."""
    wide = options.check_width(width)
    if plot is not None:
        check_file(plot)
    file = run_file(config)
    if resume is None:
        sweep = _sweep(preset or "try", sweep_settings)
        # hundreds of runs over the same steps
        merged = new_config(file, override or [], settings, fallback={"compact": True})
        directory = out or new_directory(merged.model.name, merged.data.bench, "mix")
        if not (directory / SWEEP).exists():  # beginning one where there is one already has its own answer
            refuse_nested(directory)
    else:
        if out is not None:
            raise UsageError("--resume names the sweep's folder; leave out --out")
        if sweep_settings or preset is not None:
            raise UsageError("--resume goes on with the settings that the sweep has; leave out what asks for others")
        held = read_sweep(resume)
        sweep, directory = held.sweep, resume
        recorded = held.manifest.config.to_json()
        recorded.get("history", {}).pop("mix", None)
        merged = resumed(recorded, file, override or [], settings, trust=trust_run, folder=resume)
    _check(merged)
    stopped = _run(merged, sweep, directory, resumed=resume is not None, drop_answers=drop_answers, quiet=quiet)
    _print_metrics(directory, len(sweep.mixes()), plot, wide, json=json)
    if stopped is not None:
        raise typer.Exit(stopped)


def _check(config: RunConfig) -> None:
    if config.history.mix:
        raise UsageError("a sweep makes every setting's mix itself; leave out mix, or use `guieval run` for a single one")
    if config.history.mix_artifacts is None:
        raise UsageError("a sweep needs the answers to mix in: add --artifacts RUN, a run or rollout of the same model")
    if config.cluster.kind != "none":
        raise UsageError("a sweep runs on this machine; leave out cluster")
    if config.tracking.budget is not None:
        raise UsageError("a budget is a run's, and a sweep has many; leave it out")


def _pair(text: str) -> tuple[float, float]:
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError:
        raise UsageError(f"--pair is {text!r}: expected two probabilities as START:END, e.g. 0:1") from None


def _sweep(preset: str, given: Given) -> Sweep:
    pairs = {"pairs": tuple(map(_pair, given["pairs"]))} if "pairs" in given else {}
    try:
        return Sweep.model_validate({**get_preset(preset).model_dump(), **given, **pairs})
    except ValidationError as error:
        raise SWEEP_SETTINGS.refusal(error) from None


def _run(config: RunConfig, sweep: Sweep, directory: Path, *, resumed: bool, drop_answers: bool, quiet: bool) -> int | None:
    """Run every unfinished setting in its own run directory; return the exit code if some remain unfinished, else ``None``."""
    opened = OpenSweep.of(config, sweep, directory, resumed=resumed)
    if opened is None:
        return None
    if not quiet:
        say(opened.description, err=True)
    code: int | None = None
    try:
        for number, ended, outcome in opened.run(Terminal(quiet=quiet), drop_answers=drop_answers):
            if outcome is not None and not quiet:
                say(_line(outcome, len(opened.mixes)), err=True)
            if ended.interrupted:
                code = 130
            elif outcome is None:
                code = 1
                _report_lost(number, ended)
    except ServerFailure as failure:  # every finished setting is kept, and another server can continue
        print_failure(failure)
        return 1
    except FatalEngineError as failure:  # e.g. no server answers: the metrics, and how to continue, are printed all the same
        say(f"guieval: {' '.join(str(failure).split())}", err=True)
        return 1 if isinstance(failure, ServersAway) else 2
    except KeyboardInterrupt:  # between two settings
        return 130
    return code


def _report_lost(number: int, ended: RunOutcome) -> None:
    for stage, failures in ended.failures.items():
        say(f"failed:   setting {number}: {counted(failures.count, 'step')} at {stage}, first: {failures.example}")
    if ended.gave_up:
        say(f"stopped:  setting {number}: too many requests in a row were not answered")


def _line(outcome: MixOutcome, settings: int) -> str:
    schedule = outcome.mix.schedule
    osr = "-" if outcome.osr is None else f"{percentage(outcome.osr, '.1f')} %"
    return (
        f"{outcome.number + 1} of {settings}: {outcome.regime}, p {schedule.start:.3g} to {schedule.end:.3g}, "
        f"mean {schedule.mean:.3f}: OSR {osr}, exact match {percentage(outcome.exact_match)} %"
    )


def _print_metrics(directory: Path, settings: int, plot: Path | None, width: Width, *, json: bool) -> None:
    outcomes = read_outcomes(directory)
    metrics = by_regime(outcomes)
    share = sum(each.available for each in outcomes) / sum(each.past for each in outcomes) if metrics else None
    if json:
        values = {"directory": directory, "settings": settings, "finished": len(outcomes), "replaceable": share}
        print_json({**values, "regimes": metrics, "outcomes": outcomes})
    elif share is not None:
        header = columns("regime", "settings", "OSR (%)", "exact match (%)", "mean", "Spearman R_s", "p")
        note = f"At most {percentage(share, '.1f')} % of the history can be replaced: the rest has no exact answer."
        show(Table("", header, tuple(map(_row, metrics)), (note,)))
    elif outcomes:
        say("none of the steps has a past, so there is nothing to correlate, or to draw")
    if outcomes:
        write_atomically(directory / TABLE, as_csv(outcomes))
        echo(f"table:    {directory / TABLE}")
    if plot is not None and metrics:
        rho: dict[str, float | None] = {each.regime: each.rank.rho for each in metrics}
        points = {str(regime): each for regime, each in points_by_regime(outcomes).items()}
        write(mixing(points, rho, width), plot)
        echo(f"picture:  {plot}")
    echo(f"sweep:    {directory}")
    if len(outcomes) < settings:
        say(f"left:     {settings - len(outcomes):,} of {settings:,} settings")
        echo(f"resume:   guieval mix --resume {shlex.quote(str(directory))}")


def _row(metrics: RegimeMetrics) -> tuple[str, ...]:
    def span(values: tuple[float, float]) -> str:
        low, high = map(percentage, values)
        return low if low == high else f"{low} to {high}"

    rank = metrics.rank
    rho = "-" if rank.rho is None else f"{rank.rho:.4f}"
    p = "-" if rank.p_value is None else "< 0.0001" if rank.p_value < 0.0001 else f"{rank.p_value:.4f}"
    mean = percentage(metrics.mean_exact_match)
    return metrics.regime, f"{metrics.n:,}", span(metrics.osr), span(metrics.exact_match), mean, rho, p
