"""Run folders of others: every command that reads one ends with a table or a sentence, and exit code 0, 1 or 2."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar

from guieval import cli
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import Done

from . import mutations
from .engine import LONGEST_SENTENCE, Target, Wrong

MODEL = "qwen3-vl-8b-thinking"
FILES = (
    *[("run", "manifest.json")] * 8,
    *[("run", "episodes.json"), ("run", "steps.jsonl")] * 4,
    *[("run", "metrics.json"), ("sop", "steps.packed")],
    *[("sop", "manifest.json"), ("sop", "episodes.json"), ("judge", "manifest.json")] * 2,
    *[("rollout", "rollout.json"), ("mix", "mix.json")] * 3,
    ("mix", "outcomes.jsonl"),
)
"""What is changed: in the manifest is what most commands read first."""
_CHECKSUM = re.compile(rb',"crc32":"[0-9a-f]{8}"')


class RunFolders(Target):
    """A run, one that stopped, a judge, a rollout and a sweep, made once; a case changes a file of one of them."""

    name: ClassVar[str] = "run-folders"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._folder = folder
        # building the commands takes three times as long as most of them: once is enough
        self._program, cli.program = cli.program, cache(cli.program)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ["COLUMNS"] = "120"
        self._shown = ("--bench", "demo", "--data", folder / "demo")
        benchmark = load_benchmark("demo", folder / "demo", episodes=2)
        self._first = next(iter(benchmark.index())).key
        settings = MockSettings(model=MODEL, policy="reference", accuracy=0.7, served_models=("another",))
        self._server = MockServer(settings, benchmark=benchmark)
        self._server.start()
        overlay = folder / "overlay.jsonl"
        added = {"subset": self._first.subset, "episode_id": self._first.episode_id, "step_index": 0}
        overlay.write_text(json.dumps({**added, "targets": [[0, 0, 9, 9]]}))
        start: tuple[str | Path, ...] = ("--model", MODEL, *self._shown, "--quiet", "--base-url", self._server.base_url)
        start = (*start, "--set", "bench_options.episodes=2")
        run, thinking = folder / "run", ("--samples", "4", "--set", "sampling.temperature=1.0")
        for command in (
            ("run", *start, "--out", run, "--overlay", overlay, *thinking),
            ("run", *start, "--out", folder / "sop", "--mode", "sop", "--set", "compact=true", "--patch", "thought-free"),
            ("run", *start, "--out", folder / "judge", "--fixed-thoughts", run, *thinking),
            ("study", "rollout", *start, "--out", folder / "rollout", "--rounds", "2", *thinking),
            ("study", "mix", *start, "--out", folder / "mix", "--artifacts", run, "--preset", "try"),
        ):
            if (done := _program(*command)).code != 0:
                raise Wrong(f"what is to be mutated cannot be made: {done}")

    def close(self) -> None:
        self._server.stop()
        cli.program = self._program

    def check(self, dice: Random) -> None:
        what, name = dice.choice(FILES)
        place = self._folder / "mutated" / what
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(self._folder / what, place)
        content = (place / name).read_bytes()
        if dice.random() < 0.5:  # journals of earlier versions have no checksums, so that what a line says is read
            content = _CHECKSUM.sub(b"", content)
        (place / name).write_bytes(mutations.file(dice, content, name))
        command = dice.choice(self._commands(what, place))
        done = _program(*command)
        words = " ".join(map(str, command))
        if done.code not in (0, 1, 2) or "Traceback" in done.err:
            raise Wrong(f"{words}: exit code {done.code}: {done.err[-2000:]}")
        if done.code == 2 and sum(line.startswith("guieval: ") for line in done.err.splitlines()) != 1:
            raise Wrong(f"{words}: exit code 2 without one sentence: {done.err[-2000:]}")
        if not all(mark.isprintable() or mark in "\n\t" for mark in done.out + done.err):
            raise Wrong(f"{words}: prints what a terminal obeys")
        if longest := max((line for line in done.err.splitlines() if len(line) > LONGEST_SENTENCE), default=""):
            raise Wrong(f"{words}: a message of {len(longest)} characters: {longest[:300]!r}")

    def _commands(self, what: str, place: Path) -> list[tuple[str | Path, ...]]:
        """Everything that reads such a folder."""
        run, out = self._folder / "run", place.parent
        again = ("--quiet", "--base-url", self._server.base_url, "--timeout", "2", "--max-attempts", "1")
        report = ("report", place, "--no-images", "--out", out / "report")
        if what == "rollout":
            samples = ("plot", "samples", place, "--out", out / "plot.svg")
            return [("study", "rollout", "--resume", place, *again), ("study", "decisions", place), report, samples]
        if what == "mix":
            mixed = ("study", "mix", "--resume", place, *again[:3], "--set", "timeout=2", "--set", "max_attempts=1")
            return [mixed, ("runs", "list", out)]
        judged = ("study", "consistency", place, "--judges", self._folder / "judge")
        second = ("--subset", self._first.subset, "--episode", self._first.episode_id, "--step", "1")
        return [
            *[("score", place, *more) for more in ((), ("--json",), ("--protocol", "all"), ("--reparse",))],
            *[report, ("dev", "audit", place), ("compare", place, run), ("compare", run, place, "--anyway")],
            *[("leaderboard", place, run), ("study", "decisions", place), judged, ("runs", "list", out)],
            *[("plot", "horizon", place, "--out", out / "plot.svg"), ("study", "consistency", run, "--judges", place)],
            ("study", "select", place, "--out", out / "set.json", "--top", "3", "--allow-fewer"),
            ("dev", "prompt", "--mode", "sop", "--model", MODEL, *self._shown, "--run", place, *second),
            ("run", "--resume", place, *again),
        ]


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
