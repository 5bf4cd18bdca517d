"""Executions as a run's and a rollout's journals hold them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from guieval.actions import Click, Point, Press, Unsupported, Wait
from guieval.errors import UsageError
from guieval.journal import ROLLOUT
from guieval.journal.run_folders import rounds_of
from guieval.steps import StepRecord
from guieval.studies.decisions.executions import read_executions
from guieval.studies.retries import retried, right_in_tries
from tests.command_line import CommandLine
from tests.made_runs import record, sample, step, write_run
from tests.rows import every_row

HERE, BACK = Click(point=Point(500.0, 500.0)), Press(button="BACK")
FAR = Click(point=Point(10.0, 10.0))


def several(*samples: object, index: int = 0, length: int = 1) -> StepRecord:
    """A record of samples, ``"failed"`` among them for one that nobody answered."""
    task = step(HERE, index=index, length=length)
    given = [sample(None, failed=True) if each == "failed" else sample(each) for each in samples]  # type: ignore[arg-type]
    return StepRecord(task=task, samples=tuple(given))


def rollout(directory: Path, *rounds: list[StepRecord]) -> Path:
    for number, records in enumerate(rounds):
        write_run(directory / f"round-{number}", records)
    listed = [{"directory": f"round-{number}", "seed": number} for number in range(len(rounds) + 1)]  # the last never began
    (directory / ROLLOUT).write_text(json.dumps({"schema": 1, "rounds": listed}))
    return directory


def test_different_executions_are_counted_in_the_order_they_were_drawn(tmp_path: Path) -> None:
    outside = Unsupported(name="pinch", arguments={})
    run = write_run(tmp_path / "run", [several(BACK, HERE, None, BACK, outside, "failed", None, BACK)])
    (found,) = read_executions(run, protocol="guievalkit")
    assert found.actions == (BACK, HERE, None, outside)
    np.testing.assert_array_equal(found.counts, [3, 1, 2, 1])
    assert (found.n, found.right, found.failed) == (7, 1, 1)


def test_steps_come_in_the_order_of_the_plan_and_those_never_asked_are_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [several(HERE, index=2, length=3), several(BACK, index=0, length=3)])
    assert [each.task.step_index for each in read_executions(run)] == [0, 2]


def test_of_a_step_asked_twice_the_last_finished_record_counts_and_without_one_the_last(tmp_path: Path) -> None:
    finished = [several("failed", HERE), several(BACK, FAR), several("failed", "failed")]
    (found,) = read_executions(write_run(tmp_path / "finished", finished))
    assert found.actions == (BACK, FAR) and found.failed == 0
    (found,) = read_executions(write_run(tmp_path / "unfinished", [several("failed", BACK), several("failed", HERE, HERE)]))
    assert found.actions == (HERE,) and (found.n, found.failed) == (2, 1)


def test_a_step_that_nobody_answered_has_no_execution(tmp_path: Path) -> None:
    (found,) = read_executions(write_run(tmp_path / "run", [record(step(HERE))]))
    assert (found.n, found.right, found.failed, found.actions) == (0, 0, 1, ())


def test_the_rounds_of_a_rollout_are_pooled(tmp_path: Path) -> None:
    first = [several(HERE, BACK, index=0, length=2), several(HERE, HERE, index=1, length=2)]
    second = [several(BACK, FAR, index=0, length=2)]
    directory = rollout(tmp_path / "rollout", first, second)
    one, other = read_executions(directory)
    assert one.actions == (HERE, BACK, FAR) and one.counts.tolist() == [1, 2, 1]
    assert other.actions == (HERE,) and other.n == 2
    assert [each.name for each in rounds_of(directory)] == ["round-0", "round-1"]


def test_executions_are_judged_under_the_protocol_asked_for(tmp_path: Path) -> None:
    near = Click(point=Point(500.0, 600.0))
    run = write_run(tmp_path / "run", [several(near)])
    assert [each.right for each in read_executions(run, protocol="guievalkit")] == [1]
    assert [each.right for each in read_executions(run, protocol="ui-s1-sop")] == [0]


@every_row(
    ("right", "waits", "stops", "others", "tries", "chance"),
    [
        (1, 0, 0, 1, 1, 1 / 2),
        (1, 0, 0, 2, 2, 2 / 3),  # pass@2: 1 - C(2, 2) / C(3, 2)
        (1, 1, 0, 1, 1, 1 / 3 + 1 / 3 * 1 / 2),  # right at once, or after the wait
        (1, 2, 0, 0, 1, 1 / 3 + 2 / 3 * 1 / 2),  # the second wait of one try is a mistake
        (1, 1, 0, 1, 2, 1),
        (0, 5, 0, 1, 2, 0),
        (3, 0, 0, 0, 3, 1),
        (1, 0, 1, 1, 3, 1 / 3 + 1 / 3 * 1 / 2),  # right before the stop,
    ],
)
def test_the_chance_of_a_right_step(right: int, waits: int, stops: int, others: int, tries: int, chance: float) -> None:
    assert right_in_tries(right, waits, stops, others, tries) == pytest.approx(chance)


def test_progress_and_success_with_tries_are_expected_from_the_samples(tmp_path: Path, guieval: CommandLine) -> None:
    """By hand: steps are right with 1/2 and 1 (k = 1), with 1 and 1 (k = 2, the wait forgiven either way)."""
    records = [several(HERE, BACK, index=0, length=2), several(HERE, HERE, index=1, length=2)]
    run = str(write_run(tmp_path / "run", records))
    one, two = retried(Path(run), [1, 2], protocol="guievalkit")
    assert (one.progress.value, one.success.value, one.score.value) == (0.5, 0.5, 0.5)
    assert (two.progress.value, two.success.value, two.left_out) == (1, 1, 0)
    (waited,) = retried(write_run(tmp_path / "waited", [several(HERE, Wait())]), [1], protocol="guievalkit")
    assert waited.progress.value == 1
    done = guieval("study", "retries", run, "--protocol", "guievalkit", "--tries", "1", "--tries", "2")
    assert re.search(r"^1 +50\S* .*\n2 +100", done.out, re.MULTILINE), done.out
    assert "the fewest of a step are 2" in guieval.sentence("study", "retries", run, "--tries", "3")


def test_what_cannot_be_pooled_is_refused(tmp_path: Path) -> None:
    different = rollout(tmp_path / "different", [several(HERE)], [several(HERE, index=0, length=2)])
    with pytest.raises(UsageError, match="over different steps"):
        read_executions(different)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no round .* has begun"):
        read_executions(rollout(tmp_path / "empty"))
    with pytest.raises(UsageError, match="is not a run directory"):
        read_executions(tmp_path)
    (tmp_path / ROLLOUT).write_text("{}")
    with pytest.raises(UsageError, match="field rounds: is missing"):
        read_executions(tmp_path)
