"""Hugging Face transformers in this process, which computes requests in batches of similar length: for small models, and as
a reference for a server.

Slow, but the response comes directly from the checkpoint's own code: no paged attention, no continuous batching, no cache
across requests. Parameters have the same meaning as in vLLM.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from guieval.engines import mean_logprob
from guieval.engines.in_process.attention import batch_windows, implementation
from guieval.engines.in_process.batches import PromptRow, alike, own_tokens, padded, processors
from guieval.engines.in_process.chat_prompts import chat_options, pictures, prompt_text
from guieval.engines.in_process.checkpoint import Checkpoint, HeldModel, InProcessEngine, facts_of_processor, require
from guieval.errors import UsageError, nearest
from guieval.journal.setup import EngineFacts
from guieval.models import Request, Response
from guieval.settings.sampling import NEUTRAL, OF_A_CHECKPOINT
from guieval.steps import LOWEST_LOGPROB, Usage

_PAUSE = 0.01
"""Seconds without a new request after which a batch begins."""


class _Waiting(NamedTuple):
    row: PromptRow
    answer: asyncio.Future[Response]


def transformers_engine(checkpoint: Checkpoint) -> InProcessEngine:
    """The engine; :class:`UsageError` when torch or transformers is not installed. Equal checkpoints share one model."""
    require("torch", "transformers", engine="transformers", extra="transformers")
    return InProcessEngine(TransformersModel.join(checkpoint))


class TransformersModel(HeldModel):
    """A checkpoint in ``AutoModelForImageTextToText``, on a GPU if there is one.

    Of the checkpoint's vLLM arguments it uses ``dtype``, ``max_model_len``, ``mm_processor_kwargs``, ``revision`` and
    ``trust_remote_code``; the others concern servers.
    """

    sharded = False
    """Whether each forward pass needs all processes, until the longest response of all has ended."""
    _model: Any = None
    _processor: Any = None
    _computing: asyncio.Task[None] | None = None
    _batch_size = _most = 1

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self._waiting: list[_Waiting] = []

    async def _load(self) -> None:
        import torch
        from transformers import AutoModelForImageTextToText, AutoProcessor
        from transformers.utils import logging

        logging.disable_progress_bar()
        arguments = self.checkpoint.arguments
        source = {name: arguments[name] for name in ("revision", "trust_remote_code") if name in arguments}
        processor = AutoProcessor.from_pretrained(
            self.checkpoint.path, **source, **(arguments.get("mm_processor_kwargs") or {})
        )
        name = str(arguments.get("dtype", "auto"))
        dtype = name if name == "auto" else getattr(torch, {"half": "float16", "float": "float32"}.get(name, name), None)
        if dtype is None:
            raise UsageError(f"vllm.dtype is {name!r}; expected auto, float32, float16 or bfloat16")
        gpu = torch.cuda.is_available()
        # straight to the GPU, tensor by tensor: not by way of a copy in main memory
        placed = {"device_map": "cuda"} if gpu else {}
        model = AutoModelForImageTextToText.from_pretrained(
            self.checkpoint.path,
            dtype=dtype,
            attn_implementation=implementation(self.checkpoint.attention, half=gpu and name not in ("float", "float32")),
            **placed,
            **source,
        ).eval()
        batch_windows(model)
        self.adopt(model, processor)

    def adopt(self, model: Any, processor: Any) -> None:
        """Use a transformers model and its processor that are already in memory.

        The checkpoint's generation settings become the defaults of requests, and ``model.generation_config`` keeps only the
        end and padding tokens: a trainer has to restore it. Device and mode are not changed.
        """
        from transformers import GenerationConfig

        own = model.generation_config
        self._defaults = {
            name: value for name in OF_A_CHECKPOINT if (value := own.to_diff_dict().get(name, NEUTRAL[name])) is not None
        }
        ends = own.eos_token_id if own.eos_token_id is not None else processor.tokenizer.eos_token_id
        self._ends: list[int] = list(ends) if isinstance(ends, Sequence) else [ends]
        self._pad = own.pad_token_id if own.pad_token_id is not None else self._ends[0]
        # transformers would merge any other setting into the parameters of every request
        model.generation_config = GenerationConfig(eos_token_id=self._ends, pad_token_id=self._pad)
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._longest = int(self.checkpoint.arguments.get("max_model_len") or longest or 1 << 30)
        # one request keeps a CPU busy, and padding is more work: docs/engines.md
        self._batch_size = self._most = self.checkpoint.batch_size or (1 if model.device.type == "cpu" else 8)
        self._model, self._processor = model, processor

    async def _answer(self, request: Request) -> Response:
        waiting = _Waiting(self._read(request), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._computing is None or self._computing.done():
            self._computing = asyncio.create_task(self._compute_all())
        return await waiting.answer

    async def _compute_all(self) -> None:
        """Compute what waits, batch after batch; requests that arrive during a batch are read before the next one."""
        while self._waiting:
            known = 0
            while known < (known := len(self._waiting)):
                await asyncio.sleep(_PAUSE)
            self._waiting = [each for each in self._waiting if not each.answer.done()]  # not those of a run that was stopped
            if self._waiting:
                places = alike([each.row for each in self._waiting], self._most)
                taken = [self._waiting[place] for place in places]
                self._waiting = [each for place, each in enumerate(self._waiting) if place not in places]
                self._compute(taken)

    def _compute(self, taken: Sequence[_Waiting]) -> None:
        """Answer these in one batch; a batch that fails is halved, so that a request fails alone and memory suffices."""
        try:
            replies = self._replies([each.row for each in taken])
        except Exception as error:
            if len(taken) == 1:
                taken[0].answer.set_exception(error)
                return
            if type(error).__name__ == "OutOfMemoryError":
                self._most = (len(taken) + 1) // 2
                logging.getLogger(__name__).warning(
                    "the memory does not suffice for a batch of %d requests: from here on batch_size is %d",
                    len(taken),
                    self._most,
                )
        else:
            for each, reply in zip(taken, replies, strict=True):
                each.answer.set_result(reply)
            return
        half = (len(taken) + 1) // 2
        self._compute(taken[:half])  # after the handler, whose exception keeps the failed batch in memory
        self._compute(taken[half:])

    def _read(self, request: Request) -> PromptRow:
        """The request as a row; raises for a prompt beyond the context, a damaged image and an unknown parameter."""
        started = time.monotonic()
        options = chat_options(request)
        values = self._values(options.sampling)
        inputs = dict(self._inputs(request, options.template))
        length = int(inputs["input_ids"].shape[1])
        room = self._longest - length
        if room < 1:
            raise ValueError(f"the prompt has {length} tokens, and the model's context length is {self._longest}")
        limit = room if values["max_tokens"] is None else min(room, int(values["max_tokens"]))
        seed = self._seed_of(request) if values["seed"] is None else int(values["seed"])
        return PromptRow(inputs, values, seed, limit, time.monotonic() - started)

    def _seed_of(self, request: Request) -> int:
        import torch

        return int(torch.randint(2**62, ()))

    def _values(self, requested: Mapping[str, Any]) -> dict[str, Any]:
        for name in requested:
            if name not in NEUTRAL:
                raise UsageError(f"engine 'transformers' does not know the request field {name!r}{nearest(name, NEUTRAL)}")
        values = {**NEUTRAL, **self._defaults, **requested}
        values["stop"] = (values["stop"],) if isinstance(values["stop"], str) else tuple(values["stop"])
        return values

    @property
    def _template(self) -> Any:
        processor = self._processor
        return self.checkpoint.chat_template or processor.chat_template or processor.tokenizer.chat_template

    def _inputs(self, request: Request, options: Mapping[str, Any]) -> Any:
        text = prompt_text(self._processor.tokenizer, self._template, request, options)
        images = pictures(request)
        inputs = self._processor(text=[text], images=images or None, return_tensors="pt", add_special_tokens=False)
        grid = inputs.get("image_grid_thw")
        if grid is not None:
            kind = self._processor.image_processor
            refuse_second_resize([image.size for image in images], grid.tolist(), kind.patch_size, kind.merge_size)
        return inputs

    def _replies(self, rows: Sequence[PromptRow]) -> list[Response]:
        """The responses of one batch of rows that fit each other.

        The log-probabilities are of the model's distribution before penalties and sampling settings, as in vLLM.
        """
        import torch
        from transformers import GenerationConfig, StoppingCriteriaList

        started = time.monotonic()
        inputs = {name: value.to(self._model.device) for name, value in padded(rows, self._pad).items()}
        width = inputs["input_ids"].shape[1]
        values = rows[0].values
        ends = self._ends_of(values)
        # vLLM also accepts a number; 0 returns only the log-probabilities of the answer's tokens
        wanted = values["logprobs"] is not None and values["logprobs"] is not False
        config = GenerationConfig(
            do_sample=False,  # the processors draw
            max_new_tokens=max(row.limit for row in rows),
            min_new_tokens=values["min_tokens"] or None,
            eos_token_id=ends or None,
            pad_token_id=self._pad,
            stop_strings=list(values["stop"]) or None,
            cache_implementation="static" if self.checkpoint.cache == "static" else None,
            return_dict_in_generate=True,
            output_logits=wanted,
        )
        with torch.no_grad():
            output = self._model.generate(
                **inputs,
                generation_config=config,
                logits_processor=processors(values, [row.seed for row in rows], inputs["attention_mask"]),
                stopping_criteria=StoppingCriteriaList([lambda *_: self.closing.is_set()]),
                tokenizer=self._processor.tokenizer,
                synced_gpus=self.sharded,
            )
        seconds = time.monotonic() - started
        replies = []
        for number, row in enumerate(rows):
            tokens = output.sequences[number, width:].tolist()[: row.limit]
            tokens = own_tokens(tokens, ends, self._pad, values["stop"], self._processor.tokenizer.decode)
            logprob = None
            if wanted:
                pairs = zip(tokens, output.logits, strict=False)
                chosen = [float(logits[number].float().log_softmax(-1)[token]) for token, logits in pairs]
                logprob = mean_logprob([max(each, LOWEST_LOGPROB) for each in chosen])
            replies.append(self._reply(tokens, row, logprob, row.seconds + seconds))
        return replies

    def _ends_of(self, values: Mapping[str, Any]) -> list[int]:
        return [*([] if values["ignore_eos"] else self._ends), *values["stop_token_ids"]]

    def _reply(self, tokens: list[int], row: PromptRow, logprob: float | None, seconds: float) -> Response:
        values = row.values
        ended = bool(tokens) and tokens[-1] in self._ends_of(values)
        text = self._processor.tokenizer.decode(tokens, skip_special_tokens=values["skip_special_tokens"])
        stopped = _first_stop(text, values["stop"])
        if stopped is not None:
            start, end = stopped
            text = text[: end if values["include_stop_str_in_output"] else start]
        usage = Usage(prompt_tokens=row.length, completion_tokens=len(tokens))
        finish = "stop" if ended or stopped is not None else "length"
        return Response(text, usage=usage, finish_reason=finish, logprob=logprob, seconds=seconds)

    def facts(self) -> EngineFacts:
        import transformers

        config = self._model.config
        quantized = getattr(config, "quantization_config", None)
        method = quantized.get("quant_method") if isinstance(quantized, dict) else getattr(quantized, "quant_method", None)
        return EngineFacts(
            name="transformers",
            version=transformers.__version__,
            dtype=str(self._model.dtype).removeprefix("torch."),
            quantization=str(getattr(method, "value", method)).lower(),
            attention=getattr(config, "_attn_implementation", None),
            cache=self.checkpoint.cache,
            batch_size=self._batch_size,
            **facts_of_processor(self._processor, self._template),
        )

    def _free(self) -> None:
        self._model = self._processor = None


def refuse_second_resize(sizes: Sequence[tuple[int, int]], grid: Sequence[Sequence[int]], patch: int, merge: int) -> None:
    """``ValueError`` if a processor's ``grid`` (frames, rows, columns of patches per image) shows a second resize.

    ``sizes`` are (width, height) in pixels as given to the processor. Rounding a side to a multiple of ``patch * merge``
    pixels is not a resize: the adapter's frame includes it.
    """
    for (width, height), (_, rows, columns) in zip(sizes, grid, strict=True):
        if abs(columns * patch - width) >= patch * merge or abs(rows * patch - height) >= patch * merge:
            raise ValueError(
                f"the checkpoint's processor makes {columns * patch}x{rows * patch} of an image of {width}x{height} pixels: "
                "set vllm.mm-processor-kwargs.min_pixels and max_pixels to the adapter's limits"
            )


def _first_stop(text: str, stops: Sequence[str]) -> tuple[int, int] | None:
    """Start and end of the stop string that ends first."""
    matches = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop and stop in text]
    end, start = min(matches, default=(-1, -1))
    return None if end < 0 else (start, end)
