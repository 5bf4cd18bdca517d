from __future__ import annotations

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Stop, Type, Wait
from guieval.history import reference_entry
from guieval.models import Message
from tests.rows import every_row

from .steps import CLICK, GROUNDING, HIGH, adapter, outside, scroll, step
from .tables import means, reads, refuses, writes

SYSTEM = Message("system", ("You are a helpful assistant.",))
MODEL = adapter("seeclick")
AGENT = (
    "Please generate the next move according to the ui screenshot, instruction and previous actions. "
    "Instruction: Turn on Wi-Fi. Previous actions: "
)


def test_the_past_is_the_last_four_actions_numbered_from_zero() -> None:
    done = (Press(button="HOME"), CLICK, scroll("up"), Type(text="wifi"))
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


@every_row(
    ("action", "instruction", "result"),
    [
        (Open(app="Maps"), "Open the map", "Step0: Open the map. "),
        (Open(app="Maps"), None, "Step0: Open the app 'Maps'. "),
        (LongPress(point=Point(500, 750)), None, "Step0: Long press at (0.5, 0.75). "),
        *((Press(button="RECENT"), None, "Step0: Press the recent button. "), (Wait(), None, "Step0: Wait. ")),
    ],
)
def test_past_actions_without_a_number_are_written_in_words(action: Action, instruction: str | None, result: str) -> None:
    entry = reference_entry(step(action, low_level_instruction=instruction))
    assert adapter("seeclick").prepare_input(HIGH, (entry,)).text.endswith(AGENT + result)


test_actions_both_ways = writes(
    MODEL,
    *((scroll("down"), '{"action_type": 1}'), (scroll("right"), '{"action_type": 8}')),
    *((scroll("left"), '{"action_type": 9}'), (Press(button="HOME"), '{"action_type": 6}')),
    *((action, None) for action in (Open(app="Maps"), Wait(), LongPress(point=Point(1, 1)), Press(button="RECENT"))),
)


def test_places_are_fractions_of_the_screen() -> None:
    """The worked anchor: (540, 1800) of 1080 x 2400 pixels is half the width and three quarters of the height."""
    assert MODEL.parse_response(HIGH, '{"action_type": 4, "click_point": (0.5,0.75)}').action == CLICK
    assert MODEL.render(HIGH, CLICK, "a thought") == MODEL.render(HIGH, CLICK)
    desktop = step(screenshot_size=(1920, 1080))
    assert MODEL.render(desktop, Click(point=Point(333.3, 667))) == ('{"action_type": 4, "click_point": (0.33,0.67)}')


test_tolerances = means(
    MODEL,
    CLICK,
    ("list", '{"action_type": 4, "click_point": [0.5, 0.75]}'),
    ("list in a list", '{"action_type": 4, "click_point": [[0.5, 0.75]]}'),
    ("list of actions", '[{"action_type": 4, "click_point": (0.50,0.75)}, {"action_type": 5}]'),
    ("unclosed, then another", '{"action_type": 4, "click_point": (0.50,0.75) {"action_type"'),
    ("full-width punctuation, all of it", '｛"action_type"： 4， "click_point"： （0.50，0.75）｝'),
    ("full-width punctuation of the place", '{"action_type": 4, "click_point": （0.50，0.75）}'),
)

test_typed_texts = reads(
    MODEL,
    ("quotes as in training", '{"action_type": 3, "typed_text": "say "hi" now"}', Type(text='say "hi" now')),
    ("nothing but quotes", '{"action_type": 3, "typed_text": ""hi""}', Type(text='"hi"')),
    ("quotes, two actions", '{"action_type": 3, "typed_text": "a "b" c"}. {"action_type": 7}', Type(text='a "b" c')),
    ("an action in it", '{"action_type": 3, "typed_text": "{\\"action_type\\": 5}"}', Type(text='{"action_type": 5}')),
    ("brackets", '{"action_type": 3, "typed_text": "{a}, (b)"}', Type(text="{a}, (b)")),
    ("full-width text is kept", '{"action_type": 3, "typed_text": "a，“b”（c）"}', Type(text="a，“b”（c）")),
    ("a choice", '{"action_type": 2, "click_point": (0.50,0.75), "value": "Large"}', outside("SELECT", value="Large")),
)

test_refusals = refuses(
    MODEL,
    *(("I tap it.", "no readable JSON"), ("(0.50,0.75)", "no readable JSON")),
    *(('{"action_type": 4}', "no click_point", "CLICK"), ('{"action_type": 4, "click_point": (0.50,0.7', "no readable JSON")),
    ('{"action_type": 4, "cli{"action_type": 4, "click_point": (0.50,0.75)}', "no readable JSON"),
    ('{"action_type": 4, "click_point": (0.50)}', "not a point"),
    ('{"action_type": 4, "click_point": (500,750)}', "outside", "CLICK"),
    *(('{"action_type": 4, "click_point": (0.50,-0.75)}', "outside", "CLICK"), ('{"action_type": 3}', "types no text")),
    ('{"action_type": 3, "typed_text": 12.50}', "types no text"),
    ('{"action_type": 3, "typed_text": "hel', "no readable JSON"),
    *(('{"action_type": 3, "typed_text": "a "b" hel', "no readable JSON"), ('{"action_type": 12}', "action_type 12 is not")),
    ('{"action_type": true}', "action_type True is not"),
    ('{"action_type": "click", "click_point": (0.50,0.75)}', "action_type 'click' is not"),
    ('{"click_point": (0.50,0.75)}', "action_type None is not"),
)

test_grounding_replies = means(
    MODEL,
    CLICK,
    *(("square brackets", "[0.50, 0.75]"), ("full-width punctuation", "（0.50，0.75）")),
    ("in a sentence", "The button (1) is at (0.50,0.75).<|im_end|>"),
    ("several points, no corners", "(0.50,0.75)\n(0.10,0.20)"),
    ("box of Qwen-VL, thousandths", "<ref>Wi-Fi</ref><box>(400,700),(600,800)</box>"),
    ("as an action", '{"action_type": 4, "click_point": (0.50,0.75)}'),
    task=GROUNDING,
)

test_grounding_refusals = refuses(
    MODEL,
    *(("at the top", "no place"), ("(0.50,0.7", "no place"), ("(0.50)", "no place"), ("(0.1,0.2,0.3)", "holds 3 numbers")),
    *(("(500,750)", "outside", "CLICK"), ("<box>(400,700),(600,80", "ends inside a box")),
    task=GROUNDING,
)

test_a_grounding_answer_is_the_place_alone = writes(MODEL, (CLICK, "(0.50,0.75)"), task=GROUNDING)
