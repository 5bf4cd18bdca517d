"""Plug-ins that break their contract, journals with holes, and directories that are not what they seem."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Press
from guieval.data.benchmark import EpisodeRef
from guieval.errors import DataError, EngineError, FatalEngineError, JournalError, UsageError
from guieval.journal import EPISODES, MANIFEST, STEPS, RunFolder
from guieval.metrics.kinds import of_steps
from guieval.models import Engine, ImageRef, ModelConfig, ModelInput, Request
from guieval.registry import load_model
from guieval.running.engine_choice import GIVE_UP_AFTER
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import RunProgress
from guieval.running.runner.runner import Runner
from guieval.scoring.score import evaluate_run
from guieval.steps import Episode
from tests.rows import every_row
from tests.running.scripted_runs import dying, failing, lines_of, right, scripted_runner
from tests.scripted import (
    ACTIONS,
    ListBenchmark,
    ScriptedEngine,
    ScriptedModel,
    make_episode,
    past_of,
    reply_with,
    run_scripted,
)
from tests.waiting import PATIENCE, auntil

EPISODES_ = [make_episode(str(number), ACTIONS[: 1 + number % 4]) for number in range(8)]
STEPS_ = sum(map(len, EPISODES_))


def a_run(
    directory: Path, *, engine: Engine | None = None, benchmark: ListBenchmark | None = None, mode: str = "offline", **more: Any
) -> Runner:
    benchmark, engine = benchmark or ListBenchmark(EPISODES_), engine or ScriptedEngine(right)
    return scripted_runner(directory, benchmark, engine, settings={"mode": mode}, **more)


def ended(work: Callable[[], RunOutcome]) -> RunOutcome:
    """The outcome, or a failed test when it hangs: a run in a thread of its own cannot hold the others up."""
    outcomes: list[RunOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert outcomes, "the run hangs or failed"
    return outcomes[0]


@every_row("mode", ["offline", "soeval", "sop"])
@every_row("concurrency", [1, 2, 300])
def test_resuming_a_finished_run_ends_whatever_the_concurrency(tmp_path: Path, mode: str, concurrency: int) -> None:
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right), mode=mode)
    engine = ScriptedEngine(right)
    outcome = ended(lambda: run_scripted(tmp_path / "run", EPISODES_, engine, mode=mode, concurrency=concurrency, resume=True))
    assert engine.requests == [] and outcome.summary().complete


class Bad(ScriptedModel):
    """Fails in one method at two steps of episode 3."""

    def __init__(self, method: str, result: Any) -> None:
        super().__init__(ModelConfig(name="scripted", adapter="scripted"))
        self._method, self._result = method, result

    def _made(self, method: str, task: Any, good: Callable[[], Any]) -> Any:
        if method != self._method or task.episode_id != "3" or task.step_index > 1:
            return good()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def prepare_input(self, task: Any, history: Any) -> Any:
        return self._made("prepare_input", task, lambda: super(Bad, self).prepare_input(task, history))

    def parse_response(self, task: Any, text: str) -> Any:
        return self._made("parse_response", task, lambda: super(Bad, self).parse_response(task, text))

    async def generate(self, request: Request, engine: Engine) -> Any:
        self._made("generate", request.task, lambda: None)
        return await super().generate(request, engine)


@every_row("mode", ["offline", "soeval", "sop"])
@every_row(
    ("method", "result", "stage"),
    [
        *(("prepare_input", KeyError("bug \ud83d"), "adapter"), ("prepare_input", None, "adapter")),
        *(("prepare_input", DataError("refused"), "prepare"), ("generate", ValueError("bug"), "adapter")),
        *(("parse_response", KeyError("bug"), "adapter"), ("parse_response", None, "adapter")),
    ],
)
def test_an_adapter_that_fails_costs_its_steps_only(tmp_path: Path, mode: str, method: str, result: Any, stage: str) -> None:
    outcome = a_run(tmp_path / "run", model=Bad(method, result), mode=mode).execute(resume=False)
    failed = [record for record in RunFolder(tmp_path / "run").records if not record.finished]
    assert {record.task.episode_id for record in failed} == {"3"}
    assert {record.sample.error.stage for record in failed if record.sample.error} == {stage}
    for sample in (record.sample for record in failed):
        assert not sample.answered and (method != "parse_response" or sample.raw_response)
        assert stage != "adapter" or (sample.error and re.match(r"test_hostile\.py:\d+ in \w+: ", sample.error.message))
        assert result is None or (sample.error is not None and type(result).__name__ in sample.error.message)
    summary = of_steps(outcome.summary())
    lost = 2 if mode == "offline" else 4
    assert summary.metrics["exact match"].n == STEPS_ and summary.verdicts.measured == STEPS_ - lost and not summary.complete
    assert summary.verdicts.infrastructure_failure == (stage == "prepare") * (2 if mode == "offline" else 1)
    resumed = a_run(tmp_path / "run", mode=mode).execute(resume=True)
    assert resumed.summary().complete


def test_a_screenshot_that_cannot_be_made_costs_its_step(tmp_path: Path) -> None:
    class Drawn(ListBenchmark):
        needs_data = False  # else its screenshots would be looked for before anything is asked

    class Huge(ScriptedModel):
        def prepare_input(self, task: Any, history: Any) -> ModelInput:
            made = super().prepare_input(task, history)
            return replace(made, messages=(replace(made.messages[0], parts=("x", ImageRef(replace_path(task)))),))

    def replace_path(task: Any) -> Any:
        return task.model_copy(update={"screenshot": "\0" if task.step_index else "a" * 300})

    engine = ScriptedEngine(right)
    engine.images = "bytes"
    model = Huge(ModelConfig(name="scripted", adapter="scripted"))
    outcome = a_run(tmp_path / "run", model=model, engine=engine, benchmark=Drawn(EPISODES_)).execute(resume=False)
    assert outcome.progress.by_stage["screenshot"].count == STEPS_ and not engine.requests


def test_a_reply_no_file_can_hold_is_journalled_and_goes_on(tmp_path: Path) -> None:
    policy = {0: "half \ud83d \0", 1: '{"action": {"type": "UNSUPPORTED", "name": "x", "arguments": {"a": "\\ud83d"}}}'}
    engine = ScriptedEngine(lambda request: policy.get(request.task.step_index, "\udc00 no action"))
    outcome = run_scripted(tmp_path / "run", EPISODES_, engine)
    summary = outcome.summary(intervals=True)
    assert summary.complete and summary.verdicts.unparseable + summary.verdicts.unsupported == STEPS_
    assert evaluate_run(tmp_path / "run").summary == summary
    again = ScriptedEngine(right)
    run_scripted(tmp_path / "run", EPISODES_, again, resume=True)
    assert again.requests == []


def test_a_reply_of_eight_megabytes_is_read_back(tmp_path: Path) -> None:
    text = "x" * 8_000_000
    run_scripted(tmp_path / "run", [make_episode("a", ACTIONS[:1])], ScriptedEngine(lambda request: text))
    (record,) = RunFolder(tmp_path / "run").records
    assert record.sample.raw_response == text


class Loader(ListBenchmark):
    """Fails to load, or loads something else than it listed, for one episode."""

    def __init__(self, result: Exception | Episode) -> None:
        super().__init__(EPISODES_)
        self._result = result

    def load(self, ref: EpisodeRef) -> Episode:
        if ref.key.episode_id != "6":
            return super().load(ref)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@every_row(
    ("result", "message"),
    [
        (DataError("file x, line 3, field y: bad"), "line 3, field y"),
        (KeyError("bug"), "episode scripted/6 cannot be loaded: KeyError"),
        (make_episode("6", ACTIONS[:1]), "what it loads is scripted/6 of 1"),
        (make_episode("other", ACTIONS[:3]), "what it loads is scripted/other of 3"),
    ],
)
def test_an_episode_that_cannot_be_loaded_ends_the_run(tmp_path: Path, result: Exception | Episode, message: str) -> None:
    run = a_run(tmp_path / "run", benchmark=Loader(result), concurrency=1)
    with pytest.raises(DataError, match=message) as raised:
        run.execute(resume=False)
    assert f"guieval run --resume {tmp_path / 'run'}" in str(raised.value)
    kept = len(list(RunFolder(tmp_path / "run").records))
    assert kept > 0
    engine = ScriptedEngine(right)
    outcome = a_run(tmp_path / "run", engine=engine).execute(resume=True)
    assert outcome.summary().complete and len(engine.requests) == STEPS_ - kept


def test_a_benchmark_that_lists_an_episode_twice_is_refused(tmp_path: Path) -> None:
    class Twice(ListBenchmark):
        def index(self) -> list[EpisodeRef]:
            return [*super().index(), super().index()[0]]

    with pytest.raises(DataError, match="lists episode scripted/0 twice"):
        a_run(tmp_path / "run", benchmark=Twice(EPISODES_)).execute(resume=False)
    assert not (tmp_path / "run").exists()


@every_row("name", ["a/b", "..", "日本語 🙂", "a\nb", "a|b%7C", " "])
@every_row("mode", ["offline", "soeval"])
def test_episode_ids_may_be_any_text(tmp_path: Path, name: str, mode: str) -> None:
    episodes = [make_episode(name, ACTIONS), make_episode("b", ACTIONS)]
    run_scripted(tmp_path / "run", episodes, ScriptedEngine(right), mode=mode)
    assert {key.episode_id for key in RunFolder(tmp_path / "run").plan} == {name, "b"}
    assert evaluate_run(tmp_path / "run")["exact match"].count == 8


def wrong_at_two(request: Request) -> str:
    """Right but at step 2."""
    return reply_with(Press(button="HOME")) if request.task.step_index == 2 else right(request)


@every_row("mode", ["offline", "soeval", "sop"])
@every_row("hole", [0, 1, 2])
def test_a_damaged_line_is_asked_again_with_all_that_built_on_it(tmp_path: Path, mode: str, hole: int) -> None:
    episodes = [make_episode("a", ACTIONS)]
    run_scripted(tmp_path / "run", episodes, ScriptedEngine(wrong_at_two), mode=mode)
    before = lines_of(tmp_path / "run")
    damaged = [b'{"task": \xff}\n' if number == hole else line for number, line in enumerate(before)]
    (tmp_path / "run" / STEPS).write_bytes(b"".join(damaged))
    engine = ScriptedEngine(wrong_at_two)
    outcome = run_scripted(tmp_path / "run", episodes, engine, mode=mode, resume=True)
    asked = [request.task.step_index for request in engine.requests]
    assert asked == ([hole] if mode == "offline" else list(range(hole, len(before))))
    summary = of_steps(outcome.summary())
    assert summary.complete and summary.verdicts.wrong == 1
    warning = f"line {hole + 1} of {tmp_path / 'run' / STEPS} has no record and was passed over"
    assert evaluate_run(tmp_path / "run").notes == (warning,)


def test_an_interrupted_redoing_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    """Steps after a redone one are stale until they are redone too, also when a kill came in between."""
    episodes = [make_episode("a", ACTIONS)]
    run_scripted(tmp_path / "run", episodes, ScriptedEngine(right), mode="soeval")
    first, second, *rest = lines_of(tmp_path / "run")
    (tmp_path / "run" / STEPS).write_bytes(b"".join([first, *rest, second]))
    engine = ScriptedEngine(lambda request: reply_with(request.task.action, "again"))
    run_scripted(tmp_path / "run", episodes, engine, mode="soeval", resume=True)
    assert [request.task.step_index for request in engine.requests] == [2, 3]
    thoughts = [entry["thought"] for entry in past_of(engine.requests[1])]
    assert thoughts == ["thought scripted/a#0", "thought scripted/a#1", "again"]


def test_doubled_lines_count_once_and_the_last_finished_one_counts(tmp_path: Path) -> None:
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right))
    before = evaluate_run(tmp_path / "run").summary
    (tmp_path / "run" / STEPS).write_bytes(b"".join(lines_of(tmp_path / "run") * 2))
    assert evaluate_run(tmp_path / "run").summary == before
    engine = ScriptedEngine(right)
    run_scripted(tmp_path / "run", EPISODES_, engine, resume=True)
    assert engine.requests == []


@pytest.mark.parametrize("mode", ["offline", "soeval"])
def test_records_without_a_manifest_are_never_taken_for_those_of_another_run(tmp_path: Path, mode: str) -> None:
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right))
    (tmp_path / "run" / MANIFEST).unlink()
    before = lines_of(tmp_path / "run")
    with pytest.raises(UsageError, match="has records but no manifest"):
        run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right), mode=mode)
    assert lines_of(tmp_path / "run") == before


def test_a_resume_rewrites_a_lost_list_of_episodes(tmp_path: Path) -> None:
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right))
    plan = RunFolder(tmp_path / "run").plan
    (tmp_path / "run" / EPISODES).unlink()
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right), resume=True)
    assert RunFolder(tmp_path / "run").plan == plan


def test_a_run_that_another_process_began_meanwhile_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find no run in a folder; the slower one gets the lock when the quicker one is done."""
    manifests = iter([False, True])
    monkeypatch.setattr("guieval.running.resume.changes.is_run", lambda directory: next(manifests))
    with pytest.raises(UsageError, match="already has a run"):
        run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right))
    assert not (tmp_path / "run" / MANIFEST).exists()


