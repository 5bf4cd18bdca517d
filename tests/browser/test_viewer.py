"""The step viewer as a person uses it, in a real browser, from disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.actions import Boxes, Open, Point, Scroll, Stop, Type
from guieval.journal import Journal
from guieval.models.composition import StageResponse, written
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import shown_run
from guieval.reports.viewer.writing import write_report
from guieval.steps import StepRecord
from tests.browser.conftest import Opened, assert_accessible, location_of, opened
from tests.reports.opened.test_opened_run import drawn
from tests.reports.viewer.made_run import PROTOCOL, at, failed, record, report, task, write_run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Locator, Page, expect

TOLERANCE = 0.75
"""Of a place on the page, in CSS pixels: layout may round to a part of one."""


def episode_records() -> list[StepRecord]:
    """Two episodes: a hit, a near miss, a wrong type; then a text, a scroll, a failure, a reply without action."""
    boxed = task(step=0, targets=Boxes([[250, 200, 350, 400]]), action=at(300, 300), groups={"app": "Mail"})
    maps = task(step=1, groups={"app": "Maps"})
    swipe = task("e2", 1, 4, action=Scroll(point=Point(500, 600), direction="up"))
    return [
        record(boxed, at(310, 330), raw="I tap the envelope"),
        record(maps, at(500, 600), raw="somewhere below"),  # right under guievalkit, wrong under ui-s1-sop
        record(task(step=2), Stop(), raw="done"),
        record(task("e2", 0, 4, action=Type(text="mozart")), Type(text="bach")),
        record(swipe, Scroll(point=Point(200, 300), direction="down")),
        failed(task("e2", 2, 4)),
        record(task("e2", 3, 4), None, raw="no idea"),
    ]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    shots = {each.task.screenshot for each in episode_records()}
    data = drawn(folder / "data", *(shots - {"e2/3.png"}))
    report(folder, episode_records(), protocols=("guievalkit", "ui-s1-sop"), screenshots=data)
    return folder / "report"


def count(page: Page, text: str) -> None:
    expect(page.locator("#count")).to_contain_text(text)


def middle(found: Locator) -> tuple[float, float]:
    box = found.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def edges(found: Locator) -> tuple[float, float, float, float]:
    box = found.bounding_box()
    assert box is not None
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


def on_screen(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a point in thousandths must be on the page."""
    left, top, right, bottom = edges(page.locator("#screen"))
    return left + (right - left) * x / 1000, top + (bottom - top) * y / 1000


def test_filters_change_what_is_listed(tab: Opened, plain: Path) -> None:
    page = tab.go(plain)
    count(page, "7 steps: 28.6 % right of 7")
    expect(page.locator(".episode")).to_have_count(2)
    page.select_option("[name=verdict]", "wrong")
    count(page, "3 of 7 steps: 0.0 % right of 3")
    expect(page.locator(".where h2")).to_contain_text("Step 2")  # the step that was shown is not among them
    page.select_option("[name=kind]", "wrong text")
    count(page, "1 of 7")
    expect(page.locator(".episode")).to_have_count(1)
    page.click("#clear")
    count(page, "7 steps")
    page.select_option("[name=predicted]", "SCROLL")
    count(page, "1 of 7")
    page.click("#clear")
    page.select_option("[name=reference]", "CLICK")
    count(page, "5 of 7")
    page.select_option("[name='group:0']", label="Mail")
    count(page, "1 of 7")
    page.click("#clear")
    page.select_option("[name=disagree]", "yes")  # 100 thousandths off, and a scroll the other way
    count(page, "2 of 7 steps: 50.0 % right of 2")
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    page.select_option("[name=verdict]", "failed")
    count(page, "No step matches")


def test_the_table_sorts_what_the_filters_list(tab: Opened, plain: Path) -> None:
    page = tab.go(plain)
    page.keyboard.press("t")
    page.select_option("[name=reference]", "CLICK")
    page.locator("#steps thead button").nth(1).click(click_count=2)
    expect(page.locator("#steps tr td:nth-child(2)")).to_have_text(["3", "2", "2", "1", "0"])
    page.reload()
    page.locator("#steps tbody button").last.click()
    expect(page.locator(".where h2")).to_contain_text("Step 3")


