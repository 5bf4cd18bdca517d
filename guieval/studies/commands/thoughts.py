"""``guieval study thoughts``: thoughts that lead to reference actions, for supervised training and for off-policy patches."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import RUN, Given, path_argument, path_option
from guieval.cli.tables import say
from guieval.errors import UsageError, nearest
from guieval.registry import load_benchmark, load_model
from guieval.rewards import ResponseScorer
from guieval.rewards.shapes import weighed
from guieval.running.config import run_file
from guieval.running.defaults import new_config
from guieval.settings import RunConfig
from guieval.steps import StepTaskModel

SOURCES = ("self", "auxiliary", "responses")


@RUN.options(
    *("model", "bench", "data", "split", "subset", "sample_set", "episodes", "limit", "seed", "skip_damaged", "adapter"),
    *("base_urls", "engine", "served_model", "api_key_env", "concurrency", "timeout", "max_attempts", "patience"),
)
def thoughts(
    settings: Given,
    out: Annotated[Path, path_argument("FILE", "JSONL file to write; steps that it already has are not asked again.")],
    by: Annotated[
        str,
        typer.Option(help="self: the model, given the action; auxiliary: another model; responses: exact responses of --run."),
    ] = "self",
    run: Annotated[list[Path] | None, path_option("by responses: a run of the model; may be repeated.", "--run")] = None,
    reward: Annotated[str, typer.Option(help="Reward that judges the form of a response with the thought.")] = "ui-s1",
    tries: Annotated[int, typer.Option(min=1, help="Requests for a thought whose form the reward refuses.")] = 3,
    config: options.Config = None,
    override: options.Override = None,
) -> None:
    """Write thoughts that lead to the reference's actions, and keep those whose form the reward accepts."""
    from guieval.training.data.thoughts import thoughts_of_runs

    if by not in SOURCES:
        raise UsageError(f"--by is {by!r}{nearest(by, SOURCES)}; expected one of {', '.join(SOURCES)}")
    if by == "responses":
        if not run:
            raise UsageError("--by responses needs --run RUN, a run of the model whose exact responses are used")
        if settings.get("model") is None:
            raise UsageError("--by responses needs --model, in whose format the thoughts are judged")
        scorer = ResponseScorer(load_model(settings["model"], adapter=settings.get("adapter")), weighed(reward, None, {}))
        found = thoughts_of_runs(run, scorer)
        _report(_written(out, ((str(each.key), each.thought, each.outcome) for each in found), _known(out)), out)
        return
    if run:
        raise UsageError(f"--run is for --by responses; --by {by} asks a server")
    merged = new_config(run_file(config), override or [], settings)
    if by == "auxiliary" and merged.server.served_model is None:
        raise UsageError("--by auxiliary needs --served-model NAME: --model only gives the format of the thoughts")
    model = load_model(merged.model.name, adapter=merged.model.adapter)
    _ask(merged, by, out, ResponseScorer(model, weighed(reward, None, {})), tries)


def _ask(config: RunConfig, by: str, out: Path, scorer: ResponseScorer, tries: int) -> None:
    from guieval.data.selection import select
    from guieval.running.engine_choice import choose_engine
    from guieval.running.resolve import choice_of, sample_parameters
    from guieval.settings.sampling import request_parameters
    from guieval.training.data.thoughts import ThoughtRequests, Writer, write_thoughts

    benchmark = load_benchmark(config.data.bench, config.data.folder, **config.data.bench_options)
    if config.data.skip_damaged:
        benchmark = benchmark.skipping_damaged()
    selection = select(benchmark, choice_of(config.data))
    known = _known(out)
    steps: list[tuple[Sequence[StepTaskModel], int]] = []
    for ref in selection.refs:
        episode = benchmark.load(ref).steps
        steps += [(episode, index) for index in selection.plan[ref.key] if str(episode[index].key) not in known]
    answering = choose_engine(config, scorer.model, benchmark.root, None)
    own = by == "self"
    sampling = sample_parameters(config, scorer.model.config)[0] if own else request_parameters({}, config.sampling.request)
    asking = ThoughtRequests(answering.engine, benchmark.root, sampling)

    async def work() -> Counter[str]:
        try:
            if answering.prepare is not None:
                await answering.prepare()
            counts: Counter[str] = Counter()
            by_whom: Writer = "self" if own else "auxiliary"
            async for each in write_thoughts(steps, asking, scorer, by=by_whom, tries=tries, concurrency=answering.concurrency):
                counts += _written(out, [(str(each.key), each.thought, each.outcome)], known)
            return counts
        finally:
            await answering.engine.close()

    counts = asyncio.run(work())
    if known:
        say(f"{len(known):,} steps were in {out} before")
    _report(counts, out)


def _known(out: Path) -> set[str]:
    from guieval.training.data.thoughts import read_thoughts_file

    return set(read_thoughts_file(out)) if out.exists() else set()


def _written(out: Path, found: Iterable[tuple[str, str | None, str]], known: set[str]) -> Counter[str]:
    """Append what was kept to the file; how often each outcome occurred."""
    counts: Counter[str] = Counter()
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as stream:
        for step, thought, outcome in found:
            if step in known:
                continue
            counts[outcome] += 1
            if thought is not None:
                stream.write(json.dumps({"step": step, "thought": thought}, ensure_ascii=False) + "\n")
    return counts


def _report(counts: Counter[str], out: Path) -> None:
    from guieval.training.data.thoughts import KEPT

    total, kept = sum(counts.values()), counts.pop(KEPT, 0)
    say(f"{out}: {kept:,} thoughts for {total:,} steps")
    for outcome, count in counts.most_common():
        say(f"  {count:,} without: {outcome}")
