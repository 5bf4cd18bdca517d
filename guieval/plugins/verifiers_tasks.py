"""verifiers (Prime Intellect), version 1: a taskset of steps, each a task with one response, whose reward is the protocol's.

verifiers finds a taskset by the name of a module at the top level, so a file ``guieval_steps.py`` of the user imports
:class:`StepTaskset` from here. The reward is exact match; :mod:`guieval.rewards.adapters.verifiers` has the weighed rewards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from guieval.models import Response
from guieval.plugins.harness_steps import harness_steps
from guieval.steps import Sample

__all__ = ["StepTaskset"]


class StepsConfig(vf.TasksetConfig):
    """``settings`` are those of ``guieval run``: model (the checkpoint), bench, data, protocol, sample_set and others."""

    settings: dict[str, Any] = Field(default_factory=dict)


class StepData(vf.TaskData):
    """A step: its key and the settings with which it is found and scored again; ``episode`` groups the steps."""

    key: str
    settings: dict[str, Any]
    episode: str


class StepTask(vf.Task[StepData]):
    """One request and one response."""

    @property
    def key(self) -> str:
        return str(self.data.key)

    @vf.stop
    async def answered(self, trace: vf.Trace) -> bool:
        return bool(trace.num_turns >= 1)

    @vf.reward(weight=1.0)
    async def exact_match(self, trace: vf.Trace) -> float:
        return float(self._scored(trace).outcome.exact_match)

    @vf.metric
    async def verdict(self, trace: vf.Trace) -> dict[str, float]:
        """Which of the verdicts it is, and whether the action's type is right."""
        outcome = self._scored(trace).outcome
        kinds = ("right", "wrong", "unparseable", "unsupported")
        return {**{kind: float(outcome.verdict == kind) for kind in kinds}, "type_match": float(outcome.type_match)}

    def _scored(self, trace: vf.Trace) -> Sample:
        sample = harness_steps(self.data.settings).scored(self.data.key, _answer(trace))
        if not sample.answered:
            raise RuntimeError(sample.outcome.reason)
        return sample


class StepTaskset(vf.Taskset[StepTask, StepsConfig]):
    """The steps of a benchmark with the prompts of a checkpoint's family."""

    def load(self) -> Iterator[StepTask]:
        steps = harness_steps(self.config.settings)
        for key in steps.keys:
            prompt, episode = steps.messages(steps.body(key)), str(steps.task(key).episode_key)
            data = StepData(key=key, prompt=prompt, settings=self.config.settings, episode=episode)
            yield StepTask(data, self.config.task)


def _answer(trace: vf.Trace) -> Response:
    """The last response with its calls and its reasoning, which ``Trace.last_reply`` leaves out."""
    messages = trace.assistant_messages
    return Response.of(messages[-1] if messages else None)
