"""MobileGym: a simulated phone of 28 web apps whose own judges read its state, by the package ``bench_env`` of its repository.

Source: Purewhiter/mobilegym 0.1.0 (code Apache-2.0, data CC BY-NC 4.0), read in the copy Zhang-Henry/mobilegym at 399235e:
``bench_env/env/mobile_gym.py`` (the page and its actions), ``bench_env/runner/base.py`` (the start, the judgement, and that a
success needs an agent that has ended its task as done), ``bench_env/config.py`` (the steps of a task); arXiv 2605.26114.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from guieval import actions as act
from guieval.connectors.pages.browser import Browser, first_line, require_playwright
from guieval.connectors.pages.reference import look_of_pages
from guieval.connectors.servers.foreign_screenshots import checked_screenshot
from guieval.connectors.servers.service import Service, checked_address, look_up
from guieval.data.files import read_bytes
from guieval.data.plugin_options import seconds
from guieval.errors import EnvironmentFailure, UsageError, nearest, one_line
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import SEVERAL, Score

NAME = "MobileGym's page"
EXAMPLE = "http://127.0.0.1:4173"
START = "start it with `npm run preview -- --port 4173 --host 127.0.0.1` in a built checkout of MobileGym"
PACKAGE = "PYTHONPATH=MOBILEGYM, and pip install -r MOBILEGYM/bench_env/requirements.txt"
VIEWPORT, SCALE = (360, 800), 3


class MobileGym(ABCEnvironment):
    """The tasks of the ``split`` (several with ``+``; ``all`` for every template) on the phone that is served at ``url``.

    Tasks that use one of the apps ``without`` (separated by commas) are left out. ``max_steps`` is the same for all tasks; with
    0 they have MobileGym's own budgets. ``pause`` is the time in seconds, on average, between an action and its screenshot. A
    seed draws a task's parameters.
    """

    name = "mobilegym"
    title = "MobileGym"
    source = "its own server and package: https://github.com/Purewhiter/mobilegym"
    licence = "Apache-2.0 (code), CC BY-NC 4.0 (data)"
    outward = frozenset({"url", "split", "allow_network"})
    waits = MappingProxyType({"after_action": "pause"})

    def __init__(
        self,
        *,
        url: str = "",
        split: str = "test",
        without: str = "",
        max_steps: int = 0,
        pause: float = 1.0,
        allow_network: bool = False,
    ) -> None:
        if max_steps < 0:
            raise UsageError(f"option max_steps is {max_steps}; expected at least 1, or 0 for MobileGym's own budgets")
        seconds(60, pause=pause)
        self.address = checked_address(url, self.name, EXAMPLE)
        if urlsplit(self.address).hostname != "127.0.0.1" and not allow_network:
            raise UsageError(f"option url is {url!r}; without --allow-network pages reach only 127.0.0.1, as in {EXAMPLE}")
        require_playwright()
        spec = find_spec("bench_env")
        if spec is None or spec.origin is None:
            raise UsageError(f"environment 'mobilegym' needs MobileGym's package bench_env: {PACKAGE}")
        self.checkout = Path(spec.origin).parent.parent
        self.split, self.max_steps, self.pause, self.allow_network = split, max_steps, pause, allow_network
        self.without = tuple(app.strip() for app in without.split(",") if app.strip())

    @property
    def version(self) -> str:
        try:
            package = json.loads(read_bytes(self.checkout / "package.json"))["version"]
        except (OSError, ValueError, KeyError, TypeError):
            package = "checkout"
        digest = sha256()
        for path in sorted((self.checkout / "bench_env" / "task").rglob("*.py")):
            digest.update(read_bytes(path))
        return f"mobilegym-{package}-{digest.hexdigest()[:12]}-pause{self.pause:g}"

    def identity(self) -> Mapping[str, str]:
        return look_of_pages(SCALE, cjk=True)

    def tasks(self) -> Sequence[EnvironmentTask]:
        return self._listed

    @cached_property
    def _listed(self) -> tuple[EnvironmentTask, ...]:
        look_up(NAME, self.address, _answers, START)
        budgets = bench("config").RunnerConfig(agent="human", model_name="")
        return tuple(
            EnvironmentTask(
                name,
                self.max_steps or budgets.get_max_steps(kind()),
                groups={"suite": name.partition(".")[0], "difficulty": str(kind.difficulty), "apps": SEVERAL.join(kind.apps)},
            )
            for name, kind in self.kinds.items()
        )

    @cached_property
    def kinds(self) -> Mapping[str, Any]:
        """The classes of the tasks by id. Raises :class:`UsageError` for a split or an app that MobileGym does not have."""
        found = {task.id: type(task) for task in bench("task").load_tasks()}
        logging.getLogger("bench_env").setLevel(logging.CRITICAL)  # it logs every step to the terminal
        apps = sorted({app for kind in found.values() for app in kind.apps})
        for app in self.without:
            if app not in apps:
                raise UsageError(f"option without names {app!r}{nearest(app, apps)}; expected of {', '.join(apps)}")
        if self.split != "all":
            try:
                chosen = bench("splits").resolve_split(self.split)
            except (OSError, ValueError):
                known = sorted(path.stem for path in (self.checkout / "bench_env" / "splits").glob("*.txt"))
                raise UsageError(
                    f"MobileGym has no split {self.split!r}{nearest(self.split, known)}; expected all, {', '.join(known)}"
                ) from None
            found = {name: kind for name, kind in found.items() if name in chosen}
        found = {name: kind for name, kind in found.items() if not set(self.without) & set(kind.apps)}
        if not found:
            raise UsageError(f"no task of MobileGym's split {self.split!r} is left without {', '.join(self.without)}")
        return found

    async def open(self) -> ABCDevice:
        kinds, kind = self.kinds, bench("env").MobileGymEnv
        browser = await Browser.launch(VIEWPORT, SCALE, allow_network=self.allow_network, cjk=True)
        phone = kind(
            url=self.address,
            browser=browser.chromium,
            viewport_size=VIEWPORT,
            physical_size=(VIEWPORT[0] * SCALE, VIEWPORT[1] * SCALE),
            device_scale_factor=SCALE,
            delay_after_action=self.pause,
            verbose=False,
        )
        device = _Phone(kinds, phone, browser)
        try:
            async with failures(browser, "the page's start"):
                await phone.start()
        except BaseException:
            await device.close()
            raise
        return device


def bench(module: str) -> Any:
    """A module of ``bench_env``; :class:`UsageError` if a package that it needs is missing."""
    try:
        return import_module(f"bench_env.{module}")
    except ImportError as error:
        raise UsageError(f"MobileGym's package bench_env cannot be imported ({one_line(str(error))}): {PACKAGE}") from None


async def _answers(service: Service) -> None:
    if service.address.startswith("http:"):  # the gateway's https has a certificate that only the page's browser accepts
        status, _ = await service.ask("GET", "/index.html")  # its server has "/" for browsers alone
        if status != 200:
            raise EnvironmentFailure(f"{NAME} answers at {service.address} with the status {status}")


@asynccontextmanager
async def failures(browser: Browser, what: str) -> AsyncIterator[None]:
    """Raise :class:`EnvironmentFailure` for whatever the package raises: tasks fail in their own ways if data is missing."""
    try:
        async with browser.call(what):
            yield
    except EnvironmentFailure:
        raise
    except Exception as error:
        raise EnvironmentFailure(f"MobileGym failed at {what}: {type(error).__name__}: {one_line(first_line(error))}") from None


class _Phone(ABCDevice):
    """A ``MobileGymEnv`` in a Chromium of its own."""

    def __init__(self, kinds: Mapping[str, Any], phone: Any, browser: Browser) -> None:
        self._kinds, self._phone, self._browser = kinds, phone, browser
        self._task: Any = None
        self._first: Any = None
        self._seen: Observation | None = None
        self._status = ""

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        self._task, self._status = self._kinds[task.id](_seed=seed), ""
        async with failures(self._browser, f"the start of task {task.id!r}"):
            self._first, _ = await bench("runner.base").Controller.setup(self._phone, self._task)
            return self._observed(self._first)

    async def step(self, actions: Sequence[act.ExecutableAction]) -> Observation:
        if self._seen is None:
            raise RuntimeError("reset has not been called")
        for action in actions:
            if self._status:
                break
            if isinstance(action, act.Stop):
                await self._browser.dismiss()
            elif await self._left():
                await self._browser.act(action)
                await self._look()
                continue
            if (found := mobilegym_action(action)) is not None:
                await self._carry_out(*found)
        return self._seen

    async def _carry_out(self, name: str, data: dict[str, Any]) -> None:
        env = bench("env")
        async with failures(self._browser, f"the action {name}"):
            result = await self._browser.unless_dialog(self._phone.step(env.Action(env.ActionType(name), data)))
            await self._browser.settle()
        if result is None or await self._left():
            await self._look()
        else:
            self._observed(result.observation)
        self._status = name if result is not None and result.done else ""

    async def _left(self) -> bool:
        """Whether a dialog or another page is shown in the phone's place."""
        async with failures(self._browser, "a look at the page"):
            return self._browser.covered or bool(await self._browser.evaluate("window.__SIM__ === undefined"))

    async def _look(self) -> None:
        if await self._left():
            self._seen = Observation(self._task.description, await self._browser.screenshot(), self._browser.pixels)
            return
        async with failures(self._browser, "a screenshot"):
            self._observed(await self._phone.get_observation())

    async def score(self) -> Score:
        runner = bench("runner.base")
        await self._browser.dismiss()
        async with failures(self._browser, "the judgement"):
            seen = await self._phone.get_observation()
            state = await self._phone.get_state(required_apps=list(self._task.apps) or None)
            ended = runner.ExecutionResult(
                steps=0,
                trace=[],
                runtime_s=0.0,
                finished=bool(self._status),
                truncated=not self._status,
                stop_reason=self._status or "MAX_STEPS",
                agent_message=self._phone.agent_message,
                agent_answer=self._phone.agent_answer,
            )
            result = await runner.Evaluator().evaluate(self._task, self._first, replace(seen, state=state), ended)
        if result.judge_error:
            raise EnvironmentFailure(f"MobileGym's judge failed: {one_line(str(result.judge_error))}")
        done = self._status == "COMPLETE"
        success = bool(result.passed) and done
        return Score(
            success=success,
            progress=1.0 if success else min(1.0, max(0.0, float(result.progress))),
            side_effects=tuple(str(change.get("field", change)) for change in result.warnings),
            reason=_reason(result, done),
        )

    async def close(self) -> None:
        await self._browser.close()

    def _observed(self, seen: Any) -> Observation:
        screenshot, size = checked_screenshot(seen.get_screenshot_bytes())
        self._browser.saw(screenshot)
        self._seen = Observation(self._task.description, screenshot, size)
        return self._seen


