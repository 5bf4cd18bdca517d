"""AndroidWorld and MobileWorld over HTTP, against small servers of their published interfaces."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import guieval
from guieval.actions import Answer, Ask, Click, Drag, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.conformance.environments import check_environment
from guieval.connectors.servers import androidworld as androidworld_client
from guieval.connectors.servers.androidworld import AndroidWorld, android_action, task_types
from guieval.connectors.servers.mobileworld import MobileWorld, mobile_action
from guieval.connectors.servers.virtual_machine import lacks_machine
from guieval.errors import EnvironmentFailure, UsageError
from guieval.journal import RunFolder
from guieval.online import ABCDevice, EnvironmentTask
from guieval.online.tasks import EnvironmentTasks
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.running.resolve import resolve
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.connectors.servers.android_servers import AndroidWorldServer, Emulator, MobileWorldServer
from tests.online.deadlines import SECONDS, Deadlines
from tests.online.devices import EVERY, failure, on, played
from tests.online.in_thread import InThread
from tests.online.test_runs import figures_of, outcomes, settings, write_agent
from tests.programs import started
from tests.rows import every_row
from tests.waiting import until

CONTAINER = Path(androidworld_client.__file__).with_name("androidworld_container.py")
DRAG = Drag(start=Point(0, 0), end=Point(1000, 1000))
RIGHT, LEFT, BELOW = Click(point=Point(900, 500)), Click(point=Point(100, 500)), Point(500, 750)


@contextmanager
def androidworld(**options: Any) -> Iterator[tuple[AndroidWorldServer, AndroidWorld]]:
    server = AndroidWorldServer()
    with InThread(server.app()) as running:
        yield server, AndroidWorld(url=running.address, **options)


@contextmanager
def mobileworld(**options: Any) -> Iterator[tuple[MobileWorldServer, MobileWorld]]:
    server = MobileWorldServer()
    with InThread(server.app()) as running:
        yield server, MobileWorld(url=running.address, wait=0.0, **options)


ACTION = {"androidworld": "/execute_action", "mobileworld": "/step"}
SCORE = {"androidworld": "/task/score", "mobileworld": "/task/eval"}
BOTH = pytest.mark.parametrize("place", [androidworld, mobileworld])


@BOTH
def test_the_environments_conform(place: Any) -> None:
    with place() as (server, environment):
        assert check_environment(environment) == []
        assert not server.running  # every task was torn down


def test_a_task_of_androidworld_has_its_own_budget() -> None:
    """Ten times its complexity, as published numbers have it; one budget for all gives some tasks half of theirs."""
    with androidworld() as (_, environment):
        assert all(task.max_steps == task_types()[task.id].budget for task in environment.tasks())
    known = task_types()
    assert len(known) == 116 and known["MarkorMergeNotes"].budget == 78 and known["AudioRecorderRecordAudio"].budget == 12
    with pytest.raises(UsageError, match="'BrowserDrew' is not known"):
        environment._task("BrowserDrew", None)


def test_the_tags_of_androidworld_are_those_of_the_release() -> None:
    """Their counts in the release's own file; UI-S1's Table 10 has these rows."""
    tags = Counter(tag for kind in task_types().values() for tag in kind.tags)
    assert (tags["parameterized"], tags["data_entry"], tags["game_playing"], len(tags)) == (96, 34, 2, 15)
    assert Counter(kind.difficulty for kind in task_types().values()) == {"easy": 61, "medium": 36, "hard": 19}


def test_a_scaffold_sets_budget_and_waits_unless_options_do() -> None:
    with androidworld() as (_, environment):
        asked: dict[str, Any] = {"model": "mai-ui-8b", "base_urls": ["http://h/v1"], "bench": "androidworld", "mode": "online"}
        for given, wait, steps in (({}, 3.0, [10, 10]), ({"max_steps": 7, "wait": 0.5}, 0.5, [7, 7])):
            options: dict[str, Any] = {"url": environment.servers.addresses[0], **given}
            tasks = resolve(RunConfig(**asked, scaffold="mai-ui-cua-lite-default", bench_options=options)).benchmark
            assert isinstance(tasks, EnvironmentTasks) and isinstance(tasks.environment, AndroidWorld)
            assert (tasks.environment.settle, tasks.environment.wait) == (1.0, wait)
            assert [tasks.steps(task) for task in tasks.environment.tasks()] == steps


def test_androidworld_s_task_is_a_success_when_it_is_done_and_ended() -> None:
    with androidworld(max_steps=9) as (server, environment):
        task = environment.tasks()[0]
        groups = {"difficulty": "easy", "tags": "parameterized"}
        assert task == EnvironmentTask("OpenAppTaskEval", 9, groups=groups, complexity=1) and len(environment.tasks()) == 2

        async def play(device: ABCDevice) -> Any:
            seen = await device.reset(task, 3)
            assert (seen.goal, seen.size) == ("OpenAppTaskEval 1 of seed 42", (36, 80))
            await device.step([LEFT])
            half = await device.score()
            await device.step([RIGHT])
            unended = await device.score()
            await device.step([Stop()])
            return half, unended, await device.score()

        half, unended, ended = on(environment, play)
        assert (half.success, half.progress) == (False, 0.5)
        assert not unended.success and "the agent has not ended the task" in unended.reason
        assert ended.success and ended.progress == 1
        assert server.calls[-1] == "/task/tear_down" and not server.running


@pytest.mark.parametrize("model", ["gui-owl-1.5-8b-instruct", "gui-plus-2026-02-26"])
def test_an_answer_ends_a_task_where_the_model_s_prompt_says_so(tmp_path: Path, model: str) -> None:
    """Online it is a success; offline the same reply is unsupported, as every answer."""
    call = json.dumps({"name": "mobile_use", "arguments": {"action": "answer", "text": "right"}})
    reply = f"Action: Answer.\n<tool_call>\n{call}\n</tool_call>"
    mock = MockServer(MockSettings(model=model, served_models=(model,), policy="fixed", reply=reply))
    with androidworld() as (server, environment), mock as running:
        asked: dict[str, Any] = {"model": model, "base_urls": (running.base_url,), "limit": 1, "progress": False}
        url = environment.servers.addresses[0]
        guieval.run(**asked, bench="androidworld", mode="online", bench_options={"url": url}, out=tmp_path / "online")
        guieval.run(**asked, bench="demo", out=tmp_path / "offline")
    assert [action["action_type"] for action in server.actions] == ["answer"]
    (outcome,) = outcomes(tmp_path / "online").values()
    assert (outcome.ended, outcome.stopped, outcome.steps) == ("success", "finish", 1)
    assert {record.sample.outcome.verdict for record in RunFolder(tmp_path / "offline").records} == {"unsupported"}


def test_androidworld_s_suite_is_drawn_as_asked() -> None:
    with androidworld(combinations=5, suite_seed=30) as (server, environment):
        assert environment.version == "androidworld-android_world-5x-seed30-2types"
        seen = on(environment, lambda device: device.reset(environment.tasks()[1], 4))
        assert seen.goal == "SystemBrightnessMax 4 of seed 30" and server.seed == 30
    with androidworld() as (_, environment):
        assert environment.version == "androidworld-server-suite-2types"
    with androidworld(combinations=1, family="androidworld") as (_, environment), pytest.raises(UsageError) as refused:
        environment.tasks()
    assert "with the error 400: Invalid task family: androidworld" in str(refused.value)


def test_androidworld_s_server_of_the_container_has_gestures_complexity_and_apps() -> None:
    server = AndroidWorldServer(gestures=True)
    with InThread(server.app()) as running:
        environment = AndroidWorld(url=running.address)
        tasks = {task.id: task for task in environment.tasks()}
        assert environment.version == "androidworld-server-suite-3types-gestures"
        assert tasks["ClickButton"] == EnvironmentTask("ClickButton", 12, groups={"apps": "settings"}, complexity=1.2)
        groups = {"difficulty": "easy", "tags": "parameterized", "apps": "settings"}
        assert tasks["OpenAppTaskEval"] == EnvironmentTask("OpenAppTaskEval", 10, groups=groups, complexity=1)
        played(environment, tasks["ClickButton"], [Scroll(point=BELOW, direction="up", distance=250)], [DRAG], [RIGHT])
        swipe = {"kind": "swipe", "start": [18, 60], "end": [18, 40], "milliseconds": 500}
        drag = {"kind": "drag", "start": [0, 0], "end": [35, 79], "milliseconds": 4000}
        assert server.actions[:2] == [{"action_type": "gesture", **swipe}, {"action_type": "gesture", **drag}]
        assert server.actions[2] == {"action_type": "click", "x": 32, "y": 40}
        server.failures["/suite/tasks"] = lambda: web.json_response({"ClickButton": {"complexity": -1, "apps": []}})
        with pytest.raises(UsageError, match=r"answers /suite/tasks with .*; expected complexity and apps of each type"):
            AndroidWorld(url=running.address).tasks()


def test_a_wait_is_waited_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """AndroidWorld's server waits one second whatever is asked for."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("guieval.connectors.servers.androidworld.sleep", sleep)
    with androidworld() as (_, environment):
        played(environment, environment.tasks()[0], [Wait(duration=3500)], [Wait(duration=500)], [Wait(duration=1e9)])
    assert [each for each in waited if each] == [2.5, 59.0]


