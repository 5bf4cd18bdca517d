"""The two-stage clustering of typed texts and app names: Algorithm 1 of the GUIEvalKit paper, appendix C.1.2.

``Contain(x, π)`` is true if *either* text contains the other, ignoring case. ``ED`` is the Levenshtein distance, with case,
divided by the longer length. If several prototypes satisfy a stage, the first stage takes the first one and the second stage
the nearest one, the first of equally near ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LOOSE, STRICT = 0.3, 0.1
"""Algorithm 1's thresholds of the first and the second stage."""


def cluster_texts(texts: Sequence[str], loose: float = LOOSE, strict: float = STRICT) -> tuple[NDArray[np.int64], list[int]]:
    """(n,) the cluster of each text, numbered from 0, and of each cluster the index of its prototype, the text that began it.

    ``texts`` must differ from each other, in the order in which they were first seen, on which Algorithm 1 depends. A repeated
    text is the same decision (Algorithm 1, read to the letter, could assign a repetition to a prototype that began in between):
    count it, do not repeat it here.
    """
    from rapidfuzz.distance.Levenshtein import normalized_distance
    from rapidfuzz.process import extractOne

    labels = np.zeros(len(texts), dtype=np.int64)
    begun: list[int] = []
    prototypes: list[str] = []
    lowered: list[str] = []
    for place, text in enumerate(texts):
        low = text.lower()
        containing = (number for number, other in enumerate(lowered) if low in other or other in low)
        label = next((number for number in containing if normalized_distance(text, prototypes[number]) <= loose), None)
        if label is None:
            nearest = extractOne(text, prototypes, scorer=normalized_distance, score_cutoff=strict)
            label = len(prototypes) if nearest is None else nearest[2]
        if label == len(prototypes):
            begun.append(place)
            prototypes.append(text)
            lowered.append(low)
        labels[place] = label
    return labels, begun
