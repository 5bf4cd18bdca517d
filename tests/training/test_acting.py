"""Rollouts in environments for online RL: the rules of mode online, devices used again, and failures begun again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from guieval.actions import Click, ExecutableAction, Point
from guieval.errors import EnvironmentFailure
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.models.scored_response import failed_sample, read_response
from guieval.online import ABCDevice, ABCEnvironment, EnvironmentTask, Observation, Score
from guieval.online.attempt import MOST_UNPARSEABLE
from guieval.online.tasks import PROTOCOL, EnvironmentTasks
from guieval.playground.environments.icons import IconsEnvironment
from guieval.playground.icons.screens import generate_icon_episode
from guieval.registry import load_model
from guieval.steps import Outcome, Sample, StepOutcome
from guieval.training.acting import OnlineRollout, Stage
from guieval.training.settings import JudgeReward

MODEL = load_model("tiny-policy")
SCREEN = Observation("a goal", b"", (320, 640))
EVALUATOR = ActionEvaluator(get_protocol(PROTOCOL))


class Recorded(ABCDevice):
    """The icons demo's device, which counts and fails where it is made to."""

    def __init__(self, environment: RecordedIcons, device: ABCDevice) -> None:
        self.environment, self.device = environment, device

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        self.environment.seeds.append(seed)
        return await self.device.reset(task, seed)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        self.environment.carried += len(actions)
        if self.environment.carried in self.environment.fails_at:
            raise EnvironmentFailure("the screen is black")
        return await self.device.step(actions)

    async def score(self) -> Score:
        return await self.device.score()

    async def close(self) -> None:
        self.environment.closed += 1


class RecordedIcons(IconsEnvironment):
    def __init__(self, fails_at: Sequence[int] = ()) -> None:
        super().__init__()
        self.fails_at, self.seeds = fails_at, list[int]()
        self.carried = self.opened = self.closed = 0

    async def open(self) -> ABCDevice:
        self.opened += 1
        return Recorded(self, await super().open())


def rollouts(environment: ABCEnvironment, *seeds: int, max_steps: int | None = None) -> list[OnlineRollout]:
    tasks = EnvironmentTasks(Path("screens"), environment, max_steps)
    task = tasks.load(tasks.index()[0])
    return [OnlineRollout(tasks, task, seed) for seed in seeds]


def rolled(stage: Stage, all_: Sequence[OnlineRollout], reply: Callable[[OnlineRollout], str]) -> None:
    stage.advance(all_)
    while waiting := [rollout for rollout in all_ if not rollout.over]:
        for rollout in waiting:
            assert rollout.shown is not None
            text = reply(rollout)
            rollout.tell(read_response(MODEL, EVALUATOR, rollout.shown, text), payload=text)
        stage.advance(waiting)


def right(rollout: OnlineRollout) -> str:
    episode = generate_icon_episode(0, 0, "test")
    index = len(rollout.attempt.history)
    assert rollout.shown is not None
    return MODEL.render(rollout.shown, Click(point=episode.screens[index].find(episode.goal[index]).centre), None, None)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "screens", 20.0)


def test_right_replies_are_a_success(stage: Stage, tmp_path: Path) -> None:
    environment = RecordedIcons()
    one, other = rollouts(environment, 3, 4)
    rolled(stage, [one, other], right)
    assert one.outcome is not None and one.outcome == other.outcome
    assert one.outcome.ended == "success" and one.outcome.steps == len(one.payloads) == len(one.samples)
    assert environment.seeds == [3, 4]
    assert {file.name for file in stage.screens.iterdir()} >= {entry.task.screenshot for entry in one.attempt.history}
    (rollout,) = rollouts(environment, 0)
    rolled(Stage(tmp_path, 20.0, every_step=True), [rollout], right)  # the judge is asked after every step
    assert rollout.outcome is not None and rollout.outcome.steps
    n = rollout.outcome.steps
    assert rollout.progress == [(step + 1) / n for step in range(n)]


