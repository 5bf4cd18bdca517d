"""Reads foreign text files, compressed with gzip or not, with bounded memory.

A few megabytes of gzip can unpack to gigabytes, and a file may be one endless line, so both have a limit.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from guieval.data.files import open_file, open_gzip
from guieval.errors import DataError

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some editors write."""
LONGEST_LINE = 128 << 20
"""Limit of a line in bytes; an episode with the trees of its screens has a few megabytes."""
MOST_UNPACKED = 512 << 20
"""Limit in bytes of an unpacked file that is read as a whole."""


def repeated_key(text: bytes, value: Any) -> str | None:
    """A key that an object in a JSON ``text`` has twice, of which readers keep the last one; ``value`` is what they read.

    The number of keys is compared first, for reading again takes several times as long as reading.
    """
    if text.count(b'":') + text.count(b'" :') == _keys(value):
        return None
    twice: list[str] = []

    def seen(pairs: list[tuple[str, Any]]) -> None:
        twice.extend(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)

    json.loads(text, object_pairs_hook=seen, parse_int=str)  # a number may have more digits than Python reads
    return twice[0] if twice else None


def _keys(value: Any) -> int:
    count, rest = 0, [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            count += len(each)
            rest += [item for item in each.values() if isinstance(item, dict | list)]
        elif isinstance(each, list):
            rest += [item for item in each if isinstance(item, dict | list)]
    return count


def open_text(file: Path) -> BinaryIO:
    """Open a file in binary mode, unpacked if its name ends in ``.gz``. Raises :class:`OSError` like :func:`open`."""
    return cast(BinaryIO, open_gzip(file)) if file.suffix == ".gz" else open_file(file)


def lines(file: Path, stream: BinaryIO, most: int = LONGEST_LINE) -> Iterator[bytes]:
    """The lines of a stream over ``file``; :class:`DataError` for a line above ``most`` bytes, or damaged gzip."""
    number = 0
    while line := _unpacked(file, stream, most + 1, line=True):
        number += 1
        if len(line) > most and not line.endswith(b"\n"):
            raise DataError(f"{file}, line {number}: is longer than {most >> 20} MiB, the limit of a line")
        yield line


def rest(file: Path, stream: BinaryIO, most: int = MOST_UNPACKED) -> bytes:
    """The rest of a stream; :class:`DataError` if a packed file unpacks to more than ``most`` bytes, or is damaged."""
    if file.suffix != ".gz":
        return stream.read()
    parts: list[bytes] = []
    while part := _unpacked(file, stream, 1 << 20):
        parts.append(part)
        if len(parts) > most >> 20:
            parts.clear()
            raise DataError(f"{file}: unpacks to more than {most >> 20} MiB; unpack it yourself if that is intended")
    return b"".join(parts)


def read_whole(file: Path) -> bytes:
    """A file's bytes; :class:`DataError` if it cannot be read, is damaged gzip or unpacks to too many bytes."""
    try:
        with open_text(file) as stream:
            return rest(file, stream)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def sized_lines(stream: BinaryIO, most: int = LONGEST_LINE) -> Iterator[tuple[bytes, int]]:
    """The lines of an uncompressed stream with their sizes; of a line above ``most`` bytes only the beginning."""
    while line := stream.readline(most + 1):
        size = len(line)
        if size > most and not line.endswith(b"\n"):
            while not (more := stream.readline(1 << 20)).endswith(b"\n") and more:
                size += len(more)
            size += len(more)
            line = line[:100]
        yield line, size


class LineFile:
    """A file of lines, compressed with gzip or not, any part of which can be read again.

    The text of a compressed file is kept in memory, since it cannot be read from the middle. Raises :class:`DataError` if the
    file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unpacked: bytes | None = None

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number (from 1), start and bytes of every line, without a byte-order mark."""
        start = 0
        try:
            with io.BytesIO(self._text()) if self.path.suffix == ".gz" else open_file(self.path) as stream:
                for number, line in enumerate(lines(self.path, stream), 1):
                    mark = MARK if number == 1 and line.startswith(MARK) else b""
                    yield number, start + len(mark), line[len(mark) :]
                    start += len(line)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def part(self, start: int, size: int) -> bytes:
        """At most ``size`` bytes from ``start``, both in the unpacked text; fewer at its end."""
        if self.path.suffix == ".gz":
            return self._text()[start : start + size]
        try:
            with open_file(self.path) as stream:
                stream.seek(start)
                return stream.read(size)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror}") from None

    def _text(self) -> bytes:
        if self._unpacked is None:
            self._unpacked = read_whole(self.path)
        return self._unpacked


def _unpacked(file: Path, stream: BinaryIO, most: int, *, line: bool = False) -> bytes:
    try:
        return stream.readline(most) if line else stream.read(most)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{file}: is damaged: it cannot be unpacked as gzip") from None
