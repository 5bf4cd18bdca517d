"""``--bench desktop``: tasks in real applications on a virtual display, judged by what they leave behind."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import psutil

from guieval.actions import Boxes, Click, DoubleClick, ExecutableAction, Open, RightClick, Stop, executable
from guieval.connectors.desktop.accessibility import elements_shown, offer_tree, require_accessibility, smallest_at
from guieval.connectors.desktop.calculator_tasks import CALCULATOR
from guieval.connectors.desktop.documents import require_readers
from guieval.connectors.desktop.editor_tasks import EDITOR
from guieval.connectors.desktop.files_tasks import FILES
from guieval.connectors.desktop.home import APPLICATIONS, NAMES
from guieval.connectors.desktop.office_tasks import OFFICE
from guieval.connectors.desktop.pointer_and_keys import command_of
from guieval.connectors.desktop.sandbox import MEGABYTE, TaskLimits, programs_digest, require_programs
from guieval.connectors.desktop.session import DesktopSession
from guieval.connectors.desktop.task import CLIPBOARD, SIZE, Language, SeededTask, judged, seeded, state_of
from guieval.connectors.desktop.terminal_tasks import TERMINAL
from guieval.connectors.pages.reference import picture_digest
from guieval.data.plugin_options import at_least
from guieval.errors import EnvironmentFailure
from guieval.online.contract import UNKNOWN, ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.steps import Score

REVISION = 1
"""Grows when a task or its start changes."""
TASKS = {task.id: task for task in (*EDITOR, *FILES, *TERMINAL, *CALCULATOR, *OFFICE)}
MANY = 8
USUAL_MEGABYTES = 500
"""What a desktop with LibreOffice takes, and a little more."""
SPARE_STEPS = 5


class Desktop(ABCEnvironment):
    """Instructions in ``language``; a task may take ``memory`` MB, ``seconds`` and so many ``processes``.

    An agent may take twice the steps of the expert and five more. Raises :class:`UsageError` if a program is missing.
    """

    name = "desktop"
    title = "Desktop"
    source = "real applications on a virtual display (gedit, pcmanfm, xterm, mate-calc, LibreOffice): make desktop"
    licence = "Apache-2.0"

    def __init__(self, *, language: Language = "en", memory: int = 1000, seconds: int = 3600, processes: int = 256) -> None:
        at_least(1, seconds=seconds)
        at_least(32, processes=processes)
        at_least(USUAL_MEGABYTES, memory=memory)
        require_programs()
        require_readers()
        self.language: Language = language
        self.limits = TaskLimits(memory, seconds, processes)
        self.has_tree = False
        """Whether applications offer their accessibility trees, which the expert's targets are from."""

    @property
    def version(self) -> str:
        return f"desktop-v{REVISION}-{self.language}-{programs_digest()}"

    def identity(self) -> Mapping[str, str]:
        with ThreadPoolExecutor(1) as thread:  # an event loop may run already
            return {"reference screen": thread.submit(asyncio.run, self._look()).result()}

    async def _look(self) -> str:
        """A digest of the first screen of the first task, which shows the fonts and the theme."""
        device = await self.open()
        try:
            await device.reset(self.tasks()[0], 0)
            return picture_digest((await device.step([])).screenshot)  # once more, since a busy machine draws late
        except EnvironmentFailure:
            return UNKNOWN
        finally:
            await device.close()

    @cached_property
    def most_devices(self) -> int:
        """As many as the memory allows that is free now; a sentence is logged if that is less than :data:`MANY`."""
        most: int = max(1, psutil.virtual_memory().available // (USUAL_MEGABYTES * MEGABYTE))
        if most < MANY:
            logging.getLogger("guieval").warning(
                "the free memory allows %d desktop%s at once, at %d MB each", most, "s" * (most > 1), USUAL_MEGABYTES
            )
        return most

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(
            EnvironmentTask(
                task.id,
                max_steps=2 * len(task.steps) + SPARE_STEPS,
                groups={
                    "application": task.application,
                    "difficulty": task.difficulty,
                    "applications": "two" if task.also else "one",
                },
                complexity=float(len(task.steps)),
            )
            for task in TASKS.values()
        )

    def with_expert(self) -> Desktop:
        require_accessibility()
        found = copy.copy(self)
        found.has_tree = True
        return found

    async def open(self) -> ABCDevice:
        return DesktopDevice(self)


class DesktopDevice(ABCDevice):
    """Each task has a new desktop; the last one ends when the next begins."""

    def __init__(self, environment: Desktop) -> None:
        self._environment = environment
        self._session: DesktopSession | None = None
        self._task: SeededTask | None = None
        self._steps = 0

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        await self.close()
        environment = self._environment
        self._task, self._steps = seeded(TASKS[task.id], seed, environment.language), 0
        self._session = await DesktopSession.start(SIZE, environment.limits, self._task.files)
        if environment.has_tree:
            await offer_tree(self._session)
        await self._session.launch(self._task.command)
        return await self._observe()

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        _, session = self._now()
        self._steps += 1
        for action in actions:
            if isinstance(action, Stop):
                break
            if isinstance(action, Open):
                if (name := NAMES.get(action.app.strip().lower())) is not None:
                    await session.launch(APPLICATIONS[name])
            elif (command := command_of(action, SIZE)) is not None:
                await session.run(*command)
            if action is not actions[-1]:
                await session.settled()
        return await self._observe()

    async def score(self) -> Score:
        task, session = self._now()
        return judged(task, state_of({**await session.home(), CLIPBOARD: await session.clipboard()}))

    async def expert(self) -> ExpertStep | None:
        task, session = self._now()
        if self._steps >= len(task.actions):
            return None
        action, stated = task.actions[self._steps], task.targets[self._steps]
        if not self._environment.has_tree:
            return ExpertStep(action, stated)
        done = executable(action)
        point = done.point if isinstance(done, Click | DoubleClick | RightClick) else None
        elements = await elements_shown(session, point)
        found = Boxes() if point is None or stated else smallest_at(elements, point)
        return ExpertStep(action, stated or found, elements=elements)

    async def memory(self) -> int:
        """The resident memory of the task's processes in bytes."""
        return await self._now()[1].memory()

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await asyncio.shield(session.close())

    def _now(self) -> tuple[SeededTask, DesktopSession]:
        if self._task is None or self._session is None:
            raise RuntimeError("reset has not been called")
        return self._task, self._session

    async def _observe(self) -> Observation:
        task, session = self._now()
        return Observation(task.instruction, await session.settled(), SIZE)
