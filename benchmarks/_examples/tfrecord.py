"""TFRecord files of ``tf.train.Example`` messages, as TensorFlow writes them.

After tensorflow.org/tutorials/load_data/tfrecord (framing and checksums), tensorflow/core/example/{example,feature}.proto and
protobuf.dev/programming-guides/encoding. Without the protobuf library, so that its reader is tested with bytes it did not
write.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Feature = Sequence[bytes] | Sequence[int]


def write_records(file: Path, payloads: Iterable[bytes], *, compressed: bool = True) -> None:
    """Write one record for each payload; ``compressed`` is TensorFlow's compression type GZIP."""
    with file.open("wb") as plain:
        # without a name and a time, so that the same records are the same file
        packed_stream = gzip.GzipFile("", "wb", compresslevel=1, fileobj=plain, mtime=0) if compressed else None
        for payload in payloads:
            (packed_stream or plain).write(framed(payload))
        if packed_stream is not None:
            packed_stream.close()


def framed(payload: bytes) -> bytes:
    """One record: uint64 length, uint32 checksum of the length, the payload, uint32 checksum of the payload."""
    length = struct.pack("<Q", len(payload))
    return length + _checksum(length) + payload + _checksum(payload)


def example(features: Mapping[str, Feature]) -> bytes:
    """A serialised ``tf.train.Example``: each feature a list of byte strings or of 64-bit whole numbers."""
    entries = (blob(1, blob(1, name) + blob(2, _feature(values))) for name, values in features.items())
    return blob(1, b"".join(entries))


def _feature(values: Feature) -> bytes:
    numbers = [value for value in values if isinstance(value, int)]
    if numbers:
        return blob(3, packed(1, numbers))
    return blob(1, b"".join(blob(1, value) for value in values if isinstance(value, bytes)))


def _checksum(data: bytes) -> bytes:
    import google_crc32c

    crc = google_crc32c.value(data)
    turned = (crc >> 15 | crc << 17) % 2**32
    return struct.pack("<I", (turned + 0xA282EAD8) % 2**32)


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
    return varint(field << 3) + varint(value)


def blob(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    return blob(field, b"".join(map(varint, values)))
