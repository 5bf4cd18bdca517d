"""Replies that cannot be read: announced while the run can still be stopped, and an exit code where nothing could be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.actions import Stop
from guieval.journal import Journal
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_model
from guieval.running.runner.answer_watch import LOOKED_AT, AnswerWatch, ReplyWatch
from guieval.steps import Sample, StepError, StepOutcome, StepRecord
from tests.command_line import CommandLine, Done
from tests.json_values import read_json
from tests.made_runs import step

MODEL = "qwen3-vl-8b-instruct"
REPLY = "I'm sorry,\x1b[31m I cannot\u202e do that."


def run(guieval: CommandLine, tmp_path: Path, settings: MockSettings, episodes: int) -> Done:
    with MockServer(settings) as server:
        where: list[str | Path] = ["--data", tmp_path / "demo", "--base-url", server.base_url, "--out", tmp_path / "run"]
        few = ("--set", f"bench_options.episodes={episodes}", "--set", "bench_options.seed=4")
        return guieval("run", "--model", MODEL, "--bench", "demo", *where, *few, "--concurrency", "1")


@pytest.mark.parametrize("episodes", [2, 8])
def test_a_run_in_which_nothing_can_be_read(tmp_path: Path, guieval: CommandLine, episodes: int) -> None:
    done = run(guieval, tmp_path, MockSettings(model=MODEL, policy="fixed", reply=REPLY), episodes)
    assert done.code == 1
    (warning,) = [line for line in done.err.splitlines() if "could not be read" in line]
    steps = len((tmp_path / "run" / "steps.jsonl").read_text().splitlines())
    seen = LOOKED_AT // 2 + 1 if steps > LOOKED_AT // 2 else steps
    assert f"{seen} of the first {seen} responses could not be read as an action" in warning
    assert '"I\'m sorry, [31m I cannot do that." (' in warning and not {"\x1b", "\u202e"} & set(done.err + done.out)
    shown = " ".join(done.out.split())
    assert f"none of the {steps} responses could be read" in shown and " ".join(warning.split(": ", 2)[2].split()) in shown
    again = guieval("run", "--resume", tmp_path / "run")
    assert again.code == 1 and "none of the" in " ".join(again.out.split())


def empty(reason: str) -> Sample:
    error, outcome = StepError(stage="parse", message="no action"), StepOutcome(verdict="unparseable")
    return Sample(raw_response="", finish_reason=reason, error=error, outcome=outcome)


def test_an_empty_reply_that_was_cut_off() -> None:
    watch = ReplyWatch()
    assert watch.add(StepRecord(task=step(Stop()), samples=(empty("length"),))) is None
    sentence = watch.close()
    assert (
        sentence is not None and sentence.startswith("the first response could not be read") and "limit of tokens" in sentence
    )
    assert "the first is empty (no action" in sentence and watch.close() is None


def test_what_was_withheld_or_stood_in_another_field_is_counted(tmp_path: Path) -> None:
    """Each gave a figure without a word: the first as the model's mistake, the second as if nothing were odd."""
    moved = Sample(raw_response="", in_reasoning=True, action=Stop(), outcome=StepOutcome(verdict="right"))
    with Journal(tmp_path) as journal:
        watch = AnswerWatch(load_model(MODEL), journal)
        for samples in ((moved, empty("content_filter")), (moved,), (moved,)):
            assert watch.add(StepRecord(task=step(Stop()), samples=samples)) == []
    first, second = watch.close()
    assert "ended 1 response (content_filter)" in first and "3 responses had an empty text" in second


def test_a_few_unreadable_replies_are_no_warning(tmp_path: Path, guieval: CommandLine) -> None:
    settings = MockSettings(model=MODEL, policy="centre", malformed_rate=0.25, malformed_kinds=("cut-text",), seed=5)
    done = run(guieval, tmp_path, settings, 8)
    figures = read_json((tmp_path / "run" / "metrics.json").read_text())["summary"]["verdicts"]
    assert figures["unparseable"] > 0, "the server cut nothing"
    assert done.code == 0 and "could not be read" not in done.err and "could be read" not in done.out
