"""The watch over a reward: figures by hand, and when it warns."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from guieval.actions import Boxes, Click, Point, Type
from guieval.errors import UsageError
from guieval.rewards import open_scorer
from guieval.training.reward_watch import RewardWatch, Sum, WatchedScorer
from guieval.training.settings import RewardWatchSettings
from tests.model_adapters.steps import step

CLICK = step(Click(point=Point(100, 100)), targets=Boxes([[50.0, 50.0, 150.0, 150.0]]))
TYPED = step(Type(text="milk"), step_index=1, episode_length=2)
SETTINGS = RewardWatchSettings(every=5, window=2, apart=0.2)


def watch(settings: RewardWatchSettings = SETTINGS, reward: str = "ui-s1-lenient") -> tuple[RewardWatch, WatchedScorer]:
    """A watch whose exact match is stricter with texts than the reward, which takes a contained one."""
    scorer = open_scorer("ui-s1-7b", reward)
    made = RewardWatch(settings, scorer, {CLICK.benchmark: "ui-s1-reward"})
    return made, WatchedScorer(scorer, made)


def reply(scorer: WatchedScorer, action: Click | Type) -> str:
    return scorer.model.render(CLICK, action, "I act.", None)


def figures(reward: float, exact: float, **others: float) -> dict[str, Sum]:
    named = {"watch/reward": reward, "watch/exact_match": exact, **{f"watch/{name}": value for name, value in others.items()}}
    return {name: Sum(10 * value, 10) for name, value in named.items()}


def test_reward_stands_beside_the_evaluations_exact_match() -> None:
    made, scorer = watch()
    scorer.score(CLICK, reply(scorer, Click(point=Point(100, 100))))
    scorer.score(TYPED, reply(scorer, Type(text="")))
    found, warned = made.check(5, [made.sums()])
    assert found["watch/reward"] == pytest.approx(1.0)  # an empty text is contained in any
    assert found["watch/exact_match"] == 0.5
    assert (found["watch/empty-text"], found["watch/malformed"], found["watch/several-answers"]) == (0.5, 0.0, 0.0)
    # typing nothing: right on the text, 0.1 for its form on the click
    assert found["watch/blind_policy"] == pytest.approx(0.55)
    assert not warned
    assert made.sums()["watch/reward"] == Sum(0, 0)  # each reply is counted once
    # processes are weighed by their replies
    made, _ = watch()
    found, _ = made.check(5, [{"watch/reward": Sum(1.0, 1)}, {"watch/reward": Sum(0.0, 3)}, {"watch/reward": Sum(0, 0)}])
    assert found == {"watch/reward": 0.25}
    assert made.check(10, [{"watch/reward": Sum(0, 0)}]) == ({}, [])


def test_it_warns_when_reward_and_exact_match_diverge_or_a_sign_spreads() -> None:
    made, _ = watch()
    for number, reward in enumerate((0.4, 0.4, 0.5, 0.7)):
        _, warned = made.check(5 * number, [figures(reward, 0.4)])
        assert not warned  # 0.6 against 0.4 is not above 0.2
    _, (warning,) = made.check(20, [figures(0.7, 0.4)])
    assert "the reward went from 0.40 to 0.70" in warning and "exact match under ui-s1-reward from 0.40 to 0.40" in warning
    made, _ = watch()
    for number, share in enumerate((0.4, 0.4, 0.9, 0.9)):
        assert not made.check(number, [figures(share, share)])[1]  # they rise together
    made, _ = watch()
    for number, share in enumerate((0.0, 0.0, 0.5)):
        assert not made.check(number, [figures(0.5, 0.5, **{"several-answers": share})])[1]
    _, (warning,) = made.check(3, [figures(0.5, 0.5, **{"several-answers": 0.5})])
    assert warning == "a response with several answers: from 0 % to 50 % of the responses"
    blind = {"several-answers": 0.5, "blind_policy/always-wait": 0.6}
    _, (warning,) = made.check(4, [figures(0.5, 0.5, **blind)])
    assert "'always-wait'" in warning
    assert not made.check(5, [figures(0.5, 0.5, **blind)])[1]  # nothing is new


def test_a_resumed_training_knows_the_earlier_checks(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [{"step": number, "watch/reward": 0.1 * number, "watch/exact_match": 0.1} for number in (1, 2, 3)]
    log.write_text("".join(json.dumps(row) + "\n" for row in [{"step": 1, "loss": 0.0}, *rows]), encoding="utf-8")
    made, _ = watch()
    made.remember(log, 2)
    made.check(3, [figures(0.5, 0.1)])
    _, warned = made.check(4, [figures(0.5, 0.1)])
    assert any("went from 0.15 to 0.50" in each for each in warned)
    made.remember(tmp_path / "none.jsonl", 4)


def test_what_a_checkpoint_keeps_comes_back_equal_and_runs_no_code(tmp_path: Path) -> None:
    made, scorer = watch()
    scorer.score(CLICK, reply(scorer, Click(point=Point(100, 100))))
    scorer.score(TYPED, "not an action")
    made.save(tmp_path / "watch.json")
    other, _ = watch()
    other.restore(tmp_path / "watch.json")
    assert other.sums() == made.sums() and other.sums() != {}
    ran = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return ran.touch, ()

    (tmp_path / "watch.json").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(UsageError, match="cannot be read; delete it"):
        other.restore(tmp_path / "watch.json")
    assert not ran.exists()
