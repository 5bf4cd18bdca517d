"""CUBE: the tasks of packages of the CUBE standard that are acted in with a browser, e.g. MiniWoB++.

The packages require a newer Python than guieval, and another version of Playwright, so they run in a process of the Python that
has them (:mod:`guieval.connectors.pages.cube_worker`). Source: The-AI-Alliance/cube-standard (the package cube-standard
0.1.0rc10), and miniwob-cube 1.1.0, with which it was tried.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval.actions import ExecutableAction, Stop
from guieval.connectors.pages.browsergym_actions import browsergym_call
from guieval.connectors.pages.worker_process import WorkerProcess
from guieval.connectors.servers.foreign_screenshots import read_screenshot
from guieval.data.files import read_text
from guieval.data.plugin_options import at_least
from guieval.errors import UsageError
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

WORKER = Path(__file__).with_name("cube_worker.py")
"""Run as text: as a file, it would find the modules next to it before the packages of the same names."""
LISTING_SECONDS = 120.0


class Cube(ABCEnvironment):
    """The tasks of ``package``'s configuration ``config``, in the interpreter ``python``, with the browser ``chromium``.

    A task may take the steps that the package recommends, else ``max_steps``. The browser is Playwright's own if none is given.
    Its pages reach only this machine without ``allow_network``. The seed changes nothing.
    """

    name = "cube"
    title = "CUBE"
    source = "its packages: pip install miniwob-cube, workarena-cube, ..., in an environment of Python 3.12 or newer"
    licence = "Apache-2.0"
    outward = frozenset({"python", "package", "chromium", "allow_network"})

    def __init__(
        self,
        *,
        package: str = "miniwob_cube",
        config: str = "default",
        python: str = "",
        chromium: str = "",
        max_steps: int = 30,
        allow_network: bool = False,
    ) -> None:
        at_least(1, max_steps=max_steps)
        if not package.isidentifier():
            raise UsageError(f"option package is {package!r}; expected the name of a module, such as miniwob_cube")
        found = shutil.which(python) if python else sys.executable
        if found is None:
            raise UsageError(f"option python is {python!r}, which is not a program; expected the Python that has {package}")
        self.package, self.config, self.python, self.chromium = package, config, found, chromium
        self.max_steps, self.allow_network = max_steps, allow_network

    @property
    def version(self) -> str:
        return f"{self.package}-{self._listed['version']}-{self.config}"

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(EnvironmentTask(name, steps or self.max_steps) for name, steps in self._listed["tasks"].items())

    @property
    def _command(self) -> tuple[str, ...]:
        network = ("--allow-network",) if self.allow_network else ()
        return self.python, "-c", read_text(WORKER), self.package, self.config, self.chromium, *network

    async def open(self) -> ABCDevice:
        worker = await WorkerProcess.begun(self._command, "CUBE's package")
        return _CubeTask(worker)

    @cached_property
    def _listed(self) -> dict[str, Any]:
        """The worker's list of tasks. Raises :class:`UsageError` if the package cannot be used."""
        try:
            done = subprocess.run(
                self._command, input='{"do": "list"}\n', capture_output=True, text=True, timeout=LISTING_SECONDS, check=False
            )
            listed: dict[str, Any] = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UsageError(f"the package {self.package} in {self.python!r} does not answer: {error}") from None
        if problem := listed.get("failed"):
            raise UsageError(
                f"the package {self.package} cannot be used in {self.python!r}: {problem}; pip install "
                f"{self.package.replace('_', '-')} in an environment of Python 3.12 or newer and name it: "
                "--set bench_options.python=PATH"
            )
        if not listed["tasks"]:
            raise UsageError(f"the package {self.package} has no task in configuration {self.config!r}")
        return listed


class _CubeTask(ABCDevice):
    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._seen: Observation | None = None

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        return self._observed(await self._worker.ask(do="reset", task=task.id))

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        if self._seen is None:
            raise RuntimeError("reset has not been called")
        calls = []
        for action in actions:
            if isinstance(action, Stop):
                break
            calls.append(browsergym_call(action, self._seen.size) or "")
        if self._seen.over or not any(calls):
            return self._seen
        return self._observed(await self._worker.ask(do="step", actions="\n".join(filter(None, calls))))

    async def score(self) -> Score:
        reward = (await self._worker.ask(do="score"))["reward"]
        return Score.of_reward(reward, success=reward >= 1, reason=f"the package's reward is {reward:g}")

    async def close(self) -> None:
        await self._worker.close()

    def _observed(self, answer: dict[str, Any]) -> Observation:
        screenshot, size = read_screenshot(answer["screenshot"])
        self._seen = Observation(answer["goal"], screenshot, size, over=answer["over"])
        return self._seen
