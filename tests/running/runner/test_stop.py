"""Ctrl-C while an agent of this process is busy: once stops in order, twice at once, and neither shows a traceback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guieval.journal import METRICS

SLOW = """
import time
from pathlib import Path
from tests.scripted import ScriptedModel

class Slow(ScriptedModel):
    def respond(self, request):
        Path(__file__).with_name("busy").touch()
        time.sleep(4)
        return "no action"
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_with_a_busy_agent(tmp_path: Path, times: int) -> None:
    adapter, run = tmp_path / "slow.py", tmp_path / "run"
    adapter.write_text(SLOW)
    arguments = ["run", "--model", "slow", "--adapter", str(adapter), "--set", "engine=local", "--bench", "demo"]
    arguments += ["--data", str(tmp_path / "demo"), "--set", "bench_options.episodes=1", "--concurrency", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "guieval", *arguments, "--out", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while not (tmp_path / "busy").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    lines: list[str] = []
    while not (lines and lines[-1].startswith("re-score:")):
        lines.append(process.stdout.readline())
        assert lines[-1], "it ended before its report"
    if times == 2:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err and "Exception" not in err, err
    assert any(line.startswith("resume:") for line in lines)
    assert json.loads((run / METRICS).read_text())["summary"]["complete"] is False
