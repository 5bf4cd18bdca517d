"""WebArena-Infinity: a small app with the published interface, and a real clone where GUIEVAL_WEBARENA_INFINITY names it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from guieval.actions import Click, Point, Stop
from guieval.conformance.environments import check_environment
from guieval.connectors.pages.webarena_infinity import WebArenaInfinity
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice
from tests.connectors.pages.as_a_person import ONE, TWO, do_all
from tests.connectors.pages.held import held
from tests.online.acting import left_of, running
from tests.online.devices import failure, on, require_chromium

require_chromium("requests")

SERVER = """
import http.server, json, socketserver, sys

STATE = None

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_PUT(self):
        global STATE
        STATE = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({})

    def do_GET(self):
        if self.path == "/api/state":
            self.answer(STATE, 200 if STATE else 404)
        else:
            super().do_GET()

    def answer(self, value, status=200):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--port") + 1])
    server = Server(("", port), Handler)
    print("on", server.server_address[0])
    server.serve_forever()
"""
PAGE = """<!doctype html><body style="margin:0"><button id="one" style="width:100%;height:100px">One more</button><p id="n"></p>
<script>
const state = JSON.parse(localStorage.getItem("state") || '{"count": 0}');
function push() {
  localStorage.setItem("state", JSON.stringify(state));
  document.getElementById("n").textContent = state.count;
  const put = new XMLHttpRequest();
  put.open("PUT", "/api/state", false);  // one after the other: the server answers each in a thread of its own
  put.send(JSON.stringify(state));
}
document.getElementById("one").onclick = () => { state.count += 1; push(); };
push();
</script>"""
VERIFY = """
import requests


def verify(server_url: str) -> tuple[bool, str]:
    print("looking")
    count = requests.get(f"{server_url}/api/state").json()["count"]
    return count == 2, f"the count is {count}"
