"""Reads JSON that a server wrote in bounded time and memory.

Python reads a JSON text without letting another thread run, and an empty list of three bytes becomes 64: a few megabytes of
them would stop the whole program for seconds and fill its memory. So the values are counted before any is made. Screenshots
are large by right, as lists of millions of colours or as one text: :func:`read_with_pictures` takes them out first, a piece at
a time, between which other threads run.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

MOST_VALUES = 250_000
"""The most values of a text; each token of a response with log-probabilities has seven. They take a tenth of a second."""
MOST_BESIDE = 8 << 20
"""The most bytes of a text, in bytes, without its pictures."""
_PIECE = 1 << 20
_LONG = 1 << 20  # bytes; a longer text may be a screenshot in base64
_MOST_LOOKED_AT = 16
_MOST_MARKS = 500_000  # quotation marks; pictures behind them are not looked for
_DIGITS_AND_BLANKS = b"0123456789 \t\r\n"


class TooLarge(ValueError):
    """A text has more than it may; the message completes "the answer ..."."""


def read_json(data: bytes, **options: Any) -> Any:
    """The value of a JSON text; an integer with more digits than Python reads becomes infinite. Options as of ``json.loads``.

    Raises ``ValueError`` if it is not JSON or is nested too deeply, and :class:`TooLarge` for more than :data:`MOST_VALUES`
    values.
    """
    check_values(data)
    try:
        try:
            return json.loads(data, **options)
        except json.JSONDecodeError:
            raise
        except ValueError:
            return json.loads(data, parse_int=float, **options)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def read_with_pictures(data: bytes) -> Any:
    """As :func:`read_json`, for a thread of its own: a picture's rows of pixels become an array, and its base64 text stays one.

    Such an array is of shape (height, width, colours), uint8. The rest of the text has at most :data:`MOST_BESIDE` bytes.
    """
    name = f"picture {secrets.token_hex(8)}"  # which the server cannot know
    parts: list[bytes] = []
    pictures: list[Any] = []
    position = 0
    for begin, end, picture in _pictures(data):
        parts += [data[position:begin], b'{"%s":%d}' % (name.encode(), len(pictures))]
        pictures.append(picture)
        position = end
    if sum(map(len, parts)) + len(data) - position > MOST_BESIDE:
        raise TooLarge(f"has more than {MOST_BESIDE >> 20} MiB without its pictures")
    if not pictures:
        return read_json(data)
    rest = b"".join([*parts, data[position:]])
    return read_json(rest, object_hook=lambda value: pictures[value[name]] if name in value else value)


def check_values(data: bytes) -> None:
    """Raise :class:`TooLarge` for a JSON text of more than :data:`MOST_VALUES` values, before somebody else reads it."""
    if _most_values(data) > MOST_VALUES:  # commas in texts may be among them
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        if plain.count(b'"') > 4 * MOST_VALUES or _most_values(b"".join(plain.split(b'"')[::2])) > MOST_VALUES:
            raise TooLarge(f"has more than {MOST_VALUES:,} values")


def _most_values(data: bytes) -> int:
    """The most values of a text: each but the first follows one of these."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _pictures(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Begin, end and content of each picture: an array, or a long text without escapes."""
    position = looked = 0
    for begin, end in _strings(data):
        while (start := _find(data, b"[[[", position, begin)) >= 0 and looked < _MOST_LOOKED_AT:
            looked += 1
            position = _find(data, b"]]]", start, begin) + 3
            if position < 3:
                break
            if (pixels := _pixels(data[start:position])) is not None:
                yield start, position, pixels
        if end - begin > _LONG:
            text = data[begin + 1 : end - 1]
            if text.isascii() and b"\\" not in text:
                yield begin, end, text.decode("ascii")
        position = end


def _strings(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each string, quotation marks included, and at last of the nothing behind the text."""
    begin, end = -1, 0
    for _ in range(_MOST_MARKS):
        if (mark := _find(data, b'"', end)) < 0:
            break
        before, end = data[end:mark] if begin >= 0 and data[mark - 1] == ord("\\") else b"", mark + 1
        if begin < 0:
            begin = mark
        elif (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            yield begin, end
            begin = -1
    if begin < 0:
        yield len(data), len(data)


def _find(data: bytes, what: bytes, begin: int, end: int | None = None) -> int:
    """As ``data.find``, a piece at a time."""
    end = len(data) if end is None else end
    while begin < end:
        if (found := data.find(what, begin, min(begin + _PIECE + len(what) - 1, end))) >= 0:
            return found
        begin += _PIECE
    return -1


def _pixels(text: bytes) -> np.ndarray[Any, Any] | None:
    """The array of a list of rows of pixels, whole numbers of 0 to 255; ``None`` for another list."""
    import numpy as np

    shape = b"".join(text[start : start + _PIECE].translate(None, _DIGITS_AND_BLANKS) for start in range(0, len(text), _PIECE))
    pixel = shape[2 : shape.find(b"]") + 1]
    width, rest = divmod(shape.find(b"]]"), len(pixel) + 1)
    row = b"[" + b",".join([pixel] * width) + b"]"
    height = (len(shape) - 1) // (len(row) + 1)
    if rest or pixel.strip(b"[,]") or shape != b"[" + b",".join([row] * height) + b"]":
        return None
    colours: list[np.ndarray[Any, Any]] = []
    position = 0
    while position < len(text):
        stop = max(text.rfind(b",", position, position + _PIECE), text.rfind(b"]", position, position + _PIECE)) + 1
        if stop <= position:
            return None
        signs = np.frombuffer(b"   " + text[position:stop], np.uint8)
        digit = signs - ord("0") < 10
        ends = np.flatnonzero(digit[:-1] & ~digit[1:])
        tens = digit[ends - 1]
        hundreds = tens & digit[ends - 2]
        values = (signs[ends] - 48) + 10 * tens * (signs[ends - 1] - 48).astype(np.uint16)
        values += 100 * hundreds * (signs[ends - 2] - 48).astype(np.uint16)
        if (hundreds & digit[ends - 3]).any() or (values > 255).any():
            return None
        colours.append(values.astype(np.uint8))
        position = stop
    size = (height, width, pixel.count(b",") + 1)
    found = np.concatenate(colours)
    return found.reshape(size) if found.size == size[0] * size[1] * size[2] else None
