"""Algorithm 1 step by step, and the same policy rolled out here and run by ``guieval run``: same prompts, same records."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Press
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import PATCH_METHODS, PatchMethod, PatchPolicy, after
from guieval.journal import RunFolder
from guieval.models import ModelConfig, ModelInput
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought
from guieval.models.scored_response import failed_sample, read_response
from guieval.rewards.advantages import Trajectory
from guieval.rewards.patches import OffPolicyThoughts, OnPolicyThoughts, ThoughtSource, finish_patch
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.running.config import RunConfig
from guieval.steps import Episode, Patch, Sample, StepRecord, StepTaskModel
from tests.rows import every_row
from tests.scripted import ACTIONS, CLICK, ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, runner_of

HOME = Press(button="HOME")
EPISODE = make_episode("a", ACTIONS)
JUDGE = ActionEvaluator("guievalkit")
BUDGETS = (0, 1, 2, None)


def answered(task: StepTaskModel, *, right: bool = True, thought: str = "mine") -> Sample:
    text = reply_with(task.action if right else HOME, thought)
    return read_response(scripted(), JUDGE, task, text)


def scripted() -> ScriptedModel:
    return ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))


def rolled_out(rights: str, policy: PatchPolicy, *, counted: list[int] | None = None) -> SemiOnlineRollout:
    """A rollout of as many answers as it takes, ``+`` right and ``-`` wrong by the step's index."""
    rollout = SemiOnlineRollout(EPISODE, policy, counted=counted)
    while rollout.state != "over":
        if rollout.state == "patch":
            rollout.patch(f"thought {rollout.task.step_index}")
        else:
            rollout.tell(answered(rollout.task, right=rights[rollout.task.step_index] == "+"))
    return rollout


def test_what_follows_a_step_is_algorithm_1() -> None:
    one = PatchPolicy("thought-free", 1)
    assert [after(True, used, one) for used in (0, 1)] == ["advance", "advance"]
    assert [after(False, used, one) for used in (0, 1)] == ["patch", "end"]
    assert after(False, 10**6, PatchPolicy("thought-free", None)) == "patch"
    assert after(False, 0, PatchPolicy("thought-free", 0)) == "end"
    assert after(False, 0, PatchPolicy()) == after(False, 0, PatchPolicy("none", None)) == "end"


@every_row(
    ("rights", "budget", "asked", "patched"),
    [
        ("++++", 0, 4, []),
        ("+-++", 0, 2, []),
        ("+-++", 1, 4, [1]),
        ("+--+", 1, 3, [1]),
        ("----", 2, 3, [0, 1]),
        ("----", None, 4, [0, 1, 2, 3]),
        ("+++-", 1, 4, [3]),
        ("+++-", 0, 4, []),
    ],
)
@every_row("method", ["thought-free", "off-policy"])
def test_a_rollout_ends_at_the_first_mismatch_that_no_patch_is_left_for(
    rights: str, budget: int | None, asked: int, patched: list[int], method: PatchMethod
) -> None:
    rollout = rolled_out(rights, PatchPolicy(method, budget))
    assert [step.task.step_index for step in rollout.steps] == list(range(asked))
    assert [step.task.step_index for step in rollout.steps if step.patched] == patched
    assert [step.matched for step in rollout.steps] == [each == "+" for each in rights[:asked]]
    assert rollout.patches_used == len(patched)
    assert rollout.succeeded == (rights == "++++")


def test_own_outputs_stay_and_patches_replace_them() -> None:
    rollout = rolled_out("+-+-", PatchPolicy("off-policy", None))
    own, patched, again, last = rollout.history
    assert (own.origin, own.thought, own.raw_response) == ("model", "mine", rollout.steps[0].sample.raw_response)
    assert (patched.origin, patched.thought, patched.raw_response) == ("reference", "thought 1", None)
    assert patched.action == EPISODE.steps[1].action != rollout.steps[1].sample.action == HOME
    assert again.origin == "model"
    assert last.thought is None and rollout.steps[3].patched  # nobody would see the thought of the last step's patch
    assert [step.thought for step in rollout.steps] == [None, "thought 1", None, None]


def test_a_thought_free_patch_waits_for_nobody() -> None:
    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("thought-free", 1))
    step = rollout.tell(answered(rollout.task, right=False), reward=0.1, payload="p")
    assert (rollout.state, step.patched, step.reward, step.payload) == ("ask", True, 0.1, "p")
    assert rollout.task == EPISODE.steps[1] and rollout.history[0].thought is None


