"""``guieval probe-reward``: what degenerate policies earn under a reward, before anything is trained with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from guieval.benchmark import ABCBenchmark
    from guieval.rewards import ABCReward
    from guieval.rewards.probes import Earnings
    from guieval.steps import StepTaskModel

SUSPICIOUS = 0.5
"""A degenerate policy that earns this share of the expert's reward is pointed out."""


def probe_reward(
    reward: Annotated[str, typer.Argument(help="Reward, e.g. ui-s1, ui-r1 or hypertrack; see docs/rewards.md.")],
    bench: Annotated[str, typer.Option(help="Benchmark whose steps are answered, see `guieval benchmarks`.")],
    data: options.Data = None,
    model: Annotated[str, typer.Option(help="Checkpoint in whose format the policies answer.")] = "qwen2.5-vl-7b",
    adapter: options.Adapter = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many steps, from the first episode on.")] = 500,
    protocol: Annotated[
        list[str] | None, typer.Option(help="Protocol that judges; may be repeated. Default: the reward's own.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="name=number, another weight; may be repeated.")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="option=value, an option of the loader.")] = None,
) -> None:
    """Show what policies that look at nothing earn under a reward, beside the expert's earnings."""
    from guieval.cli.loader_options import loader_options
    from guieval.cli.tables import print_table
    from guieval.registry import load_benchmark, load_model
    from guieval.rewards import ReplyScorer
    from guieval.rewards.probes import probe
    from guieval.rewards.shapes import weighed

    loaded = load_model(model, adapter=adapter)
    weights = _weights(weight or [])
    judges: list[str | None] = [*dict.fromkeys(protocol)] if protocol else [None]
    rewards = [weighed(reward, each, weights) for each in judges]
    tasks = _steps(load_benchmark(bench, data, **loader_options(override or [])), limit)
    rows: list[tuple[str, ...]] = []
    warnings: list[str] = []
    for each in rewards:
        judge = each.evaluator.protocol.name
        earned = probe(ReplyScorer(loaded, each), tasks)
        rows += [_row(judge, one) for one in earned]
        warnings += _warnings(judge, each, earned)
    print_table(("policy", "protocol", "reward", "type", "exact", "format", "steps", "what it does"), rows)
    most = f"a reply that has every part in full earns {rewards[0].highest:g}"
    typer.echo(f"\n{reward}: {len(tasks):,} steps of {bench} in the format of {model}; {most}")
    for line in dict.fromkeys(warnings):
        typer.echo(f"note: {line}")


def _weights(pairs: Sequence[str]) -> dict[str, float]:
    from guieval.errors import UsageError

    weights: dict[str, float] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        try:
            value = float(text)
        except ValueError:
            separator = ""
        if not separator or not name.isidentifier():
            raise UsageError(f"--weight needs name=number, e.g. type_weight=0.4, got {pair!r}")
        if name in weights:
            raise UsageError(f"--weight gives {name!r} twice")
        weights[name] = value
    return weights


def _steps(benchmark: ABCBenchmark, limit: int) -> list[StepTaskModel]:
    from itertools import chain, islice

    from guieval.errors import UsageError

    tasks = list(islice(chain.from_iterable(benchmark.load(ref).steps for ref in benchmark.index()), limit))
    if not tasks:
        raise UsageError(f"the benchmark {benchmark.name!r} holds no step to probe the reward on")
    return tasks


def _row(protocol: str, earned: Earnings) -> tuple[str, ...]:
    shares = (earned.type_match, earned.exact_match, earned.format)
    return (
        earned.probe.name,
        protocol,
        "-" if earned.reward is None else f"{earned.reward:.3f}",
        *("-" if share is None else f"{100 * share:.1f}" for share in shares),
        f"{earned.steps:,}" if earned.steps else "0 (no such action in the format)",
        earned.probe.summary,
    )


def _warnings(protocol: str, reward: ABCReward, earned: Sequence[Earnings]) -> list[str]:
    """What speaks against training so: degenerate policies that come near to the expert (the first), a form nobody writes."""
    expert, *others = earned
    said: list[str] = []
    if expert.format == 0.0:
        said.append(f"no reply of the expert has the form that {reward.name} asks for: {reward.form.describe()}")
    if not expert.reward or expert.reward < 0:
        nothing = "less than nothing" if expert.reward else "nothing"
        return [*said, f"under {protocol} the expert earns {nothing}, so nothing can be learnt"]
    return said + [
        f"under {protocol} {each.probe.name} earns {100 * each.reward / expert.reward:.0f} % of the expert's reward"
        for each in others
        if each.reward is not None and each.reward >= SUSPICIOUS * expert.reward
    ]
