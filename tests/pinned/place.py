"""A folder to run commands in, with copies of the pinned runs and of all that they need, and the servers that some ask.

Every path in a command, a manifest or a printed text is relative to this folder, so a run that was made in one such folder can
be read and resumed in another one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from guieval.cli import main
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import Done

HERE = Path(__file__).resolve().parent
RUNS, PRINTED, BENCHMARK = HERE / "runs", HERE / "printed", HERE / "benchmark"
NEEDED = ("agents.py", "campaign.yaml", "expert.json", "online.csv", "overlay.jsonl", "prices.yaml", "wide.yaml")
PLAIN = "200"
"""The width of a terminal on which no table is folded."""
LISTS = ("some.txt", "phone.txt", "pages.txt")
"""The files beside the runs that a command of them names; the lists are of episodes."""
SERVERS: Mapping[str, MockSettings] = {
    "{agentcpm}": MockSettings(policy="reference", model="agentcpm-gui-8b", accuracy=0.7, history_gain=0.2),
    "{ui-tars}": MockSettings(policy="reference", model="ui-tars-7b", accuracy=0.5, seed=2),
    "{thoughts}": MockSettings(policy="fixed", reply="<think>An aide would do this.</think>", served_models=("aux",)),
}
"""What stands for a server's address in a command: the server. Its answers follow from the step; it has any free port."""


@dataclass
class Place:
    """The folder; commands run in this process, with it as the working directory."""

    folder: Path
    _stack: ExitStack = field(repr=False)
    _servers: dict[str, MockServer] = field(default_factory=dict, repr=False)

    def __call__(self, command: str) -> Done:
        """Run one command line of ``guieval``, given without that word."""
        arguments = [self._address(word) if word in SERVERS else word for word in shlex.split(command)]
        out, err = StringIO(), StringIO()
        code: object = 0
        with patch.object(sys, "argv", ["guieval", *arguments]), redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as left:
                code = left.code
        return Done(int(str(code or 0)), out.getvalue(), err.getvalue())

    def _address(self, name: str) -> str:
        if name not in self._servers:
            benchmark = load_benchmark("episodes", self.folder / BENCHMARK.name)
            server = MockServer(SERVERS[name], benchmark=benchmark)
            self._servers[name] = self._stack.enter_context(server)
        return self._servers[name].base_url


@contextmanager
def placed(folder: Path, runs: Path | None = RUNS) -> Iterator[Place]:
    """Fill an empty folder, with a copy of ``runs`` unless it is ``None``, and work in it."""
    for source in (BENCHMARK, *(HERE / name for name in (*NEEDED, *LISTS)), *((runs,) if runs else ())):
        if source.is_dir():
            shutil.copytree(source, folder / source.name)
        elif source.exists():
            shutil.copy(source, folder)
    for journal in folder.glob("runs/**/*.jsonl*"):
        os.utime(journal, (0, 0))  # exports take a run's end from it
    # no terminal's width folds a table, and what guieval remembers of its user stays out of the home folder
    surroundings = {"COLUMNS": PLAIN, "XDG_STATE_HOME": str(folder / ".state"), "NO_COLOR": "1"}
    with ExitStack() as stack, chdir(folder), patch.dict(os.environ, surroundings):
        yield Place(folder, stack)
