"""The contract of a native API: how a request is written, sent and read, and how a model that asks to look again is answered.

Computer-use models may ask for a screenshot, a zoom or the pointer's position before they act. The engine answers and asks
again, at most ``looks`` times (a field of the request that the adapter sets). The calls of all these answers are
written into one response in their order, so a journal shows how often the model looked, and scoring needs no model.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from guieval.data.screenshots import Screenshot, picture, png
from guieval.engines.http.connections import Connections
from guieval.errors import UsageError, nearest
from guieval.models import END_TURN, LOOKS, ImageRef, Request, Response
from guieval.models.response import Call
from guieval.settings.sampling import SamplingSettings

NO_POINTER = "The position of the pointer is not known."
_SPARE = 200
"""Levels of nesting that are left for the SDK, which writes the JSON in functions of its own."""
_FURTHEST = 1e9  # pixels; JSON may hold integers that no float can
UNKNOWN_HERE = "This is not known here; act on what the screenshot shows."


class Unanswered(Exception):
    """An answer with a status other than 2xx."""

    def __init__(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.data = data


class TooDeep(ValueError):
    """An answer whose JSON is nested too deeply to be read. So deep are only a call's arguments, which the model writes."""

    def __init__(self) -> None:
        super().__init__("its JSON is nested too deeply")


@dataclass(frozen=True)
class Turn:
    """One answer of a model: the response, and the ``content`` that the API expects back when the conversation goes on."""

    response: Response
    content: Any

    @property
    def written(self) -> str:
        """The words and the calls as one text; words without a call, with which the model ended its turn, are marked so."""
        response = self.response
        ended = response.text and not response.calls and (response.ended == "stop" or "<refusal>" in response.text)
        return f"{response.written}\n{END_TURN}" if ended else response.written

    @property
    def only_looks(self) -> bool:
        return bool(self.response.calls) and all(map(looked, self.response.calls))

    @property
    def can_be_sent(self) -> bool:
        """Whether the API can be sent it back. JSON that can be read may hold NaN, or be nested too deeply to be written."""
        content: Any = [call.arguments for call in self.response.calls]
        for _ in range(_SPARE):
            content = [content]
        try:
            json.dumps(content, allow_nan=False)
        except (ValueError, RecursionError):
            return False
        return True


def looked(call: Call) -> str | None:
    """What a call asks to see, one of :data:`guieval.models.LOOKS`; ``None`` for a call that acts."""
    name: object = call.name
    if name == "computer":  # the tool with an argument for the kind of action, which may be anything
        name = call.arguments.get("action") if isinstance(call.arguments, Mapping) else None
    return name if isinstance(name, str) and name in LOOKS else None


@dataclass(frozen=True)
class Connection:
    """How to reach an API; ``url`` is ``None`` for the maker's own, ``timeout`` is in seconds.

    ``bodies`` receives the body of each response by its request's name: the SDKs keep none of those that they cannot read.
    """

    url: str | None
    key: str
    timeout: float
    connections: Connections
    bodies: dict[str, bytes] = field(default_factory=dict)


@dataclass
class NativeRequest:
    """A request in an API's own words, which grows by the answers to what the model looks at."""

    fields: dict[str, Any]
    turns: list[Any]
    images: Sequence[Screenshot]
    looks: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each image of an answer to a look."""


class NativeAPI(ABC):
    """One API, by its maker's SDK. Bound to one event loop from the first request to :meth:`close`."""

    title: ClassVar[str]
    package: ClassVar[str]
    """The SDK's module; :attr:`extra` is the extra that installs it."""
    extra: ClassVar[str]
    key_env: ClassVar[str]
    """Environment variable of the key."""
    own_url: ClassVar[str]
    """The maker's own address."""
    sampling: ClassVar[Mapping[str, str]]
    """The API's name of each request parameter that it takes; a dot separates levels."""
    most_tokens: ClassVar[int | None] = None
    """The limit of a response's tokens that a request demands if the parameters set none."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._client: Any = None
        """The SDK's, made by the first :meth:`send`."""

    @abstractmethod
    def begin(self, request: Request, model: str) -> NativeRequest:
        """The request in the API's words. Raises :class:`UsageError` for a parameter that the API does not have."""

    @abstractmethod
    async def send(self, conversation: NativeRequest, name: str) -> Turn:
        """Ask once; ``name`` is the request's id for the server's log.

        Raises :class:`Unanswered`, ``ValueError`` for an unreadable answer, and what
        :class:`guieval.engines.apis.transport.EngineTransport` raises.
        """

    @abstractmethod
    def answer_looks(self, conversation: NativeRequest, turn: Turn) -> None:
        """Add ``turn``, all of whose calls look, and the answers to them."""

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def parameters(self, request: Request) -> dict[str, Any]:
        """The request parameters under the API's names; those that guieval does not know (``sampling.extra``) as they are."""
        parameters: dict[str, Any] = {}
        for name, value in request.sampling.items():
            if name not in self.sampling and name in SamplingSettings.model_fields:
                known = f"{nearest(name, self.sampling)}; it takes {', '.join(self.sampling)}"
                raise UsageError(f"this API has no request parameter {name!r}{known}")
            level = parameters
            *groups, last = self.sampling.get(name, name).split(".")
            value = [value] if last == "stop_sequences" and isinstance(value, str) else value
            for group in groups:
                level = level.setdefault(group, {})
            level[last] = value
        return parameters


def turns_of(
    request: Request, write: Callable[[str | Screenshot, str], Any], *, key: str = "content", assistant: str = "assistant"
) -> list[Any]:
    """The messages but for the system's; ``write`` gives a text or a screenshot of a role's message as the API has it."""
    images = iter(request.images)
    turns = []
    for message in request.input.messages:
        parts = [write(next(images) if isinstance(part, ImageRef) else part, message.role) for part in message.parts]
        if message.role != "system":
            turns.append({"role": assistant if message.role == "assistant" else "user", key: parts})
    return turns


def system_text(request: Request) -> str:
    """The texts of all system messages."""
    messages = [message for message in request.input.messages if message.role == "system"]
    return "\n".join(part for message in messages for part in message.parts if isinstance(part, str))


def zoomed(screenshot: Screenshot, region: Any) -> Screenshot:
    """The ``region`` (left, top, right, bottom) of a screenshot in its pixels, enlarged to its size, as a PNG file.

    Whatever else a model wrote in its place gives the whole screenshot, and so does a region that is not on the screen.
    """
    from PIL.Image import Resampling

    numbers = isinstance(region, list) and len(region) == 4 and all(type(side) in (int, float) for side in region)
    if not numbers or not all(abs(side) < _FURTHEST for side in region):  # no comparison is true for NaN
        return screenshot
    width, height = screenshot.size
    left, right = sorted(min(max(side, 0.0), float(width)) for side in region[0::2])
    top, bottom = sorted(min(max(side, 0.0), float(height)) for side in region[1::2])
    if right - left < 1 or bottom - top < 1:
        return screenshot
    scale = min(width / (right - left), height / (bottom - top))
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    part = picture(screenshot.data).resize(size, Resampling.LANCZOS, box=(left, top, right, bottom))
    return Screenshot(png(part), "png", size)


def shown(call: Call, screenshot: Screenshot) -> Screenshot | str:
    """The answer to a call that looks: an image, or a sentence."""
    name = looked(call)
    if name == "cursor_position":
        return NO_POINTER
    if name == "list_apps":
        return UNKNOWN_HERE
    return zoomed(screenshot, call.named.get("region")) if name == "zoom" else screenshot
