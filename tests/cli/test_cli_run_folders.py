"""Folders of runs, as ``guieval run --mode offline --mode sop`` makes one, and online runs, in every command on runs."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.registry import model_config
from guieval.steps import EpisodeKey
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run
from tests.reports.scripted_runs import EPISODES, made_run, named
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row


def known_model(manifest: dict[str, Any]) -> None:
    manifest["model"] = model_config("qwen2.5-vl-7b").model_dump(mode="json")


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run in each of two modes, one folder above them that is none, and one run whose manifest was cut."""
    folder = tmp_path_factory.mktemp("modes")
    for mode in ("offline", "sop"):
        made_run(folder / mode, [("e00", 0), ("e01", 2)], episodes=EPISODES[:4], rewrite=known_model, mode=mode)
    (folder / "cut").mkdir()
    (folder / "cut" / "manifest.json").write_text('{"schema": 1, "con')
    return folder


LEFT_OUT = "/cut' is left out: "


def test_every_command_takes_all_runs_and_compare_pairs_the_modes(guieval: CommandLine, modes: Path, tmp_path: Path) -> None:
    done = guieval("score", modes)
    assert done.code == 0 and done.err.count("note: the run") == 1 and LEFT_OUT in done.err
    places = [line for line in done.out.splitlines() if line.startswith("run:")]
    assert places == [f"run:      {modes / mode}" for mode in ("offline", "sop")]
    listed = json.loads(guieval("score", modes, "--json").out)["runs"]
    for mode, values in zip(("offline", "sop"), listed, strict=True):
        assert guieval("score", modes / mode).out in done.out
        assert [values] == json.loads(guieval("score", modes / mode, "--json").out)["runs"]
    pair = ("--protocol", "guievalkit", "--protocol", "agentcpm", "--disagreements", tmp_path / "d.csv")
    assert guieval("score", modes, *pair).code == 0
    assert {each.name for each in tmp_path.iterdir()} == {"d-offline.csv", "d-sop.csv"}
    other = tmp_path / "other"
    for mode in ("offline", "sop", "soeval"):
        made_run(other / mode, [("e00", 1)], episodes=EPISODES[:4], rewrite=named("other"), mode=mode)
    done = guieval("compare", modes, other, "--json", "--flips", tmp_path / "flips.csv")
    assert done.code == 0 and LEFT_OUT in done.err and "note: mode soeval is only in" in done.err
    assert len(json.loads(done.out)["comparisons"]) == 2
    assert {each.name for each in tmp_path.glob("flips*")} == {"flips-offline.csv", "flips-sop.csv"}
    one = guieval("compare", modes, other / "sop")
    assert one.code == 0 and one.out == guieval("compare", modes / "sop", other / "sop").out
    assert "have no mode in common" in guieval("compare", modes, other / "soeval").err
    done = guieval("report", modes, "--no-images", "--against", modes, "--out", tmp_path / "pages")
    assert done.code == 0 and all((tmp_path / "pages" / mode / "index.html").is_file() for mode in ("offline", "sop"))
    done = guieval("plot", "actions", modes, "--out", tmp_path / "plot.svg", "--json")
    assert done.code == 0 and len(json.loads(done.out)["numbers"]) == 2
    done = guieval("leaderboard", modes, "--format", "json")
    assert done.code == 0 and len(json.loads(done.out)["rows"]) == 2 and LEFT_OUT in done.err
    done = guieval("dev", "audit", modes, "--json")
    assert done.code == 0 and LEFT_OUT in done.err
    assert [Path(each["directory"]).name for each in json.loads(done.out)["runs"]] == ["offline", "sop"]


def test_a_folder_of_one_run_is_that_run_and_one_of_none_a_mistake(guieval: CommandLine, modes: Path, tmp_path: Path) -> None:
    shutil.copytree(modes / "sop", tmp_path / "one" / "sop")
    assert guieval("score", tmp_path / "one").out == guieval("score", tmp_path / "one" / "sop").out
    shutil.copytree(modes / "cut", tmp_path / "none" / "first")
    shutil.copytree(modes / "cut", tmp_path / "none" / "second")
    assert "none of the 2 runs can be read" in guieval.sentence("leaderboard", tmp_path / "none")
    assert "manifest.json' cannot be read" in guieval.sentence("score", modes / "cut")


