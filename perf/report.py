"""Measures the step viewer on a large run: writing it, its size, and how long a browser takes to open and filter it.

Run it as ``python perf/report.py [steps]`` (default 30,000). The run is made up, ten steps an episode, with 40 boxes a step and
replies of a few hundred characters; it has no screenshots, whose cost is reported separately, for PNGs of 1080 x 2400 pixels:
linked, as ``guieval report`` does, and scaled down, as it does with ``--small-images``.
The browser is /usr/bin/chromium through playwright; without it only writing is measured.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from guieval.actions import Action, ActionSpace, Boxes, Click, Point, Stop, Type
from guieval.evaluation import ActionEvaluator
from guieval.journal import Journal
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import protocols_to_show, shown_run
from guieval.reports.viewer.writing import write_report
from guieval.steps import EpisodeKey, Sample, StepRecord, StepTaskModel

LENGTH = 10
CHROMIUM = Path("/usr/bin/chromium")


def made_up(rng: random.Random, episode: int, step: int) -> StepTaskModel:
    target = Point(rng.uniform(50, 950), rng.uniform(50, 950))
    corners = [(rng.uniform(0, 800), rng.uniform(0, 900)) for _ in range(39)]
    boxes = [[target.x - 40, target.y - 20, target.x + 40, target.y + 20]]
    boxes += [[x, y, x + rng.uniform(20, 200), y + rng.uniform(20, 100)] for x, y in corners]
    return StepTaskModel(
        benchmark="androidcontrol",
        dataset="androidcontrol",
        episode_id=f"{episode:05}",
        step_index=step,
        episode_length=LENGTH,
        instruction=f"Open app {episode % 97}, look for item {episode} and add it to the list of things to buy",
        low_level_instruction=f"Tap entry {step} of the list",
        screenshot=f"{episode:05}/{step}.png",
        screenshot_size=(1080, 2400),
        action=Click(point=target),
        elements=Boxes(boxes),
        groups={"app": f"app {episode % 97}", "category": f"category {episode % 7}"},
    )


def write_run(folder: Path, steps: int) -> None:
    rng = random.Random(0)
    evaluator = ActionEvaluator("guievalkit")
    space = ActionSpace().to_json()
    manifest = {
        "schema": 1,
        "config": {"bench": "androidcontrol"},
        "model": {"name": "made-up"},
        "benchmark": {"name": "androidcontrol"},
        "protocol": {"name": "guievalkit", "fingerprint": evaluator.protocol.fingerprint},
        "mode": {"name": "offline", "history": "reference", "stop": "never"},
        "action_spaces": {"model": space, "benchmark": space},
    }
    episodes = steps // LENGTH
    with Journal(folder) as journal:
        plan = {EpisodeKey("androidcontrol", "", f"{each:05}"): range(LENGTH) for each in range(episodes)}
        journal.start(manifest, plan)
        for episode in range(episodes):
            for step in range(LENGTH):
                task = made_up(rng, episode, step)
                answers: list[Action] = [task.action, Click(point=Point(rng.uniform(0, 1000), 500)), Type(text="shoes"), Stop()]
                action = rng.choices(answers, (6, 2, 1, 1))[0]
                reply = f"Thought: {' '.join(rng.choices(('the', 'list', 'button', 'shows', 'search', 'result'), k=60))}"
                sample = Sample(raw_response=reply, action=action, outcome=evaluator.evaluate(task, action))
                journal.append(StepRecord(task=task, samples=(sample,)))


def measure_writing(run: Path, out: Path) -> None:
    started = time.perf_counter()
    shown = shown_run(run)
    opened = time.perf_counter()
    protocols = protocols_to_show(shown, ("all",))
    written = write_report(out, shown, Pictures(None, out), protocols)
    ended = time.perf_counter()
    size = sum(each.stat().st_size for each in out.rglob("*") if each.is_file()) / 1e6
    index = (out / "data" / "index.js").stat().st_size / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {written.steps:,} steps under {len(protocols)} protocols")
    each = 1000 * (ended - opened) / written.steps
    print(f"  read {opened - started:.1f} s, written {ended - opened:.1f} s ({each:.2f} ms a step)")
    print(f"  {size:.0f} MB, the index of them {index:.1f} MB; the writer held at most {memory:.0f} MiB")


def write_screenshots(folder: Path, count: int) -> list[StepTaskModel]:
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 255, (300, 135, 3), dtype=np.uint8)
    picture = Image.fromarray(noise).resize((1080, 2400), Image.Resampling.BICUBIC)
    tasks = [made_up(random.Random(0), step // LENGTH, step % LENGTH) for step in range(count)]
    for task in tasks:
        path = folder / task.screenshot
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)
    return tasks


def measure_screenshots(folder: Path, count: int = 16) -> None:
    tasks = write_screenshots(folder / "data", count)
    for way, small in (("linked", False), ("scaled down", True)):
        started, spent = time.perf_counter(), time.process_time()
        pictures = Pictures(folder / "data", folder / way, small=small)
        pictures.of(tasks)
        wall, processor = (1000 * each / count for each in (time.perf_counter() - started, time.process_time() - spent))
        size = sum(each.stat().st_size for each in (folder / way).rglob("*.*") if each.stat().st_nlink == 1) / count / 1000
        print(f"  a screenshot of 1080 x 2400, {way}: {processor:.1f} ms of a processor, {wall:.1f} ms, {size:.0f} kB more")
        assert pictures.made == count


def measure_browser(out: Path, last: int) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        started = time.perf_counter()
        page.goto((out / "index.html").as_uri())
        expect(page.locator("#strip [aria-current=step]")).to_have_count(1, timeout=60_000)
        print(f"  opened in {time.perf_counter() - started:.2f} s")
        for name, value in (("verdict", "wrong"), ("disagree", "yes"), ("predicted", "TYPE"), ("query", f"item {last}")):
            spent = page.evaluate(
                """async ([name, value]) => {
                    const form = document.getElementById("filters"), count = document.getElementById("count");
                    form.elements[name].value = value;
                    const changed = new Promise((done) => new MutationObserver(done).observe(count, { childList: true }));
                    const started = performance.now();
                    form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
                    await changed;
                    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                    return performance.now() - started;
                }""",
                [name, value],
            )
            print(f"  filter {name} = {value!r}: {spent:.0f} ms, {page.locator('#count').inner_text()}")
            page.click("#clear")
            page.wait_for_timeout(500)
        started = time.perf_counter()
        page.evaluate(f"location.hash = '#{last:05}/9/guievalkit'")
        expect(page.locator(".episode-name")).to_have_text(f"{last:05}")
        print(f"  a link to the last episode: {time.perf_counter() - started:.2f} s")
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        print(f"  the page's heap: {heap:.0f} MB")
        browser.close()


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder / "run", steps)
        measure_writing(folder / "run", folder / "report")
        measure_screenshots(folder)
        if CHROMIUM.exists():
            measure_browser(folder / "report", steps // LENGTH - 1)


if __name__ == "__main__":
    main()
