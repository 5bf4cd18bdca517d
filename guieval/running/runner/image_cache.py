"""Screenshots on their way into requests: read, resized and encoded in threads, each once, in a cache of bounded size."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

from guieval.data.screenshots import Crop, Screenshot, read_screenshot
from guieval.frames import Size
from guieval.models import ImageForm, ImageRef
from guieval.models.scaffold import AS_IT_IS, Encoding

CACHE_BYTES = 64 * 1024 * 1024
"""How much is kept for later steps that show the same screenshot."""

_Key: TypeAlias = tuple[str, Size, Size | None, Crop | None, Size | None]
"""File, the size its record says it has, the size to send and the part of it: what decides a screenshot's bytes."""


def read_image(root: Path, image: ImageRef, encoding: Encoding, *, check: bool) -> Screenshot:
    """The picture to send, read now: what :meth:`ImageLoader.load` gives. Raises :class:`ScreenshotError`."""
    return read_screenshot(
        root,
        image.task.screenshot,
        image.task.screenshot_size,
        image.resize,
        check=check,
        jpeg=encoding.jpeg,
        only_png=encoding.format == "png",
        crop=image.crop,
        canvas=image.canvas,
    )


class ImageLoader:
    """Reads, resizes and encodes screenshots off the event loop, each (file, size) once, in a cache of bounded bytes.

    Every file is read and checked, also when nothing but its name is sent (``form`` "file"): a server takes a damaged PNG for
    a whole one. With ``check`` the image data is unpacked too, once per content and process. ``encoding`` is the scaffold's.
    """

    def __init__(
        self, root: Path, threads: ThreadPoolExecutor, *, form: ImageForm, check: bool = True, encoding: Encoding = AS_IT_IS
    ) -> None:
        self._form = form
        self._encoding = encoding
        self._check = check
        self._root = root
        self._threads = threads
        self._cache: OrderedDict[_Key, Screenshot] = OrderedDict()
        self._bytes = 0
        self._loading: dict[_Key, asyncio.Future[Screenshot]] = {}

    async def load(self, image: ImageRef) -> Screenshot:
        """The picture to send: the file's own bytes, or a PNG. Raises :class:`ScreenshotError`."""
        key = (image.task.screenshot, image.task.screenshot_size, image.resize, image.crop, image.canvas)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        if key not in self._loading:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._threads, self._read, image)
            self._loading[key] = future
            future.add_done_callback(lambda _: self._loading.pop(key, None))
        screenshot = await asyncio.shield(self._loading[key])
        if key not in self._cache:
            self._cache[key] = screenshot
            self._bytes += self._weight(screenshot)
            while self._bytes > CACHE_BYTES and len(self._cache) > 1:
                _, dropped = self._cache.popitem(last=False)
                self._bytes -= self._weight(dropped)
        return screenshot

    def _read(self, image: ImageRef) -> Screenshot:
        screenshot = read_image(self._root, image, self._encoding, check=self._check)
        # here, in a thread, and not when the request is written
        if self._form == "base64" or (self._form == "file" and screenshot.path is None):
            _ = screenshot.base64
        if self._form == "file":
            _ = screenshot.sha256
        return screenshot

    def _weight(self, screenshot: Screenshot) -> int:
        # with "file" too, for a server may refuse the file and be sent the bytes
        return len(screenshot.data) if self._form == "bytes" else len(screenshot.data) * 7 // 3
