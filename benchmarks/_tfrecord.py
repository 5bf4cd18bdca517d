"""TFRecord files of ``tf.train.Example`` messages, plain or packed with gzip, read without TensorFlow and checked.

A record is its length (8 bytes, little endian), the masked CRC32C of those 8 bytes, the data, and the data's masked CRC32C.
Both sums are verified, so damaged data never becomes a label. One record is in memory at a time. Messages are declared at
run time, with only the fields that are read: generated code would bring TensorFlow and android_env for a dozen fields.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, TypeVar

from guieval.data.files import open_file, open_gzip
from guieval.errors import DataError

HEADER = 12
LARGEST = 2**31 - 1
"""Protocol buffers are no larger; a length above is not reserved memory for."""


class Record(NamedTuple):
    """A record's data and its number, counted from 0."""

    number: int
    data: bytes


def records(file: Path) -> Iterator[Record | DataError]:
    """The records of a file in order, and in the place of a damaged one the error, which names file and record.

    After damage that is not within a record's data, no further record can be found.
    """
    number = 0
    try:
        with _opened(file) as stream:
            while head := stream.read(HEADER):
                yield _record(stream, head, file, number)
                number += 1
        return
    except DataError as error:
        yield error
        return
    except EOFError:
        problem = "the packed file ends within it, so it is only a part"
    except (zlib.error, gzip.BadGzipFile):
        problem = "it cannot be unpacked as gzip"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror}"
    yield _damaged(file, number, problem)


def _opened(file: Path) -> BinaryIO | gzip.GzipFile:
    try:
        with open_file(file) as stream:
            head = stream.read(HEADER)
        if not head:
            raise DataError(f"{file}: is empty")
        # a plain file may begin with gzip's magic bytes by chance, but not with a correct checksum after them
        packed = head.startswith(b"\x1f\x8b") and not _sound_header(head)
        return open_gzip(file) if packed else open_file(file)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def _record(stream: BinaryIO | gzip.GzipFile, head: bytes, file: Path, number: int) -> Record | DataError:
    """The record after ``head``, or the error if only its data are damaged; raises if its end cannot be found."""
    if len(head) == HEADER and not _sound_header(head):
        raise _damaged(file, number, "its length does not agree with its checksum")
    (length,) = struct.unpack("<Q", head[:8]) if len(head) == HEADER else (0,)
    if length > LARGEST:
        raise _damaged(file, number, f"its length is {length} bytes, more than a record can have")
    data = stream.read(length) if length else b""
    tail = stream.read(4)
    if len(data) < length or len(tail) < 4:
        raise _damaged(file, number, "the file ends within it, so it is only a part")
    if struct.unpack("<I", tail) != (masked_crc(data),):
        return _damaged(file, number, "its data do not agree with their checksum")
    return Record(number, data)


def _damaged(file: Path, number: int, problem: str) -> DataError:
    return DataError(f"{file}, record {number}: is damaged: {problem}")


