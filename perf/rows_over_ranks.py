"""The useful share of a semi-online training batch on several processes: rows that are trained on among all rows computed.

    python perf/rows_over_ranks.py [--batches 200] [--seed 0]

Simulated with the functions that the trainer uses: 32 tasks x 8 rollouts (UI-S1's batch) of 1 to 12 steps, which stop at the
second mismatch (one patch); a step matches with a probability that belongs to its task. A group is dropped when the spread of
its advantages is at most 0.3, as in training. The old rule kept a row on the process of its rollout, filled all processes up to
the fullest one, and drew a whole batch again when any group was dropped. A share of rollouts is printed too: those in groups
that are trained on among all generated.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable
from functools import partial
from statistics import fmean

from guieval.rewards.advantages import Trajectory, keep_group
from guieval.training.trainers.dealing import dealt, divided, rows_each

TASKS, ROLLOUTS, ETA, MOST_DRAWS, CHUNKS = 32, 8, 0.3, 3, 8
Group = tuple[list[int], bool]  # rows of each rollout, and whether the group is kept


def group(dice: random.Random) -> Group:
    steps, matching = dice.randint(1, 12), dice.betavariate(2, 1)
    rollouts = []
    for _ in range(ROLLOUTS):
        matched: list[bool] = []
        while len(matched) < steps and matched.count(False) < 2:
            matched.append(dice.random() < matching)
        rollouts.append(matched)
    members = [
        Trajectory("task", tuple(range(len(each))), tuple(1.0 if match else 0.1 for match in each), tuple(each))
        for each in rollouts
    ]
    return [len(each) for each in rollouts], keep_group(members, ETA)


def old_rule(draw: Callable[[], Group], ranks: int) -> tuple[float, float]:
    """Shares of useful rows and rollouts; whole batches are drawn, and rows stay where they were generated."""
    kept: list[tuple[int, list[int]]] = []  # place in its batch, rows
    drawn = 0
    while len(kept) < TASKS and drawn < TASKS * MOST_DRAWS:
        kept += [(place, rows) for place, (rows, keep) in enumerate(draw() for _ in range(TASKS)) if keep]
        drawn += TASKS
    on_rank = [0] * ranks
    for place, rows in kept[:TASKS]:
        for rollout, count in enumerate(rows):
            on_rank[(place * ROLLOUTS + rollout) * ranks // (TASKS * ROLLOUTS)] += count
    computed = max(CHUNKS, math.ceil(max(on_rank) / CHUNKS) * CHUNKS) * ranks
    return sum(on_rank) / computed, min(TASKS, len(kept)) / drawn


def new_rule(draw: Callable[[], Group], ranks: int) -> tuple[float, float]:
    """Shares of useful rows and rollouts; missing groups are drawn, and rows are dealt out."""
    kept: list[list[int]] = []
    drawn, missing = 0, TASKS
    while missing > 0:
        kept += [rows for rows, keep in (draw() for _ in range(missing)) if keep]
        drawn += missing
        missing = min(TASKS - len(kept), TASKS * MOST_DRAWS - drawn)
    lengths = [1] * sum(sum(rows) for rows in kept)
    hands = dealt(lengths, ranks, CHUNKS)
    each = rows_each(len(lengths), ranks, CHUNKS)
    assert all(len(chunk) <= len(part) for hand in hands for chunk, part in zip(hand, divided(each, CHUNKS), strict=True))
    return len(lengths) / (each * ranks), len(kept) / drawn


def main() -> None:
    parser = argparse.ArgumentParser(description="The useful share of rows on 8 and 32 processes, old rule and new.")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{'processes':>9}  {'rule':<4}  {'rows':>5}  {'rollouts':>8}")
    for ranks in (8, 32):
        for name, rule in (("old", old_rule), ("new", new_rule)):
            dice = random.Random(given.seed)
            shares = [rule(partial(group, dice), ranks) for _ in range(given.batches)]
            rows, rollouts = (fmean(share) for share in zip(*shares, strict=True))
            print(f"{ranks:>9}  {name:<4}  {rows:5.3f}  {rollouts:8.3f}")


if __name__ == "__main__":
    main()
