"""In place of a screenshot's bytes, a reference to it: a file that the server can read, or an id under which it has it still.

Both are vLLM's. A ``file://`` URL is read by the server itself, from the one folder that ``--allowed-local-media-path``
names. A part's ``uuid`` names its image in the server's cache of processed images; a part with a ``uuid`` and no image is
taken from there, and refused with status 400 when it is there no longer. Nothing but speed may depend on either: what a
server refuses is sent again in bytes, within the same try, and what it refuses for good is not offered again.
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

from guieval.screenshots import Screenshot

# vLLM 0.32's words; the second and third are said of a file that it cannot find or open, with status 500
_NO_FILES = re.compile(r"local[ _-](media|files?)|No such file|Permission denied|must be either a HTTP", re.IGNORECASE)
_FORGOTTEN = re.compile(r"cache miss|cached item", re.IGNORECASE)
_SUSPECT = frozenset({400, 422})
_DOUBTS = 8  # refusals in a row, without a word that tells why
_SPARE_MISSES = 8
_LEAST_ROOM = 8
_MOST_ROOM = 4096

Answer = TypeVar("Answer")


class Refusal(Exception):
    """A server's answer that is no success: its ``status`` (``None`` when there was no answer) and what it ``said``."""

    status: int | None = None
    said: str = ""


@dataclass(frozen=True)
class ShownImage:
    """How one screenshot is written into a request: as its bytes, or as ``url``, or as an image that is ``held``.

    ``uuid`` is the id that the server is to keep it under, or has it under.
    """

    screenshot: Screenshot
    url: str | None = None
    uuid: str | None = None
    held: bool = False

    @property
    def in_bytes(self) -> bool:
        """Whether every server that takes images takes it so."""
        return self.url is None and self.uuid is None


Send: TypeAlias = Callable[[Sequence[ShownImage]], Awaitable[Answer]]


def in_bytes(screenshots: Sequence[Screenshot]) -> list[ShownImage]:
    """Nothing but bytes."""
    return [ShownImage(screenshot) for screenshot in screenshots]


class ImageReferences:
    """What one server lets be sent in place of bytes, as learned from its answers.

    ``folder`` is the one it may read files from, ``None`` when it reads none; ``uuids`` says whether it keeps images under
    ids. ``name`` is the server's, for what is said of it.

    The server forgets images that were not used for long. How many it keeps depends on their sizes and its own, so the number
    of ids believed to be held is found out: a miss cuts it to three quarters of those used since, as many hits as there may
    be ids add one. A miss of ids that are believed to be gone already, which were on their way when that was learned, tells
    nothing.
    """

    def __init__(self, name: str, folder: Path | None, *, uuids: bool) -> None:
        self._name = name
        self._folder = None if folder is None else folder.resolve()
        self._uuids = uuids
        self._held: OrderedDict[str, None] = OrderedDict()  # the one used longest ago first
        self._room = float(_MOST_ROOM)
        self._hits = self._misses = self._doubts = 0

    @property
    def offered(self) -> bool:
        """Whether anything but bytes is sent."""
        return self._uuids or self._folder is not None

    async def sent(self, screenshots: Sequence[Screenshot], send: Send[Answer]) -> Answer:
        """Whatever ``send`` returns, which sends one request with the images as they are given to it.

        It is called again, with fewer references, when the server refuses those. Raises what ``send`` raises, and learns from
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
                if (again := self._without_what_failed(screenshots, shown, refusal.said)) is not None:
                    shown = again
                    continue
                if refusal.status == 500:  # whoever sends it again, does so in bytes
                    self._doubt(refusal.said)
                if refusal.status not in _SUSPECT:
                    raise
                shown, blamed = in_bytes(screenshots), refusal.said
                continue
            if blamed is not None:
                self._doubt(blamed)
            self._accepted(shown)
            return answer

    def gone(self) -> None:
        """The server cannot be reached: when it is back, it may be another process, which has seen no image.

        How many it keeps stays as it was learned, so that the misses of all requests at once do not cut it to nothing.
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
        except UnicodeEncodeError:  # a name that is no UTF-8 cannot be told in a URL
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

    def _without_what_failed(
        self, screenshots: Sequence[Screenshot], shown: Sequence[ShownImage], said: str
    ) -> list[ShownImage] | None:
        """The images in the form to try next, or ``None`` when what the server said is not of their form."""
        if any(image.url is not None for image in shown) and _NO_FILES.search(said):
            if self._folder is not None:
                self._folder = None
                self._say("does not read local files", said)
            return self._shown(screenshots)
        if any(image.held for image in shown) and _FORGOTTEN.search(said):
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
                self._say("does not keep images by their ids", f"{self._misses} of {self._misses + self._hits} were gone")
            return
        used = [*reversed(self._held)]
        # the one used longest ago is the likeliest to be gone, and with it all that were not used since
        since = max(used.index(uuid) for uuid in uuids if uuid in self._held)
        self._room = max(_LEAST_ROOM, min(self._room, 0.75 * since))
        for uuid in uuids:
            self._held.pop(uuid, None)
        self._trim()

    def _trim(self) -> None:
        while len(self._held) > self._room:
            self._held.popitem(last=False)

    def _doubt(self, said: str) -> None:
        self._doubts += 1
        if self._doubts >= _DOUBTS and self.offered:
            self._folder, self._uuids = None, False
            self._say("takes screenshots in bytes only", said)

    def _say(self, what: str, said: str) -> None:
        logging.getLogger(__name__).warning("%s %s (%s): from here on they are sent in bytes", self._name, what, said)
