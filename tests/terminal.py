"""The ``guieval`` program on a terminal of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import DEVNULL
from unittest.mock import patch

import pytest

from guieval.cli import main
from tests.programs import started
from tests.waiting import PATIENCE

COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9]+)*m")
"""An escape sequence that sets a colour."""
_OURS = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")

At = Mapping[bytes, Callable[[], object]]
"""What to call once these bytes were written, each once."""


class _Terminal:
    """A terminal whose other side is read in a thread."""

    def __init__(self, columns: int = 100) -> None:
        self._ours, self.side = pty.openpty()
        termios.tcsetwinsize(self.side, (30, columns))
        self._written = b""

    def read(self, at: At) -> None:
        """Begin to read."""
        self._reader = threading.Thread(target=self._read, args=(dict(at),))
        self._reader.start()

    def _read(self, at: dict[bytes, Callable[[], object]]) -> None:
        with contextlib.suppress(OSError):  # Linux: the other side is closed
            while read := os.read(self._ours, 65536):
                self._written += read
                for awaited in [awaited for awaited in at if awaited in self._written]:
                    at.pop(awaited)()

    def written(self) -> str:
        """Everything that was written, once nothing holds the terminal any more."""
        self._reader.join()
        os.close(self._ours)
        return self._written.decode("utf-8", "replace")


def on_terminal(
    *arguments: str | Path, columns: int = 100, output: bool = False, at: At | None = None, **environment: str
) -> tuple[int, str]:
    """Run the command; its exit code and everything that it wrote on standard error, with ``output`` on standard output too."""
    terminal = _Terminal(columns)
    terminal.read(at or {})
    with (
        _as_streams(terminal.side, output),
        patch.dict(os.environ, _clean(environment), clear=True),
        patch.object(sys, "argv", ["guieval", *map(str, arguments)]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), terminal.written()


def interrupted_on_terminal(*arguments: str | Path, at: bytes, **environment: str) -> tuple[int, str]:
    """As :func:`on_terminal`, in a process of its own to which Ctrl-C is sent once ``at`` was written."""
    terminal = _Terminal()
    words = [sys.executable, "-m", "guieval", *map(str, arguments)]
    streams = {"stdin": terminal.side, "stdout": DEVNULL, "stderr": terminal.side}
    with started(words, env=_clean(environment), start_new_session=True, **streams) as process:
        os.close(terminal.side)
        terminal.read({at: lambda: process.send_signal(signal.SIGINT)})
        code = process.wait(PATIENCE)
    return code, terminal.written()


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, without what it says of its own terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    return {**kept, "TERM": "xterm-256color", **environment}


@contextlib.contextmanager
def _as_streams(terminal: int, output: bool) -> Iterator[None]:
    """Put the terminal in the place of this process's own streams, as files and as Python's objects; closes it at the end."""
    before = [os.dup(number) for number in range(3)]
    try:
        with open(os.devnull, "w") as nowhere:
            for number, file in enumerate((terminal, terminal if output else nowhere.fileno(), terminal)):
                os.dup2(file, number)
        os.close(terminal)
        with (
            patch.object(sys, "stdin", open(0, closefd=False)),
            patch.object(sys, "stdout", open(1, "w", closefd=False)),
            patch.object(sys, "stderr", open(2, "w", closefd=False, buffering=1)),
        ):
            try:
                yield
            finally:
                for stream in (sys.stdin, sys.stdout, sys.stderr):
                    stream.close()
    finally:
        for number, file in enumerate(before):
            os.dup2(file, number)
            os.close(file)


def drawn_lines(written: str) -> list[str]:
    """All lines, with those that were drawn over, without escape sequences."""
    return [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)) if line.strip()]
