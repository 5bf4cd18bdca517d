from __future__ import annotations

import hashlib
from typing import Any

import pytest

from guieval.actions import Action, Answer, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef, Message
from guieval.registry import list_models, load_model, model_config

from .steps import CLICK, adapter, past, step

HIGH = step()
LOW = step(setting="low", low_level_instruction="Tap the switch")
GROUNDING = step(setting="grounding")
SAMPLE = (
    "Low-level thought: Click 'Get started' to open the setup screen for configuring audio recording settings.\n"
    'action: {"action_type":"click","x":539.5,"y":2148.0}'
)
"""The one sample the authors print."""


def test_the_high_level_prompt_after_the_image_with_its_history() -> None:
    (message,) = adapter("os_genesis").prepare_input(HIGH, past()).messages
    image, text = message.parts
    assert image == ImageRef(HIGH, None)
    assert text == (
        "\nYou are a GUI task expert, I will provide you with a high-level instruction, an action history, a screenshot "
        "with its corresponding accessibility tree.\n\nHigh-level instruction: Turn on Wi-Fi\nAction history: "
        'Step 1: Open the settings action: {"action_type":"open_app","app_name":"Settings"}\n'
        'Step 2: Thought 1 action: {"action_type":"type","text":"it\'s"}\n'
        "Accessibility tree: \n\nPlease generate the low-level thought and action for the next step."
    )


def test_the_low_level_prompt_states_goal_and_step_instruction() -> None:
    text = adapter("os_genesis").prepare_input(LOW, ()).text
    assert "        High-level instruction: Turn on Wi-Fi\n        Action history: \n" in text
    assert "        Low-level thought: Tap the switch\n" in text


def test_the_android_world_prompt() -> None:
    model = adapter("os_genesis", prompt="androidworld")
    assert model.prepare_input(HIGH, ()).text == (
        "\nYou are a GUI task expert, I will provide you with a high-level instruction, an action history, a screenshot "
        "with its corresponding accessibility tree.\n\nHigh-level instruction: Turn on Wi-Fi\n\nAction history: "
        "\n\nAccessibility tree: \n\nPlease generate the low-level thought and action for the next step."
    )
    assert "High-level instruction: Tap the switch\n" in model.prepare_input(LOW, ()).text


@pytest.mark.parametrize(
    ("prompt", "low", "digest", "empty"),
    [
        ("androidcontrol", False, "1e4b2317772f8cd2", "a11y_tree"),
        ("androidcontrol", True, "c4a2923825458e1d", "a11y_tree"),
        ("androidworld", False, "948d0765400a8bea", "accessibility_tree"),
    ],
)
def test_prompts_are_byte_exact(prompt: str, low: bool, digest: str, empty: str) -> None:
    """With the placeholders put back, each is the published text (first 16 digits of its SHA-256)."""
    task = step(setting="low" if low else "high", instruction="{instruction}", low_level_instruction="{step_instruction}")
    text = adapter("os_genesis", prompt=prompt).prepare_input(task, ()).text.removeprefix("\n")
    text = text.replace("Action history: ", "Action history: {history}")
    text = text.replace("Accessibility tree: ", f"Accessibility tree: {{{empty}}}")
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)


def test_history_in_words_and_without_what_the_format_lacks() -> None:
    own = HistoryEntry(step(step_index=1), CLICK, None, None, "raw", "model")
    recent = reference_entry(step(Press(button="RECENT")))
    text = adapter("os_genesis").prepare_input(HIGH, (own, recent)).text
    assert 'Step 1: Click at (540, 1800). action: {"action_type":"click","x":540.0,"y":1800.0}\n' in text
    assert "Step 2: Press the recent button.\nAccessibility" in text
    assert "Step" not in adapter("os_genesis").prepare_input(GROUNDING, past()).text.replace("next step", "")


def test_the_image_limit_of_the_7b() -> None:
    # qwen2vl_inference.py: max_pixels 1024 * 1024, on 1080 x 2400 that is sqrt(1080 * 2400 / 1048576) = 1.572 times smaller
    assert load_model("os-genesis-7b-ac").prepare_input(HIGH, ()).images == (ImageRef(HIGH, (672, 1512)),)
    assert load_model("os-genesis-8b-ac").prepare_input(HIGH, ()).images == (ImageRef(HIGH, None),)


def test_points_are_pixels_of_the_screenshot_itself() -> None:
    model = load_model("os-genesis-7b")
    assert model.render(HIGH, CLICK, "a") == 'Low-level thought: a\naction: {"action_type":"click","x":540.0,"y":1800.0}'
    parsed = model.parse_response(HIGH, SAMPLE)
    assert parsed.action == Click(point=Point(539.5 / 1.08, 2148.0 / 2.4))
    assert parsed.thought == "Click 'Get started' to open the setup screen for configuring audio recording settings."
    third_party = adapter("os_genesis", coordinates="thousandths")
    assert third_party.parse_response(HIGH, '{"action_type":"click","x":500,"y":750}').action == CLICK


