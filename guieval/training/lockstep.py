"""Answers the requests of an evaluation with the weights in training, on all processes of the training together.

The first process runs the evaluation and collects the requests in flight. In each round it deals them out to all processes,
each of them generates its share as one batch, and the first one gets the responses. So all processes take part in every forward
pass, as sharded weights require (FSDP, DeepSpeed ZeRO-3), none waits for longer than a round takes, and there is one journal.

A response does not depend on the number of processes, except for the rounding of floating-point numbers in a padded batch:
random numbers are drawn for each request by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from guieval.engines.in_process.batches import PromptRow
from guieval.engines.in_process.chat_prompts import chat_options
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.engines.in_process.transformers import TransformersModel
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import Bill, ImageForm, Request, Response
from guieval.running.progress.counts import RunProgress

BEATS = 8
"""Rounds within the time after which waiting processes give up, at least, even while no request is ready."""
_SETTLING = 4
"""Turns of the event loop in which the steps that a round has answered are recorded and the next ones begin."""


class LiveModel(TransformersModel):
    """A model that is already in memory; answers several requests in one batch, in the caller's thread."""

    def __init__(self, model: Any, processor: Any, checkpoint: Checkpoint, *, seed: int = 0, sharded: bool = False) -> None:
        super().__init__(checkpoint)
        self._loop.close()
        self._seed, self.sharded = seed, sharded
        self.adopt(model, processor)

    def answers(self, requests: Sequence[Request]) -> list[Response | EngineError]:
        """The answers to requests whose parameters differ at most in the seed; an error for each that cannot be answered.

        Without requests, a blank one is computed, since other processes may wait for the forward passes.
        """
        read = [self._row_or_error(request) for request in requests]
        rows = [row for row in read if isinstance(row, PromptRow)]
        replies = iter(self._replies(rows or [self._idle()]))
        return [next(replies) if isinstance(each, PromptRow) else each for each in read]

    def _row_or_error(self, request: Request) -> PromptRow | EngineError:
        try:
            return self._read(request)
        except UsageError as error:
            return FatalEngineError(str(error))
        except Exception as error:  # an image, a template or a processor may fail in any way; other requests can be answered
            return EngineError(f"the model did not answer: {type(error).__name__}: {' '.join(str(error).split())[:500]}")

    def _seed_of(self, request: Request) -> int:
        return int.from_bytes(blake2b(f"{self._seed}/{request.request_id}".encode(), digest_size=7).digest())

    def _idle(self) -> PromptRow:
        """A blank picture and a full stop, which take part in the vision tower too."""
        from PIL import Image

        message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "."}]}
        text = self._processor.tokenizer.apply_chat_template([message], chat_template=self._template, tokenize=False)
        blank = Image.new("RGB", (32, 32))
        inputs = self._processor(text=[text], images=[blank], return_tensors="pt", add_special_tokens=False)
        return PromptRow(dict(inputs), self._values({}), 0, 1)


