"""References to screenshots in place of their bytes: a file that the server can read, or an id in the server's cache.

Both are features of vLLM. The server itself reads a ``file://`` URL, from the folder of ``--allowed-local-media-path``.
A part's ``uuid`` is the id of its image in the server's cache of processed images; a part with a ``uuid`` and without image
uses the cached image, or is refused with status 400 if it was evicted. References change only the speed: if a server refuses
one, the bytes are sent within the same try, and a reference that it refuses permanently is not offered again.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from guieval.data.screenshots import Screenshot
from guieval.steps import Usage

# messages of vLLM 0.32; it sends the second and third with status 500 for a file that it cannot find or open
_NO_FILES = re.compile(r"local[ _-](media|files?)|No such file|Permission denied|must be either a HTTP", re.IGNORECASE)
_FORGOTTEN = re.compile(r"cache miss|cached item", re.IGNORECASE)
_SUSPECT = frozenset({400, 422})
_DOUBTS = 8  # refusals in a row without a known message
_SPARE_MISSES = 8
_LEAST_ROOM = 8
_MOST_ROOM = 4096

Answer = TypeVar("Answer")


class Refusal(Exception):
    """A server's answer that is not a success: its ``status`` (``None`` without an answer) and its ``text``.

    ``usage`` are the tokens that have to be paid for it, if it states any.
    """

    status: int | None = None
    text: str = ""
    usage: Usage | None = None


@dataclass(frozen=True)
class ShownImage:
    """How one screenshot is written into a request: as bytes, as ``url``, or as an image in the server's cache (``held``).

    ``uuid`` is the id of the image in that cache.
    """

    screenshot: Screenshot
    url: str | None = None
    uuid: str | None = None
    held: bool = False

    @property
    def in_bytes(self) -> bool:
        """Whether the image is sent as bytes, the form that every server accepts."""
        return self.url is None and self.uuid is None


Send: TypeAlias = Callable[[Sequence[ShownImage]], Awaitable[Answer]]


def in_bytes(screenshots: Sequence[Screenshot]) -> list[ShownImage]:
    """Each screenshot sent as bytes: no reference that a server would have to know."""
    return [ShownImage(screenshot) for screenshot in screenshots]


class ImageReferences:
    """The references that one server accepts in place of bytes, learned from its answers.

    ``folder`` is the folder from which it reads files, ``None`` if it reads none; ``uuids`` is whether it caches images by
    id. ``name`` names the server in log messages.

    The server evicts the images used longest ago. Its capacity depends on image and cache sizes, so the number of ids assumed
    to be cached adapts: a miss reduces it to three quarters of the ids used since, and as many hits as its value add one. A
    miss of ids that are already assumed to be evicted (the request was under way) has no effect.
    """

    def __init__(self, name: str, folder: Path | None, *, uuids: bool) -> None:
        self._name = name
        self._folder = None if folder is None else folder.resolve()
        self._uuids = uuids
        self._held: OrderedDict[str, None] = OrderedDict()  # least recently used first
        self._room = float(_MOST_ROOM)
        self._hits = self._misses = self._doubts = 0

    @property
    def offered(self) -> bool:
        return self._uuids or self._folder is not None

    async def sent(self, screenshots: Sequence[Screenshot], send: Send[Answer]) -> Answer:
        """The result of ``send``, which sends one request with the given images.

        It is called again with fewer references when the server refuses them. Raises the errors of ``send``, and learns from
        every :class:`Refusal`.
        """
        shown = self._shown(screenshots)
        blamed: str | None = None
        while True:
            try:
                answer = await send(shown)
            except Refusal as refusal:
                if refusal.status is None or all(image.in_bytes for image in shown):
                    raise
                if (again := self._without_failed_references(screenshots, shown, refusal.text)) is not None:
                    shown = again
                    continue
                if refusal.status == 500:  # the retry sends bytes
                    self._doubt(refusal.text)
                if refusal.status not in _SUSPECT:
                    raise
                shown, blamed = in_bytes(screenshots), refusal.text
                continue
            if blamed is not None:
                self._doubt(blamed)
            self._accepted(shown)
            return answer

    def gone(self) -> None:
        """The server cannot be reached: when it is back, it may be a new process with an empty cache.

        The learned capacity is kept, so that simultaneous misses of all requests do not reduce it to nothing.
        """
        self._held.clear()

    def _shown(self, screenshots: Sequence[Screenshot], *, holds: bool = True) -> list[ShownImage]:
        shown = []
        for screenshot in screenshots:
            uuid = screenshot.sha256 if self._uuids else None
            if holds and uuid is not None and uuid in self._held:
                shown.append(ShownImage(screenshot, None, uuid, held=True))
            else:
                shown.append(ShownImage(screenshot, self._url(screenshot), uuid))
        return shown

    def _url(self, screenshot: Screenshot) -> str | None:
        if self._folder is None or screenshot.path is None or not screenshot.path.is_relative_to(self._folder):
            return None
        try:
            return "file://" + quote(str(screenshot.path))
        except UnicodeEncodeError:  # a name that is not UTF-8 cannot be written as a URL
            return None

    def _accepted(self, shown: Sequence[ShownImage]) -> None:
        if any(not image.in_bytes for image in shown):
            self._doubts = 0
        if any(image.held for image in shown):
            self._hits += 1
            self._room = min(self._room + 1 / self._room, _MOST_ROOM)
        if not self._uuids:
            return
        for image in shown:
            if image.uuid is not None:
                self._held[image.uuid] = None
                self._held.move_to_end(image.uuid)
        self._trim()

    def _without_failed_references(
        self, screenshots: Sequence[Screenshot], shown: Sequence[ShownImage], message: str
    ) -> list[ShownImage] | None:
        """The images in the form to try next, or ``None`` if the server's message is not about references."""
        if any(image.url is not None for image in shown) and _NO_FILES.search(message):
            if self._folder is not None:
                self._folder = None
                self._warn("does not read local files", message)
            return self._shown(screenshots)
        if any(image.held for image in shown) and _FORGOTTEN.search(message):
            self._forget([image.uuid for image in shown if image.held and image.uuid is not None])
            return self._shown(screenshots, holds=False)
        return None

    def _forget(self, uuids: Sequence[str]) -> None:
        if not any(uuid in self._held for uuid in uuids):
            return
        self._misses += 1
        if self._misses > self._hits + _SPARE_MISSES:
            if self._uuids:
                self._uuids = False
                self._held.clear()
                self._warn("does not keep images by their ids", f"{self._misses} of {self._misses + self._hits} were gone")
            return
        used = [*reversed(self._held)]
        # eviction is by least recent use: if this id is gone, so are all that were used before it
        since = max(used.index(uuid) for uuid in uuids if uuid in self._held)
        self._room = max(_LEAST_ROOM, min(self._room, 0.75 * since))
        for uuid in uuids:
            self._held.pop(uuid, None)
        self._trim()

    def _trim(self) -> None:
        while len(self._held) > self._room:
            self._held.popitem(last=False)

    def _doubt(self, message: str) -> None:
        self._doubts += 1
        if self._doubts >= _DOUBTS and self.offered:
            self._folder, self._uuids = None, False
            self._warn("takes screenshots in bytes only", message)

    def _warn(self, problem: str, reason: str) -> None:
        logging.getLogger(__name__).warning("%s %s (%s): from here on they are sent in bytes", self._name, problem, reason)
