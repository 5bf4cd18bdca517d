"""Algorithm 1 step by step, its patches, and one policy rolled out here and by ``guieval run``: same prompts and records."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Press, Scroll
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history import HistoryEntry, patched_entry, recalled, reference_entry
from guieval.history.modes import PATCH_METHODS, PatchMethod, PatchPolicy, after
from guieval.journal import RunFolder
from guieval.models import Message, ModelConfig, ModelInput, Response
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought, thought_prompt
from guieval.models.scored_response import failed_sample, read_response
from guieval.models.written_prompts import example_episode
from guieval.registry import load_model, model_config
from guieval.rewards.advantages import Trajectory
from guieval.rewards.patches import OffPolicyThoughts, OnPolicyThoughts, ThoughtSource, finish_patch
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.settings import RunConfig
from guieval.steps import Episode, Patch, Sample, StepRecord, StepTaskModel
from tests.checkpoints import of_each_kind
from tests.rows import every_row
from tests.scripted import ACTIONS, CLICK, ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, runner_of

HOME = Press(button="HOME")
EPISODE = make_episode("a", ACTIONS)
JUDGE = ActionEvaluator("guievalkit")
BUDGETS = (0, 1, 2, None)


def answered(task: StepTaskModel, *, right: bool = True, thought: str = "mine") -> Sample:
    text = reply_with(task.action if right else HOME, thought)
    return read_response(scripted(), JUDGE, task, text)


def scripted(kind: type[ScriptedModel] = ScriptedModel) -> ScriptedModel:
    return kind(ModelConfig(name="scripted", adapter="scripted"))


def rolled_out(rights: str, policy: PatchPolicy, *, counted: list[int] | None = None) -> SemiOnlineRollout:
    """A rollout of as many answers as it takes, ``+`` right and ``-`` wrong by the step's index."""
    rollout = SemiOnlineRollout(EPISODE, policy, counted=counted)
    while rollout.state != "over":
        if rollout.state == "patch":
            rollout.patch(f"thought {rollout.task.step_index}")
        else:
            rollout.tell(answered(rollout.task, right=rights[rollout.task.step_index] == "+"))
    return rollout


def test_a_rollout_with_tries_stays_at_a_screen_and_its_progress_is_that_of_the_run() -> None:
    rollout = SemiOnlineRollout(EPISODE, tries=2)
    assert rollout.tell(answered(rollout.task, right=False)) is None and rollout.progress == 0
    assert [entry.action for entry in rollout.history] == [HOME]
    step = rollout.tell(answered(rollout.task))
    assert step is not None and step.matched and [entry.action for entry in rollout.history] == [ACTIONS[0]]
    for _ in range(2):
        rollout.tell(answered(rollout.task, right=False))
    assert rollout.state == "over" and (rollout.progress, rollout.succeeded) == (0.25, False)
    with pytest.raises(ValueError, match="no patches"):
        SemiOnlineRollout(EPISODE, PatchPolicy("thought-free", 1), tries=2)


