"""Models that generate in this process: where a checkpoint is, one copy of it in memory, and the engine that asks it.

A model lives in a thread of its own with an event loop of its own, since a run has a new loop for each mode while loading the
weights takes minutes: every engine of this process that names the same checkpoint shares one model, the first request loads it
and the last engine that closes frees it. The thread is a daemon's: Ctrl-C does not wait for a model that is still loading.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from guieval.engines.vllm_arguments import find_chat_template, merged_arguments
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import ImageForm, ModelConfig, Reply, Request

Result = TypeVar("Result")

_LIMITS = ("min_pixels", "max_pixels")


class Checkpoint:
    """The weights to load and how: ``path`` (a folder or a Hugging Face id), vLLM's ``arguments`` (underscores), the template.

    ``chat_template`` is the template's text where one is asked for. The image limits of the adapter's options become the
    processor's, so that an image is not resized a second time.
    """

    def __init__(
        self,
        model: ModelConfig,
        *,
        path: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        chat_templates: Path | None = None,
    ) -> None:
        """``path`` goes before ``arguments["model"]`` and the checkpoint's ``hf_id``; :class:`UsageError` when all lack."""
        merged = {name.replace("-", "_"): value for name, value in merged_arguments(model, arguments or {}).items()}
        weights = path or merged.pop("model", None) or model.hf_id
        merged.pop("model", None)
        if not isinstance(weights, str):
            raise UsageError(f"it is not known where the weights of {model.name!r} are: add --set model_path=DIR_OR_HF_ID")
        if weights.startswith((".", "/", "~")):
            folder = Path(weights).expanduser()
            if not (folder / "config.json").is_file():
                raise UsageError(
                    f"the model folder {weights!r} {'holds no config.json' if folder.is_dir() else 'does not exist'}"
                )
            weights = str(folder.resolve())
        limits = {name: model.options[name] for name in _LIMITS if model.options.get(name) is not None}
        if limits or merged.get("mm_processor_kwargs"):
            merged["mm_processor_kwargs"] = {**limits, **(merged.get("mm_processor_kwargs") or {})}
        if model.context_length is not None:
            merged.setdefault("max_model_len", model.context_length)
        template = merged.pop("chat_template", None)
        self.path = weights
        self.chat_template = None
        if template is not None:
            file = find_chat_template(str(template), chat_templates)
            self.chat_template = str(template) if file is None else file.read_text(encoding="utf-8")
        self.arguments = {name: value for name, value in merged.items() if value is not None}

    @property
    def key(self) -> str:
        """Equal for checkpoints that need the same model in memory."""
        return json.dumps([self.path, self.chat_template, self.arguments], sort_keys=True, default=str)


def require(*packages: str, engine: str, extra: str) -> None:
    """:class:`UsageError` naming the extra unless all these packages are installed; none of them is imported."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"engine {engine!r} needs the package {missing[0]!r}: pip install 'guieval[{extra}]', "
            "or give --base-url of a server and no --engine"
        )


class HeldModel(ABC):
    """A checkpoint in memory. Subclasses load it, ask it and free it; all three happen in its own thread."""

    held: ClassVar[dict[tuple[type[HeldModel], str], HeldModel]] = {}
    """The models of this process that some engine has joined and not left."""
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
        """The model of this checkpoint, to be left again; loading it waits for :meth:`load`."""
        with cls._lock:
            found = cls.held.get((cls, checkpoint.key))
            if not isinstance(found, cls):
                found = cls(checkpoint)
                cls.held[cls, checkpoint.key] = found
            found._users += 1
            return found

    def leave(self) -> None:
        """Free the model unless another engine uses it: what it is still generating is cut off."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            self.held.pop((type(self), self.checkpoint.key), None)
        self.closing.set()
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)

    async def load(self) -> None:
        """Wait until the model is in memory. Raises :class:`FatalEngineError` when it cannot be loaded."""
        with self._lock:
            if self._loaded is None:
                self._thread.start()
                self._loaded = asyncio.run_coroutine_threadsafe(self._load_or_say_why(), self._loop)
        await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def answer(self, request: Request) -> Reply:
        """Answer one request, in the model's thread; cancelling it reaches there."""
        await self.load()
        return await self._there(self._answer(request))

    async def _there(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _load_or_say_why(self) -> None:
        try:
            await self._load()
        except UsageError:
            raise
        except Exception as error:  # foreign code that may fail in any way: no weights, no memory, an unknown architecture
            said = " ".join(str(error).split())[:500]
            raise FatalEngineError(
                f"the model {self.checkpoint.path!r} cannot be loaded: {type(error).__name__}: {said}"
            ) from error

    def _end(self) -> None:
        try:
            self._free()
        finally:
            self._loop.stop()

    @abstractmethod
    async def _load(self) -> None:
        """Load the weights; may block."""

    @abstractmethod
    async def _answer(self, request: Request) -> Reply:
        """Answer one request; ``UsageError`` or :class:`FatalEngineError` when none can be, anything else for this one."""

    @abstractmethod
    def _free(self) -> None:
        """Give the memory back; also called when loading failed."""


class InProcessEngine:
    """Asks a model in this process; how many requests it is given at once is the runner's concurrency."""

    images: ImageForm = "bytes"

    def __init__(self, kind: type[HeldModel], checkpoint: Checkpoint) -> None:
        self._model: HeldModel | None = kind.join(checkpoint)

    async def load(self) -> None:
        """Load the model before the first request, so that it fails before any work."""
        await self._joined.load()

    async def generate(self, request: Request) -> Reply:
        """The model's answer; :class:`EngineError` when this request fails, :class:`FatalEngineError` when every one would."""
        try:
            return await self._joined.answer(request)
        except EngineError:
            raise
        except UsageError as error:
            raise FatalEngineError(str(error)) from error
        except Exception as error:  # vLLM's and torch's own kinds change between versions; each costs its request only
            said = " ".join(str(error).split())[:500]
            raise EngineError(f"the model did not answer: {type(error).__name__}: {said}") from error

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
