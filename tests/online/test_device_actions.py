"""Actions beyond Table 9: what they do in a browser and on the simulated phone, and that they are unsupported offline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from guieval import actions
from guieval.actions import Click, DoubleClick, Drag, ExecutableAction, Hotkey, Hover, Point, RightClick, Scroll, Type
from guieval.conformance import example_step
from guieval.connectors.pages.browser import Browser
from guieval.connectors.pages.keys import key_name
from guieval.errors import EnvironmentFailure
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.protocols import list_protocols
from guieval.models.scored_response import storable
from guieval.playground.environments.phone import PhoneEnvironment
from tests.online.devices import DEVICE_ACTIONS, Result, played, require_chromium
from tests.rows import every_row

if TYPE_CHECKING:
    from playwright.async_api import Page


@pytest.fixture
def chromium() -> None:
    require_chromium()


needs_browser = pytest.mark.usefixtures("chromium")
REFUSED = "Unable to capture screenshot"
PAGE = """<!doctype html><body style="margin:0;height:3000px;width:2000px">
<textarea id=t style="width:90px;height:40px"></textarea>
<script>
window.log = [];
for (const kind of ['click', 'dblclick', 'contextmenu', 'mousedown', 'mouseup', 'mousemove'])
  document.addEventListener(kind, event => { log.push([kind, event.clientX, event.clientY, event.button]); });
document.addEventListener('contextmenu', event => event.preventDefault());
</script>"""
DRAG = Drag(start=Point(100.0, 500.0), end=Point(600.0, 750.0))


def on_page(folder: Path, html: str, work: Callable[[Browser, Page], Awaitable[Result]]) -> Result:
    """What ``work`` comes to with a page of 400 x 200 pixels."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")

    async def opened() -> Result:
        browser = await Browser.launch((400, 200), 1)
        try:
            return await work(browser, await browser.new_page(file.as_uri()))
        finally:
            await browser.close()

    return asyncio.run(opened())


def done(tmp_path: Path, actions: Sequence[ExecutableAction], read: str) -> Any:
    """What the page reports after actions."""

    async def act(browser: Browser, page: Page) -> Any:
        for action in actions:
            await browser.act(action)
        return await page.evaluate(read)

    return on_page(tmp_path, PAGE, act)


@needs_browser
def test_mouse_actions_of_a_page(tmp_path: Path) -> None:
    double, right, over = (Point(x, 500.0) for x in (500.0, 250.0, 750.0))
    log = done(tmp_path, [DoubleClick(point=double), RightClick(point=right), Hover(point=over)], "log")
    assert ["dblclick", 200, 100, 0] in log and ["contextmenu", 100, 100, 2] in log and log[-1][:3] == ["mousemove", 300, 100]
    assert [event[0] for event in log].count("click") == 2


@needs_browser
def test_a_drag_presses_at_its_start_and_releases_at_its_end(tmp_path: Path) -> None:
    log = done(tmp_path, [DRAG], "log")
    pressed, released = log.index(["mousedown", 40, 100, 0]), log.index(["mouseup", 240, 150, 0])
    between = [event for event in log[pressed + 1 : released] if event[0] == "mousemove"]
    assert len(between) > 3 and between == sorted(between)
    from_pointer = done(tmp_path, [Hover(point=Point(100.0, 500.0)), Drag(end=DRAG.end)], "log")
    assert ["mousedown", 40, 100, 0] in from_pointer and ["mouseup", 240, 150, 0] in from_pointer


@needs_browser
def test_keys_pressed_together_and_keys_that_do_not_exist(tmp_path: Path) -> None:
    field = Click(point=Point(50.0, 50.0))
    known = [Hotkey(keys=("ctrl", "a")), Hotkey(keys=("backspace",)), Type(text="d")]
    for more, text in ((known, "d"), ([Hotkey(keys=("ctrl", "no such key"))], "abc")):
        assert done(tmp_path, [field, Type(text="abc"), *more], "document.getElementById('t').value") == text


@needs_browser
def test_a_scroll_moves_the_page_by_its_distance(tmp_path: Path) -> None:
    def scrolled(distance: float | None) -> float:
        up = Scroll(point=Point(500.0, 500.0), direction="up", distance=distance)
        return float(done(tmp_path, [up], "window.scrollY"))

    assert scrolled(250.0) == 50 and scrolled(2000.0) == 400 and scrolled(None) == 100


@every_row(
    ("written", "name"),
    [
        *(("ctrl", "Control"), ("Return", "Enter"), ("PAGE_DOWN", "PageDown"), ("f5", "F5"), ("left", "ArrowLeft")),
        *(("a", "a"), ("f13", None), ("", None), ("\x00", None)),
    ],
)
def test_names_of_keys(written: str, name: str | None) -> None:
    assert key_name(written) == name


