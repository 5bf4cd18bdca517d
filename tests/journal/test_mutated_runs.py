"""Run folders that somebody has changed: whatever a JSON file holds, a reading command ends with figures or one sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine, Done
from tests.mutations import mutated

MODEL = "qwen3-vl-8b-thinking"
SEED = int(os.environ.get("GUIEVAL_FUZZ_SEED", "20"))
CASES = int(os.environ.get("GUIEVAL_FUZZ_CASES", "320"))
PARTS = 8


class World:
    """A run, one that stopped, a judge, a rollout and a sweep, made once; and the server that answered them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.demo = folder / "demo"
        self.shown = ("--bench", "demo", "--data", self.demo)
        settings = MockSettings(model=MODEL, policy="reference", accuracy=0.7, served_models=("another",))
        benchmark = load_benchmark("demo", self.demo, episodes=2)
        self.first = next(iter(benchmark.index())).key
        self.second_step = ("--subset", self.first.subset, "--episode", self.first.episode_id, "--step", "1")
        self.server = MockServer(settings, benchmark=benchmark)

    def make(self, guieval: CommandLine) -> None:
        if (self.folder / "mix").exists():
            return
        start: list[str | Path] = ["--model", MODEL, *self.shown, "--quiet"]
        start += ["--set", "bench_options.episodes=2", "--base-url", self.server.base_url]
        run, judge = self.folder / "run", self.folder / "judge"
        overlay = self.folder / "overlay.jsonl"
        key = self.first
        added = {"subset": key.subset, "episode_id": key.episode_id, "step_index": 0, "targets": [[0, 0, 9, 9]]}
        overlay.write_text(json.dumps(added))
        thinking = ("--samples", "4", "--set", "sampling.temperature=1.0")
        for command in (
            ["run", *start, "--out", run, "--overlay", overlay, *thinking],
            ["run", *start, "--out", self.folder / "sop", "--mode", "sop", "--set", "compact=true", "--patch", "thought-free"],
            ["run", *start, "--out", judge, "--fixed-thoughts", run, *thinking],
            ["study", "rollout", *start, "--out", self.folder / "rollout", "--rounds", "2", *thinking],
            ["study", "mix", *start, "--out", self.folder / "mix", "--artifacts", run, "--preset", "try"],
        ):
            done = guieval(*command)
            assert done.code == 0, done

    def commands(self, what: str, place: Path) -> list[tuple[str | Path, ...]]:
        """Everything that reads such a folder."""
        run, judge, out = self.folder / "run", self.folder / "judge", place.parent
        again = ("--quiet", "--base-url", self.server.base_url, "--timeout", "2", "--max-attempts", "1")
        if what == "rollout":
            return [
                ("study", "rollout", "--resume", place, *again),
                ("study", "decisions", place),
                ("report", place, "--no-images", "--out", out / "report"),
                ("plot", "samples", place, "--out", out / "plot.svg"),
            ]
        if what == "mix":
            mixed = ("study", "mix", "--resume", place, *again[:3], "--set", "timeout=2", "--set", "max_attempts=1")
            return [mixed, ("runs", "list", out)]
        return [
            *[("score", place), ("score", place, "--protocol", "all"), ("score", place, "--reparse")],
            *[("report", place, "--no-images", "--out", out / "report"), ("dev", "audit", place), ("compare", place, run)],
            *[("compare", run, place, "--anyway"), ("leaderboard", place, run), ("study", "decisions", place)],
            *[("plot", "horizon", place, "--out", out / "plot.svg"), ("study", "consistency", place, "--judges", judge)],
            *[("study", "consistency", run, "--judges", place), ("runs", "list", out)],
            ("study", "select", place, "--out", out / "set.json", "--top", "3", "--allow-fewer"),
            ("dev", "prompt", "--mode", "sop", "--model", MODEL, *self.shown, "--run", place, *self.second_step),
            ("run", "--resume", place, *again),
        ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    with made.server:
        yield made


FILES = (
    *[("run", "manifest.json")] * 8,
    *[("run", "episodes.json")] * 4,
    *[("run", "steps.jsonl")] * 4,
    ("run", "metrics.json"),
    *[("sop", "manifest.json"), ("sop", "episodes.json"), ("judge", "manifest.json")] * 2,
    *[("rollout", "rollout.json"), ("mix", "mix.json")] * 3,
    ("mix", "outcomes.jsonl"),
)


def change(file: Path, source: Random) -> str:
    """Change one value of a JSON file, or of a line of JSON, which loses its checksum: those of old journals have none."""
    if file.suffix == ".json":
        document, what = mutated(json.loads(file.read_text()), source)
        file.write_text(json.dumps(document))
        return what
    lines = file.read_text().splitlines()
    place = source.randrange(len(lines))
    record = json.loads(lines[place])
    record.pop("crc32", None)
    document, what = mutated(record, source)
    lines[place] = json.dumps(document)
    file.write_text("".join(f"{line}\n" for line in lines))
    return f"line {place + 1}: {what}"


def check(done: Done) -> None:
    """It ended with an exit code of its own, and where it refused, with one sentence; nothing that a terminal obeys."""
    assert done.code in (0, 1, 2), done
    message = [line for line in done.err.splitlines() if line.startswith("guieval: ")]
    assert done.code != 2 or len(message) == 1, done
    assert all(mark.isprintable() or mark in "\n\t" for mark in done.out + done.err), done


@pytest.mark.parametrize(
    ("what", "unfit"),
    [
        ("run", ["consistency"]),
        ("sop", ["compare", "consistency", "consistency", "decisions"]),
        *(("judge", ["compare"]), ("rollout", []), ("mix", [])),
    ],
)
def test_unchanged_folders_are_read(world: World, guieval: CommandLine, tmp_path: Path, what: str, unfit: list[str]) -> None:
    """What is changed below is read by every command before, but for a few whose figures such a run does not have."""
    world.make(guieval)
    place = tmp_path / what
    shutil.copytree(world.folder / what, place)
    refused = {" ".join(map(str, each)): done for each in world.commands(what, place) if (done := guieval(*each)).code}
    assert sorted(each.removeprefix("study ").split()[0] for each in refused) == unfit, refused


@pytest.mark.parametrize("part", range(PARTS))
def test_a_changed_run_folder_never_ends_in_a_traceback(world: World, guieval: CommandLine, tmp_path: Path, part: int) -> None:
    world.make(guieval)
    for case in range(part, CASES, PARTS):
        source = Random(f"{SEED} {case}")
        what, name = source.choice(FILES)
        place = tmp_path / str(case) / what
        shutil.copytree(world.folder / what, place)
        done = f"seed {SEED}, case {case}: {what}/{name}, {change(place / name, source)}"
        command = source.choice(world.commands(what, place))
        try:
            check(guieval(*command))
        except BaseException as error:
            error.add_note(f"{done}: guieval {' '.join(map(str, command))}")
            raise
        shutil.rmtree(tmp_path / str(case))
