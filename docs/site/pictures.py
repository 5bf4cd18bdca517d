"""Makes the pictures of README.md and of the pages next to it from a run of ``make demo``, which is always the same.

Run it as ``python docs/site/pictures.py runs/demo-DATE``, with a Chromium and the extra ``dev``. The viewer's pictures are what
Chromium shows of ``guieval view``; the plot is that of ``guieval plot``. The composition is run here, on mock servers. The
board's picture is of pages that ``python -m perf.board`` wrote, if they are named after the run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from guieval.connectors.pages.browser import find_chromium
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark

DOCS = Path(__file__).parent.parent
STEP = "#s0-0008/3"
"""With the reference's past the agent is right here; with its own it takes the task for done."""
PROTOCOLS = ("guievalkit", "osatlas", "gui-r1", "ui-s1-sop", "aitw-original", "coat-official", "screensuite")


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """The address of the viewer, with its token, while it serves the runs of a folder."""
    command = [sys.executable, "-m", "guieval", "view", str(runs), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(line.split()[1] for line in server.stdout if line.startswith("open:"))
        finally:
            server.terminate()


def shoot(page: Page, file: Path) -> None:
    """Write what a page shows, in 256 colours, which is a third of the size."""
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file)
    Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(file, optimize=True)


def run_composition(folder: Path) -> None:
    """A run of a planner and a grounder that is zoomed in, in ``folder``/run."""
    names, data = ("qwen3-vl-8b-instruct", "uground-v1-7b"), folder / "data"
    settings = [MockSettings(policy="reference", model=name, zoom=2) for name in names]
    benchmark = load_benchmark("demo", data)
    with MockServer(settings[0], benchmark=benchmark) as planner, MockServer(settings[1], benchmark=benchmark) as grounder:
        words = ["--model", "planner={},grounder={}".format(*names), "--zoom", "2", "--bench", "demo", "--data", str(data)]
        words += ["--base-url", planner.base_url, "--grounder-base-url", grounder.base_url, "--limit", "1", "--quiet"]
        subprocess.run([sys.executable, "-m", "guieval", "run", *words, "--out", str(folder / "run")], check=True)


def shoot_board(page: Page, board: Path) -> None:
    """The numbers of a benchmark, with what is known of the first."""
    page.goto((board / "screenspot-v2.html").absolute().as_uri())
    page.get_by_role("button", name="Details of").first.click()
    shoot(page, DOCS / "board" / "board.png")


def main(run: Path, board: Path | None = None) -> None:
    with served(run) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(playwright.chromium.executable_path), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme="light")
        if board is not None:
            shoot_board(page, board)
        page.goto(url)
        base = page.url
        rows = page.evaluate("address => fetch(address).then((answer) => answer.json())", f"{base}data/runs")
        ids = {row["name"]: row["id"] for row in rows}
        page.goto(f"{base}runs/{ids['soeval']},{ids['offline']}/steps/{STEP}")
        expect(page.locator("#strip [aria-current=step]")).to_have_count(1)
        shoot(page, DOCS / "viewer.png")
        page.goto(f"{base}runs/{ids['offline']}/")
        page.wait_for_selector("#protocols button")
        shoot(page, DOCS / "viewer-overview.png")
        with tempfile.TemporaryDirectory() as folder:
            run_composition(Path(folder))
            with served(Path(folder)) as url:
                page.goto(url)
                page.goto(f"{page.url}steps/")
                page.get_by_role("button", name="Next step").click()  # the first one opens an app, without a place
                expect(page.locator("#panel .asked")).to_have_count(3)
                page.locator("#panel .asked").first.evaluate("part => part.scrollIntoView()")
                shoot(page, DOCS / "viewer-composition.png")
        browser.close()
    plot = [sys.executable, "-m", "guieval", "plot", "matrix", str(run / "offline"), "--width", "two-column"]
    chosen = [word for name in PROTOCOLS for word in ("--protocol", name)]
    subprocess.run([*plot, *chosen, "--out", str(DOCS / "protocols.png")], check=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
