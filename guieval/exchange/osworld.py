"""Result folders of OSWorld: a folder for each task, with ``traj.jsonl`` and, once it was scored, ``result.txt``.

Source: OSWorld's ``lib_run_single.py`` and ``run.py`` (xlang-ai/OSWorld; the same in THUDM/ComputerRL@2e7f91d): results are in
``<action space>/<observation>/<model>/<domain>/<task>/``. A line of ``traj.jsonl`` is an action, with ``step_num``, the
response and the name of the screenshot after it; several actions of one response have the same ``step_num``. A line with
``Error`` is the failure of the environment, after which there is no ``result.txt``. A success is a score of 1; a part of it is
progress.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import Action, Stop, StopStatus, Unsupported
from guieval.data.files import read_bytes, read_text
from guieval.data.names import path_inside
from guieval.data.screenshots import header
from guieval.data.text_files import LineFile
from guieval.errors import DataError, UsageError, whole_text
from guieval.exchange.predictions.predicted import PredictedTask
from guieval.online.trajectory import SCREENS, TRAJECTORIES, TrajectoryStep
from guieval.steps import Ended, OnlineTask, Outcome, Repetition, Score, StepError

BENCHMARK = "osworld"
RESULT, TRAJECTORY, INSTRUCTION = "result.txt", "traj.jsonl", "instruction.txt"
_STOPS: dict[str, StopStatus] = {"DONE": "finish", "FAIL": "impossible"}


def is_osworld(folder: Path) -> bool:
    """Whether a task's folder is below."""
    return any(True for name in (RESULT, TRAJECTORY) for _ in folder.rglob(name))


class OSWorldTask(NamedTuple):
    """A task with its outcome, its folder and the lines of its trajectory."""

    task: PredictedTask
    place: Path
    steps: list[dict[str, Any]]


def osworld_tasks(folder: Path) -> Iterator[OSWorldTask]:
    """The tasks below a result folder of one model; one without a result has an error in place of an outcome.

    Raises :class:`UsageError` for the results of several models, :class:`DataError` naming file and line for damage.
    """
    places = sorted({path.parent for name in (RESULT, TRAJECTORY) for path in folder.rglob(name)})
    models = sorted({place.parent.parent for place in places})
    if len(models) > 1:
        shown = ", ".join(str(model.relative_to(folder)) for model in models[:3]) + " ..." * (len(models) > 3)
        raise UsageError(f"{str(folder)!r} has the results of {len(models)} models or settings ({shown}): name one")
    read = [(place, list(_steps(place / TRAJECTORY))) for place in places]
    most = max([1, *(_taken(steps) or 0 for _, steps in read)])
    for place, steps in read:
        goal = read_text(place / INSTRUCTION).strip() if (place / INSTRUCTION).is_file() else ""
        goal = goal or next((step["instruction"] for step in steps if isinstance(step.get("instruction"), str)), "")
        task = OnlineTask(
            benchmark=BENCHMARK,
            episode_id=place.name,
            instruction=goal or f"OSWorld's task {place.name}",
            max_steps=most,
            groups={"domain": place.parent.name},
        )
        yield OSWorldTask(PredictedTask(task, _repetition(place, steps)), place, steps)


def write_trajectories(tasks: Iterable[OSWorldTask], directory: Path) -> None:
    """Write the steps of the tasks into a run directory, with the screenshots that the model saw, as far as they are there.

    A line has the screenshot after its action, which the next step sees; the first screen is not always kept.
    """
    (directory / SCREENS).mkdir(exist_ok=True)
    with (directory / TRAJECTORIES).open("wb") as stream:
        for each in tasks:
            seen = next((path.name for path in sorted(each.place.glob("step_0_*.png"))), "initial_state.png")
            for index, line in enumerate(step for step in each.steps if "action" in step):
                name, size = _copied(each.place, seen, directory)
                seen = str(line.get("screenshot_file") or "")
                step = TrajectoryStep(
                    key=each.task.task.episode_key,
                    sample=0,
                    attempt=0,
                    index=index,
                    goal=each.task.task.instruction,
                    screenshot=name,
                    size=size,
                    raw_response=_text(line.get("response")),
                    action=_action(line["action"]),
                    executed=True,
                )
                stream.write(step.model_dump_json(exclude_none=True).encode() + b"\n")


def _copied(place: Path, name: str, directory: Path) -> tuple[str, tuple[int, int]]:
    """Copy a screenshot into the run; its path there, and its size."""
    with suppress(ValueError):  # it is missing, or no picture
        if name:
            path = path_inside(place, name)
            size = header(path).size
            target = f"{SCREENS}/{sha256(read_bytes(path)).hexdigest()[:32]}.{'png' if path.suffix == '.png' else 'jpg'}"
            shutil.copyfile(path, directory / target)
            return target, size
    return f"{SCREENS}/none.png", (1, 1)


def _text(response: Any) -> str:
    return whole_text(response if isinstance(response, str) else "" if response is None else json.dumps(response))


def _action(action: Any) -> Action:
    stopped = _STOPS.get(str(action).strip().upper())
    return Stop(status=stopped) if stopped else Unsupported(name="pyautogui", arguments={"code": action})


def _steps(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        return
    for number, _, line in LineFile(file):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataError(f"{file}, line {number}: is not JSON ({error})") from None
        if not isinstance(value, dict):
            raise DataError(f"{file}, line {number}: expected an object, got {value!r:.80}")
        yield value


def _taken(steps: list[dict[str, Any]]) -> int | None:
    """How many responses there were; ``None`` without a trajectory."""
    numbers = {step["step_num"] for step in steps if isinstance(step.get("step_num"), int)}
    return len(numbers) if steps else None


def _repetition(place: Path, steps: list[dict[str, Any]]) -> Repetition:
    errors = [str(step["Error"]) for step in steps if "Error" in step]
    if not (place / RESULT).is_file():
        message = errors[-1] if errors else f"there is no {RESULT}: the task did not come to its end"
        return Repetition(error=StepError(stage="environment", message=message))
    text = read_text(place / RESULT).strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise DataError(f"{place / RESULT}: expected a score from 0 to 1, got {text!r:.80}")
    last = next((step.get("action") for step in reversed(steps) if "action" in step), None)
    if isinstance(last, dict):  # computer_13, Claude's agents
        last = last.get("action_type") or last.get("command")
    stopped = _STOPS.get(str(last).strip().upper())
    success = value == 1.0
    ended: Ended = "success" if success else "step limit"
    if stopped is not None and not success:
        ended = "false completion" if stopped == "finish" else "wrong stop"
    outcome = Outcome(ended=ended, score=Score(success=success, progress=value), steps=_taken(steps), stopped=stopped)
    return Repetition(outcome=outcome)
