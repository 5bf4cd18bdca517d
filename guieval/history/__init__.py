"""What a step sees of the past: entries, modes, and mixing schedules."""

from guieval.history.memory import (
    HistoryEntry,
    HistorySource,
    describe,
    patched_entry,
    recalled,
    reference_entry,
    reference_history,
    select,
)

__all__ = [
    "HistoryEntry",
    "HistorySource",
    "describe",
    "patched_entry",
    "recalled",
    "reference_entry",
    "reference_history",
    "select",
]
