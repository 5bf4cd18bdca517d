"""The trainings of a campaign: recipes of ``configs/training`` under a grid of settings, each started as ``guieval train``.

    train:
      recipe: ui-s1
      settings: {data: data/androidcontrol}
      rows: [{name: thought-free}, {name: on-policy, settings: {rollout.patch: on-policy}}]
      grid: {limit: [200, 500, 1000], rollout.budget: [0, 1, 2, null]}

Each training has a process of its own, since its memory must be free before its weights are served. What a training's folder
says of it, whether it is finished, its checkpoints and its GPU hours, is read here for all who ask.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from guieval.data.doctor.counts import counted
from guieval.data.files import open_file, read_text
from guieval.data.names import name_part
from guieval.errors import TrainingStopped, UsageError, nearest
from guieval.running.config import override, read_settings, settings_file

FOLDER = "trainings"
"""Folder of a campaign with its trainings."""
CHECKPOINTS, CHECKPOINT = "checkpoints", "checkpoint-"
"""Folder of a training's checkpoints, and what the name of each begins with."""
FINAL, COMPLETE = "final", "complete"
"""Folder of the final weights, and the file in it and in each checkpoint that is written last."""
HOURS = "hours.jsonl"
"""File of a training's step times (:mod:`guieval.training.clock`)."""
_LINES = 5
"""Lines of the output of a training that failed which its error shows."""


def _named_values(given: Any) -> Any:
    """Values of a setting by their names in those of trainings."""
    if isinstance(given, list):
        if unnamed := next((each for each in given if isinstance(each, list | dict)), None):
            raise ValueError(f"{unnamed!r} needs a name: write the values as NAME: VALUE lines")
        return {"null" if each is None else str(each): each for each in given}
    return {str(name): value for name, value in given.items()} if isinstance(given, dict) else given


Settings: TypeAlias = dict[str, Any]
Grid: TypeAlias = dict[str, Annotated[Settings, BeforeValidator(_named_values), Field(min_length=1)]]


class TrainingRow(BaseModel):
    """A variant of a campaign's trainings, which is crossed with the grid; what it does not give is that of all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field("", description="first part of the names of its trainings")
    recipe: str | None = Field(None, description="training file, or the name of a shipped one")
    settings: Settings = Field(default_factory=dict, description="settings over the recipe's; a name may be nested: a.b")
    grid: Grid | None = Field(None, description="values of settings, all combinations of which are trained")
    starts_from: str | None = Field(None, description="training whose final weights these begin with")
    evaluate: bool = Field(True, description="false: it is only what others begin with")
    gpu_hours: float | None = Field(None, gt=0, description="GPU hours of one training as published, until one is recorded")


class Trainings(TrainingRow):
    """The group ``train`` of a campaign."""

    rows: tuple[TrainingRow, ...] = ()
    accelerate: str | None = Field(None, description="accelerate configuration, or the name of a shipped one")
    processes: int = Field(1, ge=1, description="number of processes (GPUs) of a training")
    launch: str | None = Field(None, description="command before `-m guieval train`, in place of accelerate's")


@dataclass(frozen=True)
class PlannedTraining:
    """A training of a campaign. ``varied``: its row and the values of the grid, by their settings; ``recipe``: its file."""

    name: str
    recipe: Path
    overrides: tuple[str, ...]
    values: Mapping[str, Any]
    varied: Mapping[str, Any]
    directory: Path
    starts_from: PlannedTraining | None
    evaluate: bool
    gpu_hours: float | None
    launch: tuple[str, ...]
    processes: int

    @property
    def final(self) -> Path:
        """The folder of the final weights."""
        return self.directory / FINAL

    @property
    def state(self) -> str:
        """finished, begun (it has a checkpoint to resume from), or not begun."""
        if (self.final / COMPLETE).is_file():
            return "finished"
        return "begun" if checkpoints(self.directory) else "not begun"

    @property
    def model(self) -> Settings:
        """The settings with which its final weights are run: the model that the recipe trains, as it is trained."""
        names = {"model": "model", "adapter": "adapter", "scaffold": "scaffold", "model_options": "options"}
        given = {there: self.values.get(here) for here, there in {**names, "thinking": "thinking"}.items()}
        return {name: value for name, value in given.items() if value is not None} | {"model_path": str(self.final)}

    def command(self) -> list[str]:
        """What starts it, or resumes it if it has a checkpoint."""
        words = [*self.launch, "-m", "guieval", "train", str(self.values.get("kind")), "--config", str(self.recipe)]
        words += [word for each in self.overrides for word in ("--set", each)]
        return [*words, "--out", str(self.directory), *["--resume"] * (self.state == "begun")]


def checkpoints(out: Path, *, complete: bool = True) -> dict[int, Path]:
    """The checkpoints of the training in ``out`` by optimiser step, in this order: those that are complete, or the others."""
    found = {}
    for folder in (out / CHECKPOINTS).glob(f"{CHECKPOINT}*"):
        number = folder.name.removeprefix(CHECKPOINT)
        if number.isdecimal() and folder.is_dir() and (folder / COMPLETE).is_file() == complete:
            found[int(number)] = folder
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class StepCosts:
    """What optimiser steps took: their number, seconds and cards x hours; ``card`` is the device's name."""

    steps: int
    seconds: float
    hours: float
    card: str


