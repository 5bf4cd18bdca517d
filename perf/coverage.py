"""Measures how often intervals cover the truth, and tests are wrong or find what there is: ``python perf/coverage.py``.

2,000 experiments a cell, from fixed seeds, by the functions that make what guieval prints, which take all experiments of a cell
at once; some of each are computed one by one as well, as for printing, and must be the same. ``--write`` puts the tables into
docs/statistics.md; ``--check`` compares them with what is there, and fails where a promise of that page is broken.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

from guieval.metrics.intervals import Floats, Interval, Terms, Weighed, mean_of_cells, pooled, quoted, quoted_mean
from guieval.metrics.measured import Measured
from guieval.metrics.paired import Tested, difference, holm_pairs, mcnemar, ranks, tested
from guieval.metrics.power import UNKNOWN, independent_steps, intraclass_correlation, smallest_paired
from guieval.metrics.repeats import excess, over_repeats
from guieval.metrics.sampling import pass_any, pass_measured

PAGE = Path(__file__).resolve().parent.parent / "docs" / "statistics.md"
EXPERIMENTS = 2000
ALONE = 5
"""So many experiments of a cell are computed one by one as well."""
LEAST = 0.93
"""What every interval promises to cover from ``FEW`` episodes on."""
FEW = 10
TESTED = 50
"""From so many episodes on, the power that is found is within ``NEAR`` of the power that is stated."""
NEAR = 0.05
MOST_ALARMS = 0.065
"""No test of two equal runs may be wrong more often: 0.05 and three standard errors of 2,000 experiments."""
LEAST_OF_TWO = 0.88
"""What an interval over two repeats covers that differ by more than the luck of their draws: two show too little of it."""
MARKS = "<!-- {}: written by perf/coverage.py -->", "<!-- end of {} -->"
Effect: TypeAlias = Literal["shared", "half", "own", "none"]
"""Whether what makes an episode hard is the same for both models, half the same, each model's own, or there is nothing."""
STATED = 0.8


@dataclass(frozen=True)
class Table:
    """A table of shares of experiments; ``broken`` says in words which of them are not as promised."""

    name: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    broken: tuple[str, ...]

    def markdown(self) -> str:
        """The table between its marks."""
        lines = ["| " + " | ".join(row) + " |" for row in (self.heads, ("---:",) * len(self.heads), *self.rows)]
        return "\n".join([MARKS[0].format(self.name), "", *lines, "", MARKS[1].format(self.name)])


class Episodes(NamedTuple):
    """Experiments: right steps and steps of their episodes, (experiments, e)."""

    right: Floats
    steps: Floats


