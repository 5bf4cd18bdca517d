"""Ctrl-C while an agent of this process is busy: once stops in order, twice at once, and neither shows a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guieval.journal import METRICS
from tests.programs import started
from tests.waiting import PATIENCE, until

SLOW = """
from pathlib import Path
from tests.scripted import ScriptedModel

class Slow(ScriptedModel):
    def respond(self, request):
        Path(__file__).with_name("busy").touch()
        Path(__file__).with_name("go").read_text()  # of a pipe: until somebody writes there
        return "no action"
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_with_a_busy_agent(tmp_path: Path, times: int) -> None:
    adapter, run, go = tmp_path / "slow.py", tmp_path / "run", tmp_path / "go"
    adapter.write_text(SLOW)
    os.mkfifo(go)
    arguments = ["run", "--model", "slow", "--adapter", str(adapter), "--set", "engine=local", "--bench", "demo"]
    arguments += ["--data", str(tmp_path / "demo"), "--set", "bench_options.episodes=1", "--concurrency", "1"]
    words = [sys.executable, "-m", "guieval", *arguments, "--out", str(run)]
    with started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        until((tmp_path / "busy").exists, "a question to the agent", running=process)
        process.send_signal(signal.SIGINT)
        lines: list[str] = []
        while not (lines and lines[-1].startswith("resume:")):
            lines.append(process.stdout.readline())
            assert lines[-1], "it ended before its report"
        if times == 1:
            assert process.poll() is None, "it waits for the agent"
            go.write_text("")
        else:  # more than once, since nothing shows when the program listens to the second one

            def ended() -> bool:
                process.send_signal(signal.SIGINT)
                return process.poll() is not None

            until(ended, "the end, without the agent", every=0.2)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err and "Exception" not in err, err
    assert lines[-2] == "stopped:  offline: on request\n"
    assert json.loads((run / METRICS).read_text())["state"] != "finished"
