"""docs/python.md: its code runs as it is written, and its table names the columns that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.reports.opened import OpenedRun
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(guieval: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    agent = ["--adapter", str(REPOSITORY / "tests" / "scripted_agents.py"), "--set", "engine=local"]
    done = guieval("run", "--model", "scripted-hash", *agent, "--bench", "demo", "--limit", "2", "--out", "runs/first")
    assert done.code == 0
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 7 and isinstance(names["run"], OpenedRun) and len(names["wrong"]) > 0
    assert Image.open("step.png").size == names["step"].task.screenshot_size
    columns = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert columns | {"sample"} == set(names["steps"].columns)
