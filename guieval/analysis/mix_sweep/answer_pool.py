"""Answers that a sweep need not ask for again: under greedy decoding an equal prompt has an equal answer.

Two settings of history mixing show a step the same past wherever the same of its steps are the model's own: a step with k past
steps that can be replaced has at most 2^k prompts, however many settings there are. The artifacts being the same throughout
a sweep, the origins of the past tell the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from guieval.data.benchmark import EpisodeRef
from guieval.history.mixing import Mixture
from guieval.journal import Journal, Records
from guieval.steps import HistoryOrigin, Plan, StepKey, StepRecord


class AnswerPool:
    """The answered records of one sweep, each prompt's once, in a journal of their own, of which ``journal`` is the writer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._directory: Path = journal.directory
        self._places: dict[tuple[StepKey, tuple[HistoryOrigin, ...]], int] = {
            (record.task.key, record.history): offset for offset, record in Records(self._directory).with_offsets()
        }

    def __len__(self) -> int:
        return len(self._places)

    def add(self, run: Path) -> None:
        """Take in what a finished run asked that is not known yet."""
        file = Records(self._directory).path
        for record in Records(run):
            prompt = record.task.key, record.history
            if record.finished and prompt not in self._places:
                self._places[prompt] = file.stat().st_size  # where a journal's next line begins
                self._journal.append(record)

    def prefill(self, run: Path, mixture: Mixture, plan: Plan, refs: Sequence[EpisodeRef]) -> int:
        """Put all that is known of a run that has begun into its journal, where a resume finds it; returns how many steps.

        The copies have no usage and no time, because they took none.
        """
        lengths: Mapping[object, int] = {ref.key: ref.length for ref in refs}
        records = Records(self._directory)
        found = 0
        with Journal(run) as journal:
            for episode, steps in plan.items():
                for index in steps:
                    prompt = StepKey(*episode, index), mixture.origins(episode, index, lengths[episode])
                    if prompt not in self._places:
                        continue
                    journal.append(_copy(records.at(self._places[prompt])))
                    found += 1
        return found


def _copy(record: StepRecord) -> StepRecord:
    samples = tuple(each.model_copy(update={"usage": None, "seconds": None}) for each in record.samples)
    return record.model_copy(update={"samples": samples})
