"""Repeats of a run: their seeds and folders, one row in every table, and what is said of absent ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from guieval import run
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.repeats import Seeds, grouped
from guieval.metrics.repeats import Repeated
from guieval.running.repeats import repeats_of
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.rows import every_row

PINNED = REPOSITORY / "tests" / "pinned"
GIVEN: dict[str, Any] = {"bench": "episodes", "data": PINNED / "benchmark", "subset": "tools", "protocol": "ui-s1-sop"}
NAMES = ["careful", "hasty"]
GIVEN |= {"adapter": PINNED / "agents.py", "engine": "local", "sampling": {"temperature": 1}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents with three repeats each, the second in two commands."""
    folder = tmp_path_factory.mktemp("runs")
    run(model="careful", repeats=3, out=folder / "careful", **GIVEN)
    run(model="hasty", repeats=2, out=folder / "hasty", **GIVEN)
    run(resume=folder / "hasty", repeats=3, **{"adapter": GIVEN["adapter"]})
    return folder


def config(**more: Any) -> RunConfig:
    return RunConfig(**{"model": "ocr-baseline", "bench": "demo", **more})


@every_row(
    ("settings", "seeds", "expected"),
    [
        ({"repeats": 3}, (), [(0, None), (1, None), (2, None)]),
        ({"repeats": 2, "samples": 4, "seed": 5}, (), [(5, None), (9, None)]),
        ({"repeats": 2, "sampling": {"seed": 7}, "mix": {"start": 1, "seed": 3}}, (), [(7, 3), (8, 4)]),
        ({}, (4, 2), [(4, None), (2, None)]),
        ({"samples": 2}, (), [(None, None)]),
    ],
)
def test_each_repeat_has_seeds_of_its_own(settings: dict[str, Any], seeds: tuple[int, ...], expected: list[Any]) -> None:
    found = repeats_of(config(**settings), Path("run"), seeds)
    assert [(each.sampling.request.get("seed"), each.history.mix.get("seed")) for each, _ in found] == expected
    folders = [Path("run")] if len(found) == 1 else [Path(f"run/repeat-{number}") for number in range(len(found))]
    assert [directory for _, directory in found] == folders