def test_what_was_begun_is_resumed_and_asks_nothing_before(tmp_path: Path) -> None:
    engine = ScriptedEngine(right)
    a_run(tmp_path / "run", engine=engine).begin()
    assert engine.requests == [] and not lines_of(tmp_path / "run")
    with pytest.raises(UsageError, match="already has a run"):
        a_run(tmp_path / "run").begin()
    outcome = a_run(tmp_path / "run", engine=engine).execute(resume=True)
    assert outcome.summary().complete and len(engine.requests) == STEPS_


def test_a_signal_before_the_first_step_stops_at_once(tmp_path: Path) -> None:
    """Finding out the served model's name may take minutes with a dead server; Ctrl-C must not wait for it."""

    async def never() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await auntil(lambda: False, "an end of this wait")

    outcome = a_run(tmp_path / "run", prepare=never).execute(resume=False)
    assert outcome.interrupted and list(RunFolder(tmp_path / "run").records) == []


@pytest.mark.parametrize("turns", [100, 0])  # without any it never gives way, as a replay does
def test_a_signal_between_steps_keeps_every_answer(tmp_path: Path, turns: int) -> None:
    def see(progress: RunProgress) -> None:
        if progress.done == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    engine = ScriptedEngine(right, lambda request: turns)
    outcome = a_run(tmp_path / "run", engine=engine, on_progress=see).execute(resume=False)
    assert outcome.interrupted and 5 <= len(list(RunFolder(tmp_path / "run").records)) < STEPS_
    resumed = a_run(tmp_path / "run").execute(resume=True)
    assert not resumed.interrupted and resumed.summary().complete


