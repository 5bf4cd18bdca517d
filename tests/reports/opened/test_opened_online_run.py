"""Opening an online run from Python: figures, trajectories, pictures, and what a notebook shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval import open_run
from guieval.actions import Click
from guieval.errors import ScreenshotError, UsageError
from guieval.reports.marks import ORANGE
from guieval.reports.opened import OpenedOnlineRun
from tests.json_values import read_json
from tests.kernels import html_of
from tests.online.test_runs import ENDED, figures_of, reference, task_id
from tests.reports.trajectories.made_online import HOSTILE, made_hostile, online_run


@pytest.fixture
def run(tmp_path: Path) -> OpenedOnlineRun:
    opened = open_run(online_run(tmp_path))
    assert isinstance(opened, OpenedOnlineRun)
    return opened


def test_figures_and_trajectories(run: OpenedOnlineRun) -> None:
    assert run.metrics().summary == figures_of(run.directory)
    assert len(run) == 8 and run.tasks == tuple(ENDED) and run.notes == ()
    for name, ended in ENDED.items():
        assert run.trajectory(name).trajectory.ended == ended
    steps = run.trajectory(task_id(0))
    assert [step.record.action and step.record.action.model_dump_json() for step in steps] == reference(0)
    assert [step.record.index for step in steps[1:]] == list(range(1, len(reference(0))))


def test_the_picture_of_a_step(run: OpenedOnlineRun) -> None:
    at = next(at for at, step in enumerate(reference(0)) if read_json(step)["type"] == "CLICK")
    step = run.trajectory(task_id(0))[at]
    action, image = step.record.action, step.image()
    assert isinstance(action, Click) and image.size == step.record.size
    width, height = image.size
    assert image.getpixel((round(action.point.x * width / 1000), round(action.point.y * height / 1000))) == ORANGE[:3]
    (run.directory / step.record.screenshot).write_bytes(b"")
    with pytest.raises(ScreenshotError):
        step.image()
    assert step.record.screenshot in html_of(run.trajectory(task_id(0)))


def test_what_is_not_in_the_run(run: OpenedOnlineRun) -> None:
    with pytest.raises(UsageError, match=r"no task 's0-000'.*did you mean 's0-0000'"):
        run.trajectory("s0-000")
    with pytest.raises(UsageError, match="has no repetition 1: it has 1, counted from 0"):
        run.trajectory(task_id(0), 1)


def test_a_notebook_runs_nothing_of_the_texts(tmp_path: Path) -> None:
    run = open_run(made_hostile(online_run(tmp_path)))
    assert isinstance(run, OpenedOnlineRun)
    assert "success" in html_of(run) and "37.50" in html_of(run)
    shown = html_of(run.trajectory(HOSTILE))
    assert "false completion" in shown and "&lt;img src=x" in shown and "<img src=x" not in shown
