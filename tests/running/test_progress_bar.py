"""How far commands are: on terminals of several widths, without colour, and where there is no terminal."""

from __future__ import annotations

import errno
import io
import re
import sys
import time
from pathlib import Path

import pytest

from guieval.registry import benchmarks
from guieval.running.progress.bar import progress_bar
from guieval.running.progress.view import part_done
from tests.command_line import CommandLine
from tests.reports.scripted_runs import made_run
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row
from tests.terminal import COLOUR, drawn_lines, on_terminal


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("made") / "run", {("e00", 1)})


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    benchmarks()["episodes"].write_example(folder, episodes=3)
    return folder


@every_row("columns", [100, 80, 40, 24])
def test_on_a_terminal_a_bar_with_the_percentage_fits_the_width(columns: int, run: Path, tmp_path: Path) -> None:
    code, written = on_terminal("report", run, "--out", tmp_path / "out", "--no-images", columns=columns)
    assert code == 0 and bool(COLOUR.search(written)) == (columns > 24)
    lines = drawn_lines(written)
    assert max(map(len, lines)) <= columns
    assert " 100 %" in lines[-1] and ("━" in lines[-1]) == (columns > 40)
    assert columns < 80 or "48 of 48 steps" in lines[-1]


@pytest.mark.parametrize("command", ["report", "data prepare"])
def test_no_color_is_respected_by_the_bar(command: str, run: Path, release: Path, tmp_path: Path) -> None:
    given = (run, "--no-images") if command == "report" else ("episodes", "--source", release)
    code, written = on_terminal(*command.split(), *given, "--out", tmp_path / "out", NO_COLOR="1")
    assert code == 0 and not COLOUR.search(written), repr(written)
    assert "━" in written and ("100 %" if command == "report" else "3 episodes") in drawn_lines(written)[-1]


@every_row("command", ["score {run}", "runs {run}", "models", "benchmarks", "--help", "data push --help", "scor"])
def test_no_color_is_respected_by_what_is_printed(command: str, run: Path) -> None:
    code, written = on_terminal(*command.format(run=run).split(), output=True, columns=80, NO_COLOR="1")
    assert code == (2 if command == "scor" else 0) and written.strip()
    assert not COLOUR.search(written), repr(written)
    assert command != "--help" or COLOUR.search(on_terminal(command, output=True)[1])


def test_piped_output_is_plain_lines_with_a_percentage(run: Path, release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    def piped(*arguments: str | Path) -> str:
        done = guieval(*arguments)
        assert done.code == 0 and "progress:" not in done.out
        return done.err

    reported = piped("report", run, "--no-images", "--out", tmp_path / "report")
    assert re.fullmatch(r"progress: writing the report: 100 %, 48 of 48 steps, \d:\d\d elapsed\n", reported)
    limited = ("--limit", "2")
    prepared = piped("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "data", *limited)
    assert re.fullmatch(r"progress: preparing episodes: 100 %, 2 of 2 episodes, \d:\d\d elapsed\n", prepared)
    tasks = piped("report", online_run(tmp_path / "online"), "--no-images")
    assert re.fullmatch(r"progress: writing the report: 100 %, 8 of 8 tasks, \d:\d\d elapsed\n", tasks)
    # a terminal that cannot move its cursor gets plain lines
    code, written = on_terminal("report", run, "--no-images", "--out", tmp_path / "dumb", TERM="dumb")
    assert code == 0 and "\x1b" not in written and "100 %, 48 of 48 steps" in written


def test_lines_come_while_work_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_bar("writing", "steps") as update:
        for done in range(301):
            now = done / 10
            update(done, 300)
    states = re.findall(r"^progress: writing: (.*) steps, (.*) elapsed$", capsys.readouterr().err, re.M)
    assert states == [("33 %, 100 of 300", "0:10"), ("66 %, 200 of 300", "0:20"), ("100 %, 300 of 300", "0:30")]
    counts = ((0, 10), (1, 30_000), (29_999, 30_000), (30_000, 30_000), (31, 30))
    assert [part_done(*each) for each in counts] == ["0 %", "0 %", "99 %", "100 %", "100 %"]


def test_work_that_fails_has_no_total_or_no_reader(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="broken"), progress_bar("writing", "steps") as update:
        update(1, 2)
        raise ValueError("broken")
    assert capsys.readouterr().err == ""
    with progress_bar("preparing", "episodes") as update:  # without a total the number is shown
        update(1200, None)
    assert capsys.readouterr().err.startswith("progress: preparing: 1,200 episodes, 0:0")

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Closed())
    with progress_bar("writing", "steps") as update:  # a closed pipe does not end the work
        update(1, 1)
