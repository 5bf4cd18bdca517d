"""Protocol buffer messages declared at run time, with only the fields that are read; all others are skipped.

Generated code would bring whole schemas (and TensorFlow or android_env with them) for a dozen fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from guieval.errors import DataError

Kind = Literal["bytes", "int32", "int64"]


class Field(NamedTuple):
    """A field of a message: its number in the schema, what it holds (a kind or the name of another message), how often."""

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


def decode(kind: Any, data: bytes, where: str, what: str) -> Any:
    """The message in ``data``; :class:`DataError` "``where``: is not ``what``" if it cannot be decoded."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError:
        raise DataError(f"{where}: is not {what}") from None
