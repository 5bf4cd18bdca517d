"""What is left of a run: nothing is prepared needlessly, and what an error interrupted is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.errors import FatalEngineError, UsageError
from guieval.models import Request
from guieval.running.runner.runner import Runner
from tests.rows import every_row
from tests.running.scripted_runs import dying, right, scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted

EPISODES = [make_episode(str(number), ACTIONS[: 1 + number % 4]) for number in range(8)]
STEPS = sum(map(len, EPISODES))


def wrong(request: Request) -> str:
    return reply_with(ACTIONS[1] if request.task.action == ACTIONS[0] else ACTIONS[0])


def made(directory: Path, mode: str, engine: ScriptedEngine | None = None) -> tuple[Runner, list[str]]:
    """A run, and what gets an entry each time its engine is made ready."""
    ready: list[str] = []

    async def before() -> None:
        ready.append("now")

    engine = engine or ScriptedEngine(right)
    return scripted_runner(directory, EPISODES, engine, concurrency=2, settings={"mode": mode}, prepare=before), ready


@every_row("mode", ["offline", "soeval", "sop"])
@every_row("answer", [right, wrong], ids=["right", "wrong"])
def test_a_finished_run_needs_nobody_ready(tmp_path: Path, mode: str, answer: object) -> None:
    """In ``sop`` an episode that ended at a mismatch is finished as well."""
    assert callable(answer)
    run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(answer), mode=mode)
    run, ready = made(tmp_path / "run", mode)
    assert not run.left()
    outcome = run.execute(resume=True)
    assert ready == [] and outcome.summary().complete


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_what_an_error_interrupted_is_reported_and_left(tmp_path: Path, mode: str) -> None:
    run, _ = made(tmp_path / "run", mode, dying(STEPS - 1))
    with pytest.raises(FatalEngineError, match="it died; every answer before is kept"):
        run.execute(resume=False)
    result = run.broken_off
    assert result is not None and not (result.interrupted or result.gave_up)
    summary = result.summary()
    assert summary.exact_match.count > 0 and not summary.complete
    again, ready = made(tmp_path / "run", mode)
    assert again.left()
    outcome = again.execute(resume=True)
    assert ready == ["now"] and again.broken_off is None and outcome.summary().complete
    assert not again.left()


def test_a_run_that_came_to_nothing_was_not_broken_off(tmp_path: Path) -> None:
    run, _ = made(tmp_path / "run", "offline", dying(0))
    with pytest.raises(FatalEngineError, match=r"^it died$"):
        run.execute(resume=False)
    assert run.broken_off is None


def test_what_is_left_of_no_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no run"):
        made(tmp_path / "none", "offline")[0].left()
