"""Trains the shipped half-trained policy by the entry points, three seeds each, and reports the change by each method.

Held-out episodes (split `test`) are evaluated by SOP every few optimiser steps with the evaluation's own runner; goals of the
two splits are disjoint. One command a curve, under an hour of one core each, in an environment with the extra `train`
(`python tests/environment.py training` makes one and prints its interpreter):

    python -m perf.learning sft --out DIR              # supervised, on the reference's actions
    python -m perf.learning offline --out DIR          # GRPO on single steps with the reference's history
    python -m perf.learning semi-online --out DIR      # UI-S1: own outputs as history, mismatches patched
    python -m perf.learning sampled DIR                # the trained policies and their start once more, at temperature 1
    python -m perf.learning power --one A B C --other D E F   # how many seeds decide between two methods
    python -m perf.learning report DIR                   # the tables of docs/learning.md, and its picture (extra `report`)

Intervals are percentiles of a two-level bootstrap: seeds are drawn again, and episodes, which all seeds and methods share.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.journal import Records, read_planned

KINDS = {"sft": ("sft", "tiny-sft"), "offline": ("grpo", "tiny-grpo"), "semi-online": ("semi-online", "tiny-semi-online")}
NAMES = {"sft": "SFT", "offline": "offline RL (GRPO)", "semi-online": "semi-online RL"}
FIGURES = ("step exact match", "PG", "TSR")
RESAMPLES = 4000
EPISODES = 600
"""Number of held-out episodes of an evaluation; ``--episodes`` changes it."""
START, SAMPLED = "start-sampled", "sampled"
ROLLED = 20
"""Optimiser steps at both ends of a training whose own answers are reported."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **os.environ}


class Evaluated(NamedTuple):
    """One evaluation, (n,) by episode: steps that matched and steps asked, the exact prefix's share, and success."""

    exact: NDArray[np.float64]
    asked: NDArray[np.float64]
    progress: NDArray[np.float64]
    success: NDArray[np.float64]


def train(kind: str, seed: int, out: Path, *, with_start: bool, episodes: int) -> None:
    """Run one training in a process of its own, or resume it. The initial weights are the same for every seed."""
    command, config = KINDS[kind]
    settings = [f"seed={seed}", f"evaluation.bench_options.episodes={episodes}", f"evaluation.at_start={with_start}".lower()]
    words = [sys.executable, "-m", "guieval", "train", command, "--config", config, "--out", str(out)]
    words += [word for setting in settings for word in ("--set", setting)]
    if (out / "checkpoints").is_dir() and any((out / "checkpoints").iterdir()):
        words.append("--resume")
    subprocess.run(words, check=True, env=ENVIRONMENT)


def sample(out: Path, episodes: int) -> None:
    """Evaluate the start, and what each training ended with, by answers drawn at temperature 1: what RL rewards."""
    words = [sys.executable, "-m", "guieval", "run", "--model", "tiny-policy", "--bench", "demo-icons", "--mode", "sop"]
    words += ["--engine", "transformers", "--set", f"bench_options.episodes={episodes}", "--set", "sampling.temperature=1.0"]
    weights = {out / START: None} | {final.parent / SAMPLED: final for final in sorted(out.glob("*-[0-9]*/final"))}
    for run, folder in weights.items():
        if not (run / "metrics.json").exists():
            chosen = [] if folder is None else ["--set", f"model_path={folder.resolve()}"]
            begun = ["--resume", str(run)] if run.exists() else [*words[4:], *chosen, "--out", str(run)]
            subprocess.run([*words[:4], *begun, "--quiet"], check=True, env=ENVIRONMENT)


def evaluated(run: Path) -> Evaluated:
    """The result of each planned episode, from an evaluation's journal."""
    plan = read_planned(run).plan
    answers = {record.task.key: record.sample.outcome.exact_match for record in Records(run) if record.finished}
    rows = []
    for key, steps in plan.items():
        found = [answers[(*key, index)] for index in steps if (*key, index) in answers]  # type: ignore[index]
        prefix = next((number for number, exact in enumerate(found) if not exact), len(found))
        rows.append((sum(found), len(found), prefix / len(steps), float(prefix == len(steps))))
    return Evaluated(*np.array(rows, dtype=np.float64).T)


