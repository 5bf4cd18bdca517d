"""``guieval mix``: one model over many mixtures of reference and on-policy history, and how exact match goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, new_directory, path

if TYPE_CHECKING:
    from guieval.config import RunConfig
    from guieval.decisions.mix_sweep import MixOutcome, RegimeFigures, Sweep
    from guieval.decisions.mixing import Mix, Mixture
    from guieval.runner import Run, RunOutcome

SETTINGS, TABLE = "settings", "mixing.csv"


def mix(
    model: options.Model = None,
    bench: options.Bench = None,
    artifacts: Annotated[
        Path | None,
        typer.Option(parser=path, metavar="RUN", help="Run or rollout of the same model, whose exact answers are mixed in."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="paper: 16 pairs of probabilities at 50 means; try (default): 9 pairs at 4.")
    ] = None,
    levels: Annotated[int | None, typer.Option(help="Values over [0, 1] whose ordered pairs are gone through.")] = None,
    pair: Annotated[
        list[str] | None, typer.Option(metavar="START:END", help="Only this pair of probabilities; may be repeated.")
    ] = None,
    means: Annotated[int | None, typer.Option(help="Means of the probability at each pair.")] = None,
    shape: Annotated[str | None, typer.Option(help="Of the schedule: logistic (default), linear or constant.")] = None,
    kappa: Annotated[float | None, typer.Option(help="Sharpness of the logistic (default 16).")] = None,
    over: Annotated[
        str | None, typer.Option(help="What a schedule spans: each step's history (default), or the episode.")
    ] = None,
    mix_seed: Annotated[int | None, typer.Option(help="Seed of the draws (default 0).")] = None,
    pick: Annotated[
        str | None, typer.Option(help="Which exact answer of a step is mixed in: first (default) or seeded.")
    ] = None,
    out: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="Folder to create for the sweep.")] = None,
    resume: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Go on with the sweep in this folder, or show its figures.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="Picture to write: .pdf, .svg or .png.")] = None,
    width: options.Width = "column",
    drop_answers: Annotated[
        bool, typer.Option("--drop-answers", help="Keep of a finished setting its figures alone, and no run to score again.")
    ] = False,
    data: options.Data = None,
    base_url: options.BaseURL = None,
    engine: Annotated[str | None, typer.Option(help="Who answers, see `guieval run`.")] = None,
    subset: options.Subset = None,
    sample_set: options.SampleSet = None,
    episodes: options.Episodes = None,
    limit: options.Limit = None,
    protocol: options.Protocol = None,
    thinking: options.Thinking = None,
    concurrency: Annotated[str | None, typer.Option(metavar="N|auto", help="Requests in flight, see `guieval run`.")] = None,
    config: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="YAML file with any setting of a run.")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="setting=value, as of `guieval run`.")] = None,
    quiet: Annotated[bool, typer.Option(help="No line for each setting, only the result.")] = False,
) -> None:
    """Run a model under mixed histories, and correlate exact match with the online source ratio, regime by regime."""
    from guieval.config import merge
    from guieval.errors import UsageError, nearest
    from guieval.reports.plots import WIDTHS, check_file

    if width not in WIDTHS:
        raise UsageError(f"unknown --width {width!r}{nearest(width, WIDTHS)}; it is one of {', '.join(WIDTHS)}")
    if plot is not None:
        check_file(plot)
    flags = options.as_settings(
        model=model,
        bench=bench,
        mix_artifacts=artifacts,
        data=data,
        base_url=base_url,
        engine=engine,
        subset=subset,
        sample_set=sample_set,
        episodes=episodes,
        limit=limit,
        protocol=protocol,
        thinking=thinking,
        concurrency=concurrency,
    )
    asked: dict[str, Any] = {
        "levels": levels,
        "pairs": tuple(map(_pair, pair)) if pair else None,
        "means": means,
        "shape": shape,
        "kappa": kappa,
        "over": over,
        "seed": mix_seed,
        "pick": pick,
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    if resume is None:
        base: dict[str, Any] = {"compact": True}  # hundreds of runs over the same steps
        sweep = _sweep(preset or "try", asked)
        given = merge(config, override or [], flags, base=base)
        directory = out or new_directory(given.model, given.bench, "mix")
    else:
        if out is not None:
            raise UsageError("--resume names the sweep's folder; leave out --out")
        if asked or preset is not None:
            raise UsageError("--resume goes on with the settings that the sweep has; leave out what asks for others")
        from guieval.decisions.mix_sweep import read_sweep

        held = read_sweep(resume)
        base, sweep, directory = held.manifest["config"], held.sweep, resume
    base = {name: value for name, value in base.items() if name != "mix"}
    merged = merge(config, override or [], flags, base=base)
    _check(merged)
    stopped = _run(merged, sweep, directory, resumed=resume is not None, drop_answers=drop_answers, quiet=quiet)
    _tell(directory, len(sweep.mixes()), plot, width)
    if stopped is not None:
        raise typer.Exit(stopped)


def _check(config: RunConfig) -> None:
    from guieval.errors import UsageError

    if config.mix:
        raise UsageError("a sweep makes every setting's mix itself; leave out mix, or use `guieval run` for a single one")
    if config.mix_artifacts is None:
        raise UsageError("a sweep needs the answers to mix in: add --artifacts RUN, a run or rollout of the same model")
    if config.cluster != "none":
        raise UsageError("a sweep runs on this machine; leave out cluster")
    if config.budget is not None:
        raise UsageError("a budget is a run's, and a sweep has many; leave it out")


def _pair(text: str) -> tuple[float, float]:
    from guieval.errors import UsageError

    start, _, end = text.partition(":")
    try:
        return float(start), float(end)
    except ValueError:
        raise UsageError(f"--pair is {text!r}: expected two probabilities as START:END, e.g. 0:1") from None


def _sweep(preset: str, asked: dict[str, Any]) -> Sweep:
    """The preset with what was asked for in its place."""
    from pydantic import ValidationError

    from guieval.decisions.mix_sweep import Sweep, get_preset
    from guieval.errors import UsageError, first_problem

    try:
        return Sweep.model_validate({**get_preset(preset).model_dump(), **asked})
    except ValidationError as error:
        problem = first_problem(error)
        name = {"pairs": "pair", "seed": "mix-seed"}.get(problem.path[0], problem.path[0])
        raise UsageError(f"--{name} is {problem.value!r}: {problem.said}") from None


def _run(config: RunConfig, sweep: Sweep, directory: Path, *, resumed: bool, drop_answers: bool, quiet: bool) -> int | None:
    """Run every setting that is left, each in a run directory of its own; the exit code where some are left all the same."""
    import shutil

    from guieval.cli.launching import Launching, open_servers, tell
    from guieval.cli.telemetry import Telemetry
    from guieval.decisions.answer_pool import AnswerPool
    from guieval.decisions.mix_sweep import SweepFile, append_outcome, read_outcome, read_outcomes, read_sweep, write_sweep
    from guieval.engines.vllm_server import ServerFailure, sigterm_as_interrupt
    from guieval.errors import FatalEngineError
    from guieval.identity import refuse_unlike
    from guieval.journal import Journal, is_run
    from guieval.opening import open_run

    mixes = sweep.mixes()
    known = {each.number for each in read_outcomes(directory)} if resumed else set()
    left = [number for number in range(len(mixes)) if number not in known]
    given = _configured(config, mixes[0])
    if resumed:
        begun = read_sweep(directory).manifest
        refuse_unlike(begun, {**begun, "config": given.model_dump(mode="json")}, directory)
    if not left:
        return None
    (server,) = open_servers([given], directory / "vllm.log")
    first = open_run(given, _place(directory, 0, mixes[0]), server)
    manifest = first.manifest()
    if resumed:
        refuse_unlike(begun, manifest, directory)
    else:
        write_sweep(directory, SweepFile(sweep=sweep, manifest=manifest))
    if not quiet:
        typer.echo(_described(first, len(mixes)), err=True)
    once = _answers_alike(first)
    code: int | None = None
    try:
        # the sweep's own journal keeps a second process out, too
        with sigterm_as_interrupt(), Journal(directory, compact=True) as journal, Launching(quiet=quiet) as launching:
            pool = AnswerPool(journal) if once else None
            for number in left:
                where = _place(directory, number, mixes[number])
                opened = open_run(_configured(config, mixes[number]), where, server, like=first)
                if not is_run(where):
                    opened.begin()
                    if pool is not None:
                        pool.prefill(where, _mixture(opened), opened.selection.plan, opened.selection.refs)
                if server is not None and opened.left():
                    launching.use(server)
                ended = opened.execute(resume=True)
                Telemetry([opened], quiet=True).close(opened, ended)
                if pool is not None:
                    pool.add(where)
                outcome = read_outcome(where, number, _mixture(opened))
                if outcome is not None:
                    append_outcome(directory, outcome)
                    if drop_answers:
                        shutil.rmtree(where)
                    if not quiet:
                        typer.echo(_line(outcome, len(mixes)), err=True)
                if ended.interrupted:
                    return 130
                if outcome is None:
                    code = 1
                    _lost(number, ended)
                    launching.check()
                if ended.gave_up:
                    return code
    except ServerFailure as failure:  # every finished setting is kept, and another server can go on
        tell(failure)
        return 1
    except FatalEngineError as failure:  # say, no server: the figures, and the way to go on, are told all the same
        typer.echo(f"guieval: {' '.join(str(failure).split())}", err=True)
        return 2
    except KeyboardInterrupt:  # between two settings
        return 130
    return code


def _lost(number: int, ended: RunOutcome) -> None:
    """Say why a setting was not done to its end."""
    for stage, failures in ended.failures.items():
        said = f"{failures.count:,} steps at {stage}, the first because {failures.example}"
        typer.echo(f"failed:   setting {number}: {said}")
    if ended.gave_up:
        typer.echo(f"stopped:  setting {number}: too many requests in a row were not answered")


def _answers_alike(run: Run) -> bool:
    """Whether a server is asked, one sample a step and greedily: an equal prompt then has an equal answer."""
    from guieval.run_settings import is_greedy, sample_parameters

    config = run.config
    kind = run.model.config.engine if config.engine == "auto" else config.engine
    (first, *further) = sample_parameters(config, run.model.config)
    return kind not in ("local", "replay") and not further and is_greedy(first)


def _configured(config: RunConfig, mix: Mix) -> RunConfig:
    return config.model_copy(update={"mix": mix.model_dump(mode="json", exclude_none=True)})


def _place(directory: Path, number: int, mix: Mix) -> Path:
    from guieval.decisions.mix_sweep import setting_name

    return directory / SETTINGS / setting_name(number, mix)


def _mixture(run: Run) -> Mixture:
    from guieval.decisions.mixing import Mixture

    assert isinstance(run.mixture, Mixture)  # the run was opened with a mix
    return run.mixture


def _described(run: Run, settings: int) -> str:
    """What the sweep is over, and how much of it can be mixed at all."""
    from guieval.steps import StepKey

    artifacts = _mixture(run).artifacts.steps
    plan = run.selection.plan
    counted = sum(map(len, plan.values()))
    have = sum(StepKey(*key, index) in artifacts for key, steps in plan.items() for index in steps)
    once = "; decoding is greedy, so what was asked once is not asked again" if _answers_alike(run) else ""
    return f"{settings:,} settings of {counted:,} steps; {have:,} of the steps have an exact answer to mix in{once}"


def _line(outcome: MixOutcome, settings: int) -> str:
    schedule = outcome.mix.schedule
    osr = "-" if outcome.osr is None else f"{100 * outcome.osr:.1f} %"
    return (
        f"{outcome.number + 1} of {settings}: {outcome.regime}, p {schedule.start:.3g} to {schedule.end:.3g}, "
        f"mean {schedule.mean:.3f}: OSR {osr}, exact match {100 * outcome.exact_match:.2f} %"
    )


def _tell(directory: Path, settings: int, plot: Path | None, width: str) -> None:
    """The figures of what is finished: a table by regime, all settings as CSV, the picture, and how to go on."""
    import shlex

    from guieval.cli.tables import print_table
    from guieval.decisions.mix_sweep import as_csv, by_regime, points_by_regime, read_outcomes
    from guieval.journal import write_atomically

    outcomes = read_outcomes(directory)
    figures = by_regime(outcomes)
    if figures:
        header = ("regime", "settings", "OSR (%)", "exact match (%)", "mean", "Spearman R_s", "p")
        print_table(header, map(_row, figures))
        share = sum(each.available for each in outcomes) / sum(each.past for each in outcomes)
        typer.echo(f"\nat most {100 * share:.1f} % of the history can be replaced: the rest has no exact answer")
    elif outcomes:
        typer.echo("none of the steps has a past, so there is nothing to correlate, or to draw")
    if outcomes:
        write_atomically(directory / TABLE, as_csv(outcomes))
        typer.echo(f"table:    {directory / TABLE}")
    if plot is not None and figures:
        from guieval.reports.plots import Width, mixing, write

        wide: Width = "two-column" if width == "two-column" else "column"
        rho: dict[str, float | None] = {each.regime: each.rank.rho for each in figures}
        points = {str(regime): each for regime, each in points_by_regime(outcomes).items()}
        write(mixing(points, rho, wide), plot)
        typer.echo(f"picture:  {plot}")
    typer.echo(f"sweep:    {directory}")
    if len(outcomes) < settings:
        typer.echo(f"left:     {settings - len(outcomes):,} of {settings:,} settings")
        typer.echo(f"resume:   guieval mix --resume {shlex.quote(str(directory))}")


def _row(figures: RegimeFigures) -> tuple[str, ...]:
    def span(values: tuple[float, float]) -> str:
        low, high = (f"{100 * value:.2f}" for value in values)
        return low if low == high else f"{low} to {high}"

    rank = figures.rank
    rho = "-" if rank.rho is None else f"{rank.rho:.4f}"
    p = "-" if rank.p_value is None else "< 0.0001" if rank.p_value < 0.0001 else f"{rank.p_value:.4f}"
    mean = f"{100 * figures.mean_exact_match:.2f}"
    return figures.regime, f"{figures.n:,}", span(figures.osr), span(figures.exact_match), mean, rho, p
