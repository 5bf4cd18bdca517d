"""``guieval train probe-reward``: what degenerate policies earn under a reward, before anything is trained with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain, islice
from typing import Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.tables import JSON, print_json, say, show
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import UsageError
from guieval.registry import load_model
from guieval.reports.tables.table import Cell, Table, bare, columns, share
from guieval.rewards import ABCReward, ResponseScorer
from guieval.rewards.probes import Earnings, probe
from guieval.rewards.shapes import weighed
from guieval.steps import StepTaskModel

SUSPICIOUS = 0.5
"""A degenerate policy that earns more than this share of the expert's reward is pointed out."""


def probe_reward(
    reward: Annotated[str, typer.Argument(help="Reward, e.g. ui-s1, ui-r1 or hypertrack; see docs/rewards.md.")],
    bench: Annotated[str, typer.Option(help="Benchmark whose steps are answered, see `guieval benchmarks`.")],
    data: options.Data = None,
    model: Annotated[str, typer.Option(help="Checkpoint in whose format the policies answer.")] = "qwen2.5-vl-7b-ui-s1",
    adapter: options.Adapter = None,
    limit: Annotated[int, typer.Option(min=1, help="At most this many steps, from the first episode on.")] = 500,
    protocol: Annotated[
        list[str] | None, typer.Option(help="Protocol that judges; may be repeated. Default: the reward's own.")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="name=number, another weight; may be repeated.")] = None,
    override: options.LoaderOptions = None,
    json: JSON = False,
) -> None:
    """Show what policies that ignore the screen earn under a reward, next to the expert."""
    loaded = load_model(model, adapter=adapter)
    weights = _weights(weight or [])
    judges: list[str | None] = [*dict.fromkeys(protocol)] if protocol else [None]
    rewards = [weighed(reward, each, weights) for each in judges]
    tasks = _steps(options.open_benchmark(bench, data, override), limit)
    rows: list[tuple[Cell, ...]] = []
    plain: list[dict[str, Any]] = []
    warnings: list[str] = []
    for each in rewards:
        judge = each.evaluator.protocol.name
        earned = probe(ResponseScorer(loaded, each), tasks)
        rows += [_row(judge, one) for one in earned]
        plain += [_plain(judge, one) for one in earned]
        warnings += _warnings(judge, each, earned)
    notes = list(dict.fromkeys(warnings))
    if json:
        settings = {"reward": reward, "highest": rewards[0].highest, "bench": bench, "model": model, "steps": len(tasks)}
        print_json({**settings, "policies": plain, "notes": notes})
        return
    heads = ("policy", "protocol", "reward", "type", "exact", "format", "steps", "what it does")
    spare = ("what it does", *(["protocol"] if len(rewards) == 1 else []))
    show(Table("", columns(*heads, keys=2, folds=("what it does",), spare=spare), tuple(rows)))
    most = f"a response that has every part in full earns {rewards[0].highest:g}"
    say(f"{reward}: {len(tasks):,} steps of {bench} in the format of {model}; {most}")
    for line in notes:
        say(f"note: {line}")


def _weights(pairs: Sequence[str]) -> dict[str, float]:
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
    tasks = list(islice(chain.from_iterable(benchmark.load(ref).steps for ref in benchmark.index()), limit))
    if not tasks:
        raise UsageError(f"the benchmark {benchmark.name!r} has no step to probe the reward on")
    return tasks


def _row(protocol: str, earned: Earnings) -> tuple[Cell, ...]:
    shares = (share(each, ".1f", unit=False) for each in (earned.type_match, earned.exact_match, earned.format))
    what = earned.probe.summary if earned.steps else f"{earned.probe.summary} (no such action in the format)"
    return earned.probe.name, protocol, bare(earned.reward, ".3f"), *shares, earned.steps, what


def _plain(protocol: str, earned: Earnings) -> dict[str, Any]:
    metrics = asdict(earned)
    probe = metrics.pop("probe")
    return {"policy": probe["name"], "summary": probe["summary"], "protocol": protocol, **metrics}


def _warnings(protocol: str, reward: ABCReward, earned: Sequence[Earnings]) -> list[str]:
    """Reasons against a reward: degenerate policies that earn almost as much as the expert (the first), or an unused format."""
    expert, *others = earned
    against: list[str] = []
    if expert.format == 0.0:
        against.append(f"no response of the expert has the form that {reward.name} requires: {reward.form.describe()}")
    if not expert.reward or expert.reward < 0:
        nothing = "less than nothing" if expert.reward else "nothing"
        return [*against, f"under {protocol} the expert earns {nothing}, so nothing can be learnt"]
    return against + [
        f"under {protocol} {each.probe.name} earns {100 * each.reward / each.expert:.0f} % of the expert's reward"
        for each in others
        if each.reward is not None and each.expert and each.reward > SUSPICIOUS * each.expert
    ]
