"""OpenEnv both ways: our server with OpenEnv's client, our client with OpenEnv's server, and ours with ours."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from aiohttp import web

import guieval
from guieval.actions import Click, ExecutableAction, Point, Stop, executable
from guieval.conformance.environments import check_environment
from guieval.connectors.servers.openenv import OpenEnv
from guieval.connectors.servers.openenv_server import EnvironmentServer
from guieval.connectors.servers.openenv_session import EnvironmentSession
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice, EnvironmentTask, Observation
from guieval.playground.environments.phone import PhoneEnvironment
from guieval.playground.phone import generate_episode
from tests.command_line import CommandLine
from tests.online.deadlines import SECONDS, Deadlines
from tests.online.devices import Wrapped, on
from tests.online.in_thread import InThread
from tests.online.test_runs import outcomes, reference, settings, write_agent
from tests.programs import started
from tests.rows import every_row
from tests.waiting import PATIENCE

CLICK = {"type": "CLICK", "point": [500, 500]}


def session(environment: PhoneEnvironment | None = None, timeout: float = 30.0) -> EnvironmentSession:
    environment = environment or PhoneEnvironment(episodes=3)
    return EnvironmentSession(environment, environment.tasks(), timeout)


def talk(speaker: EnvironmentSession, *messages: Any) -> list[Any]:
    """The answers to messages, given as objects or as text."""

    async def printed() -> list[Any]:
        return [await speaker.answer(text if isinstance(text, str) else json.dumps(text)) for text in messages]

    return asyncio.run(printed())


def test_a_session_shows_screens_and_rewards_a_success() -> None:
    actions = [{"type": "step", "data": {**json.loads(action), "metadata": {}}} for action in reference(1)]
    begun, *steps = talk(session(), {"type": "reset", "data": {"task_id": "s0-0001", "seed": 5}}, *actions)
    task = PhoneEnvironment().tasks()[1]
    seen = begun["data"]["observation"]
    assert begun["type"] == "observation" and begun["data"]["reward"] is None and not begun["data"]["done"]
    assert (seen["goal"], seen["task_id"], seen["size"]) == (task.goal, "s0-0001", [360, 800])
    assert b64decode(seen["screenshot"]).startswith(b"\x89PNG")
    assert [step["data"]["reward"] for step in steps] == [0.0] * (len(steps) - 1) + [1.0]
    assert [step["data"]["done"] for step in steps] == [False] * (len(steps) - 1) + [True]
    last = steps[-1]["data"]["metadata"]
    assert last["ended"] == "stop" and last["score"]["success"] and last["steps"] == len(steps) and last["seed"] == 5


def test_the_seed_chooses_a_task_and_the_last_step_ends_it() -> None:
    limit = PhoneEnvironment().tasks()[1].max_steps
    reset, step = {"type": "reset", "data": {"seed": 4, "episode_id": "mine"}}, {"type": "step", "data": CLICK}
    *steps, more, state = talk(session(), reset, *[step] * (limit + 1), {"type": "state"})
    assert steps[0]["data"]["observation"]["task_id"] == "s0-0001"  # 4 modulo 3 tasks
    assert steps[-1]["data"]["done"] and steps[-1]["data"]["metadata"]["ended"] == "step limit"
    assert "the task has ended (step limit)" in more["data"]["message"] and more["data"]["code"] == "EXECUTION_ERROR"
    assert state["data"]["episode_id"] == "mine" and state["data"]["step_count"] == limit
    assert state["data"]["score"]["success"] is False


@every_row(
    ("message", "code", "sentence"),
    [
        ("{", "INVALID_JSON", "the message is not JSON"),
        ("[]", "VALIDATION_ERROR", "is not a JSON object"),
        ({"type": "rest"}, "UNKNOWN_TYPE", "unknown type 'rest'"),
        ({"type": "step", "data": CLICK}, "EXECUTION_ERROR", "no task has begun; send a reset first"),
        ({"type": "reset", "data": {"sead": 3}}, "VALIDATION_ERROR", "sead is not known (did you mean 'seed'?)"),
        ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR", "reset: seed expected 0 or more (got -1)"),
        ({"type": "reset", "data": {"index": 3}}, "VALIDATION_ERROR", "index is 3; there are 3 tasks, from 0"),
        ({"type": "reset", "data": {"split": "test"}}, "VALIDATION_ERROR", "split is 'test'; expected 'all'"),
        ({"type": "reset", "data": {"task_id": "s0-001"}}, "VALIDATION_ERROR", "no task 's0-001' (did you mean 's0-0001'?)"),
    ],
)
def test_a_wrong_message_is_answered_by_a_sentence(message: Any, code: str, sentence: str) -> None:
    (answer,) = talk(session(), message)
    assert answer["type"] == "error" and answer["data"]["code"] == code and sentence in answer["data"]["message"]


def test_a_wrong_action_changes_nothing() -> None:
    tried = ({"type": "CLICK", "point": [500, 5000]}, {"type": "CLIK"}, CLICK)
    _, far, unknown, right = talk(session(), {"type": "reset"}, *({"type": "step", "data": each} for each in tried))
    assert far["data"]["message"] == "step: point.1 expected 1000 or less (got 5000)"
    assert "(did you mean 'CLICK'?)" in unknown["data"]["message"]
    assert right["data"]["metadata"]["steps"] == 1


class Frail(PhoneEnvironment):
    """The phone, whose devices break at their second step, as often as ``bad`` states; with ``deadlines`` they hang there."""

    name = "frail"
    bad: ClassVar[int] = 1
    deadlines: ClassVar[Deadlines | None] = None
    opened: ClassVar[int] = 0
    closed: ClassVar[int] = 0

    async def open(self) -> ABCDevice:
        Frail.opened += 1
        return FrailDevice(await super().open())


class FrailDevice(Wrapped):
    def __init__(self, device: ABCDevice) -> None:
        super().__init__(device)
        self.steps, self.open = 0, True

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        self.steps = 0
        return await super().reset(task, seed)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        self.steps += 1
        if self.steps == 2 and Frail.bad > 0:
            Frail.bad -= 1
            if Frail.deadlines is not None:
                await Frail.deadlines.hang()
            raise EnvironmentFailure("the emulator has crashed")
        return await super().step(actions)

    async def close(self) -> None:
        Frail.closed += self.open
        self.open = False
        await super().close()


@pytest.fixture
def frail(monkeypatch: pytest.MonkeyPatch) -> type[Frail]:
    for name, value in {"bad": 1, "deadlines": None, "opened": 0, "closed": 0}.items():
        monkeypatch.setattr(Frail, name, value)
    return Frail


@pytest.mark.parametrize("hangs", [False, True])
def test_a_broken_device_is_replaced_by_a_reset(frail: type[Frail], hangs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    frail.deadlines = Deadlines(monkeypatch, frail) if hangs else None
    speaker = session(frail(episodes=1), timeout=SECONDS)
    step, reset = {"type": "step", "data": CLICK}, {"type": "reset"}
    answers = talk(speaker, reset, step, step, step, reset, step, step, {"type": "close"})
    reason = f"took longer than {SECONDS:g} s" if hangs else "the emulator has crashed"
    assert reason in answers[2]["data"]["message"] and "send a reset" in answers[3]["data"]["message"]
    assert [answer["type"] for answer in answers[4:7]] == ["observation"] * 3 and answers[7] is None
    asyncio.run(speaker.close())
    assert (frail.opened, frail.closed) == (2, 2)


def served(environment: PhoneEnvironment, **options: Any) -> InThread:
    return InThread(EnvironmentServer(environment, **options).app())


@pytest.mark.parametrize("number", [0, 3, 7])
def test_our_client_and_server_show_what_the_environment_shows(number: int) -> None:
    here = PhoneEnvironment(episodes=8)

    async def play(device: ABCDevice) -> list[Any]:
        seen: list[Any] = [await device.reset(here.tasks()[number], 3)]
        for step in generate_episode(0, number).steps:
            action = executable(step.action)
            assert action is not None
            seen += [await device.step([action]), await device.score()]
        return seen

    with served(here) as server:
        remote = OpenEnv(url=server.address)
        assert remote.tasks() == here.tasks()
        assert remote.version == f"openenv-demo-{here.version}"
        assert on(remote, play) == on(here, play)


def test_the_command_checks_an_environment_with_its_options(guieval: CommandLine) -> None:
    with served(PhoneEnvironment(episodes=3)) as server:
        done = guieval("dev", "check", "openenv", "--set", f"url={server.address}")
        assert done.code == 0 and done.out.startswith("environment openenv: conforms"), done
    assert "needs the address of its server" in guieval.sentence("dev", "check", "openenv")
    two = guieval.sentence("dev", "check", "openenv", "demo", "--set", "url=x")
    assert "--set is for the options of one environment" in two


@pytest.mark.parametrize("hangs", [False, True])
def test_a_run_repeats_a_task_whose_server_broke(
    tmp_path: Path, frail: type[Frail], hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frail.deadlines = Deadlines(monkeypatch, OpenEnv) if hangs else None
    with served(frail(episodes=1)) as server:
        more = {"bench": "openenv", "bench_options": {"url": server.address}, "environment_timeout": SECONDS}
        result = guieval.run(**settings(write_agent(tmp_path), **more), progress=False, out=tmp_path / "run")
        assert result.complete and outcomes(tmp_path / "run")["s0-0000"].ended == "success"
    assert (frail.opened, frail.closed) == (2, 2)


def test_more_clients_than_sessions_get_a_reason() -> None:
    async def second(device: ABCDevice) -> None:
        await device.reset(remote.tasks()[0], 0)
        other = await remote.open()
        with pytest.raises(EnvironmentFailure, match="all 1 sessions are in use"):
            await other.reset(remote.tasks()[0], 0)
        await other.close()

    with served(PhoneEnvironment(episodes=1), sessions=1) as server:
        remote = OpenEnv(url=server.address)
        on(remote, second)
        on(remote, lambda device: device.reset(remote.tasks()[0], 0))  # the session is free again


def test_a_server_that_goes_away_is_an_environment_failure() -> None:
    with served(PhoneEnvironment(episodes=1)) as server:
        remote = OpenEnv(url=server.address)

        async def orphaned(device: ABCDevice) -> None:
            await device.reset(remote.tasks()[0], 0)
            await asyncio.to_thread(server.stop)
            for _ in range(2):
                with pytest.raises(EnvironmentFailure, match="the OpenEnv server closed the connection"):
                    await device.step([Click(point=Point(1, 1))])

        on(remote, orphaned)
        with pytest.raises(EnvironmentFailure, match="the OpenEnv server does not answer at http://127"):
            asyncio.run(remote.open())


def answering(content: Any, **others: Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]) -> web.Application:
    """A server that answers every request with the same JSON but those of paths with another handler."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(content)

    app = web.Application()
    for path, handler in others.items():
        app.router.add_get(f"/{path}", handler)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def test_servers_of_other_kinds_are_reported() -> None:
    wrong = "expected actions with the field 'type'"
    for content, sentence in (
        ({"hello": 1}, "expected the schemas of an OpenEnv"),
        ({"action": {"properties": {"message": {}}}}, rf"with \['message'\]; {wrong}"),
        # each of them an iterable or not, and none an object
        *(({"action": {"properties": fields}}, wrong) for fields in (0.5, None, "type", ["type"])),
    ):
        with InThread(answering(content)) as server, pytest.raises(UsageError, match=sentence):
            OpenEnv(url=server.address).tasks()
    with pytest.raises(UsageError, match=r"does not answer at http://127.0.0.1:9: .*; start it, e.g. with `guieval dev serve"):
        OpenEnv(url="ws://127.0.0.1:9/ws").tasks()
    with served(PhoneEnvironment(episodes=1)) as server, pytest.raises(UsageError, match="'test'; the server has 'all'"):
        OpenEnv(url=server.address, split="test").tasks()


