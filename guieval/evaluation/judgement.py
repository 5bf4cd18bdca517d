"""The result of comparing one prediction with one accepted action."""

from __future__ import annotations

from typing import NamedTuple


class Judgement(NamedTuple):
    """The result of comparing one prediction with one accepted action; fields as in :class:`guieval.steps.StepOutcome`."""

    type_match: bool
    exact_match: bool
    distance: float | None
    text_similarity: float | None
    reason: str


def short(text: str, limit: int = 60) -> str:
    """The text in quotes, cut if it is long, for a reason."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
