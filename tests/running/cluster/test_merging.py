"""Episodes are given out once each, and shards come together whole: nothing lost or twice, no answer with another past."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import EngineError, UsageError
from guieval.journal import STEPS, Journal
from guieval.journal.lines import read_line, write_line
from guieval.models import Request
from guieval.models.scored_response import failed_sample
from guieval.running.cluster import HandOut, Merger, absorb_shards, dealt_first, has_shards
from guieval.running.cluster.merging import SHARDS, Shard
from guieval.running.cluster.worker import MOST_AT_ONCE
from guieval.running.progress.counts import Progress
from guieval.running.runner.runner import Runner
from guieval.steps import Episode, EpisodeKey, Sample, StepOutcome, StepRecord
from tests.metrics.made_columns import without_seconds
from tests.running.records import final
from tests.running.scripted_runs import failing, lines_of, scripted_runner
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, reply_with, run_scripted

EPISODES = [make_episode("a", ACTIONS), make_episode("b", ACTIONS[:2]), make_episode("c", [CLICK])]
A = EPISODES[0].key
MODES = ["offline", "soeval", "sop"]


def mostly_right(request: Request) -> str:
    return reply_with(ACTIONS[1] if request.task.key == ("scripted", "", "a", 2) else request.task.action, "because")


def engine() -> ScriptedEngine:
    return ScriptedEngine(mostly_right)


def opened(directory: Path, mode: str = "offline", asked: ScriptedEngine | None = None, **more: Any) -> Runner:
    return scripted_runner(directory, more.pop("episodes", EPISODES), asked or engine(), settings={"mode": mode}, **more)


def merge(directory: Path, mode: str, *shards: Sequence[bytes]) -> tuple[list[StepRecord], Progress, list[bytes]]:
    """Merge shards into a run's journal, each with a reader of its own; what was added, and what is known of episode a."""
    run = opened(directory, mode)
    with Journal(directory) as journal:
        merger = Merger(run.run, journal)
        added = [record for lines in shards for record in merger.add(b"".join(lines), Shard())]
        return added, merger.progress, merger.known_lines(A).splitlines(keepends=True)