def test_a_page_of_another_site_is_refused() -> None:
    async def knock(origin: str, host: str | None = None) -> int:
        headers = {"Origin": origin} | ({"Host": host} if host else {})
        async with aiohttp.ClientSession() as client:
            try:
                async with client.ws_connect(f"{server.address}/ws", headers=headers):
                    return 101
            except aiohttp.WSServerHandshakeError as error:
                return error.status

    async def ask(path: str, host: str) -> int:
        async with aiohttp.ClientSession() as client, client.get(server.address + path, headers={"Host": host}) as answer:
            return answer.status

    with served(PhoneEnvironment(episodes=1)) as server:
        # a name that was bound to this machine
        assert asyncio.run(knock("http://evil.example:80", "evil.example:80")) == 403
        assert [asyncio.run(ask(path, "evil.example")) for path in ("/metadata", "/schema", "/list_environments")] == [403] * 3
        assert asyncio.run(ask("/metadata", "localhost")) == 200
        assert asyncio.run(knock("https://example.com")) == 403
        assert asyncio.run(knock(server.address)) == 101


def test_the_task_api_lists_tasks() -> None:
    async def ask(path: str, body: dict[str, Any]) -> Any:
        async with aiohttp.ClientSession() as client, client.post(f"{server.address}/demo/{path}", json=body) as answer:
            return answer.status, await answer.json(content_type=None) if answer.status < 404 else None

    with served(PhoneEnvironment(episodes=5)) as server:
        assert asyncio.run(ask("num_tasks", {"split": "all"})) == (200, {"num_tasks": 5})
        status, content = asyncio.run(ask("task_range", {"split": "all", "start": 1, "stop": -2}))
        assert status == 200 and [task["id"] for task in content["tasks"]] == ["s0-0001", "s0-0002"]
        assert asyncio.run(ask("task", {"split": "all", "index": 4}))[1]["task"]["id"] == "s0-0004"
        for path, body in (("task", {"split": "all", "index": 5}), ("tasks", {"split": "test"}), ("tasks", {})):
            assert asyncio.run(ask(path, body))[0] == 400
        assert asyncio.run(ask("nothing", {"split": "all"}))[0] == 404


