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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

from guieval.engines import mean_logprob
from guieval.engines.in_process.chat_prompts import chat_options
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.engines.in_process.transformers import TransformersModel
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import Bill, ImageForm, Request, Response
from guieval.running.progress.counts import RunProgress
from guieval.settings.sampling import Draw
from guieval.steps import LOWEST_LOGPROB

BEATS = 8
"""Rounds within the time after which waiting processes give up, at least, even while no request is ready."""
_SETTLING = 4
"""Turns of the event loop in which the steps that a round has answered are recorded and the next ones begin."""


class ReadRequest(NamedTuple):
    """A request as the model reads it; ``limit`` is the greatest number of new tokens. A blank one does not count."""

    inputs: Mapping[str, Any]
    values: Mapping[str, Any]
    seed: int
    limit: int
    counts: bool = True

    @property
    def length(self) -> int:
        return int(self.inputs["input_ids"].shape[1])


class LiveModel(TransformersModel):
    """A model that is already in memory; answers several requests in one batch, in the caller's thread.

    ``sharded`` weights need a forward pass of all processes until the longest response of all has ended.
    """

    def __init__(self, model: Any, processor: Any, checkpoint: Checkpoint, *, seed: int = 0, sharded: bool = False) -> None:
        super().__init__(checkpoint)
        self._loop.close()
        self._seed, self._sharded = seed, sharded
        self.adopt(model, processor)

    def answers(self, requests: Sequence[Request]) -> list[Response | EngineError]:
        """The answers to requests whose parameters differ at most in the seed; an error for each that cannot be answered.

        Without requests, a blank one is computed, since other processes may wait for the forward passes.
        """
        read = [self._read(request) for request in requests]
        rows = [row for row in read if isinstance(row, ReadRequest)]
        replies = iter(self._replies(rows or [self._idle()]))
        return [next(replies) if isinstance(each, ReadRequest) else each for each in read]

    def _read(self, request: Request) -> ReadRequest | EngineError:
        try:
            options = chat_options(request)
            values = self._values(options.sampling)
            inputs = self._inputs(request, options.template)
            length = int(inputs["input_ids"].shape[1])
            room = self._longest - length
            if room < 1:
                raise ValueError(f"the prompt has {length} tokens, and the model's context length is {self._longest}")
        except UsageError as error:
            return FatalEngineError(str(error))
        except Exception as error:  # an image, a template or a processor may fail in any way; other requests can be answered
            return EngineError(f"the model did not answer: {type(error).__name__}: {' '.join(str(error).split())[:500]}")
        own = int.from_bytes(blake2b(f"{self._seed}/{request.request_id}".encode(), digest_size=7).digest())
        limit = room if values["max_tokens"] is None else min(room, int(values["max_tokens"]))
        return ReadRequest(dict(inputs), values, own if values["seed"] is None else int(values["seed"]), limit)

    def _idle(self) -> ReadRequest:
        """A blank picture and a full stop, which take part in the vision tower too."""
        from PIL import Image

        template = self.checkpoint.chat_template or self._processor.chat_template or self._processor.tokenizer.chat_template
        message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "."}]}
        text = self._processor.tokenizer.apply_chat_template([message], chat_template=template, tokenize=False)
        blank = Image.new("RGB", (32, 32))
        inputs = self._processor(text=[text], images=[blank], return_tensors="pt", add_special_tokens=False)
        return ReadRequest(dict(inputs), self._values({}), 0, 1, counts=False)

    def _replies(self, rows: Sequence[ReadRequest]) -> list[Response]:
        import torch
        from transformers import GenerationConfig

        inputs = {name: value.to(self._model.device) for name, value in _padded(rows, self._pad).items()}
        width = inputs["input_ids"].shape[1]
        values = rows[0].values
        ends = [*([] if values["ignore_eos"] else self._ends), *values["stop_token_ids"]]
        wanted = values["logprobs"] is not None and values["logprobs"] is not False
        with torch.no_grad():
            output = self._model.generate(
                **inputs,
                generation_config=GenerationConfig(
                    do_sample=False,  # the processors draw
                    max_new_tokens=max(row.limit for row in rows),
                    min_new_tokens=values["min_tokens"] or None,
                    eos_token_id=ends or None,
                    pad_token_id=self._pad,
                    stop_strings=list(values["stop"]) or None,
                    return_dict_in_generate=True,
                    output_logits=wanted,
                ),
                logits_processor=_processors(values, [row.seed for row in rows], inputs["attention_mask"]),
                tokenizer=self._processor.tokenizer,
                synced_gpus=self._sharded,
            )
        replies = []
        for number, row in enumerate(rows):
            tokens = _own_tokens(output.sequences[number, width:].tolist()[: row.limit], ends, self._pad, values["stop"])
            logprob = None
            if wanted:
                pairs = zip(tokens, output.logits, strict=False)
                chosen = [float(logits[number].float().log_softmax(-1)[token]) for token, logits in pairs]
                logprob = mean_logprob([max(each, LOWEST_LOGPROB) for each in chosen])
            replies.append(self._reply(tokens, row.length, row.limit, values, logprob))
        return replies


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