def answer(thought: str, index: int, *, episode: Episode = EPISODES[0]) -> bytes:
    """A line of an answer that differs from others by its thought."""
    task = episode.steps[index]
    right = StepOutcome(type_match=True, exact_match=True, verdict="right")
    sample = Sample(raw_response="", thought=thought, action=task.action, outcome=right)
    return write_line(StepRecord(task=task, samples=(sample,)), compact=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_merged_run_is_as_one_that_was_never_split(tmp_path: Path, mode: str) -> None:
    seen: list[Progress] = []
    clean = opened(tmp_path / "clean", mode, on_progress=seen.append)
    outcome = clean.execute(resume=False)
    opened(tmp_path / "run", mode).begin()
    lines = lines_of(tmp_path / "clean")
    of_a = [line for line in lines if b'"episode_id":"a"' in line]
    others = [line for line in lines if line not in of_a]
    added, progress, _ = merge(tmp_path / "run", mode, of_a, others)
    assert len(added) == len(lines) and sorted(lines_of(tmp_path / "run")) == sorted(lines)
    for name in ("total", "done", "exact", "failures", "verdicts", "tokens"):
        assert getattr(progress, name) == getattr(seen[-1], name), name
    again, progress, known = merge(tmp_path / "run", mode, lines, of_a)
    assert again == [] and known == []
    assert (progress.done, progress.total, progress.resumed) == (seen[-1].done, seen[-1].total, seen[-1].done)
    run = opened(tmp_path / "run", mode)
    with Journal(tmp_path / "run") as journal:
        ledger = Merger(run.run, journal).ledger
    assert without_seconds(ledger) == without_seconds(outcome.ledger)


@pytest.mark.parametrize("mode", MODES)
def test_a_half_merged_shard_is_merged_again_harmlessly(tmp_path: Path, mode: str) -> None:
    run_scripted(tmp_path / "clean", EPISODES, engine(), mode=mode)
    lines = lines_of(tmp_path / "clean")
    for cut in range(len(lines) + 1):
        directory = tmp_path / f"run{cut}"
        opened(directory, mode).begin()
        merge(directory, mode, lines[:cut])
        merge(directory, mode, lines)
        assert lines_of(directory) == lines


def test_what_follows_another_answer_is_left_out(tmp_path: Path) -> None:
    """A worker thought lost went on with an episode that another one had taken over."""
    opened(tmp_path, "soeval").begin()
    lost = [answer("first", index) for index in range(4)]
    taken_over = [lost[0], answer("second", 1)]
    added, _, known = merge(tmp_path, "soeval", lost[:1], taken_over, lost)
    assert [record.sample.thought for record in added] == ["first", "second"]
    assert known == taken_over
    _, _, known = merge(tmp_path, "soeval", lost, [*taken_over, answer("second", 2)])
    assert known == [*taken_over, answer("second", 2)]


def test_offline_the_first_answer_to_a_step_stays(tmp_path: Path) -> None:
    opened(tmp_path, "offline").begin()
    added, _, _ = merge(tmp_path, "offline", [answer("first", 1)], [answer("second", 1), answer("second", 3)])
    assert [(record.task.step_index, record.sample.thought) for record in added] == [(1, "first"), (3, "second")]


def test_a_torn_or_foreign_line_is_passed_over(tmp_path: Path) -> None:
    opened(tmp_path, "offline").begin()
    foreign = answer("other", 0, episode=make_episode("elsewhere", ACTIONS))
    added, _, _ = merge(tmp_path, "offline", [b'{"task": \n', foreign, answer("mine", 0)])
    assert [record.sample.thought for record in added] == ["mine"]


def test_only_answers_with_an_unbroken_past_are_known(tmp_path: Path) -> None:
    """Step 0 was answered again after step 1, so step 1 will be too."""
    opened(tmp_path, "soeval").begin()
    (tmp_path / STEPS).write_bytes(answer("old", 0) + answer("old", 1) + answer("new", 0))
    added, progress, known = merge(tmp_path, "soeval", [answer("new", 0), answer("new", 1)])
    assert known == [answer("new", 0), answer("new", 1)] and len(added) == 1 and progress.done == 2


def test_samples_of_a_step_that_lacks_others_are_known_under_the_same_past_only(tmp_path: Path) -> None:
    def some(index: int, thought: str) -> bytes:
        whole = read_line(answer(thought, index))
        samples = (whole.sample, failed_sample("generate", thought))
        return write_line(whole.model_copy(update={"samples": samples}), compact=False)

    lines = [some(0, "0"), answer("new", 0), some(1, "1"), some(2, "after a gap")]
    for mode, expected in (("offline", [*lines[1:3], lines[3]]), ("soeval", lines[1:3])):
        opened(tmp_path / mode, mode).begin()
        (tmp_path / mode / STEPS).write_bytes(b"".join(lines))
        assert merge(tmp_path / mode, mode)[2] == expected
    added, _, known = merge(tmp_path / "soeval", "soeval", [*lines[1:3], answer("new", 1), some(2, "next")])
    assert len(added) == 2 and known == [lines[1], answer("new", 1), some(2, "next")]
    assert merge(tmp_path / "soeval", "soeval", [answer("another", 0)])[2] == [lines[1], answer("new", 1), some(2, "next")]


@pytest.mark.parametrize("mode", ["offline", "soeval"])
def test_a_failure_is_merged_once_and_forgotten_when_the_step_is_answered(tmp_path: Path, mode: str) -> None:
    nobody = ScriptedEngine(failing(EngineError("nobody is there"), lambda request: True))
    run_scripted(tmp_path / "failing", EPISODES[:1], nobody, mode=mode)
    run_scripted(tmp_path / "fine", EPISODES[:1], engine(), mode=mode)
    opened(tmp_path / "run", mode).begin()
    failed, fine = lines_of(tmp_path / "failing"), lines_of(tmp_path / "fine")
    added, progress, _ = merge(tmp_path / "run", mode, failed)
    assert len(added) == len(failed) == progress.failures == progress.by_stage["generate"].count == progress.done
    again, progress, _ = merge(tmp_path / "run", mode, failed)
    assert (again, progress.failures, progress.done) == ([], 0, 0)
    opened(tmp_path / "both", mode).begin()
    _, progress, _ = merge(tmp_path / "both", mode, failed, fine)
    assert (progress.failures, progress.by_stage, progress.done) == (0, {}, 4)
    assert progress.verdicts["infrastructure_failure"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_what_a_killed_run_left_is_absorbed_before_it_goes_on(tmp_path: Path, mode: str) -> None:
    run_scripted(tmp_path / "clean", EPISODES, engine(), mode=mode)
    directory = tmp_path / "run"
    opened(directory, mode).begin()
    shard = directory / SHARDS / "w"
    run_scripted(shard, EPISODES, engine(), mode=mode)
    cut = lines_of(shard)[:3]
    (shard / STEPS).write_bytes(b"".join(cut) + b'{"torn')
    (shard / "vllm.log").write_text("kept")
    assert has_shards(directory)
    run = opened(directory, mode)
    assert absorb_shards(run.run, directory) == 3
    assert [path.name for path in shard.iterdir()] == ["vllm.log"]
    asked = engine()
    opened(directory, mode, asked).execute(resume=True)
    assert final(directory) == final(tmp_path / "clean")
    assert len(asked.requests) == len(lines_of(tmp_path / "clean")) - 3


def test_shards_are_not_absorbed_by_an_unlike_run(tmp_path: Path) -> None:
    opened(tmp_path, "offline").begin()
    (tmp_path / SHARDS / "w").mkdir(parents=True)
    with pytest.raises(UsageError, match="mode"):
        absorb_shards(opened(tmp_path, "sop").run, tmp_path)


def test_the_key_of_an_episode_that_is_over_is_not_unfinished(tmp_path: Path) -> None:
    opened(tmp_path, "offline").begin()
    run = opened(tmp_path)
    c = EpisodeKey("scripted", "", "c")
    with Journal(tmp_path) as journal:
        merger = Merger(run.run, journal)
        assert merger.unfinished([A, c]) == [A, c] and not merger.begun(A)
        merger.add(answer("x", 0, episode=EPISODES[2]) + answer("x", 0), Shard())
        assert merger.unfinished([A, c]) == [A] and merger.begun(A)


def test_every_position_is_given_once_in_order_and_few_at_the_end() -> None:
    hand_out = HandOut({9, 4, *range(10, 110)}, 4)
    given: list[list[int]] = []
    while hand_out.left:
        given.append(hand_out.take())
    assert [position for few in given for position in few] == [4, 9, *range(10, 110)]
    sizes = [len(few) for few in given]
    assert sizes == sorted(sizes, reverse=True)
    assert 1 < max(sizes) <= MOST_AT_ONCE and sizes[-16:] == [1] * 16
    assert hand_out.take() == []


def test_the_longest_episodes_come_first(tmp_path: Path) -> None:
    episodes = [make_episode("one", [CLICK]), make_episode("four", ACTIONS), make_episode("other", [CLICK])]
    run = opened(tmp_path, episodes=episodes)
    assert [ref.key.episode_id for ref in dealt_first(run.run.selection)] == ["four", "one", "other"]
