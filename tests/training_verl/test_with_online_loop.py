"""The agent loop in an environment, with verl's own base class, tokenisation and outputs; only the answers are made up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from verl.utils.tokenizer import hf_tokenizer

import guieval.training.verl.online_loop as online_loop
from guieval.actions import Click, ExecutableAction
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import Observation, icons
from guieval.online.tasks import EnvironmentTasks
from guieval.registry import load_model
from guieval.rewards.advantages import Trajectory, advantages
from guieval.steps import StepTaskModel
from guieval.testing.icons.screens import SIZE, IconEpisode, generate_icon_episode
from guieval.training.acting import OnlineRollout
from guieval.training.verl.online_loop import OnlineLoop
from guieval.training.verl.records import RowRecord, figures, row_advantages
from guieval.training.verl.rows import read_online_place
from guieval.training.verl.settings import ONLINE, read_settings
from tests.programs import started
from tests.training_verl.conftest import Compose
from tests.training_verl.scripted_server import WRONG, ScriptedServer
from tests.training_verl.test_with_loop import roll

MODEL = "qwen2.5-vl-7b-ui-s1"
SETTINGS = (f"guieval.model={MODEL}", "+guieval.model_options.max_images=2")
EVERY_STEP = ("guieval.judge.progress=1.0", "guieval.judge.every_step=true", "guieval.judge.unreadable=0.25")
Row = dict[str, Any]
SEED = 7


@pytest.fixture(scope="module")
def tokenizer(policy: Path) -> Any:
    return hf_tokenizer(str(policy))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Row]]:
    """Rows as the command line writes them."""

    def write(*words: str) -> list[Row]:
        folder = tmp_path_factory.mktemp("online") / "rows"
        options = ["--option", "episodes=4", "--option", f"seed={SEED}", "--option", "split=train"]
        command = [sys.executable, "-m", "guieval.training.verl", "rows", str(folder), "--bench", "demo-icons", "--online"]
        subprocess.run([*command, *options, *words], check=True)
        return [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]

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
    shown = task.model_copy(update={"screenshot_size": SIZE})
    return load_model(MODEL).render(shown, Click(point=episode.screens[done].find(episode.goal[done]).centre), "next")


def test_a_row_names_its_task(tasks: list[Row]) -> None:
    assert len(tasks) == 4 and {row["agent_name"] for row in tasks} == {ONLINE}
    place = read_online_place(tasks[2]["extra_info"])
    assert place.task.instruction in tasks[2]["prompt"][0]["content"] and not place.validation
    with pytest.raises(UsageError, match="rows --online"):
        read_online_place({"index": 0})
    with pytest.raises(UsageError, match="has no task"):
        read_online_place({**tasks[0]["extra_info"], "key": ["demo-icons", "", "gone"]})


def test_right_replies_are_a_success(compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row]) -> None:
    count = len(episode_of(tasks[0]).goal)
    server = ScriptedServer(tokenizer, lambda number, prompt: right(tasks[0], number))
    outputs = roll(compose("online-1x8", *SETTINGS, *EVERY_STEP), policy, server, tasks[0], kind=OnlineLoop)
    assert len(outputs) == count and len(set(server.requests)) == 1
    assert [output.num_turns for output in outputs] == [2 * (step + 1) for step in range(count)]
    assert server.images == [min(2, step + 1) for step in range(count)]
    last = outputs[-1]
    assert last.reward_score == 2.0
    assert last.extra_fields["reward_extra_info"] == {
        "score": 2.0,
        "success": 1.0,
        "progress": 1.0,
        "steps": float(count),
        "side_effects": 0.0,
        "unreadable": 0.0,
    }
    records = [RowRecord(**output.extra_fields["guieval"]) for output in outputs]
    assert [record.reward for record in records] == pytest.approx([1 / count] * (count - 1) + [1 / count + 1.0])
    assert {(record.uid, record.session) for record in records} == {("task", 2)}


def test_only_the_judge_rewards(compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row]) -> None:
    count = len(episode_of(tasks[0]).goal)
    say = {0: right(tasks[0], 0), 1: "no action", 2: "none", 3: "none"}
    server = ScriptedServer(tokenizer, lambda number, prompt: say[number])
    outputs = roll(compose("online-1x8", *SETTINGS, *EVERY_STEP), policy, server, tasks[0], kind=OnlineLoop)
    assert len(outputs) == 4  # three replies in a row without an action end it
    rewards = [output.extra_fields["guieval"]["reward"] for output in outputs]
    assert rewards == pytest.approx([1 / count, -0.25, -0.25, -0.25])
    assert outputs[-1].reward_score == pytest.approx(sum(rewards))
    assert outputs[-1].extra_fields["reward_extra_info"]["unreadable"] == 0.75


def test_advantages_are_those_of_the_rewards(compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row]) -> None:
    config = compose("online-1x8", *SETTINGS, *EVERY_STEP)
    server = ScriptedServer(tokenizer, lambda number, prompt: right(tasks[0], 0) if number < 2 else WRONG)
    groups = roll(config, policy, server, tasks[0], sessions=4, kind=OnlineLoop)
    assert len(set(server.requests)) == 4
    records = [[RowRecord(**output.extra_fields["guieval"]) for output in outputs] for outputs in groups]
    rewards = [tuple(record.reward for record in each) for each in records]
    settings = read_settings(config).advantages
    rollouts = [Trajectory("task", tuple(range(len(each))), each, (True,) * len(each)) for each in rewards]
    found = row_advantages([record for each in records for record in each], settings)
    assert found == pytest.approx([value for values in advantages(rollouts, settings) for value in values])
    assert len({sum(each) for each in rewards}) > 1 and any(found)
    shown = figures([record for each in records for record in each])
    assert set(shown) == {"guieval/reward", "guieval/steps", "guieval/success", "guieval/progress"}


def test_the_sessions_of_a_group_begin_from_one_seed(
    compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row], written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = list[int]()

    class Noted(OnlineRollout):
        def __init__(self, tasks: EnvironmentTasks, task: StepTaskModel, seed: int) -> None:
            seeds.append(seed)
            super().__init__(tasks, task, seed)

    monkeypatch.setattr(online_loop, "OnlineRollout", Noted)
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    config = compose("online-1x8", *SETTINGS)
    roll(config, policy, server, tasks[0], sessions=3, kind=OnlineLoop)
    assert len(seeds) == 3 and len(set(seeds)) == 1 and seeds[0] > 0
    (row, *_) = written("--validation", "--max-steps", "1")
    outputs = roll(config, policy, server, row, kind=OnlineLoop)
    assert seeds[3] == 0 and len(outputs) == 1


def test_a_prompt_that_is_too_long_ends_the_rollout_and_is_judged(
    compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row]
) -> None:
    server = ScriptedServer(tokenizer, lambda number, prompt: right(tasks[0], number))
    whole = roll(compose("online-1x8", *SETTINGS), policy, server, tasks[0], kind=OnlineLoop)
    first, second = len(whole[0].prompt_ids), len(whole[1].prompt_ids)
    config = compose("online-1x8", *SETTINGS, *EVERY_STEP, f"data.max_prompt_length={second - 1}")
    (cut,) = roll(config, policy, ScriptedServer(tokenizer, server.say), tasks[0], kind=OnlineLoop)
    assert cut.reward_score == pytest.approx(1 / len(episode_of(tasks[0]).goal))
    config = compose("online-1x8", *SETTINGS, f"data.max_prompt_length={first - 1}")
    with pytest.raises(UsageError, match=rf"{first} tokens and 1 screenshots, data.max_prompt_length is {first - 1}"):
        roll(config, policy, ScriptedServer(tokenizer, server.say), tasks[0], kind=OnlineLoop)


@pytest.mark.parametrize("failure", ["environment", "server"])
def test_a_failure_is_no_reward_and_leaves_no_device(
    compose: Compose,
    policy: Path,
    tokenizer: Any,
    tasks: list[Row],
    failure: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, closed = list[int](), list[int]()

    class Noted(icons._IconsDevice):
        def __init__(self, environment: icons.IconsEnvironment) -> None:
            opened.append(1)
            super().__init__(environment)

        async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
            if failure == "environment":
                raise EnvironmentFailure("the screen is black")
            return await super().step(actions)

        async def close(self) -> None:
            closed.append(1)

    monkeypatch.setattr(icons, "_IconsDevice", Noted)

    def say(number: int, prompt: str) -> str:
        if failure == "server":
            raise ConnectionError("the server is gone")
        return right(tasks[0], 0)

    expected: Any = (EnvironmentFailure, "could not be judged: the screen is black")
    if failure == "server":
        expected = (ConnectionError, "the server is gone")
    with pytest.raises(expected[0], match=expected[1]):
        roll(compose("online-1x8", *SETTINGS), policy, ScriptedServer(tokenizer, say), tasks[0], kind=OnlineLoop)
    assert len(opened) == len(closed) == (3 if failure == "environment" else 1)


def test_no_more_rollouts_act_at_once_than_there_may_be_devices(
    compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[int]()

    class Noted(icons._IconsDevice):
        def __init__(self, environment: icons.IconsEnvironment) -> None:
            opened.append(1)
            super().__init__(environment)

    monkeypatch.setattr(icons, "_IconsDevice", Noted)
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    config = compose("online-1x8", *SETTINGS, "guieval.environment.devices=2")
    outputs = roll(config, policy, server, tasks[0], sessions=6, kind=OnlineLoop)
    assert len(outputs) == 6 and len(opened) == 2


def test_a_rollout_through_openenv(compose: Compose, policy: Path, tokenizer: Any, tasks: list[Row], tmp_path: Path) -> None:
    """The same goal on a served environment; rows name the server."""
    what = ["demo-icons", "--port", "0", "--set", "episodes=4", "--set", f"seed={SEED}", "--set", "split=train"]
    command = [sys.executable, "-m", "guieval", "serve-environment", *what]
    with started(command, stdout=subprocess.PIPE) as server_process:
        assert server_process.stdout is not None
        url = re.search(r"ws://[\d.:]+", server_process.stdout.readline())
        assert url is not None
        rows = [sys.executable, "-m", "guieval.training.verl", "rows", str(tmp_path / "rows"), "--bench", "openenv"]
        subprocess.run([*rows, "--online", "--option", f"url={url[0]}"], check=True)
        lines = (tmp_path / "rows" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 4
        row = next(each for each in map(json.loads, lines) if each["prompt"] == tasks[0]["prompt"])
        server = ScriptedServer(tokenizer, lambda number, prompt: right(tasks[0], number))
        outputs = roll(compose("online-1x8", *SETTINGS), policy, server, row, kind=OnlineLoop)
    assert len(outputs) == len(episode_of(tasks[0]).goal) and outputs[-1].reward_score == 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--online", "--steps"], "--steps is for recorded episodes"),
        (["--max-steps", "3"], "--max-steps is for --online"),
        (["--online", "--option", "episodess=3"], "did you mean 'episodes'?"),
    ],
)
def test_options_that_do_not_go_together_are_named(words: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "guieval.training.verl", "rows", str(tmp_path / "rows"), "--bench", "demo-icons", *words]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2 and found.stderr.count("\n") == 1 and message in found.stderr
