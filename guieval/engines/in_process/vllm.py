"""vLLM without HTTP: the runner sends requests directly to its asynchronous engine, which batches them continuously.

There is no barrier: when an answer is finished, the runner's next request takes its place in the batch. Reasoning parsers are
not applied, so a response is the unchanged text of the model.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any

from guieval.engines import mean_logprob, with_try
from guieval.engines.in_process.chat_prompts import chat_options, pictures, prompt_text
from guieval.engines.in_process.checkpoint import Checkpoint, HeldModel, InProcessEngine, facts_of_processor, require
from guieval.engines.in_process.left_behind import Watch
from guieval.errors import EngineError, FatalEngineError, UsageError, nearest
from guieval.journal.setup import EngineFacts
from guieval.models import Request, Response
from guieval.steps import LOWEST_LOGPROB, Usage

_SERVER_ONLY = frozenset(
    {"served_model_name", "chat_template_content_format", "reasoning_parser", "tool_call_parser", "enable_auto_tool_choice"}
    | {"python", "command", "start_timeout", "stop_timeout"}
)
"""Arguments for a server or for starting one, which are ignored here."""
_NOT_SAMPLING = frozenset({"n", "output_kind", "detokenize", "skip_clone", "output_text_buffer_length", "flat_logprobs"})


def vllm_engine(checkpoint: Checkpoint) -> InProcessEngine:
    """The engine; :class:`UsageError` when vLLM is not installed. Equal checkpoints share one model."""
    if not sys.platform.startswith("linux"):
        raise UsageError("engine 'vllm-inprocess' is for Linux; start a server on a machine with vLLM and give its --base-url")
    require("vllm", engine="vllm-inprocess", extra="vllm")
    return InProcessEngine(VLLMModel.join(checkpoint))


class VLLMModel(HeldModel):
    """A checkpoint in vLLM's ``AsyncLLM``, with the arguments of its server."""

    _engine: Any = None
    _watch: Watch | None = None
    _tokenizer: Any = None
    _processor: Any = None
    _template: str = ""

    async def _load(self) -> None:
        # the terminal shows the run's output; vLLM's log is available on request
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        from vllm import SamplingParams
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        arguments = {name: value for name, value in self.checkpoint.arguments.items() if name not in _SERVER_ONLY}
        for name in arguments:
            if name not in AsyncEngineArgs.__dataclass_fields__:
                raise UsageError(f"vLLM has no argument {name!r}{nearest(name, AsyncEngineArgs.__dataclass_fields__)}")
        arguments.setdefault("disable_log_stats", True)
        self._known = {name for name in SamplingParams.__struct_fields__ if not name.startswith("_")} - _NOT_SAMPLING
        self._watch = Watch()
        with self._watch:  # this process may be killed during the minutes of loading
            self._engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=self.checkpoint.path, **arguments))
        self._defaults = dict(self._engine.model_config.get_diff_sampling_param())
        self._tokenizer = self._engine.get_tokenizer()
        self._processor = _processor(self.checkpoint)
        self._template = self.checkpoint.chat_template or self._own_template
        self._nonce = secrets.token_hex(4)
        self._serial = 0

    async def _answer(self, request: Request) -> Response:
        from vllm.v1.engine.exceptions import EngineDeadError

        options = chat_options(request)
        params = self._sampling(options.sampling)
        text = prompt_text(self._tokenizer, self._template, request, options.template)
        prompt: dict[str, Any] = {"prompt_token_ids": self._tokenizer.encode(text, add_special_tokens=False)}
        if request.images:
            prompt["multi_modal_data"] = {"image": pictures(request)}
        self._serial += 1
        last = None
        try:
            async for output in self._engine.generate(prompt, params, with_try(request.request_id, self._nonce, self._serial)):
                last = output
        except EngineDeadError as error:
            raise FatalEngineError("vLLM's engine died; its error message is above") from error
        if last is None or not last.outputs:
            raise ValueError("no answer came")
        answer = last.outputs[0]
        usage = Usage(prompt_tokens=len(last.prompt_token_ids or ()), completion_tokens=len(answer.token_ids))
        response = Response(answer.text, usage=usage, finish_reason=answer.finish_reason, logprob=_mean_logprob(answer))
        if response.broken_off:
            raise EngineError(f"vLLM broke the response off ({answer.finish_reason})")
        return response

    def _sampling(self, requested: dict[str, Any]) -> Any:
        """The checkpoint's generation config, updated with the request's parameters, as in a server."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        values = {"max_tokens": None, **self._defaults, **requested}
        if isinstance(values.get("logprobs"), bool):
            values["logprobs"] = values.pop("top_logprobs", 0) if values["logprobs"] else None
        values.pop("top_logprobs", None)
        for name in requested:
            if name not in self._known and name != "top_logprobs":
                raise UsageError(f"the request field {name!r} is unknown to vLLM{nearest(name, self._known)}")
        try:
            return SamplingParams(output_kind=RequestOutputKind.FINAL_ONLY, **values)
        except Exception as error:  # newer versions have their own exception, older ones raise ValueError
            raise UsageError(f"vLLM refuses the sampling parameters: {error}") from error

    @property
    def _own_template(self) -> str:
        """The template that a server would use: the processor's, else the tokenizer's."""
        template = getattr(self._processor, "chat_template", None)
        return str(template if isinstance(template, str) else self._tokenizer.get_chat_template())

    def facts(self) -> EngineFacts:
        import vllm

        model = self._engine.model_config
        backend = getattr(getattr(self._engine.vllm_config, "attention_config", None), "backend", None)
        return EngineFacts(
            name="vLLM",
            version=vllm.__version__,
            dtype=str(model.dtype).removeprefix("torch."),
            quantization=str(model.quantization).lower(),
            attention=getattr(backend, "name", None),
            **facts_of_processor(self._processor, self._template),
        )

    def _free(self) -> None:
        if self._watch is not None:
            self._watch.end()
        if self._engine is not None:
            self._engine.shutdown()
            self._engine = None


def _mean_logprob(answer: Any) -> float | None:
    """The mean of an answer's log-probabilities; ``None`` if they were not requested."""
    if answer.logprobs is None:
        return None
    pairs = zip(answer.token_ids, answer.logprobs, strict=True)
    return mean_logprob([max(candidates[token].logprob, LOWEST_LOGPROB) for token, candidates in pairs])


def _processor(checkpoint: Checkpoint) -> Any:
    """The checkpoint's processor of transformers, with the image limits of the engine; ``None`` if it has none."""
    from transformers import AutoProcessor

    arguments = checkpoint.arguments
    given = {"trust_remote_code": bool(arguments.get("trust_remote_code")), **(arguments.get("mm_processor_kwargs") or {})}
    try:
        return AutoProcessor.from_pretrained(checkpoint.path, **given)
    except (OSError, ValueError, AttributeError):
        return None
