"""The one way from an image file to the picture that a model sees, with the checks that a foreign data folder needs.

A picture is the file's first image, turned as its EXIF orientation says, opaque (what is transparent is on white), RGB with 8
bits a channel, and at last resized, if a model wants that. Sizes are those of the turned picture. A file that is such a picture
already is sent byte for byte, anything else as lossless PNG, so every server, processor and browser shows the same pixels. They
are those of vLLM's loader, which differs in two things: it clips 16-bit grey to white, and ignores a transparent colour of RGB.

The header gives format and size, a missing end marker shows a truncated file, and a PNG's checksums show a damaged one. Data
that cannot be decoded although all this is right costs more to find, once per content and process (``check``).
"""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeAlias

from guieval.data.files import open_file, read_bytes
from guieval.data.names import path_inside
from guieval.data.orientations import ORIENTATION, TURNS, turned
from guieval.errors import ScreenshotError
from guieval.frames import Size

try:  # several times as fast
    from zlib_ng import zlib_ng as zlib
except ModuleNotFoundError:  # where it has no wheel
    import zlib

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

MAX_PIXELS = 64_000_000
"""Largest image accepted, in pixels: above it a small file could unpack to gigabytes (a decompression bomb)."""
MAX_BYTES = 64 * 1024 * 1024

_AT_ONCE = 1 << 20  # bytes unpacked at a time
_MOST_CHECKED = 50_000
_MOST_CHUNKS = 100_000  # ones of 8 KB would be 800 MB
_METADATA = frozenset({"exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif"})
_LATE_METADATA = (b"Raw profile type exif\0", b"XML:com.adobe.xmp\0")

Crop: TypeAlias = tuple[int, int, int, int]
"""(left, top, right, bottom) in pixels of the turned picture; right and bottom are not part of it."""
Format = Literal["png", "jpeg", "webp"]
_FORMATS: dict[str, Format] = {"PNG": "png", "WEBP": "webp"}


class FileDigest(NamedTuple):
    """The size of a screenshot's file in bytes, and the first 16 hexadecimal digits of its SHA-256."""

    bytes: int
    sha256: str


class Header(NamedTuple):
    """An image file as its header describes it.

    ``size`` is (width, height) in pixels after the turn that ``orientation`` asks for, 1 to 8 as in EXIF. ``transparent`` is
    whether it has an alpha channel or a transparent colour, ``ready`` whether its own bytes are what a model is sent.
    """

    format: Format
    size: Size
    orientation: int = 1
    transparent: bool = False
    ready: bool = True

    @property
    def turned(self) -> str:
        """The orientation's turn in words: where the file's pixels are taken to."""
        return TURNS[self.orientation][0]

    def other_size(self, recorded: Size) -> str | None:
        """A clause that completes "the screenshot X ..." if the size is not the ``recorded`` one."""
        if self.size == tuple(recorded):
            return None
        is_size, says = (f"{width}x{height}" for width, height in (self.size, recorded))
        if self.orientation >= 5 and self.size == tuple(recorded)[::-1]:
            return (
                f"is {is_size} pixels once it is turned as its EXIF orientation {self.orientation} says, "
                f"but its record says {says}, the size of the unturned file"
            )
        return f"is {is_size} pixels, but its record says {says}"


_checked: dict[FileDigest, Header] = {}
"""Content that this process has decoded: several modes and many episodes use the same files."""


@dataclass(frozen=True)
class Screenshot:
    """A picture as it is sent: the bytes of an image file with their format and (width, height) in pixels.

    ``path`` is the absolute path, links resolved, of the file with exactly these bytes, if there is one. ``original`` is the
    digest of the file that it was read from, also if other bytes are sent.
    """

    data: bytes
    format: Format
    size: Size
    path: Path | None = field(default=None, compare=False)
    original: FileDigest | None = field(default=None, compare=False)

    @cached_property
    def base64(self) -> bytes:
        """The data in base64, computed once, since every later step that shows the screenshot sends it again."""
        return b64encode(self.data)

    @property
    def media_type(self) -> str:
        """Its type as HTTP names it, e.g. ``image/png``."""
        return f"image/{self.format}"

    @property
    def data_url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64.decode()}"

    @cached_property
    def sha256(self) -> str:
        """The data's SHA-256 in hexadecimal, computed once."""
        return sha256(self.data).hexdigest()


