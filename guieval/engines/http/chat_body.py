"""Writes the body of a chat completion in pieces, so that base64 is never escaped and is copied once per try."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from guieval.engines.http.image_references import ShownImage, in_bytes
from guieval.errors import UsageError
from guieval.models import Message, Request

_IMAGE = secrets.token_hex(16)
"""The place of an image in the JSON; a random word, so that it is in no text of a request."""
_DETAILS = ("low", "high", "auto")
_SET_BY_ENGINE = ("model", "messages", "stream", "n")


def chat_body(request: Request, model: str) -> bytes:
    """The JSON body of a chat completion with the images as bytes (:class:`ChatBody`)."""
    return ChatBody(request, model).written(in_bytes(request.images))


class ChatBody:
    """The JSON body of a chat completion; the form of its images is chosen when it is written.

    Images have the order of ``request.images``. A message without images is sent as one string, for servers that do not
    support content lists (its parts are joined directly, as chat templates do); one with images as a list. Sampling
    parameters and ``extra`` are top-level fields, an ``extra_body`` among them is unpacked, and ``extra`` wins; if both give
    a mapping, the two are merged. ``image_detail`` is added to each image: the detail level for OpenAI's models.
    With ``stream`` the answer is requested as a stream that ends with the token usage.

    Raises :class:`UsageError` when a parameter cannot be written as JSON or is set by the engine, and ``ValueError`` when
    the number of images differs from the messages.
    """

    in_bytes = False
    """Whether the next tries send all images as bytes."""

    def __init__(self, request: Request, model: str, *, stream: bool = False) -> None:
        self.images = request.images
        fields = _fields(request, model)
        if stream:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        detail = fields.pop("image_detail", None)
        if detail not in (None, *_DETAILS):
            raise UsageError(f"image_detail is {detail!r}, not one of {', '.join(_DETAILS)}")
        self._detail = b"" if detail is None else b',"detail":' + _json(detail)
        try:
            body = _json({**fields, "messages": list(map(_message, request.input.messages))})
        except (TypeError, ValueError) as error:
            raise UsageError(f"the sampling parameters cannot be written as JSON: {error}") from None
        self._pieces = body.split(_json(_IMAGE))
        places = len(self._pieces) - 1
        if len(request.images) > places:
            raise ValueError(f"{len(request.images)} images are given, more than the messages show")
        if len(request.images) < places:
            raise ValueError("the messages show more images than are given")

    def written(self, images: Sequence[ShownImage]) -> bytes:
        """The body with these images, one for each image of the request."""
        pieces = [self._pieces[0]]
        for image, text in zip(images, self._pieces[1:], strict=True):
            pieces += (*_image(image, self._detail), text)
        return b"".join(pieces)


def request_fields(request: Request) -> Iterator[tuple[str, Any]]:
    """Name and value of all fields: the sampling parameters, then the model family's, which take precedence.

    ``extra_body`` is replaced by its content, as in OpenAI's client. Raises :class:`UsageError` for a field that a request
    must not set (for example ``n``: every sample is a separate request).
    """
    for fields in (request.sampling, request.input.extra):
        for name, value in _flattened(fields):
            if name in _SET_BY_ENGINE:
                raise UsageError(f"the request field {name!r} is set by the engine and cannot be given")
            yield name, value


def _flattened(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if name == "extra_body" and isinstance(value, Mapping):
            yield from value.items()
        else:
            yield name, value


def _fields(request: Request, model: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.input.prefill:
        options = {"continue_final_message": True, "add_generation_prompt": False}
    for name, value in request_fields(request):
        old = options.get(name)
        options[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return {"model": model, **options}


def _message(message: Message) -> dict[str, Any]:
    texts = [part for part in message.parts if isinstance(part, str)]
    said = {"role": message.role} | ({"tool_call_id": "1"} if message.role == "tool" else {})
    if len(texts) == len(message.parts):
        return {**said, "content": "".join(texts)}
    return {**said, "content": [{"type": "text", "text": part} if isinstance(part, str) else _IMAGE for part in message.parts]}


def _image(image: ShownImage, detail: bytes) -> Iterable[bytes]:
    """One image part; the id is a field next to the image, and the image is null if the id replaces it."""
    yield b'{"type":"image_url","image_url":'
    if image.held:
        yield b"null"
    elif image.url is not None:
        yield b'{"url":' + _json(image.url) + detail + b"}"
    else:
        yield b'{"url":"data:image/' + image.screenshot.format.encode() + b";base64,"
        yield image.screenshot.base64
        yield b'"' + detail + b"}"
    yield b"}" if image.uuid is None else b',"uuid":' + _json(image.uuid) + b"}"


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
