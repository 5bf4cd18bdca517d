"""The viewer's server in Chromium: from the list of runs to a step, notes, links, comparison, a phone, accessibility."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from PIL import Image

from guieval.actions import Stop, Type
from guieval.journal import STEPS
from guieval.reports.notes import read_notes
from guieval.reports.server.app import ViewerApp
from guieval.reports.server.library import Library
from guieval.reports.server.serving import address, listen
from guieval.steps import EpisodeKey
from tests.browser.conftest import Opened, assert_accessible, location_of, opened
from tests.browser.test_viewer import HOSTILE, edges
from tests.reports.trajectories.made_online import made_hostile, online_run
from tests.reports.viewer.made_run import at, end, failed, record, task, write_run
from tests.waiting import PATIENCE, until

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, Route, expect


@dataclass(frozen=True)
class Served:
    """A running server: ``url`` with the token, ``base`` without, the folder of its runs."""

    url: str
    base: str
    runs: Path


def made_runs(folder: Path) -> None:
    data = folder / "data" / "e1"
    data.mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (300, 600), ("navy", "teal", "olive", "maroon")[number]).save(data / f"{number}.png")
    steps = [task(step=number, length=4) for number in range(4)]
    right, wrong = at(500, 500), at(0, 0)
    for name, row in {"a": (right, wrong, right), "b": (right, right, wrong), "c": (wrong, wrong, wrong)}.items():
        records = [*(record(step, action) for step, action in zip(steps, row, strict=False)), failed(steps[3], HOSTILE[1])]
        write_run(folder / "runs" / name, records, data=folder / "data", model=f"model-{name}")
    end(folder / "runs" / "c")
    many = record(task(length=1), right, wrong, right, None)
    write_run(folder / "runs" / "samples", [many], data=folder / "data")
    hostile = [
        record(
            task(f"{number}-{text[:30]}".replace("\0", ""), length=1, instruction=text, action=Type(text=text)),
            Stop(),
            raw=text,
        )
        for number, text in enumerate(HOSTILE)
    ]
    write_run(folder / "runs" / "<img src=x onerror=alert(1)>", hostile, model=HOSTILE[0])
    with ThreadPoolExecutor(1) as thread:  # Playwright keeps this thread's event loop, and a run needs one of its own
        made_hostile(thread.submit(online_run, folder / "online").result()).rename(folder / "runs" / "online")


def large_run(directory: Path, episodes: int = 1000, length: int = 10) -> None:
    """A run of 10,000 steps, of which the last of each episode is wrong."""
    plan: dict[EpisodeKey, Sequence[int]] = {
        EpisodeKey("demo", "", f"e{number:04}"): range(length) for number in range(episodes)
    }
    write_run(directory, [], plan=plan)
    steps = [task("EPISODE", index, length) for index in range(length)]
    records = [record(step, at(500, 500) if step.step_index < length - 1 else at(0, 0), raw="a reply " * 40) for step in steps]
    text = "".join(f"{each.model_dump_json()}\n" for each in records)
    with (directory / STEPS).open("w", encoding="utf-8") as journal:
        journal.writelines(text.replace("EPISODE", key.episode_id) for key in plan)


def serving(folder: Path) -> Iterator[Served]:
    """Serve the runs in ``folder``, with the data there."""
    app = ViewerApp(Library([folder / "runs"], data=folder / "data"))
    listener = listen(0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = address(listener, app.token)
    yield Served(url, url.split("?")[0], folder / "runs")
    server.should_exit = True
    thread.join(PATIENCE)
    listener.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("view")
    made_runs(folder)
    yield from serving(folder)


def begun(one: Opened, served: Served) -> Page:
    one.page.goto(served.url)
    one.page.wait_for_selector("#runs tbody tr")
    assert "token" not in one.page.url
    return one.page


@pytest.fixture
def view(chromium: Browser, served: Served) -> Iterator[Opened]:
    yield from opened(chromium, (served.base, "data:"), color_scheme="light")


def ids(page: Page, served: Served) -> dict[str, str]:
    rows = page.evaluate("address => fetch(address).then((answer) => answer.json())", f"{served.base}data/runs")
    return {row["name"]: row["id"] for row in rows}


def arrived(page: Page, held: list[Route]) -> Route:
    """The first of the requests that are held back."""

    def handed_over() -> list[Route]:
        page.wait_for_timeout(10)  # Playwright hands a route over while it waits
        return held

    return until(handed_over, "a request that is held back")[0]


def steps(page: Page, served: Served, names: str, fragment: str = "") -> Page:
    known = ids(page, served)
    page.goto(f"{served.base}runs/{','.join(known[name] for name in names.split(','))}/steps/{fragment}")
    expect(page.locator("#strip [aria-current=step]")).to_have_count(1)
    return page


def test_from_the_list_to_a_comparison(view: Opened, served: Served) -> None:
    page = begun(view, served)
    listed = page.locator("#runs tbody tr")
    expect(page.locator("#count")).to_have_text("6 runs")
    page.keyboard.press("/")
    page.keyboard.type("model-")
    expect(listed).to_have_count(3)
    page.select_option("[data-name=model]", "model-b")
    expect(listed).to_have_count(1)
    assert location_of(page).endswith("#model=model-b&q=model-")
    page.reload()
    expect(listed).to_have_count(1)
    page.select_option("[data-name=model]", "")
    for name in "abc":
        page.get_by_label(f"Compare {name}", exact=True).check()
    ticked = location_of(page)
    page.goto("about:blank")
    page.goto(ticked)
    expect(page.locator("#runs input:checked")).to_have_count(3)
    expect(page.locator("#search")).to_have_value("model-")
    page.get_by_label("Compare c", exact=True).uncheck()
    expect(page.locator("#compare")).to_have_text("Compare 2 runs")
    page.reload()
    expect(page.locator("#runs input:checked")).to_have_count(2)
    page.get_by_label("Compare c", exact=True).check()
    page.click("#compare")
    expect(page.locator("#patterns td")).to_contain_text(["1", "33.33%"])
    expect(page.locator("#patterns tbody").first.locator("th")).to_have_text(["A, B", "B", "A"])
    expect(page.locator("#against-2 h2")).to_have_text("C against A")
    expect(page.locator("#against-2 table")).to_have_count(1)
    page.locator("#patterns tbody a").nth(1).click()  # only B right
    expect(page.locator("#count")).to_contain_text("1 of 4 steps")
    expect(page.locator(".where h2")).to_contain_text("Step 1")
    expect(page.locator(".answer")).to_have_count(3)
    expect(page.locator("#marks .dot.first, #marks .dot.second, #marks .dot.further")).to_have_count(3)


def test_an_overview_leads_to_the_steps_behind_a_figure(view: Opened, served: Served) -> None:
    page = begun(view, served)
    page.get_by_role("link", name="a", exact=True).click()
    expect(page.locator(".cards li").filter(has_text="exact match").locator("strong")).to_have_text("50.00%")
    expect(page.locator("#failures td").nth(1)).to_contain_text(HOSTILE[1])
    page.locator(".legend a").filter(has_text="wrong").click()
    expect(page.locator("#count")).to_contain_text("1 of 4 steps: 0.0 % right of 1")
    page.get_by_role("link", name="Overview").click()
    page.locator("#breakdowns").get_by_role("link", name="infrastructure").click()
    expect(page.locator("#count")).to_contain_text("1 of 4 steps: 0.0 % right of 1")
    page.get_by_role("link", name="Overview").click()
    page.locator("#failures a").click()
    expect(page.locator(".where h2")).to_contain_text("Step 3")
    page.go_back()
    page.locator("#protocols button").press("Enter")
    expect(page.locator("#protocols tbody th").first).to_have_text("guievalkit")
    expect(page.locator("#protocols")).to_be_focused()
    page.reload()
    expect(page.locator("#protocols tbody th").first).to_have_text("guievalkit")
    expect(page.locator("#protocols button")).to_have_count(0)


def test_the_figures_of_a_run_that_ended_do_not_wait_for_its_journal(view: Opened, served: Served) -> None:
    page = begun(view, served)
    known = ids(page, served)
    held: list[Route] = []
    page.route("**/data/metrics", lambda route: held.append(route))
    page.goto(f"{served.base}runs/{known['c']}/")
    card = page.locator(".cards li").filter(has_text="exact match")
    expect(card.locator("strong")).to_have_text("0.00%")
    expect(card.locator("small")).to_contain_text("[")
    expect(page.locator("#metrics [role=status]")).to_have_text("Reading the journal…")
    expect(page.locator(".legend li")).to_have_count(2)
    arrived(page, held).continue_()
    expect(page.locator("#metrics [role=status]")).to_have_count(0)
    expect(page.locator(".cards")).to_have_count(1)
    expect(page.locator(".legend li")).to_have_count(2)


def test_a_link_restores_filters_sample_and_zoom(view: Opened, served: Served) -> None:
    page = steps(begun(view, served), served, "a")
    page.select_option("[name=verdict]", "wrong")
    page.fill("[name=query]", "goal")
    page.wait_for_url("**query=goal**")  # the search waits for a pause in typing
    page.locator("#canvas").focus()
    page.keyboard.press("z")
    link = location_of(page)
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#count")).to_contain_text("1 of 4")
    assert page.locator("[name=query]").input_value() == "goal"
    expect(page.locator("#legend .quiet")).to_have_text("Fit")
    left, _, right, _ = edges(page.locator("#screen"))
    page.keyboard.press("z")
    small = edges(page.locator("#screen"))
    assert right - left == pytest.approx(2 * (small[2] - small[0]), abs=2)
    page = steps(page, served, "samples")
    page.click(".samples button:nth-child(2)")
    page.click("#legend .toggle.reference")
    page.locator("#panel summary", has_text="Prompt").click()
    page.locator("#panel summary", has_text="Raw response").click()  # open without being asked, as there is no thought
    page.wait_for_url("**hide=reference&open=prompt&closed=response")
    page.reload()
    expect(page.locator(".samples [aria-pressed=true]")).to_have_text("2 ≈")
    expect(page.locator("#legend .toggle.reference")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#marks .dot.reference")).to_have_count(0)
    expect(page.locator("#marks .dot.first")).to_have_count(1)
    open_parts = page.locator("#panel details[open] > summary")
    expect(open_parts).to_have_text(["Prompt"])
    page.evaluate("location.hash = location.hash.split('?')[0] + '?open=constructor.__proto__.about'")
    expect(open_parts).to_have_text(["Raw response", "About the step"])
    expect(page.locator("#marks .dot.reference")).to_have_count(1)


def test_a_link_is_followed_though_a_filter_changes_the_address_at_once(view: Opened, served: Served) -> None:
    """Cleared filters wrote the old step into the address before the link was read, and the link was lost."""
    page = steps(begun(view, served), served, "a", "#e1/2")
    expect(page.locator(".where h2")).to_contain_text("Step 2")
    page.evaluate("const was = location.href; location.hash = '#e1/0'; history.replaceState(null, '', was)")
    expect(page.locator(".where h2")).to_contain_text("Step 0")
    assert "#e1/0/" in location_of(page)


def test_notes_are_kept(view: Opened, served: Served) -> None:
    page = steps(begun(view, served), served, "b", "#e1/1")
    page.keyboard.press("e")
    page.keyboard.type(HOSTILE[0])
    page.keyboard.press("Control+Enter")
    expect(page.locator(".note [role=status]")).to_have_text("Saved")
    assert list(read_notes(served.runs / "b").steps.values()) == [HOSTILE[0]]
    page.select_option("[name=noted]", "yes")
    expect(page.locator("#count")).to_contain_text("1 of 4")
    page.reload()
    expect(page.locator(".note textarea")).to_have_value(HOSTILE[0])
    page.get_by_role("link", name="Overview").click()
    page.fill(".own input", "paper draft")
    page.keyboard.press("Tab")
    expect(page.locator(".own [role=status]")).to_have_text("Saved")
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("button", name="Show runs with tag draft").press("Enter")
    expect(page.get_by_label("Filter by tag")).to_be_focused()
    expect(page.locator("#runs tbody tr")).to_have_count(1)


def test_screens_of_a_step_that_was_left_are_not_loaded_further(view: Opened, served: Served) -> None:
    page = steps(begun(view, served), served, "a")
    image, held = f"images/{1:016x}", list[Route]()
    page.route(f"**/{image}", lambda route: held.append(route))  # it takes for ever

    page.keyboard.press("j")
    arrived(page, held)  # one that is cancelled before is not reported as failed
    with page.expect_event("requestfailed", lambda request: request.url.endswith(image)):
        page.keyboard.press("j")
    expect(page.locator(".where h2")).to_contain_text("Step 2")


def test_trajectories_of_an_online_run(view: Opened, served: Served) -> None:
    page = begun(view, served)
    known = ids(page, served)
    page.goto(f"{served.base}runs/{known['online']}/")
    expect(page.locator("#online table").first).to_be_visible()
    expect(page.locator("#failures table, #failures p:not([role])")).to_have_count(1)
    page.get_by_role("link", name="Trajectories").click()
    image = page.locator("#strip .step img").first
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image.element_handle())
    expect(page.locator("#count")).to_have_text("8 of 8 trajectories")


def test_no_text_of_a_run_can_run(view: Opened, served: Served) -> None:
    """``view`` also demands that no dialog opens, nothing fails, and nothing but the server is asked."""
    page = begun(view, served)
    page.locator("#runs tbody a").filter(has_text="onerror").click()
    expect(page.locator("#failures p:not([role])")).to_have_text(
        "No answer is missing, unreadable or outside the action space."
    )
    page.get_by_role("link", name="Steps", exact=True).click()
    for number in range(len(HOSTILE)):
        expect(page.locator(".episode-name")).to_contain_text(f"{number}-")
        page.keyboard.press("j")
    assert page.locator("img[src=x], iframe").count() == 0


def test_the_pages_are_accessible_and_fit_a_phone(chromium: Browser, served: Served, axe: str) -> None:
    for one in opened(chromium, (served.base, "data:"), color_scheme="dark", bypass_csp=True, reduced_motion="reduce"):
        page = begun(one, served)
        known = ids(page, served)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        a, b = known["a"], known["b"]
        for path, ready in {
            "": "#runs tbody tr",
            f"runs/{a}/#protocols": "#protocols table",
            f"runs/{a},{b}/": "#against-1 table",
            f"runs/{a},{b}/steps/": "#strip [aria-current=step]",
            f"runs/{a}/protocols/#?open=about.prompt.protocols": "#panel details table",
            f"runs/{known['samples']}/": "#decisions table, #failures p",
            f"runs/{known['samples']}/steps/": ".decisions",
            f"runs/{known['online']}/": "#failures p:not([role]), #failures table",
            f"runs/{known['online']}/trajectories/": "#strip img",
        }.items():
            page.goto(served.base + path)
            page.wait_for_selector(ready)
            assert_accessible(page, axe)
        page.locator("#strip .enlarge").first.click()
        assert_accessible(page, axe)


def test_ten_thousand_steps(chromium: Browser, tmp_path: Path) -> None:
    """Figures, filters, search and the last step; neither nodes nor script memory grow with the steps that were shown."""
    large_run(tmp_path / "runs" / "large")
    for large in serving(tmp_path):
        for one in opened(chromium, (large.base, "data:")):
            page = begun(one, large)
            page.locator("#runs tbody a").click()
            card = page.locator("#metrics .cards li").filter(has_text="exact match")
            expect(card.locator("strong")).to_have_text("90.00%")
            expect(card.locator("small")).to_contain_text("n = 10,000")
            page.get_by_role("link", name="Steps", exact=True).click()
            expect(page.locator("#count")).to_have_text("10,000 steps: 90.0 % right of 10,000")
            page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
            expect(page.locator("#rows .episode").last).to_contain_text("e0999")
            page.locator("#rows .episode").last.click()
            expect(page.locator(".episode-name")).to_have_text("e0999")
            for _ in range(9):
                page.keyboard.press("j")
            expect(page.locator(".where h2")).to_contain_text("Step 9")
            expect(page.get_by_role("button", name="Next step")).to_be_disabled()
            page.fill("[name=query]", "goal of e0777")
            expect(page.locator("#count")).to_contain_text("10 of 10,000 steps")
            page.select_option("[name=verdict]", "wrong")
            expect(page.locator("#count")).to_contain_text("1 of 10,000 steps: 0.0 % right of 1")
            expect(page.locator(".episode-name")).to_have_text("e0777")
            page.click("#clear")
            expect(page.locator("#count")).to_have_text("10,000 steps: 90.0 % right of 10,000")
            filled = walk(page, range(0, 150, 10))  # more files than the page keeps
            memory, nodes = walk(page, range(150, 500, 10))
            assert memory < filled[0] + 2**20 and nodes < 1000


def walk(page: Page, episodes: range) -> tuple[int, int]:
    """Show the first step of some episodes; the bytes of the script's memory after that, and the number of elements."""
    for episode in episodes:
        page.evaluate("hash => { location.hash = hash; }", f"e{episode:04}/0")
        expect(page.locator(".episode-name")).to_have_text(f"e{episode:04}")
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return session.send("Runtime.getHeapUsage")["usedSize"], page.locator("*").count()


def test_the_list_comes_at_once_with_many_steps(served: Served, tmp_path: Path) -> None:
    """A run's journal is not read for the list; ``perf/view.py`` measures the rest."""
    records = [record(task(f"{number}", length=1), at(500, 500)) for number in range(300)]
    write_run(tmp_path / "large", records)
    library = Library([tmp_path])
    (tmp_path / "large" / "steps.jsonl").unlink()
    assert [row["name"] for row in library.listed()] == ["large"]
