"""The two-stage clustering of typed texts and app names: Algorithm 1 of the GUIEvalKit paper, appendix C.1.2.

What Algorithm 1 leaves open is decided here: ``Contain(x, π)`` holds where *either* text contains the other, case
aside. The paper's texts are cut short at either end of the comparison (Table 16: "m so happy today" is a prototype, and a
prototype is whatever came first), so a longer text must join a truncated prototype as a truncated text joins a longer one; case
is aside because it is style, which the clustering is said to be robust to, and in the authors' released code. ``ED`` is the
Levenshtein distance divided by the longer length, of the texts as given. Of several prototypes that satisfy the first stage
the first counts, of equally near ones in the second the first.

Working out the edit distance of every pair would take 40 to 70 ms for 512 texts of 60 characters. Most pairs are separated by
what two-character pieces they hold: an edit destroys at most two of a text's pieces, and a contained text's pieces are all in
the other. Both bounds hold under hash collisions, which only make texts look more alike, so nothing is lost by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LOOSE, STRICT = 0.3, 0.1
"""Algorithm 1's thresholds of the first and the second stage."""
_WORDS = 4
"""So many times 64 buckets are the pieces of a text hashed to; a power of two."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 / the golden ratio, odd."""
_ROWS_AT_ONCE = 32
"""Keeps an array of 512 columns in the processor's cache."""
_DUST = 1e-9
"""Keeps 0.1 * 30 from being less than 3."""


def cluster_texts(texts: Sequence[str], loose: float = LOOSE, strict: float = STRICT) -> tuple[NDArray[np.int64], list[int]]:
    """(n,) the cluster of each text, numbered from 0, and of each cluster the index of its prototype, the text that began it.

    ``texts`` are different from each other and in the order in which they were first seen, on which Algorithm 1 depends.
    A text that comes again is the same decision (Algorithm 1, read to the letter, could send a repetition to a prototype that
    a text in between began); count it, do not repeat it here.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import extractOne

    labels = np.zeros(len(texts), dtype=np.int64)
    lowered = [text.lower() for text in texts]
    begins = [False] * len(texts)
    prototypes: list[int] = []
    for place, (holding, alike) in enumerate(_candidates(texts, lowered, loose, strict)):
        text, low = texts[place], lowered[place]
        for other in holding:
            if (
                begins[other]
                and (low in lowered[other] or lowered[other] in low)
                and Levenshtein.normalized_distance(text, texts[other]) <= loose
            ):
                labels[place] = labels[other]
                break
        else:
            among = {other: texts[other] for other in alike if begins[other]}
            best = extractOne(text, among, scorer=Levenshtein.normalized_distance, score_cutoff=strict) if among else None
            if best is not None:  # of equally near ones the first: what comes later must be nearer
                labels[place] = labels[best[2]]
            else:
                begins[place] = True
                labels[place] = len(prototypes)
                prototypes.append(place)
    return labels, prototypes


def _candidates(
    texts: Sequence[str], lowered: Sequence[str], loose: float, strict: float
) -> Iterator[tuple[list[int], list[int]]]:
    """Of each text the earlier ones that the first stage may accept, and those that the second may; ascending."""
    n = len(texts)
    lengths = np.array([len(text) for text in texts], dtype=np.float32)
    row, piece = _pieces(texts)
    held = _signatures(row, piece, n, _WORDS)
    sizes = _ones(held).sum(axis=1, dtype=np.float32)
    bits = _signatures(*_pieces(lowered), n, 1)[:, 0]
    # Texts are no nearer than their lengths, and edits within a threshold are as many as the longer text has room for.
    allowed, more = _edits(lengths, strict), _edits(lengths, loose)
    for start in range(0, n, _ROWS_AT_ONCE):
        end = min(n, start + _ROWS_AT_ONCE)
        own, earlier = slice(start, end), slice(0, end)
        edits = np.maximum(allowed[own, None], allowed[earlier])
        lost = np.maximum(sizes[own, None], sizes[earlier])  # pieces of the one that the other lacks, of the worse way round
        for word in range(_WORDS):
            lost -= _ones(held[own, word, None] & held[earlier, word])
        apart = lengths[own, None] - lengths[earlier]
        np.abs(apart, out=apart)
        alike = apart <= edits
        edits *= 2
        alike &= lost <= edits
        both = bits[own, None] & bits[earlier]
        holding = both == bits[own, None]
        holding |= both == bits[earlier]
        holding &= apart <= np.maximum(more[own, None], more[earlier])
        yield from zip(_listed(holding, start), _listed(alike, start), strict=True)


def _edits(lengths: NDArray[np.float32], threshold: float) -> NDArray[np.float32]:
    """How many edits keep two texts within the threshold, for each length of the longer one."""
    return np.floor(threshold * lengths.astype(np.float64) + _DUST).astype(np.float32)


def _signatures(row: NDArray[np.int64], piece: NDArray[np.int64], n: int, words: int) -> NDArray[np.uint64]:
    """(n, words) a bit for each bucket that a piece of the text falls into."""
    # Fibonacci hashing: the product's highest bits depend on all of the piece.
    bucket = (piece.astype(np.uint64) * _GOLDEN) >> np.uint64(64 - (64 * words - 1).bit_length())
    held = np.zeros(n * words, dtype=np.uint64)
    np.bitwise_or.at(held, row * words + (bucket // 64).astype(np.int64), np.uint64(1) << bucket % 64)
    return held.reshape(n, words)


def _ones(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """How many bits are set in each word."""
    if hasattr(np, "bitwise_count"):  # since NumPy 2
        return np.asarray(np.bitwise_count(words))
    pairs = words - (words >> np.uint64(1) & np.uint64(0x5555555555555555))
    fours = (pairs & np.uint64(0x3333333333333333)) + (pairs >> np.uint64(2) & np.uint64(0x3333333333333333))
    bytes_ = (fours + (fours >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.asarray((bytes_ * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint8)


def _pieces(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every two neighbouring characters of every text: the text's index, and a number that equal pieces share."""
    joined = "\0".join(texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4").astype(np.int64)
    ends = np.cumsum([len(text) + 1 for text in texts])
    owner = np.searchsorted(ends, np.arange(len(codes)), side="right")
    within = owner[:-1] == owner[1:]
    within &= np.arange(1, len(codes)) + 1 != ends[owner[1:]]  # the joining character belongs to the text before it
    return owner[:-1][within], (codes[:-1] * 0x110000 + codes[1:])[within]


def _listed(mask: NDArray[np.bool_], start: int) -> list[list[int]]:
    """The columns below the diagonal that hold in each row; the first row is number ``start``."""
    rows, columns = np.nonzero(mask)
    below = columns < rows + start
    cuts = np.searchsorted(rows[below], np.arange(len(mask) + 1)).tolist()
    listed = columns[below].tolist()
    return [listed[begin:end] for begin, end in pairwise(cuts)]
