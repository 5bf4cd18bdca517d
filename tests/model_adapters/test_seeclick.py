from __future__ import annotations

from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef, Message
from guieval.registry import list_models, load_model, model_config

from .steps import CLICK, adapter, past, step

HIGH = step()
GROUNDING = step(setting="grounding")
SYSTEM = Message("system", ("You are a helpful assistant.",))
AGENT = (
    "Please generate the next move according to the ui screenshot, instruction and previous actions. "
    "Instruction: Turn on Wi-Fi. Previous actions: "
)


def test_the_published_prompt_at_the_first_step() -> None:
    request = adapter("seeclick").prepare_input(HIGH, ())
    assert request.messages == (SYSTEM, Message("user", (ImageRef(HIGH, None), AGENT)))
    assert not request.extra


def test_the_past_is_the_last_four_actions_numbered_from_zero() -> None:
    done = (Press(button="HOME"), CLICK, Scroll(point=Point(500, 500), direction="up"), Type(text="wifi"))
    entries = [reference_entry(step(action, low_level_instruction="Do it")) for action in done]
    result = (
        'Step0: {"action_type": 6}. Step1: {"action_type": 4, "click_point": (0.50,0.75)}. Step2: {"action_type": 0}. '
        'Step3: {"action_type": 3, "typed_text": "wifi"}. '
    )
    assert adapter("seeclick").prepare_input(HIGH, entries).text.endswith(AGENT + result)
    entries.append(reference_entry(step(Stop())))
    text = adapter("seeclick").prepare_input(HIGH, entries).text
    assert text.endswith('Step2: {"action_type": 3, "typed_text": "wifi"}. Step3: {"action_type": 10}. ')
    assert '{"action_type": 6}' not in text


def test_an_own_past_action_is_written_as_a_reference_is() -> None:
    own = HistoryEntry(step(), CLICK, "I see it.", "Tapped it.", "raw", "model")
    model = adapter("seeclick")
    assert model.prepare_input(HIGH, (own,)) == model.prepare_input(HIGH, (reference_entry(step(CLICK)),))


@pytest.mark.parametrize(
    ("action", "instruction", "result"),
    [
        (Open(app="Maps"), "Open the map", "Step0: Open the map. "),
        (Open(app="Maps"), None, "Step0: Open the app 'Maps'. "),
        (LongPress(point=Point(500, 750)), None, "Step0: Long press at (0.5, 0.75). "),
        (Press(button="RECENT"), None, "Step0: Press the recent button. "),
        (Wait(), None, "Step0: Wait. "),
    ],
)
def test_past_actions_without_a_number_are_written_in_words(action: Action, instruction: str | None, result: str) -> None:
    entry = reference_entry(step(action, low_level_instruction=instruction))
    assert adapter("seeclick").prepare_input(HIGH, (entry,)).text.endswith(AGENT + result)


def test_a_step_instruction_stands_in_the_goals_place() -> None:
    low = step(setting="low", low_level_instruction="Tap the switch")
    assert "Instruction: Tap the switch. Previous" in adapter("seeclick").prepare_input(low, ()).text


def test_the_published_grounding_prompt() -> None:
    question = (
        'In this UI screenshot, what is the position of the element corresponding to the command "Turn on Wi-Fi" (with point)?'
    )
    request = adapter("seeclick").prepare_input(GROUNDING, past())
    assert request.messages == (SYSTEM, Message("user", (ImageRef(GROUNDING, None), question)))


