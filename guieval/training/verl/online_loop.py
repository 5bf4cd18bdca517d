"""verl's agent loop of a task in an environment: one rollout, rewarded by the environment's judge, with one output per step.

The rules of a rollout are those of mode ``online``, and rewards those of ``guieval train online``. All sessions of a group
begin from one seed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, register

from guieval.errors import EnvironmentFailure, UsageError
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.models.scored_response import read_response
from guieval.online.tasks import PROTOCOL
from guieval.steps import Outcome
from guieval.training.acting import Devices, OnlineRollout
from guieval.training.data.examples import PromptBuilder
from guieval.training.verl.loop import PolicyLoop, TooLong
from guieval.training.verl.records import RowRecord
from guieval.training.verl.rows import read_online_place
from guieval.training.verl.settings import GROUP, TASKS, VerlSettings


@register(TASKS)
class OnlineLoop(PolicyLoop):
    """One session of a row written by :func:`guieval.training.verl.rows.write_tasks`.

    Its score is the reward by the judge (``guieval.judge``), and the part of each step is in ``extra_fields["guieval"]``.
    Raises :class:`EnvironmentFailure` if the environment failed in every attempt; verl then counts the session as failed.
    """

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Run the session; verl passes the row's columns, ``uid`` and ``session_id``."""
        place = read_online_place(row.get("extra_info"))
        uid, session = str(row.get("uid")), int(row.get("session_id") or 0)
        seed = 0 if place.validation else int.from_bytes(blake2b(uid.encode(), digest_size=4).digest()) >> 1
        rollout = OnlineRollout(place.tasks, place.task, seed)
        async with _devices(self._settings) as devices:
            try:
                await self._roll_out(devices, rollout, sampling_params)
            finally:
                await devices.drop(rollout)
        if rollout.outcome is None:
            raise EnvironmentFailure(f"task {place.task.key} could not be judged: {rollout.failure}")
        return self._outputs(rollout, rollout.outcome, uid, session)

    async def _roll_out(self, devices: Devices, rollout: OnlineRollout, sampling_params: dict[str, Any]) -> None:
        with TemporaryDirectory(prefix="guieval-screens-") as folder:
            screens = Path(folder)
            asking = partial(self._ask, PromptBuilder(self._model, screens), sampling_params, uuid4().hex)
            await devices.advance(rollout, screens)
            while rollout.shown is not None:
                try:
                    answer = await asking(self._model.prepare_input(rollout.shown, rollout.attempt.history))
                except TooLong as error:
                    if not rollout.payloads:
                        raise UsageError(f"the first step of {rollout.task.key}: {error}") from None
                    rollout.cut()
                else:
                    rollout.tell(read_response(self._model, _judge(), rollout.shown, answer.text), answer.output)
                await devices.advance(rollout, screens)

    def _outputs(self, rollout: OnlineRollout, outcome: Outcome, uid: str, session: int) -> list[AgentLoopOutput]:
        readable = [sample.action is not None for sample in rollout.samples]
        rewards = self._settings.judge.of_steps(outcome, readable, rollout.progress)
        outputs: list[AgentLoopOutput] = rollout.payloads
        for step, (output, reward) in enumerate(zip(outputs, rewards, strict=True)):
            output.num_turns = 2 * (step + 1)
            record = RowRecord(
                uid,
                session,
                step,
                reward,
                matched=True,
                patched=False,
                type_match=True,
                measured=True,
                success=outcome.score.success,
                progress=outcome.score.progress,
            )
            output.extra_fields[GROUP] = asdict(record)
        outputs[-1].reward_score = self._settings.judge.of(outcome)
        outputs[-1].extra_fields["reward_extra_info"] = {
            "score": outputs[-1].reward_score,
            "success": float(outcome.score.success),
            "progress": outcome.score.progress,
            "steps": float(outcome.steps or 0),
            "side_effects": float(bool(outcome.score.side_effects)),
            "unreadable": outcome.unparseable / max(1, outcome.steps or 0),
        }
        return outputs


@lru_cache(maxsize=1)
def _judge() -> ActionEvaluator:
    return ActionEvaluator(get_protocol(PROTOCOL))


class _Shared:
    """The devices of a process, and how many rollouts may act at once."""

    def __init__(self, settings: VerlSettings) -> None:
        self.devices = Devices(settings.environment.timeout, every_step=settings.judge.every_step)
        self.free = asyncio.Semaphore(settings.environment.devices)


_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def _devices(settings: VerlSettings) -> AsyncIterator[Devices]:
    """The devices of this process, while one of them is free for the caller."""
    kept = _SHARED.setdefault(asyncio.get_running_loop(), {})
    shared = kept.setdefault(settings.model_dump_json(), _Shared(settings))
    async with shared.free:
        yield shared.devices
