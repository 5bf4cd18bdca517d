"""What a server says of itself: the models that it lists, and the engine that it is, with its version and precision.

Servers name their engine as the owner of their models, some gateways themselves in a header. Each engine has a page for the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from guieval.engines.http.bounded_json import read_json
from guieval.errors import whole_text
from guieval.journal.caveats import same_checkpoint
from guieval.journal.setup import MOST_LISTED, EngineFacts, text_digest

_LONGEST = 200  # characters of a version and the like
_NOT_SAID = ("", "auto", "None", "null")


class ServedModel(NamedTuple):
    """A model in a server's list. ``root`` is the checkpoint that it was loaded from, ``owner`` usually the engine's name."""

    name: str
    root: str | None = None
    owner: str | None = None


class _Engine(NamedTuple):
    """An engine, the page on which it describes itself, and that page's names of facts."""

    name: str
    page: str
    facts: Mapping[str, str]


_ENGINES = {
    "vllm": _Engine("vLLM", "/version", {"version": "version"}),
    "sglang": _Engine(
        "SGLang",
        "/get_server_info",  # it has the server's keys too
        {"version": "version", "dtype": "dtype", "quantization": "quantization", "attention": "attention_backend"},
    ),
    "llamacpp": _Engine("llama.cpp", "/props", {"version": "build_info", "chat_template": "chat_template"}),
    "guieval": _Engine("guieval's mock server", "/version", {"version": "version"}),
}
"""Engines by the owner of their models.

Sources: vLLM 0.32 (``entrypoints/serve``), SGLang (``srt/entrypoints/http_server.py``), llama.cpp (``tools/server/README.md``).
"""
_HEADERS = {"openai-version": "OpenAI API", "x-litellm-version": "LiteLLM"}
"""Headers of responses with a version, and whose it is."""


def page_of(models: Sequence[ServedModel]) -> str | None:
    """The path of the page on which a server of these models describes itself, below the server's root."""
    engine = _engine_of(models)
    return None if engine is None else engine.page


def facts_of_server(
    models: Sequence[ServedModel], headers: Mapping[str, str], page: bytes, clean: Callable[[str], str]
) -> EngineFacts:
    """What a server said: its ``models``, the ``headers`` with which it listed them, and the content of :func:`page_of`.

    ``clean`` removes keys from texts. What cannot be read is unknown.
    """
    said: dict[str, Any] = {}
    engine = _engine_of(models)
    if engine is not None:
        said["name"] = engine.name
        try:
            values = read_json(page)
        except ValueError:
            values = None
        for fact, name in engine.facts.items() if isinstance(values, dict) else ():
            if text := _text(values.get(name), clean, whole=fact == "chat_template"):
                said[fact] = text_digest(text) if fact == "chat_template" else text
    else:
        header = next((name for name in _HEADERS if headers.get(name)), None)
        if header is not None:
            said = {"name": _HEADERS[header], "version": _text(headers[header], clean)}
    return EngineFacts(models=tuple(model.name for model in models[:MOST_LISTED]), **said)


def _engine_of(models: Sequence[ServedModel]) -> _Engine | None:
    return next((_ENGINES[model.owner] for model in models if model.owner in _ENGINES), None)


def _text(value: Any, clean: Callable[[str], str], *, whole: bool = False) -> str:
    text = whole_text(value) if isinstance(value, str) and value not in _NOT_SAID else ""
    return clean(text if whole else text[:_LONGEST])


def first_of(candidates: Sequence[str], served: Sequence[str]) -> str | None:
    """The served name that equals a candidate, else the only one that :func:`same_checkpoint` matches with a candidate."""
    exact = next((name for name in candidates if name in served), None)
    alike = [name for name in served if any(same_checkpoint(name, candidate) for candidate in candidates)]
    return exact or (alike[0] if len(alike) == 1 else None)
