"""Steps weighted and filtered by what samples of the policy show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.errors import UsageError
from guieval.steps import StepKey
from guieval.training.building import Parts
from guieval.training.config import Curriculum, parse_config
from guieval.training.data.curriculum import Measured, factors, read_measured
from tests.scripted import ScriptedEngine, make_episode, reply_with, run_scripted

KEYS = [StepKey("demo", "", "a", index) for index in range(5)]
RATES = dict(zip(KEYS[:4], (0.0, 0.5, 0.75, 1.0), strict=True))
MEASURED = {key: Measured(rate, 0.2 + rate) for key, rate in RATES.items()}


def weights(**given: Any) -> list[float]:
    return factors([[key] for key in KEYS], Curriculum(runs=("r",), **given), MEASURED)


def test_weights_are_those_of_the_pass_rates_with_a_mean_of_one() -> None:
    """Pass rates 0, 0.5, 0.75 and 1, the fifth step not measured."""
    assert weights() == [1, 1, 1, 1, 0]
    # 4 p (1 - p): 0, 1, 0.75, 0, so a mean of 0.875 over the two that are left
    assert weights(weight="learnable") == pytest.approx([0, 1 / 0.875, 0.75 / 0.875, 0, 0])
    # 1 - p: 1, 0.5, 0.25, 0, a mean of 7/12
    assert weights(weight="hard") == pytest.approx([12 / 7, 6 / 7, 3 / 7, 0, 0])
    assert weights(pass_rate=(0.5, 0.75)) == [0, 1, 1, 0, 0]
    assert weights(pass_rate=(0.5, 1.0), unmeasured="keep") == [0, 1, 1, 1, 1]
    assert weights(diversity=(0.0, 0.8)) == [1, 1, 0, 0, 0]  # diversities 0.2, 0.7, 0.95 and 1.2


def test_an_episode_has_the_mean_weight_of_its_steps() -> None:
    settings = Curriculum(runs=("r",), weight="learnable")
    # episodes of (0, 1) and of (0.75, 0): means 0.5 and 0.375, of which the mean is 0.4375
    assert factors([KEYS[:2], KEYS[2:4]], settings, MEASURED) == pytest.approx([0.5 / 0.4375, 0.375 / 0.4375])


def test_figures_are_read_from_a_run_of_several_samples(tmp_path: Path) -> None:
    """At the first step two of four samples tap the target, at the second none."""
    right, wrong = Click(point=Point(x=100, y=100)), Click(point=Point(x=900, y=900))
    hits = iter([True, True, False, False])

    def policy(request: Any) -> str:
        return reply_with(right if request.task.step_index == 0 and next(hits) else wrong)

    run_scripted(tmp_path / "run", [make_episode("a", [right, right])], ScriptedEngine(policy), samples=4)
    found = read_measured([str(tmp_path / "run")])
    assert {key.step_index: measured.pass_rate for key, measured in found.items()} == {0: 0.5, 1: 0.0}


def test_a_curriculum_that_leaves_nothing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"leaves none of 5 tasks: none has a measured pass rate from 0.1 to 0.2"):
        weights(pass_rate=(0.1, 0.2))
    with pytest.raises(UsageError, match=r"none of the steps to train on was measured in 'r', e.g. not 'demo/a#0'"):
        factors([[KEYS[0]]], Curriculum(runs=("r",)), {KEYS[1]: Measured(0.5, 0.0)})
    given = {"kind": "grpo", "model": "tiny-policy", "bench": "demo", "curriculum": {"runs": str(tmp_path)}}
    parts = Parts(parse_config(given))
    with pytest.raises(UsageError, match=str(tmp_path)):
        parts.examples()
