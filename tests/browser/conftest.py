"""A headless Chromium, and a page in it that notes everything a hostile text could have made it do."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from guieval.connectors.pages.browser import find_chromium
from guieval.errors import UsageError
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

AXE = "axe-core@4.14.1"
"""The package whose rules for accessible pages are checked; ``GUIEVAL_AXE`` names its axe.min.js, else npm brings it."""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
SLOWER = float(os.environ.get("GUIEVAL_SLOWER_PAGES", "1"))
"""How much slower the pages' scripts are made, which shows a test that reads a page before it is done."""


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, kept in the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "guieval" / AXE / "axe.min.js"
    file = Path(os.environ.get("GUIEVAL_AXE", cache))
    if not file.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm, which brings axe-core, is not installed (or set GUIEVAL_AXE)")
        folder = tmp_path_factory.mktemp("axe")
        packed = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
        archive = next(folder.glob("*.tgz"), None)
        if archive is None:
            pytest.skip(f"npm cannot bring {AXE}: {packed.stderr.strip()[-200:]}")
        with tarfile.open(archive) as opened_archive:
            content = opened_archive.extractfile("package/axe.min.js")
            assert content is not None
            cache.parent.mkdir(parents=True, exist_ok=True)
            temporary = cache.with_suffix(f".{os.getpid()}")
            temporary.write_bytes(content.read())
        temporary.replace(cache)
        file = cache
    return file.read_text(encoding="utf-8")


@dataclass
class Opened:
    """A page and what it did: dialogs, console errors, exceptions, and every address it asked for."""

    page: Page
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def refuse(self, dialog: Dialog) -> None:
        """Note a dialog and close it, or the page would wait for somebody."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def note_failure(self, request: Request) -> None:
        """Note a failed request, except one that the page itself, or the next one, cut short."""
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"failed: {request.url}: {request.failure}")

    def go(self, report: Path, fragment: str = "") -> Page:
        """Open a report from disk and wait until a step is shown."""
        from playwright.sync_api import expect

        self.page.goto(f"{(report / 'index.html').as_uri()}{fragment}")
        expect(self.page.locator("#strip [aria-current=step]")).to_have_count(1)
        return self.page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one module's tests: while it lives, Playwright's event loop keeps this thread from running another."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync_api.expect.set_options(timeout=1000 * PATIENCE)
    with sync_api.sync_playwright() as playwright:
        try:
            path = find_chromium(playwright.chromium.executable_path)
        except UsageError as error:
            pytest.skip(str(error))
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, timeout=1000 * PATIENCE)
        yield browser
        browser.close()


def opened(browser: Browser, own: tuple[str, ...] = ("file://", "data:"), **options: Any) -> Iterator[Opened]:
    """A page in a context of its own; at its end it must have made no error and asked for ``own`` addresses only."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, **options)
    context.set_default_timeout(1000 * PATIENCE)
    one = Opened(context.new_page())
    context.new_cdp_session(one.page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    one.page.on("dialog", one.refuse)
    one.page.on("console", lambda message: one.errors.append(message.text) if message.type in ("error", "warning") else None)
    one.page.on("pageerror", lambda error: one.errors.append(str(error)))
    one.page.on("request", lambda request: one.requests.append(request.url))
    one.page.on("requestfailed", one.note_failure)
    yield one
    context.close()
    assert one.errors == [] and one.dialogs == []
    assert one.requests and all(each.startswith(own) for each in one.requests)


def location_of(page: Page) -> str:
    """The page's address by its own word; Playwright hears of a change later than of what the page shows."""
    found: str = page.evaluate("location.href")
    return found


def assert_accessible(page: Page, axe: str) -> None:
    """axe-core finds nothing on the page that is open, in both colours and on a phone, where it must not scroll sideways.

    The context needs ``bypass_csp``, since the pages refuse scripts that are not their own.
    """
    page.evaluate(axe)
    colours_alone = "{ preload: false, resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block'] }"
    for scheme, width, options in (
        ("light", 1400, "{ preload: false, resultTypes: ['violations'] }"),
        ("dark", 1400, colours_alone),
        ("dark", 390, "{ preload: false, resultTypes: ['violations'] }"),
    ):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 844})
        found = page.evaluate(f"axe.run(document, {options})")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], (scheme, width, page.url)
        assert page.evaluate("document.documentElement.scrollWidth") == width, (width, page.url)


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Opened]:
    yield from opened(chromium, color_scheme="light")


@pytest.fixture
def dark_tab(chromium: Browser) -> Iterator[Opened]:
    yield from opened(chromium, color_scheme="dark")
