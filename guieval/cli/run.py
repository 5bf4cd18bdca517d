"""``guieval run``: evaluate a model on a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, new_directory, path

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from guieval.cli.telemetry import Telemetry
    from guieval.cluster import Cluster
    from guieval.config import RunConfig
    from guieval.metrics import RunSummary
    from guieval.runner import Run, RunOutcome


def run(
    model: options.Model = None,
    bench: options.Bench = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="offline, soeval or sop; may be repeated. With --resume: only these.")
    ] = None,
    data: options.Data = None,
    base_url: options.BaseURL = None,
    engine: Annotated[
        str | None, typer.Option(help="Who answers; vllm starts a server for the run (arguments: --set vllm.NAME=VALUE).")
    ] = None,
    reuse_server: Annotated[
        bool | None, typer.Option("--reuse-server", help="Engine vllm: use a server left running, and leave it running.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Run directory to create (default: below runs/).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Go on with the run, or the runs, in this directory.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only this split, or all (default: test where the data has one, else all).")
    ] = None,
    subset: options.Subset = None,
    sample_set: options.SampleSet = None,
    episodes: options.Episodes = None,
    skip_damaged: Annotated[
        bool | None, typer.Option("--skip-damaged", help="Leave out episodes that cannot be read, and say so.")
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="JSONL file of further accepted actions.")
    ] = None,
    limit: options.Limit = None,
    patch: Annotated[
        str | None, typer.Option(help="Patch mismatches in mode sop: thought-free, off-policy or on-policy.")
    ] = None,
    patch_budget: Annotated[
        str | None, typer.Option(metavar="N|unlimited", help="Mismatches of an episode to patch (default 1).")
    ] = None,
    patch_model: Annotated[str | None, typer.Option(help="Auxiliary model that writes off-policy thoughts.")] = None,
    patch_base_url: Annotated[list[str] | None, typer.Option(help="Its OpenAI-compatible endpoint; may be repeated.")] = None,
    protocol: options.Protocol = None,
    thinking: options.Thinking = None,
    adapter: options.Adapter = None,
    served_model: options.ServedModel = None,
    replay: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Answer from the journal of this earlier run.")
    ] = None,
    fixed_thoughts: options.FixedThoughts = None,
    samples: Annotated[int | None, typer.Option(help="Answers to each step, for pass@n and votes (default 1).")] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(metavar="N|auto", help="Requests in flight, or auto to find out (default 64; engine vllm: auto)."),
    ] = None,
    timeout: options.Timeout = None,
    max_attempts: options.MaxAttempts = None,
    cluster: Annotated[
        str | None, typer.Option(help="ray runs on the machines of a Ray cluster; none, with --resume, on this one.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Workers on the cluster (default one a machine, or by GPUs).")] = None,
    cluster_address: Annotated[str | None, typer.Option(help="auto, local or the HOST:PORT of a Ray cluster.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the --limit sample (default 0).")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the API key.")] = None,
    config: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="YAML file with any of these settings.")
    ] = None,
    override: options.Override = None,
    budget: Annotated[float | None, typer.Option(help="Begin no further step once the estimated cost comes to this.")] = None,
    prices: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="YAML file of prices per million tokens.")
    ] = None,
    track: Annotated[list[str] | None, typer.Option(help="Also tell wandb, mlflow or trackio; may be repeated.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate a model on a benchmark, or go on with a run that was stopped."""
    from guieval.config import merge
    from guieval.errors import UsageError

    flags = options.as_settings(
        model=model,
        bench=bench,
        data=data,
        base_url=base_url,
        split=split,
        subset=subset,
        sample_set=sample_set,
        episodes=episodes,
        skip_damaged=skip_damaged,
        overlay=overlay,
        limit=limit,
        patch=patch,
        patch_budget=patch_budget,
        patch_model=patch_model,
        patch_base_url=patch_base_url,
        protocol=protocol,
        thinking=thinking,
        adapter=adapter,
        served_model=served_model,
        replay=replay,
        engine=engine or ("replay" if replay else None),
        reuse_server=reuse_server,
        fixed_thoughts=fixed_thoughts,
        samples=samples,
        concurrency=concurrency,
        timeout=timeout,
        max_attempts=max_attempts,
        cluster=cluster,
        workers=workers,
        cluster_address=cluster_address,
        seed=seed,
        api_key_env=api_key_env,
        budget=budget,
        prices=prices,
        track=track,
    )
    if resume is not None:
        if out is not None:
            raise UsageError("--resume names the run directory; leave out --out")
        jobs = _resumed(resume, mode, config, override or [], flags)
    else:
        first = merge(config, override or [], {**flags, "mode": mode[0] if mode else None})
        modes = mode or [first.mode]
        configs = [first.model_copy(update={"mode": name}) for name in dict.fromkeys(modes)]
        parent = out or new_directory(first.model, first.bench, *(modes if len(modes) == 1 else []))
        jobs = [(item, parent / item.mode if len(configs) > 1 else parent) for item in configs]
    perform(jobs, fresh=resume is None, quiet=quiet)


