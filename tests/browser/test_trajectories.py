"""The page of an online run in Chromium: film strips, filters, keys, hostile texts, 390 pixels."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from guieval.reports.trajectories.reading import read_online
from guieval.reports.trajectories.writing import write_trajectories
from tests.browser.conftest import Opened, assert_accessible, location_of, opened
from tests.online.test_runs import ENDED, reference, task_id
from tests.reports.trajectories.made_online import HOSTILE, made_hostile, online_run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("online")

    def made() -> None:
        write_trajectories(folder / "report", read_online(made_hostile(online_run(folder))))

    with ThreadPoolExecutor(1) as thread:  # Playwright keeps this thread's event loop, and a run needs one of its own
        thread.submit(made).result()
    return folder / "report"


def go(tab: Opened, report: Path, number: int = 0) -> Page:
    tab.page.goto(f"{(report / 'index.html').as_uri()}#{number}")
    tab.page.wait_for_selector("#strip")
    return tab.page


def test_a_strip_shows_every_step_with_its_screen(tab: Opened, report: Path) -> None:
    page = go(tab, report)
    expect(page.locator("h1")).to_have_text("scripted on demo, online")  # it was the text of an object
    assert page.locator("#strip .step").count() == len(reference(0)) + 1
    assert page.locator("#strip .step.last h3").inner_text() == "End: success"
    for at in range(len(reference(0)) + 1):
        page.locator("#strip .step").nth(at).scroll_into_view_if_needed()
        image = page.locator("#strip .step img").nth(at)
        page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image.element_handle())
    clicks = [at for at, step in enumerate(reference(0)) if json.loads(step)["type"] == "CLICK"]
    at = clicks[0]
    x, y = json.loads(reference(0)[at])["point"]
    box = page.locator("#strip .step img").nth(at).bounding_box()
    dot = page.locator("#strip .step").nth(at).locator(".dot").bounding_box()
    assert box is not None and dot is not None
    assert dot["x"] + dot["width"] / 2 == pytest.approx(box["x"] + box["width"] * x / 1000, abs=1.5)
    assert dot["y"] + dot["height"] / 2 == pytest.approx(box["y"] + box["height"] * y / 1000, abs=1.5)
    page.locator("#strip .enlarge").nth(at).click()
    large = page.locator("#large img").bounding_box()
    assert large is not None and large["height"] > box["height"]
    page.keyboard.press("Escape")
    assert not page.locator("#large").is_visible()


def test_filters_by_ending_and_text(tab: Opened, report: Path) -> None:
    page = go(tab, report)
    seen = page.locator("#list li:visible")
    assert page.locator("#count").inner_text() == "8 of 8 trajectories"
    page.select_option("#ended", "false completion")
    assert seen.count() == sum(ended == "false completion" for ended in ENDED.values())
    page.select_option("#ended", "")
    page.fill("#search", task_id(3).upper())
    assert seen.count() == 1 and page.locator("#count").inner_text() == "1 of 8 trajectories"
    page.fill("#search", "nothing has this")
    assert seen.count() == 0


def test_a_link_restores_filters_and_the_enlarged_screen(tab: Opened, report: Path) -> None:
    page = go(tab, report)
    page.select_option("#ended", "success")
    page.fill("#search", "steps")
    last = page.locator("#list a:visible").last
    name = last.locator("b").inner_text()
    last.click()
    expect(page.locator("#trajectory h2")).to_contain_text(name)
    page.locator("#strip .enlarge").nth(1).click()
    listed = page.locator("#count").inner_text()
    link = location_of(page)
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#large img")).to_have_attribute("alt", "Screen of step 2")
    expect(page.locator("#trajectory h2")).to_contain_text(name)
    assert (page.locator("#ended").input_value(), page.locator("#search").input_value()) == ("success", "steps")
    assert page.locator("#count").inner_text() == listed != "8 of 8 trajectories"
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: url.endswith("?ended=success&search=steps"))
    page.evaluate("location.hash = '#99?ended=nonsense&large=99'")
    expect(page.locator("#count")).to_have_text("8 of 8 trajectories")
    expect(page.locator("#large")).to_be_hidden()


def test_keys(tab: Opened, report: Path) -> None:
    page = go(tab, report)
    page.locator("#list a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("name => document.querySelector('#trajectory h2').textContent.includes(name)", arg=task_id(2))
    page.locator("#strip").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.className") == "step sheet last"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_hostile_texts_are_only_text(tab: Opened, report: Path) -> None:
    """``tab`` also demands that no dialog opens, nothing fails and no address outside the folder is asked for."""
    page = go(tab, report, 1)
    assert HOSTILE in page.locator("#trajectory h2").inner_text()
    assert HOSTILE in page.locator("#strip .last").inner_text()
    page = go(tab, report, 4)
    page.wait_for_function("document.querySelector('#trajectory h2').textContent.includes('0004')")
    assert "Not carried out" in page.locator("#strip .missed").first.inner_text()
    page.locator("#strip summary").first.click()
    assert page.locator("#strip pre").first.inner_text() == HOSTILE
    page.locator("#metrics summary").click()
    assert page.locator("#metrics table").count() >= 1
    assert page.locator("img[src=x]").count() == 0


def test_the_report_is_accessible_and_fits_a_phone(chromium: Browser, report: Path, axe: str) -> None:
    for one in opened(chromium, bypass_csp=True, reduced_motion="reduce"):
        page = go(one, report, 4)
        page.locator("#metrics summary").click()
        assert_accessible(page, axe)
