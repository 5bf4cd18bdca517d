"""Modes, by hand-made scripted models: what the history holds, when an episode stops, and closed forms on real lengths."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from guieval.actions import Action, Press, Wait
from guieval.history import describe
from guieval.history.modes import get_mode
from guieval.journal import RunFolder
from guieval.models import Request
from guieval.registry import load_benchmark
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, past_of, reply_with, run_scripted

WRONG = Press(button="HOME")


def right_except(*wrong: tuple[str, int]) -> ScriptedEngine:
    """Answers the reference with a thought of its own, but HOME at the given steps."""

    def policy(request: Request) -> str:
        task = request.task
        missed = (task.episode_id, task.step_index) in wrong
        return reply_with(WRONG if missed else task.action, f"my thought {task.step_index}")

    return ScriptedEngine(policy)


def by_step(engine: ScriptedEngine) -> dict[tuple[str, int], Request]:
    return {(request.task.episode_id, request.task.step_index): request for request in engine.requests}


def seen(action: Action, index: int, *, own: bool) -> dict[str, object]:
    """What a scripted prompt shows of one past step."""
    thought = f"my thought {index}" if own else None
    return {"origin": "model" if own else "reference", "thought": thought, "action": action.model_dump(mode="json")}


def test_offline_history_is_the_reference_at_every_step(tmp_path: Path) -> None:
    engine = right_except(("a", 1))
    outcome = run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="offline")
    for (_, index), request in by_step(engine).items():
        assert past_of(request) == [seen(ACTIONS[past], past, own=False) for past in range(index)]
    summary = outcome.summary()
    assert (summary.exact_match.count, summary.exact_match.n) == (3, 4)
    assert all(set(record.history) <= {"reference"} for record in RunFolder(tmp_path / "run").records)


def test_soeval_history_is_the_models_own_exactly_where_it_was_right(tmp_path: Path) -> None:
    """Eq. 4 and 5: own thought and action at matched steps, the reference (and no thought) at the missed one."""
    engine = right_except(("a", 1), ("b", 0), ("b", 2))
    episodes = [make_episode("a", ACTIONS), make_episode("b", ACTIONS)]
    run_scripted(tmp_path / "run", episodes, engine, mode="soeval")
    own = {"a": [True, False, True], "b": [False, True, False]}
    for (episode, index), request in by_step(engine).items():
        assert past_of(request) == [seen(ACTIONS[past], past, own=own[episode][past]) for past in range(index)]
    for record in RunFolder(tmp_path / "run").records:
        expected = ["model" if own[record.task.episode_id][past] else "reference" for past in range(record.task.step_index)]
        assert list(record.history) == expected


def test_soeval_shows_the_models_action_not_the_label_where_both_are_right(tmp_path: Path) -> None:
    """A click elsewhere in the target is right; the history must hold where the model really clicked."""
    own = CLICK.model_copy(update={"point": CLICK.point._replace(x=505.0)})
    engine = ScriptedEngine(lambda request: reply_with(own if request.task.step_index == 0 else request.task.action, "t"))
    run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="soeval")
    past = past_of(by_step(engine)["a", 1])
    assert past == [{"origin": "model", "thought": "t", "action": own.model_dump(mode="json")}]


def test_an_answer_without_action_leaves_the_reference(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda request: reply_with(request.task.action) if request.task.step_index else "no action")
    outcome = run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="soeval")
    assert past_of(by_step(engine)["a", 1]) == [seen(ACTIONS[0], 0, own=False)]
    assert outcome.summary().verdicts.unparseable == 1


def test_sop_stops_at_the_first_mismatch_and_counts_as_by_hand(tmp_path: Path) -> None:
    """Lengths 4, 4, 4, 2; prefixes 4, 1, 0, 2: PG = (1 + 1/4 + 0 + 1) / 4, TSR = 2/4, Score = their mean."""
    engine = right_except(("b", 1), ("c", 0))
    episodes = [make_episode(name, ACTIONS) for name in "abc"] + [make_episode("d", (CLICK, Wait()))]
    outcome = run_scripted(tmp_path / "run", episodes, engine, mode="sop")
    asked = sorted((request.task.episode_id, request.task.step_index) for request in engine.requests)
    assert asked == [*[("a", n) for n in range(4)], ("b", 0), ("b", 1), ("c", 0), ("d", 0), ("d", 1)]
    assert past_of(by_step(engine)["b", 1]) == [seen(ACTIONS[0], 0, own=True)]
    summary = outcome.summary()
    assert summary.metrics["PG"].value == pytest.approx((1 + 1 / 4 + 0 + 1) / 4)
    assert summary.metrics["TSR"].value == pytest.approx(2 / 4)
    assert summary.metrics["score"].value == pytest.approx(((1 + 1 / 4 + 0 + 1) / 4 + 2 / 4) / 2)
    assert summary.verdicts.not_reached == 2 + 3 and summary.complete


def chance(seed: int, request: Request) -> float:
    digest = hashlib.blake2b(f"{seed}|{request.task.key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@pytest.mark.parametrize("probability", [0.6, pytest.param(0.9, marks=pytest.mark.ci)])
def test_sop_of_a_random_policy_meets_its_closed_form(shared_data: Path, tmp_path: Path, probability: float) -> None:
    """E[PG] = mean over episodes of (1/t) sum_{k=1..t} p^k, E[TSR] = mean of p^t, over the 1,543 AndroidControl episodes."""
    benchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    episodes = list(benchmark)
    assert (len(episodes), sum(map(len, episodes))) == (1543, 8444)

    def policy(request: Request) -> str:
        right = chance(1, request) < probability
        wrong: Action = Wait() if request.task.action.type != "WAIT" else WRONG
        return reply_with(request.task.action if right else wrong)

    outcome = run_scripted(tmp_path / "run", episodes, ScriptedEngine(policy), mode="sop", concurrency=32)
    sop = outcome.summary().metrics
    pg, tsr = sop["PG"].value, sop["TSR"].value
    assert pg is not None and tsr is not None
    lengths = [len(episode) for episode in episodes]
    p = probability
    expected_pg = sum(sum(p**k for k in range(1, t + 1)) / t for t in lengths) / len(lengths)
    expected_tsr = sum(p**t for t in lengths) / len(lengths)
    # E[s^2] = sum_k (2k - 1) P(s >= k), so the variance of one episode's progress s / t is known exactly
    variances = [
        sum((2 * k - 1) * p**k for k in range(1, t + 1)) / t**2 - (sum(p**k for k in range(1, t + 1)) / t) ** 2 for t in lengths
    ]
    error_pg = sum(variances) ** 0.5 / len(lengths)
    error_tsr = sum(p**t * (1 - p**t) for t in lengths) ** 0.5 / len(lengths)
    assert abs(pg - expected_pg) < 4 * error_pg
    assert abs(tsr - expected_tsr) < 4 * error_tsr


def test_reference_text_of_a_step_is_its_instruction_or_a_plain_description(tmp_path: Path) -> None:
    assert get_mode("soeval").sequential and get_mode("sop").sequential and not get_mode("offline").sequential
    assert [describe(action) for action in ACTIONS] == ["Click at (500, 500).", "Type 'tea'.", "Swipe up.", "Finish the task."]
