"""MiniWoB++: 130 small web pages with a task each, in a real browser (extra ``web``).

Source: the package ``miniwob`` of the Farama Foundation (MIT licence), whose pages and judges are used as they are; Shi et al.,
"World of Bits", ICML 2017, and Liu et al., "Reinforcement Learning on Web Interfaces", arXiv 1802.08802. The time limit of 10
seconds and the reward's decay with time are switched off: both would punish a slow model. An agent sees the screenshot, the
task's words among it, and acts by mouse and keyboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from guieval.actions import ExecutableAction, Stop
from guieval.connectors.pages.browser import STEP_MILLISECONDS, Browser, require_playwright
from guieval.connectors.pages.miniwob_expert import expert_rules, expert_step
from guieval.data.plugin_options import at_least
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.steps import Score

REVISION = 5
"""Grows when the same page, seed and actions give other screenshots than before."""
SIZE = (160, 210)
"""(width, height) of a task in CSS pixels."""
_START = """seed => {
    core.EPISODE_MAX_TIME = 2147483647;
    Math.seedrandom(seed);
    core.startEpisodeReal();
    window.scrollTo(0, 0);
}"""
_STATE = """() => {
    if (typeof core === 'undefined') return null;  // another page, to which a link leads
    const words = core.getUtterance();
    return {
        goal: typeof words === 'string' ? words : words.utterance,
        ready: WOB_TASK_READY, over: WOB_DONE_GLOBAL, reward: WOB_RAW_REWARD_GLOBAL, reason: WOB_REWARD_REASON,
        text: document.getElementById('wrap').innerText,
    };
}"""
_COVER = "() => { if (typeof core !== 'undefined' && core.cover_div) core.cover_div.style.display = 'none'; }"
"""Hides the word START that covers a page after its task, so that the last screenshot shows what was done."""


class MiniWoB(ABCEnvironment):
    """A task may take ``max_steps`` steps; pages are drawn ``scale`` times as large as their 160 x 210 pixels.

    With ``text`` the observation has the page's text too, with ``address_bar`` the screen has one, and a tab strip. Raises
    :class:`UsageError` if the package or a browser is missing.
    """

    name = "miniwob"
    title = "MiniWoB++"
    source = "the Python package miniwob: pip install 'guieval[web]'"
    licence = "MIT"
    deterministic = True

    def __init__(
        self,
        *,
        max_steps: int = 20,
        scale: int = 3,
        text: bool = False,
        address_bar: bool = False,
        allow_network: bool = False,
    ) -> None:
        at_least(1, max_steps=max_steps)
        if not 1 <= scale <= 8:
            raise UsageError(f"option scale is {scale}; expected 1 to 8")
        require_playwright()
        self.pages = _pages()
        self.max_steps, self.scale, self.text = max_steps, scale, text
        self.address_bar, self.allow_network = address_bar, allow_network

    @property
    def version(self) -> str:
        return f"miniwob-{version('miniwob')}-v{REVISION}-scale{self.scale}" + "-address-bar" * self.address_bar

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(EnvironmentTask(page.stem, self.max_steps) for page in self.pages.values())

    async def open(self) -> ABCDevice:
        options: dict[str, bool] = {"allow_network": self.allow_network, "address_bar": self.address_bar}
        return _MiniWobPage(self, await Browser.launch(SIZE, self.scale, **options))


@cache
def _pages() -> dict[str, Path]:
    """The tasks' pages by name; finds the package without importing it, which would import Selenium."""
    spec = find_spec("miniwob")
    if spec is None or spec.origin is None:
        raise UsageError("benchmark 'miniwob' needs the package miniwob: pip install 'guieval[web]'")
    folder = Path(spec.origin).parent / "html" / "miniwob"
    pages = {path.stem: path for path in sorted(folder.glob("*.html"))}
    if not pages:
        raise UsageError(f"the package miniwob has no pages in {str(folder)!r}; expected version 1.0 or newer")
    return pages


class _MiniWobPage(ABCDevice):
    def __init__(self, environment: MiniWoB, browser: Browser) -> None:
        self._environment = environment
        self._browser = browser
        self._last: dict[str, Any] = {}

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        page = await self._browser.new_page(self._environment.pages[task.id].as_uri())
        self._last = {"ready": False, "over": False}
        async with self._browser.call("starting a task"):
            await page.evaluate(_START, f"{seed}")
            await page.clock.run_for(STEP_MILLISECONDS)
        for _ in range(20):
            state = await self._state()
            if state["ready"]:
                return await self._observe(state)
            async with self._browser.call("starting a task"):
                await page.clock.run_for(STEP_MILLISECONDS)
        raise EnvironmentFailure(f"the page of task {task.id!r} does not become ready")

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        for action in actions:
            if isinstance(action, Stop) or (await self._state())["over"]:
                break
            await self._browser.act(action)
        async with self._browser.call("an action"):
            await self._browser.evaluate(_COVER)
        return await self._observe(await self._state())

    async def score(self) -> Score:
        state = await self._state()
        reward = float(state["reward"]) if state["over"] else 0.0
        reason = state["reason"] or (f"the page's reward is {reward:g}" if state["over"] else "the page has not ended the task")
        return Score.of_reward(reward, success=reward > 0, reason=str(reason))

    async def expert(self) -> ExpertStep | None:
        async with self._browser.call("the expert's rules"):
            found = await self._browser.page.evaluate(expert_rules())
        return None if found is None else expert_step(found, self._browser.window)

    async def close(self) -> None:
        await self._browser.close()

    async def _state(self) -> dict[str, Any]:
        """The state of the task's page; the last one while a dialog keeps the page, or it shows another document."""
        async with self._browser.call("reading the page's state"):
            self._last = await self._browser.evaluate(_STATE) or self._last
        return self._last

    async def _observe(self, state: dict[str, Any]) -> Observation:
        return Observation(
            goal=" ".join(str(state["goal"]).split()),
            screenshot=await self._browser.screenshot(),
            size=self._browser.pixels,
            text=state["text"] if self._environment.text else None,
            over=bool(state["over"]),
        )