def lengths(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Lengths of episodes about like AndroidControl's: 5.5 steps on average, from 1 to 15."""
    return 1 + rng.poisson(4.5, shape)


def chances(rng: np.random.Generator, shape: tuple[int, ...], rate: float, icc: float) -> Floats:
    """Each episode's own chance of a right step: beta distributed, so that right and wrong correlate by ``icc``."""
    if icc == 0:
        return np.full(shape, rate)
    both = 1 / icc - 1
    return rng.beta(rate * both, (1 - rate) * both, shape)


def alike(rng: np.random.Generator, experiments: int, episodes: int, rate: float, icc: float) -> Episodes:
    """Episodes whose steps are alike by ``icc``."""
    steps = lengths(rng, (experiments, episodes))
    return Episodes(rng.binomial(steps, chances(rng, steps.shape, rate, icc)).astype(float), steps.astype(float))


def sets(right: Floats, steps: Floats) -> Weighed:
    """Experiments as sets of episodes, (experiments, e)."""
    typical = steps.mean(axis=1, keepdims=True)
    return Weighed(right / typical, steps / typical, np.ones_like(steps))


def covered(ends: tuple[Floats, Floats], truth: float, printed: Sequence[Interval | None] = ()) -> float:
    """The share of the intervals that hold the truth; ``printed`` are the first of them, one by one."""
    for low, high, alone in zip(*ends, printed, strict=False):
        if alone is None or not np.allclose([low, high], [alone.low, alone.high], atol=1e-7):
            raise SystemExit(f"not what is printed: {low} to {high}, {alone}")
    return float(np.mean((ends[0] <= truth) & (truth <= ends[1])))


def covers(right: Floats, steps: Floats, truth: float) -> float:
    """Of intervals of shares."""
    printed = [quoted(*each) for each in zip(right[:ALONE], steps[:ALONE], strict=True)]
    return covered(sets(right, steps).shares(), truth, printed)


def shown(share: float) -> str:
    return f"{share:.3f}"


def judged(name: str, share: float, episodes: int, least: float = LEAST) -> Iterator[str]:
    """What is broken where an interval covers less than promised."""
    if episodes >= FEW and share < least:
        yield f"{name}: covers {share:.3f}, promised {least}"


def steps_table(experiments: int) -> Table:
    """Exact match over the steps of episodes."""
    rates = (0.02, 0.05, 0.1, 0.3, 0.5)
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for episodes in (5, 10, 20, 50, 200):
        for icc in (0.0, 0.15, 0.4):
            rng = np.random.default_rng([1, episodes, round(100 * icc)])
            row = [str(episodes), f"{icc:g}"]
            for rate in rates:
                drawn = alike(rng, experiments, episodes, rate, icc)
                share = covers(*drawn, rate)
                broken += judged(f"steps, {episodes} episodes, icc {icc}, rate {rate}", share, episodes)
                row.append(shown(share))
            rows.append(tuple(row))
    heads = ("episodes", "icc", *(f"rate {rate:g} or {1 - rate:g}" if rate != 0.5 else "rate 0.5" for rate in rates))
    return Table("steps", heads, tuple(rows), tuple(broken))


def sop_table(experiments: int) -> Table:
    """PG, TSR and Score of runs that stop at the first wrong step."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for rate in (0.3, 0.6, 0.9):
        for episodes in (5, 10, 12, 20, 50, 200):
            rng = np.random.default_rng([2, episodes, round(100 * rate)])
            steps = lengths(rng, (experiments, episodes))
            before = np.minimum(rng.geometric(1 - rate, steps.shape) - 1, steps)
            progress, success = before / steps, (before == steps).astype(float)
            row = [f"{rate:g}", str(episodes)]
            known = _truths(rate)
            for name, values in (("PG", progress), ("TSR", success), ("Score", (progress + success) / 2)):
                share = covers(values, np.ones_like(values), known[name])
                broken += judged(f"{name}, {episodes} episodes, step rate {rate}", share, episodes)
                row.append(shown(share))
            rows.append((*row, *(f"{100 * known[name]:.1f} %" for name in ("TSR", "Score"))))
    return Table("sop", ("step rate", "episodes", "PG", "TSR", "Score", "true TSR", "true Score"), tuple(rows), tuple(broken))


def _truths(rate: float) -> dict[str, float]:
    from scipy.stats import poisson

    length = np.arange(1, 60)
    weight = poisson.pmf(length - 1, 4.5)
    success = float(weight @ rate**length)
    progress = float(weight @ [sum(rate**step for step in range(1, steps + 1)) / steps for steps in length])
    return {"PG": progress, "TSR": success, "Score": (progress + success) / 2}


def single_table() -> Table:
    """Success rates and grounding, one observation an episode: exact, by the binomial distribution."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for n in (2, 3, 5, 10, 12, 20, 50, 100, 200, 500):
        found = [quoted((np.arange(n) < right).astype(float), np.ones(n)) for right in range(n + 1)]
        ends = np.array([(each.low, each.high) for each in found if each is not None])
        beside = np.concatenate([ends.ravel() - 1e-9, ends.ravel() + 1e-9])  # coverage jumps at the ends, and is lowest there
        plain = np.linspace(0.005, 0.5, 100)  # above 0.5 it is the same the other way round
        every = np.concatenate([plain, np.sort(beside[(beside > 0) & (beside < 0.5)])])
        inside = (ends[:, 0] <= every[:, None]) & (every[:, None] <= ends[:, 1])
        shares = (binom.pmf(np.arange(n + 1), n, every[:, None]) * inside).sum(axis=1)
        lowest = int(shares.argmin())
        broken += judged(f"single steps, n {n}, rate {every[lowest]:.4f}", float(shares[lowest]), n)
        rows.append((str(n), shown(shares[lowest]), f"{every[lowest]:.3f}", shown(float(shares[: len(plain)].mean()))))
    return Table("single", ("n", "lowest", "at the rate", "mean over rates"), tuple(rows), tuple(broken))


def samples_table(experiments: int) -> Table:
    """PASS@n over steps with 8 answers each, and the success of online tasks that are done three times."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for rate in (0.1, 0.5, 0.9):
        for episodes in (5, 10, 20, 50, 200):
            rng = np.random.default_rng([3, episodes, round(100 * rate)])
            row = [f"{rate:g}", str(episodes)]
            steps = lengths(rng, (experiments, episodes))
            for k in (1, 4, 8):
                share = _passed(rng, steps, rate, k)
                broken += judged(f"pass@{k}, {episodes} episodes, rate {rate}", share, episodes)
                row.append(shown(share))
            won = rng.binomial(3, chances(rng, (experiments, episodes), rate, 0.4))
            share = covers(won.astype(float), np.full(won.shape, 3.0), rate)
            broken += judged(f"online success, {episodes} tasks, rate {rate}", share, episodes)
            row.append(shown(share))
            share = covers((won > 0).astype(float), np.ones(won.shape), _any_of(rate, 3))
            broken += judged(f"online pass@3, {episodes} tasks, rate {rate}", share, episodes)
            rows.append((*row, shown(share)))
    heads = ("rate", "episodes or tasks", "PASS@1", "PASS@4", "PASS@8", "success, 3 times each", "pass@3 of tasks")
    return Table("samples", heads, tuple(rows), tuple(broken))


def _any_of(rate: float, k: int) -> float:
    """The true PASS@k where the rates of steps are beta distributed with icc 0.4."""
    both = 1 / 0.4 - 1
    of_none = np.prod([((1 - rate) * both + used) / (both + used) for used in range(k)])
    return float(1 - of_none)


def _passed(rng: np.random.Generator, steps: NDArray[np.int64], rate: float, k: int) -> float:
    """How many intervals of PASS@k of 8 answers hold the truth."""
    total = int(steps.sum())
    right = rng.binomial(8, chances(rng, (total,), rate, 0.4))
    starts = np.cumsum(steps.ravel()) - steps.ravel()
    passed = np.add.reduceat(pass_any(np.full(total, 8), right, k), starts).reshape(steps.shape)
    printed, begin = [], 0
    for own in steps[:ALONE]:
        here = slice(begin, begin := begin + int(own.sum()))
        firsts, of_step = np.cumsum(own) - own, right[here]
        every = np.ones(len(of_step), dtype=np.bool_)
        over = partial(np.add.reduceat, indices=firsts)
        printed.append(pass_measured("any", np.full(len(of_step), 8), of_step, k, every, over).interval)
    return covered(sets(passed, steps.astype(float)).shares(), _any_of(rate, k), printed)


def cells_table(experiments: int) -> Table:
    """Means over six cells of unlike sizes and rates, as of the six parts of ScreenSpot, and means without bounds."""
    rates, sizes = np.array([0.95, 0.85, 0.9, 0.6, 0.9, 0.75]), np.array([0.25, 0.2, 0.2, 0.1, 0.15, 0.1])
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for steps in (30, 60, 120, 400, 1200):
        rng = np.random.default_rng([4, steps])
        found = []
        for _ in range(experiments):
            cell = rng.choice(6, steps, p=sizes)
            inside = np.eye(6)[cell]
            found.append(quoted(inside * (rng.random(steps) < rates[cell])[:, None], inside, mean_of_cells))
        known = [each for each in found if each is not None]  # where a cell is empty there is none
        ends = np.array([(each.low, each.high) for each in known])
        share = covered((ends[:, 0], ends[:, 1]), float(rates.mean()))
        broken += judged(f"mean over cells, {steps} steps", share, steps)
        rows.append(("mean over six cells", f"{steps} steps", shown(share)))
    for episodes in (5, 10, 20, 50, 200):
        rng = np.random.default_rng([5, episodes])
        weights = lengths(rng, (experiments, episodes)).astype(float)
        entropy = rng.gamma(2.0 * weights, 0.25) * rng.gamma(4.0, 0.25, weights.shape)
        printed = [quoted_mean(*each) for each in zip(entropy[:ALONE], weights[:ALONE], strict=True)]
        share = covered(sets(entropy, weights).without_bounds(), 0.5, printed)
        broken += judged(f"mean without bounds, {episodes} episodes", share, episodes)
        rows.append(("mean without bounds (as of entropies)", f"{episodes} episodes", shown(share)))
    return Table("cells", ("what", "of", "covers"), tuple(rows), tuple(broken))


class Pairs(NamedTuple):
    """Steps of experiments with two runs: right or not, (2, experiments, e, longest), which of these are steps."""

    right: NDArray[np.bool_]
    there: NDArray[np.bool_]

    @property
    def sums(self) -> Floats:
        """(2, experiments, e) right steps."""
        return np.asarray((self.right & self.there).sum(axis=3), dtype=np.float64)


def pairs(
    rng: np.random.Generator,
    experiments: int,
    episodes: int,
    effect: Effect,
    rate: float,
    apart: float,
    *,
    single: bool = False,
) -> Pairs:
    """Two runs of which the second is better by ``apart``, around ``rate``; half of what decides a step is in the step.

    Normal variables decide; those of an episode's steps correlate by 0.3, but for the effect ``none``.
    """
    steps = np.ones((experiments, episodes), dtype=np.int64) if single else lengths(rng, (experiments, episodes))
    longest = int(steps.max())
    common = {"shared": 1.0, "half": 0.5, "own": 0.0, "none": 0.0}[effect]
    correlation = 0.0 if effect == "none" else 0.3
    of_episode = rng.standard_normal((experiments, episodes))
    of_step = rng.standard_normal((experiments, episodes, longest))
    right = []
    for own in (rate - apart / 2, rate + apart / 2):
        episode = np.sqrt(common) * of_episode + np.sqrt(1 - common) * rng.standard_normal(of_episode.shape)
        step = np.sqrt(0.5) * (of_step + rng.standard_normal(of_step.shape))
        right.append(np.sqrt(correlation) * episode[..., None] + np.sqrt(1 - correlation) * step < ndtri(own))
    return Pairs(np.stack(right), np.arange(longest) < steps[..., None])


def compared(drawn: Pairs) -> Tested:
    """The second run minus the first."""
    steps = drawn.there.sum(axis=2).astype(float)
    one, other = drawn.sums
    found = tested(sets(other - one, steps))
    for low, high, p_value, before, after, own in zip(*found, one[:ALONE], other[:ALONE], steps, strict=False):
        alone = difference(Terms(after, own, pooled), Terms(before, own, pooled))
        if (after - before).any() and alone.interval is not None and alone.p_value is not None and alone.value:
            numbers = [alone.interval.low, alone.interval.high, alone.p_value]
            if not np.allclose([low, high, p_value], numbers, atol=1e-7):
                raise SystemExit(f"not what is printed: {low} to {high}, p {p_value}, {alone}")
    return found


def found_share(p_values: Floats | Sequence[float]) -> float:
    return float(np.mean(np.less(p_values, 0.05)))


def stated_difference(effect: Effect, rate: float, episodes: int, single: bool) -> float | None:
    """The difference that `guieval study power` states, where disagreement and icc of the difference are known."""
    apart: float | None = 0.0
    for _ in range(2):  # how often the models disagree depends on how far they are apart
        if apart is None or rate + apart / 2 >= 1:
            return None
        drawn = pairs(np.random.default_rng(9), 1, 30_000, effect, rate, apart, single=single)
        there = drawn.there[0]
        between = drawn.right[1, 0].astype(np.int8) - drawn.right[0, 0]
        own = [values[inside] for values, inside in zip(between, there, strict=True)]
        disagreement = float(np.abs(between[there]).mean())
        icc = intraclass_correlation(own) or 0.0
        of_all = independent_steps([len(each) for each in own], icc) / (1 - UNKNOWN / len(own))
        apart = smallest_paired(of_all * (episodes - UNKNOWN) / len(own), disagreement, STATED)
    return apart if apart is not None and rate + apart / 2 < 1 else None


def pairs_table(experiments: int) -> Table:
    """Differences of two runs: coverage, false alarms and power."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    effects: tuple[tuple[Effect, bool, str], ...] = (
        ("shared", False, "shared by both models"),
        ("half", False, "half shared"),
        ("own", False, "each model's own"),
        ("none", False, "none"),
        ("none", True, "one step an episode"),
    )
    for effect, single, named in effects:
        for rate in (0.6, 0.85):
            for episodes in (10, 20, 50, 200):
                rng = np.random.default_rng([6, episodes, round(100 * rate), len(effect), single])
                drawn = pairs(rng, experiments, episodes, effect, rate, 0.0, single=single)
                equal = compared(drawn)
                alarms, coverage = found_share(equal.p_value), covered((equal.low, equal.high), 0.0)
                one, other = (of[drawn.there] for of in drawn.right)
                ends = np.cumsum(drawn.there.sum(axis=(1, 2)))[:-1]
                by_steps = [mcnemar(*each).p_value for each in zip(np.split(one, ends), np.split(other, ends), strict=True)]
                what = f"difference, {named}, rate {rate}, {episodes} episodes"
                if alarms > MOST_ALARMS:
                    broken.append(f"{what}: false alarms {alarms:.3f}")
                broken += judged(what, coverage, episodes)
                cells = [shown(alarms), shown(found_share(by_steps)), shown(coverage)]
                apart = stated_difference(effect, rate, episodes, single)
                if apart is None:
                    cells += ["", "", ""]
                else:
                    better = compared(pairs(rng, experiments, episodes, effect, rate, apart, single=single))
                    coverage, power = covered((better.low, better.high), apart), found_share(better.p_value)
                    if rate + apart / 2 <= 0.95:
                        broken += judged(f"{what}, {apart:.3f} apart", coverage, episodes)
                    if episodes >= TESTED and abs(power - STATED) > NEAR:
                        broken.append(f"{what}: power {power:.3f}, stated {STATED}")
                    cells += [shown(coverage), f"{100 * apart:.1f}", shown(power)]
                rows.append((named, f"{rate:g}", str(episodes), *cells))
    heads = (
        *("what makes an episode hard", "rate", "episodes", "false alarms", "McNemar's", "covers, equal"),
        *("covers, unlike", "points stated for a power of 0.80", "power found"),
    )
    return Table("pairs", heads, tuple(rows), tuple(broken))