def _reason(result: Any, done: bool) -> str:
    if result.success:
        left = "" if done else ", but the agent has not ended the task as done"
        return f"all of MobileGym's checks hold{left}" if result.clean else "unexpected changes of the phone's state"
    issue: dict[str, Any] = next((issue for issue in result.issues if not issue.get("passed")), {})
    if "reason" in issue:
        return one_line(str(issue["reason"]))
    expected, actual = issue.get("expected"), issue.get("actual")
    return one_line(f"{issue.get('field', 'a check')} is {actual!r:.80}; expected {expected!r:.80}")


def mobilegym_action(action: act.ExecutableAction) -> tuple[str, dict[str, Any]] | None:
    """MobileGym's type and data of an action; ``None`` for one that it does not have. Its points are in [0, 1000] too."""
    match action:
        case act.Click():
            return "CLICK", {"point": list(action.point)}
        case act.DoubleClick():
            return "DOUBLE_TAP", {"point": list(action.point)}
        case act.LongPress():
            return "LONG_PRESS", {"point": list(action.point), "duration": int(action.duration)}
        case act.Scroll():
            start, end = act.scroll_path(action)
            return "SWIPE", {"point1": list(start), "point2": list(end)}
        case act.Drag(start=act.Point() as start):
            return "DRAG", {"point1": list(start), "point2": list(action.end)}
        case act.Type():
            return "TYPE", {"value": action.text}
        case act.Open():
            return "AWAKE", {"value": action.app}
        case act.Press():
            return action.button, {}
        case act.Wait():
            return "WAIT", {"value": action.duration / 1000}
        case act.Answer():
            return "ANSWER", {"value": action.text}
        case act.Stop(status="finish"):
            return "COMPLETE", {}
        case act.Stop():
            return "ABORT", {}
    return None
