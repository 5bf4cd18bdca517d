"""The steps that runs answered, reduced to what data selection needs: the step and the verdict on its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from guieval.actions import Press
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import RunFolder
from guieval.scoring.recorded_run import read_again
from guieval.steps import EpisodeKey, Setting, StepKey, Verdict


@dataclass(frozen=True)
class Candidate:
    """One answered step.

    ``type`` is the unified type of its reference, ``button`` the one that a PRESS presses. ``reason`` is that of the
    verdict. ``reasoning_length`` counts the characters of the answer's reasoning, wherever it is; 0 without any.
    """

    key: StepKey
    dataset: str
    setting: Setting
    episode_length: int
    type: str
    button: str | None
    groups: Mapping[str, str]
    run: str
    protocol: str
    verdict: Verdict
    exact_match: bool
    reason: str
    reasoning_length: int

    @property
    def episode_key(self) -> EpisodeKey:
        return EpisodeKey(*self.key[:3])

    @property
    def answered(self) -> bool:
        """Whether the model answered; an infrastructure failure carries no information about difficulty."""
        return self.verdict != "infrastructure_failure"


@dataclass(frozen=True)
class Candidates:
    """The steps of some runs, in the runs' order and then the benchmark's; ``unrecorded`` steps were planned but not run."""

    steps: Sequence[Candidate]
    runs: Sequence[str]
    unrecorded: int

    @property
    def unanswered(self) -> int:
        """The number of steps without an answer, whose difficulty is unknown."""
        return self.unrecorded + sum(not step.answered for step in self.steps)


def read_candidates(directories: Sequence[Path], protocol: str | None = None) -> Candidates:
    """The counted steps of run directories, each answer judged again under ``protocol`` (default: each run's own).

    Of several answers to a step the first one is judged, as in every step metric; of several records of a step the last
    answered one counts. Raises :class:`UsageError` for no run, an unknown protocol, and a step that two of the runs hold.
    """
    steps: list[Candidate] = []
    run_of: dict[StepKey, str] = {}
    unrecorded = 0
    for directory in directories:
        run = RunFolder(directory)
        evaluator = ActionEvaluator(run.protocol if protocol is None else protocol)
        found: dict[StepKey, Candidate] = {}
        for episode in run.offsets:
            for record in run.read(episode).values():
                task, sample = record.task, read_again(evaluator, None, record.task, record.sample)
                found[task.key] = Candidate(
                    key=task.key,
                    dataset=task.dataset,
                    setting=task.setting,
                    episode_length=task.episode_length,
                    type=task.action.type,
                    button=task.action.button if isinstance(task.action, Press) else None,
                    groups=task.groups,
                    run=directory.name,
                    protocol=evaluator.protocol.name,
                    verdict=sample.outcome.verdict,
                    exact_match=sample.outcome.exact_match,
                    reason=sample.outcome.reason,
                    reasoning_length=len(sample.reasoning or "") + len(sample.thought or ""),
                )
        for key in found:
            if run_of.setdefault(key, str(directory)) != str(directory):
                raise UsageError(
                    f"the runs {run_of[key]!r} and {str(directory)!r} both answer step {key}; the difficulty "
                    "must come from one of them, so give one run of each benchmark"
                )
        # In the plan's order: that of the journal is the order in which the servers happened to answer.
        planned = [StepKey(*key, index) for key, indices in run.plan.items() for index in indices]
        steps += [found[step] for step in planned if step in found]
        unrecorded += len(planned) - len(found)
    if not steps:
        raise UsageError(f"no step is recorded in {', '.join(repr(str(each)) for each in directories)}")
    return Candidates(steps, [directory.name for directory in directories], unrecorded)


def draw_place(seed: int, key: EpisodeKey | StepKey) -> str:
    """The sort key of ``key`` in the order of ``seed``: 64 hexadecimal digits.

    It depends on the seed and the name alone, so adding data adds to a draw and reshuffles nothing.
    """
    return sha256("\n".join([str(seed), *map(str, key)]).encode("utf-8", "surrogatepass")).hexdigest()
