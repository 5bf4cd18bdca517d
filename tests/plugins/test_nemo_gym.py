"""The app of NeMo Gym's real server scores recorded responses: every reward is a verdict of `guieval score`.

NeMo Gym is on no package index and needs a later Python than the other harnesses: ``GUIEVAL_NEMO_GYM_PYTHON`` names one that
has it and guieval.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.plugins.conftest import MODEL, RecordRun

PYTHON = os.environ.get("GUIEVAL_NEMO_GYM_PYTHON")
HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.skipif(PYTHON is None, reason="GUIEVAL_NEMO_GYM_PYTHON names no Python with NeMo Gym")


def ran(*words: str) -> str:
    assert PYTHON is not None
    done = subprocess.run([PYTHON, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_rewards_are_the_verdicts_of_a_run(recorded: RecordRun, tmp_path: Path) -> None:
    run, folder = recorded("offline"), tmp_path / "server"
    given = {**run.settings, "model": MODEL}
    ran("-m", "guieval.plugins.nemo_gym_server", str(folder), *(f"{name}={json.dumps(value)}" for name, value in given.items()))
    rows = [json.loads(line) for line in (folder / "data" / "steps.jsonl").read_text().splitlines()]
    images = [
        part
        for item in rows[2]["responses_create_params"]["input"]
        if not isinstance(item["content"], str)
        for part in item["content"]
        if part["type"] == "input_image"
    ]
    assert len(rows) == len(run.replies) and len(images) == 3
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps(run.replies))
    printed = ran(str(HERE / "nemo_gym_client.py"), str(folder / "data" / "steps.jsonl"), str(replies)).splitlines()
    found = [json.loads(line) for line in printed if line.startswith("{")]
    assert {each["key"]: (each["verdict"], bool(each["type_match"])) for each in found} == run.verdicts()
    assert all(each["reward"] == float(each["verdict"] == "right") for each in found)
