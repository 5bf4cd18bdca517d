"""``guieval dev mcp``, in a process of its own as a coding agent starts it, driven over stdio by the official SDK's client."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import guieval
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.waiting import PATIENCE

pytest.importorskip("mcp")
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

READING = {"list_benchmarks", "list_models", "list_protocols", "list_runs", "score", "compare", "list_steps", "show_step"}
STARTING = {"start_run", "run_status", "stop_run"}
PAGE = REPOSITORY / "docs" / "assistants" / "assistants.md"


class Assistant:
    """A client of the server; it keeps what it called, and how the results begin."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.picture: Image.Image | None = None

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The values that a tool answers with; an error fails the test."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        for each in result.content:
            if each.type == "image":
                self.picture = Image.open(io.BytesIO(base64.b64decode(each.data)))
        if result.structured_content is not None:
            return result.structured_content
        return json.loads(result.content[0].text)  # type: ignore[union-attr]

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """The sentence that a tool refuses with."""
        result = await self.client.call_tool(tool, arguments)
        (content,) = result.content
        assert result.is_error and content.type == "text" and "\n" not in content.text and "Traceback" not in content.text
        return content.text

    async def finished(self, run: str) -> Any:
        """The status of a run once it is finished."""
        until = time.monotonic() + PATIENCE
        while True:
            status = await self("run_status", run=run)
            if status["exit_code"] is not None or time.monotonic() > until:
                return status
            await asyncio.sleep(0.2)


def conversation(folder: Path, talk: Callable[[Assistant], Awaitable[None]], *options: str) -> None:
    """Have ``talk`` use a server that is started in ``folder`` with these options."""
    words = ["-m", "guieval", "dev", "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=words, cwd=folder, env=dict(os.environ))

    async def hold() -> None:
        async with Client(stdio_client(parameters)) as client:
            await talk(Assistant(client))

    asyncio.run(hold())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of two agents, one of which errs."""
    folder = tmp_path_factory.mktemp("world")
    for name, model, options in (("careful", "ocr-baseline", {}), ("hasty", "ocr-errant", {"slip": 0.6})):
        guieval.run(model=model, bench="demo", out=folder / "runs" / name, limit=2, progress=False, options=options)
    return folder


def test_an_assistant_evaluates_compares_and_looks_at_a_wrong_step(
    runs: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are those of the commands, and the picture has the screenshot's shape."""
    monkeypatch.chdir(runs)

    async def talk(use: Assistant) -> None:
        begun = await use("start_run", model="ocr-baseline", bench="demo", mode="offline", limit=1, name="mine")
        assert [run["name"] for run in begun["runs"]] in ([], ["mine"])
        status = await use.finished("mine")
        assert status["exit_code"] == 0 and [run["state"] for run in status["runs"]] == ["finished"], status
        assert {run["name"] for run in (await use("list_runs"))["runs"]} == {"mine", "careful", "hasty"}
        scored = await use("score", run="careful")
        assert scored == json.loads(guieval("score", "runs/careful", "--json").out)
        compared = await use("compare", first="careful", second="runs/hasty")
        assert compared == json.loads(guieval("compare", "runs/careful", "runs/hasty", "--json").out)
        wrong = await use("list_steps", run="hasty", limit=1)
        assert wrong["count"] >= len(wrong["steps"]) == 1
        where = {name: wrong["steps"][0][name] for name in ("episode", "step")}
        seen = await use("show_step", run="hasty", **where)
        assert seen["protocols"][0]["verdict"] == "wrong" and seen["response"] and seen["action"] and "targets" in seen
        assert seen == json.loads(guieval("step", "runs/hasty", where["episode"], str(where["step"]), "--json").out)
        assert use.picture is not None and use.picture.height > use.picture.width > 300

    conversation(runs, talk, "--allow-run")


def test_a_reading_server_offers_nothing_that_starts_a_run(runs: Path) -> None:
    async def talk(use: Assistant) -> None:
        tools = {tool.name: tool for tool in (await use.client.list_tools()).tools}
        assert tools.keys() == READING
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools.values())
        assert "Unknown tool: start_run" in await use.refusal("start_run", model="ocr-baseline", bench="demo", mode="offline")

    conversation(runs, talk)


def test_a_model_is_told_what_each_tool_and_argument_is(runs: Path) -> None:
    async def talk(use: Assistant) -> None:
        tools = {tool.name: tool for tool in (await use.client.list_tools()).tools}
        assert tools.keys() == READING | STARTING
        for tool in tools.values():
            assert tool.description and len(tool.description) > 60, tool.name
            for name, argument in tool.input_schema.get("properties", {}).items():
                assert {"type", "anyOf"} & argument.keys() and argument.get("description"), f"{tool.name}: {name}"

    conversation(runs, talk, "--allow-run")