def ranks_table(experiments: int) -> Table:
    """Leaderboards of five equally good models: how often there is more than one rank."""
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for episodes in (12, 50, 200):
        rng = np.random.default_rng([7, episodes])
        steps = lengths(rng, (experiments, episodes))
        hard = rng.standard_normal((experiments, episodes))
        own = 0.6 + 0.15 * hard + 0.1 * rng.standard_normal((5, experiments, episodes))
        right = rng.binomial(steps, np.clip(own, 0.02, 0.98)).astype(float)
        known = {(i, j): tested(sets(right[i] - right[j], steps.astype(float))).p_value for i in range(5) for j in range(i)}
        several = 0
        for board in range(experiments):
            table = [
                [Measured(0.0, p_value=None if i == j else float(known[max(i, j), min(i, j)][board])) for j in range(5)]
                for i in range(5)
            ]
            several += len(set(ranks(right[:, board].sum(axis=1).tolist(), holm_pairs(table)))) > 1
        if several / experiments > MOST_ALARMS:
            broken.append(f"ranks, {episodes} episodes: {several / experiments:.3f} boards with several ranks")
        rows.append((str(episodes), shown(several / experiments)))
    return Table("ranks", ("episodes", "boards with more than one rank"), tuple(rows), tuple(broken))


def repeats_table(experiments: int) -> Table:
    """Exact match as the mean over repeats, each of which is better or worse throughout by a normal effect of its own."""
    effects = (0, 4, 12)
    rows: list[tuple[str, ...]] = []
    broken: list[str] = []
    for repeats in (2, 3, 5):
        for episodes in (10, 50, 200):
            row = [str(repeats), str(episodes)]
            for points in effects:
                rng = np.random.default_rng([8, repeats, episodes, points])
                steps = lengths(rng, (experiments, episodes))
                own = chances(rng, steps.shape, 0.6, 0.15)
                moved = own + 0.01 * points * rng.standard_normal((repeats, experiments, 1))
                right = rng.binomial(steps, np.clip(moved, 0.0, 1.0)).astype(float)
                share = _repeats_cover(right, steps.astype(float), _reference(points))
                least = LEAST_OF_TWO if repeats == 2 and points else LEAST
                broken += judged(f"{repeats} repeats, {episodes} episodes, sd {points} points", share, episodes, least)
                row.append(shown(share))
            rows.append(tuple(row))
    return Table("repeats", ("repeats", "episodes", *(f"sd {points} points" for points in effects)), tuple(rows), tuple(broken))


