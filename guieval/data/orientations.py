"""The eight EXIF orientations: how each turns an image, and the image and the places before the turn."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

ORIENTATION = 0x0112
"""The tag of EXIF data."""
TURNS = {
    1: ("as it is", None),
    2: ("mirrored", "FLIP_LEFT_RIGHT"),
    3: ("turned by 180 degrees", "ROTATE_180"),
    4: ("mirrored and turned by 180 degrees", "FLIP_TOP_BOTTOM"),
    5: ("mirrored and turned left by 90 degrees", "TRANSPOSE"),
    6: ("turned right by 90 degrees", "ROTATE_270"),
    7: ("mirrored and turned right by 90 degrees", "TRANSVERSE"),
    8: ("turned left by 90 degrees", "ROTATE_90"),
}
"""Each orientation's turn in words, and as Pillow calls it."""
_BACK = {6: 8, 8: 6}
"""The orientations whose turn another one undoes."""


def turned(image: Image, orientation: int) -> Image:
    """The image turned as an EXIF orientation, 1 to 8, says."""
    from PIL.Image import Transpose

    turn = TURNS[orientation][1]
    return image if turn is None else image.transpose(Transpose[turn])


def unturned(image: Image, orientation: int) -> Image:
    """The image of which :func:`turned` makes this one."""
    return turned(image, _BACK.get(orientation, orientation))


def unturned_point(x: float, y: float, orientation: int) -> tuple[float, float]:
    """Where a point in thousandths of an image is in that of :func:`unturned`; as it is for orientations that mirror."""
    return {3: (1000.0 - x, 1000.0 - y), 6: (y, 1000.0 - x), 8: (1000.0 - y, x)}.get(orientation, (x, y))


def stored(image: Image, orientation: int) -> bytes:
    """A PNG file that shows the image to readers that turn its pixels as its EXIF orientation says."""
    held = unturned(image, orientation)
    exif = held.getexif()
    exif[ORIENTATION] = orientation
    buffer = BytesIO()
    held.save(buffer, format="PNG", compress_level=1, exif=exif)
    return buffer.getvalue()
