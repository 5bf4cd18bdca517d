"""The pages of a board in Chromium: from a disk, at three widths, without a request, and no name in them can run."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import guieval
from tests.browser.conftest import Opened, assert_accessible, opened
from tests.reports.scripted_runs import EPISODES, made_run, named

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, expect

HOSTILE = "z<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def board_pages(folder: Path) -> Path:
    """A board of three runs and two published tables."""
    runs = [
        made_run(folder / str(place), {("e00", step) for step in range(place)}, episodes=EPISODES[:4], rewrite=named(name))
        for place, name in enumerate(("best", HOSTILE, "worst"))
    ]
    guieval.leaderboard(runs, site=folder / "site", reference=["ui-s1-table-2", "ui-r1-table-1"])
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps this thread's event loop, and a run needs one of its own
        return thread.submit(board_pages, tmp_path_factory.mktemp("board")).result()


def test_pages_are_accessible_at_every_width(site: Path, chromium: Browser, axe: str) -> None:
    """Also with details open; 1400 and 390 are in ``assert_accessible``."""
    for one in opened(chromium, bypass_csp=True):
        for name in ("index", "scripted", "screenspot-pro", "published"):
            one.page.goto((site / f"{name}.html").as_uri())
            if name == "scripted":
                one.page.get_by_role("button", name="Details of").first.click()
            assert_accessible(one.page, axe)
            one.page.set_viewport_size({"width": 800, "height": 900})
            assert one.page.evaluate("axe.run(document).then((found) => found.violations.map((each) => each.id))") == []
            assert one.page.evaluate("document.documentElement.scrollWidth") == 800, name


def test_numbers_are_filtered_sorted_unfolded_and_copied(site: Path, dark_tab: Opened) -> None:
    """``dark_tab`` also demands that no dialog opens, nothing fails, and nothing outside the folder is asked for."""
    page = dark_tab.page
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="scripted").click()
    rows = page.locator("#numbers tbody tr:not(.more):not([hidden])")
    expect(page.locator("#count")).to_contain_text("numbers")  # the page is whole
    every = rows.count()

    page.get_by_role("combobox", name="metric").select_option("exact match")
    page.get_by_role("combobox", name="protocol").select_option("osatlas")
    assert rows.count() == 3 < every
    assert page.locator("#count").inner_text() == f"3 of {every} numbers"
    names = rows.locator("th").all_inner_texts()
    assert any(HOSTILE in name for name in names)

    rows.filter(has_text="worst").get_by_role("button").click()
    details = page.locator("#numbers tr.more:not([hidden])")
    assert "guieval score" in details.inner_text() and "right" in details.inner_text()
    page.locator("#numbers thead").get_by_role("button", name="value").click()
    page.locator("#numbers thead").get_by_role("button", name="value").click()
    assert "worst" in rows.first.inner_text() and "best" in rows.last.inner_text()
    above = page.evaluate("document.querySelector('#numbers tr.more:not([hidden])').previousElementSibling.dataset.model")
    assert above == "worst"  # sorted with its row
    details.get_by_role("button", name="Copy").click()
    expect(details.get_by_role("button")).to_have_text(re.compile("^(Copied|Selected: copy it with the keyboard)$"))

    page.get_by_role("searchbox").fill("best")
    assert rows.count() == 1 and details.count() == 0  # those of a hidden row are hidden
    assert all(each.startswith(site.as_uri()) for each in dark_tab.requests)
