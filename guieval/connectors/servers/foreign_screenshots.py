"""Screenshots as servers of others send them: base64 text or arrays of pixels, checked and as a model is sent them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

import numpy as np

from guieval.data.screenshots import MAX_PIXELS, picture, png, probe
from guieval.errors import EnvironmentFailure

_PIECE = 4 << 20  # characters; a multiple of the four that give three bytes


def read_screenshot(value: Any) -> tuple[bytes, tuple[int, int]]:
    """A screenshot (PNG or JPEG) and its (width, height) in pixels.

    ``value`` is base64 text, with or without ``data:image/...;base64,`` before it, or an array of pixels of shape
    (height, width, 3 or 4), uint8. Raises :class:`EnvironmentFailure` for anything else.
    """
    if isinstance(value, str):
        text = value.rpartition(",")[2]
        try:  # a piece at a time, between which other threads run
            return checked_screenshot(
                b"".join(b64decode(text[start : start + _PIECE], validate=True) for start in range(0, len(text), _PIECE))
            )
        except (binascii.Error, ValueError):
            raise EnvironmentFailure("the environment's screenshot is text that is not base64") from None
    if isinstance(value, np.ndarray):
        return checked_screenshot(_png(value))
    raise EnvironmentFailure(
        f"the environment's screenshot is {value!r:.60}; expected base64 text or rows of pixels of 0 to 255"
    )


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


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    from PIL import Image

    if pixels.shape[2] not in (3, 4) or pixels.shape[0] * pixels.shape[1] > MAX_PIXELS:
        raise EnvironmentFailure(f"the environment's screenshot has the shape {pixels.shape}; expected (height, width, 3)")
    return png(Image.fromarray(pixels))
