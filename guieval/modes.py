"""Modes of evaluation: two independent switches and the presets that carry the published names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.errors import UsageError, nearest
from guieval.history import HistorySource

StopPolicy: TypeAlias = Literal["never", "first-mismatch"]


@dataclass(frozen=True)
class Mode:
    """What history a step sees, and when an episode ends before its reference does."""

    name: str
    history: HistorySource
    stop: StopPolicy
    summary: str

    @property
    def sequential(self) -> bool:
        """Whether a step must wait for the answer to the one before it."""
        return self.history != "reference" or self.stop != "never"


MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("offline", "reference", "never", "every step on the reference trajectory (GUIEvalKit 3.3.1, eq. 3)"),
        Mode(
            "soeval",
            "matched",
            "never",
            "history holds the model's own thought and action where it was right, else the reference (GUIEvalKit eq. 4, 5)",
        ),
        Mode("sop", "model", "first-mismatch", "the model's own history, stopped at the first mismatch (UI-S1 appendix C)"),
    )
}


def get_mode(name: str) -> Mode:
    """The preset called ``name``; :class:`UsageError` with the nearest name when there is none."""
    try:
        return MODES[name]
    except KeyError:
        raise UsageError(f"unknown mode {name!r}{nearest(name, MODES)}; known: {', '.join(MODES)}") from None