class LockstepEngine:
    """An engine over a model in training. The first process (``rank`` 0) runs the evaluation, the others :meth:`follow` it.

    A process generates at most ``batch`` responses at once. ``timeout`` (seconds) is how long a process waits for the others.
    ``live`` makes what answers of the weights, and ``name`` is the engine that its runs record.
    """

    images: ImageForm = "bytes"

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        processes: int = 1,
        rank: int = 0,
        batch: int = 8,
        timeout: float = 1800.0,
        seed: int = 0,
        sharded: bool = False,
        live: Callable[..., LiveModel] = LiveModel,
        name: str = "transformers",
    ) -> None:
        self.capacity = processes * batch
        """Requests in flight that keep all processes busy."""
        self.name = name
        self.rank = rank
        self.failure: BaseException | None = None
        """Why a round failed: memory, or another process that is gone."""
        self._checkpoint, self._seed, self._sharded, self._live = checkpoint, seed, sharded and processes > 1, live
        self._processes, self._pause = processes, timeout / BEATS
        self._model: LiveModel | None = None
        self._progress: RunProgress | None = None
        self._waiting: list[tuple[str, Request, asyncio.Future[Response]]] = []
        self._beating: asyncio.Task[None] | None = None
        self._last_round = 0.0

    def adopt(self, model: Any, processor: Any) -> None:
        """Answer with these weights until :meth:`dismiss`."""
        self.failure, self._progress, self._waiting = None, None, []
        self._model = self._live(model, processor, self._checkpoint, seed=self._seed, sharded=self._sharded)

    def follow(self) -> None:
        """Generate this process's share of every round until the first process ends the evaluation."""
        while self._take_part(None) is not None:
            pass

    def dismiss(self) -> None:
        """End the evaluation on all processes; called by the first one."""
        if self._model is not None and self.failure is None and self._processes > 1:
            _scattered([None] * self._processes)
        self._model = None

    def watch(self, progress: RunProgress) -> None:
        """Learn how many steps are in flight; the runner calls this at the start and after every step."""
        self._progress = progress
        if self._beating is None:
            self._last_round = asyncio.get_running_loop().time()
            self._beating = asyncio.create_task(self._beat())
        self._look()

    async def generate(self, request: Request) -> Response:
        """The answer of the next round; :class:`EngineError` for a request that cannot be answered."""
        try:
            alike = {name: value for name, value in chat_options(request).sampling.items() if name != "seed"}
        except UsageError as error:
            raise FatalEngineError(str(error)) from error
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.append((json.dumps(alike, sort_keys=True, default=str), request, answer))
        self._look()
        return await answer

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None

    def _look(self, turns: int = _SETTLING) -> None:
        """Begin a round once every step in flight waits for one, after the event loop has done what is due."""
        steps = len({request.task.key for _, request, _ in self._waiting})
        flying = 1 if self._progress is None else self._progress.in_flight
        if not self._waiting or (steps < flying and len(self._waiting) < self.capacity):
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._look, turns - 1)
        else:
            self._round()

    async def _beat(self) -> None:
        """Hold an empty round when screenshots take long, before another process gives up."""
        loop = asyncio.get_running_loop()
        while self.failure is None:
            await asyncio.sleep(max(0.01, self._last_round + self._pause - loop.time()))
            if loop.time() - self._last_round >= self._pause:
                self._round(of=0)

    def _round(self, of: int | None = None) -> None:
        """Answer what waits, at most ``of`` requests (by default as many as all processes generate at once)."""
        waiting = sorted(self._waiting, key=lambda each: (each[0], each[1].request_id))  # not in the order of reading images
        taken, self._waiting = waiting[: self.capacity if of is None else of], waiting[self.capacity if of is None else of :]
        jobs: defaultdict[str, list[tuple[Request, asyncio.Future[Response]]]] = defaultdict(list)
        for alike, request, answer in taken:
            jobs[alike].append((replace(request, bill=Bill()), answer))  # the runner's bill stays in this process
        shares = [
            [[request for request, _ in job[rank :: self._processes]] for job in jobs.values()]
            for rank in range(self._processes)
        ]
        try:
            answered = self._take_part(shares)
        except BaseException as error:
            self.failure = error
            for _, _, answer in [*taken, *self._waiting]:
                if not answer.done():
                    answer.set_exception(FatalEngineError(f"the weights in training did not answer: {error}"))
            if isinstance(error, Exception):
                return
            raise
        assert answered is not None
        self._last_round = asyncio.get_running_loop().time()
        for number, job in enumerate(jobs.values()):
            for place, (_, answer) in enumerate(job):
                reply = answered[place % self._processes][number][place // self._processes]
                if answer.done():  # the run was stopped
                    continue
                if isinstance(reply, Response):
                    answer.set_result(reply)
                else:
                    answer.set_exception(reply)

    def _take_part(self, shares: Sequence[Sequence[Sequence[Request]]] | None) -> list[Any] | None:
        """One round of this process. The first process gives all ``shares`` and gets all answers.

        Another one gets an empty list, and ``None`` when there are no more rounds.
        """
        assert self._model is not None
        if self._processes == 1:
            assert shares is not None
            return [[self._model.answers(requests) for requests in shares[0]]]
        mine = _scattered(shares)
        return None if mine is None else _gathered([self._model.answers(requests) for requests in mine])


def _scattered(shares: Sequence[Any] | None) -> Any:
    """This process's share; only the first process gives any."""
    from torch import distributed

    mine: list[Any] = [None]
    distributed.scatter_object_list(mine, None if shares is None else list(shares), src=0)
    return mine[0]


def _gathered(answers: Any) -> list[Any]:
    """The answers of all processes by rank on the first process; nothing on others."""
    from torch import distributed

    everywhere = [None] * distributed.get_world_size() if distributed.get_rank() == 0 else None
    distributed.gather_object(answers, everywhere, dst=0)
    return everywhere or []
