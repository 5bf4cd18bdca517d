"""``prepare``, ``import`` and ``export`` killed at any moment: the same command again makes what an undisturbed one makes."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import guieval as package
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import LOCK
from guieval.registry import benchmarks
from tests.exchange.predictions.files import agentcpm_row
from tests.killed import kills, operations
from tests.online.test_runs import settings, write_agent

KILLS = int(os.environ.get("GUIEVAL_KILLS", "4"))
"""At how many moments each command is killed, alone and one after the other; 20 in ``make kills``."""


def preparing(folder: Path) -> tuple[list[str | Path], str]:
    benchmarks()["episodes"].write_example(folder / "release", episodes=12)
    return ["data", "prepare", "episodes", "--source", folder / "release", "--out"], "prepared"


def importing_answers(folder: Path) -> tuple[list[str | Path], str]:
    rows = [agentcpm_row({"POINT": [number, 2]}, episode_id=str(number)) for number in range(9)]
    (folder / "all.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return ["data", "import", folder / "all.jsonl", "--out"], "imported"


def importing_trajectories(folder: Path) -> tuple[list[str | Path], str]:
    package.run(**settings(write_agent(folder)), out=folder / "run", progress=False)
    format_named("atif").write(exported(folder / "run"), folder / "atif", images=True)
    return ["data", "import", folder / "atif", "--out"], "run-again"


def exporting(folder: Path) -> tuple[list[str | Path], str]:
    benchmarks()["episodes"].write_example(folder / "release", episodes=12)
    return ["data", "export", "episodes", "--data", folder / "release", "--out"], "episodes.jsonl"


@pytest.mark.ci
@pytest.mark.parametrize("made", [preparing, importing_answers, importing_trajectories, exporting])
def test_the_same_command_again_makes_the_same(made: Callable[[Path], tuple[list[str | Path], str]], tmp_path: Path) -> None:
    """Killed at one moment, and at one after the other, each time further on; what is there then is whole, and nothing else."""
    words, name = made(tmp_path)
    whole, killed, draw = tmp_path / "whole", tmp_path / "killed", random.Random(name)
    for folder in (whole, killed):
        folder.mkdir()
    most = operations(whole, [*words, whole / name])
    alone = draw.sample(range(most), min(most, KILLS))
    counted = 0
    for moments in (*([moment] for moment in alone), sorted(alone)):
        counted += kills(moments, killed, [*words, killed / name])
        assert contents(killed) == contents(whole), moments
        shutil.rmtree(killed)
        killed.mkdir()
    assert counted > len(alone), "killed at every single moment, and again one after the other"
    print(f"{name}: {counted} kills at {len(alone)} of {most} moments")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes; a lock tells of the process that wrote it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