def test_a_run_that_still_writes_is_followed(tab: Opened, tmp_path: Path) -> None:
    records = [record(task(step=step), at(500, 500)) for step in range(3)]
    run = write_run(tmp_path / "run", records[:1])
    with Journal(run):
        write_report(tmp_path / "report", shown_run(run), Pictures(None, tmp_path / "report"), [PROTOCOL])
    page = tab.go(tmp_path / "report")
    expect(page.locator("#live")).to_have_text("Running: 1 of 3 steps when this was written")
    report(tmp_path, records[1:])
    page.evaluate((tmp_path / "report" / "data" / "index.js").read_text(encoding="ascii"))
    count(page, "3 steps: 100.0 % right of 3")
    expect(page.locator("#live")).to_be_hidden()


def test_a_report_without_its_index_says_so(chromium: Browser, tmp_path: Path) -> None:
    report(tmp_path, [record(task(length=1), Stop())])
    (tmp_path / "report" / "data" / "index.js").unlink()
    for one in opened(chromium):
        one.page.goto((tmp_path / "report" / "index.html").as_uri())
        expect(one.page.locator("#count")).to_contain_text("the file data/index.js is missing")
        assert len(one.errors) == 2 and all("ERR_FILE_NOT_FOUND" in each for each in one.errors)
        one.errors.clear()


def test_search_looks_into_instructions_and_replies(tab: Opened, plain: Path) -> None:
    page = tab.go(plain)
    page.fill("[name=query]", "ENVELOPE tap")
    count(page, "1 of 7")
    page.fill("[name=query]", "goal of e2")
    count(page, "4 of 7")
    page.fill("[name=query]", "nowhere to be found")
    count(page, "No step matches")


def test_marks_lie_where_the_thousandths_say(tab: Opened, plain: Path) -> None:
    page = tab.go(plain, "#e1/0/ui-s1-sop")
    left, top, right, bottom = edges(page.locator("#screen"))
    assert (bottom - top) / (right - left) == pytest.approx(2, abs=0.01)
    assert right - left > 250
    assert middle(page.locator("#marks .dot.reference")) == pytest.approx(on_screen(page, 300, 300), abs=TOLERANCE)
    assert middle(page.locator("#marks .dot.first")) == pytest.approx(on_screen(page, 310, 330), abs=TOLERANCE)
    # Enlarged x1.2 about its centre; the accepted distance is 40 thousandths of each side.
    box = edges(page.locator("#marks rect.accepted"))
    assert box == pytest.approx((*on_screen(page, 240, 180), *on_screen(page, 360, 420)), abs=2)  # the line has a width
    around = edges(page.locator("#marks ellipse.accepted"))
    assert around == pytest.approx((*on_screen(page, 260, 260), *on_screen(page, 340, 340)), abs=2)
    assert page.locator("#marks rect.target").count() == 0
    page.click(".toggle.targets")
    assert edges(page.locator("#marks rect.target")) == pytest.approx(
        (*on_screen(page, 250, 200), *on_screen(page, 350, 400)), abs=2
    )
    page.keyboard.press("z")
    assert middle(page.locator("#marks .dot.first")) == pytest.approx(on_screen(page, 310, 330), abs=TOLERANCE)
    wider = edges(page.locator("#screen"))
    assert wider[2] - wider[0] == pytest.approx(2 * (right - left), abs=2)