@every_row("device", DEVICE_ACTIONS)
def test_an_action_of_a_device_is_unsupported_offline_and_kept_in_journals(device: Any) -> None:
    action = actions.Unsupported(name="its own name", arguments={"x": 1}, device=device)
    read_back = actions.action_from_json(actions.action_to_json(action))
    assert actions.executable(action) == device and read_back == action == storable(action)
    for protocol in list_protocols():
        assert ActionEvaluator(protocol).evaluate(example_step(Click(point=Point(1.0, 2.0))), action).verdict == "unsupported"
    plain = actions.Unsupported(name="its own name", arguments={"x": 1})
    assert actions.executable(plain) is None and "device" not in actions.action_to_json(plain)
    label = example_step(plain)
    assert ActionEvaluator("ui-r1").evaluate(label, action).exact_match


def test_a_scroll_without_a_distance_is_written_as_before() -> None:
    scroll = Scroll(point=Point(1.0, 2.0), direction="up")
    assert actions.action_to_json(scroll) == '{"type":"SCROLL","point":[1.0,2.0],"direction":"up"}'
    far = scroll.model_copy(update={"distance": 3.0})
    assert actions.action_from_json(actions.action_to_json(far)) == far


def test_a_phone_swipes_where_a_mouse_drags_and_has_no_pointer() -> None:
    def shown(actions: Sequence[ExecutableAction]) -> bytes:
        environment = PhoneEnvironment(episodes=1)
        return played(environment, environment.tasks()[0], actions)[0][-1].screenshot

    def same(one: Sequence[ExecutableAction], other: Sequence[ExecutableAction]) -> bool:
        return shown(one) == shown(other)

    home: ExecutableAction = actions.Press(button="HOME")
    left = Drag(start=Point(800.0, 500.0), end=Point(200.0, 500.0))
    assert same([home, left], [home, Scroll(point=Point(800.0, 500.0), direction="left")])
    nothing = [action for action in DEVICE_ACTIONS if not isinstance(action, DoubleClick) and action.type != "DRAG"]
    assert same([home, *nothing, Drag(end=Point(1.0, 1.0))], [home])
    for y in range(50, 1000, 100):
        point = Point(150.0, float(y))
        assert same([home, DoubleClick(point=point)], [home, Click(point=point), Click(point=point)])


def test_half_surrogates_in_device_actions_are_made_storable() -> None:
    action = actions.Unsupported(name="answer", device=actions.Answer(text="\ud800"))
    assert actions.action_from_json(actions.action_to_json(storable(action))) == storable(action)


@needs_browser
def test_a_text_field_with_the_focus_shows_its_caret_and_the_caret_does_not_blink(tmp_path: Path) -> None:
    """Else a model cannot see whether it may type; and a caret that blinks would make every run different."""

    async def look(browser: Browser, page: Page) -> tuple[bool, bytes, set[bytes]]:
        known = await page.evaluate("CSS.supports('caret-animation', 'manual')")
        before = await browser.screenshot()
        await page.focus("#field")
        focused = {await browser.screenshot()}
        end = time.monotonic() + 0.6  # a caret that blinks is away for half a second of each
        while time.monotonic() < end:
            focused.add(await browser.screenshot())
        return known, before, focused

    known, before, focused = on_page(tmp_path, "<textarea id=field style='outline: none'>text</textarea>", look)
    assert len(focused) == 1 and (before not in focused) == known


@needs_browser
@pytest.mark.parametrize(
    ("refusals", "message", "captured"), [(2, REFUSED, True), (99, REFUSED, False), (1, "Target crashed", False)]
)
def test_a_capture_that_chromium_refuses_for_a_moment_is_attempted_again(
    refusals: int, message: str, captured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.async_api import Error, Page

    monkeypatch.setattr("guieval.connectors.pages.browser._CAPTURE_WAITS", (0.01, 0.01))
    capture, attempts = Page.screenshot, []

    async def refuse(self: Page, **options: Any) -> bytes:
        attempts.append(options)
        if len(attempts) <= refusals:
            raise Error(f"Page.screenshot: Protocol error (Page.captureScreenshot): {message}")
        return await capture(self, **options)

    async def look(browser: Browser, _: Page) -> tuple[bytes, bytes]:
        undisturbed = await browser.screenshot()
        monkeypatch.setattr(Page, "screenshot", refuse)
        return undisturbed, await browser.screenshot()

    if captured:
        first, second = on_page(tmp_path, "<p>text</p>", look)
        assert first == second and len(attempts) == 3
    else:
        with pytest.raises(EnvironmentFailure, match=message):
            on_page(tmp_path, "<p>text</p>", look)
        assert len(attempts) == (3 if message == REFUSED else 1)
