"""Algorithm 1, against a transcript of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from guieval.studies.decisions.text_clusters import cluster_texts


def by_the_letter(texts: list[str], loose: float, strict: float) -> tuple[list[int], list[int]]:
    """Lines 4 to 20 of Algorithm 1, with ED and Contain spelt out."""

    def distance(one: str, other: str) -> float:
        row = list(range(len(other) + 1))
        for i, a in enumerate(one, 1):
            before, row[0] = row[0], i
            for j, b in enumerate(other, 1):
                before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
        return row[-1] / max(len(one), len(other)) if one or other else 0.0

    prototypes, labels = [0], [0]
    for i in range(1, len(texts)):
        x = texts[i]
        j = next(
            (
                j
                for j, p in enumerate(prototypes)
                if (x.lower() in texts[p].lower() or texts[p].lower() in x.lower()) and distance(x, texts[p]) <= loose
            ),
            None,
        )
        if j is None:
            gamma = [j for j, p in enumerate(prototypes) if distance(x, texts[p]) <= strict]
            if gamma:
                j = min(gamma, key=lambda j: distance(x, texts[prototypes[j]]))
            else:
                j = len(prototypes)
                prototypes.append(i)
        labels.append(j)
    return labels, prototypes


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Different texts that are edits, truncations and other spellings of each other."""
    letters = draw(st.sampled_from(["ab", "abcAB ", "abcdefghij ", "aİßΣσς多😀"]))
    texts = [draw(st.text(letters, max_size=draw(st.sampled_from([4, 15, 40]))))]
    for _ in range(draw(st.integers(0, 14))):
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(text)))
            text = text[:at] + draw(st.sampled_from([*letters, ""])) + text[at + draw(st.integers(0, 1)) :]
        cut = draw(st.sampled_from([0, 0, 1, 2, 5]))
        text = text[cut:] if draw(st.booleans()) else text[: len(text) - cut]
        texts.append(text.swapcase() if draw(st.integers(0, 5)) == 0 else text)
    return list(dict.fromkeys(texts))


@pytest.mark.ci
@settings(max_examples=1000)
@given(alike(), st.sampled_from([(0.3, 0.1), (0.3, 0.1), (0.5, 0.3), (0.1, 0.3), (0.0, 0.0), (1.0, 1.0)]))
@example(["", "a"], (0.3, 0.1))
@example(["a\ud800b", "a\ud800"], (0.5, 0.1))
def test_clusters_are_those_of_the_algorithm(texts: list[str], thresholds: tuple[float, float]) -> None:
    labels, prototypes = cluster_texts(texts, *thresholds)
    assert (labels.tolist(), prototypes) == by_the_letter(texts, *thresholds)


def test_the_prototypes_of_table_16_stay_apart() -> None:
    for prototypes in (
        [
            "There will be a Science Fair in our city next month.",
            "There will be a Science Fair at Lincoln High School tomorrow.",
            "There will be a great science fair event this Sunday.",
            "Science Fair will come soon",
            "There will be a Science Fair Event next week.",
            "There will be a science fair held in our school tomorrow",
        ],
        [
            "m so happy today",
            "m so happy today because my family came together",
            "m",
            "I'm tired",
            "I am really happy today because it's my birthday!",
            "I am alone",
        ],
    ):
        assert cluster_texts(prototypes)[0].tolist() == list(range(6))


def test_a_truncated_text_joins_its_prototype_and_a_whole_one_a_truncated_prototype() -> None:
    whole, cut, severe = "Science Fair tomorrow", "Science Fair tomo", "Science"
    assert cluster_texts([whole, cut, severe])[0].tolist() == [0, 0, 1]
    assert cluster_texts([cut, whole])[0].tolist() == [0, 0]
    assert cluster_texts(["google maps", "GOOGLE MAP"])[0].tolist() == [0, 1]  # ED is of the texts as given
    assert cluster_texts(["Google maps", "google map"])[0].tolist() == [0, 0]


def test_of_several_prototypes_the_first_contains_and_the_nearest_is_strict() -> None:
    # 5 of 24 characters differ between the prototypes; the third text is 1 edit from the second and 4 or 5 from the first.
    first, second, third = "a" * 20 + "bcde", "a" * 20 + "fghi", "a" * 20 + "fghj"
    assert cluster_texts([first, second, third])[0].tolist() == [0, 1, 1]
    # Contained in both prototypes within 0.3, and nearer to the second: the first one counts.
    assert cluster_texts(["abcdefghij", "ABCDEFGHI", "abcdefgh"], 0.3, 0.0)[0].tolist() == [0, 1, 0]