def test_each_response_of_a_composition_is_shown_and_the_part_that_was_zoomed(tab: Opened, tmp_path: Path) -> None:
    stages = [
        StageResponse(stage="planner", model="p", text="I tap the envelope"),
        StageResponse(stage="zoom", model="g", text="(5, 7)", query="the envelope", crop=(75, 150, 225, 450)),
    ]
    report(tmp_path, [record(task(), at(500, 500), raw=written(stages), stage="zoom")])
    page = tab.go(tmp_path / "report")
    expect(page.locator("#panel .asked")).to_have_text(
        ["1 planner: p", "2 zoom: g, query 'the envelope', shown (75, 150) to (225, 450) of the screenshot"]
    )
    expect(page.locator("#panel .asked + pre")).to_have_text([stage.text for stage in stages])
    part, screen = middle(page.locator("#marks .part")), middle(page.locator("#screen"))
    assert part == pytest.approx(screen, abs=TOLERANCE)
    page.get_by_role("button", name="Zoomed part").click()
    expect(page.locator("#marks .part")).to_have_count(0)


def test_another_protocol_accepts_another_area(tab: Opened, plain: Path) -> None:
    page = tab.go(plain, "#e1/0/ui-s1-sop")
    before = page.locator("#marks ellipse.accepted").get_attribute("rx")
    page.select_option("#protocol", label="guievalkit")
    expect(page.locator("#marks ellipse.accepted")).not_to_have_attribute("rx", before or "")
    after = page.locator("#marks ellipse.accepted").get_attribute("rx")
    assert float(after or 0) / float(before or 1) == pytest.approx(140 / 40)
    assert location_of(page).endswith("#e1/0/guievalkit")


def test_scrolls_are_arrows_of_the_fingers_path(tab: Opened, plain: Path) -> None:
    page = tab.go(plain, "#e2/1")
    x, y = on_screen(page, 500, 600)
    _, end = on_screen(page, 500, 300)
    box = edges(page.locator("#marks .arrow.reference"))
    assert (box[1], box[3]) == pytest.approx((end, y), abs=3)
    assert (box[0] + box[2]) / 2 == pytest.approx(x, abs=1)
    down = edges(page.locator("#marks .arrow.first"))
    assert (down[1], down[3]) == pytest.approx((on_screen(page, 200, 300)[1], on_screen(page, 200, 600)[1]), abs=3)


def test_links_lead_to_a_step_and_back(tab: Opened, plain: Path) -> None:
    page = tab.go(plain, "#e2/1")
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    expect(page.locator("[role=alert]")).to_have_count(0)
    page = tab.go(plain, "#e2/1/ui-s1-sop")
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    expect(page.locator(".episode-name")).to_have_text("e2")
    expect(page.locator("#protocol option:checked")).to_have_text("ui-s1-sop")
    page.click("[data-row='3']")
    expect(page.locator(".where h2")).to_contain_text("Step 0")
    assert location_of(page).endswith("#e2/0/ui-s1-sop")
    page.go_back()
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    page.reload()
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)  # what it says goes away after some seconds
    page.goto(page.url.split("#")[0] + "#nobody/9/none")
    expect(page.locator("[role=alert]").first).to_contain_text("names nothing")
    expect(page.locator(".episode-name")).to_have_text("e1")