def test_state_patch_is_about_the_step_that_was_missed() -> None:
    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("on-policy", 1))
    rollout.tell(answered(rollout.task))
    rollout.tell(answered(rollout.task, right=False))
    assert (rollout.state, rollout.task, len(rollout.history)) == ("patch", EPISODE.steps[1], 1)
    with pytest.raises(ValueError, match="its state is 'patch'"):
        rollout.tell(answered(rollout.task))
    rollout.patch()  # a thought that could not be had: as thought-free
    assert (rollout.state, rollout.task, rollout.history[1].thought) == ("ask", EPISODE.steps[2], None)
    with pytest.raises(ValueError, match="its state is 'ask'"):
        rollout.patch("late")


def test_an_answer_that_was_not_measured_ends_the_rollout_and_costs_no_patch() -> None:
    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("thought-free", None))
    step = rollout.tell(failed_sample("generate", "nobody there"))
    assert (rollout.state, rollout.patches_used, step.patched, step.matched, rollout.succeeded) == (
        "over",
        0,
        False,
        False,
        False,
    )
    with pytest.raises(ValueError, match="is over"):
        _ = rollout.task


def test_only_the_counted_steps_are_asked() -> None:
    rollout = rolled_out("++-+", PatchPolicy("thought-free", 1), counted=[1, 3])
    assert [step.task.step_index for step in rollout.steps] == [1, 3] and rollout.succeeded
    assert [entry.origin for entry in rollout.history] == ["reference", "model", "reference", "model"]
    for counted in ([], [1, 0], [1, 1], [4], [-1]):
        with pytest.raises(ValueError, match="step"):
            SemiOnlineRollout(EPISODE, counted=counted)


@given(st.text("+-", min_size=4, max_size=4), st.sampled_from(BUDGETS))
def test_a_larger_budget_only_prolongs_a_rollout(rights: str, budget: int | None) -> None:
    """The answers being the same: what was asked stays the same, and as many mismatches are met as budget + 1 allows."""
    policy = PatchPolicy("thought-free", budget)
    rollout, whole = rolled_out(rights, policy), rolled_out(rights, PatchPolicy("thought-free", None))
    assert [step.sample for step in rollout.steps] == [step.sample for step in whole.steps][: len(rollout.steps)]
    missed = sum(not step.matched for step in rollout.steps)
    assert missed == min(rights.count("-"), policy.allowed + 1)
    assert rollout.patches_used == min(missed, policy.allowed)
    assert rollout.succeeded == whole.succeeded == ("-" not in rights)


def test_a_rollout_becomes_a_trajectory() -> None:
    rollout = rolled_out("+-+-", PatchPolicy("thought-free", 1))
    for step in rollout.steps:
        step.reward = 1.0 if step.matched else 0.5
    assert Trajectory.of("u", rollout.steps) == Trajectory("u", (0, 1, 2, 3), (1.0, 0.5, 1.0, 0.5), (True, False, True, False))


