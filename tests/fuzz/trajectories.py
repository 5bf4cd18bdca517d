"""Trajectories in ATIF of others: a run that can be scored, or one sentence about what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import ClassVar

from guieval.errors import DataError, UsageError
from guieval.exchange.atif_reading import make_run
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.metrics.kinds import of_tasks
from guieval.reports.opened import OpenedOnlineRun, open_run
from tests.online.test_runs import task_id
from tests.reports.trajectories.made_online import online_run

from . import mutations
from .engine import Target, Wrong, sentence


class Trajectories(Target):
    name: ClassVar[str] = "trajectories"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._made, self._given, self._out = folder / "atif", folder / "given", folder / "out"
        format_named("atif").write(exported(online_run(folder / "run")), self._made)
        self._names = [f"{task_id(number)}-0.trajectory.json" for number in (0, 1, 4)]

    def check(self, dice: Random) -> None:
        for folder in (self._given, self._out):
            shutil.rmtree(folder, ignore_errors=True)
        self._given.mkdir()
        for name in self._names:
            shutil.copyfile(self._made / name, self._given / name)
        changed = self._given / dice.choice(self._names)
        changed.write_bytes(mutations.file(dice, changed.read_bytes(), changed.name))
        try:
            made = make_run(self._given, self._out)
        except (DataError, UsageError) as error:
            sentence(error)
            if self._out.exists():
                raise Wrong("a refused import leaves a run") from None
            return
        run = open_run(self._out)
        if not isinstance(run, OpenedOnlineRun) or of_tasks(run.metrics().summary).tasks != made.tasks:
            raise Wrong(f"the run has not the {made.tasks} tasks that were read")
        for task in run.tasks:
            len(run.trajectory(task))
