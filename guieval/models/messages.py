"""A request to a model: messages of texts and screenshots, what else is sent with them, and who answers.

Messages hold no image bytes: they refer to screenshots, which the runner reads and encodes when they are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from guieval.data.screenshots import Crop, Screenshot
from guieval.frames import Size
from guieval.models.bill import Bill
from guieval.models.response import Response
from guieval.steps import StepTaskModel

ImageForm: TypeAlias = Literal["none", "bytes", "base64", "file"]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who speaks; ``tool`` is the answer to a call, which the HTTP engine gives the id ``1``, since no call has one here."""


LOOKS = frozenset({"screenshot", "take_screenshot", "zoom", "cursor_position", "list_apps", "open_web_browser"})
"""Calls of computer-use APIs that only look: the engine answers them and asks again, and no adapter reads an action in them."""

END_TURN = "<end_turn/>"
"""The text added after the words of a computer-use model that ended its turn without a call, which ends the task."""


@dataclass(frozen=True)
class ImageRef:
    """A screenshot inside a message: the step it belongs to and the (width, height) it must be sent in.

    ``resize`` is ``None`` when the original file is sent as it is. ``crop`` is the part of it that is shown, enlarged to
    ``resize`` or to the size of the whole. ``canvas`` is the (width, height) of a white image that it is put on, upper left.
    """

    task: StepTaskModel
    resize: Size | None = None
    crop: Crop | None = None
    canvas: Size | None = None

    @property
    def size(self) -> Size:
        """The (width, height) of the image that is sent."""
        return self.canvas or self.resize or self.task.screenshot_size


Part: TypeAlias = str | ImageRef


@dataclass(frozen=True)
class Message:
    """One chat message; ``parts`` are texts and images in the order the model reads them."""

    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ModelInput:
    """A whole request but for its images' bytes.

    ``prefill`` means that the last message is an assistant's unfinished turn, which the model continues; ``extra`` are
    further request fields the family needs (e.g. ``chat_template_kwargs``).
    """

    messages: tuple[Message, ...]
    prefill: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """Every image in order of appearance."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, ImageRef))

    @property
    def text(self) -> str:
        """All text of the request, for searching and showing."""
        return "\n".join(part for message in self.messages for part in message.parts if isinstance(part, str))


@dataclass(frozen=True)
class Request:
    """A request to an engine: the input, its images' bytes in order, sampling parameters, and an id naming the step and try.

    The engine puts on the ``bill`` what it received and did not return.
    """

    input: ModelInput
    images: tuple[Screenshot, ...]
    sampling: Mapping[str, Any]
    request_id: str
    task: StepTaskModel
    bill: Bill = field(default_factory=Bill, compare=False, repr=False)


class Engine(Protocol):
    """A source of answers: a server, a local model or a replay."""

    images: ImageForm
    """The form in which it needs a request's images: nothing (a replay), the files' bytes, or these in base64 as well.

    With ``file`` it names an original's file (:attr:`guieval.data.screenshots.Screenshot.path`) and needs base64 of the others.
    """

    async def generate(self, request: Request) -> Response:
        """Answer one request; raises :class:`guieval.errors.EngineError` after its own retries are spent."""

    async def close(self) -> None:
        """Free connections; called once, after the last request."""


def chat(*parts: Part, system: str | None = None, extra: Mapping[str, Any] | None = None) -> ModelInput:
    """A request of one user's turn, after a system prompt if there is one."""
    before = () if system is None else (Message("system", (system,)),)
    return ModelInput((*before, Message("user", parts)), extra=extra or {})


def begun(prepared: ModelInput, turn: str) -> ModelInput:
    """The same request with the assistant's answer already begun, in place of any other beginning.

    Chat templates of the Qwen2-VL and Qwen2.5-VL kind write an assistant's turn as it was sent, so a server continues any text;
    templates that take thoughts apart do not, and need one of ours (``configs/chat_templates``).
    """
    messages = prepared.messages[:-1] if prepared.prefill else prepared.messages
    # what a vLLM server needs so that it continues the last message instead of opening a new turn
    extra = {**prepared.extra, "continue_final_message": True, "add_generation_prompt": False}
    return ModelInput((*messages, Message("assistant", (turn,))), prefill=True, extra=extra)