def read(out: Path, kind: str) -> dict[int, list[Evaluated]]:
    """Evaluations of a method by optimiser step, one entry a seed; the start once, and steps that every seed reached."""
    seeds = sorted(each.parent for each in out.glob(f"{kind}-[0-9]*/evaluations.jsonl"))
    if not seeds:
        raise SystemExit(f"{out} holds no training of kind {kind}")
    lines = [[json.loads(line) for line in (seed / "evaluations.jsonl").read_text().splitlines()] for seed in seeds]
    steps = sorted(set.intersection(*({line["step"] for line in each} - {0} for each in lines)))
    start = next(out.glob("*-[0-9]*/evaluations/step-0"))
    return {
        0: [evaluated(start)],
        **{step: [evaluated(seed / "evaluations" / f"step-{step}") for seed in seeds] for step in steps},
    }


def rollouts(out: Path, kind: str) -> tuple[list[float], list[float]]:
    """Exact match of the answers that RL trained on, of each seed: its first :data:`ROLLED` optimiser steps, and its last."""
    first, last = [], []
    for log in sorted(out.glob(f"{kind}-[0-9]*/log.jsonl")):
        lines = [line for line in map(json.loads, log.read_text().splitlines()) if "loss" in line]
        exact = [line[name] for line in lines for name in line if name.endswith("/exact_match")]
        first.append(fmean(exact[:ROLLED]))
        last.append(fmean(exact[-ROLLED:]))
    return first, last


