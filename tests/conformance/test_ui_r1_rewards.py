"""Every reward that UI-R1's released functions gave on a recorded completion must be ours too."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from guieval.rewards import action_reward, coordinate_reward, format_reward


def test_every_reward_agrees(request: pytest.FixtureRequest) -> None:
    named = os.environ.get("GUIEVAL_CONFORMANCE_DIR")
    folder = Path(named) if named else request.getfixturevalue("shared_data") / "conformance"
    file = folder / "ui-r1-reward.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no recorded rewards at {file} (set GUIEVAL_CONFORMANCE_DIR)")
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream if line.strip()]
    unlike = []
    for number, line in enumerate(lines, 1):
        completion, solution = line["completion"], line["solution"]
        ours = {
            "action": action_reward(completion, solution),
            "coord": coordinate_reward(completion, solution, tuple(line["scale"])),
            "format": format_reward(completion),
        }
        if ours != line["expected"]:
            unlike.append((number, ours, line["expected"]))
    assert len(lines) == 600
    for part in ("action", "coord", "format"):
        assert {line["expected"][part] for line in lines} == {0.0, 1.0}, f"the lines must hold both rewards for {part}"
    assert not unlike, f"{len(unlike)} of {len(lines)} rewards disagree, first {unlike[0]}"