def perform(
    jobs: list[tuple[RunConfig, Path]],
    *,
    fresh: bool,
    quiet: bool,
    root: Path | None = None,
    first: Callable[[], None] = lambda: None,
    show: Callable[[list[Result]], None] | None = None,
) -> None:
    """Do runs one after the other, print what they came to (with ``show``) and how to go on.

    ``root`` is the folder that they are all below, where their number does not say it. Directories are begun all together
    where they hold no run yet, and must not where the runs are ``fresh``; ``first`` is called just before, when every name is
    known to be right. Exit codes are those of ``guieval run``.
    """
    from guieval.cli.launching import Launching, open_servers, tell
    from guieval.cli.telemetry import Telemetry
    from guieval.cluster import absorb_shards, has_shards
    from guieval.engines.vllm_server import ServerFailure, sigterm_as_interrupt
    from guieval.errors import GuievalError
    from guieval.journal import is_run
    from guieval.opening import open_run

    show = show or _print
    directories = [directory for _, directory in jobs]
    root = root or _above(directories)
    servers = open_servers([item for item, _ in jobs], root / "vllm.log")
    # all first: an unknown name is told before any work
    runs = [open_run(item, directory, server) for (item, directory), server in zip(jobs, servers, strict=True)]
    telemetry = Telemetry(runs, quiet=quiet)
    results: list[Result] = []
    try:
        # a run stops in order by itself; this is for what lies before, between and behind runs
        with sigterm_as_interrupt(), Launching(quiet=quiet) as launching, _machines(runs[0].config) as machines:
            first()  # only now: where there is no cluster, there is to be no directory either
            for opened in runs:
                if fresh or not is_run(opened.directory):
                    opened.begin()  # all first here too: a resume must know of the runs that were not reached
            for opened, server in zip(runs, servers, strict=True):
                if machines is None:
                    if has_shards(opened.directory):  # of a cluster run that was killed
                        absorb_shards(opened)
                    if server is not None and opened.left():  # minutes of loading for nothing otherwise
                        launching.use(server)
                with telemetry.following(opened):
                    outcome = opened.execute(resume=True) if machines is None else machines.execute(opened)
                summary, notes = telemetry.close(opened, outcome)
                results.append(Result(opened.config, outcome, summary, notes))
                if outcome.interrupted:
                    break
                if not summary.complete:
                    launching.check()
                if outcome.gave_up or outcome.halted:
                    break
    except ServerFailure as failure:  # what was answered is kept, and another server can go on with it
        results += _broken_off(runs, telemetry)
        if results:
            show(results)
        tell(failure)
        if results:
            _finish(results, directories, root)
        else:
            typer.echo(_how_to_resume(root))
        raise typer.Exit(1) from None
    except GuievalError:
        results += _broken_off(runs, telemetry)
        if results:
            show(results)
        raise
    except KeyboardInterrupt:  # while no run was under way
        if any(map(is_run, directories)):
            typer.echo(_how_to_resume(root))
        raise
    show(results)
    _finish(results, directories, root)


def _machines(config: RunConfig) -> AbstractContextManager[Cluster | None]:
    """The workers of a cluster, where the run is to be done by one."""
    from contextlib import nullcontext

    from guieval.cluster import Cluster

    return Cluster(config) if config.cluster == "ray" else nullcontext()


class Result(NamedTuple):
    """What one run came to."""

    config: RunConfig
    outcome: RunOutcome
    summary: RunSummary
    notes: list[str]


