"""WebArena-Infinity: tasks in self-contained web apps, each judged by a verifier that reads the app's state.

Source: web-arena-x/webarena-infinity at 1ca7781 (MIT): ``README.md`` (one ``server.py`` an app), ``apps/APP/real-tasks.json``
and ``function-tasks.json`` (instructions and verifiers), ``evaluation/run_eval_parallel.py`` (50 steps),
``evaluation/vision_agents.py`` (a page of 1440 x 900 pixels).
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

from guieval.actions import ExecutableAction, Stop
from guieval.connectors.pages.browser import Browser, require_playwright
from guieval.connectors.servers.service import Service
from guieval.data.files import read_bytes, read_text
from guieval.data.names import parts_inside
from guieval.errors import EnvironmentFailure, UsageError, nearest, one_line
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

PAGE_TIME = 1_773_144_000
"""The time in every page at its start, in seconds since 1970: 10 March 2026, 12:00 UTC, when most of the apps' data end."""
START_SECONDS = 30.0
SETTLE_SECONDS = 5.0
"""The longest that the judge waits for a state that does not change any more."""
VERIFY_SECONDS = 60.0


class _Task(NamedTuple):
    app: str
    id: str
    instruction: str
    difficulty: str
    verifier: Path


class WebArenaInfinity(ABCEnvironment):
    """The tasks of ``checkout``, a clone of the repository, in its ``apps`` (names separated by commas; default: all).

    ``kind`` chooses the realistic tasks or those of one function each. ``width`` and ``height`` are the page's in CSS pixels;
    with ``address_bar`` the screen has one above the page, and a tab strip.
    The app's server and the verifiers are code of the checkout and run as this user.
    """

    name = "webarena-infinity"
    title = "WebArena-Infinity"
    source = "a clone of https://github.com/web-arena-x/webarena-infinity"
    licence = "MIT"
    outward = frozenset({"checkout"})

    def __init__(
        self,
        *,
        checkout: str = "",
        apps: str = "",
        kind: Literal["real", "function"] = "real",
        max_steps: int = 50,
        width: int = 1440,
        height: int = 900,
        address_bar: bool = False,
        allow_network: bool = False,
    ) -> None:
        for name, value in (("max_steps", max_steps), ("width", width), ("height", height)):
            if not 1 <= value <= 10_000:
                raise UsageError(f"option {name} is {value}; expected 1 to 10000")
        if not checkout:
            raise UsageError("environment 'webarena-infinity' needs its repository: --set bench_options.checkout=FOLDER")
        require_playwright()
        if find_spec("requests") is None:
            raise UsageError("the verifiers of webarena-infinity need the package requests: pip install requests")
        folder = Path(checkout).expanduser().resolve()
        known = sorted(file.parent.name for file in folder.glob("apps/*/server.py"))
        if not known:
            raise UsageError(
                f"option checkout is {checkout!r}, which has no apps/*/server.py; expected a clone of the repository"
            )
        self.apps = tuple(dict.fromkeys(app.strip() for app in apps.split(","))) if apps else tuple(known)
        for app in self.apps:
            if app not in known:
                raise UsageError(f"option apps names {app!r}{nearest(app, known)}; the checkout has {', '.join(known)}")
        self.folder = folder / "apps"
        self.kind, self.max_steps = kind, max_steps
        self.size, self.address_bar, self.allow_network = (width, height), address_bar, allow_network

    @property
    def version(self) -> str:
        digest = sha256()
        for app in self.apps:
            for file in sorted(
                path for path in (self.folder / app).rglob("*") if path.suffix in (".py", ".js", ".html", ".json")
            ):
                digest.update(file.relative_to(self.folder).as_posix().encode() + b"\0" + read_bytes(file) + b"\0")
        return f"webarena-infinity-{self.kind}-{digest.hexdigest()[:12]}" + "-address-bar" * self.address_bar

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(
            EnvironmentTask(
                task.id,
                self.max_steps,
                task.instruction,
                subset=task.app,
                groups={"difficulty": task.difficulty} if task.difficulty else {},
            )
            for task in self.known.values()
        )

    @cached_property
    def known(self) -> dict[tuple[str, str], _Task]:
        """The tasks by app and id. Raises :class:`UsageError` for a list that cannot be read."""
        tasks = {}
        for app in self.apps:
            file = self.folder / app / f"{self.kind}-tasks.json"
            try:
                for row in json.loads(read_text(file)):
                    verifier = file.parent.joinpath(*parts_inside(row["verify"]))
                    task = _Task(app, row["id"], " ".join(row["instruction"].split()), row.get("difficulty", ""), verifier)
                    tasks[app, task.id] = task
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise UsageError(
                    f"the list of tasks {str(file)!r} cannot be read: {one_line(f'{type(error).__name__}: {error}')}"
                ) from None
        return tasks

    async def open(self) -> ABCDevice:
        return _App(self, await Browser.launch(self.size, 1, allow_network=self.allow_network, address_bar=self.address_bar))


