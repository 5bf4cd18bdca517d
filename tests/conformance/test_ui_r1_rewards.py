"""Every reward that UI-R1's released functions gave on a recorded completion must be ours too."""

from __future__ import annotations

import pytest

from guieval.rewards import action_reward, coordinate_reward, format_reward

from .conftest import Vectors


def test_every_reward_agrees(vectors: Vectors, capsys: pytest.CaptureFixture[str]) -> None:
    lines = vectors.lines("ui-r1-reward")
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
    with capsys.disabled():
        print(f"\nui-r1-reward: {len(lines) - len(unlike)} of {len(lines)} lines agree", end="")
    for part in ("action", "coord", "format"):
        both = {line["expected"][part] for line in lines} == {0.0, 1.0}
        assert vectors.named or both, f"the lines must hold both rewards for {part}"
    assert not unlike, f"{len(unlike)} of {len(lines)} rewards disagree, first {unlike[0]}"
