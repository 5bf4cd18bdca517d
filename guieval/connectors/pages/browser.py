"""Pages in a real Chromium, driven through Playwright: mouse, keyboard and screenshots; no page source reaches the agent.

Time is stopped in a page except for :data:`STEP_MILLISECONDS` after each action, and after a wait for as long as it asks.
So a slow model sees the same page as a fast one, and animations and timers are reproducible.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from guieval import actions
from guieval.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from playwright.async_api import Browser as ChromiumProcess
    from playwright.async_api import Page, Playwright

STEP_MILLISECONDS = 500
LONGEST_WAIT_MILLISECONDS = 10_000
SCROLL_SHARE = 0.5
"""The part of the page's height or width that one scroll moves the content by."""
DRAG_MILLISECONDS = 100
DRAG_MOVES = 10
"""How many moves the pointer makes from the start of a drag to its end."""
_KEYS = {
    **dict.fromkeys(("ctrl", "control", "ctrlleft", "ctrlright"), "Control"),
    **dict.fromkeys(("shift", "shiftleft", "shiftright"), "Shift"),
    **dict.fromkeys(("alt", "option", "altleft", "altright"), "Alt"),
    **dict.fromkeys(("meta", "cmd", "command", "win", "super"), "Meta"),
    **dict.fromkeys(("enter", "return", "kpenter"), "Enter"),
    **dict.fromkeys(("esc", "escape"), "Escape"),
    **dict.fromkeys(("delete", "del"), "Delete"),
    **dict.fromkeys(("pageup", "pgup"), "PageUp"),
    **dict.fromkeys(("pagedown", "pgdn"), "PageDown"),
    **{f"{arrow}{side}": f"Arrow{side.capitalize()}" for side in ("up", "down", "left", "right") for arrow in ("", "arrow")},
    **{
        "tab": "Tab",
        "backspace": "Backspace",
        "home": "Home",
        "end": "End",
        "insert": "Insert",
        "space": "Space",
        "spacebar": "Space",
    },
    **{"plus": "+", "minus": "-"},
}
CLOCK_START = 1_600_000_000
"""The time in every page at its start, in seconds since 1970."""
_LOAD_MILLISECONDS = 4000
"""How long a page lasts before its first screenshot, or a multiple of it; a multiple of a frame's 16 ms."""
NO_NETWORK = (
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-server=127.0.0.1:9",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",  # the same, as newer versions name it
)
"""Options of Chromium under which a page reaches no host; loopback addresses are exempt from proxies."""
MOST_PAGES = 8
"""The most pages that may be open at once; a page may open popups without end, and none of them is shown."""
_CAPTURE_STYLE = "* { caret-animation: manual !important; } html { will-change: opacity !important; }"
"""Stops the caret's blinking, and lets Chromium divide the page into layers as if it had drawn nothing before: else pixels at
round corners depend on how many frames of an animation it drew, thus on the load of the machine."""
_REFUSED = "Unable to capture screenshot"
"""Chromium's message when it refuses a capture for a moment, e.g. after its start on a busy machine."""
_CAPTURE_WAITS = (0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts at a capture."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def require_playwright() -> None:
    """Raise :class:`UsageError` if Playwright is not installed or no Chromium is found."""
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        raise UsageError("web pages need Playwright: pip install 'guieval[web]'") from None


def find_chromium(own: str) -> str:
    """The path of a Chromium: ``$GUIEVAL_CHROMIUM``, else ``own`` (Playwright's), else one on the PATH.

    Raises :class:`UsageError` if there is none.
    """
    given = os.environ.get("GUIEVAL_CHROMIUM")
    if given is not None and not Path(given).is_file():
        raise UsageError(f"GUIEVAL_CHROMIUM names {given!r}, which is not a file")
    candidates = [given, own if Path(own).is_file() else None, *(shutil.which(name) for name in _NAMES)]
    found = next((path for path in candidates if path), None)
    if found is None:
        raise UsageError(
            "no Chromium was found; install one with `playwright install chromium` or the system's package manager, "
            "or set GUIEVAL_CHROMIUM to its path"
        )
    return found


class Browser:
    """A Chromium process with one page of ``size`` (width, height) in CSS pixels, drawn ``scale`` times as large."""

    def __init__(self, playwright: Playwright, chromium: ChromiumProcess, size: tuple[int, int], scale: float) -> None:
        self._playwright = playwright
        self._chromium = chromium
        self._page: Page | None = None
        self._size = size
        self._scale = scale
        self._caret: Literal["hide", "initial"] = "hide"
        self._calls: set[asyncio.Timeout] = set()
        self._closing: set[asyncio.Task[None]] = set()
        chromium.on("disconnected", lambda _: self._end_calls())

    @classmethod
    async def launch(cls, size: tuple[int, int], scale: float, *, allow_network: bool = False) -> Browser:
        """Start Chromium, whose pages reach only this machine without ``allow_network``.

        Raises :class:`UsageError` if there is none, :class:`EnvironmentFailure` if it does not start.
        """
        from playwright.async_api import async_playwright

        playwright = await async_playwright().start()
        try:
            path = find_chromium(playwright.chromium.executable_path)
            network = () if allow_network else NO_NETWORK
            sandbox = () if os.geteuid() else ("--no-sandbox",)  # Chromium refuses to run as root with one
            async with _failures("its start"):
                chromium = await playwright.chromium.launch(executable_path=path, args=["--disable-gpu", *network, *sandbox])
        except BaseException:
            await _ended(playwright.stop)
            raise
        return cls(playwright, chromium, size, scale)

    async def new_page(self, address: str, start: int = CLOCK_START) -> Page:
        """Open an address in a page of its own, without cookies or storage of earlier ones; ``start`` is the time there."""
        async with self.call(f"opening {address}"):
            if self._page is not None:
                await self._page.context.close()
            context = await self._chromium.new_context(
                viewport={"width": self._size[0], "height": self._size[1]},
                device_scale_factor=self._scale,
                locale="en-US",
                timezone_id="UTC",
            )
            self._page = await context.new_page()
            self._page.on("crash", lambda _: self._end_calls())
            context.on("page", self._close_popup)
            # it runs until it is paused, which may be more than a second later, and cannot be paused in its past
            await self._page.clock.install(time=start - 60)
            await self._page.clock.pause_at(start + 1)
            await self._page.goto(address, wait_until="load")
            await self._align_clock(start)
            # a caret that blinks would make screenshots differ from one another
            self._caret = "initial" if await self._page.evaluate("CSS.supports('caret-animation', 'manual')") else "hide"
        return self._page

    async def _align_clock(self, start: int) -> None:
        """Let every page begin at the same time, and at the same distance from its next animation frame.

        Frames are counted from the page's creation, which the clock does not stop: how long a page takes to load would decide
        where its moving parts are.
        """
        elapsed = int(await self.page.evaluate("performance.now()"))
        await self.page.clock.run_for(_LOAD_MILLISECONDS - elapsed % _LOAD_MILLISECONDS)
        await self.page.clock.set_system_time(start + _LOAD_MILLISECONDS // 1000)

    @property
    def chromium(self) -> ChromiumProcess:
        """The process, for pages that another program opens and drives."""
        return self._chromium

    @property
    def page(self) -> Page:
        """The page of the last :meth:`new_page`."""
        if self._page is None:
            raise RuntimeError("no page is open")
        return self._page

    @property
    def pixels(self) -> tuple[int, int]:
        """(width, height) of a screenshot in pixels."""
        return round(self._size[0] * self._scale), round(self._size[1] * self._scale)

    async def act(self, action: actions.ExecutableAction) -> None:
        """Carry out an action with mouse and keyboard; one that a page does not have (HOME, an app) changes nothing."""
        async with self.call("an action"):
            await self._perform(action)
            wait = action.duration if isinstance(action, actions.Wait) else 0.0
            await self.page.clock.run_for(min(LONGEST_WAIT_MILLISECONDS, max(STEP_MILLISECONDS, math.ceil(wait))))

    async def screenshot(self) -> bytes:
        """The page as PNG, with the text caret if Chromium can stop its blinking (version 140 can)."""
        from playwright.async_api import Error

        async with self.call("a screenshot"):
            for wait in _CAPTURE_WAITS:
                try:
                    return await self._capture()
                except Error as error:
                    if _REFUSED not in str(error):
                        raise
                await asyncio.sleep(wait)  # the page's time is stopped, so a later capture shows the same
            return await self._capture()

    async def _capture(self) -> bytes:
        return await self.page.screenshot(animations="disabled", caret=self._caret, style=_CAPTURE_STYLE)

    @asynccontextmanager
    async def call(self, what: str) -> AsyncIterator[None]:
        """Calls of Playwright: :class:`EnvironmentFailure` for its errors, and as soon as Chromium or its page has ended.

        Playwright itself leaves about one call in forty unanswered when Chromium is killed. ``what`` completes the sentence
        "the browser failed at ...".
        """
        try:
            async with _failures(what), asyncio.timeout(None) as limit:
                self._calls.add(limit)
                if not self._chromium.is_connected():
                    self._end_calls()
                yield
        except TimeoutError:
            raise EnvironmentFailure(f"the browser failed at {what}: Chromium or its page has ended") from None
        finally:
            self._calls.discard(limit)

    def _close_popup(self, page: Page) -> None:
        if len(page.context.pages) > MOST_PAGES:
            closing = asyncio.create_task(_ended(page.close))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _end_calls(self) -> None:
        for limit in self._calls:
            if not limit.expired():
                limit.reschedule(0)

    async def close(self) -> None:
        await _ended(self._chromium.close)
        await _ended(self._playwright.stop)

    async def _perform(self, action: actions.ExecutableAction) -> None:
        mouse, keyboard = self.page.mouse, self.page.keyboard
        match action:
            case actions.Click():
                await mouse.click(*self._place(action.point))
            case actions.DoubleClick():
                await mouse.dblclick(*self._place(action.point))
            case actions.RightClick():
                await mouse.click(*self._place(action.point), button="right")
            case actions.Hover():
                await mouse.move(*self._place(action.point))
            case actions.Drag():
                await self._drag(action)
            case actions.Hotkey():
                await self._press_together(action.keys)
            case actions.LongPress():
                await mouse.move(*self._place(action.point))
                await mouse.down()
                await self.page.clock.run_for(min(LONGEST_WAIT_MILLISECONDS, math.ceil(action.duration)))
                await mouse.up()
            case actions.Scroll():
                width, height = self._size
                await mouse.move(*self._place(action.point))
                share = SCROLL_SHARE if action.distance is None else min(action.distance, 100_000) / 1000
                across = {"left": 1, "right": -1}.get(action.direction, 0) * share * width
                down = {"up": 1, "down": -1}.get(action.direction, 0) * share * height
                await mouse.wheel(across, down)
                await asyncio.sleep(0.05)  # the compositor scrolls in real time, and reports no end
            case actions.Type():
                await keyboard.type(action.text)
            case actions.Press(button="ENTER"):
                await keyboard.press("Enter")

    async def _drag(self, action: actions.Drag) -> None:
        mouse = self.page.mouse
        if action.start is not None:
            await mouse.move(*self._place(action.start))
        await mouse.down()
        await self.page.clock.run_for(DRAG_MILLISECONDS)  # some pages begin a drag only after a pause
        await mouse.move(*self._place(action.end), steps=DRAG_MOVES)
        await self.page.clock.run_for(DRAG_MILLISECONDS)
        await mouse.up()

    async def _press_together(self, keys: Sequence[str]) -> None:
        """Press keys that Chromium knows, in order; none at all if one is unknown."""
        names = [key_name(key) for key in keys]
        if None not in names:
            await self.page.keyboard.press("+".join(name for name in names if name is not None))

    def _place(self, point: actions.Point) -> tuple[float, float]:
        """A point of the unified space in CSS pixels, within the page."""
        x, y = (min(part / 1000 * length, length - 1) for part, length in zip(point, self._size, strict=True))
        return x, y


def key_name(key: str) -> str | None:
    """Chromium's name of a key as pyautogui or xdotool write it, e.g. ``ctrl``, ``Return`` or ``a``; ``None`` for another."""
    if len(key) == 1:
        return key if key.isprintable() else None
    plain = key.strip().lower().replace("_", "").replace(" ", "")
    if re.fullmatch(r"f([1-9]|1[0-2])", plain):
        return plain.upper()
    return _KEYS.get(plain)


@asynccontextmanager
async def _failures(what: str) -> AsyncIterator[None]:
    """Turn an error of Playwright into :class:`EnvironmentFailure`."""
    from playwright.async_api import Error

    try:
        yield
    except Error as error:
        raise EnvironmentFailure(f"the browser failed at {what}: {first_line(error)}") from None


async def _ended(end: Callable[[], Awaitable[None]]) -> None:
    with suppress(Exception):  # whatever state a browser that crashed is in
        await asyncio.wait_for(end(), timeout=10)


def first_line(error: Exception) -> str:
    """What an error says at first; Playwright's messages go on with a log of its calls."""
    return str(error).strip().partition("\n")[0]
