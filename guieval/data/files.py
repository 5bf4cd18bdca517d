"""Opens files that other people made: regular files only, and never more of one than it may have.

A data folder or a run folder may hold a pipe that nobody writes to, a device without an end, or a file of gigabytes that takes
no space on the disk; archives carry all of them. Opening such a file here fails at once, as one that cannot be read does.
"""

from __future__ import annotations

import errno
import glob
import gzip
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

MOST_WHOLE = 512 << 20
"""The most bytes of a file that is read as a whole."""
_DENSE = 1 << 30  # bytes; a larger file with a hole is refused, as no program for data writes holes


def open_descriptor(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """As :func:`os.open`, for a regular file; raises :class:`OSError`, whose ``strerror`` says so, for anything else."""
    file = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    try:
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > _DENSE and _has_hole(file, status.st_size):
            raise OSError(errno.EFBIG, f"it is a sparse file of {status.st_size:,} bytes", str(path))
    except BaseException:
        os.close(file)
        raise
    return file


def open_file(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes. Raises :class:`OSError` as :func:`open_descriptor` does."""
    return os.fdopen(open_descriptor(path), "rb")


def open_gzip(path: str | Path) -> gzip.GzipFile:
    """Open a regular file that is packed with gzip. Raises as :func:`open_file`."""
    stream = open_file(path)
    packed = gzip.GzipFile(fileobj=stream, mode="rb")
    packed.myfileobj = stream  # type: ignore[assignment]  # closed with it, as that of a file it opened by its name
    return packed


def read_bytes(path: str | Path, most: int = MOST_WHOLE) -> bytes:
    """The bytes of a regular file. Raises :class:`OSError`, also if they are more than ``most``."""
    with open_file(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(size + 1) if size <= most else b""  # memory for all that is asked for is taken at once
        while size < len(data) <= most and (more := stream.read(1 << 20)):  # it has grown, or states no size as in /proc
            data += more
        if size > most or len(data) > most:
            raise OSError(errno.EFBIG, f"it has more than {most >> 20:,} MiB", str(path))
    return data


def read_text(path: str | Path, *, most: int = MOST_WHOLE, encoding: str = "utf-8", errors: str = "strict") -> str:
    """The text of a regular file, its lines ended by ``\\n``. Raises as :func:`read_bytes`, and ``UnicodeDecodeError``."""
    text = read_bytes(path, most).decode(encoding, errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def exists(path: Path) -> bool:
    """Whether a path exists; not if nothing can have its name, or it is not known."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _has_hole(file: int, size: int) -> bool:
    try:
        return os.lseek(file, 0, os.SEEK_HOLE) < size
    except OSError:  # a file system that cannot tell
        return False
    finally:
        os.lseek(file, 0, os.SEEK_SET)


def sync_folder(folder: Path) -> None:
    """Bring the entries of a folder to the disk; file systems that do not support it do so by themselves."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def becoming(path: Path) -> Iterator[Path]:
    """A place for a new file or folder, which takes the name ``path`` when the block ends, and is removed if it fails.

    What killed processes left of the same is removed first.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        import psutil

        number = left.name.split(".")[-2]
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            _remove(left)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    with suppress(OSError):  # an error before is the one to report
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
