"""What a step sees of the past: entries, memory, modes, and mixing schedules."""

from guieval.history.memory import (
    DrawnPast,
    EpisodeMemory,
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
    "DrawnPast",
    "EpisodeMemory",
    "HistoryEntry",
    "HistorySource",
    "describe",
    "patched_entry",
    "recalled",
    "reference_entry",
    "reference_history",
    "select",
]
