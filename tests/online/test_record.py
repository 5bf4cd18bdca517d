"""What succeeded online becomes an offline benchmark, whose references are the actions that were carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.online.record import record
from guieval.playground.phone import generate_episode
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

from .test_runs import Ran, agent, ran, reference, task_id

__all__ = ["agent", "ran"]  # the fixtures


def test_successes_are_episodes(tmp_path: Path, ran: Ran) -> None:
    recorded = record({ran.run: list(RunFolder(ran.run).tasks)}, tmp_path / "episodes")
    benchmark = load_benchmark("episodes", tmp_path / "episodes")
    episodes = {episode.key.episode_id: episode for episode in benchmark}
    assert set(episodes) == {task_id(0), task_id(6), task_id(7)} and recorded.failed == 5
    assert recorded[:2] == (3, sum(map(len, episodes.values())))
    for number in (0, 6, 7):  # of task 6 the first reply was not carried out, and is left out
        made, played = episodes[task_id(number)], generate_episode(0, number)
        assert [step.action.model_dump_json() for step in made.steps] == reference(number)
        assert made.steps[0].instruction == played.task.instruction
        assert made.steps[0].groups == {"app": played.task.app, "task": played.task.kind}
        for step, expected in zip(made.steps, played.steps, strict=True):
            shown = Image.open(tmp_path / "episodes" / step.screenshot)
            assert shown.size == step.screenshot_size and shown.tobytes() == expected.phone.render().tobytes()


def test_the_recorded_benchmark_is_run_offline(tmp_path: Path, ran: Ran, agent: Path, guieval: CommandLine) -> None:
    """The agent that made the episodes answers them: all its steps match but those after the one left out of task 6."""
    made = guieval("data", "record", str(ran.run), "--out", str(tmp_path / "episodes"))
    assert made.code == 0 and "3 episodes" in made.out and "5 tasks without a success" in made.out
    words = ["--model", "scripted", "--adapter", str(agent), "--engine", "local", "--bench", "episodes"]
    where = ["--data", str(tmp_path / "episodes"), "--out", str(tmp_path / "offline")]
    assert guieval("run", *words, *where, "--quiet").code == 0
    exact = {record.task.key: record.sample.outcome.exact_match for record in RunFolder(tmp_path / "offline").records}
    assert all(match for key, match in exact.items() if key.episode_id != task_id(6))


def test_nothing_to_record_is_refused(tmp_path: Path, ran: Ran, guieval: CommandLine) -> None:
    failures = [one for one in RunFolder(ran.run).tasks if not one.exact]
    with pytest.raises(UsageError, match="none of the 5 tasks was a success"):
        record({ran.run: failures}, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert "exists; name a new folder" in guieval.sentence("data", "record", str(ran.run), "--out", str(tmp_path))
    offline = tmp_path / "offline"
    adapter = str(REPOSITORY / "tests" / "scripted_agents.py")
    agent = ["--model", "scripted-hash", "--adapter", adapter, "--engine", "local"]
    assert guieval("run", *agent, "--bench", "demo", "--limit", "1", "--out", str(offline), "--quiet").code == 0
    assert "is no online run" in guieval.sentence("data", "record", str(offline), "--out", str(tmp_path / "x"))


def test_a_model_is_run_and_recorded_in_one_command(tmp_path: Path, agent: Path, guieval: CommandLine) -> None:
    """The run stays beside the episodes, so a command that was stopped continues it."""
    command = ["data", "record", "--bench", "demo", "--agent", "scripted", "--adapter", str(agent), "--engine", "local"]
    command += ["--set", "episodes=8", "--out", str(tmp_path / "episodes")]
    done = guieval(*command)
    assert done.code == 0 and "3 episodes" in done.out, done
    assert len(list(RunFolder(tmp_path / "episodes-run").records)) == 8
    assert "exists; name a new folder" in guieval.sentence(*command)
    (tmp_path / "episodes").rename(tmp_path / "moved")
    again = guieval(*command)  # nothing is asked again
    assert again.code == 0 and len(list(RunFolder(tmp_path / "episodes-run").records)) == 8
    same = [(tmp_path / folder / "episodes.jsonl").read_text() for folder in ("moved", "episodes")]
    assert same[0] == same[1]


def test_options_of_a_model_need_one(guieval: CommandLine) -> None:
    assert "add --agent MODEL" in guieval.sentence("data", "record", "--bench", "demo", "--engine", "local", "--out", "x")
    sentence = guieval.sentence("data", "record", "--bench", "demo", "--agent", "ocr-baseline", "--task", "t", "--out", "x")
    assert "--task chooses tasks of the expert" in sentence
