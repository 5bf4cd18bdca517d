"""Screenshots as servers of others send them: base64 text or lists of pixels, checked and as a model is sent them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from guieval.data.screenshots import MAX_PIXELS, picture, png, probe
from guieval.errors import EnvironmentFailure


def read_screenshot(value: Any) -> tuple[bytes, tuple[int, int]]:
    """A screenshot (PNG or JPEG) and its (width, height) in pixels.

    ``value`` is base64 text, with or without ``data:image/...;base64,`` before it, or a list of rows of pixels of shape
    (height, width, 3 or 4). Raises :class:`EnvironmentFailure` for anything else.
    """
    if isinstance(value, str):
        try:
            return checked_screenshot(b64decode(value.rpartition(",")[2], validate=True))
        except binascii.Error:
            raise EnvironmentFailure("the environment's screenshot is text that is not base64") from None
    if isinstance(value, list):
        return checked_screenshot(_png(value))
    raise EnvironmentFailure(f"the environment's screenshot is {value!r:.60}; expected base64 text or a list of pixels")


def checked_screenshot(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """The image, as PNG if it is turned, transparent or a WebP, and its (width, height) in pixels.

    Raises :class:`EnvironmentFailure` if it is none.
    """
    try:
        found = probe(data)
        if not found.ready or found.format == "webp":
            data = png(picture(data))
    except ValueError as error:
        raise EnvironmentFailure(f"the environment's screenshot {error}") from None
    return data, found.size


def _png(rows: list[Any]) -> bytes:
    import numpy as np
    from PIL import Image

    try:
        pixels = np.asarray(rows, dtype=np.uint8)
    except (TypeError, ValueError, OverflowError):
        raise EnvironmentFailure("the environment's screenshot is a list that does not hold pixels of 0 to 255") from None
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or not 0 < pixels.shape[0] * pixels.shape[1] <= MAX_PIXELS:
        raise EnvironmentFailure(f"the environment's screenshot has the shape {pixels.shape}; expected (height, width, 3)")
    return png(Image.fromarray(pixels))