def jpeg_url(image: Image, quality: int) -> str:
    """An image for people to look at, within a URL of a page."""
    return f"data:image/jpeg;base64,{b64encode(_encoded(image, 'JPEG', quality=quality)).decode()}"


def resolve(root: Path, relative: str) -> Path:
    """The file at ``relative`` inside ``root``; :class:`ScreenshotError` if it is outside or does not exist."""
    try:
        path = path_inside(root, relative)
    except ValueError as error:
        raise ScreenshotError(f"the screenshot {relative[:200]!r} in {str(root)!r} {error}") from None
    try:
        is_file = path.is_file()
    except OSError as error:  # no permission
        raise ScreenshotError(f"the screenshot {str(path)!r} cannot be opened: {error.strerror}") from None
    if not is_file:
        raise ScreenshotError(f"the screenshot {str(path)!r} does not exist")
    return path


def read_screenshot(
    root: Path,
    relative: str,
    recorded_size: Size,
    resize: Size | None = None,
    *,
    check: bool = False,
    jpeg: int | None = None,
    only_png: bool = False,
    crop: Crop | None = None,
    canvas: Size | None = None,
) -> Screenshot:
    """The screenshot at ``relative`` below ``root`` as it is sent, in the size ``resize`` or in its own; of it only ``crop``,
    enlarged to that size, if given; and then in the upper left corner of a white image of the size ``canvas``, if given.

    A file that is a picture already is sent as it is, anything else as PNG; with ``jpeg`` all are encoded as JPEG of that
    quality (1 to 100, as Pillow does), and with ``only_png`` those that are no PNG are sent as one too.

    Raises :class:`ScreenshotError` with one sentence if the path leaves ``root``, the file is missing, is not a PNG, JPEG or
    WebP image, is truncated, is larger than 64 million pixels or 64 MiB, or does not have ``recorded_size`` (width, height);
    with ``check`` also if a file that is sent as it is cannot be decoded.
    """
    file = _read(root, relative, recorded_size)
    kept = crop is None and canvas is None and jpeg is None and (not only_png or file.header.format == "png")
    if kept and file.header.ready and resize in (None, file.header.size):
        if check:
            file.check()
        return Screenshot(file.data, file.header.format, file.header.size, file.path, file.digest)
    image = file.picture(resize, crop=crop, canvas=canvas)
    if jpeg is not None:
        return Screenshot(_encoded(image, "JPEG", quality=jpeg), "jpeg", image.size, original=file.digest)
    return Screenshot(png(image), "png", image.size, original=file.digest)


def read_picture(
    root: Path,
    relative: str,
    recorded_size: Size,
    resize: Size | None = None,
    *,
    at_most: Size | None = None,
    canvas: Size | None = None,
) -> Image:
    """The pixels of :func:`read_screenshot`, RGB; ``at_most`` is the size of a thumbnail (:func:`picture`).

    Raises :class:`ScreenshotError` as it does, and for data that cannot be decoded.
    """
    return _read(root, relative, recorded_size).picture(resize, at_most, canvas=canvas)


def file_digest(data: bytes) -> FileDigest:
    """The digest of a file's content."""
    return FileDigest(len(data), sha256(data).hexdigest()[:16])


def picture(data: bytes, at_most: Size | None = None) -> Image:
    """The pixels that a model sees of an image file's bytes, RGB, or a thumbnail of them that is ``at_most`` so large.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") if they are not a PNG, JPEG or WebP that can be
    decoded.
    """
    import PIL.Image

    opened, header = _decoded(data, at_most)
    image = _on_white(opened, _depth(data))
    image.info = {}  # else a transparent colour of the file would be written into what is made of it
    image = turned(image, header.orientation)
    if at_most is not None:
        image.thumbnail(at_most, PIL.Image.Resampling.LANCZOS)
    return image


def png(image: Image) -> bytes:
    """An image as the bytes of a PNG file, without loss."""
    return _encoded(image, "PNG", compress_level=1)


def _encoded(image: Image, form: str, **how: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **how)
    return buffer.getvalue()


def probe(data: bytes) -> Header:
    """What an image file's bytes are, from their header, end marker and checksums only.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") if they are not a complete PNG, JPEG or WebP. Damage
    inside the data is detected only in a PNG, by its checksums.
    """
    # Pillow refuses a short WebP without a reason
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and int.from_bytes(data[4:8], "little") + 8 > len(data):
        raise ValueError("is truncated: its WebP data ends early")
    found = header(io.BytesIO(data))
    if found.format == "png":
        _check_png(data)
    if found.format == "jpeg" and data.rfind(b"\xff\xd9", max(0, len(data) - 4096)) < 0:
        raise ValueError("is truncated: its JPEG end marker is missing")
    return found


