"""Screenshots: from a path in a record to bytes that may be sent, with the checks that a foreign data folder needs.

The header gives format and size, a missing end marker shows a truncated file, and a PNG's checksums show a damaged one. Data
that cannot be decoded is detected by :func:`check_data`, which takes some milliseconds.
"""

from __future__ import annotations

import io
import zlib
from base64 import b64encode
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from guieval.data.files import open_file, read_bytes
from guieval.errors import ScreenshotError

MAX_PIXELS = 64_000_000
"""Largest image accepted, in pixels: above it a small file could unpack to gigabytes (a decompression bomb)."""
MAX_BYTES = 64 * 1024 * 1024

_AT_ONCE = 1 << 20  # bytes unpacked at a time
_MOST_DECODED = 50_000
_decoded: set[FileDigest] = set()
"""Files whose image data this process has decoded: several modes and many episodes use the same files."""

Format = Literal["png", "jpeg", "webp"]
_FORMATS: dict[str, Format] = {"PNG": "png", "WEBP": "webp"}


class FileDigest(NamedTuple):
    """The size of a screenshot's file in bytes, and the first 16 hexadecimal digits of its SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Screenshot:
    """An image file's bytes with its format and its (width, height) in pixels.

    ``path`` is the absolute path, links resolved, of the file with exactly these bytes, if there is one. ``original`` is the
    digest of the file that it was read from, also after a resize.
    """

    data: bytes
    format: Format
    size: tuple[int, int]
    path: Path | None = field(default=None, compare=False)
    original: FileDigest | None = field(default=None, compare=False)

    @cached_property
    def base64(self) -> bytes:
        """The data in base64, computed once, since every later step that shows the screenshot sends it again."""
        return b64encode(self.data)

    @cached_property
    def sha256(self) -> str:
        """The data's SHA-256 in hexadecimal, computed once."""
        return sha256(self.data).hexdigest()


def resolve(root: Path, relative: str) -> Path:
    """The file at ``relative`` inside ``root``; :class:`ScreenshotError` if it is outside or does not exist."""
    try:
        base = root.resolve()
        path = (base / relative).resolve()
        is_file = path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # no permission, a NUL or 300 characters in a name, links in a circle
        raise ScreenshotError(f"the screenshot path {relative!r} cannot be resolved: {error}") from None
    if not path.is_relative_to(base):
        raise ScreenshotError(f"the screenshot path {relative!r} leaves the data folder {str(root)!r}")
    if not is_file:
        raise ScreenshotError(f"the screenshot {str(path)!r} does not exist")
    return path


def read_screenshot(root: Path, relative: str, expected_size: tuple[int, int]) -> Screenshot:
    """Read and check one screenshot file.

    Raises :class:`ScreenshotError` with one sentence if the path leaves ``root``, the file is missing, is not a PNG, JPEG or
    WebP image, is truncated, is larger than 64 million pixels or 64 MiB, or does not have ``expected_size`` (width, height).
    """
    path = resolve(root, relative)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ScreenshotError(f"the screenshot {str(path)!r} is larger than {MAX_BYTES // 1024**2} MiB")
        data = read_bytes(path)
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
    return Screenshot(data, kind, size, path, file_digest(data))


def file_digest(data: bytes) -> FileDigest:
    """The digest of a file's content."""
    return FileDigest(len(data), sha256(data).hexdigest()[:16])


def check_data(screenshot: Screenshot) -> None:
    """Raise :class:`ScreenshotError` if the image data cannot be decoded although header and checksums are right.

    For a PNG, the compressed data is unpacked; a JPEG is decoded at an eighth of its size, which reads all of its data.
    Content that passed the check before is not decoded again.
    """
    if screenshot.original in _decoded:
        return
    from PIL import Image

    try:
        if screenshot.format == "png":
            _unpack_png(screenshot.data)
        else:
            with Image.open(io.BytesIO(screenshot.data)) as image:
                image.draft("RGB", (1, 1))
                image.load()
    except (OSError, SyntaxError, ValueError, zlib.error) as error:
        raise ScreenshotError(f"the screenshot {str(screenshot.path)!r} cannot be decoded: {error}") from None
    if screenshot.original is not None:
        if len(_decoded) >= _MOST_DECODED:
            _decoded.clear()
        _decoded.add(screenshot.original)


def probe(data: bytes) -> tuple[Format, tuple[int, int]]:
    """Format and (width, height) of an image file's bytes, from its header, end marker and checksums only.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") if it is not a complete PNG, JPEG or WebP. Damage
    inside the data is detected only in a PNG, by its checksums.
    """
    # Pillow refuses a short WebP without a reason
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
    """Format and (width, height) of an image file from its header; the rest is not checked.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") if it is not a PNG, JPEG or WebP.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        stream = open_file(image) if isinstance(image, Path) else nullcontext(image)
        with stream as file, Image.open(file, formats=("PNG", "JPEG", "WEBP")) as opened:
            return _FORMATS.get(opened.format or "", "jpeg"), opened.size  # a JPEG of several pictures is "MPO" to Pillow
    except Image.DecompressionBombError:
        raise ValueError(f"unpacks to more than {MAX_PIXELS:,} pixels") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ValueError("is not a readable PNG, JPEG or WebP image") from None


def _check_png(data: bytes) -> None:
    """``ValueError`` unless all chunks up to the last exist and match their checksums."""
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


def _unpack_png(data: bytes) -> None:
    """``ValueError`` or ``zlib.error`` unless the compressed data unpacks to the size given by the header."""
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    depth, colour, interlaced = data[24], data[25], data[28]
    unpacker = zlib.decompressobj()
    view = memoryview(data)
    position, count = 8, 0
    while position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if data[position + 4 : position + 8] == b"IDAT":
            part: bytes = view[position + 8 : position + 8 + length]  # type: ignore[assignment]
            while part and count <= 16 * MAX_PIXELS:
                count += len(unpacker.decompress(part, _AT_ONCE))
                part = unpacker.unconsumed_tail
        position += 12 + length
    row = (width * depth * {2: 3, 4: 2, 6: 4}.get(colour, 1) + 7) // 8 + 1
    if not unpacker.eof or (count != row * height and not interlaced):
        raise ValueError("its compressed data does not hold a whole image")


def resized_png(screenshot: Screenshot, size: tuple[int, int]) -> Screenshot:
    """The screenshot decoded, resized to ``size`` (bicubic, as in the Qwen processors) and encoded as lossless PNG.

    Raises :class:`ScreenshotError` if the image data is damaged.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(screenshot.data)) as image:
            resized = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    except (OSError, SyntaxError, ValueError) as error:
        raise ScreenshotError(f"the screenshot cannot be decoded: {error}") from None
    buffer = io.BytesIO()
    resized.save(buffer, format="PNG", compress_level=1)
    return Screenshot(buffer.getvalue(), "png", size, original=screenshot.original)
