"""Hugging Face transformers in this process, one request at a time: for small models, and as a reference for a server.

Slow, but the response comes directly from the checkpoint's own code: no paged attention, no batching, no cache across requests.
Parameters have the same meaning as in vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guieval.engines import mean_logprob
from guieval.engines.in_process.attention import batch_windows, implementation
from guieval.engines.in_process.chat_prompts import chat_options, pictures, prompt_text
from guieval.engines.in_process.checkpoint import Checkpoint, HeldModel, InProcessEngine, facts_of_processor, require
from guieval.errors import UsageError, nearest
from guieval.journal.setup import EngineFacts
from guieval.models import Request, Response
from guieval.settings.sampling import NEUTRAL, OF_A_CHECKPOINT, Draw
from guieval.steps import LOWEST_LOGPROB, Usage


def transformers_engine(checkpoint: Checkpoint) -> InProcessEngine:
    """The engine; :class:`UsageError` when torch or transformers is not installed. Equal checkpoints share one model."""
    require("torch", "transformers", engine="transformers", extra="transformers")
    return InProcessEngine(TransformersModel.join(checkpoint))


class TransformersModel(HeldModel):
    """A checkpoint in ``AutoModelForImageTextToText``, on a GPU if there is one.

    Of the checkpoint's vLLM arguments it uses ``dtype``, ``max_model_len``, ``mm_processor_kwargs``, ``revision`` and
    ``trust_remote_code``; the others concern servers.
    """

    _model: Any = None
    _processor: Any = None

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
        self._model, self._processor = model, processor

    async def _answer(self, request: Request) -> Response:
        options = chat_options(request)
        values = self._values(options.sampling)
        inputs = self._inputs(request, options.template).to(self._model.device)
        prompt_length = int(inputs["input_ids"].shape[1])
        room = self._longest - prompt_length
        if room < 1:
            raise ValueError(f"the prompt has {prompt_length} tokens, and the model's context length is {self._longest}")
        limit = room if values["max_tokens"] is None else min(room, int(values["max_tokens"]))
        tokens, logprob = self._generate(inputs, values, limit)
        return self._reply(tokens, prompt_length, limit, values, logprob)

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

    def _generate(self, inputs: Any, values: Mapping[str, Any], limit: int) -> tuple[list[int], float | None]:
        """The tokens of an answer, and their mean log-probability if the request asks for it.

        The log-probabilities are of the model's distribution before penalties and sampling settings, as in vLLM.
        """
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        draw = Draw.of(values)
        # vLLM also accepts a number; 0 returns only the log-probabilities of the answer's tokens
        wanted = values["logprobs"] is not None and values["logprobs"] is not False
        # top_k must be set, since its default in transformers is 50 (0 turns it off); min_p must be absent to be off
        chosen = {} if draw is None else {name: value for name, value in draw._asdict().items() if value or name != "min_p"}
        ends = [] if values["ignore_eos"] else self._ends
        config = GenerationConfig(
            do_sample=draw is not None,
            repetition_penalty=values["repetition_penalty"],
            max_new_tokens=limit,
            min_new_tokens=values["min_tokens"] or None,
            eos_token_id=[*ends, *values["stop_token_ids"]] or None,
            pad_token_id=self._pad,
            stop_strings=list(values["stop"]) or None,
            return_dict_in_generate=True,
            output_logits=wanted,
            **chosen,
        )
        prompt_length = inputs["input_ids"].shape[1]
        penalties = LogitsProcessorList()
        if values["presence_penalty"] or values["frequency_penalty"]:
            penalties.append(_penalty(prompt_length, values["presence_penalty"], values["frequency_penalty"]))
        closing = StoppingCriteriaList([lambda *_: self.closing.is_set()])
        with torch.inference_mode(), torch.random.fork_rng(enabled=values["seed"] is not None):
            if values["seed"] is not None:
                torch.manual_seed(values["seed"])
            output = self._model.generate(
                **inputs,
                generation_config=config,
                logits_processor=penalties,
                stopping_criteria=closing,
                tokenizer=self._processor.tokenizer,
            )
        tokens: list[int] = output.sequences[0, prompt_length:].tolist()
        if not wanted:
            return tokens, None
        pairs = zip(tokens, output.logits, strict=True)
        return tokens, mean_logprob(
            [max(float(logits[0].float().log_softmax(-1)[token]), LOWEST_LOGPROB) for token, logits in pairs]
        )

    def _reply(
        self, tokens: list[int], prompt_length: int, limit: int, values: Mapping[str, Any], logprob: float | None
    ) -> Response:
        ends = [*([] if values["ignore_eos"] else self._ends), *values["stop_token_ids"]]
        ended = bool(tokens) and tokens[-1] in ends
        text = self._processor.tokenizer.decode(tokens, skip_special_tokens=values["skip_special_tokens"])
        stopped = _first_stop(text, values["stop"])
        if stopped is not None:
            start, end = stopped
            text = text[: end if values["include_stop_str_in_output"] else start]
        usage = Usage(prompt_tokens=prompt_length, completion_tokens=len(tokens))
        finish = "stop" if ended or stopped is not None else "length"
        return Response(text, usage=usage, finish_reason=finish, logprob=logprob)

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


def _penalty(prompt_length: int, presence: float, frequency: float) -> Any:
    """OpenAI's penalties of tokens that the answer already has: ``logit - frequency * count - presence * (count > 0)``."""

    def penalised(input_ids: Any, scores: Any) -> Any:
        import torch

        counts = torch.zeros_like(scores)
        counts.scatter_add_(1, input_ids[:, prompt_length:], torch.ones_like(input_ids[:, prompt_length:], dtype=scores.dtype))
        return scores - frequency * counts - presence * (counts > 0)

    return penalised