def answers(place: tuple[str, int]) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(place) == 0


@contextmanager
def release(variable: str, stub: str, *words: str | Path, **environment: str) -> Iterator[str]:
    """The address of a release's own server, started by a stub in the clone that a variable names."""
    if (clone := os.environ.get(variable)) is None:
        pytest.skip(f"{variable} does not name a clone with a .venv of its requirements")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = free.getsockname()
    command = [Path(clone, ".venv/bin/python"), Path(__file__).with_name(stub), str(place[1]), *words]
    with started(command, cwd=clone, env={**os.environ, "PYTHONPATH": f"{clone}:{clone}/src", **environment}) as server:
        until(lambda: answers(place), "the server listens", running=server)
        yield f"http://127.0.0.1:{place[1]}"


SWIPE, TAP = Scroll(point=BELOW, direction="up", distance=250), Click(point=Point(500, 500))


@every_row(("file", "own"), [("server/android_server.py", False), (CONTAINER, True)])
def test_androidworld_s_own_server_with_a_stub_emulator(file: str | Path, own: bool) -> None:
    """Requests that the release's own code does not take, e.g. a field of another name, or another order of calls."""
    with release("GUIEVAL_ANDROIDWORLD", "androidworld_stub.py", file) as url:
        environment = AndroidWorld(url=url, max_steps=5)
        (task,) = environment.tasks()
        seen, score = played(environment, task, [SWIPE], [TAP], [Press(button="BACK")], [Stop()])
        assert [each.size for each in seen] == [(1080, 2400)] * 5 and len({each.screenshot for each in seen}) > 2
        assert (
            environment.version.endswith("gestures") is own and score.progress == (1.0 if own else 0.5) and score.success is own
        )


