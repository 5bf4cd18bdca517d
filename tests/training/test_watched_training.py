"""The watch over a reward, and the punishment of long replies, in real trainings of the tiny policy."""

from __future__ import annotations

import pytest

pytest.importorskip("trl")

from trl.rewards import get_soft_overlong_punishment

from guieval.rewards import Overlong
from guieval.training.session import train
from tests.training.conftest import Configured, log


def test_the_punishment_is_trls() -> None:
    theirs, ours = get_soft_overlong_punishment(max_completion_len=20, soft_punish_cache=7), Overlong(20, 7)
    lengths = range(25)
    assert [ours.of(length) for length in lengths] == pytest.approx(theirs(completion_ids=[[0] * length for length in lengths]))


@pytest.mark.parametrize("kind", ["grpo", "semi-online"])
def test_the_log_has_reward_beside_exact_match_and_warns(kind: str, configured: Configured) -> None:
    """The reward's only part is the format, which the tiny policy masters: an exact match earns nothing more."""
    settings = {"name": "ui-s1-lenient", "weights": {"format_weight": 1.0, "type_weight": 0.0, "exact_weight": 0.0}}
    overlong = {"cache": 32, "penalty": 0.5}  # every reply is within 32 tokens of the longest
    config = configured(
        kind, reward={**settings, "overlong": overlong}, reward_watch={"every": 1, "window": 1}, dynamic_sampling=None
    )
    train(config)
    lines = log(config)
    steps = [line for line in lines if "watch/reward" in line]
    assert [line["step"] for line in steps] == [1, 2] and all("loss" in line for line in steps)
    for line in steps:
        punished = 0.5 * line["completions/mean_length"] / 32
        assert line["watch/reward"] == pytest.approx(1.0 - line["watch/malformed"] - punished, abs=1e-3)
        assert line["watch/reward"] == pytest.approx(line["reward"], abs=0.01)  # that is a mean of batches' means
        assert 0.0 < line["watch/exact_match"] < 1.0 and line["watch/words"] > 1
    warnings = [line["warning"] for line in lines if "warning" in line]
    assert sum("which ignores the screen" in each for each in warnings) == 1  # it holds at both checks