def test_a_run_without_any_answer_is_named_and_left_out(guieval: CommandLine, tmp_path: Path) -> None:
    target = step(Click(point=Point(500, 500)))
    runs = tmp_path / "runs"
    write_run(runs / "answered", [record(target, Click(point=Point(500, 500)), Click(point=Point(5, 5)))])
    write_run(runs / "failed", [record(target)])
    write_run(runs / "never", [], plan={EpisodeKey("made-up", "", "a"): range(1)})
    for words in (("plot", "actions"), ("plot", "matrix"), ("plot", "samples")):
        done = guieval(*words, runs, "--out", tmp_path / "p.svg", "--json")
        assert done.code == 0 and done.err.count("is left out: no step of it was answered") == 2, done
        assert "failed" not in done.out and "never" not in done.out
    board = json.loads(guieval("leaderboard", runs, "--format", "json").out)
    assert len(board["rows"]) == 1 and sum("is left out" in note for note in board["notes"]) == 2
    assert "never' is left out" in guieval("leaderboard", runs).out
    done = guieval("study", "decisions", runs)
    assert done.code == 0 and done.err.count("is left out: no step of it was answered") == 2 and "failed" not in done.out
    silent = (runs / "failed", runs / "never")
    assert "no step of these runs was answered" in guieval.sentence("leaderboard", *silent)
    for command in (("plot", "actions", *silent, "--out", tmp_path / "q.svg"), ("study", "decisions", *silent)):
        assert "no step of these runs was answered" in guieval(*command).err


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:300], "cannot be read: is not JSON"),
        (lambda text: "", "cannot be read: is not JSON"),
        (lambda text: "[]", "expected a group of values"),
        (lambda text: json.dumps(json.loads(text) | {"schema": 99}), "field schema: expected 1, 2 or 3, got 99"),
        (lambda text: text.replace('"mode": "sop"', '"mode": 7'), "field config: setting 'mode' is 7"),
        (lambda text: None, "is not there"),
    ],
)
def test_a_resume_names_the_manifest_that_is_damaged_and_touches_nothing(
    guieval: CommandLine, modes: Path, tmp_path: Path, damage: Callable[[str], str | None], message: str
) -> None:
    """Which of several runs cannot be resumed has to be known before any of them asks for anything."""
    for mode in ("offline", "sop"):
        shutil.copytree(modes / mode, tmp_path / "run" / mode)
    file = tmp_path / "run" / "sop" / "manifest.json"
    text = damage(file.read_text(encoding="utf-8"))
    file.unlink() if text is None else file.write_text(text, encoding="utf-8")
    before = {each: each.read_bytes() for each in (tmp_path / "run").rglob("*") if each.is_file()}
    sentence = guieval.sentence("run", "--resume", tmp_path / "run")
    assert str(file) in sentence and message in sentence
    assert {each: each.read_bytes() for each in (tmp_path / "run").rglob("*") if each.is_file()} == before


@every_row(
    ("command", "instead"),
    [
        (("dev", "audit", "{run}"), "audit a run of the model with --mode offline"),
        (("study", "select", "{run}"), "select from runs with --mode offline"),
        (("study", "decisions", "{run}"), "`guieval study rollout`"),
        (("plot", "actions", "{run}", "--out", "{run}.pdf"), "`guieval report RUN`"),
    ],
)
def test_an_online_run_has_other_commands(command: tuple[str, ...], instead: str, tmp_path: Path, guieval: CommandLine) -> None:
    run = online_run(tmp_path, limit=2)
    done = guieval(*(part.format(run=run) for part in command))
    assert done.code == 2 and "is an online run, whose steps have no reference actions; " in done.err and instead in done.err


def test_the_offline_runs_beside_an_online_one_are_taken(tmp_path: Path, guieval: CommandLine) -> None:
    shutil.move(online_run(tmp_path, limit=2), tmp_path / "both" / "online")
    agent = ("--adapter", tmp_path / "scripted.py", "--set", "engine=local", "--set", "bench_options.episodes=8")
    offline = guieval("run", "--model", "scripted", *agent, "--bench", "demo", "--limit", "1", "--out", tmp_path / "both" / "a")
    assert offline.code == 0, offline.err
    done = guieval("dev", "audit", tmp_path / "both", "--adapter", tmp_path / "scripted.py")
    assert "online' is left out: it is not over steps" in done.err and done.out.count("finding:") == 1


def test_a_leaderboard_has_no_coverage_for_an_online_run_and_a_rollout_is_none(tmp_path: Path, guieval: CommandLine) -> None:
    run = online_run(tmp_path, limit=2)
    (ended,) = guieval("leaderboard", run, "--format", "md").out.split("### How steps ended")[1:]
    assert "coverage" not in ended
    rows = csv.DictReader(guieval("leaderboard", run, "--format", "csv").out.splitlines())
    assert {row["coverage"] for row in rows} == {""}
    done = guieval("study", "rollout", "--model", "ocr-baseline", "--bench", "demo", "--mode", "online", "--limit", "1")
    assert done.code == 2 and "`guieval run --mode online --samples N`" in done.err
