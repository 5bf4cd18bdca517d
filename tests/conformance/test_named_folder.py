"""A folder of somebody's own recorded verdicts may hold any number of lines."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

LINE = {
    "completion": "<think>.</think><answer>[{'action': 'click', 'coordinate': [5, 5]}]</answer>",
    "solution": "<answer>[{'action': 'click', 'coordinate': [0, 0, 9, 9]}]</answer>",
    "scale": [1.0, 1.0],
    "expected": {"action": 1.0, "coord": 1.0, "format": 1.0},
}


@pytest.mark.parametrize("right", [True, False])
def test_one_line_is_checked_and_counted(tmp_path: Path, right: bool) -> None:
    line = LINE if right else LINE | {"expected": {"action": 0.0, "coord": 1.0, "format": 1.0}}
    with gzip.open(tmp_path / "ui-r1-reward.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance/test_ui_r1_rewards.py"]
    environment = os.environ | {"GUIEVAL_CONFORMANCE_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == right, done.stdout
    assert f"ui-r1-reward: {int(right)} of 1 lines agree" in done.stdout