def header(image: Path | BinaryIO) -> Header:
    """What an image file is, from its header and metadata; the rest is not checked.

    Raises ``ValueError`` (a clause that completes "the screenshot X ...") if it is not a PNG, JPEG or WebP.
    """
    if isinstance(image, Path):
        try:
            with open_file(image) as stream:
                return header(stream)
        except OSError:
            raise ValueError("is not a readable PNG, JPEG or WebP image") from None
    opened, found = _opened(image)
    opened.close()
    return found


class _CheckedFile(NamedTuple):
    """A file whose header and recorded size are right."""

    path: Path
    data: bytes
    digest: FileDigest
    header: Header

    def picture(
        self, resize: Size | None, at_most: Size | None = None, crop: Crop | None = None, canvas: Size | None = None
    ) -> Image:
        import PIL.Image

        try:
            image = picture(self.data, at_most)
        except ValueError as error:
            raise ScreenshotError(f"the screenshot {str(self.path)!r} {error}") from None
        self._passed()
        if crop is not None or resize not in (None, image.size):
            shown = image if crop is None else image.crop(crop)
            image = shown.resize(resize or image.size, PIL.Image.Resampling.BICUBIC)  # as in the Qwen processors
        if canvas is None:
            return image
        white = PIL.Image.new("RGB", canvas, (255, 255, 255))
        white.paste(image)
        return white

    def check(self) -> None:
        """Raise :class:`ScreenshotError` if the image data cannot be decoded although header and checksums are right.

        For a PNG, the compressed data is unpacked; a JPEG is decoded at an eighth of its size, which reads all of its data.
        Content that passed before is not decoded again.
        """
        if self.digest in _checked:
            return
        try:
            if self.header.format == "png":
                _unpack_png(self.data)
            else:
                _decoded(self.data, (1, 1))
        except ValueError as error:
            raise ScreenshotError(f"the screenshot {str(self.path)!r} {error}") from None
        self._passed()

    def _passed(self) -> None:
        if len(_checked) >= _MOST_CHECKED:
            _checked.clear()
        _checked[self.digest] = self.header


def _read(root: Path, relative: str, recorded_size: Size) -> _CheckedFile:
    path = resolve(root, relative)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ScreenshotError(f"the screenshot {str(path)!r} is larger than {MAX_BYTES // 1024**2} MiB")
        data = read_bytes(path)
    except OSError as error:
        raise ScreenshotError(f"the screenshot {str(path)!r} cannot be read: {error.strerror}") from None
    digest = file_digest(data)
    try:
        found = _checked.get(digest) or probe(data)
    except ValueError as error:
        raise ScreenshotError(f"the screenshot {str(path)!r} {error}") from None
    if other := found.other_size(recorded_size):
        raise ScreenshotError(f"the screenshot {str(path)!r} {other}")
    return _CheckedFile(path, data, digest, found)


