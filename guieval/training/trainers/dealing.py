"""Divides rollouts, rows and micro-batches among the processes of a training. Needs no torch.

A group that is dropped, or rollouts of unequal length, would leave some processes with fewer rows than others, and all must
compute equally many. So the rows of all processes are shuffled and dealt out again; ``perf/rows_over_ranks.py`` measures it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def divided(count: int, parts: int) -> list[range]:
    """The numbers up to ``count`` in consecutive parts whose lengths differ by at most one."""
    return [range(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def rows_each(rows: int, ranks: int, chunks: int) -> int:
    """The rows of each process, fillers included: as few as hold all ``rows``, and at least one per chunk."""
    return max(chunks, math.ceil(rows / ranks))


def dealt(lengths: Sequence[int], ranks: int, chunks: int) -> list[list[list[int]]]:
    """The numbers of the rows of each process, in ``chunks`` parts; ``lengths`` are the rows' tokens in shuffled order.

    A chunk has at most :func:`rows_each` / ``chunks`` rows, rounded up, and fewer rows than that of another process if
    fillers are needed, which is only at the end. Within a chunk, rows are dealt by length, because the processes wait for the
    longest row of those that are computed at the same time.
    """
    hands: list[list[list[int]]] = [[] for _ in range(ranks)]
    for part in divided(rows_each(len(lengths), ranks, chunks), chunks):
        taken = range(part.start * ranks, min(part.stop * ranks, len(lengths)))
        ordered = sorted(taken, key=lambda number: -lengths[number])
        for rank, hand in enumerate(hands):
            hand.append(ordered[rank::ranks])
    return hands


def micro_batches(rows: int, most: int) -> list[range]:
    """The rows of one chunk in as few micro-batches of at most ``most`` rows as hold them."""
    return divided(rows, math.ceil(rows / most))
