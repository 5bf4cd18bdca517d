"""Patches: what a patched step leaves in the history, appendix I's prompt, and how a thought is read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from guieval.actions import Press, Scroll
from guieval.history import HistoryEntry, patched_entry, recalled, reference_entry
from guieval.models import Message, ModelConfig, ModelInput, Response
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought, thought_prompt
from guieval.models.scored_response import failed_sample
from guieval.models.written_prompts import example_episode
from guieval.registry import load_model, model_config
from guieval.steps import Patch, StepRecord, StepTaskModel
from tests.checkpoints import of_each_kind
from tests.rows import every_row
from tests.scripted import ACTIONS, ScriptedModel, make_episode

TASK = make_episode("a", ACTIONS).steps[0]
PAST = tuple(map(reference_entry, example_episode().steps[:2]))
STEP = example_episode().steps[2]


class Beginning(ScriptedModel):
    """A family whose prompt ends with a begun answer, and needs a request field for that."""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        messages = super().prepare_input(task, history).messages
        extra = {"continue_final_message": True, "chat_template_kwargs": {"enable_thinking": False}}
        return ModelInput((*messages, Message("assistant", ("Action: ",))), prefill=True, extra=extra)


def scripted(kind: type[ScriptedModel] = ScriptedModel) -> ScriptedModel:
    return kind(ModelConfig(name="scripted", adapter="scripted"))


def test_a_patch_without_a_thought_leaves_what_soeval_shows() -> None:
    assert patched_entry(TASK, None) == patched_entry(TASK, "") == reference_entry(TASK)
    with_thought = patched_entry(TASK, "I tap.")
    assert (with_thought.thought, with_thought.origin, with_thought.raw_response) == ("I tap.", "reference", None)
    assert (with_thought.action, with_thought.conclusion) == (TASK.action, reference_entry(TASK).conclusion)


@pytest.mark.parametrize("method", ["thought-free", "off-policy", "on-policy"])
def test_a_recorded_patch_is_recalled_as_it_was(method: str) -> None:
    patch = Patch.model_validate({"method": method, "thought": None if method == "thought-free" else "why"})
    record = StepRecord(task=TASK, samples=(failed_sample("parse", "x"),), patch=patch)
    again = StepRecord.model_validate_json(record.model_dump_json())
    assert again == record and recalled("model", TASK, again) == patched_entry(TASK, patch.thought)


def test_a_line_without_a_patch_is_the_one_that_was_always_written() -> None:
    record = StepRecord(task=TASK, samples=(failed_sample("parse", "x"),))
    assert list(record.model_dump()) == ["task", "history", "samples"] and '"patch"' not in record.model_dump_json()
    assert StepRecord.model_validate_json(record.model_dump_json()) == record


def test_the_prompt_is_the_papers() -> None:
    """Sentences of appendix I, word for word, its slips included, and one place for the goal."""
    prompt = thought_prompt()
    for sentence in (
        "Write the thought process from a global goal, the action history, thought history and screenshot history.",
        'phrased as "According to the requirements, determine..."',
        "conceal the fact that hints were received.",
        "Please integration the thought of current manager and operation into <think> ... </think> in English.",
    ):
        assert sentence in prompt
    assert prompt.count("{instruction}") == 1 and not prompt.startswith("#")


def test_the_policy_is_asked_with_its_own_messages_and_a_hint() -> None:
    """Appendix I's system prompt, the adapter's user's turn with its screenshot, the action as the family writes it."""
    model = load_model("qwen2.5-vl-7b")
    own, asked = model.prepare_input(STEP, PAST), on_policy_input(model, STEP, PAST)
    system, user = asked.messages
    assert system == Message("system", (thought_prompt().replace("{instruction}", STEP.instruction),))
    assert user.parts[:-1] == own.messages[1].parts and asked.images == own.images
    assert user.parts[-1] == f"\n\nNext Action Hint: {model.render(STEP, STEP.action)}"


@every_row("name", lambda: [name for name in of_each_kind() if model_config(name).engine == "openai"])
def test_every_family_can_be_asked(name: str) -> None:
    """Turns for the past, no system prompt, thinking, or whatever it is: one system prompt first, a user's hint last."""
    model = load_model(name)
    asked, own = on_policy_input(model, STEP, PAST), model.prepare_input(STEP, PAST)
    roles = [message.role for message in asked.messages]
    assert roles[0] == "system" and roles.count("system") == 1 and roles[-1] == "user" and not asked.prefill
    assert asked.images == own.images and "Next Action Hint: " in str(asked.messages[-1].parts[-1])
    assert not {"tools", "tool_choice"} & asked.extra.keys()  # a model made to call a function cannot write a thought


def test_a_begun_answer_is_no_part_of_the_question() -> None:
    asked = on_policy_input(scripted(Beginning), TASK, ())
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert not asked.prefill and asked.extra == {"chat_template_kwargs": {"enable_thinking": False}}


def test_what_a_family_cannot_write_is_hinted_in_words() -> None:
    swiping = TASK.model_copy(update={"action": Press(button="HOME")})

    class Clicking(ScriptedModel):
        def render(self, task: StepTaskModel, action: object, thought: str | None = None, conclusion: str | None = None) -> str:
            raise ValueError("no button")

    assert on_policy_input(scripted(Clicking), swiping, ()).text.endswith("Next Action Hint: Press the home button.")


def test_an_auxiliary_model_sees_the_goal_the_screenshot_and_the_action() -> None:
    """M0(I, a*, S): no history (Table 5), and nothing in a family's own form."""
    task = TASK.model_copy(update={"action": Scroll(point=TASK.action.point, direction="up")})  # type: ignore[union-attr]
    asked = off_policy_input(task)
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert [image.task for image in asked.images] == [task] and asked.images[0].resize is None
    assert asked.messages[1].parts[1] == "Next Action Hint: Swipe up." and task.instruction in asked.text


@every_row(
    ("text", "reasoning", "thought"),
    [
        ("<think>\nTap it.\n</think>", None, "Tap it."),
        ("Sure!\n<think>Tap it.</think> Done.", None, "Tap it."),
        ("<thinking>Tap it.</thinking>", None, "Tap it."),
        ("Tap it.</think>", None, "Tap it."),
        ("<think>Tap it, for", None, "Tap it, for"),
        ("Tap it.", None, "Tap it."),
        ("", "Tap it.", "Tap it."),
        ("<think>Tap it.</think>", "They gave a hint.", "Tap it."),
        ("<think> </think>", None, None),
        ("  ", None, None),
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


def test_half_an_emoji_can_be_stored() -> None:
    thought = read_thought("<think>ok \ud83d</think>", task=TASK)
    assert Patch(method="on-policy", thought=thought).model_dump_json()
