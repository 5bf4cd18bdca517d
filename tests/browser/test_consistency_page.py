"""The page of a consistency study in Chromium: its tables, and its examples on their screenshots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from guieval.actions import Action, Stop
from guieval.studies.consistency.judging import Consistency, Failure, Finding, Judge, Majority, Trace
from guieval.studies.consistency.page import consistency_page
from guieval.studies.decisions.clustering import ClusterSettings
from tests.browser.conftest import assert_accessible, opened
from tests.browser.test_viewer import HOSTILE
from tests.reports.viewer.made_run import at, task

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = "The button is at the bottom of the screen. " * 60


def trace(step: int, action: Action | None, failure: Failure | None, thought: str) -> Trace:
    found = Finding(Majority((at(500, 500),), (8,), 3, 3), failure is None, failure)
    return Trace(task(step=step, length=4, instruction=thought), thought, action, failure is None, (found,) * 3, found)


def test_the_page_is_accessible_and_fits_a_phone(chromium: Browser, tmp_path: Path, axe: str) -> None:
    (tmp_path / "e1").mkdir()
    Image.new("RGB", (300, 600), "teal").save(tmp_path / "e1" / "0.png")
    traces = (
        trace(0, at(100, 100), "action target", LONG),
        trace(1, Stop(), "action type", HOSTILE[1]),
        trace(2, None, "invalid action", HOSTILE[-1]),
        trace(3, at(500, 500), None, "a thought"),
    )
    judges = tuple(Judge(tmp_path, f"judge-{number}-{'x' * 40}", 4, 32, 0, 0) for number in range(3))
    found = Consistency(tmp_path, "a model", "guievalkit", ClusterSettings(), judges, traces, 0, 0)
    file = tmp_path / "page.html"
    file.write_text(consistency_page(found, {traces[0].task.benchmark: tmp_path}, 2), encoding="utf-8")
    for one in opened(chromium, bypass_csp=True):
        one.page.goto(file.as_uri())
        assert str(tmp_path) not in one.page.content()
        assert one.page.locator("figure").count() == 3 and one.page.locator("figure svg .mark").count() == 2
        assert_accessible(one.page, axe)
