"""Asks for the steps of recorded episodes: the history that each one sees, and what follows from its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from guieval.data.benchmark import EpisodeRef
from guieval.errors import DataError
from guieval.history import HistoryEntry, recalled, reference_entry, reference_history
from guieval.history.modes import Mode
from guieval.running.resolved import ResolvedRun, load_episode
from guieval.running.runner.asking import Asking
from guieval.running.runner.step import Asker
from guieval.steps import Episode, EpisodeKey, Sample, StepRecord


def continues(mode: Mode, record: StepRecord) -> bool:
    """Whether the steps of its episode after a record may run."""
    on = mode.stop == "never" or record.exact or record.patch is not None
    return not mode.sequential or (record.finished and on)


class EpisodeAsking(Asking[Episode, StepRecord]):
    """Asks for the steps of a run's episodes; ``seen`` is called with every record.

    The past of an episode is shown as the run's mode shows it; in sequential modes what was answered is kept.
    """

    def __init__(self, run: ResolvedRun, asker: Asker, seen: Callable[[StepRecord], None]) -> None:
        self._run = run
        self._asker = asker
        self._seen = seen
        self._past: dict[EpisodeKey, list[HistoryEntry]] = {}
        self._patched: Counter[EpisodeKey] = Counter()

    def load(self, ref: EpisodeRef) -> Episode:
        try:
            episode: Episode = load_episode(self._run.benchmark, ref)
        except DataError as error:
            raise DataError(f"{error}; a new run with --skip-damaged leaves such episodes out") from error
        if [ref.key, ref.length] != [episode.key, len(episode)]:
            raise DataError(
                f"episode {ref.key} of {ref.length} steps is in the index of {self._run.benchmark.name!r}, "
                f"but what it loads is {episode.key} of {len(episode)}"
            )
        return episode

    def resume(self, loaded: Episode, kept: Iterable[StepRecord]) -> None:
        if self._run.mode.sequential:
            for record in kept:
                self._remember(loaded, record)
                self._patched[loaded.key] += not record.exact

    async def answer(self, loaded: Episode, index: int, earlier: Mapping[int, Sample]) -> StepRecord:
        task = loaded.steps[index]
        return await self._asker.answer(
            task,
            self._before(loaded, index),
            patched=self._patched[task.episode_key],
            last=index == self._run.plan[task.episode_key][-1],
            earlier=earlier,
        )

    def goes_on(self, loaded: Episode, record: StepRecord) -> bool:
        """Take in a record; whether the episode's next step may run.

        In a sequential mode a step that was never answered suspends its episode: going on with a made-up past would give
        the later steps a history that the resumed run would not give them.
        """
        self._seen(record)
        if not continues(self._run.mode, record):
            return False
        if not self._run.mode.sequential:
            return True
        self._remember(loaded, record)
        self._patched[loaded.key] += record.patch is not None
        return True

    def forget(self, key: EpisodeKey) -> None:
        self._past.pop(key, None)
        self._patched.pop(key, None)

    def _before(self, episode: Episode, index: int) -> Sequence[HistoryEntry]:
        """The history of the step at ``index``, oldest first."""
        if self._run.mode.sequential:
            return tuple(self._caught_up(episode, index))
        if self._run.mixture is not None:
            return self._run.mixture.history(episode.steps[:index])
        return reference_history(episode.steps[:index])

    def _remember(self, episode: Episode, record: StepRecord) -> None:
        """Let later steps see this one, and the references of steps before it that do not count and so were not asked."""
        index = record.task.step_index
        self._caught_up(episode, index).append(recalled(self._run.mode.history, episode.steps[index], record))

    def _caught_up(self, episode: Episode, index: int) -> list[HistoryEntry]:
        entries = self._past.setdefault(episode.key, [])
        entries += map(reference_entry, episode.steps[len(entries) : index])
        return entries
