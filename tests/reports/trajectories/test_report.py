"""The report of an online run as files: what is in it, and what is refused."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path

import pytest
from PIL import Image

from guieval.actions import Ask, DoubleClick, Drag, Hotkey, Point, Unsupported
from guieval.history import in_words
from guieval.journal.directory import TASKS
from guieval.online.trajectory import TRAJECTORIES, last_attempts
from guieval.reports.trajectories.reading import ENDINGS, read_online
from guieval.reports.trajectories.writing import SIGNS, write_trajectories
from tests.command_line import CommandLine
from tests.json_values import Json
from tests.online.test_runs import ENDED, task_id
from tests.reports.scripted_runs import edited
from tests.reports.trajectories.made_online import HOSTILE, made_hostile, online_run
from tests.reports.viewer.test_writing import value_in
from tests.rows import every_row


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return online_run(tmp_path)


def tasks(report: Path) -> dict[str, Json]:
    values = [value_in(file.read_text(encoding="ascii")) for file in sorted((report / "data").glob("task-*.js"))]
    return {str(value["name"]): value for value in values}


def test_each_trajectory_has_its_steps_and_its_end(run: Path, guieval: CommandLine) -> None:
    done = guieval("report", run)
    assert done.code == 0 and "8 trajectories, " in done.out and str(run / "report" / "index.html") in done.out
    shown = tasks(run / "report")
    assert {name: value["ended"] for name, value in shown.items()} == ENDED
    for (key, _), steps in last_attempts(run).items():
        value = shown[key.episode_id]
        assert [one["raw"] for one in value["steps"]] == [step.raw_response for step in steps]
        assert value["count"] == len(steps) and value["goal"] == steps[0].goal
        assert [f"screens/{one['screen']['name']}" for one in value["steps"]] == [step.screenshot for step in steps]
    unread, unsupported = shown[task_id(4)]["steps"][0], shown[task_id(6)]["steps"][0]
    assert unread["action"] is None and "no action in" in unread["missed"]
    assert unsupported["missed"] == "the environment cannot carry out this action"
    assert shown[task_id(0)]["progress"] == "100 %" and shown[task_id(0)]["steps"][0]["missed"] is None
    files = {file.name for file in (run / "report" / "screens").iterdir()}
    assert files == {one["screen"]["name"] for value in shown.values() for one in (*value["steps"], {"screen": value["last"]})}
    assert str(run) not in (run / "report" / "index.html").read_text()


def test_a_second_report_and_another_place(run: Path, guieval: CommandLine, tmp_path: Path) -> None:
    assert guieval("report", run).code == guieval("report", run).code == 0
    done = guieval("report", run, "--out", tmp_path / "r", "--no-images")
    assert done.code == 0 and "0 screenshots" in done.out and not (tmp_path / "r" / "screens").exists()
    assert "without images" in tasks(tmp_path / "r")[task_id(0)]["steps"][0]["screen"]["why"]


@every_row("form", ["gif", "webp"])
def test_a_moving_picture_has_each_screen(run: Path, guieval: CommandLine, form: str) -> None:
    assert guieval("report", run, "--moving", form).code == 0
    value = tasks(run / "report")[task_id(0)]
    with Image.open(run / "report" / str(value["moving"])) as picture:
        assert (picture.n_frames, max(picture.size)) == (len(value["steps"]) + 1, 640)  # type: ignore[attr-defined]


def test_repetitions_and_what_has_no_outcome(tmp_path: Path) -> None:
    run = online_run(tmp_path, samples=2, sampling={"temperature": 1.0})
    with edited(run / TASKS) as kept:
        kept[:] = [line for line in kept if line["task"]["episode_id"] not in (task_id(0), task_id(1))]
        error = {"stage": "environment", "message": "the page crashed"}
        kept[0]["samples"][1] |= {"error": error, "outcome": None}
    with edited(run / TRAJECTORIES) as steps:
        steps[:] = [line for line in steps if line["key"][2] != task_id(1)]
    found = list(read_online(run))
    ended = {name: [each.ended for each in found if each.key.episode_id == name] for name in ENDED}
    assert ended[task_id(0)] == ["unfinished", "unfinished"] and ended[task_id(1)] == ["not run"]
    assert ended[kept[0]["task"]["episode_id"]][1] == "infrastructure failure"
    assert [each.failure for each in found if each.failure] == ["the page crashed"]
    written = write_trajectories(tmp_path / "report", read_online(run))
    assert (written.episodes, written.lacking) == (15, [])
    assert "repetition 2" in (tmp_path / "report" / "index.html").read_text() and set(SIGNS) == set(ENDINGS)


def test_the_steps_of_one_task_are_in_memory_at_a_time(run: Path) -> None:
    with edited(run / TRAJECTORIES) as lines:
        lines[:] = [line | {"reasoning": "a" * 500_000} for line in lines]
    tracemalloc.start()
    online = read_online(run)
    counts = [len(trajectory.steps) for key in online.run.planned.plan for trajectory in online.of(key)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(counts) == len(lines) and peak < 500_000 * (max(counts) + 8) < 500_000 * len(lines) / 2


def test_only_screens_of_the_run_are_taken(run: Path, guieval: CommandLine) -> None:
    (run / "secret.png").write_bytes(b"secret")
    (run / "screens" / f"{'0' * 32}.png").symlink_to(run / "secret.png")
    with edited(run / TRAJECTORIES) as lines:
        for line, name in zip(lines, ("../secret", "0" * 32, "1" * 32), strict=False):
            line["screenshot"] = f"screens/{name}.png"
    done = guieval("report", run)
    assert done.code == 0 and "missing: 3 screenshots, first" in done.err
    assert not any(file.read_bytes() == b"secret" for file in (run / "report" / "screens").iterdir())


def test_hostile_texts_are_escaped(run: Path, guieval: CommandLine) -> None:
    assert guieval("report", made_hostile(run)).code == 0
    for file in (run / "report").rglob("*"):
        if file.suffix in (".html", ".js"):
            text = file.read_text()
            assert "<img src=x" not in text and "</script><script>alert" not in text
    assert any(HOSTILE in name for name in tasks(run / "report"))


def test_several_modes_and_what_is_refused(tmp_path: Path, guieval: CommandLine, run: Path) -> None:
    assert guieval("report", run, "--protocol", "guievalkit").code == 2
    done = guieval("report", run, "--against", run)
    assert done.code == 2 and "--against does not apply to an online run" in done.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    assert "is not a report" in guieval("report", run, "--out", tmp_path / "full").err
    shutil.copytree(run, tmp_path / "both" / "online")
    agent = ("--adapter", tmp_path / "scripted.py", "--set", "engine=local", "--set", "bench_options.episodes=8")
    offline = guieval("run", "--model", "scripted", *agent, "--bench", "demo", "--limit", "1", "--out", tmp_path / "both" / "a")
    assert offline.code == 0, offline.err
    assert guieval("report", tmp_path / "both").code == 0
    assert (tmp_path / "both" / "online" / "report" / "data" / "task-00000.js").exists()
    assert (tmp_path / "both" / "a" / "report" / "data" / "steps-00000.js").exists()


def test_a_device_action_is_described_by_what_it_does() -> None:
    at = Point(3, 4)
    told = {
        None: "zoom, which is not an action of the unified space",
        Hotkey(keys=("ctrl", "s")): "Press ctrl+s.",
        Drag(start=at, end=Point(5, 6)): "Drag from (3, 4) to (5, 6).",
        DoubleClick(point=at): "Double click at (3, 4).",
        Ask(text="Which?"): "Ask 'Which?'.",
    }
    assert {device: in_words(Unsupported(name="zoom", device=device)) for device in told} == told