def masked_crc(data: bytes) -> int:
    """The CRC32C of ``data`` rotated and offset as TFRecords keep it (sums of data that hold sums are weak otherwise)."""
    import google_crc32c

    crc = int(google_crc32c.value(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _sound_header(head: bytes) -> bool:
    return len(head) == HEADER and struct.unpack("<I", head[8:]) == (masked_crc(head[:8]),)


class TfExample:
    """A ``tf.train.Example``: lists of byte strings or whole numbers by name. ``where`` names the record in messages."""

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        message = decode(_example_class(), data, where, "a tf.train.Example")
        self._features = {entry.key: entry.value for entry in message.features.feature}

    def error(self, field: str, problem: str) -> DataError:
        return DataError(f"{self.where}, field {field}: {problem}")

    def blobs(self, field: str) -> Sequence[bytes]:
        """The feature's byte strings, a sequence that copies each when it is taken; empty when there is no such feature."""
        feature = self._feature(field, "bytes_list", "byte strings")
        return () if feature is None else feature.bytes_list.value

    def numbers(self, field: str) -> list[int]:
        feature = self._feature(field, "int64_list", "whole numbers")
        return [] if feature is None else list(feature.int64_list.value)

    def texts(self, field: str) -> list[str]:
        try:
            return [blob.decode() for blob in self.blobs(field)]
        except UnicodeDecodeError:
            raise self.error(field, "is not text in UTF-8") from None

    def number(self, field: str) -> int:
        values = self.numbers(field)
        if len(values) != 1:
            raise self.error(field, f"expected one whole number, got {len(values)}")
        return values[0]

    def text(self, field: str) -> str:
        values = self.texts(field)
        if len(values) != 1:
            raise self.error(field, f"expected one string, got {len(values)}")
        return values[0]

    def _feature(self, field: str, kind: str, expected: str) -> _Feature | None:
        feature = self._features.get(field.encode())
        if feature is None or feature.HasField(kind):
            return feature
        if feature.ByteSize() <= 2:  # a list of nothing, whatever it is of: nothing at all, or a tag and a length of 0
            return None
        raise self.error(field, f"expected {expected}")


class _Blobs(Protocol):
    value: Sequence[bytes]


class _Numbers(Protocol):
    value: Sequence[int]


class _Feature(Protocol):
    bytes_list: _Blobs
    int64_list: _Numbers

    def HasField(self, name: str, /) -> bool: ...
    def ByteSize(self) -> int: ...


class _Entry(Protocol):
    key: bytes
    value: _Feature


class _Features(Protocol):
    feature: Sequence[_Entry]


class _Example(Protocol):
    features: _Features


@cache
def _example_class() -> MessageClass[_Example]:
    schema = {
        "Example": [Field("features", 1, "Features")],
        "Features": [Field("feature", 1, "Entry", repeated=True)],
        "Entry": [Field("key", 1, "bytes"), Field("value", 2, "Feature")],
        "Feature": [Field("bytes_list", 1, "BytesList"), Field("int64_list", 3, "Int64List")],
        "BytesList": [Field("value", 1, "bytes", repeated=True)],
        "Int64List": [Field("value", 1, "int64", repeated=True)],
    }
    found: MessageClass[_Example] = message_class("guieval.tensorflow", schema, "Example")
    return found


# --- protocol buffer messages ------------------------------------------------------------------------------------------

Kind = Literal["bytes", "int32", "int64"]
Message = TypeVar("Message")
Message_co = TypeVar("Message_co", covariant=True)


class MessageClass(Protocol[Message_co]):
    """A class of messages that is declared at run time."""

    def FromString(self, data: bytes, /) -> Message_co: ...


class Field(NamedTuple):
    """A field of a message: its number in the schema, what it has (a kind or the name of another message), how often."""

    name: str
    number: int
    holds: Kind | str
    repeated: bool = False


def message_class(package: str, messages: Mapping[str, Sequence[Field]], name: str) -> Any:
    """The class of the message ``name`` among ``messages``, which may hold each other. A map is a repeated key and value."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = {
        "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
        "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    }
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for field in fields:
            declared = message.field.add(name=field.name, number=field.number)
            declared.label = declared.LABEL_REPEATED if field.repeated else declared.LABEL_OPTIONAL
            if field.holds in kinds:
                declared.type = kinds[field.holds]
            else:
                declared.type = declared.TYPE_MESSAGE
                declared.type_name = f".{package}.{field.holds}"
    pool = descriptor_pool.DescriptorPool()  # our own: the default pool may hold the full schemas under the same names
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def decode(kind: MessageClass[Message], data: bytes, where: str, what: str) -> Message:
    """The message in ``data``; :class:`DataError` "``where``: is not ``what``" if it cannot be decoded."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError:
        raise DataError(f"{where}: is not {what}") from None