def test_an_impossible_policy_is_reported() -> None:
    with pytest.raises(UsageError, match=r"unknown patch method 'thoughtfree' .did you mean 'thought-free'"):
        PatchPolicy("thoughtfree", 1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the patch budget is -1: expected a whole number from 0, or unlimited"):
        PatchPolicy("thought-free", -1)


Asked = list[tuple[Literal["step", "thought"], ModelInput]]
METHODS = tuple(method for method in PATCH_METHODS if method != "none")


class Policy:
    """Right or wrong by its prompt; its thoughts tell which prompt that was, so no two histories look alike."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.asked: Asked = []

    def __call__(self, task: StepTaskModel, shown: ModelInput) -> str:
        if shown.messages[0].role == "system":  # a scripted model has no system prompt of its own
            self.asked.append(("thought", shown))
            return f"<think>because of {crc32(shown.text.encode())}</think>"
        self.asked.append(("step", shown))
        seen = crc32(f"{self.seed} {task.key} {shown.text}".encode())
        if seen % 7 == 0:
            return "no action at all"
        return reply_with(task.action if random.Random(seen).random() < 0.6 else HOME, f"thought {seen}")


def by_rollout(episodes: list[Episode], patches: PatchPolicy, policy: Policy, counted: list[int]) -> list[StepRecord]:
    """Algorithm 1 by hand: ask, judge, tell, patch."""
    model = scripted()
    records = []
    for episode in episodes:
        rollout = SemiOnlineRollout(episode, patches, counted=counted)
        task = episode.steps[0]

        def generate(shown: ModelInput) -> str:
            return policy(task, shown)  # noqa: B023  # asked within the same turn of the loop

        thoughts: ThoughtSource = OnPolicyThoughts(model, generate)
        if patches.method == "off-policy":
            thoughts = OffPolicyThoughts(generate)
        while rollout.state == "ask":
            task, past = rollout.task, rollout.history
            text = policy(task, model.prepare_input(task, past))
            step = rollout.tell(read_response(model, JUDGE, task, text))
            finish_patch(rollout, thoughts)
            assert patches.method != "none"
            patch = Patch(method=patches.method, thought=step.thought) if step.patched else None
            origins = tuple(entry.origin for entry in past)
            records.append(StepRecord(task=task, history=origins, samples=(step.sample,), patch=patch))
    return records


def by_run(
    directory: Path, episodes: list[Episode], patches: PatchPolicy, policy: Policy, counted: list[int]
) -> list[StepRecord]:
    """The same through the real runner, one request at a time."""
    engine = ScriptedEngine(lambda request: policy(request.task, request.input))
    chosen = directory.with_suffix(".txt")
    chosen.write_text("\n".join(f"{episode.key.episode_id}#{index}" for episode in episodes for index in counted))
    config = RunConfig(
        model="scripted",
        bench="scripted",
        mode="sop",
        episodes=str(chosen),
        patch=patches.method,
        patch_budget="unlimited" if patches.budget is None else patches.budget,
        patch_model="aux" if patches.method == "off-policy" else None,
        patch_base_urls=("http://aux/v1",) if patches.method == "off-policy" else (),
    )
    run = runner_of(config, directory, ListBenchmark(episodes), scripted(), engine, 1, thoughts=engine)
    run.execute(resume=False)
    return [timeless(record) for record in RunFolder(directory).records]


def timeless(record: StepRecord) -> StepRecord:
    samples = tuple(sample.model_copy(update={"seconds": None}) for sample in record.samples)
    return record.model_copy(update={"samples": samples})


@every_row("budget", BUDGETS)
@every_row("method", METHODS)
@every_row("counted", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 5]], ids=["whole", "chosen"])
def test_training_and_evaluation_roll_out_alike(
    tmp_path: Path, method: PatchMethod, budget: int | None, counted: list[int]
) -> None:
    """The same policy, once driven by hand and once by a run: the same prompts word for word, and the same records."""
    episodes = [make_episode(f"e{number}", (*ACTIONS[:3], CLICK, *ACTIONS[2:])) for number in range(6)]
    for seed in range(3):
        here, there = Policy(seed), Policy(seed)
        patches = PatchPolicy(method, budget)
        ours = by_rollout(episodes, patches, here, counted)
        theirs = by_run(tmp_path / str(seed), episodes, patches, there, counted)
        order = sorted(theirs, key=lambda record: record.task.key)
        assert sorted(ours, key=lambda record: record.task.key) == order
        shown: Callable[[tuple[str, ModelInput]], str] = repr
        assert sorted(map(shown, here.asked)) == sorted(map(shown, there.asked))
        if budget and method != "thought-free":
            assert any(kind == "thought" for kind, _ in here.asked)


def test_prompts_and_readings_are_the_evaluations() -> None:
    """What OnPolicyThoughts and OffPolicyThoughts ask is what a run asks; what they read is what a run reads."""
    model, asked = scripted(), []

    def generate(shown: ModelInput) -> str:
        asked.append(shown)
        return "<think> so </think>"

    task = EPISODE.steps[1]
    rollout = rolled_out("++++", PatchPolicy())
    past = rollout.history[:1]
    assert OnPolicyThoughts(model, generate)(task, past) == "so" == read_thought("<think> so </think>", task=task)
    assert OffPolicyThoughts(generate)(task, past) == "so"
    assert asked == [on_policy_input(model, task, past), off_policy_input(task)]


def test_no_thought_is_asked_for_where_no_patch_waits() -> None:
    """finish_patch asks nobody where no patch is waited for."""

    def never(task: StepTaskModel, past: object) -> str | None:
        raise AssertionError("asked")

    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("on-policy", 1))
    finish_patch(rollout, never)
    assert rollout.state == "ask"