def figures(cells: list[Evaluated], seeds: NDArray[np.int64], episodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The three figures over drawn seeds and episodes."""
    exact, asked, progress, success = (np.stack(columns)[seeds][:, episodes] for columns in zip(*cells, strict=True))
    return np.array([exact.sum() / asked.sum(), progress.mean(), success.mean()])


def bootstrapped(cells: list[Evaluated], against: list[Evaluated] | None = None) -> tuple[NDArray[np.float64], ...]:
    """Three figures (or their differences), with the lower and upper ends of their 95 % intervals."""
    dice = np.random.default_rng(0)
    episodes = len(cells[0].exact)

    def difference(one: NDArray[np.int64], other: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        value = figures(cells, one, drawn)
        return value if against is None else value - figures(against, other, drawn)

    others = len(against) if against is not None else 1
    value = difference(np.arange(len(cells)), np.arange(others), np.arange(episodes))
    drawn = np.array(
        [
            difference(
                dice.integers(len(cells), size=len(cells)),
                dice.integers(others, size=others),
                dice.integers(episodes, size=episodes),
            )
            for _ in range(RESAMPLES)
        ]
    )
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return value, low, high


def formatted(values: tuple[NDArray[np.float64], ...], signed: bool = False) -> list[str]:
    """Cells of a table in percent."""
    form = "+.1f" if signed else ".1f"
    return [f"{100 * v:{form}} [{100 * low:{form}}, {100 * high:{form}}]" for v, low, high in zip(*values, strict=True)]


def power(one: list[float], other: list[float], goal: float) -> None:
    """Print the power of a t-test between the seeds of two methods, and the seeds that it needs."""
    variance = stdev(one) ** 2 + stdev(other) ** 2
    seeds = min(len(one), len(other))
    observed = abs(fmean(one) - fmean(other))
    for name, difference in (("observed", observed), ("goal", goal)):
        needed = next((n for n in range(2, 1000) if chance_to_see(difference, variance, n) >= 0.8), None)
        now = chance_to_see(difference, variance, seeds)
        print(
            f"{name} difference {difference:.2f}: power {now:.2f} with {seeds} seeds each; 0.8 with {needed or 'no number of'}"
        )


def chance_to_see(difference: float, variance: float, seeds: int) -> float:
    """The power of the two-sided 5 % t-test; ``variance`` is the sum of both methods' variances between seeds."""
    from scipy.stats import nct, t

    freedom = 2 * seeds - 2
    critical = t.ppf(0.975, freedom)
    shift = difference / np.sqrt(variance / seeds)
    return float(nct.sf(critical, freedom, shift) + nct.cdf(-critical, freedom, shift))


def report(out: Path, picture: Path | None) -> None:
    """Print the tables, and draw the curves."""
    kinds = [kind for kind in KINDS if any(out.glob(f"{kind}-[0-9]*"))]
    runs = {kind: read(out, kind) for kind in kinds}
    print("| method | optimiser steps | seeds | step exact match | PG | TSR |\n| --- | --- | --- | --- | --- | --- |")
    curves = {}
    for kind in kinds:
        curves[kind] = {step: bootstrapped(cells) for step, cells in runs[kind].items()}
        for step, values in curves[kind].items():
            print(f"| {NAMES[kind]} | {step} | {len(runs[kind][step])} | {' | '.join(formatted(values))} |")
    print("\n| at the end, against | step exact match | PG | TSR |\n| --- | --- | --- | --- |")
    for number, kind in enumerate(kinds):
        last = runs[kind][max(runs[kind])]
        start = runs[kind][min(runs[kind])]
        print(f"| {NAMES[kind]} − its start | {' | '.join(formatted(bootstrapped(last, start), signed=True))} |")
        for other in kinds[:number]:
            values = bootstrapped(last, runs[other][max(runs[other])])
            print(f"| {NAMES[kind]} − {NAMES[other]} | {' | '.join(formatted(values, signed=True))} |")
    print("\n| seed by seed, at the end | step exact match | PG | TSR |\n| --- | --- | --- | --- |")
    for kind in kinds:
        for seed, cell in enumerate(runs[kind][max(runs[kind])]):
            everyone = np.arange(len(cell.exact))
            row = figures([cell], np.array([0]), everyone)
            print(f"| {NAMES[kind]}, {seed} | {' | '.join(f'{100 * value:.1f}' for value in row)} |")
    print(f"\n| the answers trained on, seed by seed | first {ROLLED} steps | last {ROLLED} steps |\n| --- | --- | --- |")
    for kind in kinds:
        if kind != "sft":
            shares = (" ".join(f"{100 * value:.1f}" for value in values) for values in rollouts(out, kind))
            print(f"| {NAMES[kind]} | {' | '.join(shares)} |")
    if (out / START).exists():
        print("\n| answers drawn at temperature 1 | step exact match | PG | TSR |\n| --- | --- | --- | --- |")
        start = [evaluated(out / START)]
        print(f"| start | {' | '.join(formatted(bootstrapped(start)))} |")
        for kind in kinds:
            ends = [evaluated(run) for run in sorted(out.glob(f"{kind}-[0-9]*/{SAMPLED}"))]
            print(f"| {NAMES[kind]} | {' | '.join(formatted(bootstrapped(ends)))} |")
            print(f"| {NAMES[kind]} − start | {' | '.join(formatted(bootstrapped(ends, start), signed=True))} |")
    if picture is not None:
        draw(curves, picture)


def draw(curves: dict[str, dict[int, tuple[NDArray[np.float64], ...]]], picture: Path) -> None:
    """One panel per figure, one curve per method over its own share of optimiser steps, with intervals."""
    from guieval.reports.plots.paper import drawing, legend, looks, write

    styles = looks([NAMES[kind] for kind in curves])
    with drawing("two-column", 2.3) as figure:
        handles: dict[str, object] = {}
        for number, (axes, name) in enumerate(zip(figure.subplots(1, 3), FIGURES, strict=True)):
            for kind, curve in curves.items():
                look = styles[NAMES[kind]]
                share = [100 * step / max(curve) for step in curve]
                value, low, high = (100 * np.array([each[part][number] for each in curve.values()]) for part in range(3))
                axes.fill_between(share, low, high, color=look.colour, alpha=0.15, linewidth=0)
                (handles[kind],) = axes.plot(share, value, color=look.colour, linestyle=look.line, marker=look.marker)
            axes.set_title(f"{name} (%)")
            axes.set_xlabel("training done (%)")
            axes.grid(axis="y", color="0.85", linewidth=0.5)
        legend(figure, list(handles.values()), [NAMES[kind] for kind in handles])  # type: ignore[arg-type]
        write(figure, picture)
    print(f"drawn: {picture}", file=sys.stderr)


def main() -> None:
    """Train, or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for kind in KINDS:
        training = commands.add_parser(kind)
        training.add_argument("--out", type=Path, required=True)
        training.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
        training.add_argument("--episodes", type=int, default=EPISODES)
    sampling = commands.add_parser("sampled")
    sampling.add_argument("out", type=Path)
    sampling.add_argument("--episodes", type=int, default=EPISODES)
    powering = commands.add_parser("power")
    powering.add_argument("--one", type=float, nargs="+", required=True, help="a figure of each seed of a method")
    powering.add_argument("--other", type=float, nargs="+", required=True)
    powering.add_argument("--goal", type=float, default=3.0, help="a difference that should be seen")
    reporting = commands.add_parser("report")
    reporting.add_argument("out", type=Path)
    reporting.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "power":
        power(arguments.one, arguments.other, arguments.goal)
        return
    if arguments.command == "report":
        report(arguments.out, arguments.picture)
        return
    if arguments.command == "sampled":
        sample(arguments.out, arguments.episodes)
        return
    for seed in arguments.seeds:
        begun = any(arguments.out.glob("*-[0-9]*/evaluations/step-0"))
        train(
            arguments.command,
            seed,
            arguments.out / f"{arguments.command}-{seed}",
            with_start=not begun,
            episodes=arguments.episodes,
        )


if __name__ == "__main__":
    main()
