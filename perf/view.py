"""Measures ``guieval view`` on a large run: how soon its pages come, and what memory the server takes while one looks around.

Run it as ``python -m perf.view [steps]`` (default 10,000). The run is that of ``perf/report.py``, with screenshots of
1080 x 2400 pixels for its first 40 steps, and has ended, so that its ``metrics.json`` is there. The command is started as a
user starts it, in a process of its own; times are of one request each, and of the command up to the moment when it takes
requests. Memory is the process's resident set, and in the browser the heap of the page's script.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil

from guieval.scoring.score import evaluate_run, store_summary
from perf.report import CHROMIUM, write_run, write_screenshots

if TYPE_CHECKING:
    from playwright.sync_api import Page

SHOWN = 40


class Client:
    """Asks a server, with its cookie."""

    def __init__(self, url: str, server: psutil.Process) -> None:
        self._server = server
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._cookie = f"guieval={parts.query.removeprefix('token=')}"

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:200])
        return body

    def timed(self, what: str, path: str) -> bytes:
        started, spent = time.perf_counter(), sum(self._server.cpu_times()[:2])
        body = self.get(path)
        processor = sum(self._server.cpu_times()[:2]) - spent
        print(f"  {what}: {time.perf_counter() - started:.2f} s, {processor:.2f} s of a processor, {len(body) / 1000:,.0f} kB")
        return body


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The command, serving, and its address."""
    command = [sys.executable, "-m", "guieval", "view", str(folder / "runs")]
    server = subprocess.Popen([*command, "--no-browser", "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("open:"):
            return server, line.split()[1]
    raise SystemExit("the viewer did not start")


def write_data(folder: Path, manifest: Path) -> None:
    """A data folder with the first screenshots, named in the run's manifest."""
    folder.mkdir()
    tasks = write_screenshots(folder, SHOWN)
    step = {"screenshot": tasks[0].screenshot, "action": {"type": "STOP"}}
    line = {"episode_id": "other", "instruction": "Stop", "frame": "pixels", "steps": [step]}
    (folder / "episodes.jsonl").write_text(json.dumps(line) + "\n")
    values = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**values, "config": {"bench": "episodes", "data": str(folder)}}))


def look_around(client: Client, server: psutil.Process, steps: int) -> None:
    def memory(what: str) -> None:
        print(f"  memory {what}: {server.memory_info().rss / 2**20:.0f} MiB")

    memory("at the start")
    (row,) = json.loads(client.timed("list of runs", "/data/runs"))
    run = f"/runs/{row['id']}"
    client.timed("overview, its page", f"{run}/")
    client.timed("overview, what the run is and its stored figures", f"{run}/data/head")
    client.timed("overview, the figures", f"{run}/data/metrics")
    client.timed("overview, the breakdowns", f"{run}/data/breakdowns")
    client.timed("step viewer, its page", f"{run}/steps/")
    client.timed("step viewer, its index", f"{run}/steps/data/index.js")
    client.timed("step viewer, its first steps", f"{run}/steps/data/steps-00000.js")
    client.timed("a screenshot", f"{run}/steps/images/{0:016x}")
    client.timed("a thumbnail", f"{run}/steps/thumbs/{0:016x}")
    memory("after the first step")
    for number in range(0, steps // 50, 4):
        client.get(f"{run}/steps/data/steps-{number:05}.js")
    for number in range(SHOWN):
        client.get(f"{run}/steps/images/{number:016x}")
        client.get(f"{run}/steps/thumbs/{number:016x}")
    memory(f"after a quarter of the steps and {SHOWN} screenshots")
    for number in range(0, steps // 50):
        client.get(f"{run}/steps/data/steps-{number:05}.js")
    memory("after all steps")
    client.timed("figures under every protocol", f"{run}/data/protocols")
    memory("after every protocol")


def end_run(directory: Path) -> None:
    """Write ``metrics.json``, as a run does at its end."""
    store_summary(directory, evaluate_run(directory).summary)


@contextmanager
def chromium() -> Iterator[Page]:
    """A page in a new browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()


def follow_link(url: str) -> None:
    """Open the server at a step in the middle, of which it has read nothing yet."""
    overview, query = url.split("?")
    with chromium() as page:
        began = time.perf_counter()
        page.goto(f"{overview}steps/?{query}#00500/3")
        page.wait_for_selector("#strip [aria-current=step]")
        print(f"  Chromium, the step: {time.perf_counter() - began:.2f} s")


def browse(url: str) -> None:
    """Go from the overview to the first step, and through 100 episodes."""
    from playwright.sync_api import expect

    def memory(page: Page) -> str:
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        found = session.send("Runtime.getHeapUsage")["usedSize"] / 2**20
        return f"{found:.1f} MiB, {page.evaluate('document.getElementsByTagName(`*`).length'):,} elements"

    with chromium() as page:
        began = time.perf_counter()
        page.goto(url)
        page.wait_for_selector(".cards li")
        print(f"  Chromium, the first page, an overview with its headline figures: {time.perf_counter() - began:.2f} s")
        page.wait_for_selector("#metrics table")
        print(f"  Chromium, the same with intervals and every figure: {time.perf_counter() - began:.2f} s")
        page.wait_for_selector("#protocols button")
        page.wait_for_load_state("networkidle")
        print(f"  Chromium, the whole overview, and the steps made ready: {time.perf_counter() - began:.2f} s")
        began = time.perf_counter()
        page.get_by_role("link", name="Steps", exact=True).click()
        expect(page.locator("#strip [aria-current=step]")).to_have_count(1, timeout=30_000)
        print(f"  Chromium, the first step: {time.perf_counter() - began:.2f} s; memory {memory(page)}")
        for number in range(1, 101):
            page.keyboard.press("n")
            expect(page.locator(".episode-name")).to_have_text(f"{number:05}")
        print(f"  Chromium, memory after 100 episodes: {memory(page)}")


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder / "runs" / "made-up", steps)
        end_run(folder / "runs" / "made-up")
        write_data(folder / "data", folder / "runs" / "made-up" / "manifest.json")
        for what in ("asked directly", "in a browser", "by a link to a step"):
            began = time.perf_counter()
            server, url = started(folder)
            print(f"{steps:,} steps, {what}\n  the command takes requests after {time.perf_counter() - began:.2f} s")
            try:
                if what == "asked directly":
                    process = psutil.Process(server.pid)
                    look_around(Client(url, process), process, steps)
                elif CHROMIUM.exists():
                    (browse if what == "in a browser" else follow_link)(url)
            finally:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