def test_keys_walk_through_what_is_listed(tab: Opened, plain: Path) -> None:
    page = tab.go(plain)
    for key, where in (("j", "e1/1"), ("ArrowRight", "e1/2"), ("j", "e2/0"), ("k", "e1/2"), ("n", "e2/0"), ("p", "e1/0")):
        page.keyboard.press(key)
        expect(page.locator("#strip [aria-current=step]")).to_have_count(1)
        page.wait_for_url(f"**#{where}/guievalkit")
    page.keyboard.press("f")
    expect(page.locator("[name=query]")).to_be_focused()
    page.keyboard.type("jjj")  # a letter in a field is a letter
    expect(page.locator("[name=query]")).to_have_value("jjj")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help-title")).to_be_focused()  # or a small screen would show the end of the text first
    expect(page.locator("#help-body")).to_contain_text("ocr-baseline on demo, offline, run under guievalkit")
    expect(page.locator("#help-body .badge")).to_have_count(8)
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_the_focus_stays_where_a_key_was_pressed(tab: Opened, plain: Path, tmp_path: Path) -> None:
    page = tab.go(plain)
    for _ in range(2):
        page.get_by_role("button", name="Next step").press("Enter")
    expect(page.locator(".where h2")).to_contain_text("Step 2")
    expect(page.get_by_role("button", name="Next step")).to_be_focused()
    page.get_by_role("button", name="Enlarge").press("Enter")
    expect(page.get_by_role("button", name="Fit")).to_be_focused()
    page.locator("#panel summary", has_text="Prompt").press("Enter")
    page.keyboard.press("k")
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    expect(page.locator("#panel summary", has_text="Prompt")).to_be_focused()
    page = tab.go(plain, "#e2/2")
    page.get_by_role("button", name="Next step").press("Enter")
    expect(page.locator(".where h2")).to_contain_text("Step 3")  # the last one: there is no next step
    expect(page.locator("#panel")).to_be_focused()
    report(tmp_path, [record(task(length=1), at(500, 500), at(0, 0))])
    page = tab.go(tmp_path / "report")
    page.locator(".samples button").nth(1).press("Enter")
    expect(page.locator(".samples [aria-pressed=true]")).to_be_focused()


def background(page: Page) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


def test_colours_follow_the_system_until_somebody_chooses(tab: Opened, dark_tab: Opened, plain: Path) -> None:
    light, dark = background(tab.go(plain)), background(dark_tab.go(plain))
    assert light == "rgb(244, 245, 247)" and dark == "rgb(20, 22, 26)"
    dark_tab.page.click("#theme")
    assert background(dark_tab.page) == light
    dark_tab.page.reload()
    assert background(dark_tab.page) == light
    dark_tab.page.click("#theme")
    assert background(dark_tab.page) == dark


def test_the_report_is_accessible_and_fits_a_phone(chromium: Browser, plain: Path, axe: str) -> None:
    for one in opened(chromium, bypass_csp=True, reduced_motion="reduce"):
        page = one.go(plain, "#e1/1?open=about.prompt.protocols.response&show=targets")
        assert_accessible(page, axe)
        page.keyboard.press("t")
        assert_accessible(page, axe)
        page.keyboard.press("?")
        assert_accessible(page, axe)


def test_a_missing_screenshot_leaves_an_empty_screen_of_its_shape(tab: Opened, plain: Path) -> None:
    page = tab.go(plain, "#e2/3")
    expect(page.locator("#screen p")).to_contain_text("No screenshot: the screenshot '[...]/e2/3.png' does not exist")
    left, top, right, bottom = edges(page.locator("#screen"))
    assert (bottom - top) / (right - left) == pytest.approx(2, abs=0.01)
    assert middle(page.locator("#marks .dot.reference")) == pytest.approx(on_screen(page, 500, 500), abs=TOLERANCE)
    page.keyboard.press("k")
    expect(page.locator("#screen img")).to_be_visible()
    assert page.locator("#screen img").evaluate("image => image.decode().then(() => image.naturalHeight)") == 600


def test_two_runs_side_by_side(tab: Opened, tmp_path: Path) -> None:
    own = [record(task(step=0), at(100, 200)), record(task(step=1), at(500, 500)), record(task(step=2), Stop())]
    other = [record(task(step=0), at(500, 510)), record(task(step=1), at(500, 500)), record(task(step=2), Open(app="x"))]
    report(tmp_path, own, against=other)
    page = tab.go(tmp_path / "report")
    assert middle(page.locator("#marks .dot.first")) == pytest.approx(on_screen(page, 100, 200), abs=TOLERANCE)
    assert middle(page.locator("#marks .dot.second")) == pytest.approx(on_screen(page, 500, 510), abs=TOLERANCE)
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator(".answer strong")).to_have_text(["wrong, of the right type", "right"])
    page.select_option("[name=flipped]", "some")
    count(page, "1 of 3")
    page.select_option("[name=flipped]", "onlyA")
    count(page, "No step matches")


