"""Environments for TRL's own loop: ``GRPOTrainer(environment_factory=tool_environments("miniwob"))``.

TRL makes the public methods of :class:`ToolEnvironment` the tools of a model whose chat template has tool calls: the answer of
a tool is the next screenshot, and the reward is the judge's at the end. ``openenv`` with ``url`` acts through a server
(``guieval dev serve-environment``). ``guieval train online`` needs no tool calls: it trains every model that guieval can read.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from guieval import actions as act
from guieval.data.screenshots import picture
from guieval.errors import EnvironmentFailure
from guieval.online import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.online.attempt import within
from guieval.online.find import load_environment
from guieval.steps import Outcome
from guieval.training.settings import JudgeReward

Blocks = list[dict[str, Any]]
"""Content blocks of a chat message: ``{"type": "image", "image": PIL}`` and ``{"type": "text", "text": ...}``."""


def tool_environments(
    bench: str, *, reward: JudgeReward | None = None, seconds: float = 120.0, **options: Any
) -> Callable[[], ToolEnvironment]:
    """A factory of rollouts in the environment ``bench`` with its options.

    ``seconds`` bounds every call of the environment. Raises :class:`guieval.errors.UsageError` for an unknown name or option.
    """
    environment = load_environment(bench, **options)
    tasks = {task.id: task for task in environment.tasks()}
    weights = JudgeReward() if reward is None else reward
    return lambda: ToolEnvironment(environment, tasks, weights, seconds)


class ToolEnvironment:
    """One rollout at a time. The data set's columns ``task`` (an id) and ``seed`` (default 0) choose what it begins.

    Points are integers in [0, 1000] of the screenshot's width and height. An environment that fails ends the rollout, and
    :meth:`get_reward` then returns ``None``, which TRL leaves out.
    """

    def __init__(
        self, environment: ABCEnvironment, tasks: dict[str, EnvironmentTask], reward: JudgeReward, seconds: float
    ) -> None:
        self._environment, self._tasks, self._reward, self._seconds = environment, tasks, reward, seconds
        self._runner = asyncio.Runner()
        self._device: ABCDevice | None = None
        self._observation: Observation | None = None
        self._steps = 0
        self._most = 0
        self._stopped = self._failed = False
        atexit.register(self._close)

    def reset(self, *, task: str, seed: int = 0, **columns: Any) -> Blocks:
        """Begin a task; returns its goal and the first screenshot. Raises ``KeyError`` for a task that does not exist."""
        named = self._tasks[task]
        self._steps, self._most, self._stopped, self._failed = 0, named.max_steps, False, False
        try:
            if self._device is None:
                self._device = self._run(self._environment.open(), "to start")
            self._observation = self._run(self._device.reset(named, seed), "to begin a task")
        except EnvironmentFailure as error:
            return self._given_up(error)
        return [*_shown(self._observation), {"type": "text", "text": self._observation.goal}]

    def get_reward(self) -> float | None:
        """The reward of the rollout by the environment's judgement of its present state."""
        if self._failed or self._device is None:
            return None
        try:
            score = self._run(self._device.score(), "to judge")
        except EnvironmentFailure as error:
            self._given_up(error)
            return None
        return self._reward.of(Outcome(ended="success" if score.success else "failed", score=score, steps=self._steps))

    def click(self, x: int, y: int) -> Blocks:
        """
        Tap, or click with the left button.

        Args:
            x: Horizontal place from 0 (left) to 1000 (right).
            y: Vertical place from 0 (top) to 1000 (bottom).
        """
        return self._act(act.Click(point=act.Point(x, y)))

    def double_click(self, x: int, y: int) -> Blocks:
        """
        Tap or click twice in one place.

        Args:
            x: Horizontal place from 0 (left) to 1000 (right).
            y: Vertical place from 0 (top) to 1000 (bottom).
        """
        return self._act(act.DoubleClick(point=act.Point(x, y)))

    def long_press(self, x: int, y: int) -> Blocks:
        """
        Press and hold.

        Args:
            x: Horizontal place from 0 (left) to 1000 (right).
            y: Vertical place from 0 (top) to 1000 (bottom).
        """
        return self._act(act.LongPress(point=act.Point(x, y)))

    def scroll(self, x: int, y: int, direction: act.Direction) -> Blocks:
        """
        Swipe from a place, in the direction in which the finger moves.

        Args:
            x: Horizontal place from 0 (left) to 1000 (right).
            y: Vertical place from 0 (top) to 1000 (bottom).
            direction: Direction in which the finger moves.
        """
        return self._act(act.Scroll(point=act.Point(x, y), direction=direction))

    def type_text(self, text: str) -> Blocks:
        """
        Type into the field that has the focus.

        Args:
            text: The text.
        """
        return self._act(act.Type(text=text))

    def press(self, button: Literal["BACK", "HOME", "ENTER"]) -> Blocks:
        """
        Press a button of the device.

        Args:
            button: The button.
        """
        return self._act(act.Press(button=button))

    def wait(self) -> Blocks:
        """
        Wait until the screen has changed.
        """
        return self._act(act.Wait())

    def stop(self, status: Literal["finish", "impossible"]) -> Blocks:
        """
        End the task.

        Args:
            status: Whether the task is finished, or cannot be done.
        """
        return self._act(act.Stop(status=status))

    def _act(self, action: act.ExecutableAction) -> Blocks:
        observation = self._observation
        if self._failed or self._device is None or observation is None:
            raise RuntimeError("the environment failed")  # TRL shows the model the sentence
        if self._stopped or observation.over or self._steps >= self._most:
            raise RuntimeError("the task is over")
        self._steps += 1
        self._stopped = isinstance(action, act.Stop)
        try:
            self._observation = self._run(self._device.step([action]), "to carry out an action")
        except EnvironmentFailure as error:
            return self._given_up(error)
        return _shown(self._observation)

    def _run(self, call: Coroutine[Any, Any, Any], what: str) -> Any:
        return self._runner.run(within(self._seconds, call, what))

    def _given_up(self, error: EnvironmentFailure) -> Blocks:
        self._failed = True
        self._close()
        return [{"type": "text", "text": str(error)}]

    def _close(self) -> None:
        device, self._device = self._device, None
        if device is not None:
            self._runner.run(device.close())


def _shown(observation: Observation) -> Blocks:
    return [{"type": "image", "image": picture(observation.screenshot)}]
