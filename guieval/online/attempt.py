"""One attempt at a task, fed with what the environment shows and what the model responses: the rules of mode ``online``.

The runner of online runs and the trainer of online RL both follow it, so prompts, executed actions and endings are the same in
evaluation and in training. It calls neither the environment nor the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from itertools import takewhile
from typing import Any, Literal, NamedTuple, TypeVar

from guieval.actions import Action, ExecutableAction, Stop, StopStatus, Type, Unsupported, executable
from guieval.errors import EnvironmentFailure, GuievalError
from guieval.history import HistoryEntry
from guieval.online.contract import ABCDevice, Observation
from guieval.online.trajectory import TrajectoryStep
from guieval.steps import Ended, OnlineTask, Outcome, Sample, Score, StepTaskModel

MOST_ATTEMPTS = 3
"""Attempts at a task in one session, if its environment fails."""
MOST_UNPARSEABLE = 3
"""Responses in a row without an action that end a task."""
CLOSE_SECONDS = 15.0
UNKNOWN = Unsupported(name="unknown")
"""The reference action of a step online: there is none."""

_Result = TypeVar("_Result")


class LoopRule(NamedTuple):
    """What ``equal`` responses in a row with the same actions do.

    ``stop``: the attempt ends as at the step limit. ``fail``: it ends and counts as failed. ``terminate``: a stop as finished
    is carried out in the place of the last of them, as if the model had ended the task.
    """

    equal: int
    effect: Literal["stop", "fail", "terminate"]


class Attempt:
    """An attempt at ``task``.

    It ends after ``most`` steps (the task's, until it is cut), when the model stops it, when the environment has ended it,
    after ``unparseable`` responses in a row without an action, or by the rule ``loop``. ``typed`` is how a text is typed, and
    ``counted`` the success in place of the environment's: of its score, and whether the model stopped the task.
    """

    def __init__(
        self,
        task: OnlineTask,
        *,
        unparseable: int = MOST_UNPARSEABLE,
        loop: LoopRule | None = None,
        typed: Callable[[str], str] = str,
        counted: Callable[[Score, bool], Score] = lambda score, stopped: score,
    ) -> None:
        self.task = task
        self.most = task.max_steps
        self.most_unparseable = unparseable
        self.loop = loop
        self._typed, self._counted = typed, counted
        self.history: list[HistoryEntry] = []
        """The executed steps so far, oldest first, as prompts show them."""
        self.steps = 0
        self.unparseable = 0
        self.unsupported = 0
        self.stopped: StopStatus | None = None
        self._in_a_row = 0
        self._last: tuple[Action, ...] = ()
        self._equal = 0

    @property
    def looped(self) -> bool:
        """Whether the model has repeated itself as often as the rule allows."""
        return self.loop is not None and self._equal >= self.loop.equal

    def shown(self, observation: Observation, screenshot: str) -> StepTaskModel:
        """The next step as an adapter takes it; ``screenshot`` is the file of the observation's."""
        task = self.task
        return StepTaskModel(
            benchmark=task.benchmark,
            dataset=task.dataset,
            subset=task.subset,
            episode_id=task.episode_id,
            step_index=self.steps,
            episode_length=self.most,
            instruction=observation.goal,
            screenshot=screenshot,
            screenshot_size=observation.size,
            action=UNKNOWN,
            groups=task.groups,
            extras={} if observation.text is None else {"screen_text": observation.text},
        )

    def answered(self, shown: StepTaskModel, reply: Sample | TrajectoryStep) -> list[ExecutableAction]:
        """Take the response to a step; returns what the device is to carry out, nothing if the response has no such action."""
        carried = carried_out(reply)
        replaced = self.replaced(reply)
        self._equal, self._last = self._repeated(reply), reply.actions
        self.steps += 1
        self._in_a_row = self._in_a_row + 1 if reply.action is None else 0
        self.unparseable += reply.action is None
        self.unsupported += reply.action is not None and not carried
        for action in reply.actions:
            if isinstance(action, Stop):
                self.stopped = action.status
        if replaced:
            self.stopped = "finish"
            return [Stop(status="finish")]
        if carried and reply.action is not None:
            self.history.append(HistoryEntry(shown, reply.action, reply.thought, reply.conclusion, reply.raw_response, "model"))
        return [Type(text=self._typed(each.text)) if isinstance(each, Type) else each for each in carried]

    def replaced(self, reply: Sample | TrajectoryStep) -> bool:
        """Whether a stop as finished is carried out in the place of this response's actions."""
        return self.loop is not None and self.loop.effect == "terminate" and self._repeated(reply) >= self.loop.equal

    def _repeated(self, reply: Sample | TrajectoryStep) -> int:
        """How many responses in a row, this one included, have its actions."""
        return self._equal + 1 if reply.actions and reply.actions == self._last else bool(reply.actions)

    def over(self, observation: Observation) -> bool:
        """Whether the environment is to judge now, after a step."""
        ended = self.steps >= self.most or self.stopped is not None or observation.over or self.looped
        return ended or self._in_a_row >= self.most_unparseable

    def ended(self, score: Score, observation: Observation) -> Ended:
        """How the attempt ended, with the last observation and its judgement."""
        if score.success:
            return "success"
        if self._in_a_row >= self.most_unparseable:
            return "unparseable"
        if self.stopped is not None and score.unjudged:
            return "not judged"
        if self.stopped is not None:
            return "false completion" if self.stopped == "finish" else "wrong stop"
        if self.looped:
            return "loop"
        return "failed" if observation.over else "step limit"

    def outcome(self, score: Score, observation: Observation, **recorded: Any) -> Outcome:
        """The outcome with the last observation and its judgement; ``recorded`` are its other fields."""
        score = self._counted(score, self.stopped is not None)
        if self.looped and self.loop is not None and self.loop.effect == "fail":
            own = score.reason or ("success" if score.success else "no success")
            reason = f"{self.loop.equal} equal actions in a row count as failed; the environment: {own}"
            score = score.model_copy(update={"success": False, "reason": reason})
        return Outcome(
            ended=self.ended(score, observation),
            score=score,
            steps=self.steps,
            stopped=self.stopped,
            unparseable=self.unparseable,
            unsupported=self.unsupported,
            **recorded,
        )


def carried_out(reply: Sample | TrajectoryStep) -> list[ExecutableAction]:
    """A response's actions that a device can carry out, up to the first one that it cannot."""
    first = takewhile(lambda action: action is not None, map(executable, reply.actions))
    return [action for action in first if action is not None]


def screen_name(screenshot: bytes) -> str:
    """The name of an encoded screenshot's file, from its content."""
    kind = "png" if screenshot.startswith(b"\x89PNG") else "jpg"
    return f"{sha256(screenshot).hexdigest()[:32]}.{kind}"


async def closed(device: ABCDevice) -> None:
    """Close a device, whatever state it is in; it is left after :data:`CLOSE_SECONDS`."""
    with suppress(Exception):
        await asyncio.wait_for(asyncio.shield(device.close()), CLOSE_SECONDS)


async def within(seconds: float, call: Awaitable[_Result], what: str) -> _Result:
    """Wait for a call of the environment; :class:`EnvironmentFailure` if it fails or takes longer than ``seconds``.

    ``what`` completes the sentence "the environment failed ...", e.g. "to begin a task".
    """
    try:
        return await asyncio.wait_for(call, seconds)
    except TimeoutError:
        raise EnvironmentFailure(f"the environment took longer than {seconds:g} s {what}") from None
    except GuievalError:
        raise
    except Exception as error:  # an environment may be anyone's code
        raise EnvironmentFailure(f"the environment failed {what}: {type(error).__name__}: {error}") from error