class _App(ABCDevice):
    """A browser, and for each task a server of its app in its first state."""

    def __init__(self, environment: WebArenaInfinity, browser: Browser) -> None:
        self._environment = environment
        self._browser = browser
        self._server: Process | None = None
        self._service: Service | None = None
        self._task: _Task | None = None

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        await self._end_server()
        self._task = known = self._environment.known[task.subset, task.id]
        self._server = await _child("serve", str(self._environment.folder / known.app))
        self._service = Service(f"the server of {known.app}", f"http://127.0.0.1:{await _port(self._server)}")
        await self._browser.new_page(f"{self._service.address}/", start=PAGE_TIME)
        await self._state()
        return await self._observe()

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        for action in actions:
            if isinstance(action, Stop):
                break
            await self._browser.act(action)
        return await self._observe()

    async def score(self) -> Score:
        assert self._task is not None and self._service is not None
        await self._state()
        verifier = await _child("verify", str(self._task.verifier), self._service.address)
        try:
            out, problem = await asyncio.wait_for(verifier.communicate(), VERIFY_SECONDS)
        except TimeoutError:
            raise EnvironmentFailure(f"the verifier {self._task.verifier.name} takes over {VERIFY_SECONDS:.0f} s") from None
        finally:
            if verifier.returncode is None:
                verifier.kill()
                await verifier.wait()
        lines = out.decode(errors="replace").split("\n")
        if verifier.returncode or len(lines) < 2:
            raise EnvironmentFailure(f"the verifier {self._task.verifier.name} failed: {_last_line(problem)}")
        success, reason = json.loads(lines[-2])
        return Score(success=success, progress=float(success), reason=reason)

    async def close(self) -> None:
        await self._end_server()
        await self._browser.close()

    async def _observe(self) -> Observation:
        assert self._task is not None
        return Observation(self._task.instruction, await self._browser.screenshot(), self._browser.pixels)

    async def _state(self) -> Any:
        """The app's state once it does not change any more: the page sends it to the server after each change."""
        assert self._service is not None
        deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
        before: Any = None
        while asyncio.get_running_loop().time() < deadline:
            try:
                now = await self._service.get("/api/state")
            except EnvironmentFailure:  # the page has sent none yet
                now = None
            if now is not None and now == before:
                return now
            before = now
            await asyncio.sleep(0.2)
        if before is None:
            raise EnvironmentFailure(f"the page of {self._service.address} has sent no state after {SETTLE_SECONDS:.0f} s")
        return before

    async def _end_server(self) -> None:
        server, service, self._server, self._service = self._server, self._service, None, None
        if service is not None:
            await service.close()
        if server is not None and server.returncode is None:
            server.kill()
            await server.wait()


async def _child(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "guieval.connectors.pages.webarena_child", *arguments), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )


async def _port(server: Process) -> int:
    """The port of an app's server, which takes connections by then."""
    assert server.stdout is not None
    try:
        line = await asyncio.wait_for(server.stdout.readline(), START_SECONDS)
    except TimeoutError:
        raise EnvironmentFailure(f"the app's server takes no connection after {START_SECONDS:.0f} s") from None
    if not line.strip().isdigit():
        _, problem = await server.communicate()
        raise EnvironmentFailure(f"the app's server ended: {_last_line(problem)}")
    return int(line)


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it printed nothing"
