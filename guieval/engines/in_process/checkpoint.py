"""Models that generate in this process: the location of a checkpoint, its shared copy in memory, and the engine.

A model has its own thread and event loop, since a run has a new loop for each mode and loading the weights takes minutes:
all engines of this process with the same checkpoint share one model, the first request loads it and the last engine to close
frees it. It is a daemon thread, so Ctrl-C does not wait for a model that is still loading.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Self

from guieval.data.checkpoint import pixel_limits
from guieval.data.files import read_text
from guieval.engines import sent
from guieval.engines.in_process.chat_prompts import request_bytes
from guieval.engines.vllm.command import find_chat_template, merged_arguments
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal.setup import EngineFacts, Setup, text_digest
from guieval.models import ImageForm, ModelConfig, Request, Response
from guieval.settings import Attention, Cache


class Checkpoint:
    """The weights: ``path`` (a folder or a Hugging Face id), vLLM's ``arguments`` (with underscores), and ``chat_template``.

    ``chat_template`` is the text of the template, ``None`` if none is given; ``attention``, ``batch_size`` and ``cache``
    concern transformers alone.
    """

    def __init__(
        self,
        model: ModelConfig,
        *,
        path: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        chat_templates: Path | None = None,
        attention: Attention = "auto",
        batch_size: int | None = None,
        cache: Cache = "dynamic",
    ) -> None:
        """``path`` precedes ``arguments["model"]`` and the model's ``hf_id``; :class:`UsageError` if all are missing."""
        merged = {name.replace("-", "_"): value for name, value in merged_arguments(model, arguments or {}).items()}
        weights = path or merged.pop("model", None) or model.hf_id
        merged.pop("model", None)
        if not isinstance(weights, str):
            raise UsageError(f"the location of the weights of {model.name!r} is unknown: add --set model_path=DIR_OR_HF_ID")
        if weights.startswith((".", "/", "~")):
            folder = Path(weights).expanduser()
            if not (folder / "config.json").is_file():
                raise UsageError(
                    f"the model folder {weights!r} {'has no config.json' if folder.is_dir() else 'does not exist'}"
                )
            weights = str(folder.resolve())
        if model.context_length is not None:
            merged.setdefault("max_model_len", model.context_length)
        template = merged.pop("chat_template", None)
        self.path, self.attention, self.batch_size, self.cache = weights, attention, batch_size, cache
        self.chat_template = None
        if template is not None:
            file = find_chat_template(str(template), chat_templates)
            self.chat_template = str(template) if file is None else read_text(file)
        self.arguments = {name: value for name, value in merged.items() if value is not None}

    @property
    def key(self) -> str:
        """Equal for checkpoints that can share a model in memory."""
        return json.dumps(vars(self), sort_keys=True, default=str)


def require(*packages: str, engine: str, extra: str) -> None:
    """Raise :class:`UsageError` with the extra unless all these packages are installed; does not import them."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"engine {engine!r} needs the package {missing[0]!r}: pip install 'guieval[{extra}]', "
            "or give --base-url of a server and no --engine"
        )


def facts_of_processor(processor: Any, template: Any) -> dict[str, Any]:
    """The image limits of a processor of transformers, and the chat template's digest, as fields of :class:`EngineFacts`."""
    image_processor = getattr(processor, "image_processor", None)
    limits = {} if image_processor is None else pixel_limits(image_processor.to_dict())
    return {**limits, "chat_template": text_digest(template) if isinstance(template, str) else None}


class HeldModel(ABC):
    """A checkpoint in memory. Subclasses load it, generate with it and free it, all in the model's own thread."""

    held: ClassVar[dict[tuple[type[HeldModel], str], HeldModel]] = {}
    """The models of this process that an engine uses."""
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.closing = threading.Event()
        self._users = 0
        self._loaded: Future[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="guieval-model", daemon=True)

    @classmethod
    def join(cls, checkpoint: Checkpoint) -> Self:
        """The shared model of this checkpoint; call :meth:`load` to load it, and :meth:`leave` when done."""
        with cls._lock:
            model = cls.held.get((cls, checkpoint.key))
            if not isinstance(model, cls):
                model = cls(checkpoint)
                cls.held[cls, checkpoint.key] = model
            model._users += 1
            return model

    def leave(self) -> None:
        """Free the model unless another engine uses it; unfinished generations are cut off."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self.held.pop((type(self), self.checkpoint.key), None)
        self.closing.set()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)

    async def load(self) -> None:
        """Wait until the model is loaded. Raises :class:`FatalEngineError` if it cannot be loaded."""
        with self._lock:
            if self._loaded is None:
                self._thread.start()
                self._loaded = asyncio.run_coroutine_threadsafe(self._load_or_raise(), self._loop)
        await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def answer(self, request: Request) -> Response:
        """Answer one request in the model's thread; a cancellation is passed on to it."""
        await self.load()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._answer(request), self._loop))

    async def _load_or_raise(self) -> None:
        try:
            await self._load()
        except UsageError:
            raise
        except Exception as error:  # foreign code may raise anything: no weights, no memory, an unknown architecture
            reason = " ".join(str(error).split())[:500]
            raise FatalEngineError(
                f"the model {self.checkpoint.path!r} cannot be loaded: {type(error).__name__}: {reason}"
            ) from error

    def _end(self) -> None:
        try:
            self._free()
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.call_soon, self._loop.stop)  # the cancelled tasks end before the loop does

    @abstractmethod
    async def _load(self) -> None:
        """Load the weights; may block."""

    @abstractmethod
    async def _answer(self, request: Request) -> Response:
        """Answer one request. ``UsageError`` or :class:`FatalEngineError`: no request can succeed; others: this one failed."""

    @abstractmethod
    def facts(self) -> EngineFacts:
        """What the loaded model and its packages say of themselves."""

    @abstractmethod
    def _free(self) -> None:
        """Free the memory; also called when loading failed."""


class InProcessEngine:
    """Sends requests to a model in this process; the runner's concurrency limits the requests in flight."""

    images: ImageForm = "bytes"

    def __init__(self, model: HeldModel | None) -> None:
        self._model = model
        self._setup: Setup | None = None

    async def load(self) -> None:
        """Load the model before the first request, so that an error appears before any work."""
        model = self._joined
        await model.load()
        self._setup = Setup(engines=(model.facts().model_copy(update={"root": model.checkpoint.path}),))

    def setup(self) -> Setup | None:
        """What the loaded model says of itself (:class:`guieval.engines.ReportsSetup`)."""
        return self._setup

    def note(self, request: Request) -> None:
        if self._setup is not None:
            self._setup = self._setup.joined(sent(request, request_bytes(request), "memory"))

    async def generate(self, request: Request) -> Response:
        """The model's answer; :class:`EngineError` if this request fails, :class:`FatalEngineError` if every request would."""
        try:
            return await self._joined.answer(request)
        except EngineError:
            raise
        except UsageError as error:
            raise FatalEngineError(str(error)) from error
        except Exception as error:  # the exception types of vLLM and torch change between versions
            reason = " ".join(str(error).split())[:500]
            raise EngineError(f"the model did not answer: {type(error).__name__}: {reason}") from error

    async def close(self) -> None:
        """Leave the model; the last engine to do so frees it."""
        if self._model is not None:
            self._model.leave()
            self._model = None

    @property
    def _joined(self) -> HeldModel:
        if self._model is None:
            raise FatalEngineError("the engine is closed")
        return self._model
