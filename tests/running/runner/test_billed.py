"""Every response that is received is in the record of its step and in the sums, whatever became of the step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Press, Stop
from guieval.errors import EngineError, FatalEngineError
from guieval.journal import RunFolder
from guieval.models import ModelConfig, Request, Response
from guieval.models.patch_thoughts import HINT
from guieval.models.scaffold import Retries, Scaffold
from guieval.running.costs import Tokens
from guieval.steps import Usage
from tests.running.scripted_runs import scripted_runner
from tests.scripted import Policy, ScriptedEngine, ScriptedModel, make_episode, reply_with

USAGE = Usage(prompt_tokens=100, completion_tokens=10)
EPISODES = [make_episode(name, [Stop()]) for name in "abc"]


class Wasteful(ScriptedEngine):
    """Receives two responses that it cannot use before each answer; ``fails`` says how the request to an episode fails."""

    def __init__(self, policy: Policy = lambda request: reply_with(request.task.action), **fails: EngineError) -> None:
        super().__init__(policy, usage=lambda request: USAGE)
        self.fails = fails

    async def generate(self, request: Request) -> Response:
        for _ in range(2):
            request.bill.add(USAGE)
        if (error := self.fails.get(request.task.episode_id)) is not None:
            raise error
        return await super().generate(request)


def test_responses_that_could_not_be_used_are_billed_and_kept(tmp_path: Path) -> None:
    outcome = scripted_runner(tmp_path, EPISODES, Wasteful(b=EngineError("no usable answer"))).execute(resume=False)
    samples = {record.task.episode_id: record.sample for record in RunFolder(tmp_path).records}
    assert [samples[name].usage for name in "abc"] == [USAGE, None, USAGE]
    assert all(samples[name].other_usage == (USAGE, USAGE) for name in "abc"), "also of the step that failed"
    assert samples["a"].paid == Usage(prompt_tokens=300, completion_tokens=30)
    assert outcome.progress.tokens == Tokens(answers=8, reported=8, prompt=800, completion=80, others=6)
    resumed = scripted_runner(tmp_path, EPISODES, Wasteful()).execute(resume=True)
    whole = Tokens(answers=11, reported=11, prompt=1100, completion=110, others=8)
    assert resumed.progress.tokens == whole, "the journal's, and b's again"


def test_a_scaffolds_further_requests_for_an_action_are_billed(tmp_path: Path) -> None:
    """``a`` has its action at the third response, ``b`` at none."""
    asked: Counter[str] = Counter()

    def policy(request: Request) -> str:
        asked[name := request.task.episode_id] += 1
        return "no action" if name == "b" or (name == "a" and asked[name] < 3) else reply_with(request.task.action)

    engine = ScriptedEngine(policy, usage=lambda request: USAGE)
    scaffold = Scaffold(name="own", retries=Retries(parse=2))
    model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted", scaffold=scaffold))
    tokens = scripted_runner(tmp_path, EPISODES, engine, model=model).execute(resume=False).progress.tokens
    samples = {record.task.episode_id: record.sample for record in RunFolder(tmp_path).records}
    found = {name: (sample.outcome.verdict, len(sample.other_usage)) for name, sample in samples.items()}
    assert found == {"a": ("right", 2), "b": ("unparseable", 2), "c": ("right", 0)} and asked == {"a": 3, "b": 3, "c": 1}
    assert (tokens.answers, tokens.others) == (7, 4)


def test_a_fatal_error_leaves_what_was_paid_on_record(tmp_path: Path) -> None:
    runner = scripted_runner(tmp_path, EPISODES, Wasteful(a=FatalEngineError("no credit")), concurrency=1)
    with pytest.raises(FatalEngineError, match="no credit"):
        runner.execute(resume=False)
    (record,) = RunFolder(tmp_path).records
    assert not record.finished and record.sample.other_usage == (USAGE, USAGE)
    assert runner.broken_off is not None and runner.broken_off.progress.tokens.others == 2
    assert scripted_runner(tmp_path, EPISODES, Wasteful()).execute(resume=True).summary().complete


def test_a_budget_that_is_used_up_ends_the_step_that_was_paid_for(tmp_path: Path) -> None:
    class Careful(Wasteful):
        async def generate(self, request: Request) -> Response:
            request.bill.add(USAGE)
            request.bill.check()
            return await super().generate(request)

    engine = Careful()
    used_up = "the budget is used up"
    runner = scripted_runner(tmp_path, EPISODES, engine, halt=lambda progress: used_up if progress.tokens.answers else None)
    assert runner.execute(resume=False).progress.halted == used_up
    records = list(RunFolder(tmp_path).records)
    assert records and all("the budget is used up" in record.sample.outcome.reason for record in records)
    assert not engine.requests


@pytest.mark.parametrize("method", ["on-policy", "off-policy"])
@pytest.mark.parametrize("fails", [False, True])
def test_what_the_thought_of_a_patch_cost_is_on_record(tmp_path: Path, method: str, fails: bool) -> None:
    """A resume counts from the journal what was counted when it came; an auxiliary model's tokens have another price."""

    class Thoughts(Wasteful):
        async def generate(self, request: Request) -> Response:
            if fails and HINT.partition("{")[0].strip() in request.input.text:
                request.bill.add(USAGE)
                raise EngineError("no usable thought")
            return await super().generate(request)

    engine = Thoughts(policy=lambda request: reply_with(Press(button="HOME")))
    settings: dict[str, Any] = {"mode": "sop", "patch": method, "patch_budget": "unlimited"}
    if method == "off-policy":
        settings |= {"patch_model": "other", "patch_base_urls": "http://127.0.0.1:9/v1"}
    episodes = [make_episode("a", [Stop(), Stop()])]
    outcome = scripted_runner(tmp_path, episodes, engine, settings=settings, thoughts=engine).execute(resume=False)
    records, counted = list(RunFolder(tmp_path).records), Tokens()
    for record in records:
        counted.add(record)
    thoughts = (1 if fails else 3) * (method == "on-policy")
    assert counted == outcome.progress.tokens and counted.answers == 3 * len(records) + thoughts
    assert sum(len(sample.responses) for record in records for sample in record.billed) == counted.answers
    assert records[0].finished is not fails
