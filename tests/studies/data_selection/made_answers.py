"""Runs with known right and wrong answers, as UI-R1's two sources look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Type, Wait
from guieval.steps import Sample, StepRecord, StepTaskModel
from tests.made_runs import ANSWERED, step, write_run

TARGET = Click(point=Point(200, 200))
MISS = Click(point=Point(900, 900))
SCROLL = Scroll(point=Point(500, 500), direction="up")
BACK = Press(button="BACK")
TYPE = Type(text="tea")
OPEN = Open(app="Clock")
EVERY = (TARGET, SCROLL, TYPE, BACK, OPEN, Wait(), LongPress(point=Point(500, 500)), Press(button="HOME"))
"""An action of each kind."""


def answer(task: StepTaskModel, *, right: bool, thought: str | None = None) -> StepRecord:
    """A step answered with its reference, or by a click far from any target."""
    action = task.action if right else MISS
    return StepRecord(task=task, samples=(Sample(raw_response="", thought=thought, action=action, outcome=ANSWERED),))


def target(name: str, *, platform: str = "mobile", element: str = "icon") -> StepTaskModel:
    """A grounding step of ScreenSpot."""
    more: dict[str, Any] = {"benchmark": "screenspot", "setting": "grounding", "targets": Boxes([[100, 100, 300, 300]])}
    return step(TARGET, episode=name, dataset="screenspot", groups={"platform": platform, "element": element}, **more)


def trajectory(name: str, actions: Sequence[Action]) -> list[StepTaskModel]:
    """An episode of AndroidControl with low-level instructions."""
    low: dict[str, Any] = {"length": len(actions), "benchmark": "androidcontrol-low", "dataset": "androidcontrol"}
    return [step(action, episode=name, index=index, **low) for index, action in enumerate(actions)]


def grounding_run(directory: Path, records: Sequence[StepRecord]) -> Path:
    return write_run(directory, records, benchmark="screenspot")


def control_run(directory: Path, records: Sequence[StepRecord]) -> Path:
    return write_run(directory, records, benchmark="androidcontrol-low", protocol="guievalkit")
