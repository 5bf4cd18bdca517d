"""The Patch Module for rollouts in training: who writes the thoughts of patched steps, and one patch driven to its end.

Source: UI-S1 paper, section 3.3 and Table 5. The prompt, the reading of a thought and the entry that a patched step leaves are
the evaluation's own (:mod:`guieval.models.patch_thoughts`, :func:`guieval.history.patched_entry`), so that both see the same
past.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from guieval.history import HistoryEntry, patched_entry
from guieval.models import ABCModel, ModelInput
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.steps import StepTaskModel

__all__ = ["OffPolicyThoughts", "OnPolicyThoughts", "ThoughtSource", "finish_patch", "patched_entry"]

ThoughtSource: TypeAlias = Callable[[StepTaskModel, Sequence[HistoryEntry]], str | None]
"""Writes the thought that leads to a step's reference action, given the step and its past oldest first."""


@dataclass(frozen=True)
class OnPolicyThoughts:
    """The policy's own thoughts: ``generate`` answers a request of its adapter ``model`` with the policy as it is now."""

    model: ABCModel
    generate: Callable[[ModelInput], str]

    def __call__(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str | None:
        """Ask with the expert's action as a hint."""
        return read_thought(self.generate(self.request(task, history)), model=self.model, task=task)

    def request(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """What the policy is asked; for trainers that generate in batches and read the answers themselves."""
        return on_policy_input(self.model, task, history)


@dataclass(frozen=True)
class OffPolicyThoughts:
    """Thoughts of an auxiliary model, which sees the goal, the screenshot and the expert's action: ``generate`` asks it."""

    generate: Callable[[ModelInput], str]

    def __call__(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str | None:
        """Ask with the expert's action as a hint."""
        return read_thought(self.generate(off_policy_input(task)), task=task)


def finish_patch(rollout: SemiOnlineRollout, thoughts: ThoughtSource) -> None:
    """Give a rollout in state ``patch`` the thought it waits for; in any other state nothing is asked and nothing changes."""
    if rollout.state == "patch":
        rollout.patch(thoughts(rollout.task, rollout.history))