@pytest.mark.parametrize(
    ("action", "reply"),
    [
        (CLICK, '{"action_type": 4, "click_point": (0.50,0.75)}'),
        (Click(point=Point(0, 1000)), '{"action_type": 4, "click_point": (0.00,1.00)}'),
        (Type(text="it's"), '{"action_type": 3, "typed_text": "it\'s"}'),
        (Type(text="无线 网"), '{"action_type": 3, "typed_text": "无线 网"}'),
        (Scroll(point=Point(500, 500), direction="up"), '{"action_type": 0}'),
        (Scroll(point=Point(500, 500), direction="down"), '{"action_type": 1}'),
        (Scroll(point=Point(500, 500), direction="right"), '{"action_type": 8}'),
        (Scroll(point=Point(500, 500), direction="left"), '{"action_type": 9}'),
        (Press(button="BACK"), '{"action_type": 5}'),
        (Press(button="HOME"), '{"action_type": 6}'),
        (Press(button="ENTER"), '{"action_type": 7}'),
        (Stop(), '{"action_type": 10}'),
        (Stop(status="impossible"), '{"action_type": 11}'),
    ],
)
def test_actions_both_ways(action: Action, reply: str) -> None:
    model = adapter("seeclick")
    assert model.render(HIGH, action, "a thought") == reply
    parsed = model.parse_response(HIGH, reply)
    assert (parsed.action, parsed.thought) == (action, None)


def test_places_are_fractions_of_the_screen() -> None:
    """The worked anchor: (540, 1800) of 1080 x 2400 pixels is half the width and three quarters of the height."""
    assert adapter("seeclick").parse_response(HIGH, '{"action_type": 4, "click_point": (0.5,0.75)}').action == CLICK
    desktop = step(screenshot_size=(1920, 1080))
    assert adapter("seeclick").render(desktop, Click(point=Point(333.3, 667))) == (
        '{"action_type": 4, "click_point": (0.33,0.67)}'
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{'action_type': 4, 'click_point': (0.5, 0.75)}", id="single quotes"),
        pytest.param('{"action_type": 4, "click_point": [0.5, 0.75]}', id="list"),
        pytest.param('{"action_type": 4, "click_point": [[0.5, 0.75]]}', id="list in a list"),
        pytest.param('{"action_type": "4", "click_point": "(0.5,0.75)"}', id="numbers as text"),
        pytest.param('{"action_type": 4, "click_point": (0.4,0.7,0.6,0.8)}', id="box"),
        pytest.param('```json\n{"action_type": 4, "click_point": (0.50,0.75)}\n```', id="fence"),
        pytest.param('[1] I tap it: {"action_type": 4, "click_point": (0.50,0.75)}', id="prose before"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75)}. This [opens] it.', id="prose after it"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75)}<|im_end|>\n<|endoftext|>', id="special tokens"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75)', id="unclosed"),
        pytest.param('[{"action_type": 4, "click_point": (0.50,0.75)}, {"action_type": 5}]', id="list of actions"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75) {"action_type"', id="unclosed, then another"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75)}. {"action_type": 5}', id="several actions"),
        pytest.param('｛"action_type"： 4， "click_point"： （0.50，0.75）｝', id="full-width punctuation, all of it"),
        pytest.param('{"action_type": 4, "click_point": （0.50，0.75）}', id="full-width punctuation of the place"),
    ],
)
def test_tolerances(text: str) -> None:
    assert adapter("seeclick").parse_response(HIGH, text).action == CLICK


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        pytest.param('{"action_type": 3, "typed_text": "say "hi" now"}', 'say "hi" now', id="quotes as in training"),
        pytest.param('{"action_type": 3, "typed_text": ""hi""}', '"hi"', id="nothing but quotes"),
        pytest.param('{"action_type": 3, "typed_text": "a "b" c"}. {"action_type": 7}', 'a "b" c', id="quotes, two actions"),
        pytest.param('{"action_type": 3, "typed_text": "{\\"action_type\\": 5}"}', '{"action_type": 5}', id="an action in it"),
        pytest.param('{"action_type": 3, "typed_text": ""}', "", id="nothing"),
        pytest.param('{"action_type": 3, "typed_text": "{a}, (b)"}', "{a}, (b)", id="brackets"),
        pytest.param('{"action_type": 3, "typed_text": "a，“b”（c）"}', "a，“b”（c）", id="full-width text is kept"),
        pytest.param('{"action_type": 3, "click_point": (0.5,0.5), "value": "x"}', "x", id="as in Mind2Web"),
    ],
)
def test_typed_texts(text: str, typed: str) -> None:
    assert adapter("seeclick").parse_response(HIGH, text).action == Type(text=typed)


