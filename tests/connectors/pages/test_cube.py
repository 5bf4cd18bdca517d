"""CUBE's packages: what cannot be used is said, and the real miniwob-cube if GUIEVAL_CUBE_PYTHON names a Python with it."""

from __future__ import annotations

import os
import shutil

import pytest

from guieval.actions import Click, Point, Stop, Type
from guieval.connectors.pages.cube import Cube
from guieval.errors import UsageError
from guieval.online import ABCDevice
from tests.online.devices import on
from tests.rows import every_row

REAL = "GUIEVAL_CUBE_PYTHON"
FIELD, SUBMIT = (Click(point=Point(x * 1000 / 332, y * 1000 / 214)) for x, y in ((60, 80), (50, 119)))


@every_row(
    ("options", "message"),
    [
        ({"package": "miniwob-cube"}, "option package is 'miniwob-cube'; expected the name of a module"),
        ({"python": "no-such-python"}, "option python is 'no-such-python', which is not a program"),
        ({"package": "no_cube"}, "the package no_cube cannot be used in .*: ModuleNotFoundError: .*pip install no-cube in an"),
    ],
)
def test_what_cannot_be_used_is_said(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Cube(**options).tasks()  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.skipif(REAL not in os.environ, reason=f"{REAL} names no Python 3.12 with miniwob-cube")
def test_the_real_package_is_acted_in_and_its_reward_judges() -> None:
    environment = Cube(python=os.environ[REAL], chromium=shutil.which("chromium") or "")
    (task,) = [each for each in environment.tasks() if each.id == "enter-text"]
    assert environment.version.startswith("miniwob_cube-1.") and len(environment.tasks()) == 125 and task.max_steps == 30

    async def work(device: ABCDevice) -> None:
        for right in (True, False):
            seen = await device.reset(task, 0)
            assert seen.size == (332, 214) and seen.goal.startswith('Enter "') and not seen.over
            before, text = seen.screenshot, seen.goal.split('"')[1] if right else "something else"
            seen = await device.step([FIELD, Type(text=text)])
            assert seen.screenshot != before and not seen.over and not (await device.score()).success
            seen = await device.step([SUBMIT, Stop()])
            score = await device.score()
            assert seen.over and (score.success, score.progress) == (right, float(right)), score

    on(environment, work)
