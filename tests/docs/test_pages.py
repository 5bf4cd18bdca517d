"""Every page, as a reader follows it: its commands in their order, its Python in one interpreter, its files as they stand.

A command that needs what a test has not (a GPU, a hub, a whole benchmark) ends with a sentence, which :data:`REFUSED` expects.
Commands of other programs (git, docker, npm, pip) are not carried out.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from guieval.metrics import registry
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.docs.page import Snippet, snippets
from tests.docs.world import World, command_of, make_runs, value_of
from tests.programs import started
from tests.waiting import PATIENCE

SKILLS = sorted((REPOSITORY / "guieval" / "assistants").rglob("skills/**/*.md"))
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")), *SKILLS]
SERVERS = {
    "dev mock-server": r"http://127\.0\.0\.1:(\d+)",
    "view": r"http://127\.0\.0\.1:(\d+)",
    "dev serve-environment": r":(\d+)/ws",
}
"""Commands that serve until Ctrl-C, and the address that they print."""
DEFAULT_PORT = "8000"
"""Where ``mock-server`` and ``serve-environment`` listen unless they are told otherwise."""
NO_MODEL = r"vLLM is not installed|needs the package '(?:vllm|torch)'|is answered by a server: add --base-url|needs a key: set"
NOT_THAT_DATA = (
    r"needs [\d,]+ named episodes|has no split 'train'|has no episode '27'"
    r"|is of androidcontrol, but|too few steps to choose from"
)
NO_FILE = r"(?:does not exist|there is no folder|cannot be read: No such file|is not a folder|is not a run directory)"
REFUSED: dict[str, str] = {
    "README.md": NO_FILE,
    "after-a-run.md": f"{NO_MODEL}|{NOT_THAT_DATA}|runs are on different data|{NO_FILE}",
    "computer-use.md": NO_MODEL,
    "consistency.md": f"{NO_FILE}|is no online run",
    "data-selection.md": f"{NOT_THAT_DATA}|{NO_FILE}",
    "denominators.md": f"{NOT_THAT_DATA}",
    "desktop.md": NO_FILE,
    "decisions.md": f"has one answer to each step|two runs would be called|{NO_MODEL}|{NOT_THAT_DATA}|{NO_FILE}|holds no sweep",
    "engines.md": f"{NO_MODEL}|{NO_FILE}",
    "environments.md": rf"{NO_MODEL}|{NO_FILE}|needs (?:MobileGym's|the) package|which has no apps|which is not a program"
    r"|could not be read: .*not known|needs its list of tasks|is no online run",
    "episodes.md": f"{NO_MODEL}|{NO_FILE}",
    "graphs.md": rf"{NO_MODEL}|{NO_FILE}|has no tasks.json|could not be read: .*(?:not known|HF_HUB_OFFLINE)",
    "harness.md": NO_FILE,
    "online.md": f"{NO_MODEL}|{NO_FILE}|is no online run",
    "judges.md": f"{NO_FILE}|is no online run",
    "predictions.md": NO_FILE,
    "rollouts.md": NO_FILE,
    "scaling.md": f"{NO_MODEL}|{NO_FILE}",
    "viewer.md": "--moving is for online runs",
    "training.md": f"{NO_MODEL}|{NO_FILE}|has no training",
    "settings.md": NOT_THAT_DATA,
    "SKILL.md": NOT_THAT_DATA,
    "your-data.md": f"could not be read: .*(?:not known|HF_HUB_OFFLINE)|{NO_FILE}",
    "your-model.md": f"{NO_MODEL}|{NO_FILE}|cannot be read, and the cache",
    "thoughts.md": f"{NO_MODEL}|{NOT_THAT_DATA}",
}
"""Pages with commands that need what a test has not, and the sentences that these end with (exit code 2)."""
ELSEWHERE = (
    r"(?<!\S)\.\.\.(?!\S)|\[--",  # a pattern of commands
    r"GRPOTrainer|verl|^from trl|^from verifiers",  # tests/rewards and tests/training
    r"campaign ui-s1-table|runs/(?:ui-s1|first)-table",  # tests/training
    r"--bench (?:miniwob|desktop)|serve-environment miniwob|record --bench demo --agent ocr-baseline",  # tests/online
    r"runs/perturbed-(?:demo|screenspot)",  # minutes of OCR: the page does the same with one episode
    r"guieval doctor (?:androidworld|osworld)",  # it ends with 1 for what is missing here: tests/connectors
)
"""Commands and snippets (patterns) that are not carried out here."""


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    make_runs(folder)
    return folder


@pytest.fixture
def world(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_METRICS", {})  # those of a page's file are for this page
    with ExitStack() as stack:
        yield World(tmp_path, stack)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_the_page_can_be_followed(page: Path, world: World, guieval: CommandLine) -> None:
    followed = [each for each in snippets(page) if not any(re.search(known, each.text) for known in ELSEWHERE)]
    for out in (value_of(each.words, "--out") for each in followed if each.kind == "command"):
        if out is not None and (world.folder / out).is_dir():
            shutil.rmtree(world.folder / out)  # the page makes it itself
    names: dict[str, Any] = {}
    for snippet in followed:
        match snippet.kind:
            case "file":
                (world.folder / snippet.name).parent.mkdir(parents=True, exist_ok=True)
                (world.folder / snippet.name).write_text(world.placed(snippet.text), encoding="utf-8")
            case "python":
                exec(snippet.text, names)
            case _ if snippet.words[0] == "guieval":
                follow(snippet, world, guieval, REFUSED.get(page.name))
            case _ if snippet.words[:2] == ["python", "-m"]:
                assert find_spec(snippet.words[2]), snippet.text
    if page.name == "papers.md":
        made = (world.folder / "table.tex").read_text(encoding="utf-8")
        assert all(each in made for each in ("ui-tars-7b", "qwen2.5-vl-7b", r"& p \\", "sd 0.00"))
        assert sum(each.kind == "command" for each in followed) == 4


def follow(snippet: Snippet, world: World, guieval: CommandLine, refused: str | None) -> None:
    """Carry out one command of ours; it may end with a sentence of the pattern ``refused``."""
    words = world.words(snippet.words)[1:]
    if command_of(["guieval", *words])[0] in SERVERS:
        serve(words, world)
        return
    done = guieval(*words)
    expected = done.code == 0 or (done.code == 2 and refused is not None and re.search(refused, done.err))
    assert expected, f"{snippet.text}\n{done.err[-1000:]}"


def serve(words: Sequence[str], world: World) -> None:
    """Start a server on a free port and wait for its address; one that the page leaves running (``&``) ends with the page.

    The page's commands find it at the page's own address, whatever else may use that port.
    """
    name, [*options] = command_of(["guieval", *(word for word in words if word != "&")])
    port = value_of(options, "--port") or DEFAULT_PORT
    if "--port" in options:
        del options[(place := options.index("--port")) : place + 2]
    options += ["--port", "0", *(["--no-browser"] if name == "view" else [])]
    command = [sys.executable, "-m", "guieval", *name.split(), *options]
    server = world.stack.enter_context(started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    assert server.stdout is not None
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(SERVERS[name], line):
            break
    else:
        raise AssertionError("".join(said))
    assert found[1] != port
    if words[-1] == "&":
        world.listening[f"http://127.0.0.1:{port}/v1"] = f"http://127.0.0.1:{found[1]}/v1"
    else:
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) in (0, 130)
