"""Every response that is received is in the record of its step and in the sums, whatever became of the step."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.actions import Stop
from guieval.errors import EngineError, FatalEngineError
from guieval.journal import RunFolder
from guieval.models import Request, Response
from guieval.steps import Usage
from guieval.telemetry.costs import Tokens
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ScriptedEngine, make_episode, reply_with

USAGE = Usage(prompt_tokens=100, completion_tokens=10)
EPISODES = [make_episode(name, [Stop()]) for name in "abc"]


class Wasteful(ScriptedEngine):
    """Receives two responses that it cannot use before each answer; ``fails`` says how the request to an episode fails."""

    def __init__(self, **fails: EngineError) -> None:
        super().__init__(lambda request: reply_with(request.task.action), usage=lambda request: USAGE)
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
    assert outcome.tokens == Tokens(answers=8, reported=8, prompt=800, completion=80, others=6)
    resumed = scripted_runner(tmp_path, EPISODES, Wasteful()).execute(resume=True)
    assert resumed.tokens == Tokens(answers=11, reported=11, prompt=1100, completion=110, others=8), (
        "the journal's, and b's again"
    )


def test_a_fatal_error_leaves_what_was_paid_on_record(tmp_path: Path) -> None:
    runner = scripted_runner(tmp_path, EPISODES, Wasteful(a=FatalEngineError("no credit")), concurrency=1)
    with pytest.raises(FatalEngineError, match="no credit"):
        runner.execute(resume=False)
    (record,) = RunFolder(tmp_path).records
    assert not record.finished and record.sample.other_usage == (USAGE, USAGE)
    assert runner.broken_off is not None and runner.broken_off.tokens.others == 2
    assert scripted_runner(tmp_path, EPISODES, Wasteful()).execute(resume=True).summary().complete


def test_a_budget_that_is_used_up_ends_the_step_that_was_paid_for(tmp_path: Path) -> None:
    class Careful(Wasteful):
        async def generate(self, request: Request) -> Response:
            request.bill.add(USAGE)
            request.bill.check()
            return await super().generate(request)

    engine = Careful()
    runner = scripted_runner(
        tmp_path, EPISODES, engine, halt=lambda progress: "the budget is used up" if progress.tokens.answers else None
    )
    assert runner.execute(resume=False).halted == "the budget is used up"
    records = list(RunFolder(tmp_path).records)
    assert records and all("the budget is used up" in record.sample.outcome.reason for record in records)
    assert not engine.requests