def test_a_choice_from_a_list_is_unsupported() -> None:
    reply = '{"action_type": 2, "click_point": (0.50,0.75), "value": "Large"}'
    expected = Unsupported(name="select", arguments={"click_point": [0.5, 0.75], "value": "Large"})
    assert adapter("seeclick").parse_response(HIGH, reply).action == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I tap it.", "no readable JSON"),
        ("(0.50,0.75)", "no readable JSON"),
        ('{"action_type": 4}', "no click_point"),
        ('{"action_type": 4, "click_point": (0.50,0.7', "no readable JSON"),
        ('{"action_type": 4, "cli{"action_type": 4, "click_point": (0.50,0.75)}', "no readable JSON"),
        ('{"action_type": 4, "click_point": (0.50)}', "not a point"),
        ('{"action_type": 4, "click_point": (500,750)}', "outside"),
        ('{"action_type": 4, "click_point": (0.50,-0.75)}', "outside"),
        ('{"action_type": 3}', "types no text"),
        ('{"action_type": 3, "typed_text": 12.50}', "types no text"),
        ('{"action_type": 3, "typed_text": "hel', "no readable JSON"),
        ('{"action_type": 3, "typed_text": "a "b" hel', "no readable JSON"),
        ('{"action_type": 12}', "action_type 12 is not"),
        ('{"action_type": true}', "action_type True is not"),
        ('{"action_type": "click", "click_point": (0.50,0.75)}', "action_type 'click' is not"),
        ('{"click_point": (0.50,0.75)}', "action_type None is not"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("seeclick").parse_response(HIGH, text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(0.50,0.75)", id="as published"),
        pytest.param("[0.50, 0.75]", id="square brackets"),
        pytest.param("（0.50，0.75）", id="full-width punctuation"),
        pytest.param("(0.40,0.70,0.60,0.80)", id="box"),
        pytest.param("The button (1) is at (0.50,0.75).<|im_end|>", id="in a sentence"),
        pytest.param("(0.50,0.75)\n(0.10,0.20)", id="several points, no corners"),
        pytest.param("<ref>Wi-Fi</ref><box>(400,700),(600,800)</box>", id="box of Qwen-VL, thousandths"),
        pytest.param('{"action_type": 4, "click_point": (0.50,0.75)}', id="as an action"),
    ],
)
def test_grounding_replies(text: str) -> None:
    assert adapter("seeclick").parse_response(GROUNDING, text).action == CLICK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("at the top", "no place"),
        ("(0.50,0.7", "no place"),
        ("(0.50)", "no place"),
        ("(0.1,0.2,0.3)", "holds 3 numbers"),
        ("(500,750)", "outside"),
        ("<box>(400,700),(600,80", "ends inside a box"),
    ],
)
def test_grounding_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("seeclick").parse_response(GROUNDING, text)


def test_a_grounding_answer_is_the_place_alone() -> None:
    assert adapter("seeclick").render(GROUNDING, CLICK) == "(0.50,0.75)"


@pytest.mark.parametrize("action", [Open(app="Maps"), Wait(), LongPress(point=Point(1, 1)), Press(button="RECENT")])
def test_a_word_without_a_number_has_no_form(action: Any) -> None:
    with pytest.raises(ValueError, match="has no word for"):
        adapter("seeclick").render(HIGH, action)


def test_refused_uses() -> None:
    with pytest.raises(DataError, match="step instruction"):
        adapter("seeclick").prepare_input(step(setting="low"), ())
    with pytest.raises(UsageError, match="no thinking switch"):
        load_model("seeclick", thinking=True)
    with pytest.raises(UsageError, match="cannot be given a thought"):
        adapter("seeclick").prepare_fixed_thought(HIGH, (), "I see it.")


def test_checkpoints() -> None:
    assert {name for name in list_models() if name.startswith("seeclick")} == {"seeclick", "seeclick-aitw"}
    assert model_config("seeclick").hf_id == "cckevinn/SeeClick"
    assert model_config("seeclick").frame == load_model("seeclick").frame(HIGH).name == "0-1"
