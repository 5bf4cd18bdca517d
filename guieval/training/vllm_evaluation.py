"""Answers the requests of an evaluation by the vLLM that draws the training's rollouts, with the weights of the present step.

TRL sends the prompts, by its own :class:`trl.generation.vllm_generation.VLLMGeneration`: to a vLLM in the training's processes,
which is awake during an evaluation and asleep after it, or over the endpoint of a server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from guieval.engines import mean_logprob
from guieval.engines.in_process.batches import PromptRow
from guieval.engines.in_process.chat_prompts import pictures
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.models import Request, Response
from guieval.settings.sampling import GREEDY, NEUTRAL, OF_A_CHECKPOINT
from guieval.steps import LOWEST_LOGPROB
from guieval.training.lockstep import LiveModel

AT_ONCE = 32
"""Requests of each process in one round; vLLM makes batches of them by itself."""
IDLE = "idle"
"""In the inputs of a blank prompt, which takes part for a process without a request."""
_PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
READ_OTHERWISE = (
    "vLLM reads prompts otherwise than the model that is trained, so its images are processed otherwise: use the checkpoint's "
    "own image processor (no mm_processor_kwargs), or --set trainer.use_vllm=false"
)


@contextmanager
def awake(trainer: Any) -> Iterator[None]:
    """The trainer's vLLM with the weights of the present step, awake until the end; then its own settings, and its sleep.

    All processes enter it: weights that are sharded are gathered from all of them.
    """
    generation = trainer.vllm_generation
    sleeps = generation.mode == "colocate" and generation.enable_sleep_mode
    if trainer.state.global_step != trainer._last_loaded_step or (sleeps and generation._llm_weights_sleeping):
        generation.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step
    own = generation.generation_kwargs
    try:
        if sleeps:
            generation.llm.wake_up(tags=["kv_cache"])
            generation.enable_sleep_mode = False  # else it would sleep after each round and get all weights before the next
        yield
    finally:
        generation.generation_kwargs = own
        if sleeps:
            generation.enable_sleep_mode = True
            generation.llm.sleep(level=2)
            generation._llm_weights_sleeping = True


class RolloutVLLM(LiveModel):
    """The weights in training, of which the trainer's vLLM has a copy that generates.

    All processes take part in each call with equally many prompts, as TRL's servers and tensor parallelism require.
    """

    def __init__(
        self, model: Any, processor: Any, checkpoint: Checkpoint, *, trainer: Any, seed: int = 0, sharded: bool = False
    ) -> None:
        super().__init__(model, processor, checkpoint, seed=seed, sharded=sharded)
        self._trainer = trainer
        if (longest := trainer.args.vllm_max_model_length) is not None:
            self._longest = min(self._longest, longest)

    def _values(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        values = super()._values(requested)
        changed = [name for name in (*GREEDY, *_PENALTIES) if values[name] != {**NEUTRAL, **GREEDY}[name]]
        if values["logprobs"] not in (None, False) and changed:
            raise UsageError(
                f"evaluation.sampling has logprobs and {changed[0]} {values[changed[0]]}, and the vLLM of a training returns "
                f"log-probabilities with {changed[0]} applied: leave one out, or set evaluation.sidecar=true"
            )
        return values

    def _inputs(self, request: Request, options: Mapping[str, Any]) -> Any:
        return {"input_ids": super()._inputs(request, options)["input_ids"], "images": pictures(request)}

    def _idle(self) -> PromptRow:
        from PIL import Image

        row = super()._idle()
        return row._replace(inputs={"input_ids": row.inputs["input_ids"], "images": [Image.new("RGB", (32, 32))], IDLE: True})

    def _replies(self, rows: Sequence[PromptRow]) -> list[Response]:
        from accelerate.utils import gather_object

        generation = self._trainer.vllm_generation
        everywhere = gather_object([(len(rows), [(row.values, row.limit) for row in rows if IDLE not in row.inputs])])
        counted = [each for _, own in everywhere for each in own] or [(rows[0].values, 1)]
        values = counted[0][0]
        filled = [*rows, *[self._idle()] * (max(count for count, _ in everywhere) - len(rows))]
        whole = [row.inputs["input_ids"][0].tolist() for row in filled]
        # a vLLM in this process repeats the tokens of pictures itself; a server is sent them repeated
        image = self._processor.image_token_id
        sent = [_once(each, image) for each in whole] if generation.mode == "colocate" else whole
        generation.generation_kwargs = self._parameters(values, max(limit for _, limit in counted))
        started = time.monotonic()
        read, made, logps, _ = generation.generate(sent, [row.inputs["images"] or None for row in filled], 1)
        if list(map(list, read)) != whole:
            raise UsageError(READ_OTHERWISE)
        replies, seconds = [], time.monotonic() - started
        for row, completion, sampled in zip(rows, made, logps, strict=False):
            tokens, logprob = list(completion)[: row.limit], None
            if values["logprobs"] not in (None, False):
                chosen = [LOWEST_LOGPROB if each is None else max(each, LOWEST_LOGPROB) for (each, *_) in sampled]
                logprob = mean_logprob(chosen[: row.limit])
            replies.append(self._reply(tokens, row, logprob, row.seconds + seconds))
        return replies

    def _parameters(self, values: Mapping[str, Any], limit: int) -> dict[str, Any]:
        """All that decides a response, in vLLM's names, since TRL would send what it does not find here as in a rollout."""
        names = (*OF_A_CHECKPOINT, *_PENALTIES, "seed", "min_tokens", "ignore_eos")
        sent = {"stop": list(values["stop"])} if values["stop"] else {}
        return {**{name: values[name] for name in names}, **sent, "stop_token_ids": self._ends_of(values), "max_tokens": limit}


def _once(tokens: Sequence[int], image: int) -> list[int]:
    """A prompt with one token for each picture, of tokens that repeat it for each patch."""
    return [each for token, run in groupby(tokens) for each in ([token] if token == image else run)]
