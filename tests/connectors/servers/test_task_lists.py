"""Published lists of tasks: downloaded and checked by digest, acted on without a judge, and judged by a model afterwards."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import guieval as package
from guieval.actions import Click, Hotkey, Point, Stop, Type
from guieval.conformance.environments import check_environment
from guieval.connectors.servers.aitw import AitwGen
from guieval.data.published_file import PublishedFile
from guieval.errors import UsageError
from guieval.online import ABCDevice
from guieval.online.find import environments
from guieval.playground.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine
from tests.connectors.pages.as_a_person import GREEN, area
from tests.connectors.servers.android_servers import AndroidWorldServer
from tests.online.devices import on, require_chromium
from tests.online.in_thread import InThread
from tests.online.test_runs import figures_of, outcomes, settings, write_agent

GOALS = b"Open the clock\nWhat's the weather?\n"
GREEN_LATER = (
    """<!doctype html><body><script>setTimeout(() => document.body.style.background = 'rgb(0, 160, 0)', %d)</script>"""
)


def test_each_list_states_its_edition() -> None:
    """Two names of one list, or a list at a branch, whose content changes."""
    lists = {name: kind.task_list for name, kind in environments().items() if kind.task_list is not None}
    assert {"webvoyager", "webvoyager-595", "webvoyager-552", "online-mind2web", "aitw-gen", "aitw-web"} < lists.keys()
    commits = [next(part for part in each.address.split("/") if len(part) == 40) for each in lists.values()]
    assert len({each.sha256 for each in lists.values()}) == len(commits) == len(lists)


def test_tasks_without_a_judge_count_in_no_rate_until_a_model_judges_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    server = AndroidWorldServer()
    app = server.app()

    async def general_test(_: web.Request) -> web.Response:
        return web.Response(body=GOALS)

    app.add_routes([web.get("/general_test.txt", general_test)])
    with InThread(app) as running:
        listed = PublishedFile(f"{running.address}/general_test.txt", sha256(GOALS).hexdigest())
        monkeypatch.setattr(AitwGen, "task_list", listed)
        with pytest.raises(UsageError, match="needs its list of tasks: guieval data download aitw-gen"):
            AitwGen(url=running.address)
        assert guieval("data", "download", "aitw-gen").code == 0
        environment = AitwGen(url=running.address)
        assert (
            check_environment(environment) == [] and [task.goal for task in environment.tasks()] == GOALS.decode().splitlines()
        )
        replies = {"001": [Click(point=Point(900, 500)).model_dump_json(), Stop().model_dump_json()]}
        agent = write_agent(tmp_path, {"002": replies["001"][:1], **replies})
        options = {"url": running.address, "max_steps": 2}
        run = settings(agent, bench="aitw-gen", bench_options=options)
        package.run(**run, progress=False, out=tmp_path / "run")
        with MockServer(MockSettings(policy="fixed", reply="Status: success", served_models=("m",))) as judge:
            said = json.loads(guieval("study", "judge", "run", "--base-url", judge.base_url, "--json").out)
        monkeypatch.setattr(AitwGen, "task_list", listed._replace(sha256="0" * 64))
        assert f"has the SHA-256 {listed.sha256[:12]}" in guieval.sentence("data", "download", "aitw-gen")
        with pytest.raises(UsageError, match="not 000000000000: it is another edition"):
            AitwGen(url=running.address).tasks()
    assert not server.running and server.calls.count("/task/initialize") == 0
    assert {name: outcome.ended for name, outcome in outcomes(tmp_path / "run").items()}["001"] == "not judged"
    metrics = figures_of(tmp_path / "run").metrics
    assert [(metrics[name].value, metrics[name].n) for name in ("success rate", "progress", "false completion")] == [
        (None, 0)
    ] * 3
    assert (said["judged_success"]["value"], said["judged_success"]["n"], "accuracy" in said) == (1, 2, False)


def test_a_live_website_goes_on_and_the_address_bar_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that stands still would keep a website from loading; an address that is refused, an agent from searching."""
    require_chromium()
    from guieval.connectors.pages.live_web import WebVoyager

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=GREEN_LATER % (int(request.query.get("after", 100))), content_type="text/html")

    apps = web.Application(), web.Application()
    for app in apps:
        app.add_routes([web.get("/", page)])
    with InThread(apps[0]) as one, InThread(apps[1]) as two:
        row = {"web_name": "One", "id": "One--0", "ques": "Look.", "web": f"{one.address}/?after=3600000"}
        (tmp_path / "list.jsonl").write_text(json.dumps(row))
        digest = sha256((tmp_path / "list.jsonl").read_bytes()).hexdigest()
        monkeypatch.setattr(WebVoyager, "task_list", PublishedFile("list.jsonl", digest))
        options: dict[str, Any] = {"tasks": str(tmp_path / "list.jsonl"), "width": 400, "height": 300, "pause": 0.5}
        with pytest.raises(UsageError, match="add --allow-network"):
            WebVoyager(**options)
        environment = WebVoyager(**options, allow_network=True)

        async def look(device: ABCDevice) -> bool:
            seen = await device.reset(environment.tasks()[0], 0)
            assert seen.goal == "Look." and area(seen, GREEN) is None
            seen = await device.step([Hotkey(keys=("ctrl", "l")), Type(text=f"{two.address}/\n")])
            assert (await device.score()).unjudged
            return area(seen, GREEN) is not None

        assert on(environment, look)
        assert dict(environment.tasks()[0].groups) == {"web_name": "One"} and environment.identity()["task list"] == digest
