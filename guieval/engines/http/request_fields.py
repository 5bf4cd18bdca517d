"""The fields of a chat completion besides its messages, for every engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from guieval.errors import UsageError
from guieval.models import Request

_SET_BY_ENGINE = ("model", "messages", "stream", "n")


def request_fields(request: Request) -> Iterator[tuple[str, Any]]:
    """Name and value of all fields: the sampling parameters, then the model family's, which take precedence.

    ``extra_body`` is replaced by its content, as in OpenAI's client. Raises :class:`UsageError` for a field that a request
    must not set (for example ``n``: every sample is a separate request).
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
