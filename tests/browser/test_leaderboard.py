"""The leaderboard's page in Chromium: it sorts by mouse and keyboard, asks for nothing, and no name in it can run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from guieval.reports.leaderboards.formats import written
from guieval.reports.leaderboards.leaderboard import leaderboard
from tests.browser.conftest import Opened, assert_accessible, opened
from tests.reports.scripted_runs import EPISODES, made_run, named, reported

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "z<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def board_page(folder: Path) -> Path:
    """A page of four runs, of which one has no tokens."""
    tokens = {"middle": 2000, HOSTILE: 1000, "worst": 9000}
    runs = [
        made_run(folder / str(place), episodes=EPISODES[:2], rewrite=named(name), usage=reported(count, 0))
        for place, (name, count) in enumerate(tokens.items())
    ]
    runs.append(made_run(folder / "d", episodes=EPISODES[:2], rewrite=named("uncounted")))
    file = folder / "board.html"
    file.write_text(written(leaderboard(runs, ["aitw-original"]), "html"), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps this thread's event loop, and a run needs one of its own
        return thread.submit(board_page, tmp_path_factory.mktemp("board")).result()


def test_the_page_is_accessible_and_fits_a_phone(page_file: Path, chromium: Browser, axe: str) -> None:
    for one in opened(chromium, bypass_csp=True):
        one.page.goto(page_file.as_uri())
        assert_accessible(one.page, axe)


def test_the_page_sorts_and_runs_nothing_of_the_names(page_file: Path, dark_tab: Opened) -> None:
    """``dark_tab`` also demands that no dialog opens and nothing fails."""
    page = dark_tab.page
    printed: list[str] = []
    page.on("console", lambda message: printed.append(message.text))
    page.goto(page_file.as_uri())

    table = page.locator("table").first
    names = table.locator("tbody th")
    head = table.locator("thead th").last

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names.all_inner_texts() == ["worst", "middle", HOSTILE, "uncounted"]  # no number: below, either way
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names.all_inner_texts() == [HOSTILE, "middle", "worst", "uncounted"]
    table.locator("thead th button").first.press("Space")
    assert names.all_inner_texts() == ["middle", "uncounted", "worst", HOSTILE]
    assert table.locator("thead [aria-sort]").count() == 1
    assert printed == [] and dark_tab.requests == [page_file.as_uri()]
