"""The pages that a task has open in Chromium, which of them is shown, and the dialogs over them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from guieval.connectors.pages.window import NO_FILES, Dialog, Tab, Window, WindowCommand

if TYPE_CHECKING:
    from playwright.async_api import Browser as ChromiumProcess
    from playwright.async_api import BrowserContext, CDPSession, Page, Request
    from playwright.async_api import Dialog as PageDialog

Result = TypeVar("Result")

MOST_PAGES = 8
"""The most pages that may be open at once; a page may open popups without end."""
LOAD_SECONDS = 10.0
"""The longest that an action waits for a page that it has opened."""


class OpenPages:
    """Follows the context of a task in ``chromium``, and tells its ``window`` which tabs and which dialog there are.

    A dialog of a page stops it until it is closed, so what is under way then stays so (:meth:`unless_dialog`). ``crashed`` is
    called if a page has crashed.
    """

    def __init__(self, chromium: ChromiumProcess, window: Window, crashed: Callable[[], None]) -> None:
        self.window = window
        self.pages: list[Page] = []
        self.changed = False
        """Whether a page was opened, closed or begun to load since time passed."""
        self._chromium, self._crashed = chromium, crashed
        self._shown: Page | None = None
        self._loading: set[Page] = set()
        self._dialogs: list[PageDialog] = []
        self._opened = asyncio.Event()
        self._under_way: list[asyncio.Future[Any]] = []
        self._targets: CDPSession | None = None

    def follow(self, context: BrowserContext) -> None:
        """Take notice of what opens in a context, which has no page yet."""
        context.on("page", self._on_page)
        context.on("dialog", self._on_dialog)

    @property
    def first(self) -> Page:
        """The task's page."""
        if not self.pages:
            raise RuntimeError("no page is open")
        return self.pages[0]

    @property
    def shown(self) -> Page:
        return self._shown or self.first

    @property
    def kept(self) -> bool:
        """Whether a dialog keeps a page from going on."""
        return bool(self._dialogs)

    @property
    def waiting(self) -> bool:
        """Whether something is under way, as what a dialog keeps."""
        return bool(self._under_way)

    async def show(self, number: int) -> None:
        self._shown = self.pages[number]
        await self._shown.bring_to_front()

    async def close(self, page: Page) -> None:
        """Close a page and show the one that was opened before; the task's own stays."""
        if page is not self.first:
            await page.close()
            await self.shown.bring_to_front()

    def notice(self, words: str) -> None:
        """Show a box of the browser's own, unless a page has one."""
        if not self._dialogs:
            self.window.dialog = Dialog("notice", words)

    async def answer_dialog(self, command: WindowCommand) -> None:
        """Close the box that is shown, and go on with what it has kept."""
        if self._dialogs:
            dialog = self._dialogs.pop(0)
            await (dialog.accept(command.text) if command.way == "accept" else dialog.dismiss())
        self._show_dialog()
        await self._go_on()

    async def tell(self, *, titles: bool) -> None:
        """Tell the window which tabs there are, with their titles if it shows them."""
        found = await self.unless_dialog(_titles(self.pages)) if titles else None
        named = zip(found or [""] * len(self.pages), self.pages, strict=False)
        self.window.tabs = [Tab(title, page.url) for title, page in named]
        self.window.shown = self.pages.index(self.shown)

    async def unless_dialog(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """The result of ``work``; ``None`` if a dialog opens before its end. Then it goes on once the dialog is closed."""
        future = self._leave_under_way(work)
        await self._go_on()
        return future.result() if future.done() else None

    def _leave_under_way(self, work: Coroutine[Any, Any, Result]) -> asyncio.Future[Result]:
        future = asyncio.ensure_future(work)
        self._under_way.append(future)
        return future

    async def _go_on(self) -> None:
        """Wait for the end of all that is under way, or until a dialog opens."""
        while self._under_way and not self._dialogs:
            opened = asyncio.ensure_future(self._opened.wait())
            try:
                await asyncio.wait({*self._under_way, opened}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                opened.cancel()
            done = [each for each in self._under_way if each.done()]
            self._under_way = [each for each in self._under_way if not each.done()]
            for each in done:
                each.result()

    async def abandon(self) -> None:
        """End what a dialog keeps."""
        for each in self._under_way:
            each.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._under_way = []

    async def settle(self) -> bool:
        """Wait until all pages that were opened are known and loaded; whether there were any."""
        end = asyncio.get_running_loop().time() + LOAD_SECONDS
        while asyncio.get_running_loop().time() < end and not self._dialogs:
            if not self._loading and len(self.pages) >= min(MOST_PAGES, await self._number_of_pages()):
                break
            await asyncio.sleep(0.02)
        if not self.changed:
            return False
        self.changed = False
        await loaded(self.shown)
        return True

    async def _number_of_pages(self) -> int:
        """How many pages Chromium has; Playwright reports a new one some moments later."""
        if self._targets is None:
            self._targets = await self._chromium.new_browser_cdp_session()
        found = await self._targets.send("Target.getTargets")
        return sum(each["type"] == "page" for each in found["targetInfos"])

    def _on_page(self, page: Page) -> None:
        if len(self.pages) >= MOST_PAGES:
            self._leave_under_way(ended(page.close))
            return
        self.pages.append(page)
        self._shown, self.changed = page, True
        if len(self.pages) > 1:  # a window may ask for another size
            self._leave_under_way(_fitted(page, self.window.width, self.window.height))
        page.on("crash", lambda _: self._crashed())
        page.on("close", self._on_close)
        page.on("request", self._on_request)
        page.on("requestfailed", self._on_failed)
        page.on("load", lambda _: self._loading.discard(page))
        page.on("filechooser", lambda _: self.notice(NO_FILES))

    def _on_close(self, page: Page) -> None:
        if page in self.pages:
            self.pages.remove(page)
        self._loading.discard(page)
        if self._shown is page and self.pages:
            self._shown, self.changed = self.pages[-1], True

    def _on_request(self, request: Request) -> None:
        if (page := _navigating(request)) is not None:
            self._loading.add(page)
            self.changed = True

    def _on_failed(self, request: Request) -> None:
        if (page := _navigating(request)) is not None:
            self._loading.discard(page)

    def _on_dialog(self, dialog: PageDialog) -> None:
        self._dialogs.append(dialog)
        self._opened.set()
        self._show_dialog()

    def _show_dialog(self) -> None:
        if self._dialogs:
            first = self._dialogs[0]
            self.window.dialog = Dialog(first.type, first.message, first.default_value)
            self._shown = first.page or self._shown
        else:
            self._opened.clear()
            self.window.dialog = None


async def loaded(page: Page) -> None:
    """Wait until a page is loaded; one that goes on loading is shown as it is."""
    from playwright.async_api import Error

    with suppress(Error):
        await page.wait_for_load_state("load", timeout=LOAD_SECONDS * 1000)


async def ended(end: Callable[[], Awaitable[None]]) -> None:
    """Close something of Chromium, whatever state it is in."""
    with suppress(Exception):
        await asyncio.wait_for(end(), timeout=10)


async def place_in_history(page: Page) -> int:
    """How many addresses a page has shown before its present one."""
    session = await page.context.new_cdp_session(page)
    try:
        return int((await session.send("Page.getNavigationHistory"))["currentIndex"])
    finally:
        await session.detach()


def _navigating(request: Request) -> Page | None:
    """The page that a request loads, if it is one for a whole page."""
    from playwright.async_api import Error

    try:
        if request.is_navigation_request() and request.frame.parent_frame is None:
            return request.frame.page
    except Error:  # the request of a page that is not known yet
        pass
    return None


async def _fitted(page: Page, width: int, height: int) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it has closed itself
        await page.set_viewport_size({"width": width, "height": height})


async def _titles(pages: list[Page]) -> list[str]:
    return [await page.title() for page in pages]
