"""Shards come together whole: nothing lost or twice, no answer with another past, and counts as of a run in one piece."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from guieval.cluster.merging import Merger, absorb_shards, divided
from guieval.errors import EngineError, UsageError
from guieval.journal import STEPS, Journal, RunFolder
from guieval.journal.directory import SHARDS
from guieval.journal.lines import read_line, write_line
from guieval.models import Request
from guieval.models.scored_response import failed_sample
from guieval.running.progress.counts import Progress
from guieval.running.runner.runner import Runner
from guieval.steps import Sample, StepOutcome, StepRecord
from tests.metrics.made_columns import without_seconds
from tests.running.records import final
from tests.running.scripted_runs import failing, lines_of, scripted_runner
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, reply_with, run_scripted

EPISODES = [make_episode("a", ACTIONS), make_episode("b", ACTIONS[:2]), make_episode("c", [CLICK])]
MODES = ["offline", "soeval", "sop"]
COUNTS = ("total", "done", "exact", "failures", "verdicts", "tokens")


def mostly_right(request: Request) -> str:
    return reply_with(ACTIONS[1] if request.task.key == ("scripted", "", "a", 2) else request.task.action, "because")


def engine() -> ScriptedEngine:
    return ScriptedEngine(mostly_right)


def opened(directory: Path, mode: str = "offline", asked: ScriptedEngine | None = None, **more: Any) -> Runner:
    settings = {"mode": mode, **more.pop("settings", {})}
    return scripted_runner(directory, EPISODES, asked or engine(), settings=settings, concurrency=1, **more)


def answer(thought: str, index: int) -> bytes:
    """A line of an answer in episode a that differs from others by its thought."""
    task = EPISODES[0].steps[index]
    right = StepOutcome(type_match=True, exact_match=True, verdict="right")
    sample = Sample(raw_response="", thought=thought, action=task.action, outcome=right)
    return write_line(StepRecord(task=task, samples=(sample,)), compact=False)


def shard(directory: Path, mode: str, lines: Iterable[bytes]) -> Path:
    """A shard that a killed driver left: of the mode, with these lines and a torn one."""
    folder = directory / SHARDS / str(len([*directory.glob(f"{SHARDS}/*")]))
    opened(folder, mode).begin()
    (folder / STEPS).write_bytes(b"".join(lines) + b'{"torn')
    return folder


def thoughts(directory: Path) -> list[tuple[int, str | None]]:
    return [(record.task.step_index, record.sample.thought) for record in RunFolder(directory).records]


PATCHES = [{"patch": "on-policy", "patch_budget": budget} for budget in (1, 2, "unlimited")]


@pytest.mark.parametrize(("mode", "more"), [*((mode, {}) for mode in MODES), *(("sop", more) for more in PATCHES)])
def test_a_merged_run_is_as_one_that_was_never_split(tmp_path: Path, mode: str, more: dict[str, Any]) -> None:
    """In halves: the second merger finds what the first one wrote, and gives the next shard the records that it needs."""
    seen: list[Progress] = []
    clean = opened(tmp_path / "clean", mode, on_progress=seen.append, settings=more)
    outcome = clean.execute(resume=False)
    records = sorted(RunFolder(tmp_path / "clean").records, key=lambda record: record.task.key)
    run = opened(tmp_path / "run", mode, settings=more)
    run.begin()
    refs = run.run.selection.refs
    for known, half in (([], records[:2]), (records[:2], records[2:])):
        with Journal(tmp_path / "run") as journal:
            merger = Merger(run.run, journal)
            assert merger.begin(refs) == known
            for record in half:
                assert merger.left(refs)
                merger.add(record)
    assert merger.left(refs) == [] and final(tmp_path / "run") == final(tmp_path / "clean")
    assert {name: getattr(merger.progress, name) for name in COUNTS} == {name: getattr(seen[-1], name) for name in COUNTS}
    assert without_seconds(merger.answered.ledger) == without_seconds(outcome.ledger)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_killed_driver_left_is_absorbed_before_the_run_goes_on(tmp_path: Path, mode: str) -> None:
    """However much of it was merged before; files of others stay, and only what no shard has is requested."""
    run_scripted(tmp_path / "clean", EPISODES, engine(), mode=mode)
    lines = lines_of(tmp_path / "clean")
    for merged in range(len(lines)):
        directory = tmp_path / f"run{merged}"
        opened(directory, mode).begin()
        (directory / STEPS).write_bytes(b"".join(lines[:merged]))
        left = [shard(directory, mode, lines[: merged + 1]), shard(directory, mode, lines[:merged])]
        (left[0] / "vllm.log").write_text("kept")
        assert (directory / SHARDS).is_dir() and absorb_shards(opened(directory, mode).run, directory) == 1
        assert [*left[0].iterdir()] == [left[0] / "vllm.log"] and not left[1].exists()
        assert lines_of(directory) == lines[: merged + 1]
        asked = engine()
        opened(directory, mode, asked).execute(resume=True)
        assert final(directory) == final(tmp_path / "clean") and len(asked.requests) == len(lines) - merged - 1


@pytest.mark.parametrize(
    ("mode", "kept"),
    [("offline", ["first 0", "second 1", "first 2", "first 3"]), ("soeval", ["first 0", "second 1", "second 2"])],
)
def test_nothing_that_followed_another_answer_is_absorbed(tmp_path: Path, mode: str, kept: list[str]) -> None:
    """A worker thought lost went on with an episode that another one had taken over; a damaged line is passed over."""
    opened(tmp_path, mode).begin()
    (tmp_path / STEPS).write_bytes(answer("first 0", 0) + answer("second 1", 1))
    lost = shard(tmp_path, mode, [b"{}\n", *(answer(f"first {index}", index) for index in range(4))])
    other = shard(tmp_path, mode, [answer("first 0", 0), answer("second 1", 1), answer("second 2", 2)])
    with Journal(tmp_path) as journal:
        merger = Merger(opened(tmp_path, mode).run, journal)
        assert merger.absorb(lost) + merger.absorb(other) == len(kept) - 2
    assert [thought for _, thought in sorted(thoughts(tmp_path))] == kept


def test_a_shard_begins_with_the_answers_that_count_and_with_samples_of_other_steps(tmp_path: Path) -> None:
    def some(index: int, thought: str) -> bytes:
        whole = read_line(answer(thought, index))
        samples = (whole.sample, failed_sample("generate", thought))
        return write_line(whole.model_copy(update={"samples": samples}), compact=False)

    lines = [answer("old", 0), answer("old", 1), answer("new", 0), some(1, "1"), some(2, "after a gap")]
    for mode, expected in (("offline", ["old", "new", "after a gap"]), ("soeval", ["new", "1", "after a gap"])):
        run = opened(tmp_path / mode, mode, settings={"samples": 2})
        run.begin()
        (tmp_path / mode / STEPS).write_bytes(b"".join(lines))
        with Journal(tmp_path / mode) as journal:
            known = Merger(run.run, journal).begin(run.run.selection.refs)
        assert [record.sample.thought for record in known] == expected, mode


@pytest.mark.parametrize("mode", ["offline", "soeval"])
def test_failures_of_a_lost_worker_do_not_count_once_their_steps_run_again(tmp_path: Path, mode: str) -> None:
    nobody = ScriptedEngine(failing(EngineError("nobody is there"), lambda request: True))
    run_scripted(tmp_path / "failing", EPISODES, nobody, mode=mode)
    run_scripted(tmp_path / "fine", EPISODES, engine(), mode=mode)
    run = opened(tmp_path / "run", mode)
    run.begin()
    with Journal(tmp_path / "run") as journal:
        merger = Merger(run.run, journal)
        whole = merger.progress.total
        failed = [*RunFolder(tmp_path / "failing").records]
        for record in failed:
            merger.add(record)
        assert merger.progress.failures == merger.progress.done == merger.progress.total == len(failed)
        assert merger.begin(merger.left(run.run.selection.refs)) == []
        assert (merger.progress.failures, merger.progress.by_stage, merger.progress.done) == (0, {}, 0)
        for record in RunFolder(tmp_path / "fine").records:
            merger.add(record)
    assert merger.progress.done == merger.progress.total == whole and not merger.progress.failures
    assert not merger.progress.verdicts["infrastructure_failure"]


def test_shards_are_not_absorbed_by_an_unlike_run(tmp_path: Path) -> None:
    opened(tmp_path, "offline").begin()
    shard(tmp_path, "offline", [])
    with pytest.raises(UsageError, match="mode"):
        absorb_shards(opened(tmp_path, "sop").run, tmp_path)


def test_every_episode_is_in_one_shard_and_shards_are_about_as_long(tmp_path: Path) -> None:
    run = opened(tmp_path).run
    names = [[ref.key.episode_id for ref in part] for part in divided(run.selection.refs, run.plan, 2)]
    assert names == [["a", "c"], ["b"]]
    assert [len(part) for part in divided(run.selection.refs, run.plan, 9)] == [1, 1, 1]
