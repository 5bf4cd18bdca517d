"""``guieval data prepare``, ``export`` and ``import`` as users meet them, killed at any moment too."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import guieval as package
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import LOCK
from guieval.registry import benchmarks
from tests.command_line import CommandLine
from tests.exchange.predictions.files import agentcpm_row
from tests.json_values import read_json
from tests.killed import kills, operations
from tests.online.test_runs import settings, write_agent
from tests.programs import signalled, started
from tests.rows import every_row
from tests.scripted_release import png
from tests.waiting import PATIENCE

KILLS = int(os.environ.get("GUIEVAL_KILLS", "2"))
"""How often the preparation of packed records is killed; 20 in ``make kills``."""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of the benchmark ``episodes``: three made-up episodes."""
    folder = tmp_path / "release"
    benchmarks()["episodes"].write_example(folder, episodes=3)
    return folder


def test_prepare_states_what_it_made_and_what_to_run_next(release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    out = tmp_path / "my out"
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", out)
    assert done.code == 0 and done.err.startswith("progress: preparing episodes: 100 %, 3 of 3 episodes, ")
    result = read_json((out / "prepared.json").read_text())
    first, *_, digest, command = done.out.splitlines()
    assert first == f"episodes prepared in {out}: 3 episodes, {result['steps']} steps"
    assert digest == f"  sha256 of episodes.jsonl: {result['sha256']}"
    assert command == f"next: guieval run --model NAME --bench episodes --data '{out}'"
    again = guieval("data", "prepare", "episodes", "--source", release, "--out", out)
    assert again.out.splitlines()[0] == f"{first}, all of them prepared before"
    assert guieval("doctor", "episodes", "--data", out).code == 0


def test_a_part_is_reported_as_a_part(shared_data: Path, tmp_path: Path, guieval: CommandLine) -> None:
    arguments = ("--source", shared_data / "screenspot", "--out", tmp_path / "out", "--without-screenshots", "--limit", "7")
    done = guieval("data", "prepare", "screenspot", *arguments)
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"next: guieval doctor screenspot --data {tmp_path / 'out'}"
    assert "screenspot prepared in" in done.out
    assert "  a part: the first 7 episodes of the release (--limit)" in done.out
    assert "  annotations only: without screenshots it can be counted and scored, but not run" in done.out
    for result in benchmarks()["screenspot"].published[:1]:
        assert f"a part of what is published: {result.name}: " in done.out
        assert f"7 of {result.steps:,} steps" in done.out


@every_row(
    ("arguments", "sentence"),
    [
        (("episode",), "unknown benchmark 'episode' (did you mean 'episodes'?); `guieval benchmarks` lists them"),
        (("episodes", "--set", "file"), "--set needs option=value, got 'file'"),
        (("episodes", "--set", "file=a", "--set", "file=b"), "--set gives the option 'file' twice"),
        (("episodes", "--set", "file=2024"), "option file is 2024; expected text"),
        (("episodes", "--set", "root=a"), "benchmark 'episodes' has no option 'root'"),
        (("episodes", "--set", "self=a"), "benchmark 'episodes' has no option 'self'"),
        (("episodes", "--set", "source=a"), "benchmark 'episodes' has no option 'source'"),
        (("episodes", "--set", os.fsdecode(b"file=\xff")), "--set 'file=\\udcff' is not valid text"),
        (("episodes", "--set", "fil=a"), "benchmark 'episodes' has no option 'fil' (did you mean 'file'?)"),
        (("episodes", "--set", "file=x.jsonl"), "has no x.jsonl"),
        (("demo",), "benchmark 'demo' makes its own data"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], sentence: str, release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    assert sentence in guieval.sentence("data", "prepare", *arguments, "--source", release, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_damage_is_named_with_what_can_be_done(release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    file = release / "episodes.jsonl"
    file.write_text(file.read_text().replace('"episode_id": "1"', '"episode": "1"'))
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"guieval: {file}, line 2, field episode: is not known (did you mean 'episode_id'?)")
    assert "repair the release, or add --skip-damaged, and give the command again" in done.err
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "out", "--skip-damaged")
    assert done.code == 0
    assert "2 episodes" in done.out
    assert f"  damaged and left out: 1 (all in prepared.json)\n    {file}, line 2" in done.out


def test_a_missing_screenshot_is_named_with_what_can_be_done(release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    (release / "screenshots" / "1_0.png").unlink()
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "out")
    assert done.code == 2
    assert "screenshots/1_0.png' does not exist; --without-screenshots prepares the annotations alone" in done.err
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "alone", "--without-screenshots")
    assert done.code == 0


@pytest.mark.ci
def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(tmp_path: Path, guieval: CommandLine) -> None:
    release, out, many = tmp_path / "release", tmp_path / "out", 200
    release.mkdir()
    (release / "a.png").write_bytes(png(7))
    step = {"screenshot": "a.png", "action": {"type": "WAIT"}}
    lines = (json.dumps({"episode_id": str(number), "instruction": "", "steps": [step]}) for number in range(many))
    (release / "episodes.jsonl").write_text("\n".join(lines))
    words = ["data", "prepare", "episodes", "--source", str(release), "--out", str(out)]
    file = out / "episodes.jsonl"
    with started([*signalled(signal.SIGINT, "a.png", many), *words], stderr=subprocess.PIPE) as child:
        _, result = child.communicate(timeout=PATIENCE)
    stopped = re.fullmatch(r"guieval: stopped after ([\d,]+) episodes?; the same command continues from there\n", result)
    assert child.returncode == 130
    assert stopped is not None, result
    assert 0 < int(stopped.group(1).replace(",", "")) < many
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", out)
    assert (done.code, done.out.split(": ")[1].split(" ")[0]) == (0, f"{many:,}")
    assert [read_json(line)["episode_id"] for line in file.read_text().splitlines()] == [str(each) for each in range(many)]


def test_export_writes_what_the_episodes_benchmark_reads(release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    out = tmp_path / "all.jsonl"
    done = guieval("data", "export", "episodes", "--data", release, "--out", out, "--limit", "2")
    assert done.code == 0
    first, command = done.out.splitlines()
    assert first.startswith(f"{out}: 2 episodes, ")
    assert command == f"next: guieval run --model NAME --bench episodes --data {release} --set bench_options.file={out}"
    done = guieval("data", "export", "episodes", "--data", release, "--out", out)
    assert (done.code, done.err) == (2, f"guieval: the file {str(out)!r} exists already; give another --out, or delete it\n")
    # on the screenshots that it was exported from
    out = tmp_path / "whole.jsonl"
    assert guieval("data", "export", "episodes", "--data", release, "--out", out).code == 0
    done = guieval("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "out", "--set", f"file={out}")
    assert done.code == 0 and done.err.startswith("progress: preparing episodes: 100 %, 3 of 3 episodes, ")


STOPS = int(os.environ.get("GUIEVAL_KILLS", "4"))
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
    alone = draw.sample(range(most), min(most, STOPS))
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