def spent(out: Path) -> StepCosts | None:
    """What the steps of a training took, those repeated after an interruption included; ``None`` if nothing is recorded."""
    steps, seconds, hours, card = set[int](), 0.0, 0.0, ""
    try:
        lines = read_text(out / HOURS, errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        try:
            row = json.loads(line)
            taken, cards = float(row["seconds"]), int(row["cards"])
            steps.update(range(row["step"] - row["steps"], row["step"]))
        except (ValueError, TypeError, KeyError):
            continue  # the last line of a training that was killed
        seconds, hours, card = seconds + taken, hours + taken * cards / 3600, str(row.get("card", ""))
    return StepCosts(len(steps), seconds, hours, card) if steps else None


def planned_trainings(given: Trainings, out: Path) -> list[PlannedTraining]:
    """The trainings of a campaign in ``out``, in the order in which they are done.

    Raises :class:`UsageError` for a recipe that cannot be read, two trainings of one name, and one that begins with a training
    that is not before it. The settings are checked by :func:`guieval.training.study.check_trainings`.
    """
    found: dict[str, PlannedTraining] = {}
    launch = _launch(given)
    for row in given.rows or (TrainingRow(),):
        recipe = row.recipe or given.recipe
        if recipe is None:
            raise UsageError(f"train: {row.name or 'the training'} has no recipe: name a training file, or a shipped one")
        file = settings_file(Path(recipe), "training", "training")
        grid = given.grid or {} if row.grid is None else row.grid
        for chosen in product(*(values.items() for values in grid.values())):
            settings = {**given.settings, **row.settings, **dict(zip(grid, (value for _, value in chosen), strict=True))}
            name = name_part("-".join(filter(None, (row.name, *(title for title, _ in chosen))))) or file.stem
            if name in found:
                raise UsageError(f"train: two trainings are {name!r}: give one of their rows another 'name'")
            first = row.starts_from or given.starts_from
            first = None if first in (None, name, row.name) else first
            if first is not None and first not in found:
                raise UsageError(f"train: {name!r} starts from {first!r}{nearest(first, found)}, which is not before it")
            weights = None if first is None else found[first]
            overrides = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
            overrides += [] if weights is None else [f"model_path={json.dumps(str(weights.final))}"]
            values = read_settings(file, "training")
            override(values, overrides)
            titles = {key: value if _plain(value) else _number(title) for key, (title, value) in zip(grid, chosen, strict=True)}
            found[name] = PlannedTraining(
                name,
                file,
                tuple(overrides),
                values,
                {**({"row": row.name} if len(given.rows) > 1 else {}), **titles},
                out / FOLDER / name,
                weights,
                row.evaluate,
                row.gpu_hours or given.gpu_hours,
                launch,
                given.processes,
            )
    return list(found.values())


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _number(title: str) -> int | str:
    """The name of a value, as a number if it is one: of sets of 16 and 32 steps a curve can be drawn."""
    return int(title) if title.isdecimal() else title


def _launch(given: Trainings) -> tuple[str, ...]:
    if given.launch is not None:
        return tuple(shlex.split(given.launch))
    if given.accelerate is None and given.processes == 1:
        return (sys.executable,)
    file = settings_file(Path(given.accelerate or "ddp"), "training/accelerate", "accelerate configuration")
    start = (sys.executable, "-m", "accelerate.commands.launch")
    return (*start, "--config_file", str(file), "--num_processes", str(given.processes))


def trained(training: PlannedTraining, note: Callable[[str], None]) -> None:
    """Finish a training, and first the one that it starts from; what is finished is left as it is.

    ``note`` is given a line when it begins and when it ends. Its output goes to ``NAME.log`` next to its folder. Raises
    :class:`TrainingStopped` if it fails, and ``KeyboardInterrupt`` once it has ended after Ctrl-C.
    """
    if training.starts_from is not None:
        trained(training.starts_from, note)
    if training.state == "finished":
        return
    if training.state == "not begun":
        shutil.rmtree(training.directory, ignore_errors=True)  # of a training that ended before its first checkpoint
    log = training.directory.with_name(f"{training.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    note(f"training: {training.name} {'goes on' if training.state == 'begun' else 'begins'}; its output is in {log}")
    with log.open("ab") as output:
        size = output.tell()
        process = subprocess.Popen(training.command(), stdout=output, stderr=output, env=os.environ)
        try:
            code = process.wait()
        except BaseException:  # Ctrl-C, which the training gets too and ends in order
            process.terminate()
            process.wait()
            raise
    if code or training.state != "finished":
        with open_file(log) as written:
            written.seek(size)
            lines = written.read().decode("utf-8", "replace").splitlines()[-_LINES:]
        said = "\n".join(f"  {line}" for line in lines if line.strip())
        why = f"the training {training.name!r} ended with exit code {code}; the end of {log}:\n{said}"
        raise TrainingStopped(why, code or 1)
    took = spent(training.directory)
    cost = "" if took is None else f": {hours(took.hours)} GPU hours, {counted(took.steps, 'step')}"
    note(f"trained:  {training.name}{cost}")


def hours(value: float) -> str:
    """Hours with at least two digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


@dataclass(frozen=True)
class Cost:
    """GPU hours of a training that are left, and where the estimate is from; ``None`` if nothing is known."""

    left: float | None
    source: str


def costs(
    trainings: Sequence[PlannedTraining], steps: Mapping[str, int | None], computed: Mapping[str, float | None]
) -> Iterator[Cost]:
    """What is left of each training: from the step times recorded in this campaign and its optimiser ``steps``, else published.

    The step time is the training's own, else the mean of those of its row, else of all. What is neither is ``computed``, the
    GPU hours of the training's arithmetic (:mod:`guieval.training.work`).
    """
    records = [(each, took) for each in trainings if (took := spent(each.directory)) is not None]
    for each in trainings:
        if each.state == "finished":
            yield Cost(0.0, "finished")
            continue
        same = [took for other, took in records if other is each]
        same = same or [took for other, took in records if other.recipe == each.recipe and _row(other) == _row(each)]
        same = same or [took for other, took in records if other.recipe == each.recipe]
        planned, done = steps.get(each.name), max(checkpoints(each.directory), default=0)
        if same and planned is not None:
            per_step = sum(took.hours for took in same) / sum(took.steps for took in same)
            yield Cost(per_step * max(0, planned - done), "measured")
        elif each.gpu_hours is not None:
            yield Cost(each.gpu_hours, "published")
        elif (whole := computed.get(each.name)) is not None and planned:
            yield Cost(whole * max(0, planned - done) / planned, "computed")
        else:
            yield Cost(None, "unknown")


def _row(training: PlannedTraining) -> Any:
    return training.varied.get("row")
