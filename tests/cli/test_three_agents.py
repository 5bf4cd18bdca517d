"""What a user ends with: three agents on real screenshots, one leaderboard in every format, one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

AGENTS = ("ocr-baseline", "scripted-middle", "scripted-hash")


@pytest.fixture
def runs(guieval: CommandLine, shared_data: Path, tmp_path: Path) -> list[Path]:
    made = []
    for agent in AGENTS:
        scripted: list[str | Path] = ["--adapter", REPOSITORY / "tests" / "scripted_agents.py", "--set", "engine=local"]
        options = [] if agent == "ocr-baseline" else scripted
        data: list[str | Path] = ["--bench", "aitz", "--data", shared_data / "aitz_example"]
        done = guieval("run", "--model", agent, *options, *data, "--out", tmp_path / agent, "--quiet")
        assert done.code == 0, done.err
        made.append(tmp_path / agent)
    return made


def test_three_agents_share_a_leaderboard_and_a_report(guieval: CommandLine, runs: list[Path], tmp_path: Path) -> None:
    result = json.loads(guieval("leaderboard", *runs, "--format", "json").out)
    assert {row["model"] for row in result["rows"]} == set(AGENTS)
    for format in ("md", "csv", "latex", "html"):
        done = guieval("leaderboard", *runs, "--protocol", "all", "--format", format, "--out", tmp_path / format)
        assert done.code == 0
        text = (tmp_path / format).read_text(encoding="utf-8")
        assert all(agent in text for agent in AGENTS)
    done = guieval("report", runs[0], "--against", runs[1], "--protocol", "all", "--out", tmp_path / "report")
    assert done.code == 0 and "4 steps of 1 episode, 4 screenshots" in done.out
    assert (tmp_path / "report" / "index.html").is_file()