def _reference(points: int) -> float:
    """The true rate: that of steps whose chances, moved by an effect of a run, cannot leave 0 to 1."""
    rng = np.random.default_rng(10)
    own = chances(rng, (1_000_000,), 0.6, 0.15) + 0.01 * points * rng.standard_normal(1_000_000)
    return float(np.clip(own, 0.0, 1.0).mean())


def _repeats_cover(right: Floats, steps: Floats, truth: float) -> float:
    """Of intervals over episodes and repeats, (repeats, experiments, e) right steps."""
    mean = right.mean(axis=0)
    whole = steps.sum(axis=1)
    of_repeat = right.sum(axis=2) / whole
    typical = steps.mean(axis=1, keepdims=True)
    shares = right / typical + of_repeat[..., None] * (1.0 - steps / typical)
    low, high = sets(mean, steps).shares()
    low, high = excess([shares]).widened(of_repeat.mean(axis=0), low, high)
    printed: list[Interval | None] = []
    for place in range(ALONE):
        terms = [Terms(of[place], steps[place], pooled) for of in right]
        found = [Measured(float(each.numerator.sum() / each.denominator.sum()), interval=quoted(*each)) for each in terms]
        printed.append(over_repeats(found, [[each] for each in terms]).interval)
    return covered((np.maximum(low, 0.0), np.minimum(high, 1.0)), truth, printed)