def _broken_off(runs: list[Run], telemetry: Telemetry) -> list[Result]:
    """What the run that an error ended had come to, unless it had come to nothing."""
    found: list[Result] = []
    for each in runs:
        if each.broken_off is not None:
            summary, notes = telemetry.close(each, each.broken_off)
            found.append(Result(each.config, each.broken_off, summary, notes))
    return found


def _resumed(
    directory: Path, modes: list[str] | None, file: Path | None, overrides: list[str], flags: dict[str, Any]
) -> list[tuple[RunConfig, Path]]:
    from guieval.config import merge
    from guieval.errors import UsageError
    from guieval.journal import is_run, read_manifest

    found = [directory] if is_run(directory) else sorted(each for each in directory.glob("*") if is_run(each))
    if not found:
        raise UsageError(f"there is nothing to resume: {str(directory)!r} holds no run")
    jobs = [(merge(file, overrides, flags, base=read_manifest(each)["config"]), each) for each in found]
    here = {item.mode for item, _ in jobs}
    for mode in modes or ():
        if mode not in here:
            raise UsageError(f"{str(directory)!r} holds no run in mode {mode!r}, only in {', '.join(sorted(here))}")
    return [(item, each) for item, each in jobs if not modes or item.mode in modes]


def _print(results: list[Result]) -> None:
    from guieval.reports.console import print_report

    labels = [
        f"{config.model}\n{config.bench} {summary.mode}\n{outcome.selection.title}\n{outcome.protocol}"
        + "\nwith overlay" * (outcome.overlay is not None)
        for config, outcome, summary, _ in results
    ]
    print_report([(label, result.summary) for label, result in zip(labels, results, strict=True)])
    print_notes(results)


def print_notes(results: list[Result]) -> None:
    """What the reader should know beside the figures: the steps, overlays, servers, failures, warnings, and why a run ended."""
    from guieval.engines import describe_endpoint
    from guieval.overlays import describe_overlay

    for text in dict.fromkeys(result.outcome.selection.text for result in results):
        typer.echo(f"steps of: {text}")
    worn = [result.outcome.overlay for result in results if result.outcome.overlay is not None]
    for text in dict.fromkeys(map(describe_overlay, worn)):
        typer.echo(f"overlay:  {text}")
    for text in dict.fromkeys(result.config.fixed_thoughts for result in results if result.config.fixed_thoughts):
        typer.echo(f"thoughts: those of the run {text}")
    damaged = [error for result in results[:1] for error in result.outcome.selection.damaged]
    if damaged:
        typer.echo(f"damaged:  {len(damaged):,} left out, the first because {damaged[0]}")
    for config, outcome, _, notes in results:
        for note in notes:
            typer.echo(note)
        for server in outcome.endpoints if len(outcome.endpoints) > 1 else ():
            typer.echo(f"server:   {config.mode}: {describe_endpoint(server)}")
        for stage, failures in outcome.failures.items():
            typer.echo(f"failed:   {config.mode}: {failures.count:,} steps at {stage}, the first because {failures.example}")
        for warning in outcome.warnings:
            typer.echo(f"warning:  {config.mode}: {warning}")
        if outcome.gave_up:
            why = "too many requests in a row were not answered" if config.cluster == "none" else "no worker is left"
            typer.echo(f"stopped:  {config.mode}: {why}")
        if outcome.halted:
            typer.echo(f"stopped:  {config.mode}: {outcome.halted}")


def _above(directories: list[Path]) -> Path:
    return directories[0] if len(directories) == 1 else directories[0].parent


def _how_to_resume(root: Path) -> str:
    import shlex

    return f"resume:   guieval run --resume {shlex.quote(str(root))}"


def _finish(results: list[Result], directories: list[Path], root: Path) -> None:
    """Say where everything is and how to go on; the exit code tells whether all of it was done."""
    import shlex

    # a further sample of a step may have failed though its first, which the summary is about, did not
    complete = len(results) == len(directories) and all(
        result.summary.complete and not result.outcome.failures for result in results
    )
    typer.echo(f"run:      {root}")
    for directory in directories[len(results) :]:
        typer.echo(f"not begun: {directory}")
    if not complete:
        typer.echo(_how_to_resume(root))
    for result in results:
        typer.echo(f"re-score: guieval score {shlex.quote(str(result.outcome.directory))} --protocol NAME")
    if any(result.outcome.interrupted for result in results):
        raise typer.Exit(130)
    if not complete:
        raise typer.Exit(1)
