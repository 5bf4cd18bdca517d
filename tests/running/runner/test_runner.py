"""The runner: no barrier, bounded concurrency, failures kept apart, and resuming without loss."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Press
from guieval.errors import EngineError, UsageError
from guieval.journal import METRICS, RunFolder
from guieval.models import Request
from guieval.scoring.score import evaluate_run, store_summary
from tests.running.records import final
from tests.running.scripted_runs import failing
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, past_of, reply_with, run_scripted

EPISODES = [make_episode(str(number), ACTIONS[: 1 + number % 4]) for number in range(12)]
STEPS = sum(map(len, EPISODES))


def answer(request: Request) -> str:
    """Right but for every fifth step."""
    wrong = (int(request.task.episode_id) + request.task.step_index) % 5 == 0
    return reply_with(Press(button="HOME") if wrong else request.task.action, f"thought {request.task.key}")


def flaky(error: Exception, *steps: tuple[str, int]) -> ScriptedEngine:
    return ScriptedEngine(failing(error, lambda request: request.task.key[2:] in steps, answer))


def test_a_slow_step_holds_up_nothing_but_its_own_episode(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer, lambda request: 3000 if request.task.key[2:] == ("3", 0) else 1)
    run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval", concurrency=4)
    order = [record.task.key[2:] for record in RunFolder(tmp_path / "run").records]
    assert order[-4:] == [("3", 0), ("3", 1), ("3", 2), ("3", 3)]


def test_no_more_requests_in_flight_than_asked_for(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer, lambda request: 20)
    run_scripted(tmp_path / "run", EPISODES, engine, concurrency=5)
    assert engine.most_in_flight == 5


def test_two_runs_send_the_same_prompts(tmp_path: Path) -> None:
    prompts = []
    for name in ("one", "two"):
        engine = ScriptedEngine(answer)
        run_scripted(tmp_path / name, EPISODES, engine, mode="soeval")
        prompts.append({str(request.task.key): request.input for request in engine.requests})
    assert prompts[0] == prompts[1]
    assert final(tmp_path / "one") == final(tmp_path / "two")


def test_a_failed_request_stays_in_every_denominator_and_suspends_its_episode(tmp_path: Path) -> None:
    engine = flaky(EngineError("no answer after 5 tries", attempts=5), ("3", 1), ("7", 3))
    outcome = run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval")
    summary = outcome.summary()
    assert summary.exact_match.n == STEPS and not summary.complete
    assert (summary.verdicts.infrastructure_failure, summary.verdicts.not_run) == (2, 2)
    failed = [record for record in RunFolder(tmp_path / "run").records if not record.finished]
    assert {record.task.key[2:] for record in failed} == {("3", 1), ("7", 3)}
    assert failed[0].sample.error is not None and failed[0].sample.error.stage == "generate"


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_resuming_after_failures_ends_like_a_clean_run(tmp_path: Path, mode: str) -> None:
    run_scripted(tmp_path / "clean", EPISODES, ScriptedEngine(answer), mode=mode)
    run_scripted(tmp_path / "run", EPISODES, flaky(EngineError("down"), ("3", 1), ("7", 3), ("5", 0)), mode=mode)
    engine = ScriptedEngine(answer)
    outcome = run_scripted(tmp_path / "run", EPISODES, engine, mode=mode, resume=True)
    assert final(tmp_path / "run") == final(tmp_path / "clean")
    assert outcome.summary().complete
    asked_again = Counter(str(request.task.key) for request in engine.requests)
    assert set(asked_again.values()) == {1} and len(asked_again) < STEPS
    assert evaluate_run(tmp_path / "run").summary.exact_match == evaluate_run(tmp_path / "clean").summary.exact_match


def test_memory_is_freed_and_histories_of_like_named_episodes_do_not_mix(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer)
    run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval", concurrency=64)
    for request in engine.requests:
        thoughts = [entry["thought"] for entry in past_of(request) if entry["origin"] == "model"]
        assert all(f"/{request.task.episode_id}#" in str(thought) for thought in thoughts)


def test_rescoring_equals_the_run_and_follows_the_protocol(tmp_path: Path) -> None:
    outcome = run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(answer))
    stored = outcome.summary(intervals=True)
    store_summary(tmp_path / "run", stored)
    assert evaluate_run(tmp_path / "run").summary == stored
    assert json.loads((tmp_path / "run" / METRICS).read_text())["summary"]["metrics"]["exact match"]["n"] == STEPS
    assert evaluate_run(tmp_path / "run", "ui-s1-sop").protocol == "ui-s1-sop"
    with pytest.raises(UsageError, match="did you mean 'guievalkit'"):
        evaluate_run(tmp_path / "run", "guieval-kit")