def test_samples_can_be_looked_at_one_by_one(tab: Opened, tmp_path: Path) -> None:
    report(tmp_path, [record(task(length=1), at(500, 500), at(0, 0), None)])
    page = tab.go(tmp_path / "report")
    expect(page.locator(".samples button")).to_have_text(["1 ✓", "2 ≈", "3 ?"])
    page.click(".samples button:nth-child(2)")
    assert middle(page.locator("#marks .dot.first")) == pytest.approx(on_screen(page, 0, 0), abs=TOLERANCE)
    page.click(".samples button:nth-child(3)")
    expect(page.locator(".verdict strong")).to_have_text("no action in the response")
    assert page.locator("#marks .dot.first").count() == 0


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "'));alert(1);//",
    '"]});alert(1);//',
    "{{7*7}}${alert(1)}<%= 1 %>{% raw %}",
    "<!--<script>",
    "]]>&lt;b&gt;&quot;",
    "\u202e\u2066right to left\u2069",
    "\u2028\u2029\0\x1b[31m",
    "https://example.org/<iframe src=https://example.org>",
    "\\u003cscript\\u003e\\",
    "constructor __proto__ toString",
    "é" * 3 + "x" * 30_000,
)


def test_no_text_of_a_model_or_a_data_set_can_run(tab: Opened, tmp_path: Path) -> None:
    records = []
    for number, text in enumerate(HOSTILE):
        hostile = task(
            f"{number}{text[:60]}".replace("\0", ""),
            length=1,
            instruction=text,
            low_level_instruction=text,
            subset=text[:40],
            split=text[:40],
            action=Type(text=text),
            groups={text[:20]: text[:50], "__proto__": text[:50]},
            extras={text: text, "__proto__": {"x": text}, "polygon": text, "nan": float("nan")},
            screenshot=f"../{text[:50]}",
        )
        records.append(record(hostile, Type(text=text), raw=text, thought=text, conclusion=text, reasoning=text))
    report(tmp_path, records, protocols=("all",))
    page = tab.go(tmp_path / "report")
    count(page, f"{len(HOSTILE)} steps")
    for number, text in enumerate(HOSTILE):
        if number:
            page.keyboard.press("j")
        expect(page.locator(".episode-name")).to_contain_text(f"/{number}")
        for name in page.locator("#panel details").all():
            name.evaluate("node => { node.open = true; }")
        shown = page.locator(".goal").evaluate("node => node.textContent")
        assert shown == text if len(text) < 20_000 else shown.endswith("more characters, in the journal]")
    page.fill("[name=query]", "<img src=x")
    count(page, "1 of")
    page.reload()
    assert page.locator("script").count() == 2 and page.locator("iframe, #panel img, #panel svg, #panel a").count() == 0
    assert page.evaluate("document.title").startswith("ocr-baseline")


def test_scripts_that_are_not_the_reports_own_do_not_run(tab: Opened, plain: Path) -> None:
    """The policy of the page itself: even a node that was slipped in could do nothing."""
    page = tab.go(plain)
    refused = page.evaluate(
        """() => {
            const refused = [], thrown = [];
            document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            const attempts = [
                () => document.createElement("button").setAttribute("onclick", "window.ran = true"),
                () => { document.body.innerHTML += "<b>x</b>"; },
                () => { document.createElement("script").text = "window.ran = true"; },
                () => { document.createElement("script").src = "data/index.js"; },
                () => trustedTypes.createPolicy("another", {}),
            ];
            for (const attempt of attempts) try { attempt(); } catch (error) { thrown.push(error.name); }
            const image = new Image();
            return new Promise((done) => {
                image.onerror = () => setTimeout(() => done([window.ran ?? null, thrown, refused.includes("img-src")]));
                image.src = "https://example.org/x.png";
            });
        }"""
    )
    tab.errors.clear()  # the browser's own words on what it refused
    tab.requests[:] = [each for each in tab.requests if "example.org" not in each]
    assert refused == [None, ["TypeError"] * 5, True]
