"""A training tried in small by its own command: what is measured next to what is planned, and nothing is left."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.training.building import TrainerParts
from guieval.training.commands.plan_tables import show_measured, show_plan
from guieval.training.preflight import preflight

from .conftest import Configured


def test_a_training_is_tried_and_its_plan_shown_with_what_was_measured(
    configured: Configured, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = {"every": 20, "bench_options": {"split": "test"}, "limit": 2}
    trainer = {
        "max_steps": 40,
        "num_generations": 2,
        "per_device_train_batch_size": 4,
        "save_steps": 15,
        "use_cpu": True,
        "bf16": False,
    }
    config = configured("semi-online", evaluation=evaluation, trainer=trainer, limit=6)
    found = preflight(config)
    assert found is not None
    plan, measured = found
    phases = {"generation", "training", "evaluation", "checkpoint"}
    assert {name for name, seconds in measured.seconds.items() if seconds > 0 and measured.bytes[name] > 0} >= phases
    # weights and two states in float32; the rest of a checkpoint is the tokenizer and some settings
    assert plan.disk.checkpoint < measured.checkpoint < 1.1 * plan.disk.checkpoint + 2e6
    assert measured.times(plan) == (3, 3)
    whole = 40 * measured.step(plan) * measured.share(plan) + 3 * (
        measured.seconds["evaluation"] + measured.seconds["checkpoint"]
    )
    assert measured.hours(plan) == pytest.approx(whole / 3600)
    assert measured.prompt is not None and plan.prompt is not None and measured.prompt >= plan.prompt
    assert not list(Path(config.out).parent.glob("out*"))
    show_plan(plan)
    show_measured(plan, measured)
    shown = capsys.readouterr().out
    assert re.search(r"an evaluation +", shown) and "40 optimiser steps of" in shown and "3 evaluations, 3 checkpoints" in shown


def test_the_longest_prompts_are_tried(configured: Configured) -> None:
    """By an independent count of their characters, since all have one picture."""

    def lengths(parts: TrainerParts, chosen: list[Any]) -> list[int]:
        asked = [parts.model.prepare_input(*parts.data.example(place)[:2]) for place in chosen]
        return sorted(sum(len(part) for each in one.messages for part in each.parts if isinstance(part, str)) for one in asked)

    parts = TrainerParts(configured("grpo", dynamic_sampling=None, limit=6), longest=2)
    places = list(parts.data.steps)
    assert lengths(parts, parts.pick(places, lambda place: [parts.data.example(place)]))[0] >= lengths(parts, places)[-3]


def test_a_preflight_that_fails_says_so_in_a_sentence(configured: Configured, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the preflight failed, first part: .*did you mean 'ui-s1'"):
        preflight(configured("grpo", reward={"name": "ui-s2"}, limit=6))
    assert not (tmp_path / "out.preflight").exists()
    (tmp_path / "out.preflight").mkdir()
    (tmp_path / "out.preflight" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="has other files: move it"):
        preflight(configured("sft", limit=6))
    assert (tmp_path / "out.preflight" / "notes").exists()
