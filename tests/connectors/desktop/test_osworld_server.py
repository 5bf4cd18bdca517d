"""OSWorld's connector with OSWorld's own class and its server of virtual machines, which runs in a desktop."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import sys
from collections.abc import Coroutine
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from aiohttp import web

from guieval.actions import Click, Hotkey, Point, Press, Stop, Type
from guieval.connectors.desktop import session
from guieval.connectors.desktop.sandbox import TaskLimits, sandbox_command
from guieval.connectors.desktop.session import DesktopSession
from guieval.connectors.servers.osworld import OSWorldVerified
from tests.waiting import PATIENCE

pytestmark = pytest.mark.full
PASSWORD = "three words long"
SUDO = f'#!/bin/sh\nread given; [ "$given" = "{PASSWORD}" ] || exit 1; shift; exec "$@"\n'
RELAY = """import socket, sys
with socket.create_connection(("127.0.0.1", 5000)) as server:
    server.sendall(sys.stdin.buffer.read())
    while part := server.recv(65536):
        sys.stdout.buffer.write(part)
"""
ATSPI = """from types import SimpleNamespace
Accessible = StateType = Action = Component = Text = Value = STATE_SHOWING = None
Registry = SimpleNamespace(getDesktop=lambda number: [])
"""
"""In place of the accessibility bus, which a desktop does not have: no application."""
LISTENS = "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 5000))'; do sleep 0.2; done"
PREPARED = "echo {CLIENT_PASSWORD} | sudo -S mkdir ~/Desktop/todo_list_Jan_1"
CONFIG: list[dict[str, Any]] = [
    {"type": "execute", "parameters": {"command": PREPARED, "shell": True}},
    {"type": "launch", "parameters": {"command": ["xterm"]}},
    {"type": "sleep", "parameters": {"seconds": 2}},
]
RENAMED = {
    "func": "exact_match",
    "result": {"type": "vm_command_line", "command": ["ls", "/home/user/Desktop"]},
    "expected": {"type": "rule", "rules": {"expected": "<todo> list\n"}},
}


class Machine:
    """OSWorld's provider: a desktop in place of a virtual machine, a new one for each snapshot, and its server's port."""

    def __init__(self, checkout: Path) -> None:
        folder = checkout / "desktop_env" / "server"
        own = {f"server/{name}": (folder / name).read_text() for name in ("main.py", "pyxcursor.py")}
        self.files = {
            "server/": "",
            "Desktop/": "",
            "bin/": "",
            "bin/sudo": SUDO,
            "bin/relay.py": RELAY,
            "server/pyatspi.py": ATSPI,
            **own,
        }
        self.begin = f"chmod +x bin/sudo; export PATH=/home/user/bin:{checkout}/.venv/bin:$PATH; cd server; "
        self.session: DesktopSession | None = None
        self.reverted: list[str] = []
        self.port = 0

    async def serve(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self.relayed)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port, self.loop = runner.addresses[0][1], asyncio.get_running_loop()

    async def relayed(self, request: web.Request) -> web.Response:
        assert self.session is not None
        body, kind = await request.read(), request.headers.get("Content-Type", "")
        head = f"{request.method} {request.path_qs} HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        said = await self.session.run("python3 ~/bin/relay.py", head.encode() + body)
        response = http.client.HTTPResponse(SimpleNamespace(makefile=lambda mode: io.BytesIO(said)))  # type: ignore[arg-type]
        response.begin()
        headers = {"Content-Type": response.getheader("Content-Type", "")}
        return web.Response(status=response.status, body=response.read(), headers=headers)

    async def started(self) -> None:
        await self.stopped()
        self.session = await DesktopSession.start((1920, 1080), TaskLimits(2000, 3600, 256), self.files)
        await self.session.run(f"{self.begin} python main.py > log 2>&1 < /dev/null &")
        await self.session.run(LISTENS)

    async def stopped(self) -> None:
        if self.session is not None:
            await self.session.close()

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def start_emulator(self, path: str, headless: bool, os_type: str) -> None:
        self.wait_for(self.started())

    def stop_emulator(self, path: str) -> None:
        self.wait_for(self.stopped())

    def get_ip_address(self, path: str) -> str:
        return f"127.0.0.1:{self.port}:9222:8006:8080"

    def revert_to_snapshot(self, path: str, name: str) -> str:
        self.reverted.append(name)
        return path


def own_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of ``DesktopEnv``, with an empty one in place of each package of its judges that is not installed."""
    for name in ("openpyxl", "lxml"):  # the first takes no empty second
        monkeypatch.setitem(sys.modules, name, MagicMock(__path__=[], __spec__=None))
    while True:
        try:
            return import_module("desktop_env.desktop_env")
        except ModuleNotFoundError as error:
            assert error.name and not error.name.startswith("desktop_env")
            monkeypatch.setitem(sys.modules, error.name, MagicMock(__path__=[], __spec__=None))


def test_osworld_s_own_server_shows_acts_and_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests, names and values that OSWorld's own code does not take or give."""
    if (checkout := os.environ.get("GUIEVAL_OSWORLD")) is None:
        pytest.skip("GUIEVAL_OSWORLD does not name a checkout of OSWorld with a .venv of its server's requirements")

    def with_checkout(limits: TaskLimits) -> list[str]:
        words = sandbox_command(limits)
        place = words.index("prlimit")
        return [*words[:place], "--ro-bind", checkout, checkout, *words[place:]]

    monkeypatch.setattr(session, "sandbox_command", with_checkout)
    monkeypatch.syspath_prepend(checkout)
    monkeypatch.setenv("MACHINE_PASSWORD", PASSWORD)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples" / "os").mkdir(parents=True)
    for name, evaluator in {"rename": RENAMED, "cannot": {"func": "infeasible"}}.items():
        config = {"id": name, "instruction": f"Do {name}.", "config": CONFIG, "evaluator": evaluator, "proxy": False}
        (tmp_path / "examples" / "os" / f"{name}.json").write_text(json.dumps(config))
    (tmp_path / "test_all.json").write_text('{"os": ["rename", "cannot"]}')
    machine = Machine(Path(checkout))
    monkeypatch.setattr(own_class(monkeypatch), "create_vm_manager_and_provider", lambda *_, **__: (None, machine))
    environment = OSWorldVerified(
        examples=str(tmp_path),
        budget="15-steps",
        provider="vmware",
        path_to_vm="vm",
        snapshot_name="clean",
        client_password_env="MACHINE_PASSWORD",
        settle=0.0,
        settle_score=0.0,
        pause=0.5,
    )
    rename, cannot = environment.tasks()

    async def play() -> None:
        await machine.serve()
        device = await environment.open()
        try:
            first = await device.reset(rename, 0)
            assert (first.size, first.goal, rename.max_steps) == ((1920, 1080), "Do rename.", 15)
            assert not (await device.score()).success
            seen = [first, await device.step([Click(point=Point(100, 100))])]
            for text in ("cd ~/Desktop; mv todo_list_Jan_1 '<todo> list'", "x"):
                seen.append(await device.step([Type(text=text)]))
                seen.append(await device.step([Press(button="ENTER") if text != "x" else Hotkey(keys=("ctrl", "u"))]))
            assert len({each.screenshot for each in seen}) > 3
            assert (await device.step([Stop()])).over and (await device.score()).success
            await device.reset(cannot, 0)
            assert not (await device.score()).success
            await device.step([Stop(status="impossible")])
            assert (await device.score()).success and machine.reverted == ["clean", "clean"]
        finally:
            await device.close()

    asyncio.run(play())
