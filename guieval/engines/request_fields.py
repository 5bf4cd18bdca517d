"""The fields of a chat completion that a request gives beside its messages, the same to every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guieval.errors import UsageError
from guieval.models import Request

_SET_BY_ENGINE = ("model", "messages", "stream", "n")


def request_fields(request: Request) -> Iterator[tuple[str, Any]]:
    """Name and value of each: the sampling parameters first, then what the model family adds, which goes before them.

    ``extra_body`` stands for its own content, as in OpenAI's client. Raises :class:`UsageError` for a field that no request
    may set (``n``: a further sample is a request of its own).
    """
    for given in (request.sampling, request.input.extra):
        for name, value in _flattened(given):
            if name in _SET_BY_ENGINE:
                raise UsageError(f"the request field {name!r} is set by the engine and cannot be given")
            yield name, value


def _flattened(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if name == "extra_body" and isinstance(value, Mapping):
            yield from value.items()
        else:
            yield name, value