def test_what_follows_a_step_is_algorithm_1() -> None:
    one = PatchPolicy("thought-free", 1)
    assert [after(True, used, one) for used in (0, 1)] == ["advance", "advance"]
    assert [after(False, used, one) for used in (0, 1)] == ["patch", "end"]
    assert after(False, 10**6, PatchPolicy("thought-free", None)) == "patch"
    assert after(False, 0, PatchPolicy("thought-free", 0)) == "end"
    assert after(False, 0, PatchPolicy()) == after(False, 0, PatchPolicy("none", None)) == "end"
    with pytest.raises(UsageError, match=r"unknown patch method 'thoughtfree' .did you mean 'thought-free'"):
        PatchPolicy("thoughtfree", 1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the patch budget is -1: expected a whole number from 0, or unlimited"):
        PatchPolicy("thought-free", -1)


@every_row(
    ("rights", "budget", "asked", "patched"),
    [
        *[("++++", 0, 4, []), ("+-++", 0, 2, []), ("+-++", 1, 4, [1]), ("+--+", 1, 3, [1]), ("----", 2, 3, [0, 1])],
        *[("----", None, 4, [0, 1, 2, 3]), ("+++-", 1, 4, [3]), ("+++-", 0, 4, [])],
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


def test_own_outputs_stay_patches_replace_them_and_only_counted_steps_are_asked() -> None:
    rollout = rolled_out("+-+-", PatchPolicy("off-policy", None))
    own, patched, again, last = rollout.history
    assert (own.origin, own.thought, own.raw_response) == ("model", "mine", rollout.steps[0].sample.raw_response)
    assert (patched.origin, patched.thought, patched.raw_response) == ("reference", "thought 1", None)
    assert patched.action == EPISODE.steps[1].action != rollout.steps[1].sample.action == HOME
    assert again.origin == "model"
    assert last.thought is None and rollout.steps[3].patched  # nobody would see the thought of the last step's patch
    assert [step.thought for step in rollout.steps] == [None, "thought 1", None, None]
    rollout = rolled_out("++-+", PatchPolicy("thought-free", 1), counted=[1, 3])
    assert [step.task.step_index for step in rollout.steps] == [1, 3] and rollout.succeeded
    assert [entry.origin for entry in rollout.history] == ["reference", "model", "reference", "model"]
    for counted in ([], [1, 0], [1, 1], [4], [-1]):
        with pytest.raises(ValueError, match="step"):
            SemiOnlineRollout(EPISODE, counted=counted)
    # as a trajectory
    rollout = rolled_out("+-+-", PatchPolicy("thought-free", 1))
    for step in rollout.steps:
        step.reward = 1.0 if step.matched else 0.5
    assert Trajectory.of("u", rollout.steps) == Trajectory("u", (0, 1, 2, 3), (1.0, 0.5, 1.0, 0.5), (True, False, True, False))


def test_a_patch_that_waits_and_one_that_does_not_and_an_answer_that_was_not_measured() -> None:
    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("thought-free", 1))
    step = rollout.tell(answered(rollout.task, right=False), reward=0.1, payload="p")
    assert step is not None
    assert (rollout.state, step.patched, step.reward, step.payload) == ("ask", True, 0.1, "p")
    assert rollout.task == EPISODE.steps[1] and rollout.history[0].thought is None
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
    # an answer that was not measured ends the rollout and costs no patch
    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("thought-free", None))
    step = rollout.tell(failed_sample("generate", "nobody there"))
    assert step is not None
    assert (rollout.state, rollout.patches_used) == ("over", 0) and not (step.patched or step.matched or rollout.succeeded)
    with pytest.raises(ValueError, match="is over"):
        _ = rollout.task


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
            assert step is not None
            finish_patch(rollout, thoughts)
            assert patches.method != "none"
            patch = Patch(method=patches.method, thought=step.thought) if step.patched else None
            origins = tuple(entry.origin for entry in past)
            records.append(StepRecord(task=task, history=origins, samples=(step.sample,), patch=patch))
    return records


def by_run(folder: Path, episodes: list[Episode], patches: PatchPolicy, policy: Policy, counted: list[int]) -> list[StepRecord]:
    """The same through the real runner, one request at a time."""
    engine = ScriptedEngine(lambda request: policy(request.task, request.input))
    chosen = folder.with_suffix(".txt")
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
    run = runner_of(config, folder, ListBenchmark(episodes), scripted(), engine, 1, thoughts=engine)
    run.execute(resume=False)
    return [timeless(record) for record in RunFolder(folder).records]


def timeless(record: StepRecord) -> StepRecord:
    samples = tuple(sample.model_copy(update={"seconds": None}) for sample in record.samples)
    return record.model_copy(update={"samples": samples})


@every_row("budget", BUDGETS)
@every_row("method", METHODS)
@every_row("counted", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 5]], ids=["whole", "chosen"])
def test_training_and_evaluation_are_alike(tmp_path: Path, method: PatchMethod, budget: int | None, counted: list[int]) -> None:
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


def test_prompts_and_readings_are_the_evaluations_and_nobody_is_asked_where_no_patch_waits() -> None:
    """What OnPolicyThoughts and OffPolicyThoughts ask is what a run asks; what they read is what a run reads."""
    model, asked = scripted(), []

    def generate(shown: ModelInput) -> str:
        asked.append(shown)
        return "<think> so </think>"

    task = EPISODE.steps[1]
    past = rolled_out("++++", PatchPolicy()).history[:1]
    assert OnPolicyThoughts(model, generate)(task, past) == "so" == read_thought("<think> so </think>", task=task)
    assert OffPolicyThoughts(generate)(task, past) == "so"
    assert asked == [on_policy_input(model, task, past), off_policy_input(task)]

    def never(task: StepTaskModel, past: object) -> str | None:
        raise AssertionError("asked")

    rollout = SemiOnlineRollout(EPISODE, PatchPolicy("on-policy", 1))
    finish_patch(rollout, never)
    assert rollout.state == "ask"


TASK = EPISODE.steps[0]
PAST = tuple(map(reference_entry, example_episode().steps[:2]))
STEP = example_episode().steps[2]


class Beginning(ScriptedModel):
    """A family whose prompt ends with a begun answer, and needs a request field for that."""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        messages = super().prepare_input(task, history).messages
        extra = {"continue_final_message": True, "chat_template_kwargs": {"enable_thinking": False}}
        return ModelInput((*messages, Message("assistant", ("Action: ",))), prefill=True, extra=extra)


def test_a_patch_is_recalled_as_it_was_and_without_a_thought_leaves_what_soeval_shows() -> None:
    assert patched_entry(TASK, None) == patched_entry(TASK, "") == reference_entry(TASK)
    with_thought = patched_entry(TASK, "I tap.")
    assert (with_thought.thought, with_thought.origin, with_thought.raw_response) == ("I tap.", "reference", None)
    assert (with_thought.action, with_thought.conclusion) == (TASK.action, reference_entry(TASK).conclusion)
    for method in ("thought-free", "off-policy", "on-policy"):
        patch = Patch.model_validate({"method": method, "thought": None if method == "thought-free" else "why"})
        record = StepRecord(task=TASK, samples=(failed_sample("parse", "x"),), patch=patch)
        again = StepRecord.model_validate_json(record.model_dump_json())
        assert again == record and recalled("model", TASK, again) == patched_entry(TASK, patch.thought)
    # a line without a patch is the one that was always written
    record = StepRecord(task=TASK, samples=(failed_sample("parse", "x"),))
    assert list(record.model_dump()) == ["task", "history", "samples"] and '"patch"' not in record.model_dump_json()
    assert StepRecord.model_validate_json(record.model_dump_json()) == record


