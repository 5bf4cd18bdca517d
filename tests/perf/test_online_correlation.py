"""The checkpoints of trainings that perf/online_correlation.py evaluates, and how it calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.online_correlation import TRAININGS, trained


def saved(folder: Path, *steps: int) -> None:
    for step in steps:
        (folder / "checkpoints" / f"checkpoint-{step}").mkdir(parents=True)
    (folder / "training.yaml").write_text("model_options: {words: false}\n", encoding="utf-8")


def test_checkpoints_are_greedy_agents_in_order_and_the_last_is_sampled_too(tmp_path: Path) -> None:
    for training in TRAININGS:
        saved(tmp_path / training, 100, 50)
    agents = trained(tmp_path)
    assert list(agents)[:3] == ["SFT, step 50", "SFT, step 100", "SFT, step 100, temperature 1"]
    assert len(agents) == 9
    sampled = agents["GRPO, step 100, temperature 1"]
    assert sampled["model_path"] == str(tmp_path / "tiny-phone-grpo" / "checkpoints" / "checkpoint-100")
    assert sampled["options"] == {"words": False}
    assert [agent["sampling"]["temperature"] for agent in agents.values()] == [0.0, 0.0, 1.0] * 3


def test_a_training_without_checkpoints_names_its_command(tmp_path: Path) -> None:
    saved(tmp_path / "tiny-phone-sft", 50)
    with pytest.raises(SystemExit, match="--config tiny-phone-grpo"):
        trained(tmp_path)
