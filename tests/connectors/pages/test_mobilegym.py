"""MobileGym by its package, against a stand-in of its published interface on a page in a real Chromium."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from guieval.actions import BUTTONS, Answer, Click, DoubleClick, Drag, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.conformance.environments import check_environment
from guieval.connectors.pages.mobilegym import MobileGym, mobilegym_action
from guieval.errors import UsageError
from guieval.online import ABCDevice, EnvironmentTask
from tests.connectors.pages.as_a_person import ONE, WEB, do_all
from tests.online.devices import EVERY, failure, on, require_chromium
from tests.online.in_thread import InThread
from tests.rows import every_row

require_chromium()

REAL = "GUIEVAL_TEST_MOBILEGYM"
LEFT, RIGHT = Click(point=Point(250, 500)), Click(point=Point(750, 500))
PAGE = """<!doctype html><body style="margin: 0">
<script>
window.__SIM__ = {saves: 0, likes: 0};
addEventListener('click', event => { window.__SIM__[event.clientX < innerWidth / 2 ? 'saves' : 'likes'] += 1; });
</script>
"""


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in can be imported as ``bench_env``, unless the real package is asked for."""
    before = {name for name in sys.modules if name.partition(".")[0] == "bench_env"}
    if REAL not in os.environ:
        monkeypatch.syspath_prepend(Path(__file__).parent / "mobilegym")
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "bench_env" and name not in before]:
        del sys.modules[name]


@contextmanager
def served(page: str = PAGE, **options: Any) -> Iterator[MobileGym]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html")

    app = web.Application()
    for path in ("/", "/index.html"):
        app.router.add_get(path, answer)
    app.router.add_static("/", WEB)
    with InThread(app) as running:
        yield MobileGym(url=running.address, pause=0.0, **options)


stand_in = pytest.mark.skipif(REAL in os.environ, reason="the real package is asked for")


@stand_in
def test_the_environment_conforms() -> None:
    with served(without="map") as environment:
        assert check_environment(environment) == []


@stand_in
def test_the_web_as_a_person_sees_it() -> None:
    with served(ONE.read_text()) as environment:
        do_all(environment, 800)


@stand_in
def test_tasks_of_a_split_with_their_own_budgets() -> None:
    with served() as environment:
        groups = {"suite": "notes", "difficulty": "L1", "apps": "notes"}
        assert environment.tasks()[0] == EnvironmentTask("notes.Save", 15, groups=groups)
        assert [task.max_steps for task in environment.tasks()] == [15, 30]
        assert environment.version.startswith("mobilegym-0.1.0-") and environment.version.endswith("-pause0")
    with served(split="all", without="map", max_steps=7) as environment:
        assert [(task.id, task.max_steps) for task in environment.tasks()] == [("notes.Save", 7), ("notes.Extra", 7)]


@stand_in
def test_mobilegym_judges_and_the_agent_must_end_the_task() -> None:
    with served() as environment:
        task = environment.tasks()[0]

        async def play(device: ABCDevice) -> Any:
            seen = await device.reset(task, 1)
            assert (seen.goal, seen.size) == ("Press the left half 2 times", (1080, 2400))
            await device.step([LEFT])
            half = await device.score()
            await device.step([LEFT])
            unended = await device.score()
            await device.step([Stop(), RIGHT])
            ended = await device.score()
            await device.reset(task, 0)
            await device.step([LEFT, RIGHT, Stop()])
            dirty = await device.score()
            await device.reset(task, 0)
            await device.step([LEFT, Stop(status="impossible")])
            return half, unended, ended, dirty, await device.score()

        half, unended, ended, dirty, given_up = on(environment, play)
        assert (half.success, half.progress, half.reason) == (False, 0.5, "saves is 1; expected 2")
        assert not unended.success and unended.reason.endswith("but the agent has not ended the task as done")
        assert ended.success and ended.progress == 1 and ended.side_effects == ()
        assert not dirty.success and dirty.side_effects == ("apps.notes.likes",)
        assert not given_up.success


@stand_in
def test_a_task_without_its_data_or_another_page_is_a_failure_of_the_environment() -> None:
    with served() as environment:
        save, broken = environment.tasks()
        reason = "MobileGym failed at the start of task 'notes.Broken': IndexError: Cannot choose from an empty sequence"
        assert failure(environment, broken) == ("reset", reason)
        assert failure(environment, save, Answer(text="break")) == ("score", "MobileGym's judge failed: no state")
    with served("<p>another page") as environment:
        call, failed = failure(environment, environment.tasks()[0])
    assert call == "reset" and "the page has no __SIM__" in failed