@pytest.fixture(scope="module")
def refusals(runs: Path) -> dict[str, str]:
    """What is refused, each by a name."""
    (runs / "outside").mkdir()
    with suppress(FileExistsError):
        (runs / "runs" / "link").symlink_to(runs / "outside")
    found: dict[str, str] = {}
    new = {"bench": "demo", "mode": "offline"}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "above": ("score", {"run": "../outside"}),
        "absolute": ("show_step", {"run": "/etc", "episode": "a", "step": 0}),
        "link": ("list_steps", {"run": "link"}),
        "new run above": ("start_run", {"model": "ocr-baseline", "name": "../mine", **new}),
        "run": ("compare", {"first": "carefull", "second": "hasty"}),
        "protocol": ("score", {"run": "careful", "protocol": ["guievalkitt"]}),
        "benchmark": ("start_run", {"model": "ocr-baseline", "bench": "demmo", "mode": "offline"}),
        "model": ("start_run", {"model": "ocr-basline", **new}),
        "model's path": ("start_run", {"model": "/etc/passwd", **new}),
        "taken": ("start_run", {"model": "ocr-baseline", "name": "careful", **new}),
        "episode": ("show_step", {"run": "careful", "episode": "s9-9999", "step": 0}),
        "mode": ("start_run", {"model": "ocr-baseline", "bench": "demo", "mode": "ofline"}),
        "number": ("list_steps", {"run": "careful", "limit": 0}),
        "stopped": ("stop_run", {"run": "careful"}),
    }

    async def talk(use: Assistant) -> None:
        for name, (tool, arguments) in calls.items():
            found[name] = await use.refusal(tool, **arguments)

    conversation(runs, talk, "--allow-run")
    return found


@pytest.mark.parametrize("what", ["above", "absolute", "link", "new run above"])
def test_a_path_out_of_the_folder_of_runs_is_refused(refusals: dict[str, str], what: str) -> None:
    assert "is outside of the folder of runs 'runs'" in refusals[what]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("run", "there is no run 'carefull' in 'runs' (did you mean 'careful'?)"),
        ("protocol", "unknown protocol 'guievalkitt' (did you mean 'guievalkit'?)"),
        ("benchmark", "unknown benchmark 'demmo' (did you mean 'demo'?)"),
        ("model", "did you mean 'ocr-baseline'?"),
        ("model's path", "the model '/etc/passwd' is a path"),
        ("taken", "the folder 'runs/careful' exists already"),
        ("episode", "'s9-9999'"),
        ("mode", "argument 'mode' of start_run: expected 'offline', 'soeval', 'sop' or 'sop-retry' (did you mean 'offline'?)"),
        ("number", "argument 'limit' of list_steps: expected 1 or more (got 0)"),
        ("stopped", "no run that this server started is under way in 'runs/careful'"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence_and_the_nearest_name(refusals: dict[str, str], what: str, said: str) -> None:
    assert said in refusals[what]


def test_a_run_that_cannot_begin_leaves_no_folder(refusals: dict[str, str], runs: Path) -> None:
    assert {path.name for path in (runs / "runs").iterdir()} - {"mine", "mine.log"} == {"careful", "hasty", "link"}


def test_options_for_runs_need_allow_run(guieval: CommandLine) -> None:
    sentence = guieval.sentence("dev", "mcp", "--base-url", "http://127.0.0.1:8000/v1")
    assert "--base-url is for the runs that an assistant starts: add --allow-run" in sentence


def calls_of(page: str) -> list[tuple[str, dict[str, Any], str]]:
    """The calls of the page's conversation: tool, arguments, and what it shows of the result."""
    block = page.partition("<!-- conversation -->\n```text\n")[2].partition("```")[0]
    parts = [part.partition("\n") for part in block.strip().removeprefix("> ").split("\n> ")]
    return [(head.partition(" ")[0], json.loads(head.partition(" ")[2]), shown.strip()) for head, _, shown in parts]


def has(value: Any, shown: Any) -> bool:
    """Whether a result has what is shown of it: some fields, the first entries of a list, numbers to three decimals."""
    if isinstance(shown, dict):
        return isinstance(value, dict) and all(name in value and has(value[name], each) for name, each in shown.items())
    if isinstance(shown, list):
        return isinstance(value, list) and len(value) >= len(shown) and all(map(has, value, shown))
    return abs(value - shown) <= 0.0005 if isinstance(shown, float) else bool(value == shown)


def test_the_conversation_on_the_page_is_as_it_says(runs: Path, tmp_path: Path) -> None:
    """The metrics on the page are those of the server; a change of either is found here."""
    shutil.copytree(runs / "runs" / "hasty", tmp_path / "runs" / "hasty")
    calls = calls_of(PAGE.read_text(encoding="utf-8"))
    assert [tool for tool, _, _ in calls] == ["start_run", "run_status", "compare", "list_steps", "show_step", "score"]

    async def talk(use: Assistant) -> None:
        for tool, arguments, shown in calls:
            if not shown.startswith("{"):
                assert await use.refusal(tool, **arguments) == shown
                continue
            values = await use.finished(arguments["run"]) if tool == "run_status" else await use(tool, **arguments)
            text, _, picture = shown.partition("\nand a picture, image/")
            assert has(values, json.loads(text)), f"{tool}: {values}"
            assert not picture or (use.picture is not None and use.picture.format == picture.upper())

    conversation(tmp_path, talk, "--allow-run")
