"""TFRecord files of ``tf.train.Example`` messages, as TensorFlow writes them.

After tensorflow.org/tutorials/load_data/tfrecord (framing and checksums) and tensorflow/core/example/{example,feature}.proto.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .protobuf_wire import blob, packed

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
    """The CRC32C, turned right by 15 bits and raised by a constant, all in 32 bits."""
    import google_crc32c

    crc = google_crc32c.value(data)
    turned = (crc >> 15 | crc << 17) % 2**32
    return struct.pack("<I", (turned + 0xA282EAD8) % 2**32)
