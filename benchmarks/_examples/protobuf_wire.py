"""The wire format of protocol buffers, written by hand after protobuf.dev/programming-guides/encoding.

Deliberately without the protobuf library and without schemas: what reads these bytes is to be tested with bytes it did not
write.
"""

from __future__ import annotations

from collections.abc import Iterable

VARINT, LENGTH_DELIMITED = 0, 2


def varint(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first; negative ones as 64-bit two's complement."""
    value &= 2**64 - 1
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def number(field: int, value: int) -> bytes:
    """A field holding a whole number or a truth value."""
    return varint(field << 3 | VARINT) + varint(value)


def blob(field: int, value: bytes | str) -> bytes:
    """A field holding bytes, text or another message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | LENGTH_DELIMITED) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of whole numbers, packed."""
    return blob(field, b"".join(map(varint, values)))
