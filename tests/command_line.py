"""The ``guieval`` program in this process, as a test calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from guieval.cli import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


class CommandLine:
    """The program in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str | Path) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["guieval", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = self._capsys.readouterr()
        return Done(int(left.value.code or 0), out, err)

    def apart(self, *arguments: str | Path) -> Done:
        """The program in a process of its own, for what a process decides once: whether Ray's ports are open to others."""
        done = subprocess.run([sys.executable, "-m", "guieval", *map(str, arguments)], capture_output=True, text=True)
        return Done(done.returncode, done.stdout, done.stderr)

    def sentence(self, *arguments: str | Path) -> str:
        """The one sentence that a mistake ends with."""
        done = self(*arguments)
        assert done.code == 2 and done.err.startswith("guieval: ") and done.err.count("\n") == 1, done
        return done.err
