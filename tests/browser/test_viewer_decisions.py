"""A step's many samples in the viewer, in a real browser: points by cluster on the screen, all decisions in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.steps import Patch
from tests.browser.conftest import Opened
from tests.reports.opened.test_opened_run import drawn
from tests.reports.viewer.made_run import record, report, task
from tests.reports.viewer.test_writing import ANSWERS

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    records = [record(task(step=0, length=2), *ANSWERS), record(task(step=1, length=2), ANSWERS[0])]
    report(folder, records, screenshots=drawn(folder / "data", *(each.task.screenshot for each in records)))
    return folder / "report"


def test_points_are_drawn_by_cluster_and_can_be_hidden(tab: Opened, several: Path) -> None:
    page = tab.go(several)
    expect(page.locator("#marks .sampled")).to_have_count(5)
    expect(page.locator("#marks .sampled.d0")).to_have_count(3)
    expect(page.locator("#marks .sampled.d-alone")).to_have_count(1)
    expect(page.locator("#marks .letter.d0, #marks .letter.d1")).to_have_text(["1", "2"])
    fills = {page.locator(f"#marks .sampled.d{at}").first.evaluate("node => getComputedStyle(node).fill") for at in (0, 1)}
    assert len(fills) == 2
    page.click("#legend .toggle.sampled")
    expect(page.locator("#marks .sampled")).to_have_count(0)


@pytest.mark.parametrize("colours", ["tab", "dark_tab"])
def test_decisions_are_listed_with_their_counts(colours: str, several: Path, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(colours).go(several)
    rows = page.locator(".decisions tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(2)).to_contain_text("green tea")
    expect(rows.nth(0).locator("td.number").first).to_contain_text("7")
    rows.nth(2).locator("summary").click()
    expect(rows.nth(2).locator("li")).to_have_text(["3 × “green tea”", "1 × “green tea.”"])
    expect(page.locator("#panel")).to_contain_text(
        "1 more point lies alone (a grey ring on the screen), a decision of its own."
    )
    expect(page.locator("#panel")).to_contain_text("1 hold no action")


def test_a_step_of_one_sample_shows_no_decisions(tab: Opened, several: Path) -> None:
    page = tab.go(several)
    page.keyboard.press("j")
    expect(page.locator("h2").first).to_contain_text("Step 1")
    expect(page.locator(".decisions")).to_have_count(0)
    expect(page.locator("#legend .toggle.sampled")).to_have_count(0)


def test_a_patched_step_records_its_replacement(tab: Opened, tmp_path: Path) -> None:
    records = [record(task(step=0, length=2), ANSWERS[0]), record(task(step=1, length=2), ANSWERS[0])]
    records[0] = records[0].model_copy(update={"patch": Patch(method="on-policy", thought="The button is <b>below</b>.")})
    report(tmp_path, records)
    page = tab.go(tmp_path / "report")
    expect(page.locator("#panel .origin.patch")).to_have_text("patched: on-policy")
    expect(page.locator("#panel .history").last).to_contain_text("with the thought The button is <b>below</b>.")
    page.keyboard.press("j")
    expect(page.locator("#panel .origin.patch")).to_have_count(0)