TABLES: dict[str, Callable[[int], Table]] = {
    "steps": steps_table,
    "sop": sop_table,
    "single": lambda _: single_table(),
    "samples": samples_table,
    "cells": cells_table,
    "pairs": pairs_table,
    "ranks": ranks_table,
    "repeats": repeats_table,
}


def place(page: str, table: Table) -> str:
    """The page with the table in place of the one between its marks."""
    begin, end = (re.escape(mark.format(table.name)) for mark in MARKS)
    found, times = re.subn(f"{begin}.*?{end}", lambda _: table.markdown(), page, flags=re.DOTALL)
    if times != 1:
        raise SystemExit(f"docs/statistics.md has {times} places for the table {table.name!r}")
    return found


def unlike(page: str, table: Table) -> Iterator[str]:
    """Cells of the page that are not what was measured now."""
    begin, end = (re.escape(mark.format(table.name)) for mark in MARKS)
    there = re.search(f"{begin}(.*?){end}", page, flags=re.DOTALL)
    lines = [] if there is None else [line for line in there[1].splitlines() if line.startswith("|")][2:]
    written = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    if len(written) != len(table.rows):
        yield f"{table.name}: the page has {len(written)} rows, measured were {len(table.rows)}"
    for before, now in zip(written, table.rows, strict=False):
        for head, old, new in zip(table.heads, before, now, strict=True):
            if old != new and not near(old, new):
                yield f"{table.name}, {' '.join(now[:3])}, {head}: the page says {old or 'nothing'}, measured was {new}"


def near(old: str, new: str) -> bool:
    """Whether two numbers of a table are the same but for chance, since other versions of NumPy draw otherwise."""
    if all(re.fullmatch(r"[01]\.\d{3}", each) for each in (old, new)):
        share = min(max(float(new), 0.005), 0.995)
        return abs(float(old) - float(new)) <= 4 * math.sqrt(2 * share * (1 - share) / EXPERIMENTS)
    if all(re.fullmatch(r"\d+\.\d", each) for each in (old, new)):
        return abs(float(old) - float(new)) <= 0.1 + 0.03 * float(new)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="only these tables")
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    wrong: list[str] = []
    for name in given.tables or TABLES:
        began = time.monotonic()
        table = TABLES[name](given.experiments)
        print(f"{table.markdown()}\n{name}: {time.monotonic() - began:.0f} s\n", flush=True)
        wrong += table.broken
        if given.check:
            wrong += unlike(PAGE.read_text(encoding="utf-8"), table)
        if given.write:
            PAGE.write_text(place(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    for line in wrong:
        print(f"BROKEN: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