def test_devices_are_used_again_but_not_for_other_options_and_closed_at_the_end(stage: Stage) -> None:
    one, other = RecordedIcons(), RecordedIcons()
    other.split = "train"
    for environment in (one, other):
        (rollout,) = rollouts(environment, 0)
        stage.advance([rollout])
        assert rollout.observation is not None
        assert rollout.observation.goal == environment.tasks()[0].goal
        while not rollout.over:
            assert rollout.shown is not None
            rollout.tell(read_response(MODEL, EVALUATOR, rollout.shown, "no idea"))
            stage.advance([rollout])
    assert (one.opened, other.opened) == (1, 1) and one.tasks()[0].goal != other.tasks()[0].goal
    used = RecordedIcons()
    for seed in range(3):
        rolled(stage, rollouts(used, seed, seed), right)
    assert (used.opened, used.closed) == (2, 0)
    stage.close()
    stage.close()
    assert used.closed == 2


def test_a_failed_environment_begins_again_and_one_that_always_fails_is_given_up(stage: Stage) -> None:
    environment = RecordedIcons(fails_at=[2])
    (rollout,) = rollouts(environment, 0)
    rolled(stage, [rollout], right)
    assert rollout.outcome is not None and rollout.outcome.ended == "success"
    assert rollout.outcome.steps == len(rollout.payloads)  # none of the attempt that failed
    assert (environment.opened, environment.closed) == (2, 1)
    environment = RecordedIcons(fails_at=range(100))
    (rollout,) = rollouts(environment, 0)
    rolled(stage, [rollout], right)
    assert rollout.outcome is None and rollout.failure == "the screen is black" and rollout.payloads == []
    assert (environment.opened, environment.closed) == (3, 3)


def test_unparseable_replies_the_step_limit_and_bugs_end_a_rollout(stage: Stage) -> None:
    (rollout,) = rollouts(RecordedIcons(), 0, max_steps=10)
    rolled(stage, [rollout], lambda _: "no idea")
    assert rollout.outcome is not None and rollout.outcome.ended == "unparseable"
    assert rollout.outcome.unparseable == rollout.outcome.steps == MOST_UNPARSEABLE
    (rollout,) = rollouts(RecordedIcons(), 0, max_steps=2)
    beside = Click(point=Point(1.0, 999.0))
    rolled(stage, [rollout], lambda each: MODEL.render(each.attempt.shown(SCREEN, "a.png"), beside, None, None))
    assert rollout.outcome is not None and rollout.outcome.ended == "step limit" and rollout.outcome.steps == 2
    (rollout,) = rollouts(RecordedIcons(), 0)
    stage.advance([rollout])
    rollout.tell(failed_sample("parse", "KeyError: 'x'", raw_response="click"))
    stage.advance([rollout])
    assert rollout.over and rollout.outcome is None and rollout.failure == "KeyError: 'x'"
    assert Sample(outcome=StepOutcome(verdict="infrastructure_failure", reason="none")).actions == ()


def test_the_reward_by_hand_of_a_rollout_and_of_each_step() -> None:
    success = Outcome(ended="success", score=Score(success=True, progress=1.0), steps=4)
    score = Score(success=False, progress=0.4, side_effects=("deleted",))
    failure = Outcome(ended="step limit", score=score, steps=5, unparseable=2)
    for reward, expected in (
        (JudgeReward(), (1.0, 0.0)),
        (JudgeReward(success=2.0, progress=0.5), (2.5, 0.2)),
        (JudgeReward(progress=1.0, side_effects=0.25, unreadable=0.5), (2.0, 0.4 - 0.25 - 0.5 * 2)),
    ):
        assert (reward.of(success), reward.of(failure)) == pytest.approx(expected)
    outcome = Outcome(ended="failed", score=score.model_copy(update={"progress": 0.5}), steps=4, unparseable=1)
    readable, progress = [True, False, True, True], [0.25, 0.25, 0.75, 0.5]
    every = JudgeReward(success=1.0, progress=2.0, side_effects=0.1, unreadable=0.3, every_step=True)
    assert every.of_steps(outcome, readable, progress) == pytest.approx([0.5, -0.3, 1.0, -0.5 - 0.1])
    once = every.model_copy(update={"every_step": False})
    assert once.of_steps(outcome, readable, [0.5]) == pytest.approx([0.0, -0.3, 0.0, 1.0 - 0.1])
    for reward in (every, once):
        assert sum(reward.of_steps(outcome, readable, progress)) == pytest.approx(reward.of(outcome))
