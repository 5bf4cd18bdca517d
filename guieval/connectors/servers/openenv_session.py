"""One client's session with a served environment: the messages of OpenEnv's WebSocket protocol, and a device that obeys them.

Source: the Python package openenv 0.10.0, ``openenv/core/env_server/types.py`` (messages, error codes), ``http_server.py`` (the
endpoint ``/ws``) and ``serialization.py`` (the form of an observation). A message is a JSON object with ``type`` and ``data``:
``reset``, ``step``, ``state`` or ``close``; an answer is an ``observation``, a ``state`` or an ``error``.
"""

from __future__ import annotations

import asyncio
import json
import random
from base64 import b64encode
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from guieval.actions import DeviceAction, ExecutableAction, Stop, TableNineAction
from guieval.errors import GuievalError, UsageError, first_problem, nearest
from guieval.online.attempt import closed
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

SPLIT = "all"
"""The only split of an environment's tasks."""

ServedAction: TypeAlias = Annotated[TableNineAction | DeviceAction, Field(discriminator="type")]
ACTION: TypeAdapter[ExecutableAction] = TypeAdapter(ServedAction)
"""The actions of a step: unified actions, as JSON."""
Ended: TypeAlias = Literal["stop", "step limit", "environment"]
"""Why an episode is over: the agent's Stop, its last step, or the environment itself."""

_Result = TypeVar("_Result")


class ResetArguments(BaseModel):
    """The choice of a client: a task by ``task_id``, or by ``index`` (and ``split``); else the seed chooses one."""

    model_config = ConfigDict(extra="forbid")

    seed: Annotated[int | None, Field(ge=0)] = None
    episode_id: Annotated[str | None, Field(max_length=255)] = None
    task_id: str | None = None
    split: str | None = None
    index: Annotated[int | None, Field(ge=0)] = None


class Progress(BaseModel):
    """How far an episode is; ``score`` is the environment's judgement, once the episode is over."""

    seed: int
    steps: int
    max_steps: int
    ended: Ended | None
    score: Score | None


class ServedObservation(BaseModel):
    """The view of an agent: ``screenshot`` is an image (PNG, or JPEG) in base64, ``size`` its (width, height) in pixels."""

    goal: str
    screenshot: str
    size: tuple[int, int]
    text: str | None
    task_id: str
    metadata: Progress


class ServedState(BaseModel):
    """The state of a session; ``score`` judges the task as it is now. All but ``step_count`` are null before a reset."""

    episode_id: str | None = None
    step_count: int = 0
    task_id: str | None = None
    seed: int | None = None
    max_steps: int | None = None
    ended: Ended | None = None
    score: Score | None = None


