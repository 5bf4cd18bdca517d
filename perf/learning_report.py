"""The tables and the picture of docs/development/learning.md, from the results that `python -m perf.learning keep` wrote.

    python -m perf.learning_report [--picture learning.svg]       # extra `report`
    python -m perf.learning_report --power --seeds 8              # what a number of seeds can decide

Intervals of figures are percentiles of a two-level bootstrap: seeds are drawn again, and episodes, which all seeds and methods
share. Whether one method is better is decided between seeds: by Welch's t-test, and for "equal" by two one-sided ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perf.learning import METHODS, RESULTS, ROLLED

NAMES = {"start": "the start", "sft": "SFT", "offline": "offline RL (GRPO)", "semi-online": "semi-online RL"}
FIGURES = ("step exact match", "PG", "TSR")
PAIRS = (("semi-online", "offline"), ("semi-online", "sft"), ("offline", "sft"))
"""Which method UI-S1 finds better than which."""
MARGIN = 3.0
"""Methods are called equal where they are certainly less apart than this, in percent."""
RESAMPLES = 4000

Curves = dict[str, dict[int, "list[Evaluated]"]]


class Evaluated(NamedTuple):
    """One evaluation, (n,) by episode: steps that matched before the first mismatch, steps asked, and the episode's length."""

    exact: NDArray[np.float64]
    asked: NDArray[np.float64]
    length: NDArray[np.float64]

    @classmethod
    def of(cls, matched: str, lengths: str) -> Evaluated:
        """From the digits of a line."""
        exact, length = (np.array(list(map(float, digits))) for digits in (matched, lengths))
        return cls(exact, np.minimum(exact + 1, length), length)


class Verdict(NamedTuple):
    """Difference of two methods in percent, Welch's 95 % interval, its 90 % interval and its two-sided p-value."""

    difference: float
    wide: tuple[float, float]
    narrow: tuple[float, float]
    p: float

    @property
    def words(self) -> str:
        """What is decided."""
        if self.wide[0] > 0 or self.wide[1] < 0:
            return "better" if self.difference > 0 else "worse"
        if self.narrow[0] > -MARGIN and self.narrow[1] < MARGIN:
            return f"equal to within {MARGIN:g} points"
        return "undecided"


def read(file: Path, temperature: int = 0) -> tuple[Curves, dict[str, list[list[float]]]]:
    """The evaluations at a temperature by method and optimiser step, one a seed, and how well RL's own answers matched."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lengths: str = lines[0]["lengths"]
    curves: Curves = {}
    own: dict[str, dict[int, list[float]]] = {}
    for line in lines[1:]:
        if line.get("temperature", 0) == temperature:
            curves.setdefault(line["method"], {}).setdefault(line["step"], []).append(Evaluated.of(line["matched"], lengths))
            if "trained_on" in line:
                own.setdefault(line["method"], {})[line["seed"]] = line["trained_on"]
    return curves, {method: list(seeds.values()) for method, seeds in own.items()}


def figures(cells: list[Evaluated], seeds: NDArray[np.int64], episodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The three figures over drawn seeds and episodes, in percent."""
    exact, asked, length = (np.stack(columns)[seeds][:, episodes] for columns in zip(*cells, strict=True))
    return 100 * np.array([exact.sum() / asked.sum(), (exact / length).mean(), (exact == length).mean()])


def by_seed(cells: list[Evaluated]) -> NDArray[np.float64]:
    """The three figures of every seed, (seeds, 3)."""
    everyone = np.arange(len(cells[0].exact))
    return np.array([figures([cell], np.array([0]), everyone) for cell in cells])


def bootstrapped(cells: list[Evaluated]) -> tuple[NDArray[np.float64], ...]:
    """The three figures, and the lower and the upper ends of their 95 % intervals."""
    dice = np.random.default_rng(0)
    seeds, episodes = len(cells), len(cells[0].exact)
    drawn = [figures(cells, dice.integers(seeds, size=seeds), dice.integers(episodes, size=episodes)) for _ in range(RESAMPLES)]
    low, high = np.percentile(np.array(drawn), [2.5, 97.5], axis=0)
    return figures(cells, np.arange(seeds), np.arange(episodes)), low, high


def compared(one: NDArray[np.float64], other: NDArray[np.float64]) -> Verdict:
    """Welch's intervals of the difference of two methods' means over seeds, (seeds,) each."""
    from scipy.stats import ttest_ind

    test = ttest_ind(one, other, equal_var=False)
    wide, narrow = (test.confidence_interval(level) for level in (0.95, 0.90))
    return Verdict(float(one.mean() - other.mean()), (wide.low, wide.high), (narrow.low, narrow.high), float(test.pvalue))


def chance_to_see(difference: float, variance: float, seeds: int) -> float:
    """The power of the two-sided 5 % t-test; ``variance`` is the sum of both methods' variances between seeds."""
    from scipy.stats import nct, t

    freedom = 2 * seeds - 2
    critical = t.ppf(0.975, freedom)
    shift = difference / np.sqrt(variance / seeds)
    return float(nct.sf(critical, freedom, shift) + nct.cdf(-critical, freedom, shift))


