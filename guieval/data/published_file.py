"""A file that its authors publish at an address, known by its SHA-256: downloaded once, and checked whenever it is read."""

from __future__ import annotations

from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from guieval.data.files import read_bytes
from guieval.errors import UsageError, one_line

SECONDS = 60.0
MOST_BYTES = 64 * 1024 * 1024


class PublishedFile(NamedTuple):
    """A file at ``address``, at a commit, with its digest in hexadecimal."""

    address: str
    sha256: str

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]

    def copy_at(self, given: str, folder: Path, name: str) -> Path:
        """The copy at ``given``, else the one in ``folder``; :class:`UsageError` with the command that gets one if absent."""
        file = Path(given).expanduser() if given else folder / self.name
        if not file.is_file():
            where = f"there is no file {given!r}" if given else f"environment {name!r} needs its list of tasks"
            raise UsageError(f"{where}: guieval data download {name}")
        return file

    def read(self, file: Path) -> bytes:
        """The content of a copy. Raises :class:`UsageError` if it cannot be read, or is another edition."""
        try:
            content = read_bytes(file)
        except OSError as error:
            raise UsageError(f"cannot read {str(file)!r}: {error.strerror or error}") from None
        return self._checked(content, str(file))

    def download(self, folder: Path) -> Path:
        """The file in ``folder``, which is created. Raises :class:`UsageError` if it cannot be had, or is another edition."""
        try:
            with urlopen(self.address, timeout=SECONDS) as answer:
                content = answer.read(MOST_BYTES + 1)
        except (URLError, HTTPException, OSError) as error:
            reason = one_line(str(getattr(error, "reason", None) or error))
            raise UsageError(f"{self.address} could not be read: {reason}") from None
        self._checked(content, self.address)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{self.name}.part"
        part.write_bytes(content)
        return part.replace(folder / self.name)  # a download that was cut off would be called another edition

    def _checked(self, content: bytes, place: str) -> bytes:
        found = sha256(content).hexdigest()
        if found != self.sha256:
            raise UsageError(
                f"{place!r} has the SHA-256 {found[:12]}, not {self.sha256[:12]}: it is another edition of the list"
            )
        return content