@stand_in
@every_row(
    ("options", "message"),
    [
        ({"split": "tset"}, "MobileGym has no split 'tset' (did you mean 'test'?); expected all, test"),
        ({"without": "maps"}, "option without names 'maps' (did you mean 'map'?); expected of map, notes"),
        ({"without": "notes"}, "no task of MobileGym's split 'test' is left without notes"),
        ({"max_steps": -1}, "option max_steps is -1; expected at least 1, or 0 for MobileGym's own budgets"),
        ({"pause": 61.0}, "option pause is 61; expected 0 to 60 seconds"),
        ({"url": ""}, "environment 'mobilegym' needs the address of its server: --set bench_options.url=http://127.0.0.1:4173"),
        (
            {"url": "http://a:4173"},
            "option url is 'http://a:4173'; without --allow-network pages reach only 127.0.0.1, as in http://127.0.0.1:4173",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with served() as right, pytest.raises(UsageError) as refused:
        MobileGym(**{"url": right.address, **options}).tasks()
    assert str(refused.value) == message


@stand_in
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as environment:
        monkeypatch.setitem(sys.modules, "bench_env.task", None)
        with pytest.raises(UsageError, match=r"bench_env cannot be imported \(import of bench_env.task halted"):
            environment.tasks()
    monkeypatch.undo()
    sys.modules.pop("bench_env", None)
    with pytest.raises(UsageError, match=r"needs MobileGym's package bench_env: PYTHONPATH=MOBILEGYM"):
        MobileGym(url="http://127.0.0.1:4173")


def test_every_action_is_mobilegym_s_or_none() -> None:
    from bench_env.env import ActionType

    point = Point(250.0, 500.0)
    for found in filter(None, map(mobilegym_action, EVERY)):
        assert ActionType(found[0]) and json.dumps(found[1])
    at, swiped = {"point": [250.0, 500.0]}, {"point1": [250.0, 500.0], "point2": [250.0, 300.0]}
    assert mobilegym_action(LEFT) == ("CLICK", at) and mobilegym_action(DoubleClick(point=point)) == ("DOUBLE_TAP", at)
    assert mobilegym_action(LongPress(point=point)) == ("LONG_PRESS", {**at, "duration": 1000})
    assert mobilegym_action(Scroll(point=point, direction="up", distance=200.0)) == ("SWIPE", swiped)
    assert mobilegym_action(Drag(start=point, end=Point(0, 0))) == ("DRAG", {"point1": [250.0, 500.0], "point2": [0.0, 0.0]})
    assert mobilegym_action(Type(text="a")) == ("TYPE", {"value": "a"})
    assert mobilegym_action(Open(app="Settings")) == ("AWAKE", {"value": "Settings"})
    assert [mobilegym_action(Press(button=button)) for button in BUTTONS] == [(button, {}) for button in BUTTONS]
    assert mobilegym_action(Wait(duration=1500.0)) == ("WAIT", {"value": 1.5})
    assert mobilegym_action(Answer(text="7")) == ("ANSWER", {"value": "7"})
    assert [mobilegym_action(Stop()), mobilegym_action(Stop(status="impossible"))] == [("COMPLETE", {}), ("ABORT", {})]
    assert mobilegym_action(Drag(end=point)) is None
    assert {each.type for each in EVERY if mobilegym_action(each) is None} == {"RIGHT_CLICK", "HOVER", "DRAG", "HOTKEY", "ASK"}


@pytest.mark.skipif(REAL not in os.environ, reason=f"{REAL} does not name the address of a MobileGym that is up")
def test_a_task_of_the_real_phone_is_judged() -> None:
    """Needs PYTHONPATH=MOBILEGYM. With seed 0 the task names a bank, whose conversation is the fourth of the list."""
    environment = MobileGym(url=os.environ[REAL])
    task = next(task for task in environment.tasks() if task.id == "sms.OpenConversationBySender")

    async def play(device: ABCDevice) -> Any:
        first = await device.reset(task, 0)
        begun = await device.score()
        await device.step([Click(point=Point(500, 662)), Stop()])
        return first, begun, await device.score()

    first, begun, ended = on(environment, play)
    assert "建设银行" in first.goal and first.size == (1080, 2400)
    assert not begun.success and begun.reason == "route is '/'; expected '/conversation/ccb-bank'"
    assert ended.success and ended.progress == 1 and ended.side_effects == ()
