"""The Patch Module for rollouts in training: the sources of the thoughts of patched steps, and a function that applies one.

Source: UI-S1 paper, section 3.3 and Table 5. The prompt, the parsing of a thought and the history entry of a patched step are
those of the evaluation (:mod:`guieval.models.patch_thoughts`, :func:`guieval.history.patched_entry`), so both see the same
history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelInput
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.steps import StepTaskModel

ThoughtSource: TypeAlias = Callable[[StepTaskModel, Sequence[HistoryEntry]], str | None]
"""Writes the thought that leads to a step's reference action, given the step and its past oldest first."""


@dataclass(frozen=True)
class OnPolicyThoughts:
    """The policy's own thoughts: ``generate`` answers a request of its adapter ``model`` with the current policy."""

    model: ABCModel
    generate: Callable[[ModelInput], str]

    def __call__(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str | None:
        """Ask with the expert's action as a hint."""
        return read_thought(self.generate(self.request(task, history)), model=self.model, task=task)

    def request(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The request to the policy, for trainers that generate in batches and parse the responses themselves."""
        return on_policy_input(self.model, task, history)


@dataclass(frozen=True)
class OffPolicyThoughts:
    """Thoughts of an auxiliary model, which sees the goal, the screenshot and the expert's action; ``generate`` queries it."""

    generate: Callable[[ModelInput], str]

    def __call__(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str | None:
        """Ask with the expert's action as a hint."""
        return read_thought(self.generate(off_policy_input(task)), task=task)


def finish_patch(rollout: SemiOnlineRollout, thoughts: ThoughtSource) -> None:
    """Give a rollout in state ``patch`` its thought; in any other state this does nothing."""
    if rollout.state == "patch":
        rollout.patch(thoughts(rollout.task, rollout.history))
