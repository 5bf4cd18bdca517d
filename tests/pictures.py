"""Image files of every kind that a data folder can hold, and what of each a model has to see, worked out by numpy alone."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
SIZE = (40, 30)
"""(width, height) of every file before it is turned."""

TURNS: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: pixels[::-1].transpose(1, 0, 2),
    7: lambda pixels: pixels[::-1, ::-1].transpose(1, 0, 2),
    8: lambda pixels: pixels[:, ::-1].transpose(1, 0, 2),
}
"""What each EXIF orientation does to pixels of shape (height, width, 3), by EXIF 2.3, 4.6.4 A."""


class Kind(NamedTuple):
    """A file, the pixels that a model has to see of shape (height, width, 3), and whether its bytes are sent as they are."""

    name: str
    data: bytes
    pixels: Pixels
    ready: bool = False


def colours(channels: int) -> Pixels:
    """Pixels of shape (height, width, channels) with every value, no two rows or columns alike."""
    width, height = SIZE
    return np.random.default_rng(channels).integers(0, 256, (height, width, channels), np.uint8)


def on_white(colour: NDArray[Any], alpha: NDArray[Any]) -> Pixels:
    """Pixels (height, width, 3) with their alpha (height, width) over white, rounded."""
    share = alpha[..., None] / 255.0
    return np.rint(colour * share + 255.0 * (1.0 - share)).astype(np.uint8)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """An image file; a WebP without loss."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"lossless": True, "exact": True} if kind == "WEBP" else {}), **options)
    return buffer.getvalue()


def orientation(value: int) -> Image.Exif:
    """EXIF data that holds only an orientation."""
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def late_exif(png: bytes) -> bytes:
    """A PNG whose EXIF data follows its pixels."""
    start = png.index(b"eXIf") - 4
    end = start + 12 + int.from_bytes(png[start : start + 4], "big")
    return png[:start] + png[end:-12] + png[start:end] + png[-12:]


def turned() -> Iterator[Kind]:
    """Every orientation in every format."""
    image = Image.fromarray(colours(3))
    for value, turn in TURNS.items():
        exif = orientation(value)
        for kind in ("PNG", "WEBP"):
            yield Kind(f"{kind} turned {value}", encoded(image, kind, exif=exif), turn(colours(3)), value == 1)
        yield Kind(f"late PNG turned {value}", late_exif(encoded(image, exif=exif)), turn(colours(3)), value == 1)
        data = encoded(image, "JPEG", exif=exif, quality=95, subsampling=0)
        plain = np.asarray(Image.open(io.BytesIO(encoded(image, "JPEG", quality=95, subsampling=0))))
        yield Kind(f"JPEG turned {value}", data, turn(plain), value == 1)
    xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    yield Kind("WEBP turned by XMP", encoded(image, "WEBP", xmp=xmp.encode()), TURNS[6](colours(3)))
    yield Kind("PNG with orientation 9", encoded(image, exif=orientation(9)), colours(3), True)
    yield Kind("WEBP with broken EXIF", encoded(image, "WEBP", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff"), colours(3), True)


def modes() -> Iterator[Kind]:
    """Every mode of pixels in PNG, JPEG and WebP."""
    rgb, rgba, grey = colours(3), colours(4), colours(1)[..., 0]
    yield Kind("RGB", encoded(Image.fromarray(rgb)), rgb, True)
    over = on_white(rgba[..., :3], rgba[..., 3])
    for kind in ("PNG", "WEBP"):
        yield Kind(f"RGBA {kind}", encoded(Image.fromarray(rgba), kind), over)
    yield Kind("all transparent", encoded(Image.new("RGBA", SIZE, (0, 0, 0, 0))), np.full_like(rgb, 255))
    yield Kind("RGBA turned", encoded(Image.fromarray(rgba), exif=orientation(6)), TURNS[6](over))
    three = np.repeat(grey[..., None], 3, 2)
    yield Kind("L", encoded(Image.fromarray(grey)), three)
    yield Kind("LA", encoded(Image.fromarray(colours(2))), on_white(colours(2)[..., :1].repeat(3, 2), colours(2)[..., 1]))
    clear = int(grey[3, 4])
    yield Kind("L, a clear grey", encoded(Image.fromarray(grey), transparency=clear), np.where(three == clear, 255, three))
    colour = (int(rgb[3, 4, 0]), int(rgb[3, 4, 1]), int(rgb[3, 4, 2]))
    is_clear = (rgb == colour).all(2)[..., None]
    yield Kind(
        "RGB, a clear colour", encoded(Image.fromarray(rgb), transparency=colour), np.where(is_clear, np.uint8(255), rgb)
    )
    bits = Image.fromarray(grey > 127)
    black_and_white = np.where(three > 127, 255, 0).astype(np.uint8)
    yield Kind("1", encoded(bits), black_and_white)
    yield Kind("1, clear black", encoded(bits, transparency=0), np.full_like(rgb, 255))
    yield from _palettes(grey)
    deep = np.arange(SIZE[0] * SIZE[1], dtype=np.uint16).reshape(SIZE[::-1]) * np.uint16(53)
    upper = np.repeat((deep >> 8).astype(np.uint8)[..., None], 3, 2)
    yield Kind("16-bit grey", encoded(Image.fromarray(deep)), upper)
    clear = int(deep[20, 7])
    seen = np.where((deep == clear)[..., None], np.uint8(255), upper)
    yield Kind("16-bit grey, a clear grey", encoded(Image.fromarray(deep), transparency=clear), seen)
    yield Kind("L JPEG", (data := encoded(Image.fromarray(grey), "JPEG")), decoded(data))
    yield Kind("CMYK", (data := encoded(Image.fromarray(rgb).convert("CMYK"), "JPEG")), decoded(data))


def _palettes(grey: Pixels) -> Iterator[Kind]:
    palette = np.random.default_rng(0).integers(0, 256, (256, 3), np.uint8)
    image = Image.fromarray(grey)
    image.putpalette(palette.tobytes())
    yield Kind("palette", encoded(image), palette[grey])
    alpha = np.arange(256, dtype=np.uint8)[::-1]
    yield Kind("palette with alpha", encoded(image, transparency=alpha.tobytes()), on_white(palette[grey], alpha[grey]))
    clear = int(grey[3, 4])
    seen = np.where((grey == clear)[..., None], np.uint8(255), palette[grey])
    yield Kind("palette, a clear entry", encoded(image, transparency=clear), seen)


def decoded(data: bytes) -> Pixels:
    """What Pillow makes of a JPEG, whose decoding is not defined to the bit."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


KINDS = [*turned(), *modes()]