class Refused(Exception):
    """A message that is answered by an error with one of OpenEnv's codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def error_answer(code: str, message: str) -> dict[str, Any]:
    """The answer to a message that cannot be carried out."""
    return {"type": "error", "data": {"message": message, "code": code}}


def task_name(task: EnvironmentTask) -> str:
    """The id by which a client asks for a task."""
    return f"{task.subset}/{task.id}" if task.subset else task.id


class Session:
    """Answers messages, one after the other, on a device that is opened by the first reset.

    A device that fails, or takes longer than ``timeout`` seconds, is closed; the next reset opens another one.
    """

    def __init__(self, environment: ABCEnvironment, tasks: Sequence[EnvironmentTask], timeout: float) -> None:
        self._environment = environment
        self._tasks = tasks
        self._timeout = timeout
        self._device: ABCDevice | None = None
        self._begin("", None, 0)

    def _begin(self, episode: str, task: EnvironmentTask | None, seed: int) -> None:
        self._episode, self._task, self._seed = episode, task, seed
        self._steps = 0
        self._seen: Observation | None = None
        self._ended: Ended | None = None

    async def answer(self, text: str | bytes) -> dict[str, Any] | None:
        """The answer to a message, or ``None`` for one that closes the session."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return error_answer("INVALID_JSON", "the message is not JSON")
        if not isinstance(message, dict) or not isinstance(data := message.get("data", {}), dict):
            return error_answer("VALIDATION_ERROR", "the message is not a JSON object whose data is an object")
        try:
            match message.get("type"):
                case "reset":
                    return await self._reset(data)
                case "step":
                    return await self._step(data)
                case "state":
                    return {"type": "state", "data": (await self._state()).model_dump(mode="json")}
                case "close":
                    return None
                case kind:
                    raise Refused("UNKNOWN_TYPE", f"unknown type {kind!r:.80} of a message; known: reset, step, state, close")
        except Refused as refused:
            return error_answer(refused.code, str(refused))

    async def close(self) -> None:
        device, self._device = self._device, None
        if device is not None:
            await closed(device)

    async def _reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            wanted = ResetArguments.model_validate(data)
        except ValidationError as error:
            raise _invalid("reset", error, ResetArguments) from None
        seed = random.randrange(2**31) if wanted.seed is None else wanted.seed
        task = self._chosen(wanted, seed)
        self._begin(wanted.episode_id or str(uuid4()), None, seed)
        if self._device is None:
            self._device = await self._within(self._environment.open(), "to start", "FACTORY_ERROR")
        self._seen = await self._within(self._device.reset(task, seed), "to begin a task")
        self._task = task
        return await self._observation(None)

    def _chosen(self, wanted: ResetArguments, seed: int) -> EnvironmentTask:
        if wanted.task_id is not None:
            found = next((task for task in self._tasks if task_name(task) == wanted.task_id), None)
            if found is None:
                known = nearest(wanted.task_id, map(task_name, self._tasks))
                raise Refused("VALIDATION_ERROR", f"reset: there is no task {wanted.task_id!r:.200}{known}")
            return found
        if wanted.split not in (None, SPLIT):
            raise Refused("VALIDATION_ERROR", f"reset: split is {wanted.split!r:.200}; expected {SPLIT!r}")
        if wanted.index is None:
            return self._tasks[seed % len(self._tasks)]
        if wanted.index >= len(self._tasks):
            raise Refused("VALIDATION_ERROR", f"reset: index is {wanted.index}; there are {len(self._tasks)} tasks, from 0")
        return self._tasks[wanted.index]

    async def _step(self, data: Mapping[str, Any]) -> dict[str, Any]:
        device, task = self._now()
        if self._ended is not None:
            raise Refused("EXECUTION_ERROR", f"the task has ended ({self._ended}); reset begins another one")
        try:  # `metadata` is a field of every action of OpenEnv
            action = ACTION.validate_python({name: value for name, value in data.items() if name != "metadata"})
        except ValidationError as error:
            raise _invalid("step", error) from None
        self._seen = await self._within(device.step([action]), "to carry out an action")
        self._steps += 1
        if isinstance(action, Stop):
            self._ended = "stop"
        elif self._seen.over:
            self._ended = "environment"
        elif self._steps >= task.max_steps:
            self._ended = "step limit"
        score = None if self._ended is None else await self._score(device)
        return await self._observation(score, 0.0 if score is None else float(score.success))

    async def _state(self) -> ServedState:
        if self._device is None or self._task is None:
            return ServedState()
        return ServedState(
            episode_id=self._episode,
            step_count=self._steps,
            task_id=task_name(self._task),
            seed=self._seed,
            max_steps=self._task.max_steps,
            ended=self._ended,
            score=await self._score(self._device),
        )

    async def _score(self, device: ABCDevice) -> Score:
        return await self._within(device.score(), "to judge")

    async def _observation(self, score: Score | None, reward: float | None = None) -> dict[str, Any]:
        _, task = self._now()
        assert self._seen is not None
        seen = ServedObservation(
            goal=self._seen.goal,
            screenshot=b64encode(self._seen.screenshot).decode("ascii"),
            size=self._seen.size,
            text=self._seen.text,
            task_id=task_name(task),
            metadata=Progress(seed=self._seed, steps=self._steps, max_steps=task.max_steps, ended=self._ended, score=score),
        ).model_dump(mode="json")
        data = {"observation": seen, "reward": reward, "done": self._ended is not None, "metadata": seen["metadata"]}
        return {"type": "observation", "data": data}

    def _now(self) -> tuple[ABCDevice, EnvironmentTask]:
        if self._device is None or self._task is None:
            raise Refused("EXECUTION_ERROR", "no task has begun; send a reset first")
        return self._device, self._task

    async def _within(self, call: Awaitable[_Result], what: str, code: str = "EXECUTION_ERROR") -> _Result:
        """Wait for the environment; close its device and refuse the message if it fails or takes too long."""
        try:
            return await asyncio.wait_for(call, self._timeout)
        except TimeoutError:
            reason = f"the environment took longer than {self._timeout:g} s {what}"
        except UsageError as error:
            reason = str(error)
        except GuievalError as error:
            reason = f"{error}; reset begins a task on a new device"
        except Exception as error:  # an environment may be anyone's code
            reason = f"the environment failed {what}: {type(error).__name__}: {error}"
        await self.close()
        self._task = None
        raise Refused(code, reason)


def _invalid(what: str, error: ValidationError, model: type[BaseModel] | None = None) -> Refused:
    problem = first_problem(error, model)
    field = ".".join(part for part in problem.path if not part.isupper())  # without the tags of the union
    return Refused("VALIDATION_ERROR", f"{what}: {field} {problem.sentence}".replace(":  ", ": "))
