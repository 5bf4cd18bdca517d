"""The ``guieval`` program on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9]+)*m")
"""An escape sequence that sets a colour."""
_OURS = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "CI", "GITHUB_ACTIONS")


def on_terminal(
    *arguments: str | Path, columns: int = 100, output: bool = False, interrupt_at: bytes | None = None, **environment: str
) -> tuple[int, str]:
    """Run the command; its exit code and everything that it wrote on standard error, with ``output`` on standard output too.

    ``interrupt_at``: press Ctrl-C once these bytes were written.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, columns))
    clean = {name: value for name, value in os.environ.items() if name not in _OURS}
    child = subprocess.Popen(
        [sys.executable, "-m", "guieval", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs if output else subprocess.DEVNULL,
        stderr=theirs,
        env={**clean, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(theirs)
    written = b""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        if select.select([ours], [], [], 1.0)[0]:
            try:
                read = os.read(ours, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not read:
                break
            written += read
        if interrupt_at is not None and interrupt_at in written:
            child.send_signal(signal.SIGINT)
            interrupt_at = None
    os.close(ours)
    return child.wait(timeout=60), written.decode("utf-8", "replace")


def drawn_lines(written: str) -> list[str]:
    """All lines, with those that were drawn over, without escape sequences."""
    return [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)) if line.strip()]
