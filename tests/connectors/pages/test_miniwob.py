"""MiniWoB++ in a real Chromium: every page starts and is judged, seeds reproduce pages, and no process is left."""

from __future__ import annotations

import asyncio
import signal
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import psutil
import pytest
from PIL import Image

from guieval.actions import Click, Hover, Point, Press, Stop, Type, Wait
from guieval.connectors.pages.browser import NO_NETWORK, STEP_MILLISECONDS
from guieval.connectors.pages.miniwob import SIZE, MiniWoB
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice, EnvironmentTask
from tests.connectors.pages.as_a_person import ONE, do_all
from tests.connectors.pages.held import held
from tests.online.acting import below, left_of, running, signal_all
from tests.online.devices import on, require_chromium
from tests.waiting import PATIENCE

require_chromium("miniwob")


def task(name: str) -> EnvironmentTask:
    return EnvironmentTask(name, 20)


def slowly(*values: object) -> list[Any]:
    """Parameters that only `pytest --tier full` takes."""
    return [pytest.param(value, marks=pytest.mark.full) for value in values]


@pytest.mark.parametrize("every", [7, *slowly(1)])
def test_every_page_starts_and_is_judged(every: int) -> None:
    """One page in seven; `pytest --tier full tests/online` takes all."""
    environment = MiniWoB(scale=1)

    async def work(device: ABCDevice) -> None:
        for page in environment.tasks()[::every]:
            seen = await device.reset(page, seed=3)
            assert seen.goal and not seen.over and seen.size == (160, 210) and seen.text is None, page.id
            assert Image.open(BytesIO(seen.screenshot)).size == (160, 210)
            score = await device.score()
            assert not score.success and score.reason == "the page has not ended the task", page.id

    assert len(environment.tasks()) == 130
    on(environment, work)


@pytest.mark.parametrize("name", ["click-button", "book-flight", *slowly("enter-date", "use-slider", "email-inbox")])
def test_a_seed_reproduces_a_page_bit_by_bit(name: str) -> None:
    async def seen(device: ABCDevice) -> list[bytes]:
        shots = []
        for seed in (1, 2):
            shots.append((await device.reset(task(name), seed)).screenshot)
            shots.append((await device.step([Click(point=Point(500, 500))])).screenshot)
        return shots

    environment = MiniWoB(scale=2)
    first, second = on(environment, seen), on(environment, seen)
    assert first == second and first[0] != first[2]


def on_screen(x: float, y: float) -> Point:
    """A point in the page's 160 x 210 CSS pixels, in the unified space."""
    return Point(x / 160 * 1000, y / 210 * 1000)


def test_the_page_judges_right_and_wrong_clicks() -> None:
    """click-test-2 has two buttons, ONE and TWO; the page's script gives their places."""

    async def outcome(device: ABCDevice, button: str) -> tuple[bool, float, bool]:
        await device.reset(task("click-test-2"), 5)
        page = device._browser.page  # type: ignore[attr-defined]
        box = await page.locator(f"button:text-is('{button}')").bounding_box()
        seen = await device.step([Click(point=on_screen(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))])
        score = await device.score()
        return score.success, score.progress, seen.over

    async def work(device: ABCDevice) -> None:
        assert await outcome(device, "ONE") == (True, 1.0, True)
        assert await outcome(device, "TWO") == (False, 0.0, True)
        await device._browser.page.evaluate("WOB_RAW_REWARD_GLOBAL = 0.94")  # type: ignore[attr-defined]
        score = await device.score()
        assert score.success and score.progress == 0.94, "a reward of 0.94 is not the whole task"

    on(MiniWoB(), work)


@pytest.mark.parametrize("address_bar", [False, *slowly(True)])
def test_the_web_as_a_person_sees_it(address_bar: bool) -> None:
    environment = MiniWoB(address_bar=address_bar)
    environment.pages = {"one": ONE}
    do_all(environment, SIZE[1], address_bar=address_bar)


def test_text_is_typed_and_time_does_not_end_a_task() -> None:
    async def work(device: ABCDevice) -> None:
        seen = await device.reset(task("enter-text"), 0)
        wanted = seen.goal.split('"')[1]
        page = device._browser.page  # type: ignore[attr-defined]
        await page.clock.run_for(60_000)  # the page's own limit is 10 s
        field, button = await page.locator("#tt").bounding_box(), await page.locator("#subbtn").bounding_box()
        await device.step([Click(point=on_screen(field["x"] + 5, field["y"] + 5)), Type(text=wanted), Press(button="ENTER")])
        await device.step([Click(point=on_screen(button["x"] + 5, button["y"] + 5))])
        assert (await device.score()).success
        assert seen.text is not None and wanted in seen.text

    on(MiniWoB(text=True), work)


def test_actions_after_the_end_or_a_stop_do_nothing() -> None:
    async def work(device: ABCDevice) -> None:
        first = await device.reset(task("click-test"), 0)
        everywhere = [Click(point=Point(x, y)) for x in range(50, 1000, 100) for y in range(300, 1000, 50)]
        seen = await device.step([Stop(), *everywhere])
        assert not seen.over and seen.screenshot == first.screenshot

    on(MiniWoB(), work)


