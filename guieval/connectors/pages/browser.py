"""Pages in a real Chromium, driven through Playwright: mouse, keyboard and screenshots; no page source reaches the agent.

The screen shows what a person sees: also lists of selects, dialogs, the tab that was opened last and, as an option, an address
bar (:mod:`guieval.connectors.pages.window`).

Time is stopped in a page except for :data:`STEP_MILLISECONDS` after each action, and after a wait for as long as it asks.
So a slow model sees the same page as a fast one, and animations and timers are reproducible.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from guieval import actions
from guieval.connectors.pages.fonts import fonts_variable
from guieval.connectors.pages.keys import key_name
from guieval.connectors.pages.open_pages import OpenPages, Result, ended, loaded, place_in_history
from guieval.connectors.pages.window import NO_ADDRESS, Window, WindowCommand, permitted, website
from guieval.data.files import read_text
from guieval.data.screenshots import png
from guieval.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from playwright.async_api import Browser as ChromiumProcess
    from playwright.async_api import BrowserContext, Page, Playwright

STEP_MILLISECONDS = 500
LONGEST_WAIT_MILLISECONDS = 10_000
SCROLL_SHARE = 0.5
"""The part of the page's height or width that one scroll moves the content by."""
DRAG_MILLISECONDS = 100
DRAG_MOVES = 10
"""How many moves the pointer makes from the start of a drag to its end."""
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
SELECT_LISTS = read_text(Path(__file__).with_name("select_lists.js"))
"""A script for every page, which shows the lists of selects in the page."""
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
    """A Chromium process with the pages of one task, of ``size`` (width, height) in CSS pixels, drawn ``scale`` times as large.

    What the task has open is :class:`OpenPages`' business.
    """

    def __init__(
        self,
        playwright: Playwright,
        chromium: ChromiumProcess,
        size: tuple[int, int],
        scale: float,
        *,
        address_bar: bool,
        live: bool,
    ) -> None:
        self._playwright = playwright
        self._chromium = chromium
        self._size = size
        self._scale = scale
        self._address_bar = address_bar
        self._live = live
        self._caret: Literal["hide", "initial"] = "hide"
        self._calls: set[asyncio.Timeout] = set()
        self._context: BrowserContext | None = None
        self._begin()
        chromium.on("disconnected", lambda _: self._end_calls())

    def _begin(self) -> None:
        """Forget the pages of the task before."""
        self.window = Window(self._size, address_bar=self._address_bar)
        self._open = OpenPages(self._chromium, self.window, self._end_calls)
        self._first: dict[Page, int] = {}
        self._last = b""
        self._start = ""
        self._stopped = False
        """Whether the pages' time is stopped."""

    @classmethod
    async def launch(
        cls,
        size: tuple[int, int],
        scale: float,
        *,
        allow_network: bool = False,
        address_bar: bool = False,
        live: bool = False,
        cjk: bool = False,
    ) -> Browser:
        """Start Chromium, whose pages reach only this machine without ``allow_network``.

        ``live`` is for websites: time goes on in their pages, and the address bar opens every website.

        On Linux its text is in guieval's own fonts; with ``cjk``, Chinese, Japanese and Korean text is in Noto CJK, if that is
        installed.

        Raises :class:`UsageError` if there is none, :class:`EnvironmentFailure` if it does not start.
        """
        from playwright.async_api import async_playwright

        playwright = await async_playwright().start()
        try:
            path = find_chromium(playwright.chromium.executable_path)
            network = () if allow_network else NO_NETWORK
            sandbox = () if os.geteuid() else ("--no-sandbox",)  # Chromium refuses to run as root with one
            options: dict[str, Any] = {"args": ["--disable-gpu", *network, *sandbox], "env": fonts_variable(cjk)}
            async with _failures("its start"):
                chromium = await playwright.chromium.launch(executable_path=path, **options)
        except BaseException:
            await ended(playwright.stop)
            raise
        return cls(playwright, chromium, size, scale, address_bar=address_bar, live=live)

    async def new_page(self, address: str, start: int = CLOCK_START) -> Page:
        """Open an address in a page of its own, without cookies or storage of earlier ones; ``start`` is the time there."""
        async with self.call(f"opening {address}"):
            context = await self.new_context(
                viewport={"width": self._size[0], "height": self._size[1]},
                device_scale_factor=self._scale,
                locale="en-US",
                timezone_id="UTC",
            )
            page = await context.new_page()
            await self._open.unless_dialog(self._load(page, address, start))
        return page

    async def new_context(self, **options: Any) -> BrowserContext:
        """A context of pages for a task, in place of the one before; its first page is the task's."""
        if self._context is not None:
            await self._context.close()
        await self._open.abandon()
        self._begin()
        self._context = context = await self._chromium.new_context(**options)
        await context.add_init_script(SELECT_LISTS)
        self._open.follow(context)
        return context

    async def _load(self, page: Page, address: str, start: int) -> None:
        if self._live:
            await self._begin_live(page, address)
            return
        # it runs until it is paused, which may be more than a second later, and cannot be paused in its past
        await page.clock.install(time=start - 60)
        await page.clock.pause_at(start + 1)
        self._stopped = True
        await page.goto(address, wait_until="load")
        # a caret that blinks would make screenshots differ from one another
        self._open.changed = False
        self._caret = "initial" if await page.evaluate("CSS.supports('caret-animation', 'manual')") else "hide"
        await self._align_clock(page, start)

    async def _begin_live(self, page: Page, address: str) -> None:
        await page.goto(address, wait_until="commit")
        self._open.changed, self._caret = False, "initial"
        await loaded(page)

    async def _align_clock(self, page: Page, start: int) -> None:
        """Let every page begin at the same time, and at the same distance from its next animation frame.

        Frames are counted from the page's creation, which the clock does not stop: how long a page takes to load would decide
        where its moving parts are.
        """
        elapsed = int(await page.evaluate("performance.now()"))
        await page.clock.run_for(_LOAD_MILLISECONDS - elapsed % _LOAD_MILLISECONDS)
        await page.clock.set_system_time(start + _LOAD_MILLISECONDS // 1000)

    @property
    def chromium(self) -> ForOthers:
        """The process for a program that opens the task's page, and drives it while it is not :attr:`covered`."""
        return ForOthers(self)

    @property
    def version(self) -> str:
        """Name and version of the browser."""
        return f"Chromium {self._chromium.version}"

    @property
    def page(self) -> Page:
        """The task's page: the first one of the context."""
        return self._open.first

    @property
    def covered(self) -> bool:
        """Whether a dialog or another page than the task's is shown."""
        return self.window.dialog is not None or self._open.shown is not self.page

    @property
    def pixels(self) -> tuple[int, int]:
        """(width, height) of a screenshot in pixels."""
        width, height = self.window.size
        return round(width * self._scale), round(height * self._scale)

    async def evaluate(self, script: str, argument: Any = None) -> Any:
        """What a script in the task's page comes to; ``None`` if a dialog keeps the page."""
        return None if self._open.kept else await self._open.unless_dialog(self.page.evaluate(script, argument))

    async def unless_dialog(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """As :meth:`OpenPages.unless_dialog`."""
        return await self._open.unless_dialog(work)

    async def settle(self) -> bool:
        """As :meth:`OpenPages.settle`."""
        return await self._open.settle()

    async def act(self, action: actions.ExecutableAction) -> None:
        """Carry out an action with mouse and keyboard; one that a page does not have (HOME, an app) changes nothing."""
        async with self.call("an action"):
            await self._look()
            meant = self.window.meant(action)
            if isinstance(meant, WindowCommand) and meant.way in ("accept", "dismiss"):
                await self._answer_dialog(meant)
            elif self.window.dialog is None:
                wait = action.duration if isinstance(action, actions.Wait) else 0.0
                milliseconds = min(LONGEST_WAIT_MILLISECONDS, max(STEP_MILLISECONDS, math.ceil(wait)))
                await self._open.unless_dialog(self._carry_out(meant, milliseconds))

    async def _answer_dialog(self, command: WindowCommand) -> None:
        kept = self._open.waiting
        await self._open.answer_dialog(command)
        if not kept and not self._open.kept:
            await self._open.unless_dialog(self._pass(STEP_MILLISECONDS))

    def saw(self, screenshot: bytes) -> None:
        """Take what another program has captured as the page behind the next dialog."""
        self._last = screenshot

    async def dismiss(self) -> None:
        """Close all dialogs without an answer, as the task's end does."""
        async with self.call("closing a dialog"):
            while self.window.dialog is not None:
                await self._answer_dialog(WindowCommand("dismiss"))

    async def _carry_out(self, meant: WindowCommand | actions.ExecutableAction | None, milliseconds: int) -> None:
        if isinstance(meant, WindowCommand):
            await self._obey(meant)
        elif meant is not None:
            await self._perform(meant)
        await self._pass(milliseconds)

    async def _pass(self, milliseconds: int) -> None:
        """Let time pass in all pages, and in those that this opens once they are loaded."""
        await self._run_clock(milliseconds)
        if await self._open.settle():
            await self._run_clock(STEP_MILLISECONDS)

    async def _run_clock(self, milliseconds: int) -> None:
        if self._stopped:
            await self.page.clock.run_for(milliseconds)  # that of all pages
        else:
            await asyncio.sleep(milliseconds / 1000)

    async def _obey(self, command: WindowCommand) -> None:
        from playwright.async_api import Error

        page = self._open.shown
        with suppress(Error):  # a page that the user stays on, or an address that does not answer
            match command.way:
                case "back" if await place_in_history(page) > self._first.get(page, 0):
                    await page.go_back(wait_until="commit")
                case "back":
                    await self._open.close(page)
                case "forward":
                    await page.go_forward(wait_until="commit")
                case "reload":
                    await page.reload(wait_until="commit")
                case "go":
                    address = website(command.text) if self._live else permitted(command.text, self._start)
                    if address is None:
                        self._open.notice(NO_ADDRESS)
                    else:
                        await page.goto(address, wait_until="commit")
                case "show":
                    await self._open.show(command.tab)
                case "close":
                    await self._open.close(self._open.pages[command.tab])

    async def _look(self) -> None:
        """Tell the window which tabs there are."""
        if self._open.kept:
            return
        if not self._start:
            self._start = self.page.url
            self._first[self.page] = await place_in_history(self.page)
        await self._open.tell(titles=self._address_bar)

    async def screenshot(self) -> bytes:
        """The screen as PNG, with the text caret if Chromium can stop its blinking (version 140 can).

        Behind a dialog is the page as it was shown last.
        """
        async with self.call("a screenshot"):
            await self._look()
            if not self._open.kept:
                self._last = await self._open.unless_dialog(self._captured()) or self._last
        return self.window.draw(self._last or _blank(self._size, self._scale))

    async def _captured(self) -> bytes:
        from playwright.async_api import Error

        for wait in _CAPTURE_WAITS:
            try:
                return await self._capture()
            except Error as error:
                if _REFUSED not in str(error):
                    raise
            await asyncio.sleep(wait)  # the page's time is stopped, so a later capture shows the same
        return await self._capture()

    async def _capture(self) -> bytes:
        return await self._open.shown.screenshot(animations="disabled", caret=self._caret, style=_CAPTURE_STYLE)

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

    def _end_calls(self) -> None:
        for limit in self._calls:
            if not limit.expired():
                limit.reschedule(0)

    async def close(self) -> None:
        await self._open.abandon()
        await ended(self._chromium.close)
        await ended(self._playwright.stop)

    async def _perform(self, action: actions.ExecutableAction) -> None:
        page = self._open.shown
        mouse, keyboard = page.mouse, page.keyboard
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
                await self._drag(page, action)
            case actions.Hotkey():
                await self._press_together(page, action.keys)
            case actions.LongPress():
                await mouse.move(*self._place(action.point))
                await mouse.down()
                await self._run_clock(min(LONGEST_WAIT_MILLISECONDS, math.ceil(action.duration)))
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

    async def _drag(self, page: Page, action: actions.Drag) -> None:
        if action.start is not None:
            await page.mouse.move(*self._place(action.start))
        await page.mouse.down()
        await self._run_clock(DRAG_MILLISECONDS)  # some pages begin a drag only after a pause
        await page.mouse.move(*self._place(action.end), steps=DRAG_MOVES)
        await self._run_clock(DRAG_MILLISECONDS)
        await page.mouse.up()

    async def _press_together(self, page: Page, keys: Sequence[str]) -> None:
        """Press keys that Chromium knows, in order; none at all if one is unknown."""
        names = [key_name(key) for key in keys]
        if None not in names:
            await page.keyboard.press("+".join(name for name in names if name is not None))

    def _place(self, point: actions.Point) -> tuple[float, float]:
        """A point of the unified space in CSS pixels, within the page."""
        x, y = (min(part / 1000 * length, length - 1) for part, length in zip(point, self._size, strict=True))
        return x, y


class ForOthers:
    """Playwright's object of a browser, whose contexts are those of a :class:`Browser`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def new_context(self, **options: Any) -> BrowserContext:
        return await self._browser.new_context(**options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser._chromium, name)


def _blank(size: tuple[int, int], scale: float) -> bytes:
    """A white page, behind a dialog that opens before a page was shown."""
    return png(Image.new("RGB", (round(size[0] * scale), round(size[1] * scale)), "white"))


@asynccontextmanager
async def _failures(what: str) -> AsyncIterator[None]:
    """Turn an error of Playwright into :class:`EnvironmentFailure`."""
    from playwright.async_api import Error

    try:
        yield
    except Error as error:
        raise EnvironmentFailure(f"the browser failed at {what}: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """What an error says at first; Playwright's messages go on with a log of its calls."""
    return str(error).strip().partition("\n")[0]
