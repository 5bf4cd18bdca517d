"""Reward and evaluation are one judgement: on every recorded and written reply their verdicts and matches are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from guieval.evaluation import ActionEvaluator
from guieval.rewards import REWARDS, ResponseScorer, get_reward
from guieval.scoring.recorded_run import read_again
from guieval.scoring.score import evaluate_run
from guieval.steps import Sample
from tests.rows import every_row

from .pairs import UNJUDGED, Answered, kairos, os_atlas, recorded, run_of, written

UI_S1 = ("ui-s1", "ui-s1-lenient", "ui-s1-released")
EXACT_PART = {"ui-r1": "coordinate", "hypertrack": "params", **dict.fromkeys(UI_S1, "exact")}
"""The part that is the exact match itself; the others grade it."""


def both_paths_agree(answered: Answered, name: str, protocol: str, directory: Path) -> int:
    """Compare every pair, and then the totals of a whole run that is read and judged again; how many pairs there were."""
    scorer = ResponseScorer(answered.model, get_reward(name, protocol=protocol))
    evaluator = ActionEvaluator(protocol)
    types = exacts = 0
    for pair in answered.pairs:
        scored = scorer.score(pair.task, pair.text)
        judged = read_again(evaluator, answered.model, pair.task, Sample(raw_response=pair.text, outcome=UNJUDGED))
        assert scored.sample == judged
        assert scored.reward.outcome == judged.outcome
        parts = scored.reward.parts
        assert parts["type"] == judged.outcome.type_match
        if name in EXACT_PART:
            assert parts[EXACT_PART[name]] == judged.outcome.exact_match
        assert all(0.0 <= part <= 1.0 for part in parts.values())
        if judged.outcome.verdict in ("unparseable", "unsupported"):
            assert not any(part for part_name, part in parts.items() if part_name != "format")
        types += int(parts["type"])
        exacts += judged.outcome.exact_match
    summary = evaluate_run(run_of(directory, answered), protocol, reparse=True).summary
    assert summary.verdicts.measured == len(answered.pairs)
    assert (summary.type_match.count, summary.exact_match.count) == (types, exacts)
    return len(answered.pairs)


def over(all_answered: Iterator[Answered], directory: Path) -> int:
    """In turn: every reward under its own protocol, and one under GUIEvalKit's; how many pairs there were."""
    turns = [turn for name, kind in REWARDS.items() for turn in ((name, kind.protocol), ("ui-s1", "guievalkit"))]
    return sum(
        both_paths_agree(answered, *turns[number % len(turns)], directory / str(number))
        for number, answered in enumerate(all_answered)
    )


def test_every_recorded_reply_is_rewarded_as_it_is_evaluated(shared_data: Path, tmp_path: Path) -> None:
    assert over(recorded(shared_data), tmp_path) > 3000


def test_os_kairos_and_os_atlas_are_rewarded_as_they_are_evaluated(shared_data: Path, tmp_path: Path) -> None:
    assert over(iter([kairos(shared_data), os_atlas(shared_data)]), tmp_path) > 600


def test_every_family_is_rewarded_as_it_is_evaluated(tmp_path: Path) -> None:
    assert over(written(episodes=2), tmp_path) > 1000


@every_row("name", list(REWARDS))
def test_every_reward_follows_the_protocol_it_is_given(name: str, tmp_path: Path) -> None:
    answered = next(written(episodes=1))
    for protocol in ("guievalkit", "ui-s1-sop", "coat-intended", "gui-r1", "agentnetbench"):
        both_paths_agree(answered, name, protocol, tmp_path / protocol)