@every_row(
    ("settings", "seeds", "words"),
    [
        ({"repeat": 1}, (), "--repeats N says how many"),
        ({"repeats": 2}, (1, 2), "repeats is 2, and there are 2 seeds"),
        ({}, (1, 1), "the seed 1 is given twice"),
        ({"samples": 3}, (1, 2), "closer together than the 3 samples of a repeat"),
        ({"repeats": 2, "sampling": {"seed": 2**63 - 1}}, (), "is too large"),
        ({"repeats": 2, "replay": "runs/a"}, (), "the same in every repeat"),
    ],
)
def test_repeats_that_would_be_the_same_draw_are_refused(settings: dict[str, Any], seeds: tuple[int, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        repeats_of(config(**settings), Path("run"), seeds)


def test_tables_have_one_row_a_model_and_a_resume_adds_repeats(runs: Path, guieval: CommandLine) -> None:
    """The mean, the spread and n of each model are those of its three runs; compare asks one question; runs has two lines."""
    alone = {
        model: [json.loads((run / "metrics.json").read_text()) for run in sorted((runs / model).iterdir())] for model in NAMES
    }
    exact = {model: [run["summary"]["metrics"]["exact match"]["value"] for run in of] for model, of in alone.items()}
    assert [RunFolder(runs / "hasty" / f"repeat-{k}").manifest.sampling["seed"] for k in range(3)] == [0, 1, 2]
    board = json.loads(guieval("leaderboard", runs / "careful", runs / "hasty", "--json").out)
    cells = {row["model"]: row["cells"][0]["measured"] for row in board["rows"]}
    assert list(cells) == NAMES or list(cells) == NAMES[::-1]
    for model, cell in cells.items():
        assert cell["repeats"] == exact[model] and cell["spread"] == pytest.approx(stdev(exact[model]))
        assert cell["value"] == pytest.approx(sum(exact[model]) / 3) and cell["n"] == 18
    (compared,) = json.loads(guieval("compare", runs / "careful", runs / "hasty", "--json").out)["comparisons"]
    (first, *_) = compared["metrics"]
    alone_in = json.loads(guieval("compare", runs, "--json").out)["comparisons"]
    assert [each["metrics"] for each in alone_in] == [compared["metrics"]]
    fewer = guieval.sentence("run", "--resume", runs / "hasty", "--repeats", "2", "--adapter", GIVEN["adapter"])
    assert f"repeats is 2, and {str(runs / 'hasty')!r} has 3" in fewer
    assert first["A"]["repeats"] == exact["careful"] and first["B"]["value"] == cells["hasty"]["value"]
    assert compared["exact_match"] == {} and "A: mean of 3 repeats (sampling seeds 0, 1, 2)" in (compared["notes"])
    assert "steps flip between single runs" in guieval.sentence("compare", runs / "careful", runs / "hasty", "--flips", "f.csv")
    listed = {each["name"]: each for each in json.loads(guieval("runs", runs, "--json").out)["runs"]}
    assert listed.keys() == set(NAMES) and listed["hasty"]["exact_match"]["spread"] == cells["hasty"]["spread"]


def test_python_has_the_mean_and_an_absent_repeat_is_announced(runs: Path, tmp_path: Path, guieval: CommandLine) -> None:
    done = run(resume=runs / "careful", adapter=GIVEN["adapter"])
    mean = done.metrics()["exact match"]
    assert len(done) == 3 and isinstance(mean, Repeated) and len(mean.repeats) == 3
    shutil.copytree(runs, tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "hasty" / "repeat-1")
    board = json.loads(guieval("leaderboard", tmp_path / "runs/careful", tmp_path / "runs/hasty", "--json").out)
    assert "hasty: only 2 of 3 repeats are there (sampling seeds 0, 2), so the numbers are of these alone" in board["notes"]
    again = run(resume=tmp_path / "runs" / "hasty", adapter=GIVEN["adapter"])
    assert [run.directory.name for run in again] == ["repeat-0", "repeat-2", "repeat-1"]


def test_runs_that_differ_in_seeds_alone_are_repeats_wherever_they_were_made(tmp_path: Path) -> None:
    """Campaigns of earlier versions had a folder for each seed; another temperature, or the same seed again, is no repeat."""
    for folder in sorted((PINNED / "runs" / "campaign").glob("*-seed?")):
        shutil.copytree(folder, tmp_path / folder.name)
    hot = tmp_path / "careful-episodes-sop-seed1" / "manifest.json"
    hot.write_text(hot.read_text().replace('"temperature": 1', '"temperature": 2'))
    shutil.copytree(tmp_path / "hasty-episodes-sop-seed0", tmp_path / "hasty-episodes-sop-seed2")
    found = {each.first.name: each.seeds for each in grouped(sorted(tmp_path.iterdir()))}
    both = (Seeds(0, None), Seeds(1, None))
    assert found == {
        "careful-episodes-offline-seed0": both,
        "careful-episodes-sop-seed0": both[:1],
        "careful-episodes-sop-seed1": both[1:],
        "hasty-episodes-offline-seed0": both,
        "hasty-episodes-sop-seed0": both,
        "hasty-episodes-sop-seed2": both[:1],
    }


def test_episodes_of_one_step_are_asked_in_one_mode(tmp_path: Path, guieval: CommandLine) -> None:
    """Screens with one question have no past: of three modes one is run, and a line says it; longer episodes keep all modes."""
    shutil.copytree(PINNED / "benchmark", tmp_path / "data")
    file = tmp_path / "data" / "episodes.jsonl"
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**each, "steps": each["steps"][:1]}) + "\n" for each in episodes))
    modes = ["offline", "soeval", "sop"]
    asked = run(model="careful", mode=modes, out=tmp_path / "short", **{**GIVEN, "data": tmp_path / "data"})
    assert [each.mode for each in asked] == ["offline"] and asked.complete
    assert [each.mode for each in run(model="careful", mode=modes, out=tmp_path / "long", **GIVEN)] == modes
    options = [f"--{name}={value}" for name, value in GIVEN.items() if name not in ("sampling", "data")]
    command = ("run", "--model", "careful", *options, f"--data={tmp_path / 'data'}", "--mode", "sop", "--mode", "offline")
    said = " ".join(guieval(*command, "--out", tmp_path / "again").err.split())
    assert "have one step, so offline would send the requests of mode sop: they are sent once, in mode sop" in said
