"""Screenshots: from a path in a record to bytes that may be sent, with every check a foreign data folder deserves.

A screenshot is never decoded just to be checked: the header gives format and size, the file's own end marker tells a
truncated file and a PNG's own checksums a damaged one, so an untouched original costs one read. Only an image that must be
resized is decoded.
"""

from __future__ import annotations

import io
import zlib
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

from guieval.errors import ScreenshotError

MAX_PIXELS = 64_000_000
"""Largest image accepted, in pixels: above it a small file could unpack to gigabytes (a decompression bomb)."""
MAX_BYTES = 64 * 1024 * 1024

Format = Literal["png", "jpeg", "webp"]
_FORMATS: dict[str, Format] = {"PNG": "png", "WEBP": "webp"}


@dataclass(frozen=True)
class Screenshot:
    """An image file's bytes with its format and its (width, height) in pixels.

    ``path`` is the absolute path, links resolved, of the file that holds these very bytes, if one does.
    """

    data: bytes
    format: Format
    size: tuple[int, int]
    path: Path | None = field(default=None, compare=False)

    @cached_property
    def base64(self) -> bytes:
        """The data in base64, computed once: a screenshot is sent again with every later step that shows it."""
        return b64encode(self.data)

    @cached_property
    def sha256(self) -> str:
        """The data's SHA-256 in hexadecimal, computed once."""
        return sha256(self.data).hexdigest()


def resolve(root: Path, relative: str) -> Path:
    """The file that ``relative`` names inside ``root``; :class:`ScreenshotError` when it leads outside or is not there."""
    try:
        base = root.resolve()
        path = (base / relative).resolve()
        is_file = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # no permission, a NUL or 300 characters in a name, links in a circle
        raise ScreenshotError(f"the screenshot path {relative!r} cannot be followed: {error}") from None
    if not path.is_relative_to(base):
        raise ScreenshotError(f"the screenshot path {relative!r} leaves the data folder {str(root)!r}")
    if not is_file:
        raise ScreenshotError(f"the screenshot {str(path)!r} does not exist")
    return path


def read_screenshot(root: Path, relative: str, expected_size: tuple[int, int]) -> Screenshot:
    """Read and check one screenshot file.

    Raises :class:`ScreenshotError` with one sentence when the path leaves ``root``, the file is missing, is no PNG, JPEG or
    WebP image, is truncated, is larger than 64 million pixels or 64 MiB, or is not of ``expected_size`` (width, height).
    """
    path = resolve(root, relative)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ScreenshotError(f"the screenshot {str(path)!r} is larger than {MAX_BYTES // 1024**2} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise ScreenshotError(f"the screenshot {str(path)!r} cannot be read: {error.strerror}") from None
    try:
        kind, size = probe(data)
    except ValueError as error:
        raise ScreenshotError(f"the screenshot {str(path)!r} {error}") from None
    if size != tuple(expected_size):
        raise ScreenshotError(
            f"the screenshot {str(path)!r} is {size[0]}x{size[1]} pixels, "
            f"but its record says {expected_size[0]}x{expected_size[1]}"
        )
    return Screenshot(data, kind, size, path)


def probe(data: bytes) -> tuple[Format, tuple[int, int]]:
    """Format and (width, height) of an image file's bytes, from its header, end marker and checksums alone.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") for what is not a whole PNG, JPEG or WebP. Damage
    within the data is noticed in a PNG, whose checksums tell it without decoding.
    """
    # Pillow refuses a short WebP without telling why.
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and int.from_bytes(data[4:8], "little") + 8 > len(data):
        raise ValueError("is truncated: its WebP data ends early")
    kind, (width, height) = header(io.BytesIO(data))
    if width * height > MAX_PIXELS:
        raise ValueError(f"unpacks to {width * height:,} pixels, more than the {MAX_PIXELS:,} allowed")
    if kind == "png":
        _check_png(data)
    if kind == "jpeg" and data.rfind(b"\xff\xd9", max(0, len(data) - 4096)) < 0:
        raise ValueError("is truncated: its JPEG end marker is missing")
    return kind, (width, height)


def header(image: Path | BinaryIO) -> tuple[Format, tuple[int, int]]:
    """Format and (width, height) of an image file by its header alone; nothing is said of the rest.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") for what is no PNG, JPEG or WebP.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(image, formats=("PNG", "JPEG", "WEBP")) as opened:
            return _FORMATS.get(opened.format or "", "jpeg"), opened.size  # a JPEG of several pictures is "MPO" to Pillow
    except Image.DecompressionBombError:
        raise ValueError(f"unpacks to more than {MAX_PIXELS:,} pixels") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ValueError("is not a readable PNG, JPEG or WebP image") from None


def _check_png(data: bytes) -> None:
    """``ValueError`` unless every chunk is there up to the last, and each is as it was written."""
    position = 8
    view = memoryview(data)
    while position + 12 <= len(data):
        end = position + 8 + int.from_bytes(data[position : position + 4], "big")
        if end + 4 > len(data):
            break
        kind = data[position + 4 : position + 8]
        if zlib.crc32(view[position + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            raise ValueError(f"is damaged: its {kind.decode('ascii', 'replace')} chunk does not match its checksum")
        if kind == b"IEND":
            return
        position = end + 4
    raise ValueError("is truncated: its last PNG chunk is missing")


def resized_png(screenshot: Screenshot, size: tuple[int, int]) -> Screenshot:
    """The screenshot decoded, resized to ``size`` (bicubic, as the Qwen processors do) and encoded as PNG without loss.

    Raises :class:`ScreenshotError` when the image data is damaged inside.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(screenshot.data)) as image:
            resized = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    except (OSError, SyntaxError, ValueError) as error:
        raise ScreenshotError(f"the screenshot cannot be decoded: {error}") from None
    buffer = io.BytesIO()
    resized.save(buffer, format="PNG", compress_level=1)
    return Screenshot(buffer.getvalue(), "png", size)
