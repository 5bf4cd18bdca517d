"""Measures what an interval costs, of runs of 30,000 steps: ``python perf/intervals.py``.

The aim is below 1 s. What counts is how many different episodes there are (right steps, steps), not how many.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np

from guieval.metrics.intervals import Floats, Terms, mean_of_cells, pooled, quoted
from guieval.metrics.paired import difference
from guieval.metrics.repeats import differences

STEPS = 30_000


def episodes(count: int, mean: float, seed: int = 0) -> tuple[Floats, Floats]:
    """Right steps and steps of ``count`` episodes of unlike difficulty."""
    rng = np.random.default_rng(seed)
    lengths = 1 + rng.poisson(mean - 1, count)
    return rng.binomial(lengths, rng.beta(3, 2, count)).astype(np.float64), lengths.astype(np.float64)


def show(label: str, act: Callable[[], object]) -> None:
    began = time.perf_counter()
    act()
    print(f"  {label:75} {time.perf_counter() - began:7.3f} s")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    quoted(*episodes(10, 2))  # imports SciPy
    right, steps = episodes(STEPS // 6, 6)
    show("exact match, 5,000 episodes of 6 steps", lambda: quoted(right, steps))
    show("progress, 5,000 episodes (fractions)", lambda: quoted(right / steps, np.ones(len(steps))))
    single = np.minimum(right, 1)
    show(
        "mean of 6 cells, 5,000 single steps",
        lambda: quoted(
            np.eye(6)[np.arange(len(single)) % 6] * single[:, None], np.eye(6)[np.arange(len(single)) % 6], mean_of_cells
        ),
    )
    other = episodes(STEPS // 6, 6, seed=1)[0]
    first, second = Terms(right, steps, pooled), Terms(np.minimum(other, steps), steps, pooled)
    show("difference of two runs, 5,000 episodes", lambda: difference(first, second))
    many = [
        Terms(np.minimum(episodes(1500, 6, seed)[0], episodes(1500, 6)[1]), episodes(1500, 6)[1], pooled) for seed in range(12)
    ]
    show("all differences of 12 runs, 1,500 episodes", lambda: differences([[each] for each in many]))
    scores = np.random.default_rng(0).random(STEPS)
    show("worst case: 30,000 single steps, each with a score of its own", lambda: quoted(scores, np.ones(STEPS)))