def test_mobileworld_s_own_server_with_a_stub_of_adb(tmp_path: Path) -> None:
    """The same; and a question that its user does not answer."""
    said = {"role": "assistant", "content": "At seven."}

    async def user(_: web.Request) -> web.Response:
        return web.json_response({"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})

    app = web.Application()
    app.add_routes([web.post("/chat/completions", user)])
    with InThread(app) as running:
        asked = {"USER_AGENT_BASE_URL": running.address, "USER_AGENT_API_KEY": "k"}
        with release("GUIEVAL_MOBILEWORLD", "mobileworld_stub.py", tmp_path, ARTIFACTS_ROOT=str(tmp_path), **asked) as url:
            environment = MobileWorld(url=url, wait=0.0)
            alarm, ask = environment.tasks()  # and not the one that needs tools
            seen, score = played(environment, alarm, [TAP], [SWIPE], [Answer(text="7")])
            assert (score.success, score.reason, seen[-1].over, seen[0].size) == (True, "3 of 3", True, (1080, 2400))
            seen, score = played(environment, ask, [Ask(text="When?")], [TAP])
            assert seen[1].goal.endswith("When?\nThe user answered: At seven.") and score.reason == "1 of 3"


def test_an_unfinished_task_of_a_killed_run_begins_again() -> None:
    with androidworld() as (server, environment):
        server.running.add(("OpenAppTaskEval", 0))
        assert on(environment, lambda device: device.reset(environment.tasks()[0], 0)).goal.startswith("OpenAppTaskEval 0")


def test_mobileworld_lists_tasks_without_tools_and_an_answer_ends_one() -> None:
    with mobileworld(max_steps=7) as (server, environment):
        alarm, ask = environment.tasks()
        groups = {"tags": "lang-en", "apps": "Clock", "user": "not needed"}
        assert alarm == EnvironmentTask("SetAlarm", 7, groups=groups) and ask.groups["user"] == "has to be asked"
        assert ask.groups["apps"] == "Calendar, Clock" and environment.version == "mobileworld-2tasks-wait0"

        async def play(device: ABCDevice) -> Any:
            assert (await device.reset(alarm, 0)).goal == "Do SetAlarm."
            asked = await device.step([Ask(text="When?")])
            assert asked.goal == "Do SetAlarm.\nYou asked the user: When?\nThe user answered: At seven."
            await device.step([RIGHT])
            return await device.score(), (await device.step([Answer(text="7"), LEFT])).over

        done, over = on(environment, play)
        assert done.success and done.reason == "the last click decides" and over
        assert [action["action_type"] for action in server.actions] == ["ask_user", "click", "answer"]


@BOTH
def test_the_servers_take_every_action_that_is_sent(place: Any) -> None:
    translate, without = (android_action, {"DRAG", "ASK"}) if place is androidworld else (mobile_action, set())
    with place() as (server, environment):
        played(environment, environment.tasks()[0], *([each] for each in EVERY if not isinstance(each, Answer | Stop)))
        acted = [action for action in EVERY if not isinstance(action, Answer) and translate(action, (36, 80)) is not None]
        assert len(server.actions) == len(acted)
    untranslated = {action.type for action in EVERY if translate(action, (36, 80)) is None}
    assert untranslated == {"RIGHT_CLICK", "HOVER", "HOTKEY", "DRAG", "PRESS", "STOP"} | without
    assert translate(Press(button="RECENT"), (36, 80)) is None


def scrolled(direction: str) -> dict[str, Any]:
    return {"action_type": "scroll", "direction": direction}


def dragged(*places: int) -> dict[str, Any]:
    return {"action_type": "drag", **dict(zip(("start_x", "start_y", "end_x", "end_y"), places, strict=True))}


@every_row(
    ("action", "android", "mobile"),
    [
        (Click(point=Point(1000, 0)), {"action_type": "click", "x": 1079, "y": 0}, ...),
        (LongPress(point=Point(500, 500)), {"action_type": "long_press", "x": 540, "y": 1200}, ...),
        (Type(text="a b"), {"action_type": "input_text", "text": "a b"}, ...),
        (Open(app="Clock"), {"action_type": "open_app", "app_name": "Clock"}, ...),
        *((Press(button="BACK"), {"action_type": "navigate_back"}, ...), (Wait(), {"action_type": "wait"}, ...)),
        *((Answer(text="7"), {"action_type": "answer", "text": "7"}, ...), (Stop(), None, ...)),
        # the finger's direction; AndroidWorld names the view's
        (
            Scroll(point=BELOW, direction="up"),
            scrolled("down"),
            {**scrolled("up"), "action_type": "swipe", "x": 540, "y": 1800},
        ),
        (Scroll(point=BELOW, direction="left", distance=250), scrolled("right"), dragged(540, 1800, 270, 1800)),
        (DRAG, None, dragged(0, 0, 1079, 2399)),
    ],
)
def test_actions_are_translated(action: Any, android: Any, mobile: Any) -> None:
    assert android_action(action, (1080, 2400)) == android
    assert mobile_action(action, (1080, 2400)) == (android if mobile is ... else mobile)


def test_several_servers_serve_a_device_each() -> None:
    servers = [AndroidWorldServer(), AndroidWorldServer()]
    with InThread(servers[0].app()) as one, InThread(servers[1].app()) as two:
        environment = AndroidWorld(url=f"{one.address}, {two.address}/")
        assert environment.most_devices == 2

        async def both() -> None:
            devices = [await environment.open(), await environment.open()]
            with pytest.raises(EnvironmentFailure, match="all 2 servers are in use"):
                await environment.open()
            for number, device in enumerate(devices):
                await device.reset(environment.tasks()[number], 0)
            assert [server.running for server in servers] == [{("OpenAppTaskEval", 0)}, {("SystemBrightnessMax", 0)}]
            await devices[0].close()
            await devices[0].close()
            await (await environment.open()).close()
            await devices[1].close()

        asyncio.run(both())


@BOTH
@pytest.mark.parametrize("trouble", ["error", "hang", "crash", "nonsense"])
def test_a_run_repeats_a_task_whose_emulator_broke(
    tmp_path: Path, place: Any, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        if len(server.actions) != 1 or len(server.calls) > 40:
            return None
        server.failures.clear()
        if trouble == "error":
            return web.json_response({"detail": "Device is not healthy"}, status=500)
        if trouble == "nonsense":
            return web.json_response(["?"])
        return deadlines.hang() if trouble == "hang" else "hang up"

    with place() as (server, environment):
        deadlines = Deadlines(monkeypatch, type(environment))
        assert isinstance(server, Emulator)
        # a GET whose connection breaks is sent again by aiohttp, so the crash is at an action
        server.failures["/screenshot" if trouble != "crash" else ACTION[environment.name]] = broken
        replies = [action.model_dump_json() for action in (LEFT, RIGHT, Stop())]
        agent = write_agent(tmp_path, {task.id: replies for task in environment.tasks()})
        options = {"url": environment.servers.addresses[0]} | ({"wait": 0.0} if place is mobileworld else {})
        running = settings(agent, bench=environment.name, bench_options=options, environment_timeout=SECONDS)
        result = guieval.run(**running, progress=False, out=tmp_path / "run")
    assert result.complete and not server.failures and not server.running
    tags = {"parameterized": 1, "untagged": 1} if place is androidworld else {"agent-user-interaction": 1, "lang-en": 2}
    assert {tag: each.n for tag, each in figures_of(tmp_path / "run").groups["tags"].items()} == tags
    found = outcomes(tmp_path / "run")
    assert {outcome.ended for outcome in found.values()} == {"success"} and len(found) == 2
    assert sorted(outcome.attempt for outcome in found.values()) == [0, 1]


@BOTH
def test_a_server_that_is_not_up_is_a_sentence(place: Any) -> None:
    kind, start = (AndroidWorld, "docker run") if place is androidworld else (MobileWorld, "uv run mw env run")
    with pytest.raises(UsageError) as refused:
        kind(url="http://127.0.0.1:9").tasks()
    assert "does not answer at http://127.0.0.1:9: " in str(refused.value) and start in str(refused.value)
    with pytest.raises(EnvironmentFailure, match=r"does not answer at http://127\.0\.0\.1:9"):
        asyncio.run(kind(url="http://127.0.0.1:9").open())


@BOTH
@every_row("content", [{"hello": 1}, [], [{"name": "x"}], None, "text"])
def test_a_server_of_another_kind_is_a_sentence(place: Any, content: Any) -> None:
    with place() as (server, environment):
        path = "/suite/task_list" if place is androidworld else "/task/list"
        server.failures[path] = lambda: web.json_response(content)
        expected = f"answers {path} with .*; expected (a list of tasks|a list of task types|at least)"
        with pytest.raises(UsageError, match=expected):
            environment.tasks()


@BOTH
def test_an_unknown_task_is_an_environment_failure(place: Any) -> None:
    with place() as (_, environment):
        call, failed = failure(environment, EnvironmentTask("Nothing", 3))
    assert call == "reset" and re.search(r"answers /\w+/\w+ with the error 500", failed)


@BOTH
@every_row("value", [2, -0.5, None, "1"])
def test_a_score_that_is_none_is_an_environment_failure(place: Any, value: Any) -> None:
    with place() as (server, environment):
        server.failures[SCORE[environment.name]] = lambda: web.json_response({"score": value})
        call, failed = failure(environment, environment.tasks()[0])
    assert call == "score" and "expected a score in [0, 1]" in failed


@BOTH
def test_a_score_may_be_json_s_true_as_in_androidworld_s_own_tasks(place: Any) -> None:
    with place() as (server, environment):
        server.failures[SCORE[environment.name]] = lambda: web.json_response({"score": True})
        assert played(environment, environment.tasks()[0])[1].progress == 1


@every_row(
    ("docker", "device", "begins"),
    [
        (None, "none", ["KVM is missing: there is no ", "Docker is missing: "]),
        ("echo no daemon >&2; exit 1", "kvm", ["Docker does not answer (no daemon); "]),
        ('[ "$1" = version ]', "kvm", ["The image is missing: Docker has no some:image; build it."]),
        ("exit 0", "kvm", []),
    ],
)
def test_what_a_machine_lacks_is_said_in_a_sentence_each(
    docker: str | None, device: str, begins: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kvm").touch()
    if docker is not None:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{docker}\n")
        (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = [*lacks_machine("some:image", "build it", tmp_path / device)]
    assert [line[: len(begin)] for line, begin in zip(found, begins, strict=True)] == begins


def test_doctor_finds_the_server_or_says_how_to_start_it(guieval: CommandLine) -> None:
    with androidworld() as (_, environment):
        words = ["doctor", "androidworld", "--json", "--set", f"url={environment.servers.addresses[0]}"]
        up, number = json.loads(guieval(*words).out), len(environment.tasks())
    down = json.loads(guieval(*words).out)
    closed = [[line for line in each["missing"] if line.startswith("The port is closed: ")] for each in (up, down)]
    assert (up["tasks"], down["tasks"]) == (number, None) and [*map(len, closed)] == [0, 1]
