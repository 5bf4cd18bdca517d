"""BrowserGym: the tasks of its benchmarks (MiniWoB++, WebArena, WorkArena, ...), by its gymnasium interface.

BrowserGym requires another version of Playwright than guieval, so it runs in a process of the Python that has it
(:mod:`guieval.connectors.pages.browsergym_worker`). Source: ServiceNow/BrowserGym at 9e779f0 (Apache-2.0).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval.actions import Answer, ExecutableAction, Stop, Wait
from guieval.connectors.pages.browser import SELECT_LISTS
from guieval.connectors.pages.browsergym_actions import browsergym_call
from guieval.connectors.pages.fonts import fonts_digest, fonts_variable
from guieval.connectors.pages.reference import ADDRESS, picture_digest
from guieval.connectors.pages.window import NO_ADDRESS, NO_FILES, Dialog, Tab, Window, WindowCommand, permitted
from guieval.connectors.pages.worker_process import WorkerProcess
from guieval.connectors.servers.foreign_screenshots import read_screenshot
from guieval.data.files import read_text
from guieval.data.plugin_options import at_least
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.contract import UNKNOWN, ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

WORKER = Path(__file__).with_name("browsergym_worker.py")
"""Run as text: as a file, it would find the modules next to it before the packages of the same names."""
LISTING_SECONDS = 120.0


class BrowserGym(ABCEnvironment):
    """The tasks of ``benchmark``, the name of its package ``browsergym.NAME``, in the interpreter ``python``.

    What the benchmark needs besides, such as ``MINIWOB_URL`` or addresses of WebArena's sites, is read from the environment
    variables by BrowserGym itself. Its pages reach only this machine without ``allow_network``. With ``address_bar`` the screen
    has one above the page, and a tab strip.
    """

    name = "browsergym"
    title = "BrowserGym"
    source = "its packages: pip install browsergym-miniwob, browsergym-webarena, ..., in a Python environment of their own"
    licence = "Apache-2.0"
    outward = frozenset({"python", "benchmark", "allow_network"})

    def __init__(
        self,
        *,
        benchmark: str = "miniwob",
        python: str = "",
        max_steps: int = 30,
        address_bar: bool = False,
        allow_network: bool = False,
    ) -> None:
        at_least(1, max_steps=max_steps)
        if not benchmark.isidentifier():
            raise UsageError(f"option benchmark is {benchmark!r}; expected the name of a package, such as miniwob")
        found = shutil.which(python) if python else sys.executable
        if found is None:
            raise UsageError(f"option python is {python!r}, which is not a program; expected the Python that has BrowserGym")
        self.benchmark, self.python, self.max_steps = benchmark, found, max_steps
        self.address_bar, self.allow_network = address_bar, allow_network

    @property
    def version(self) -> str:
        return f"browsergym-{self._listed['version']}-{self.benchmark}" + "-address-bar" * self.address_bar

    def identity(self) -> Mapping[str, str]:
        fonts = {"fonts": fonts_digest(cjk=True), "device scale": "1"}
        try:
            seen = self._answered(do="identity", address=ADDRESS)
            page, _ = read_screenshot(seen["screenshot"])
            return {"browser": f"Chromium {seen['browser']}", "reference page": picture_digest(page), **fonts}
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, EnvironmentFailure):
            return {"browser": UNKNOWN, "reference page": UNKNOWN, **fonts}

    def tasks(self) -> Sequence[EnvironmentTask]:
        prefix = f"browsergym/{self.benchmark}."
        return tuple(EnvironmentTask(name.removeprefix(prefix), self.max_steps) for name in self._listed["tasks"])

    @property
    def _command(self) -> tuple[str, ...]:
        network = ("--allow-network",) if self.allow_network else ()
        return self.python, "-c", read_text(WORKER), self.benchmark, SELECT_LISTS, *network

    async def open(self) -> ABCDevice:
        worker = await WorkerProcess.begun(self._command, "BrowserGym", fonts_variable(cjk=True))
        return _Page(self, worker)

    def _answered(self, **request: str) -> dict[str, Any]:
        """A worker's answer to one request."""
        done = subprocess.run(
            self._command,
            input=json.dumps(request) + "\n",
            capture_output=True,
            text=True,
            timeout=LISTING_SECONDS,
            env=fonts_variable(cjk=True),
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    @cached_property
    def _listed(self) -> dict[str, Any]:
        """The worker's list of tasks. Raises :class:`UsageError` if BrowserGym cannot be used."""
        try:
            listed = self._answered(do="list")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UsageError(f"BrowserGym in {self.python!r} does not answer: {error}") from None
        if problem := listed.get("failed"):
            raise UsageError(
                f"BrowserGym's {self.benchmark} cannot be used in {self.python!r}: {problem}; pip install "
                f"browsergym-{self.benchmark} in a Python environment and name it: --set bench_options.python=PATH"
            )
        if not listed["tasks"]:
            raise UsageError(f"BrowserGym has no task of {self.benchmark!r} in {self.python!r}")
        return listed


class _Page(ABCDevice):
    def __init__(self, environment: BrowserGym, worker: WorkerProcess) -> None:
        self._environment = environment
        self._worker = worker
        self._window = Window((1, 1))
        self._last: dict[str, Any] = {}
        self._page = b""
        self._start = ""

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        name = f"browsergym/{self._environment.benchmark}.{task.id}"
        answer = await self._worker.ask(do="reset", task=name, seed=seed)
        _, size = read_screenshot(answer["screenshot"])
        self._window = Window(size, address_bar=self._environment.address_bar)
        self._start = answer["tabs"][0][1]
        return self._seen(answer)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        for action in actions or (Wait(),):
            if self._last["over"]:
                break
            while isinstance(action, Stop | Answer) and self._window.dialog is not None:
                await self._command(WindowCommand("dismiss"))
            meant = self._window.meant(action)
            if isinstance(meant, WindowCommand):
                await self._command(meant)
            elif self._window.dialog is None:
                call = meant and browsergym_call(meant, (self._window.width, self._window.height))
                self._seen(await self._worker.ask(do="step", actions=call or "noop()"))
            if isinstance(action, Stop):
                break
        return self._seen(self._last)

    async def _command(self, command: WindowCommand) -> None:
        if self._window.dialog is not None and self._window.dialog.kind == "notice":
            self._window.dialog = None
        elif command.way == "go" and (address := permitted(command.text, self._start)) is None:
            self._window.dialog = Dialog("notice", NO_ADDRESS)
        else:
            text = address if command.way == "go" else command.text
            self._seen(await self._worker.ask(do="command", way=command.way, text=text, tab=command.tab))

    async def score(self) -> Score:
        reward = float(self._last["reward"])
        return Score.of_reward(reward, success=reward >= 1, reason=f"BrowserGym's reward is {reward:g}")

    async def close(self) -> None:
        await self._worker.close()

    def _seen(self, answer: dict[str, Any]) -> Observation:
        if "dialog" in answer:  # the page is as it was
            self._window.dialog = Dialog(*answer["dialog"])
        elif answer is not self._last:
            self._last, self._window.dialog = answer, Dialog("notice", NO_FILES) if answer["files"] else None
            self._page, _ = read_screenshot(answer["screenshot"])
            self._window.tabs, self._window.shown = [Tab(*each) for each in answer["tabs"]], answer["tab"]
        return Observation(self._last["goal"], self._window.draw(self._page), self._window.size, over=self._last["over"])
