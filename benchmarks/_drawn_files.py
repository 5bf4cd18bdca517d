"""Keeps the screenshots of benchmarks that draw their own: a file is drawn once, and never seen half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from guieval.errors import UsageError
from guieval.testing.phone import encode

if TYPE_CHECKING:
    from PIL.Image import Image


def keep(path: Path, render: Callable[[], Image]) -> None:
    """Write what ``render`` draws to ``path`` (PNG) unless a file is there; :class:`UsageError` where it cannot be written.

    Several processes may draw the same file at once.
    """
    if not path.exists():
        _write(path, encode(render()))


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"the screenshot {str(path)!r} cannot be written: {error.strerror}") from None
