"""Several samples of each step: what is asked, what the journal holds, what figures are of, and how a resume completes them."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from guieval.actions import Press
from guieval.engines import parse_request_id
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal import STEPS as STEPS_FILE
from guieval.journal import RunFolder
from guieval.metrics.kinds import of_steps
from guieval.metrics.sampling import sampled
from guieval.models import ModelConfig, Request, Scaffold
from guieval.running.resolve import sample_parameters
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import evaluate_run
from guieval.settings import RunConfig
from guieval.steps import StepRecord
from tests.rows import every_row
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, opened_run, past_of, reply_with, run_scripted

EPISODES = [make_episode(f"e{number}", ACTIONS) for number in range(3)]
STEPS = 3 * len(ACTIONS)
MODEL = "qwen3-vl-8b-instruct"
WARM: dict[str, Any] = {"samples": 3, "sampling": {"temperature": 0.7}}
COLD, HOT = {"temperature": 0, "top_p": 0.9}, {"temperature": 0.7, "top_p": 0.9}


def number_of(request: Request) -> int:
    return parse_request_id(request.request_id)[1]


def first_is_wrong(request: Request) -> str:
    """The first sample of every step is wrong, the others are right."""
    return reply_with(Press(button="BACK") if number_of(request) == 0 else request.task.action)


def first_is_right(request: Request) -> str:
    return reply_with(request.task.action if number_of(request) == 0 else Press(button="BACK"))


def records_of(directory: Path) -> list[StepRecord]:
    return list(RunFolder(directory).records)


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_every_step_has_its_samples_and_is_scored_by_the_first(tmp_path: Path, mode: str) -> None:
    outcome = run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(first_is_right), mode=mode, **WARM)
    records = records_of(tmp_path / "run")
    assert len(records) == STEPS and all(len(record.samples) == 3 and record.finished for record in records)
    for record in records:
        assert [sample.outcome.exact_match for sample in record.samples] == [True, False, False]
    summary = of_steps(outcome.summary())
    assert (summary.metrics["exact match"].value, summary.complete) == (1.0, True)
    rescored = evaluate_run(tmp_path / "run", "guievalkit").summary
    assert rescored.metrics["exact match"].value == 1.0


def test_the_episode_remembers_the_first_sample(tmp_path: Path) -> None:
    engine = ScriptedEngine(first_is_wrong)
    run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval", **WARM)
    # SOEval keeps the model's own action where it was right: the first sample never is
    assert {entry["origin"] for request in engine.requests for entry in past_of(request)} == {"reference"}
    sop = ScriptedEngine(first_is_wrong)
    run_scripted(tmp_path / "sop", EPISODES, sop, mode="sop", **WARM)
    assert Counter(request.task.step_index for request in sop.requests) == {0: 9}, "and stops where it is wrong"


def test_each_sample_is_a_request_of_its_own(tmp_path: Path) -> None:
    engine = ScriptedEngine(first_is_right, turns=lambda request: 20)
    run_scripted(tmp_path / "run", EPISODES, engine, concurrency=4, **WARM)
    assert len({request.request_id for request in engine.requests}) == len(engine.requests) == 3 * STEPS
    assert {(number_of(request), request.sampling["seed"]) for request in engine.requests} == {(0, 0), (1, 1), (2, 2)}
    assert engine.most_in_flight == 4, "samples count as requests"


@every_row(
    ("settings", "checkpoint", "asked"),
    [
        ({}, {"temperature": 0.0}, [{"temperature": 0.0}]),
        ({"sampling": {"temperature": 0.7}}, {}, [{"temperature": 0.7}]),
        ({"samples": 2, "seed": 5}, {"temperature": 1.0}, [{"temperature": 1.0, "seed": 5}, {"temperature": 1.0, "seed": 6}]),
        ({"samples": 2, "sampling": {"seed": 40}}, {}, [{"seed": 40}, {"seed": 41}]),
        ({"samples": 3, "resampling": {"temperature": 0.7}}, COLD, [COLD, {**HOT, "seed": 1}, {**HOT, "seed": 2}]),
        ({"samples": 2, "engine": "replay"}, {"temperature": 0}, [{"temperature": 0}, {"temperature": 0}]),
    ],
)
def test_what_each_sample_is_asked_with(settings: dict[str, Any], checkpoint: dict[str, Any], asked: list[Any]) -> None:
    config = RunConfig(model="m", bench="b", **settings)
    assert sample_parameters(config, ModelConfig(name="m", adapter="a", scaffold=Scaffold(sampling=checkpoint))) == asked


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"samples": 4, "sampling": {"temperature": 0}}, "4 samples of greedy decoding .* 4 times the same answer.*resampling"),
        ({"samples": 4, "sampling": {"temperature": 1, "top_k": 1}}, "greedy"),
        ({"resampling": {"temperature": 1}}, "add --samples N"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        sample_parameters(RunConfig(model="m", bench="b", **settings), ModelConfig(name="m", adapter="a"))


class Unreliable(ScriptedEngine):
    """Does not answer the second sample of the second steps, until it is mended."""

    broken = True

    def answer(self, request: Request) -> str:
        if self.broken and number_of(request) == 1 and request.task.step_index == 1:
            raise EngineError("no usable answer after 5 tries", attempts=5)
        return first_is_right(request)

    def __init__(self) -> None:
        super().__init__(self.answer)


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_of_a_step_with_a_missing_sample_that_one_is_asked(tmp_path: Path, mode: str) -> None:
    engine = Unreliable()
    outcome = run_scripted(tmp_path / "run", EPISODES, engine, mode=mode, **WARM)
    assert outcome.progress.by_stage["generate"].count == 3
    unfinished = [record for record in records_of(tmp_path / "run") if not record.finished]
    assert [record.task.step_index for record in unfinished] == [1, 1, 1]
    assert [sample.outcome.verdict for sample in unfinished[0].samples] == ["right", "infrastructure_failure", "wrong"]
    engine.broken = False
    engine.requests.clear()
    resumed = run_scripted(tmp_path / "run", EPISODES, engine, mode=mode, resume=True, **WARM)
    # in a sequential mode the steps after those had not been asked
    asked = {1: 3} if mode == "offline" else {1: 3, 2: 9, 3: 9}
    assert Counter(request.task.step_index for request in engine.requests) == asked
    assert {number_of(request) for request in engine.requests if request.task.step_index == 1} == {1}
    completed = [record for record in records_of(tmp_path / "run") if record.earlier]
    assert [record.earlier for record in completed] == [(0, 2)] * 3
    for before, after in zip(unfinished, sorted(completed, key=lambda each: each.task.episode_id), strict=True):
        assert (after.samples[0], after.samples[2]) == (before.samples[0], before.samples[2])
    assert resumed.progress.tokens.answers == STEPS * 3, "an answer that two records hold was paid once"
    assert not resumed.progress.by_stage and resumed.summary().complete
    assert run_scripted(tmp_path / "run", EPISODES, engine, mode=mode, resume=True, **WARM).progress.by_stage == {}
    assert len(engine.requests) == sum(asked.values()), "nothing is left to ask"


def test_samples_under_another_past_are_not_kept(tmp_path: Path) -> None:
    """The record of an earlier step is lost: it is requested again, and so is everything after it."""
    engine = Unreliable()
    run_scripted(tmp_path / "run", EPISODES[:1], engine, mode="soeval", **WARM)
    journal = tmp_path / "run" / STEPS_FILE
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[1:]))
    engine.broken = False
    engine.requests.clear()
    run_scripted(tmp_path / "run", EPISODES[:1], engine, mode="soeval", resume=True, **WARM)
    assert Counter(request.task.step_index for request in engine.requests) == dict.fromkeys(range(len(ACTIONS)), 3)


def test_a_fatal_error_of_one_sample_ends_the_run(tmp_path: Path) -> None:
    def policy(request: Request) -> str:
        if number_of(request) == 2:
            raise FatalEngineError("no such model")
        return first_is_right(request)

    with pytest.raises(FatalEngineError, match="no such model"):
        run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(policy, turns=lambda request: 20 * number_of(request)), **WARM)


def test_pass_at_n_is_of_all_samples(tmp_path: Path) -> None:
    """Step i of an episode of four is right in i of 3 samples (step 3 in all): mean 1/2, pass@3 3/4, pass^3 1/4."""

    def policy(request: Request) -> str:
        right = number_of(request) >= 3 - request.task.step_index
        return reply_with(request.task.action if right else Press(button="BACK"))

    run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(policy), **WARM)
    assert evaluate_run(tmp_path / "run", "guievalkit")["exact match"].value == 0.25
    columns = judge_run(tmp_path / "run", ["guievalkit"]).columns()
    assert sampled([columns], "guievalkit", "mean").measured.value == pytest.approx(0.5)
    assert sampled([columns], "guievalkit", "any").measured.value == pytest.approx(0.75)
    assert sampled([columns], "guievalkit", "all").measured.value == pytest.approx(0.25)
    assert sampled([columns], "guievalkit", "any", 1).measured.value == pytest.approx(0.5)


def test_as_many_are_in_flight_as_the_present_limit(tmp_path: Path) -> None:
    limit = AdaptiveConcurrency(start=3)
    seen: list[tuple[int, int]] = []
    episodes = [make_episode(f"e{number}", ACTIONS * 3) for number in range(20)]

    class Watching(ScriptedEngine):
        async def generate(self, request: Request) -> Any:
            number = len(self.requests)
            limit.value = 3 if number < 60 else 12 if number < 120 else 2
            reply = await super().generate(request)
            seen.append((number, self.in_flight + 1))
            return reply

    engine = Watching(lambda request: reply_with(request.task.action), turns=lambda request: 20)
    run = scripted_runner(tmp_path / "run", episodes, engine, concurrency=limit, settings={"mode": "soeval"})
    outcome = run.execute(resume=False)
    assert outcome.summary().complete and len(engine.requests) == 240
    most = [max(flying for number, flying in seen if low <= number < high) for low, high in ((5, 58), (80, 118), (140, 235))]
    assert most == [3, 12, 2]


def test_auto_is_for_servers(tmp_path: Path) -> None:
    options = {"model": MODEL, "bench": "demo", "data": str(tmp_path), "limit": 1, "concurrency": "auto"}
    run = opened_run(RunConfig.model_validate({**options, "base_urls": ("http://127.0.0.1:9/v1",)}), tmp_path / "run")
    assert isinstance(limit := run.run.answering.concurrency, AdaptiveConcurrency) and limit.value == 64
    ours = cast(VLLMServer, SimpleNamespace(settings=SimpleNamespace(media=tmp_path), pause=asyncio.sleep))
    for given, found in ((None, AdaptiveConcurrency), (32, int)):
        config = RunConfig.model_validate({**options, "engine": "vllm", "concurrency": given})
        assert isinstance(opened_run(config, tmp_path / "run", ours).run.answering.concurrency, found), "ours is kept full"
    elsewhere = RunConfig.model_validate({**options, "base_urls": ("http://127.0.0.1:9/v1",), "concurrency": None})
    assert opened_run(elsewhere, tmp_path / "run").run.answering.concurrency == 64
    with pytest.raises(UsageError, match="--concurrency auto is for servers; engine 'transformers' needs a number"):
        opened_run(RunConfig.model_validate({**options, "engine": "transformers"}), tmp_path / "run")