"""
BUTTON = Click(point=Point(500.0, 50.0))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    app = tmp_path / "checkout" / "apps" / "counter"
    (app / "real-tasks").mkdir(parents=True)
    (app / "server.py").write_text(SERVER)
    (app / "index.html").write_text(PAGE)
    (app / "real-tasks" / "two.py").write_text(VERIFY)
    (app / "real-tasks" / "broken.py").write_text("def verify(server_url):\n    raise ValueError('no such thing')\n")
    tasks = [
        {"id": "two", "difficulty": "easy", "instruction": "Count\nto 2.", "verify": "real-tasks/two.py"},
        {"id": "broken", "difficulty": "hard", "instruction": "Break.", "verify": "real-tasks/broken.py"},
    ]
    (app / "real-tasks.json").write_text(json.dumps(tasks))
    return tmp_path / "checkout"


def made(checkout: Path, **options: Any) -> WebArenaInfinity:
    return WebArenaInfinity(checkout=str(checkout), width=400, height=300, **options)


def test_it_keeps_the_contract(checkout: Path) -> None:
    first, second = made(checkout).tasks()
    assert (first.id, first.subset, first.goal, dict(first.groups)) == ("two", "counter", "Count to 2.", {"difficulty": "easy"})
    assert made(checkout).key(first) == ("webarena-infinity", "counter", "two")
    assert first.max_steps == second.max_steps == 50
    file = checkout / "apps" / "counter" / "real-tasks.json"
    file.write_text(json.dumps(json.loads(file.read_text())[:1]))
    assert list(check_environment(made(checkout))) == []
    before = made(checkout).version
    (checkout / "apps" / "counter" / "real-tasks" / "two.py").write_text(VERIFY + "\n")
    assert made(checkout).version != before


def test_the_verifier_judges_and_each_task_begins_with_the_first_state(checkout: Path) -> None:
    environment = made(checkout)
    task, _ = environment.tasks()

    async def work(device: ABCDevice) -> list[tuple[bool, str]]:
        judged = []
        for clicks in (1, 2, 3):
            await device.reset(task, 0)
            await device.step([BUTTON] * clicks)
            await device.step([Stop(), BUTTON])
            score = await device.score()
            assert score.progress == float(score.success)
            judged.append((score.success, score.reason))
        return judged

    assert on(environment, work) == [(False, "the count is 1"), (True, "the count is 2"), (False, "the count is 3")]


def test_the_web_as_a_person_sees_it(checkout: Path) -> None:
    app = checkout / "apps" / "counter"
    shutil.copy(ONE, app / "index.html")
    shutil.copy(TWO, app)
    verify = VERIFY.replace('["count"]', '["done"]').replace("count == 2", "len(count) == 5")
    (app / "real-tasks" / "two.py").write_text(verify)
    do_all(made(checkout, address_bar=True), 300, address_bar=True)


def test_a_verifier_that_fails_or_an_app_that_does_not_start_is_an_environment_failure(checkout: Path) -> None:
    environment = made(checkout)
    call, failed = failure(environment, environment.tasks()[1])
    assert call == "score" and "verifier broken.py failed: ValueError: no such thing" in failed
    (checkout / "apps" / "counter" / "server.py").write_text("raise SystemExit('no port for me')")
    environment = made(checkout)
    call, failed = failure(environment, environment.tasks()[0])
    assert call == "reset" and "the app's server ended: no port for me" in failed


def test_a_dead_server_is_an_environment_failure_and_the_next_task_has_another(checkout: Path) -> None:
    environment = made(checkout)
    task = environment.tasks()[0]

    async def work(device: ABCDevice) -> bool:
        await device.reset(task, 0)
        for process in servers_of(psutil.Process()):
            process.kill()
        with pytest.raises(EnvironmentFailure):
            await device.score()
        await device.reset(task, 0)
        await device.step([BUTTON, BUTTON])
        return (await device.score()).success

    assert on(environment, work)


def servers_of(parent: psutil.Process) -> list[psutil.Process]:
    return running("guieval.connectors.pages.webarena_child", parent.children(recursive=True))


def test_servers_listen_on_this_machine_only_and_none_outlives_a_kill(checkout: Path) -> None:
    with held("webarena-infinity", checkout=str(checkout)) as process:
        (server,) = servers_of(psutil.Process(process.pid))
        listening = [each.laddr.ip for each in server.net_connections() if each.status == psutil.CONN_LISTEN]
        assert listening == ["127.0.0.1"]
    assert not left_of([server]), "the app's server outlives guieval"


def test_mistakes_give_one_sentence(checkout: Path, tmp_path: Path) -> None:
    for options, sentence in (
        ({"checkout": ""}, "needs its repository: --set bench_options.checkout=FOLDER"),
        ({"checkout": str(tmp_path)}, "which has no apps/*/server.py; expected a clone of the repository"),
        ({"checkout": str(checkout), "apps": "conter"}, "option apps names 'conter' (did you mean 'counter'?)"),
        ({"checkout": str(checkout), "width": 0}, "option width is 0; expected 1 to 10000"),
    ):
        with pytest.raises(UsageError) as refused:
            WebArenaInfinity(**options)
        assert sentence in str(refused.value)
    with pytest.raises(UsageError, match=r"function-tasks\.json' cannot be read"):
        made(checkout, kind="function").tasks()


def test_the_real_checkout(tmp_path: Path) -> None:
    checkout = os.environ.get("GUIEVAL_WEBARENA_INFINITY")
    if checkout is None:
        pytest.skip("GUIEVAL_WEBARENA_INFINITY does not name a clone of WebArena-Infinity")
    environment = WebArenaInfinity(checkout=checkout, apps="gmail")
    task = next(task for task in environment.tasks() if task.id == "task_e1")

    async def work(device: ABCDevice) -> list[bool]:
        await device.reset(task, 0)
        before = await device.score()
        await device.step([Click(point=Point(215.0, 199.0))])  # the star of the first email
        return [before.success, (await device.score()).success]

    assert on(environment, work) == [False, True]
