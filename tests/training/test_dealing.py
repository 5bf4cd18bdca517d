"""Rows dealt to processes: each row once, equally many for all, and as few fillers as can be."""

from __future__ import annotations

import random

from guieval.training.trainers.dealing import dealt, divided, micro_batches, rows_each
from tests.rows import every_row


def test_a_small_deal_by_hand_whose_parts_differ_by_at_most_one() -> None:
    """Seven rows for two processes in two chunks: four each, so the last chunk of the second has one filler."""
    lengths = [5, 9, 1, 4, 8, 2, 7]
    assert rows_each(7, 2, 2) == 4
    # chunks hold two rows of each process: rows 0 to 3 by length are 1, 0, 3, 2, rows 4 to 6 are 4, 6, 5
    assert dealt(lengths, 2, 2) == [[[1, 3], [4, 5]], [[0, 2], [6]]]
    assert divided(7, 3) == [range(0, 2), range(2, 4), range(4, 7)]
    assert divided(1, 3) == [range(0, 0), range(0, 0), range(0, 1)]
    assert [len(part) for part in micro_batches(7, 3)] == [2, 2, 3]
    assert [len(part) for part in micro_batches(6, 3)] == [3, 3]
    assert rows_each(0, 8, 4) == 4  # every chunk of every process is computed


@every_row("seed", range(40))
def test_every_row_is_dealt_once(seed: int) -> None:
    dice = random.Random(seed)
    rows, ranks, chunks = dice.randrange(200), dice.randrange(1, 33), dice.randrange(1, 9)
    lengths = [dice.randrange(1, 5000) for _ in range(rows)]
    hands = dealt(lengths, ranks, chunks)
    assert sorted(number for hand in hands for chunk in hand for number in chunk) == list(range(rows))
    each = rows_each(rows, ranks, chunks)
    planned = [len(part) for part in divided(each, chunks)]
    fillers = 0
    for hand in hands:
        missing = [most - len(chunk) for most, chunk in zip(planned, hand, strict=True)]
        assert min(missing) >= 0
        fillers += sum(missing)
    assert fillers == each * ranks - rows
    if rows >= chunks * ranks:
        assert fillers < ranks
