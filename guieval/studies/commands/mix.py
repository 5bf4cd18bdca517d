"""``guieval study mix``: a model over mixtures of reference and on-policy history, and how exact match goes with them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from guieval.cli import options
from guieval.cli.running.perform import Terminal, print_failure
from guieval.cli.settings import RUN, Given, Settings, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.engines.vllm.server import ServerFailure
from guieval.errors import FatalEngineError, ServersAway, UsageError
from guieval.history.mixing import REGIMES
from guieval.metrics.rounding import percentage
from guieval.reports.plots.paper import check_file
from guieval.reports.tables.table import Table, columns
from guieval.running.outcome import RunOutcome
from guieval.settings.sampling import OPTIONS
from guieval.studies.mix_sweep.running import OpenSweep
from guieval.studies.mix_sweep.sweep import (
    EqualOsr,
    MixOutcome,
    RegimeMetrics,
    Sweep,
    at_equal_osr,
    by_regime,
    effect_of_gap,
    effect_of_near,
)
from guieval.studies.mix_sweep.tables import TABLE, SweepResult, check_pool, finished, planned_sweep, pooled

SWEEP_SETTINGS = Settings.of(Sweep, {"seed": "mix_seed"})


@SWEEP_SETTINGS.options(into="sweep_settings")
@RUN.options(
    *("model", "bench", "mix_artifacts", "mix_decisions", "data", "base_urls", "engine", "subset", "sample_set"),
    *("episodes", "limit", "protocol", "scaffold", "thinking", "concurrency", "patience", *OPTIONS),
)
def mix(
    settings: Given,
    sweep_settings: Given,
    preset: Annotated[
        str | None, typer.Option(help="paper: 16 pairs of probabilities at 50 means; try (default): 9 pairs at 4.")
    ] = None,
    drawn_as: Annotated[
        str | None,
        typer.Option(help="Draw as many episodes as a study did, e.g. guievalkit-table-17, like `study rollout`."),
    ] = None,
    out: Annotated[Path | None, path_option("Folder to create for the sweep.")] = None,
    resume: Annotated[Path | None, path_option("Continue the sweep in this folder, or show its metrics.")] = None,
    pool: Annotated[Path | None, path_option("Show the sweeps in this folder, e.g. of several benchmarks, as one.")] = None,
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
    fields = sweep_settings | ({"pairs": tuple(map(_pair, sweep_settings["pairs"]))} if "pairs" in sweep_settings else {})
    if pool is not None:
        others = {"config": config, "set": override, "preset": preset, "drawn_as": drawn_as, "out": out, "resume": resume}
        check_pool(name for name, value in {**others, **sweep_settings, **settings}.items() if value)
        _print_metrics(pooled(pool, plot, wide), plot, json=json)
        return
    try:
        planned = planned_sweep(
            *(config, override or [], settings),
            preset=preset,
            drawn_as=drawn_as,
            sweep=fields,
            out=out,
            resume=resume,
            trust=trust_run,
        )
    except ValidationError as error:
        raise SWEEP_SETTINGS.refusal(error) from None
    stopped = _run(planned.open(), drop_answers=drop_answers, quiet=quiet)
    _print_metrics(finished(planned, plot, wide), plot, json=json)
    if stopped is not None:
        raise typer.Exit(stopped)


def _pair(text: str) -> tuple[float, float]:
    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError:
        raise UsageError(f"--pair is {text!r}: expected two probabilities as START:END, e.g. 0:1") from None


def _run(opened: OpenSweep | None, *, drop_answers: bool, quiet: bool) -> int | None:
    """Run every unfinished setting in its own run directory; return the exit code if some remain unfinished, else ``None``."""
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
    for stage, failures in ended.progress.by_stage.items():
        say(f"failed:   setting {number}: {counted(failures.count, 'step')} at {stage}, first: {failures.example}")
    if ended.gave_up:
        say(f"stopped:  setting {number}: too many requests in a row were not answered")


def _line(outcome: MixOutcome, settings: int) -> str:
    schedule = outcome.mix.schedule
    near = "" if outcome.mix.near is None else f" (near diverse decisions {outcome.mix.near:.3g})"
    osr = "-" if outcome.osr is None else f"{percentage(outcome.osr, '.1f')} %"
    return (
        f"{outcome.number + 1} of {settings}: {outcome.regime}, p {schedule.start:.3g} to {schedule.end:.3g}{near}, "
        f"mean {schedule.mean:.3f}: OSR {osr}, exact match {percentage(outcome.exact_match)} %"
    )


def _print_metrics(found: SweepResult, plot: Path | None, *, json: bool) -> None:
    outcomes, directory, several = found.outcomes, found.directory, len(found.benchmarks) > 1
    share = sum(each.available for each in outcomes) / sum(each.past for each in outcomes) if found.regimes else None
    equal, gap, near = at_equal_osr(outcomes), effect_of_gap(outcomes), effect_of_near(outcomes)
    if json:
        values = {"directory": directory, "settings": found.settings, "finished": len(outcomes), "replaceable": share}
        single = {name: {"regimes": by_regime(of), "outcomes": of} for name, of in found.benchmarks.items()} if several else {}
        values |= {"regimes": found.regimes, "equal_osr": equal, "effect_of_gap": gap, "outcomes": outcomes}
        values |= {} if near is None else {"effect_of_near": near}
        print_json({**values, **({"benchmarks": single} if several else {})})
    elif share is not None:
        names = ("settings", "OSR (%)", "exact match (%)", "mean", "Spearman R_s", "p")
        note = f"At most {percentage(share, '.1f')} % of the history can be replaced: the rest has no exact answer."
        steps = {name: of[0].steps for name, of in found.benchmarks.items() if of}
        pool = [f"Over {sum(steps.values()):,} steps: {', '.join(f'{name} {n:,}' for name, n in steps.items())}."] * several
        show(Table("", columns("regime", *names), tuple(map(_row, found.regimes)), (note, *pool)))
        if several:
            rows = [(name, *_row(each)) for name, of in found.benchmarks.items() for each in by_regime(of)]
            show(Table("Benchmark by benchmark", columns("benchmark", "regime", *names, keys=2), tuple(rows), keys=2))
        if equal:
            _show_equal(equal, gap)
        if near is not None:
            say(
                f"near diverse decisions: OSR {100 * near.osr:+.2f} points, exact match {100 * near.exact_match:+.2f} points "
                f"(mean over {near.n:,} settings, each against the same schedule without --near)"
            )
    elif outcomes:
        say("none of the steps has a past, so there is nothing to correlate, or to draw")
    if outcomes:
        echo(f"table:    {directory / TABLE}")
    if plot is not None and found.regimes:
        echo(f"picture:  {plot}")
    echo(f"{'sweeps:   ' if several else 'sweep:    '}{directory}")
    if not found.complete:
        say(f"left:     {found.settings - len(outcomes):,} of {found.settings:,} settings")
        for name, of in found.benchmarks.items() if several else ():
            if len(of) < found.settings:
                say(f"note: the sweep over {name} has finished {len(of):,} of {found.settings:,} settings")
        if not several:
            echo(f"resume:   guieval study mix --resume {shlex.quote(str(directory))}")


def _show_equal(parts: Sequence[EqualOsr], gap: float | None) -> None:
    regimes = [regime for regime in REGIMES if any(regime in each.n for each in parts)]
    rows = []
    for each in parts:
        cells = [
            f"{percentage(each.mean_exact_match[regime])} ({each.n[regime]:,})" if regime in each.n else "-"
            for regime in regimes
        ]
        rows.append((" to ".join(percentage(end, ".1f") for end in each.osr), *cells))
    note = "Mean exact match in %, and the number of settings, in five equal parts of the OSR that every regime reaches."
    notes = (
        [note] if gap is None else [note, f"A gap of +1 at equal OSR: {100 * gap:+.2f} points (least squares on OSR and gap)."]
    )
    show(Table("Exact match at equal OSR", columns("OSR (%)", *regimes), tuple(rows), tuple(notes)))


def _row(metrics: RegimeMetrics) -> tuple[str, ...]:
    def span(values: tuple[float, float]) -> str:
        low, high = map(percentage, values)
        return low if low == high else f"{low} to {high}"

    rank = metrics.rank
    rho = "-" if rank.rho is None else f"{rank.rho:.4f}"
    p = "-" if rank.p_value is None else "< 0.0001" if rank.p_value < 0.0001 else f"{rank.p_value:.4f}"
    mean = percentage(metrics.mean_exact_match)
    return metrics.regime, f"{metrics.n:,}", span(metrics.osr), span(metrics.exact_match), mean, rho, p
