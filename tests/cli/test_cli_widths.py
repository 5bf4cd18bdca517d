"""Every command that prints figures at 80 and 120 columns: no line is wider, no word is split; and --json stands alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from rich.cells import cell_len

from guieval.actions import Click, Point
from guieval.cli.tables import LEFT_OUT
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run

MODEL = "qwen2.5-vl-7b"
OPTIONS = {"episodes": 4, "seed": 3}
SETTINGS = [word for name, value in OPTIONS.items() for word in ("--set", f"bench_options.{name}={value}")]
HOSTILE = "a-model-of-a-very-long-name-" + "x" * 90 + "\x1b[31m中文字符中文字符-7b"
COMMANDS: dict[str, tuple[str, ...]] = {
    "score": ("score", "{run}", "--by", "action-type", "--by", "error"),
    "score all": ("score", "{run}", "--protocol", "all"),
    "score samples": ("score", "{samples}"),
    "compare": ("compare", "{run}", "{other}", "--protocol", "all"),
    "leaderboard": ("leaderboard", "{run}", "{other}", "--protocol", "all", "--format", "text"),
    "leaderboard of a long name": ("leaderboard", "{hostile}", "--format", "text"),
    "references": ("leaderboard", "--list-references"),
    "correlate": ("study", "correlate", "--table", "guievalkit-table-20", "--x", "offline-exact", "--y", "androidworld"),
    "decisions": ("study", "decisions", "{samples}", "--sensitivity"),
    "audit": ("dev", "audit", "{run}"),
    "audit of a long name": ("score", "{hostile}"),
    "probe-reward": ("train", "probe-reward", "ui-s1", "--bench", "demo", "--data", "{data}", "--limit", "10"),
    "doctor": ("doctor", "demo", "--data", "{data}", "--set", "episodes=4", "--set", "seed=3"),
    "fit-scaling": ("study", "fit-scaling", "{scaling}"),
    "sample-sets": ("data", "sample-sets"),
    "models": ("models",),
    "benchmarks": ("benchmarks",),
    "protocols": ("protocols",),
    "runs": ("runs", "{run}"),
    "one benchmark": ("benchmarks", "androidcontrol"),
    "one model": ("models", "ui-s1-7b"),
    "one protocol": ("protocols", "guievalkit"),
    "report": ("report", "{run}", "--no-images", "--out", "{report}"),
    "campaign": ("campaign", "demo", "--dry-run"),
}
WITHOUT_JSON = {*list(COMMANDS)[-5:], "references", "models", "benchmarks", "protocols"}
NOTES = {word.rstrip(",.:;") for word in f"Left out at this width: {LEFT_OUT} `guieval protocols NAME` has it.".split()}
COPIED = ("run:", "serve:", "re-score:", "resume:", "decisions:", "sweep:", "table:", "picture:", "report:", "open:")
"""What begins a line that holds a path or a command to copy, which is never folded."""

Served: TypeAlias = Callable[[], MockServer]


def asked(server: MockServer, data: Path) -> list[str | Path]:
    return ["--quiet", "--model", MODEL, "--bench", "demo", "--data", data, "--base-url", server.base_url, *SETTINGS]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    data = tmp_path_factory.mktemp("demo")
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.6, seed=3, served_models=(MODEL,))
    return lambda: MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "scaling.csv").write_text("size,score\n" + "".join(f"{2**size},{10 + 3 * size}\n" for size in range(8)))
    names = ("run", "other", "samples", "hostile", "data", "report")
    return {**{name: folder / name for name in names}, "scaling": folder / "scaling.csv"}


@pytest.fixture
def made(places: dict[str, Path], served: Served, guieval: CommandLine) -> dict[str, Path]:
    """Two runs, one of several samples a step, and one whose model has a name that no terminal is wide enough for."""
    if not places["run"].exists():
        with served() as server:
            for name, more in (("run", ()), ("other", ("--mode", "soeval")), ("samples", ("--samples", "4"))):
                sampling = ("--set", "sampling.temperature=1.0")
                done = guieval("run", *asked(server, places["data"]), *sampling, *more, "--out", places[name])
                assert done.code == 0, done
        task = step(Click(point=Point(500, 500)))
        run = write_run(places["hostile"], [record(task, task.action)])
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["model"]["name"] = manifest["config"]["model"] = HOSTILE
        (run / "manifest.json").write_text(json.dumps(manifest))
    return places


def words(lines: Sequence[str]) -> set[str]:
    timeless = [line.replace("─", " ") for line in lines if "…" not in line and not re.search(r"in [\d.]+ s$", line)]
    return {word for line in timeless for word in line.split()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_fits_whole(name: str, made: dict[str, Path], guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [word.format(**made) for word in COMMANDS[name]]
    monkeypatch.setenv("COLUMNS", "2000")
    whole = words(guieval(*arguments).out.splitlines())
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        done = guieval(*arguments)
        assert done.code in (0, 1) and done.out, done
        lines = [line for line in done.out.splitlines() if not line.startswith(COPIED)]
        assert [line for line in lines if cell_len(line) > width and " " in line.strip()] == []
        known = {word.rstrip(",.:;") for word in whole} | NOTES
        split = {word for word in words(lines) if word.rstrip(",.:;") not in known}
        assert split == set()
        assert len([line for line in lines if len(line.strip()) == 1]) < 3  # never one letter a line


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_JSON])
def test_json_stands_alone_on_standard_output(name: str, made: dict[str, Path], guieval: CommandLine) -> None:
    done = guieval(*(word.format(**made) for word in COMMANDS[name] if word not in ("--format", "text")), "--json")
    assert done.code in (0, 1), done
    values = json.loads(done.out)
    assert values and isinstance(values, dict), "a list has a name"


@pytest.mark.ci
def test_sweeps(
    made: dict[str, Path], served: Served, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sweep = ("study", "mix", "--artifacts", made["run"], "--pair", "0:1", "--pair", "1:0", "--means", "2")
    commands: dict[str, tuple[str | Path, ...]] = {
        "run": ("run", "--mode", "offline", "--mode", "sop"),
        "rollout": ("study", "rollout", "--rounds", "2", "--samples", "2", "--set", "sampling.temperature=1.0"),
        "mix": sweep,
    }
    with served() as server:
        for name, begin in commands.items():
            monkeypatch.setenv("COLUMNS", "80")
            done = guieval(*begin, *asked(server, made["data"]), "--out", tmp_path / name)
            assert done.code == 0, done
            lines = [line for line in done.out.splitlines() if not line.startswith(COPIED)]
            assert lines and max(map(cell_len, lines)) <= 80
            done = guieval(*begin, *asked(server, made["data"]), "--out", tmp_path / f"{name}-json", "--json")
            assert done.code == 0 and isinstance(json.loads(done.out), dict), done
            if name == "run":
                (offline, sop) = json.loads(done.out)["runs"]
                assert offline["summary"]["metrics"]["exact match"]["interval"] and sop["summary"]["metrics"]["PG"]
