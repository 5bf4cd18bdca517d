"""The agent loop in an environment, with verl's own base class, tokenisation and outputs; only the answers are made up."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import guieval.training.verl.online_loop as online_loop
from guieval.actions import Click, ExecutableAction
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import Observation
from guieval.online.attempt import Attempt
from guieval.online.tasks import EnvironmentTasks
from guieval.playground.environments import icons
from guieval.playground.icons.screens import SIZE, IconEpisode, generate_icon_episode
from guieval.registry import load_model
from guieval.rewards.advantages import Trajectory, advantages
from guieval.steps import OnlineTask
from guieval.training.acting import OnlineRollout
from guieval.training.verl.online_loop import OnlineLoop
from guieval.training.verl.records import RowRecord, logged, row_advantages
from guieval.training.verl.rows import read_online_place
from guieval.training.verl.settings import TASKS, read_settings
from tests.programs import started
from tests.training_verl.conftest import Compose, Roll, read_rows
from tests.training_verl.scripted_server import WRONG, ScriptedServer

MODEL = "qwen2.5-vl-7b-ui-s1"
SETTINGS = (f"guieval.model={MODEL}", "+guieval.model_options.max_images=2")
EVERY_STEP = ("guieval.judge.progress=1.0", "guieval.judge.every_step=true", "guieval.judge.unreadable=0.25")
Row = dict[str, Any]
SEED = 7


Rolled = Callable[..., tuple[Any, ScriptedServer]]


@pytest.fixture(scope="module")
def rolled(roll: Roll) -> Rolled:
    """Rolls a task out under the shipped configuration for environments, with more settings."""

    def make(row: Row, say: Callable[[int, str], str], *settings: str, sessions: int = 1) -> tuple[Any, ScriptedServer]:
        return roll("online-1x8", (*SETTINGS, *settings), say, row, sessions=sessions, kind=OnlineLoop)

    return make


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Row]]:
    """Rows as the command line writes them."""

    def write(*words: str) -> list[Row]:
        folder = tmp_path_factory.mktemp("online") / "rows"
        options = ["--option", "episodes=4", "--option", f"seed={SEED}", "--option", "split=train"]
        command = [sys.executable, "-m", "guieval.training.verl", "rows", str(folder), "--bench", "demo-icons", "--online"]
        subprocess.run([*command, *options, *words], check=True)
        return read_rows(folder)

    return write


@pytest.fixture(scope="module")
def tasks(written: Any) -> list[Row]:
    found: list[Row] = written()
    return found


def episode_of(row: Row) -> IconEpisode:
    return generate_icon_episode(SEED, int(row["extra_info"]["key"][2].rpartition("-")[2]), "train")


def right(row: Row, done: int) -> str:
    """The reply that taps the next icon after ``done`` were tapped."""
    episode, task = episode_of(row), read_online_place(row["extra_info"]).task
    shown = Attempt(task).shown(Observation(task.instruction, b"", SIZE), "screen.png")
    return load_model(MODEL).render(shown, Click(point=episode.screens[done].find(episode.goal[done]).centre), "next")


def wrong(number: int, prompt: str) -> str:
    return WRONG


def test_a_row_names_its_task(tasks: list[Row]) -> None:
    assert len(tasks) == 4 and {row["agent_name"] for row in tasks} == {TASKS}
    place = read_online_place(tasks[2]["extra_info"])
    assert place.task.instruction in tasks[2]["prompt"][0]["content"] and not place.validation
    with pytest.raises(UsageError, match="rows --online"):
        read_online_place({"index": 0})
    with pytest.raises(UsageError, match="has no task"):
        read_online_place({**tasks[0]["extra_info"], "key": ["demo-icons", "", "gone"]})


def test_right_replies_are_a_success_and_only_the_judge_rewards(rolled: Rolled, tasks: list[Row]) -> None:
    count = len(episode_of(tasks[0]).goal)
    outputs, server = rolled(tasks[0], lambda number, prompt: right(tasks[0], number), *EVERY_STEP)
    assert len(outputs) == count and len(set(server.requests)) == 1
    assert [output.num_turns for output in outputs] == [2 * (step + 1) for step in range(count)]
    assert server.images == [min(2, step + 1) for step in range(count)]
    last = outputs[-1]
    assert last.reward_score == 2.0
    ended = {"score": 2.0, "success": 1.0, "progress": 1.0, "steps": float(count), "side_effects": 0.0, "unreadable": 0.0}
    assert last.extra_fields["reward_extra_info"] == ended
    records = [RowRecord(**output.extra_fields["guieval"]) for output in outputs]
    assert [record.reward for record in records] == pytest.approx([1 / count] * (count - 1) + [1 / count + 1.0])
    assert {(record.uid, record.session) for record in records} == {("task", 2)}
    say = {0: right(tasks[0], 0), 1: "no action", 2: "none", 3: "none"}
    outputs, _ = rolled(tasks[0], lambda number, prompt: say[number], *EVERY_STEP)
    assert len(outputs) == 4  # three replies in a row without an action end it
    rewards = [output.extra_fields["guieval"]["reward"] for output in outputs]
    assert rewards == pytest.approx([1 / count, -0.25, -0.25, -0.25])
    assert outputs[-1].reward_score == pytest.approx(sum(rewards))
    assert outputs[-1].extra_fields["reward_extra_info"]["unreadable"] == 0.75


def test_advantages_are_those_of_the_rewards(rolled: Rolled, compose: Compose, tasks: list[Row]) -> None:
    once = right(tasks[0], 0)
    groups, server = rolled(tasks[0], lambda number, prompt: once if number < 2 else WRONG, *EVERY_STEP, sessions=4)
    assert len(set(server.requests)) == 4
    records = [[RowRecord(**output.extra_fields["guieval"]) for output in outputs] for outputs in groups]
    rewards = [tuple(record.reward for record in each) for each in records]
    settings = read_settings(compose("online-1x8", *SETTINGS, *EVERY_STEP)).advantages
    rollouts = [Trajectory("task", tuple(range(len(each))), each, (True,) * len(each)) for each in rewards]
    found = row_advantages([record for each in records for record in each], settings)
    assert found == pytest.approx([value for values in advantages(rollouts, settings) for value in values])
    assert len({sum(each) for each in rewards}) > 1 and any(found)
    shown = logged([record for each in records for record in each])
    assert set(shown) == {"guieval/reward", "guieval/steps", "guieval/success", "guieval/progress"}


def test_a_group_begins_from_one_seed(rolled: Rolled, tasks: list[Row], written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = list[int]()

    class Noted(OnlineRollout):
        def __init__(self, tasks: EnvironmentTasks, task: OnlineTask, seed: int) -> None:
            seeds.append(seed)
            super().__init__(tasks, task, seed)

    monkeypatch.setattr(online_loop, "OnlineRollout", Noted)
    rolled(tasks[0], wrong, sessions=3)
    assert len(seeds) == 3 and len(set(seeds)) == 1 and seeds[0] > 0
    (row, *_) = written("--validation", "--max-steps", "1")
    outputs, _ = rolled(row, wrong)
    assert seeds[3] == 0 and len(outputs) == 1


def test_a_prompt_that_is_too_long_ends_the_rollout_and_is_judged(rolled: Rolled, tasks: list[Row]) -> None:
    whole, server = rolled(tasks[0], lambda number, prompt: right(tasks[0], number))
    first, second = len(whole[0].prompt_ids), len(whole[1].prompt_ids)
    (cut,), _ = rolled(tasks[0], server.say, *EVERY_STEP, f"data.max_prompt_length={second - 1}")
    assert cut.reward_score == pytest.approx(1 / len(episode_of(tasks[0]).goal))
    with pytest.raises(UsageError, match=rf"{first} tokens and 1 screenshots, data.max_prompt_length is {first - 1}"):
        rolled(tasks[0], server.say, f"data.max_prompt_length={first - 1}")


class CountedDevice(icons._IconsDevice):
    """The icons demo's device, which counts how many there are and fails when told to."""

    opened, closed, fails = 0, 0, False

    def __init__(self, environment: icons.IconsEnvironment) -> None:
        CountedDevice.opened += 1
        super().__init__(environment)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        if self.fails:
            raise EnvironmentFailure("the screen is black")
        return await super().step(actions)

    async def close(self) -> None:
        CountedDevice.closed += 1


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> type[CountedDevice]:
    monkeypatch.setattr(icons, "_IconsDevice", CountedDevice)
    CountedDevice.opened, CountedDevice.closed, CountedDevice.fails = 0, 0, False
    return CountedDevice