def power(curves: Curves, seeds: int) -> None:
    """Print what a number of seeds of each method can decide, from the variance between the seeds so far."""
    last = {method: by_seed(curves[method][max(curves[method])])[:, 0] for method in METHODS if method in curves}
    print(f"| | standard deviations | power for {MARGIN:g} points with {seeds} seeds | seeds for power 0.8 |")
    print("| --- | --- | --- | --- |")
    for one, other in PAIRS:
        spreads = [last[method].std(ddof=1) for method in (one, other)]
        variance = float(sum(spread**2 for spread in spreads))
        needed = next((n for n in range(2, 1000) if chance_to_see(MARGIN, variance, n) >= 0.8), None)
        shown = f"{spreads[0]:.1f}, {spreads[1]:.1f} | {chance_to_see(MARGIN, variance, seeds):.2f} | {needed}"
        print(f"| {NAMES[one]} − {NAMES[other]} | {shown} |")


def table(head: str, rows: list[tuple[str, list[str]]]) -> None:
    """Print a table of Markdown with the three figures."""
    print(f"\n| {head} | {' | '.join(FIGURES)} |\n| --- | --- | --- | --- |")
    for name, cells in rows:
        print(f"| {name} | {' | '.join(cells)} |")


def report(file: Path, picture: Path | None) -> None:
    """Print the tables, and draw the curves."""
    curves, own = read(file)
    ends = {method: steps[max(steps)] for method, steps in curves.items()}
    count = len(next(iter(ends.values()))[0].exact)
    print(
        f"{count} held-out episodes; seeds: "
        + ", ".join(f"{NAMES[each]} {len(ends[each])}" for each in METHODS if each in ends)
    )
    for temperature, head in ((0, "greedy"), (1, "temperature 1")):
        found = curves if temperature == 0 else read(file, temperature)[0]
        if found:
            last = {method: found[method][max(found[method])] for method in NAMES if method in found}
            table(head, [(NAMES[method], _cells(*bootstrapped(cells))) for method, cells in last.items()])
            decisions(last)
    table("each seed", [(NAMES[method], _listed(ends[method])) for method in METHODS if method in ends])
    print(f"\n| the answers trained on | first {ROLLED} steps | last {ROLLED} steps | seeds that rose |")
    print("| --- | --- | --- | --- |")
    for method, seeds in own.items():
        first, last_ = (100 * np.array(values) for values in zip(*seeds, strict=True))
        print(f"| {NAMES[method]} | {fmean(first):.1f} | {fmean(last_):.1f} | {(last_ > first).sum()} of {len(seeds)} |")
    if picture is not None:
        draw(curves, picture)


def decisions(ends: dict[str, list[Evaluated]]) -> None:
    """Print the differences between methods with their verdicts; against the start, a single policy, one-sample intervals."""
    from scipy.stats import ttest_1samp

    rows = []
    for method in METHODS:
        if len(ends.get(method, ())) > 1 and "start" in ends:
            gains = by_seed(ends[method]) - by_seed(ends["start"])
            intervals = [ttest_1samp(column, 0).confidence_interval(0.95) for column in gains.T]
            shown = zip(gains.mean(axis=0), intervals, strict=True)
            rows.append(
                (f"{NAMES[method]} − start", [f"{mean:+.1f} [{each.low:+.1f}, {each.high:+.1f}]" for mean, each in shown])
            )
    for one, other in PAIRS:
        if all(len(ends.get(method, ())) > 1 for method in (one, other)):
            verdicts = map(compared, by_seed(ends[one]).T, by_seed(ends[other]).T)
            cells = [
                f"{each.difference:+.1f} [{each.wide[0]:+.1f}, {each.wide[1]:+.1f}], p = {each.p:.2g}: {each.words}"
                for each in verdicts
            ]
            rows.append((f"{NAMES[one]} − {NAMES[other]}", cells))
    if rows:
        table("difference", rows)


def _cells(value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> list[str]:
    return [f"{each:.1f} [{a:.1f}, {b:.1f}]" for each, a, b in zip(value, low, high, strict=True)]


def _listed(cells: list[Evaluated]) -> list[str]:
    return [", ".join(f"{value:.1f}" for value in column) for column in by_seed(cells).T]


def draw(curves: Curves, picture: Path) -> None:
    """One panel per figure, one curve per method over its own share of optimiser steps, with intervals."""
    from guieval.reports.plots.paper import drawing, legend, looks, write

    styles = looks([NAMES[method] for method in METHODS])
    with drawing("two-column", 2.3) as figure:
        panels = figure.subplots(1, 3)
        handles: list[Any] = []
        drawn = [method for method in METHODS if method in curves]
        for method in drawn:
            steps = {0: curves["start"][0], **curves[method]}
            look, found = styles[NAMES[method]], [bootstrapped(cells) for cells in steps.values()]
            share = [100 * step / max(steps) for step in steps]
            for number, axes in enumerate(panels):
                value, low, high = (np.array([each[part][number] for each in found]) for part in range(3))
                axes.fill_between(share, low, high, color=look.colour, alpha=0.15, linewidth=0)
                (line,) = axes.plot(share, value, color=look.colour, linestyle=look.line, marker=look.marker)
            handles.append(line)
        for axes, name in zip(panels, FIGURES, strict=True):
            axes.set_title(f"{name} (%)")
            axes.set_xlabel("training done (%)")
            axes.grid(axis="y", color="0.85", linewidth=0.5)
        legend(figure, handles, [NAMES[method] for method in drawn])
        write(figure, picture)
    print(f"drawn: {picture}", file=sys.stderr)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.power:
        power(read(arguments.results)[0], arguments.seeds)
    else:
        report(arguments.results, arguments.picture)


if __name__ == "__main__":
    main()
