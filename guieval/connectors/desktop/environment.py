"""``--bench desktop``: tasks in real applications on a virtual display, judged by what they leave behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cached_property

import psutil

from guieval.actions import ExecutableAction, Open, Stop
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
from guieval.data.plugin_options import at_least
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
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

    @property
    def version(self) -> str:
        return f"desktop-v{REVISION}-{self.language}-{programs_digest()}"

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
        task, _ = self._now()
        return ExpertStep(task.actions[self._steps]) if self._steps < len(task.actions) else None

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