def test_the_command_serves_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "guieval", "dev", "serve-environment", "demo", "--port", "0", "--set", "episodes=2"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("demo (2 tasks) at ws://127.0.0.1:") and line.endswith("/ws")
        remote = OpenEnv(url=line.rpartition(" ")[2])

        async def stopped(device: ABCDevice) -> None:
            await device.reset(remote.tasks()[0], 0)
            process.send_signal(signal.SIGINT)
            with pytest.raises(EnvironmentFailure):
                async with asyncio.timeout(PATIENCE):
                    while True:
                        await device.step([Click(point=Point(1, 1))])

        on(remote, stopped)
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None and process.stderr.read() == ""


def test_mistakes_on_the_command_line(guieval: CommandLine) -> None:
    assert "(did you mean 'demo'?)" in guieval.sentence("dev", "serve-environment", "demos")
    assert "--port is 99999; expected 0 to 65535" in guieval.sentence("dev", "serve-environment", "demo", "--port", "99999")
    assert "has no option 'episods'" in guieval.sentence("dev", "serve-environment", "demo", "--set", "episods=2")
    with served(PhoneEnvironment(episodes=1)) as server:
        port = server.address.rpartition(":")[2]
        assert f"cannot listen on 127.0.0.1:{port}" in guieval.sentence("dev", "serve-environment", "demo", "--port", port)