def _opened(stream: BinaryIO) -> tuple[ImageFile, Header]:
    """An image that is not decoded yet, and its header; ``ValueError`` (a clause) if it is none that is accepted."""
    import PIL.Image

    try:
        opened = PIL.Image.open(stream, formats=("PNG", "JPEG", "WEBP"))
    except PIL.Image.DecompressionBombError:
        raise ValueError(f"unpacks to more than {MAX_PIXELS:,} pixels") from None
    except (PIL.UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise ValueError("is not a readable PNG, JPEG or WebP image") from None
    width, height = opened.size
    if width * height > MAX_PIXELS:
        raise ValueError(f"unpacks to {width * height:,} pixels, more than the {MAX_PIXELS:,} allowed")
    kind = _FORMATS.get(opened.format or "", "jpeg")  # a JPEG of several pictures is "MPO" to Pillow
    place = stream.tell()
    stream.seek(0)
    depth = _depth(stream.read(25))
    orientation = _orientation(opened, late=kind == "png" and _has_late_metadata(stream))
    stream.seek(place)
    transparent = opened.mode in ("LA", "RGBA") or "transparency" in opened.info
    ready = opened.mode == "RGB" and depth == 8 and not transparent and orientation == 1
    size = (width, height) if orientation < 5 else (height, width)
    return opened, Header(kind, size, orientation, transparent, ready)


def _depth(data: bytes) -> int:
    """Bits a channel."""
    return data[24] if data[:4] == b"\x89PNG" else 8


def _orientation(image: ImageFile, *, late: bool) -> int:
    """The orientation, 1 to 8, in EXIF data or XMP, as Pillow and so vLLM reads it; ``late`` if it follows a PNG's pixels."""
    from PIL.Image import Image

    try:
        if late:
            image.load()
        if not image.info.keys() & _METADATA:
            return 1
        value: Any = Image.getexif(image).get(ORIENTATION)  # that of PNG files decodes them
        return int(value) if value in TURNS else 1
    except Exception:  # metadata can be broken in any way, and what cannot be read turns nothing
        return 1


def _has_late_metadata(stream: BinaryIO) -> bool:
    """Whether a PNG has EXIF data or XMP after its image data, which opening it does not read."""
    stream.seek(8)
    data_seen = False
    for _ in range(_MOST_CHUNKS):
        start = stream.read(8)
        length, kind = int.from_bytes(start[:4], "big"), start[4:]
        if len(start) < 8 or kind == b"IEND" or not kind.isalpha():  # whatever follows the end is no part of the picture
            return False
        data_seen = data_seen or kind == b"IDAT"
        if data_seen and kind == b"eXIf":
            return True
        if data_seen and kind in (b"tEXt", b"zTXt", b"iTXt"):
            name = stream.read(min(length, 32))
            if name.startswith(_LATE_METADATA):
                return True
            length -= len(name)
        stream.seek(length + 4, io.SEEK_CUR)
    return False


def _decoded(data: bytes, at_most: Size | None) -> tuple[ImageFile, Header]:
    """A decoded image, a JPEG at a reduced size if ``at_most`` is small; ``ValueError`` (a clause) if it is damaged."""
    opened, header = _opened(io.BytesIO(data))
    try:
        if at_most is not None:
            opened.draft("RGB", at_most if header.orientation < 5 else at_most[::-1])
        opened.load()
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"cannot be decoded: {error}") from None
    return opened, header


def _on_white(image: Image, depth: int) -> Image:
    """The image as RGB with 8 bits a channel, what is transparent on white; ``depth`` is the file's bits a channel.

    Of 16 bits the upper 8 are kept, as Pillow itself does with colours. vLLM puts transparency on white in the same way.
    """
    import numpy as np
    import PIL.Image

    clear = image.info.get("transparency")
    if image.mode in ("I;16", "I"):  # 16-bit grey, which Pillow would clip
        grey = np.asarray(image)
        shown = np.where(grey == clear, 255, grey >> 8) if clear is not None else grey >> 8
        return PIL.Image.fromarray(shown.astype(np.uint8)).convert("RGB")
    if clear is not None and image.mode in ("1", "L"):  # the transparent grey is given in the file's own bits
        level = clear if image.mode == "1" else clear * 255 // (2**depth - 1)
        return image.convert("L").point([255 if value == level else value for value in range(256)]).convert("RGB")
    if clear is not None and image.mode == "RGB" and depth == 16:
        image.info["transparency"] = tuple(value >> 8 for value in clear)
    if clear is None and image.mode not in ("LA", "RGBA"):
        return image.convert("RGB")
    image = image.convert("RGBA")
    white = PIL.Image.new("RGB", image.size, (255, 255, 255))
    white.paste(image, mask=image.getchannel("A"))
    return white


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
    """``ValueError`` (a clause) unless the compressed data of an RGB image unpacks to the size given by the header."""
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    interlaced = data[28]
    unpacker = zlib.decompressobj()
    view = memoryview(data)
    position, count = 8, 0
    while position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if data[position + 4 : position + 8] == b"IDAT":
            part: bytes | memoryview = view[position + 8 : position + 8 + length]
            try:
                while part and count <= 16 * MAX_PIXELS:
                    count += len(unpacker.decompress(part, _AT_ONCE))
                    part = unpacker.unconsumed_tail
            except zlib.error as error:
                raise ValueError(f"cannot be decoded: {error}") from None
        position += 12 + length
    if not unpacker.eof or (count != (3 * width + 1) * height and not interlaced):
        raise ValueError("cannot be decoded: its compressed data does not hold a whole image")
