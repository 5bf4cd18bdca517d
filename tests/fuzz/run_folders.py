"""Run folders of others: every command that reads one ends with a table or a sentence, and exit code 0, 1 or 2."""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar

from guieval import cli
from guieval.journal import EPISODES, LOCK, MANIFEST, METRICS
from guieval.playground.mock_server import MockServer, MockSettings
from tests.command_line import Done

from . import mutations
from .engine import LONGEST_SENTENCE, Target, Wrong

MODEL = "ui-tars-7b"


class RunFolders(Target):
    name: ClassVar[str] = "run-folders"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._folder = folder
        # building the commands takes three times as long as most of them: once is enough
        self._program, cli.program = cli.program, cache(cli.program)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ["COLUMNS"] = "120"
        self._server = MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,)))
        self._server.start()
        for name, more in (("plain", ()), ("packed", ("--set", "compact=true"))):
            small = ("--set", "bench_options.episodes=2", "--set", "bench_options.seed=4", *more)
            asked = ("--model", MODEL, "--bench", "demo", "--data", folder / "demo", "--base-url", self._server.base_url)
            done = _program("run", *asked, "--out", folder / name, *small)
            if done.code != 0:
                raise Wrong(f"the run to mutate cannot be made: {done}")
        self._files = {
            name: [file.name for file in sorted((folder / name).iterdir()) if file.is_file() and file.name != LOCK]
            for name in ("plain", "packed")
        }

    def close(self) -> None:
        self._server.stop()
        cli.program = self._program

    def check(self, dice: Random) -> None:
        name = dice.choice(("plain", "plain", "packed"))
        run = self._folder / "mutated"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self._folder / name, run)
        # what other commands read stands in the manifest first of all
        for changed in dice.sample((MANIFEST, MANIFEST, *self._files[name]), dice.choice((1, 1, 2))):
            content = (run / changed).read_bytes()
            kind = changed if changed in (MANIFEST, EPISODES, METRICS) else "steps.jsonl"
            (run / changed).write_bytes(mutations.file(dice, content, kind))
        self._commands(dice, run)

    def _commands(self, dice: Random, run: Path) -> None:
        plain = self._folder / "plain"
        commands: tuple[tuple[str | Path, ...], ...] = (
            ("score", run),
            ("score", run, "--json"),
            ("score", run, "--protocol", "all"),
            ("compare", run, plain),
            ("compare", plain, run),
            ("leaderboard", run, plain),
            ("runs", self._folder),
            ("dev", "audit", run),
            ("report", run, "--out", self._folder / "page"),
            ("run", "--resume", run),
        )
        weights = (6, 3, 2, 3, 2, 3, 3, 2, 1, 1)
        command = dice.choices(commands, weights)[0]
        done = _program(*command)
        words = " ".join(map(str, command))
        if done.code not in (0, 1, 2) or "Traceback" in done.err:
            raise Wrong(f"{words}: exit code {done.code}: {done.err[-2000:]}")
        if done.code == 2 and not done.err.strip():
            raise Wrong(f"{words}: exit code 2 without a word")
        if longest := max((line for line in done.err.splitlines() if len(line) > LONGEST_SENTENCE), default=""):
            raise Wrong(f"{words}: a message of {len(longest)} characters: {longest[:300]!r}")


def _program(*arguments: str | Path) -> Done:
    """The program in this process; what it raises but for its exit is the finding."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
    before, sys.argv = sys.argv, ["guieval", *map(str, arguments)]
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli.main()
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.argv = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    return Done(code, *texts)