def test_openenv_s_own_client_acts_on_our_server() -> None:
    openenv = pytest.importorskip("openenv", reason="the package openenv is not installed")
    with (
        served(PhoneEnvironment(episodes=3)) as server,
        openenv.GenericEnvClient(base_url=server.address).sync() as client,
        openenv.GenericEnvClient(base_url=server.address).sync() as other,
    ):
        begun, elsewhere = client.reset(index=1, seed=7), other.reset(index=2)
        assert begun.observation["goal"] == PhoneEnvironment().tasks()[1].goal and begun.reward is None
        assert elsewhere.observation["task_id"] == "s0-0002"
        results = [client.step(json.loads(action)) for action in reference(1)]
        assert [result.reward for result in results] == [0.0] * (len(results) - 1) + [1.0] and results[-1].done
        assert client.state()["score"]["success"] and other.state()["step_count"] == 0
        with pytest.raises(RuntimeError, match=r"point\.1 expected 1000 or less"):
            other.step({"type": "CLICK", "point": [0, 2000]})
        assert other.step(Stop().model_dump()).done


def test_pings_are_answered_while_no_step_is_asked_for() -> None:
    """Else a server would close the session while the model is busy."""
    answered = threading.Event()

    async def ping(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        await socket.ping()
        if (await socket.receive()).type is aiohttp.WSMsgType.PONG:
            answered.set()
        return socket

    with InThread(answering({"action": {}}, ws=ping)) as server:
        on(OpenEnv(url=server.address), lambda device: asyncio.to_thread(answered.wait, PATIENCE))
    assert answered.is_set()


def test_our_client_acts_on_openenv_s_own_server() -> None:
    """A server of OpenEnv's classes with a small environment: rows of pixels, rewards, and no tasks listed."""
    pytest.importorskip("openenv", reason="the package openenv is not installed")
    from tests.connectors.servers.openenv_counter import running

    with running() as address:
        remote = OpenEnv(url=address, seeds=2, max_steps=5)
        assert [task.id for task in remote.tasks()] == ["seed-0", "seed-1"] and "CounterEnvironment" in remote.version

        async def play(device: ABCDevice) -> Any:
            begun = await device.reset(remote.tasks()[1], 0)
            assert (begun.goal, begun.size, begun.over) == ("Click twice (seed 1)", (4, 3), False)
            assert not (await device.score()).success
            await device.step([Click(point=Point(500, 500))])
            last = await device.step([Click(point=Point(500, 500)), Click(point=Point(1, 1))])
            return last.over, await device.score()

        over, score = on(remote, play)
        assert over and score.success and score.reason == "the rewards of the steps add up to 1"
        assert check_environment(remote) == []