@pytest.mark.parametrize("name", ["chase-circle", *slowly("moving-items")])
def test_moving_parts_are_at_the_same_places_however_long_a_page_loads(name: str) -> None:
    async def work(device: ABCDevice) -> list[bytes]:
        screens = [await device.reset(task(name), 3)]
        for action in (Hover(point=Point(500, 600)), Wait(duration=700.0), Click(point=Point(10, 10))):
            screens.append(await device.step([action]))
        return [screen.screenshot for screen in screens]

    first, *others = (on(MiniWoB(), work) for _ in range(3))
    assert others == [first, first] and len(set(first)) == len(first)


def test_a_page_that_fades_in_is_the_same_on_a_busy_machine() -> None:
    """The calendar of book-flight fades in; how many frames of that Chromium draws depends on the machine's load."""
    environment = MiniWoB(scale=1)

    async def seen() -> list[bytes]:
        device, screens = await environment.open(), []
        try:
            for _ in range(3):
                await device.reset(task("book-flight"), 3)
                for point in (Point(300, 450), Point(500, 500), Point(700, 800)):
                    screen = await device.step([Click(point=point)])
                screens.append(screen.screenshot)
        finally:
            await device.close()
        return screens

    async def together() -> set[bytes]:
        return {screenshot for screens in await asyncio.gather(*(seen() for _ in range(6))) for screenshot in screens}

    assert len(asyncio.run(together())) == 1


def test_a_page_reaches_no_network() -> None:
    async def work(device: ABCDevice) -> None:
        await device.reset(task("click-test"), 0)
        page = device._browser.page  # type: ignore[attr-defined]
        for address in ("http://example.com/", "http://1.1.1.1/", "https://[2606:4700::1111]/"):
            failure = await page.evaluate(f"fetch('{address}', {{mode: 'no-cors'}}).then(() => 'reached', e => e.message)")
            assert failure == "Failed to fetch", address

    on(MiniWoB(), work)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_page_reaches_another_host_only_where_it_is_allowed(allowed: bool) -> None:
    """127.0.0.2 stands for another host: only 127.0.0.1 is exempt."""
    server = ThreadingHTTPServer(("127.0.0.2", 0), SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def work(device: ABCDevice) -> None:
        await device.reset(task("click-test"), 0)
        fetch = f"fetch('http://127.0.0.2:{server.server_port}/', {{mode: 'no-cors'}}).then(() => 'reached', e => e.message)"
        assert await device._browser.page.evaluate(fetch) == ("reached" if allowed else "Failed to fetch")  # type: ignore[attr-defined]

    try:
        on(MiniWoB(allow_network=allowed), work)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_dead_browser_is_an_environment_failure() -> None:
    async def work(device: ABCDevice) -> None:
        await device.reset(task("click-test"), 0)
        signal_all(running("chrom", psutil.Process().children(recursive=True)), signal.SIGKILL)
        with pytest.raises(EnvironmentFailure, match="the browser failed at"):
            await device.step([Click(point=Point(500, 500))])

    on(MiniWoB(), work)


def test_a_call_that_a_dead_browser_leaves_unanswered_ends() -> None:
    async def work(device: ABCDevice) -> None:
        await device.reset(task("click-test"), 0)
        browser = device._browser  # type: ignore[attr-defined]
        signal_all(running("chrom", psutil.Process().children(recursive=True)), signal.SIGKILL)
        for _ in range(2):  # one under way, and one that comes later
            with pytest.raises(EnvironmentFailure, match="the browser failed at a wait: Chromium or its page has ended"):
                async with browser.call("a wait"):
                    await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)

    on(MiniWoB(), work)


def test_nothing_is_left_of_a_killed_process() -> None:
    with held("miniwob") as process:
        started = below(process)
        assert running("chrom", started)
    assert not left_of(started)


def test_a_chromium_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUIEVAL_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(UsageError, match="GUIEVAL_CHROMIUM names '/nowhere/chromium', which is not a file"):
        asyncio.run(MiniWoB().open())


def test_a_page_s_clock_follows_steps_and_not_real_time() -> None:
    async def work(device: ABCDevice) -> float:
        await device.reset(task("click-test"), 0)
        page = device._browser.page  # type: ignore[attr-defined]
        before = await page.evaluate("Date.now()")
        for _ in range(3):  # each takes some milliseconds of real time
            await device.step([Press(button="HOME")])
        return float(await page.evaluate("Date.now()") - before)

    assert on(MiniWoB(), work) == 3 * STEP_MILLISECONDS


def test_chromium_is_told_to_send_no_webrtc_without_a_proxy() -> None:
    """A page's offer to a STUN server is UDP, which no proxy holds back; both spellings have been in use."""
    for switch in ("--force-webrtc-ip-handling-policy", "--webrtc-ip-handling-policy"):
        assert f"{switch}=disable_non_proxied_udp" in NO_NETWORK