def _padded(rows: Sequence[ReadRequest], pad: int) -> dict[str, Any]:
    """The inputs of single prompts as one batch: values of tokens are padded on the left, others follow each other."""
    import torch
    from torch.nn.functional import pad as padded

    longest = max(row.length for row in rows)
    batch = {}
    for name in {name: None for row in rows for name in row.inputs}:
        parts = []
        for row in rows:
            if (value := row.inputs.get(name)) is None:
                continue
            if value.ndim == 2 and value.shape == row.inputs["input_ids"].shape:
                value = padded(value, (longest - row.length, 0), value=pad if name == "input_ids" else 0)
            parts.append(value)
        batch[name] = torch.cat(parts)
    return batch


def _own_tokens(tokens: list[int], ends: Sequence[int], pad: int, stops: Sequence[str]) -> list[int]:
    """The tokens of a row up to its end, without those that fill the batch after it."""
    for place, token in enumerate(tokens):
        if token in ends:
            return tokens[: place + 1]
        if token == pad and stops:  # it ended with a stop string
            return tokens[:place]
    return tokens


def _processors(values: Mapping[str, Any], seeds: Sequence[int], mask: Any) -> Any:
    """Penalties of tokens and, unless decoding is greedy, draws: with Gumbel noise, the largest is one from the distribution.

    ``mask`` (rows, prompt) is 0 if a prompt is padded. Each row has random numbers of its own.
    """
    import torch
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    repetition, presence, frequency = (values[f"{name}_penalty"] for name in ("repetition", "presence", "frequency"))
    made: list[Any] = []

    def penalised(ids: Any, scores: Any) -> Any:
        width = mask.shape[1]
        written = torch.zeros_like(scores).scatter_add(1, ids[:, width:], torch.ones_like(ids[:, width:], dtype=scores.dtype))
        seen = written.scatter_add(1, ids[:, :width], mask.to(scores.dtype)) > 0
        scores = torch.where(seen, torch.where(scores < 0, scores * repetition, scores / repetition), scores)
        return scores - frequency * written - presence * (written > 0)

    if (repetition, presence, frequency) != (1.0, 0.0, 0.0):
        made.append(penalised)
    if (draw := Draw.of(values)) is not None:
        divisor, top_k, top_p, min_p = draw
        made.append(TemperatureLogitsWarper(divisor))
        if top_k > 0:
            made.append(TopKLogitsWarper(top_k))
        if top_p < 1:
            made.append(TopPLogitsWarper(top_p))
        if min_p:
            made.append(MinPLogitsWarper(min_p))
        dice = [torch.Generator(mask.device).manual_seed(seed) for seed in seeds]

        def drawn(ids: Any, scores: Any) -> Any:
            noise = torch.stack([torch.empty_like(scores[0]).exponential_(generator=each) for each in dice])
            return scores - noise.log()

        made.append(drawn)
    return LogitsProcessorList(made)
