"""How a typed text or an app's name is compared with the label's."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.data.patterns import matches_whole
from guieval.evaluation.judgement import Judgement, short

TextComparison: TypeAlias = Literal[
    "containment",
    "containment-or-similarity",
    "containment-or-token-f1",
    "similarity",
    "token-f1",
    "equal",
    "equal-or-token-f1",
    "same-words",
    "type-only",
]
TextForm: TypeAlias = Literal["lower-stripped", "single-spaced", "stripped", "as-given", "unbracketed", "label-lowered"]
Similarity: TypeAlias = Literal["levenshtein", "indel"]
Tokens: TypeAlias = Literal["set", "multiset"]
Span: TypeAlias = Literal["whole", "action", "second-token"]


@dataclass(frozen=True)
class TextRule:
    """Whether two texts agree, both brought into one ``form`` first.

    ``single-spaced``: lower-cased and stripped, all white space a single blank (UI-Genie). ``unbracketed``: without [ and ],
    lower-cased and stripped. ``label-lowered``: without [ and ], and of the two the label alone lower-cased
    (AndroidControl-Curated).

    ``containment``: either contains the other; an empty text is contained in every text, so it always matches, as under every
    published containment rule. ``similarity``: it reaches ``threshold``; it is 1 - Levenshtein distance / the longer
    length, or with ``similarity="indel"`` 1 - the number of insertions and deletions / both lengths together (what
    python-Levenshtein calls ratio); two empty texts are equal. ``token-f1``: the F1 of the lower-cased tokens between white
    space, taken as a ``set`` or a ``multiset``, reaches ``threshold``; no token in common is 0, so two empty texts differ.
    ``equal``: the same characters. ``same-words``: the same set of words, words of punctuation alone left out. ``type-only``:
    any text agrees. An "or" between two of them accepts what either accepts.

    To reach a threshold is to be at least that, or with ``above`` more than that. ``span`` is the text that the F1 is computed
    on: the ``whole`` text; the written ``action`` "TYPE [text]", whose first token always agrees, or only the ``second-token``
    of that (OS-Atlas on GUI-Odyssey and on AndroidControl). With ``part_of_word`` two texts of one token each have F1 1 if
    one is part of the other (GUI-R1).

    Whatever the rule, a text that one of the step's patterns matches from its first to its last character agrees
    (:func:`guieval.evaluation.rules.patterns_of`).
    """

    compare: TextComparison = "containment"
    threshold: float = 0.5
    form: TextForm = "lower-stripped"
    above: bool = False
    similarity: Similarity = "levenshtein"
    tokens: Tokens = "set"
    span: Span = "whole"
    part_of_word: bool = False

    def normalise(self, text: str, *, label: bool = False) -> str:
        """The form in which a predicted text, or the label's, is compared."""
        match self.form:
            case "lower-stripped":
                return text.lower().strip()
            case "single-spaced":
                return " ".join(text.lower().split())
            case "stripped":
                return text.strip()
            case "unbracketed":
                return text.lower().replace("[", "").replace("]", "").strip()
            case "label-lowered":
                text = text.replace("[", "").replace("]", "")
                return text.lower() if label else text
            case "as-given":
                return text

    def matches(self, reference: str, predicted: str) -> bool:
        """Compare two normalised texts."""
        if self.compare == "type-only":
            return True
        if self.compare == "same-words":
            return _words(predicted) == _words(reference)
        return (
            (self.compare.startswith("equal") and predicted == reference)
            or (self.compare.startswith("containment") and (predicted in reference or reference in predicted))
            or (self.compare.endswith("similarity") and self._similar(reference, predicted))
            or (self.compare.endswith("token-f1") and self._reaches(self.f1(reference, predicted)))
        )

    def judge(self, reference: str, predicted: str, patterns: Sequence[str] = ()) -> Judgement:
        """Compare two texts; ``text_similarity`` is the normalised Levenshtein similarity of their normalised forms."""
        expected, given = self.normalise(reference, label=True), self.normalise(predicted)
        matched = self.matches(expected, given)
        exact = matched or any(matches_whole(pattern, predicted) for pattern in patterns)
        if not exact:
            reason = f"text {short(predicted)}, reference {short(reference)}"
        elif given == expected:
            reason = "the text is equal"
        else:
            reason = self._why(expected, given) if matched else "the text matches an accepted pattern"
        return Judgement(True, exact, None, _levenshtein(expected, given), reason)

    def _why(self, expected: str, given: str) -> str:
        if self.compare == "type-only":
            return "any text agrees"
        if self.compare == "same-words":
            return "the text has the same words"
        if self.compare.startswith("containment") and (given in expected or expected in given):
            return "the text is part of the reference" if given in expected else "the text contains the reference"
        reached = f"{'more than' if self.above else 'at least'} {self.threshold:g}"
        return f"the text is {reached} similar" if "similarity" in self.compare else f"the words' F1 is {reached}"

    def f1(self, reference: str, predicted: str) -> float:
        """F1 of the tokens of two normalised texts, in [0, 1]."""
        wanted, given = self._tokens(reference), self._tokens(predicted)
        if self.part_of_word and len(wanted) == len(given) == 1:
            (one,), (other,) = wanted, given
            if one in other or other in one:
                return 1.0
        common = (wanted & given).total()
        if not common:
            return 0.0
        # Precision and recall first: the published code rounds in this order.
        precision, recall = common / given.total(), common / wanted.total()
        return 2 * (precision * recall) / (precision + recall)

    def _tokens(self, text: str) -> Counter[str]:
        """How often each lower-cased token counts; a set counts each once."""
        tokens = (text if self.span == "whole" else f"type [{text}]").lower().split()
        if self.span == "second-token":
            tokens = tokens[1:2]
        return Counter(tokens if self.tokens == "multiset" else set(tokens))

    def _similar(self, reference: str, predicted: str) -> bool:
        return self._reaches((_levenshtein if self.similarity == "levenshtein" else _indel)(reference, predicted))

    def _reaches(self, value: float) -> bool:
        return value > self.threshold if self.above else value >= self.threshold

    def describe(self) -> str:
        form = {
            "lower-stripped": "both lower-cased and stripped",
            "single-spaced": "both lower-cased and stripped, with a single blank for all white space",
            "stripped": "both stripped",
            "as-given": "as they are",
            "unbracketed": "both lower-cased, stripped and without square brackets",
            "label-lowered": "both without square brackets and only the label lower-cased",
        }[self.form]
        reaches = f"is {'more than' if self.above else 'at least'} {self.threshold:g}"
        similar = {
            "levenshtein": "1 - Levenshtein distance / longer length",
            "indel": "1 - insertions and deletions / both lengths",
        }[self.similarity]
        if self.compare == "type-only":
            return "any text agrees"
        if self.compare == "same-words":
            return f"the texts have the same words, {form}, punctuation left out"
        words = {
            "containment": "one text contains the other",
            "equal": "the texts are equal",
            "similarity": f"{similar} {reaches}",
            "token-f1": f"{self._f1_words()} {reaches}",
        }
        first, _, second = self.compare.partition("-or-")
        return f"{words[first]}, {form}" + (f", or {words[second]}" if second else "")

    def _f1_words(self) -> str:
        words = f"the F1 of their {self.tokens}s of lower-cased words"
        if self.span != "whole":
            words += ' in "TYPE [text]"' if self.span == "action" else ' (only of the second one in "TYPE [text]")'
        if self.part_of_word:
            words += " (1 for two single words of which one is part of the other)"
        return words


def _levenshtein(expected: str, given: str) -> float:
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_similarity(expected, given)


def _indel(expected: str, given: str) -> float:
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(expected, given)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if word not in string.punctuation)
