"""``guieval study decisions``: tables in every format, pictures, and one sentence for every mistake."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from guieval.actions import Action, Click, Point, Press
from guieval.journal import ROLLOUT, STEPS
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run
from tests.rows import every_row

RIGHT, WRONG, BACK = Click(point=Point(100, 100)), Click(point=Point(900, 900)), Press(button="BACK")


def write(directory: Path, right: tuple[int, ...], samples: int = 8, first: int = 0) -> Path:
    """A run with two steps per episode and the given numbers of right samples; the others are two decisions."""
    records = []
    for i, good in enumerate(right):
        wrong: list[Action | None] = [WRONG if place % 2 else BACK for place in range(samples - good)]
        task = step(RIGHT, episode=f"e{first + i // 2}", index=i % 2, length=2)
        records.append(record(task, *[RIGHT] * good, *wrong))
    return write_run(directory, records, protocol="guievalkit")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("decided")
    return {
        "offline": write(folder / "offline", (8, 8, 2, 0, 4, 8, 1, 8)),
        "soeval": write(folder / "soeval", (8, 6, 4, 0, 8, 8, 2, 7)),
        "single": write(folder / "single", (1, 0), samples=1),
    }


def rows(out: str, table: str) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["row"], row["column"]): row for row in csv.DictReader(io.StringIO(out)) if row["table"] == table}


def test_figures_of_a_run(guieval: CommandLine, runs: dict[str, Path]) -> None:
    file = runs["offline"].with_name("steps.jsonl")
    done = guieval("study", "decisions", runs["offline"], "--format", "csv", "--steps", file)
    assert done.code == 0, done.err
    figures = rows(done.out, "decisions")
    assert figures["executions measured", "offline"]["value"] == "64"
    low, value, high = (float(figures["stability (mean)", "offline"][name]) for name in ("low", "value", "high"))
    assert value == pytest.approx(39 / 64) and low < value < high
    halves = -3 / 8 * np.log(3 / 8) * 2 - 2 / 8 * np.log(2 / 8)  # 2 right and 3 + 3 wrong
    others = -(1 / 2 * np.log(1 / 2) + 2 * 1 / 4 * np.log(1 / 4)) + np.log(2)  # 4 and 2 + 2; none and 4 + 4
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["episode_id"], each["step_index"], each["right"], each["n"]) for each in lines[2:4]] == [
        *(("e1", 0, 2, 8), ("e1", 1, 0, 8)),
    ]
    assert lines[2]["diversity"] == pytest.approx(halves) and lines[0]["model"] == lines[3]["model"] == "made-up-model"
    last = -(1 / 8 * np.log(1 / 8) + 4 / 8 * np.log(4 / 8) + 3 / 8 * np.log(3 / 8))  # 1 and 4 + 3
    assert float(figures["diversity, nats (mean)", "offline"]["value"]) == pytest.approx((halves + others + last) / 8)
    levels = rows(done.out, "levels")
    assert [levels[level, "offline: steps"]["value"] for level in ("low", "medium", "high")] == ["3", "1", "4"]
    passes = rows(done.out, "pass")
    assert [key[0] for key in passes] == ["1", "2", "4", "8"]
    assert float(passes["1", "offline"]["value"]) == pytest.approx(39 / 64)
    assert float(passes["8", "offline"]["value"]) == pytest.approx(7 / 8)
    solved = [figures[f"{name} solved", "offline"] for name in ("steps", "episodes")]
    assert [(float(each["value"]), each["n"]) for each in solved] == [(7 / 8, "8"), (3 / 4, "4")]


def test_folders_are_pooled_as_if_they_were_one_run(guieval: CommandLine, runs: dict[str, Path], tmp_path: Path) -> None:
    """One of another model or over the same episodes is refused, for it would count twice."""
    whole = (8, 8, 2, 0, 4, 8, 1, 8)
    write(tmp_path / "both" / "a", whole[:4]), write(tmp_path / "both" / "b", whole[4:], first=2)
    pooled = guieval("study", "decisions", "--pool", tmp_path / "both", "--json")
    one = guieval("study", "decisions", runs["offline"], "--json")
    assert pooled.code == 0 and pooled.out == one.out.replace('"offline', '"both'), pooled.err
    write(tmp_path / "twice" / "a", (8, 8)), write(tmp_path / "twice" / "b", (8, 8))
    assert "'a' and 'b' share the episode" in guieval.sentence("study", "decisions", "--pool", tmp_path / "twice")


def test_the_steps_of_a_cell_are_listed(guieval: CommandLine, runs: dict[str, Path]) -> None:
    """2 of 8 become 4 and 1 of 8 becomes 2: low and rising; none stays none."""
    asked = ("study", "decisions", runs["soeval"], "--against", runs["offline"], "--format", "csv", "--cell")
    done = guieval(*asked, "low:inc")
    listed = [row for row in csv.reader(io.StringIO(done.out)) if row[0] == "steps-of-cell"]
    assert {tuple(row[2].split(", ")[1:]) for row in listed} == {("e1", "0"), ("e3", "0")}, done.out
    for cell, message in (("lo:inc", "did you mean 'low'"), ("low:up", "has 'up'"), ("low", "has ''")):
        assert message in guieval.sentence(*asked, cell)
    assert "name the baseline with --against" in guieval.sentence("study", "decisions", runs["offline"], "--cell", "low:inc")


def test_other_thresholds_make_other_levels(guieval: CommandLine, runs: dict[str, Path]) -> None:
    """4 of 8 is medium by the published 0.4 and 0.8, and low up to 0.5."""
    done = guieval("study", "decisions", runs["offline"], "--low", "0.5", "--format", "csv")
    levels = rows(done.out, "levels")
    assert [levels[level, "offline: steps"]["value"] for level in ("low", "medium", "high")] == ["4", "0", "4"]
    assert "0 <= low < high <= 1" in guieval.sentence("study", "decisions", runs["offline"], "--low", "0.9")


def test_what_a_run_lacks_is_reported_beside_its_figures(guieval: CommandLine, runs: dict[str, Path], tmp_path: Path) -> None:
    assert "note:" not in guieval("study", "decisions", runs["offline"]).err
    whole, cut = write(tmp_path / "seed-1", (8, 4, 2, 1)), write(tmp_path / "seed-2", (8, 4, 2, 1))
    first, _, *others = (cut / STEPS).read_bytes().splitlines(keepends=True)
    (cut / STEPS).write_bytes(first + b"{nonsense\n" + b"".join(others))
    rounds = [{"directory": f"seed-{seed}", "seed": seed} for seed in (1, 2, 3)]
    (tmp_path / ROLLOUT).write_text(json.dumps({"rounds": rounds}))
    done = guieval("study", "decisions", tmp_path)
    assert done.code == 0 and f"1 of 3 rounds of {str(tmp_path)!r} have not begun" in done.err
    assert f"{str(cut)!r} has no record of 1 of 4 planned steps" in done.err and str(whole) not in done.err
    assert f"1 line of {str(cut / STEPS)!r} hold no record, the first is line 2" in done.err


@every_row("figure", ["shift", "pass", "diversity", "trade-off"])
def test_pictures(guieval: CommandLine, runs: dict[str, Path], tmp_path: Path, figure: str) -> None:
    file = tmp_path / "figure.svg"
    done = guieval("study", "decisions", runs["soeval"], "--against", runs["offline"], "--plot", file, "--figure", figure)
    assert done.code == 0, done.err
    assert f"picture:  {file}" in done.err and file.read_text(encoding="utf-8").startswith("<?xml")


def test_the_settings_change_the_decisions(guieval: CommandLine, tmp_path: Path) -> None:
    near = Click(point=Point(150, 100))
    run = write_run(tmp_path / "run", [record(step(RIGHT), *[RIGHT] * 6, *[near] * 6)], protocol="guievalkit")

    def decided(*options: str) -> float:
        found = rows(guieval("study", "decisions", run, "--format", "csv", *options).out, "decisions")
        return float(found["decisions |D| (mean)", "run"]["value"])

    assert (decided(), decided("--radius", "49"), decided("--metric", "l1", "--radius", "50")) == (1.0, 2.0, 1.0)


def test_mistakes(guieval: CommandLine, runs: dict[str, Path], tmp_path: Path) -> None:
    run, unnamed = runs["offline"], ("--figure", "shift", "--plot", tmp_path / "a.pdf")
    assert "one answer to each step" in guieval.sentence("study", "decisions", runs["single"])
    assert "it is one of text, md, csv, json" in guieval.sentence("study", "decisions", run, "--format", "mdd")
    assert "it is l2 or l1" in guieval.sentence("study", "decisions", run, "--metric", "l3")
    assert "did you mean 'diversity'?" in guieval.sentence("study", "decisions", run, "--figure", "diversities")
    assert "name it with --plot" in guieval.sentence("study", "decisions", run, "--figure", "pass")
    assert "name the baseline with --against" in guieval.sentence("study", "decisions", run, *unnamed)
    assert "must end in .pdf, .svg, .png" in guieval.sentence("study", "decisions", run, "--plot", tmp_path / "a.gif")
    assert "radius must be above 0" in guieval.sentence("study", "decisions", run, "--radius", "-1")
    assert "leave --metric out" in guieval.sentence("study", "decisions", run, "--sensitivity", "--metric", "l1")
    assert "there are 2 --label for 1 run;" in guieval.sentence("study", "decisions", run, "--label", "a", "--label", "b")
    assert "two runs would be called" in guieval.sentence("study", "decisions", run, "--against", run)
    assert str(tmp_path / "none") in guieval.sentence("study", "decisions", tmp_path / "none")
