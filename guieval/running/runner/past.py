"""The history that each step of a run sees: the memory of unfinished episodes, the references, or a mixture of both."""

from __future__ import annotations

from collections.abc import Sequence

from guieval.history import HistoryEntry, recalled, reference_entry, reference_history
from guieval.running.resolve import ResolvedRun
from guieval.steps import Episode, EpisodeKey, StepRecord


class Past:
    """The past of every episode, as the run's mode shows it. In sequential modes it keeps what was answered."""

    def __init__(self, run: ResolvedRun) -> None:
        self._mode = run.mode
        self._mixture = run.mixture
        self._entries: dict[EpisodeKey, list[HistoryEntry]] = {}

    def before(self, episode: Episode, index: int) -> Sequence[HistoryEntry]:
        """What the step at ``index`` sees, oldest first."""
        if self._mode.sequential:
            self._catch_up(episode, index)
            return tuple(self._entries[episode.key])
        if self._mixture is not None:
            return self._mixture.history(episode.steps[:index])
        return reference_history(episode.steps[:index])

    def remember(self, episode: Episode, record: StepRecord) -> None:
        """Let later steps see this one, and the references of steps before it that do not count and so were not asked."""
        index = record.task.step_index
        self._catch_up(episode, index)
        self._entries[episode.key].append(recalled(self._mode.history, episode.steps[index], record))

    def forget(self, key: EpisodeKey) -> None:
        """Free what is kept of an episode that is over."""
        self._entries.pop(key, None)

    def _catch_up(self, episode: Episode, index: int) -> None:
        entries = self._entries.setdefault(episode.key, [])
        entries += map(reference_entry, episode.steps[len(entries) : index])