def test_a_signal_after_the_last_answer_is_kept_for_what_follows(tmp_path: Path) -> None:
    """A sweep of many short runs would otherwise go on after Ctrl-C, when it arrives while one of them ends."""

    class Closing(ScriptedEngine):
        async def close(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    unheard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: unheard.append(number))
    try:
        outcome = a_run(tmp_path / "run", engine=Closing(right)).execute(resume=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert outcome.interrupted and outcome.summary().complete and not unheard


@pytest.mark.parametrize("patience", [GIVE_UP_AFTER, None])
def test_only_an_engine_that_may_come_back_is_given_up(tmp_path: Path, patience: int | None) -> None:
    episodes = [make_episode(str(number), ACTIONS) for number in range(60)]
    engine = ScriptedEngine(failing(EngineError("nobody there"), lambda request: True))
    run = a_run(tmp_path / "run", engine=engine, benchmark=ListBenchmark(episodes), give_up_after=patience)
    outcome = run.execute(resume=False)
    assert outcome.gave_up is (patience is not None)
    assert outcome.progress.by_stage["generate"].count == (240 if patience is None else GIVE_UP_AFTER)


def test_a_fatal_error_prints_how_to_resume_only_when_there_is_something_to_keep(tmp_path: Path) -> None:
    for answers, hint in ((0, False), (5, True)):
        with pytest.raises(FatalEngineError, match=r"^it died") as raised:
            a_run(tmp_path / str(answers), engine=dying(answers), concurrency=1).execute(resume=False)
        assert ("guieval run --resume" in str(raised.value)) is hint


def test_a_loader_whose_extras_are_no_json_is_reported_and_nothing_is_torn(tmp_path: Path) -> None:
    episode = make_episode("a", ACTIONS[:1])
    odd = Episode(steps=tuple(step.model_copy(update={"extras": {"x": object()}}) for step in episode.steps))
    with pytest.raises(JournalError, match=r"the record of step scripted/a#0 cannot be stored as JSON"):
        a_run(tmp_path / "run", benchmark=ListBenchmark([odd])).execute(resume=False)
    assert lines_of(tmp_path / "run") == []


BROKEN = """
from tests.scripted import ScriptedModel

class Mine(ScriptedModel):
    def parse_response(self, task, text):
        if task.episode_id == "3" and task.step_index < 2:
            raise KeyError("bug")
        return super().parse_response(task, text)
"""


def test_a_crashed_parser_is_mended_by_reading_the_replies_again(tmp_path: Path) -> None:
    adapter = tmp_path / "mine.py"
    adapter.write_text(BROKEN)
    model = load_model("scripted", adapter=str(adapter))
    outcome = a_run(tmp_path / "run", model=model).execute(resume=False)
    assert outcome.progress.by_stage["adapter"].example == "mine.py:7 in parse_response: KeyError: 'bug'"
    for reparse in (False, True):
        verdicts = evaluate_run(tmp_path / "run", reparse=reparse, adapter=str(adapter)).summary.verdicts
        assert (verdicts.infrastructure_failure, verdicts.not_run) == (0, 2)
    adapter.write_text(BROKEN.replace('raise KeyError("bug")', "pass  # mended"))
    assert not evaluate_run(tmp_path / "run").summary.complete
    summary = evaluate_run(tmp_path / "run", reparse=True, adapter=str(adapter)).summary
    assert summary.complete and summary.metrics["exact match"].count == STEPS_


def test_a_manifest_with_a_setting_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right))
    path = tmp_path / "run" / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["config"]["samplig"] = {}
    path.write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="unknown setting 'samplig'"):
        run_scripted(tmp_path / "run", EPISODES_, ScriptedEngine(right), resume=True)
