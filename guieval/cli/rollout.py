"""``guieval rollout``: many samples of every step, in rounds of one seed each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, new_directory, path

if TYPE_CHECKING:
    from guieval.cli.run import Result
    from guieval.config import RunConfig

_MOST_DIGITS = 20
"""Of a seed; what is too large for a server is told later, but thousands of digits are no number to Python."""


def rollout(
    model: options.Model = None,
    bench: options.Bench = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds, each with a seed of its own (default 8).")] = None,
    samples: Annotated[int | None, typer.Option(help="Samples of each step in a round (default 64).")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Seed of each round (default: those of the GUIEvalKit paper).")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="offline or soeval; it goes on with a round's first sample.")] = None,
    preset: Annotated[str | None, typer.Option(help="Draw as many episodes as a study did, e.g. guievalkit-table-17.")] = None,
    limit: options.Limit = None,
    seed: Annotated[int | None, typer.Option(help="Seed of that sample of episodes (default 0).")] = None,
    data: options.Data = None,
    base_url: options.BaseURL = None,
    engine: Annotated[str | None, typer.Option(help="Who answers; vllm starts a server.")] = None,
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Rollout directory to create (default: below runs/).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Go on with the rounds in this directory.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Only this split, or all.")] = None,
    subset: options.Subset = None,
    episodes: options.Episodes = None,
    thinking: options.Thinking = None,
    fixed_thoughts: options.FixedThoughts = None,
    protocol: options.Protocol = None,
    adapter: options.Adapter = None,
    served_model: options.ServedModel = None,
    concurrency: Annotated[str | None, typer.Option(metavar="N|auto", help="Requests in flight, or auto.")] = None,
    timeout: options.Timeout = None,
    max_attempts: options.MaxAttempts = None,
    config: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="YAML file with any setting of `guieval run`.")
    ] = None,
    override: options.Override = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw many samples of every step, in rounds of one seed each, or go on with a rollout that was stopped."""
    from guieval.cli.run import perform
    from guieval.config import merge
    from guieval.decisions.rollouts import PAPER_SAMPLES, plan_rounds, read_rollout, write_rollout
    from guieval.errors import UsageError

    flags = options.as_settings(
        model=model,
        bench=bench,
        mode=mode,
        samples=samples,
        limit=limit,
        seed=seed,
        data=data,
        base_url=base_url,
        engine=engine,
        split=split,
        subset=subset,
        episodes=episodes,
        thinking=thinking,
        fixed_thoughts=fixed_thoughts,
        protocol=protocol,
        adapter=adapter,
        served_model=served_model,
        concurrency=concurrency,
        timeout=timeout,
        max_attempts=max_attempts,
    )
    if resume is not None:
        for option, value in {"out": out, "rounds": rounds, "seeds": seeds, "preset": preset}.items():
            if value is not None:
                raise UsageError(f"--resume goes on with the rounds that are there; leave out --{option}")
        base, known = read_rollout(resume)
        settings = merge(config, override or [], flags, base=base)
        planned = plan_rounds(settings, seeds=known)
        directory = resume
    else:
        settings = merge(config, override or [], flags, base={"samples": PAPER_SAMPLES})
        if preset is not None:
            settings = _drawn_as(preset, settings)
        planned = plan_rounds(settings, rounds, _numbers(seeds))
        directory = out or new_directory(settings.model, settings.bench, "rollout", settings.mode)
    if settings.cluster != "none":
        raise UsageError("a rollout is done on one machine: leave out the setting 'cluster'")
    perform(
        [(each.config, directory / each.folder) for each in planned],
        fresh=resume is None,
        quiet=quiet,
        root=directory,
        first=lambda: None if resume is not None else write_rollout(directory, settings, planned),
        show=lambda results: _show(directory, results),
    )


def _drawn_as(preset: str, settings: RunConfig) -> RunConfig:
    from guieval.decisions.subset import get_subset
    from guieval.errors import UsageError
    from guieval.registry import load_benchmark

    if settings.limit is not None:
        raise UsageError("--preset says how many episodes are drawn: leave out --limit")
    benchmark = load_benchmark(settings.bench, settings.data, **settings.bench_options)
    subset = get_subset(preset)
    dataset = benchmark.dataset or benchmark.load(next(iter(benchmark.index()))).steps[0].dataset
    return settings.model_copy(update={"limit": subset.limit(dataset)})


def _numbers(text: str | None) -> list[int]:
    from guieval.errors import UsageError

    numbers = []
    for part in (text or "").replace(",", " ").split():
        if not part.isdecimal() or len(part) > _MOST_DIGITS:
            raise UsageError(f"--seeds has {part!r:.80}: expected whole numbers like 7278727,7779397")
        numbers.append(int(part))
    return numbers


def _show(directory: Path, results: list[Result]) -> None:
    """A line for each round, and one for all of them together."""
    from rich.console import Console
    from rich.table import Table

    from guieval.cli.run import print_notes
    from guieval.decisions.executions import read_executions

    table = Table(title="Rollout", title_justify="left")
    for head in ("round", "steps", "executions", "different", "no action", "failed", "exact %"):
        table.add_column(head, justify="left" if head == "round" else "right", no_wrap=True, overflow="fold")
    measured = {each.outcome.directory.name: each.outcome.directory for each in results}
    for name, where in {**measured, "all rounds": directory}.items():
        steps = executions = different = without = failed = exact = 0
        for step in read_executions(where):
            steps += 1
            executions += step.n
            different += len(step.actions)
            without += sum(int(count) for action, count in zip(step.actions, step.counts, strict=True) if action is None)
            failed += step.failed
            exact += int(step.counts[step.exact].sum())
        share = f"{100 * exact / executions:.2f}" if executions else "-"
        table.add_row(name, *(f"{value:,}" for value in (steps, executions, different, without, failed)), share)
    Console().print(table)
    print_notes(results)
    typer.echo(f"decisions: guieval decisions {directory}")
