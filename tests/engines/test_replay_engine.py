"""The replay engine gives back what a journal holds, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.engines.replay import ReplayEngine
from guieval.errors import DataError, EngineError
from guieval.journal import Records
from guieval.models import Response
from guieval.steps import Sample, StepError, StepOutcome, StepRecord, Usage
from tests.engines.asking import ask_all, make_request, make_task


def answered(text: str) -> Sample:
    return Sample(
        raw_response=text,
        reasoning=f"why {text}",
        usage=Usage(prompt_tokens=7, completion_tokens=2),
        finish_reason="stop",
        attempts=3,
        outcome=StepOutcome(verdict="wrong"),
    )


LOST = Sample(error=StepError(stage="generate", message="no server"), outcome=StepOutcome(verdict="infrastructure_failure"))


def journal(path: Path, *records: StepRecord) -> Records[StepRecord]:
    (path / "steps.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records), encoding="utf-8")
    return Records(path)


def test_every_field_comes_back_and_samples_are_distinguished(tmp_path: Path) -> None:
    first, second = make_task("ep|1", 0), make_task("ep|1", 1)
    records = journal(
        tmp_path,
        StepRecord(task=second, samples=(answered("zwei ✓"),)),
        StepRecord(task=first, samples=(answered("eins"), answered("another"))),
    )
    engine = ReplayEngine(records)
    assert engine.images == "none"
    replies = ask_all(engine, make_request(task=first), make_request(task=second), make_request(task=first, sample=1))
    assert [reply.text for reply in replies] == ["eins", "zwei ✓", "another"]
    assert replies[0] == Response("eins", "why eins", Usage(prompt_tokens=7, completion_tokens=2), "stop", 3)


def test_the_last_finished_line_of_a_step_counts(tmp_path: Path) -> None:
    task = make_task()
    lines = [StepRecord(task=task, samples=samples) for samples in ((answered("old"),), (answered("new"),), (LOST,))]
    assert ask_all(ReplayEngine(journal(tmp_path, *lines)), make_request(task=task))[0].text == "new"


def test_a_reply_that_crashed_a_parser_can_be_read_again(tmp_path: Path) -> None:
    task, other = make_task("crashed"), make_task("asked again")
    outcome = StepOutcome(verdict="infrastructure_failure")
    crashed = Sample(raw_response="odd", error=StepError(stage="parse", message="KeyError: 'x'"), outcome=outcome)
    lines = [
        StepRecord(task=task, samples=(crashed,)),
        StepRecord(task=other, samples=(answered("good"),)),
        StepRecord(task=other, samples=(crashed,)),
    ]
    replies = ask_all(ReplayEngine(journal(tmp_path, *lines)), make_request(task=task), make_request(task=other))
    assert [reply.text for reply in replies] == ["odd", "good"]


def test_what_the_journal_does_not_hold_is_named(tmp_path: Path) -> None:
    lost = make_task("lost", 2)
    records = journal(tmp_path, StepRecord(task=lost, samples=(LOST,)), StepRecord(task=make_task(), samples=(answered("a"),)))
    for request, message in (
        (make_request(task=lost), r"bench/sub/lost#2 was never answered"),
        (make_request(task=make_task("other")), r"bench/sub/other#0 is not in"),
        (make_request(sample=1), "has 1 samples in the journal, so sample 1 is not in it"),
        (make_request(task=make_task(setting="low")), "recorded in the setting 'high', but 'low'"),
    ):
        with pytest.raises(EngineError, match=message):
            ask_all(ReplayEngine(records), request)


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    record = StepRecord(task=make_task(), samples=(answered("a"),)).model_dump_json()
    (tmp_path / "steps.jsonl").write_text(f'{record}\n{{"task": 3}}\n{record}\n')
    with pytest.raises(DataError, match=r"steps\.jsonl, line 2: is damaged"):
        ReplayEngine(Records(tmp_path))