Devices = type[CountedDevice]


def test_a_failure_is_no_reward_and_leaves_no_device(rolled: Rolled, tasks: list[Row], devices: Devices) -> None:
    def gone(number: int, prompt: str) -> str:
        raise ConnectionError("the server is gone")

    with pytest.raises(ConnectionError, match="the server is gone"):
        rolled(tasks[0], gone)
    assert devices.opened == devices.closed == 1
    devices.fails = True
    with pytest.raises(EnvironmentFailure, match="could not be judged: the screen is black"):
        rolled(tasks[0], lambda number, prompt: right(tasks[0], 0))
    assert devices.opened == devices.closed == 1 + 3


def test_no_more_rollouts_act_at_once_than_there_are_devices(rolled: Rolled, tasks: list[Row], devices: Devices) -> None:
    outputs, _ = rolled(tasks[0], wrong, "guieval.environment.devices=2", sessions=6)
    assert len(outputs) == 6 and devices.opened == 2


def test_a_rollout_through_openenv(rolled: Rolled, tasks: list[Row], tmp_path: Path) -> None:
    """The same goal on a served environment; rows name the server."""
    what = ["demo-icons", "--port", "0", "--set", "episodes=4", "--set", f"seed={SEED}", "--set", "split=train"]
    command = [sys.executable, "-m", "guieval", "dev", "serve-environment", *what]
    with started(command, stdout=subprocess.PIPE) as server_process:
        assert server_process.stdout is not None
        url = re.search(r"ws://[\d.:]+", server_process.stdout.readline())
        assert url is not None
        rows = [sys.executable, "-m", "guieval.training.verl", "rows", str(tmp_path / "rows"), "--bench", "openenv"]
        subprocess.run([*rows, "--online", "--option", f"url={url[0]}"], check=True)
        served = read_rows(tmp_path / "rows")
        assert len(served) == 4
        row = next(each for each in served if each["prompt"] == tasks[0]["prompt"])
        outputs, _ = rolled(row, lambda number, prompt: right(tasks[0], number))
    assert len(outputs) == len(episode_of(tasks[0]).goal) and outputs[-1].reward_score == 1.0