def test_a_fixed_thought_is_the_begun_reply() -> None:
    request = adapter("os_genesis").prepare_fixed_thought(HIGH, (), "I see it.")
    assert request.messages[-1] == Message("assistant", ("Low-level thought: I see it.\naction:",))
    assert request.prefill


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (LongPress(point=Point(500, 750)), '{"action_type":"long_press","x":540.0,"y":1800.0}'),
        (Type(text='a "b"'), '{"action_type":"type","text":"a \\"b\\""}'),
        (Scroll(point=Point(500, 500), direction="up"), '{"action_type":"scroll","direction":"down"}'),
        (Open(app="Maps"), '{"action_type":"open_app","app_name":"Maps"}'),
        (Press(button="BACK"), '{"action_type":"navigate_back"}'),
        (Press(button="HOME"), '{"action_type":"navigate_home"}'),
        (Press(button="ENTER"), '{"action_type":"keyboard_enter"}'),
        (Wait(), '{"action_type":"wait"}'),
        (Stop(), '{"action_type":"status","goal_status":"successful"}'),
        (Stop(status="impossible"), '{"action_type":"status","goal_status":"infeasible"}'),
    ],
)
def test_calls_both_ways(action: Action, call: str) -> None:
    model = adapter("os_genesis")
    assert model.render(HIGH, action) == f"action: {call}"
    assert model.parse_response(HIGH, f"action: {call}").action == action


def test_scroll_words_can_be_the_fingers() -> None:
    model = adapter("os_genesis", scroll_words="finger")
    assert model.render(HIGH, Scroll(point=Point(500, 500), direction="up")).endswith('"direction":"up"}')


CALL = '{"action_type":"click","x":540.0,"y":1800.0}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"action:{CALL}", id="no blank"),
        pytest.param(f"Low-level thought: a\n{CALL}", id="no label, as the scorer allows"),
        pytest.param(f"Low-level thought: a\nAction: {CALL}", id="capital letter"),
        pytest.param(f"**Low-level thought:** a\n**action:** {CALL}", id="bold labels"),
        pytest.param(f"Low-level thought: a\naction：{CALL}", id="full-width colon"),
        pytest.param(f"action: ```json\n{CALL}\n```", id="fence"),
        pytest.param(f"action: [{CALL}]", id="list of one"),
        pytest.param("action: {'action_type': 'click', 'x': 540.0, 'y': 1800.0}", id="single quotes"),
        pytest.param('action: {"action_type":"click","x":"540","y":"1800"}', id="numbers as text"),
        pytest.param('action: {"action_type":"click","x":540.0,"y":1800.0 ', id="unclosed object"),
        pytest.param(f'action: {CALL}\naction: {{"action_type":"wait"}}', id="several actions"),
        pytest.param(f"action: {CALL}<|im_end|>", id="special token, kept by the authors' decoding"),
        pytest.param(f"action: {CALL}\nThen the list opens.", id="trailing prose"),
        pytest.param(f" {CALL}", id="continued turn"),
    ],
)
def test_tolerances(text: str) -> None:
    assert adapter("os_genesis").parse_response(HIGH, text).action == CLICK


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('{"action_type":"input_text","text":"a","x":1,"y":2}', Type(text="a")),
        ('{"action_type":"status","goal_status":"complete"}', Stop()),
        (
            '{"action_type":"answer","text":"42"}',
            Unsupported(name="answer", arguments={"text": "42"}, device=Answer(text="42")),
        ),
        ('{"action_type":"dismiss"}', Unsupported(name="dismiss")),
    ],
)
def test_further_words(call: str, expected: Action) -> None:
    assert adapter("os_genesis").parse_response(HIGH, f"action: {call}").action == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Low-level thought: click the switch", "no action"),
        ("action: click", "no action"),
        ("action: {}", "is not an action"),
        ('action: {"x": 1, "y": 2}', "is not an action"),
        ('action: {"action_type":"click","x":540.0}', "lacks 'y'"),
        ('action: {"action_type":"click","x":540.0,"y":18', "no readable JSON"),
        ('action: {"action_type":"click","x":1540.0,"y":1800.0}', "outside"),
        ('action: {"action_type":"scroll"}', "lacks 'direction'"),
        ('action: {"action_type":"scroll","direction":"forward"}', "none of up"),
        ('action: {"action_type":"type"}', "None as 'text'"),
        ('action: {"action_type":"open_app","app_name":" "}', "names no app"),
        ('action: {"action_type":"status"}', "lacks 'goal_status'"),
        ('action: {"action_type":"status","goal_status":"unknown"}', "none of successful"),
        ('action: {"action_type":"fly"}', "'fly' is not an action"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("os_genesis").parse_response(HIGH, text)


def test_refused_uses() -> None:
    with pytest.raises(DataError, match="step instruction"):
        adapter("os_genesis").prepare_input(step(setting="low"), ())
    with pytest.raises(UsageError, match="no thinking switch"):
        load_model("os-genesis-7b", thinking=True)
    with pytest.raises(ValueError, match="has no word for"):
        adapter("os_genesis").render(HIGH, Press(button="RECENT"))


def test_checkpoints() -> None:
    names = {"os-genesis-7b", *(f"os-genesis-{size}-{kind}" for size in ("4b", "7b", "8b") for kind in ("ac", "aw"))}
    assert {name for name in list_models() if name.startswith("os-genesis")} == names
    for name in names:
        config: Any = model_config(name)
        assert config.frame == load_model(name).frame(HIGH).name
        assert config.options["prompt"] == ("androidworld" if name.endswith("aw") else "androidcontrol")
        assert ("max_pixels" in config.options) == ("7b" in name)
