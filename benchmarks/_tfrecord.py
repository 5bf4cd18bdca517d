"""TFRecord files of ``tf.train.Example`` messages, plain or packed with gzip, read without TensorFlow and checked.

A record is its length (8 bytes, little endian), the masked CRC32C of those 8 bytes, the data, and the data's masked CRC32C.
Both sums are verified, so nothing damaged is ever taken for a label. One record is in memory at a time.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from guieval.errors import DataError

from ._protobuf import Field, decode, message_class

HEADER = 12
LARGEST = 2**31 - 1
"""Protocol buffers are no larger; a length above is not reserved memory for."""


class Record(NamedTuple):
    """A record's data, and where it stands, counted from 0."""

    number: int
    data: bytes


class RecordFile(Iterator[Record]):
    """The records of one file in order; close it, or use it as a context manager.

    ``next`` raises :class:`DataError` naming file and record. After damage within a record's data it may be called again and
    gives the following one; after any other damage nothing can be found any more and it raises ``StopIteration``.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._number = -1
        self._over = False
        self._stream: BinaryIO | gzip.GzipFile | None = None

    def _opened(self) -> BinaryIO | gzip.GzipFile:
        try:
            with self._file.open("rb") as stream:
                head = stream.read(HEADER)
            if not head:
                raise DataError(f"{self._file}: is empty")
            # a plain file may begin with gzip's magic bytes by chance, but not with a correct checksum after them
            packed = head.startswith(b"\x1f\x8b") and not _sound_header(head)
            return gzip.GzipFile(self._file, "rb") if packed else self._file.open("rb")
        except OSError as error:
            raise DataError(f"{self._file}: cannot be read: {error.strerror}") from None

    def __next__(self) -> Record:
        if self._over:
            raise StopIteration
        self._number += 1
        self._over = True  # until this record's end is known
        if self._stream is None:
            self._stream = self._opened()
        head = self._read(self._stream, HEADER)
        if not head:
            raise StopIteration
        if len(head) == HEADER and not _sound_header(head):
            raise self._damaged("its length does not agree with its checksum")
        (length,) = struct.unpack("<Q", head[:8]) if len(head) == HEADER else (0,)
        if length > LARGEST:
            raise self._damaged(f"its length is {length} bytes, more than a record can have")
        data = self._read(self._stream, length) if length else b""
        tail = self._read(self._stream, 4)
        if len(data) < length or len(tail) < 4:
            raise self._damaged("the file ends within it, so it is only a part")
        self._over = False
        if struct.unpack("<I", tail) != (masked_crc(data),):
            raise self._damaged("its data do not agree with their checksum")
        return Record(self._number, data)

    def _read(self, stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
        try:
            return stream.read(size)
        except EOFError:
            raise self._damaged("the packed file ends within it, so it is only a part") from None
        except (zlib.error, gzip.BadGzipFile):
            raise self._damaged("it cannot be unpacked as gzip") from None
        except OSError as error:
            raise self._damaged(f"it cannot be read: {error.strerror}") from None

    def _damaged(self, how: str) -> DataError:
        return DataError(f"{self._file}, record {self._number}: is damaged: {how}")

    def close(self) -> None:
        """Close the file; nothing more comes."""
        self._over = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def masked_crc(data: bytes) -> int:
    """The CRC32C of ``data`` rotated and offset as TFRecords keep it (sums of data that hold sums are weak otherwise)."""
    import google_crc32c

    crc = int(google_crc32c.value(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _sound_header(head: bytes) -> bool:
    return len(head) == HEADER and struct.unpack("<I", head[8:]) == (masked_crc(head[:8]),)


class Example:
    """A ``tf.train.Example``: lists of byte strings or whole numbers by name. ``where`` names the record in messages."""

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        message = decode(_example_class(), data, where, "a tf.train.Example")
        self._features = {entry.key: entry.value for entry in message.features.feature}

    def error(self, field: str, problem: str) -> DataError:
        """The error to raise for a feature: one sentence naming file, record and feature."""
        return DataError(f"{self.where}, field {field}: {problem}")

    def blobs(self, field: str) -> Any:
        """The feature's byte strings, a sequence that copies each when it is taken; empty when there is no such feature."""
        return self._values(field, "bytes_list", "byte strings")

    def numbers(self, field: str) -> list[int]:
        """The feature's whole numbers; empty when there is no such feature."""
        return list(self._values(field, "int64_list", "whole numbers"))

    def texts(self, field: str) -> list[str]:
        """The feature's strings."""
        try:
            return [blob.decode() for blob in self.blobs(field)]
        except UnicodeDecodeError:
            raise self.error(field, "is not text in UTF-8") from None

    def number(self, field: str) -> int:
        """The feature's only whole number."""
        values = self.numbers(field)
        if len(values) != 1:
            raise self.error(field, f"expected one whole number, got {len(values)}")
        return values[0]

    def text(self, field: str) -> str:
        """The feature's only string."""
        values = self.texts(field)
        if len(values) != 1:
            raise self.error(field, f"expected one string, got {len(values)}")
        return values[0]

    def _values(self, field: str, kind: str, expected: str) -> Any:
        feature = self._features.get(field.encode())
        if feature is None:
            return ()
        if not feature.HasField(kind):
            if feature.ByteSize() <= 2:  # a list of nothing, whatever it is of: nothing at all, or a tag and a length of 0
                return ()
            raise self.error(field, f"expected {expected}")
        return getattr(feature, kind).value


@cache
def _example_class() -> Any:
    schema = {
        "Example": [Field("features", 1, "Features")],
        "Features": [Field("feature", 1, "Entry", repeated=True)],
        "Entry": [Field("key", 1, "bytes"), Field("value", 2, "Feature")],
        "Feature": [Field("bytes_list", 1, "BytesList"), Field("int64_list", 3, "Int64List")],
        "BytesList": [Field("value", 1, "bytes", repeated=True)],
        "Int64List": [Field("value", 1, "int64", repeated=True)],
    }
    return message_class("guieval.tensorflow", schema, "Example")