def test_a_policy_is_asked_with_its_own_messages_and_the_papers_prompt() -> None:
    """Appendix I's system prompt, the adapter's user's turn with its screenshot, the action as the family writes it."""
    model = load_model("qwen2.5-vl-7b")
    own, asked = model.prepare_input(STEP, PAST), on_policy_input(model, STEP, PAST)
    system, user = asked.messages
    assert system == Message("system", (thought_prompt().replace("{instruction}", STEP.instruction),))
    assert user.parts[:-1] == own.messages[1].parts and asked.images == own.images
    assert user.parts[-1] == f"\n\nNext Action Hint: {model.render(STEP, STEP.action)}"
    # Sentences of appendix I, word for word, its slips included, and one place for the goal.
    prompt = thought_prompt()
    for sentence in (
        "Write the thought process from a global goal, the action history, thought history and screenshot history.",
        'phrased as "According to the requirements, determine..."',
        "conceal the fact that hints were received.",
        "Please integration the thought of current manager and operation into <think> ... </think> in English.",
    ):
        assert sentence in prompt
    assert prompt.count("{instruction}") == 1 and not prompt.startswith("#")
    # M0(I, a*, S): no history (Table 5), and nothing in a family's own form.
    task = TASK.model_copy(update={"action": Scroll(point=TASK.action.point, direction="up")})  # type: ignore[union-attr]
    aided = off_policy_input(task)
    assert [message.role for message in aided.messages] == ["system", "user"]
    assert [image.task for image in aided.images] == [task] and aided.images[0].resize is None
    assert aided.messages[1].parts[1] == "Next Action Hint: Swipe up." and task.instruction in aided.text


@every_row("name", lambda: [name for name in of_each_kind() if model_config(name).engine == "openai"])
def test_every_family_can_be_asked(name: str) -> None:
    """Turns for the past, no system prompt, thinking, or whatever it is: one system prompt first, a user's hint last."""
    model = load_model(name)
    asked, own = on_policy_input(model, STEP, PAST), model.prepare_input(STEP, PAST)
    roles = [message.role for message in asked.messages]
    assert roles[0] == "system" and roles.count("system") == 1 and roles[-1] == "user" and not asked.prefill
    assert asked.images == own.images and "Next Action Hint: " in str(asked.messages[-1].parts[-1])
    assert not {"tools", "tool_choice"} & asked.extra.keys()  # a model made to call a function cannot write a thought


def test_a_begun_answer_is_no_part_of_the_question_and_what_cannot_be_written_is_hinted_in_words() -> None:
    asked = on_policy_input(scripted(Beginning), TASK, ())
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert not asked.prefill and asked.extra == {"chat_template_kwargs": {"enable_thinking": False}}
    swiping = TASK.model_copy(update={"action": Press(button="HOME")})

    class Clicking(ScriptedModel):
        def render(self, task: StepTaskModel, action: object, thought: str | None = None, conclusion: str | None = None) -> str:
            raise ValueError("no button")

    assert on_policy_input(scripted(Clicking), swiping, ()).text.endswith("Next Action Hint: Press the home button.")


@every_row(
    ("text", "reasoning", "thought"),
    [
        *[("<think>\nTap it.\n</think>", None, "Tap it."), ("Sure!\n<think>Tap it.</think> Done.", None, "Tap it.")],
        *[("<thinking>Tap it.</thinking>", None, "Tap it."), ("Tap it.</think>", None, "Tap it.")],
        *[("<think>Tap it, for", None, "Tap it, for"), ("Tap it.", None, "Tap it."), ("", "Tap it.", "Tap it.")],
        *[("<think>Tap it.</think>", "They gave a hint.", "Tap it."), ("<think> </think>", None, None), ("  ", None, None)],
    ],
)
def test_a_thought_is_what_stands_between_the_tags(text: str, reasoning: str | None, thought: str | None) -> None:
    assert read_thought(Response(text, reasoning), task=TASK) == thought


def test_a_policy_may_answer_in_its_own_form() -> None:
    """Then its thought is the thought; its action is not, and is not part of the history."""
    model = scripted()
    with_thought, without = (model.render(TASK, TASK.action, thought) for thought in ("so", None))
    assert read_thought(with_thought, model=model, task=TASK) == "so"
    assert read_thought(without, model=model, task=TASK) is None
    assert read_thought("plain words", model=model, task=TASK) == "plain words"
    # half an emoji can be stored
    half = read_thought("<think>ok \ud83d</think>", task=TASK)
    assert Patch(method="on-policy", thought=half).model_dump_json()
