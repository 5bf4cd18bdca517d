"""Trajectories in ATIF become the run that they were exported from."""

from __future__ import annotations

import shutil
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest

import guieval as package
from guieval.errors import DataError, UsageError
from guieval.exchange.atif_reading import make_run
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import RunFolder
from guieval.journal.directory import TASKS
from guieval.metrics.kinds import of_tasks
from guieval.online.trajectory import SCREENS
from guieval.reports.opened import OpenedOnlineRun, open_run
from guieval.reports.trajectories.reading import read_online
from tests.command_line import CommandLine
from tests.online.test_runs import SCRIPTS, STOP, TAP, settings, task_id, write_agent
from tests.reports.scripted_runs import edited


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repetitions of eight tasks, one of them with replies of several actions."""
    folder = tmp_path_factory.mktemp("run")
    agent = write_agent(folder, SCRIPTS | {task_id(1): [f"{TAP}\n{TAP}", STOP]})
    package.run(**settings(agent, samples=2, sampling={"temperature": 1.0}), out=folder / "run", progress=False)
    return folder / "run"


def trajectories(run: Path, folder: Path, *, images: bool = False) -> Path:
    format_named("atif").write(exported(run), folder, images=images)
    return folder


def shown(run: Path) -> OpenedOnlineRun:
    opened = open_run(run)
    assert isinstance(opened, OpenedOnlineRun)
    return opened


@pytest.mark.parametrize("images", [False, True])
def test_the_same_run_comes_back(run: Path, tmp_path: Path, images: bool) -> None:
    made = make_run(trajectories(run, tmp_path / "atif", images=images), tmp_path / "back")
    assert (made.tasks, made.trajectories, made.planned) == (8, 16, 8)
    before, after = shown(run), shown(tmp_path / "back")
    assert after.metrics() == before.metrics() and "pass@2" in before.metrics()
    assert list(read_online(tmp_path / "back")) == list(read_online(run))
    assert any(len(step.actions) == 2 for each in read_online(run) for step in each.steps)
    assert after.manifest == before.manifest and after.tasks == before.tasks
    screens = {path.name: path.read_bytes() for path in (run / SCREENS).iterdir()}
    copied = {path.name: path.read_bytes() for path in (tmp_path / "back").glob(f"{SCREENS}/*")}
    assert copied == (screens if images else {}) and made.screenshots == len(copied)


def test_a_repetition_that_failed_comes_back(run: Path, tmp_path: Path) -> None:
    """A task whose environment failed has no steps, and is counted."""
    copy = Path(shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns(SCREENS)))
    with edited(copy / TASKS) as lines:
        (line,) = (each for each in lines if each["task"]["episode_id"] == task_id(2))
        error = {"stage": "environment", "message": "the phone is gone"}
        line["samples"][1] = {"error": error}
    make_run(trajectories(copy, tmp_path / "atif"), tmp_path / "back")
    assert shown(tmp_path / "back").metrics() == shown(copy).metrics() and of_tasks(shown(copy).metrics().summary).failed == 1
    failed = shown(tmp_path / "back").trajectory(task_id(2), 1).trajectory
    assert failed.failure == "the phone is gone"


def test_a_part_of_the_tasks_can_be_imported(run: Path, tmp_path: Path, guieval: CommandLine) -> None:
    folder = trajectories(run, tmp_path / "atif")
    for path in folder.glob(f"{task_id(0)}-*"):
        path.unlink()
    done = guieval("data", "import", folder, "--out", tmp_path / "back")
    assert done.code == 0 and "14 trajectories of 7 tasks" in done.out
    assert "1 of the 8 planned tasks have no trajectory and are left out" in done.out
    assert len(list(RunFolder(tmp_path / "back").records)) == 7
    assert guieval("score", tmp_path / "back").code == 0
    assert "exists; give another --out" in guieval.sentence("data", "import", folder, "--out", tmp_path / "back")
    refused = guieval.sentence("data", "import", folder, "--out", tmp_path / "new", "--skip-damaged")
    assert "--skip-damaged is not for the format atif" in refused
    assert "did you mean 'atif'" in guieval.sentence("data", "import", folder, "--format", "atiff", "--out", tmp_path / "new")


def test_repetitions_are_numbered_without_gaps(run: Path, tmp_path: Path) -> None:
    folder = trajectories(run, tmp_path / "atif")
    (folder / f"{task_id(7)}-0.trajectory.json").unlink()
    make_run(folder, tmp_path / "back")
    (left,) = (each for each in read_online(tmp_path / "back") if each.key.episode_id == task_id(7))
    second = shown(run).trajectory(task_id(7), 1).trajectory
    assert left.repetition == 0 and left.outcome == second.outcome
    assert [step.raw_response for step in left.steps] == [step.raw_response for step in second.steps]


def test_a_trajectory_given_twice_is_refused(run: Path, tmp_path: Path) -> None:
    folder = trajectories(run, tmp_path / "atif")
    (folder / "copy.trajectory.json").write_bytes((folder / f"{task_id(7)}-1.trajectory.json").read_bytes())
    with pytest.raises(UsageError, match="hold the same repetition of the task demo/s0-0007"):
        make_run(folder, tmp_path / "back")


MODE = ("extra", "run", "manifest", "mode", "name")
RECORD, OF_ANOTHER = r"field extra\.run\.record", "is not the record of one repetition of the task demo/s0-9999"


@pytest.mark.parametrize(
    ("place", "value", "error", "words"),
    [
        (("extra", "run"), None, UsageError, "is not of guieval: its trajectory has no outcome"),
        (("session_id",), "another", UsageError, "trajectories of several runs"),
        (("steps", 1, "message"), None, DataError, r"s0-0000-0\.trajectory\.json, field steps\.1\.message"),
        (("steps", 1, "tool_calls", 0, "function_name"), "bash", DataError, "'bash'"),
        (MODE, "sop", DataError, r"field extra\.run\.manifest\.mode\.name: expected 'online', got 'sop'"),
        (("extra", "run", "key"), ["demo", "", "s0-9999"], DataError, rf"{RECORD}: {OF_ANOTHER}"),
    ],
)
def test_what_is_refused(
    run: Path, tmp_path: Path, place: tuple[str | int, ...], value: object, error: type[Exception], words: str
) -> None:
    """``None`` for a value that is not there."""
    folder = trajectories(run, tmp_path / "atif")
    with edited(folder / f"{task_id(0)}-0.trajectory.json") as values:
        part = reduce(getitem, place[:-1], values)
        part[place[-1]] = value
        if value is None:
            del part[place[-1]]
    with pytest.raises(error, match=words):
        make_run(folder, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_a_screenshot_outside_of_the_folder_is_not_read(run: Path, tmp_path: Path) -> None:
    folder = trajectories(run, tmp_path / "atif", images=True)
    (tmp_path / "secret.png").write_text("secret")
    with edited(folder / f"{task_id(0)}-0.trajectory.json") as values:
        linked, named = (step["extra"] for step in values["steps"][1:3])
        named["screenshot"] = "../../secret.png"
    image = folder / "images" / Path(linked["screenshot"]).name
    image.unlink()
    image.symlink_to(tmp_path / "secret.png")
    make_run(folder, tmp_path / "back")
    assert not any(path.read_bytes() == b"secret" for path in (tmp_path / "back").rglob("*.png"))
    read = shown(tmp_path / "back").trajectory(task_id(0)).trajectory
    assert [step.screenshot for step in read.steps[:2]] == [linked["screenshot"], f"{SCREENS}/secret.png"]
