"""Kills a command at chosen moments: a program, which is started by ``kills`` and prints how often it killed.

A moment is one operation on a file below a folder, just before it is carried out. Every command is a process of its own, made
by forking this program, which has imported guieval already; it gets SIGKILL from the system, so nothing of it can tidy up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def operations(folder: Path, words: Sequence[str | Path]) -> int:
    """Give the ``guieval`` command, which must end with exit code 0; how many moments it has below the folder."""
    return _told(folder, (), words)


def kills(moments: Iterable[int], folder: Path, words: Sequence[str | Path]) -> int:
    """Give the ``guieval`` command again and again, and kill it at each of the moments in turn; how often it was killed.

    Then, unless it has got to its end before, it is given once more and not killed. It must end with exit code 0.
    """
    return _told(folder, moments, words)


def _told(folder: Path, moments: Iterable[int], words: Sequence[str | Path]) -> int:
    given = [sys.executable, "-m", "tests.killed", str(folder), ",".join(map(str, moments)), *map(str, words)]
    done = subprocess.run(given, cwd=Path(__file__).parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.splitlines()[-1])


def forked(folder: str, moment: int | None, words: Sequence[str]) -> int:
    """How the ``guieval`` command ended, killed at that moment or not at all, as :func:`os.waitpid` has it.

    It prints how many moments below the folder it has seen, if it comes to that.
    """
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    seen = 0

    def at_operation(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if any(isinstance(each, str | os.PathLike) and folder in str(each) for each in arguments):
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(at_operation)
    from guieval.cli import main

    sys.argv = ["guieval", *words]
    try:
        main()
    finally:
        print(seen, flush=True)
    return 0


def _main(folder: str, moments: str, *words: str) -> int:
    import guieval.cli.data.prepare
    import guieval.exchange.commands.import_predictions  # noqa: F401  # once for all commands

    killed = 0
    for moment in map(int, filter(None, moments.split(","))):
        ended = forked(folder, moment, words)
        if ended != signal.SIGKILL:
            break
        killed += 1
    else:
        ended = forked(folder, None, words)
    if moments:
        print(killed, flush=True)
    return os.waitstatus_to_exitcode(ended)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
