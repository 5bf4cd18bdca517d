"""Converts a request into the text and images that a model in this process reads, as a server's chat endpoint does.

Chat template, generation prompt, continued last turn and the request's template arguments mean the same as in vLLM's server,
so that a step has the same prompt with every engine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.data.screenshots import picture
from guieval.engines.http.chat_body import request_fields
from guieval.models import ImageRef, Message, Request

if TYPE_CHECKING:
    from PIL.Image import Image


class ChatOptions(NamedTuple):
    """A request's parameters, separated into those of the chat template and those of the sampler."""

    template: dict[str, Any]
    sampling: dict[str, Any]


def chat_options(request: Request) -> ChatOptions:
    """The request's sampling parameters, updated with its model family's fields.

    ``max_completion_tokens`` becomes ``max_tokens``, and a parameter that is ``None`` is ignored. Raises
    :class:`guieval.errors.UsageError` for a field that a request must not set (:func:`request_fields`).
    """
    template: dict[str, Any] = {
        "add_generation_prompt": not request.input.prefill,
        "continue_final_message": request.input.prefill,
    }
    sampling: dict[str, Any] = {}
    for name, value in request_fields(request):
        if name in ("add_generation_prompt", "continue_final_message"):
            template[name] = bool(value)
        elif name == "chat_template_kwargs":
            template.update(value or {})
        elif value is not None:
            sampling["max_tokens" if name == "max_completion_tokens" else name] = value
    return ChatOptions(template, sampling)


def chat_messages(request: Request) -> list[dict[str, Any]]:
    """The messages in the form for chat templates: a text, or a list of ``text`` and ``image`` parts if there are images."""
    return [{"role": message.role, "content": _content(message)} for message in request.input.messages]


def _content(message: Message) -> str | list[dict[str, str]]:
    if not any(isinstance(part, ImageRef) for part in message.parts):
        return "".join(part for part in message.parts if isinstance(part, str))
    return [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in message.parts]


def prompt_text(tokenizer: Any, template: str, request: Request, options: Mapping[str, Any]) -> str:
    """The prompt before tokenization, with one placeholder per image; ``tokenizer`` is one of transformers.

    Raises ``ValueError`` if the template refuses the messages.
    """
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(chat_messages(request), chat_template=template, tokenize=False, **options))
    except TemplateError as error:
        raise ValueError(f"the chat template refuses the messages: {error}") from error


def request_bytes(request: Request) -> bytes:
    """All that a model in this process is given: messages, parameters and the files of the images."""
    fields = json.dumps([chat_messages(request), request.input.extra, request.sampling], sort_keys=True, default=repr)
    return b"\0".join((fields.encode(), *(image.data for image in request.images)))


def pictures(request: Request) -> list[Image]:
    """The request's decoded images, in order, as RGB; ``ValueError`` for a damaged one."""
    opened = []
    for screenshot in request.images:
        try:
            opened.append(picture(screenshot.data))
        except ValueError as error:
            raise ValueError(f"an image {error}") from error
    if len(opened) != len(request.input.images):
        raise ValueError(f"{len(opened)} images are given, but the messages show {len(request.input.images)}")
    return opened
