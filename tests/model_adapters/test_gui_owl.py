from __future__ import annotations

from guieval.actions import Answer, Click, Drag, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.conformance import check_adapter
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef, Message

from .steps import CLICK, GROUNDING, adapter, outside, own, past, step
from .tables import means, reads, refuses, thinks, writes

OWL = adapter("gui_owl")
SILENT = adapter("gui_owl", thinking=False)
TURNS = adapter("gui_owl", history="turns")

ASKED = (
    "Before answering, explain your reasoning step-by-step in <thinking></thinking> tags, and insert them before the "
    "<tool_call></tool_call> XML tags.\n"
    "After answering, summarize your action in <conclusion></conclusion> tags, and insert them after the "
    "<tool_call></tool_call> XML tags.\n"
)

MOUSE_DRAG = Drag(start=Point(1000 / 1092, 2000 / 2408), end=Point(3000 / 1092, 4000 / 2408))
"""Between the pixels (1, 2) and (3, 4) of the resized screenshot."""


SWIPE = (
    "<thinking>\nLower.\n\n</thinking>\n"
    '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [546, 1806], '
    '"coordinate2": [540, 602]}}\n</tool_call>\n'
    "<conclusion>\nScrolled down\n</conclusion>"
)


def test_turns_keep_every_answer_and_the_last_two_screenshots() -> None:
    first = reference_entry(step(Open(app="Settings"), low_level_instruction="Open the settings"))
    entries = (first, own(OWL, SWIPE, 1), own(OWL, SWIPE, 2))
    task = step(step_index=3, screenshot="3.png")
    messages = TURNS.prepare_input(task, entries).messages
    opened = (
        '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "open", "text": "Settings"}}\n</tool_call>\n'
        "<conclusion>\nOpen the settings\n</conclusion>"
    )
    query = "The user query: Turn on Wi-Fi\nTask progress (You have done the following operation on the current device): .\n\n"
    assert messages[1:] == (
        Message("user", (query + ASKED,)),
        Message("assistant", (opened,)),
        Message("user", ("\n" + ASKED,)),
        Message("assistant", (SWIPE,)),
        Message("user", ("\n" + ASKED, ImageRef(entries[2].task))),
        Message("assistant", (SWIPE,)),
        Message("user", ("\n" + ASKED, ImageRef(task))),
    )


def test_turns_without_thinking() -> None:
    silent = adapter("gui_owl", thinking=False, history="turns", max_images=1)
    first = reference_entry(step(Open(app="Settings"), low_level_instruction="Open the settings"))
    task = step(step_index=1, screenshot="1.png")
    query, answer, current = silent.prepare_input(task, (first,)).messages[1:]
    assert len(query.parts) == 1
    assert answer.parts == (
        '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "open", "text": "Settings"}}\n</tool_call>',
    )
    assert current.parts == ("\n", ImageRef(task))


def test_a_thought_that_is_not_in_the_reply_is_put_back() -> None:
    entry = HistoryEntry(step(), CLICK, "Lower.", "Scrolled down", SWIPE.partition("</thinking>\n")[2], "model")
    assert TURNS.prepare_input(step(step_index=1), (entry,)).messages[2].parts == (SWIPE,)


MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408


def call(arguments: str, name: str = "mobile_use") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


CLICKED = call('{"action": "click", "coordinate": [546, 1204]}')


def test_the_reply_that_its_authors_printed() -> None:
    text = (
        "<thinking>\nObservation: The Microsoft Edge browser is open with a search bar visible. The search bar is ready for "
        "input, as indicated by the blinking cursor inside it.\nThought: To achieve the goal of searching for 'mPLUG-Owl3', I "
        "need to type this exact phrase into the search bar since it is currently empty and active.\n"
        "Action: Type 'mPLUG-Owl3' into the search bar.\n\n</thinking>\n"
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "text": "mPLUG-Owl3"}}\n</tool_call>\n'
        "<conclusion>\nTyped 'mPLUG-Owl3' into the search bar\n</conclusion>"
    )
    parsed = OWL.parse_response(step(), text)
    assert parsed.action == Type(text="mPLUG-Owl3")
    assert parsed.conclusion == "Typed 'mPLUG-Owl3' into the search bar"
    assert parsed.thought is not None
    assert parsed.thought.startswith("Observation: The Microsoft Edge")
    assert parsed.thought.endswith("Action: Type 'mPLUG-Owl3' into the search bar.")


def test_a_step_instruction_takes_the_goals_place_in_turns_too() -> None:
    task = step(setting="low", low_level_instruction="Tap {history}", step_index=2)
    text, image = TURNS.prepare_input(task, past(2)).messages[1].parts
    assert isinstance(text, str) and image == ImageRef(task)
    assert text.startswith("The user query: Tap {history}\nTask progress (You have done the following operation")
    assert "Step 1: Open the settings; Step 2: I did step 1; ." in text


def test_render_writes_the_printed_form() -> None:
    text = OWL.render(step(), Scroll(point=Point(500.0, 750.0), direction="up"), "Lower.", "Scrolled down")
    # 300 thousandths up: 450 of 1000 is 1083.6 of 2408 pixels
    assert text == SWIPE.replace("[540, 602]", "[546, 1084]")
    grounded = OWL.render(step(setting="grounding"), CLICK)
    assert grounded == call('{"action": "click", "coordinate": [546, 1806]}', "computer_use")


test_replies = reads(
    OWL,
    ("the authors' other word", call('{"action": "tap", "coordinate": [546, 1204]}'), Click(point=MIDDLE)),
    ("open_app", call('{"action": "open_app", "text": "Clock"}'), Open(app="Clock")),
    ("GUIEvalKit's tool", call('{"action": "system_button", "button": "Enter"}', "mobile_for_gui_owl"), Press(button="ENTER")),
    ("think for thinking", f"<think>\nI tap.\n</think>\n{CLICKED}", Click(point=MIDDLE)),
    ("thinking never closed", f"<thinking>\nI tap.\n{CLICKED}", Click(point=MIDDLE)),
    ("conclusion never closed", f"{CLICKED}\n<conclusion>\nTapped", Click(point=MIDDLE)),
    ("special token typed", call('{"action": "type", "text": "<|im_end|>"}'), Type(text="<|im_end|>")),
    (
        "the next step played as well",
        f"{SWIPE}\n<thinking>\nThen\n</thinking>\n{CLICKED}",
        Scroll(point=Point(500, 750), direction="up", distance=500),
    ),
    ("next step without conclusion", f"{CLICKED}\n<thinking>\nThen\n</thinking>\n{call('{}')}", Click(point=MIDDLE)),
    ("full-width", call('{"action": "click", "coordinate": "（546，1204）"}'), Click(point=MIDDLE)),
    (call('{"action": "long_press", "coordinate": [546, 1204], "time": 2}'), LongPress(point=MIDDLE, duration=2000)),
    ("wait", call('{"action": "wait", "time": 3}'), Wait(duration=3000)),
    ("failure", call('{"action": "terminate", "status": "failure"}'), Stop(status="impossible")),
    ("recent apps", call('{"action": "system_button", "button": "Menu"}'), Press(button="RECENT")),
    ("answer", call('{"action": "answer", "text": "7"}'), outside("answer", Answer(text="7"), text="7")),
    ("key", call('{"action": "key", "text": "volume_up"}'), outside("key", Hotkey(keys=("volume_up",)), text="volume_up")),
    (
        "the mouse's drag",
        call('{"action": "drag", "coordinate": [1, 2], "coordinate2": [3, 4]}', "computer_use"),
        outside("drag", MOUSE_DRAG, coordinate=[1, 2], coordinate2=[3, 4]),
    ),
)

test_thoughts_and_conclusions = thinks(
    OWL,
    (SWIPE.partition("</thinking>\n")[2], None, "Scrolled down"),  # a continued turn
    (f"<thinking>\na\n</thinking>\n{CLICKED}\n<conclusion>\nTapped<|im_end|>", "a", "Tapped"),
)
test_without_thinking_there_is_no_conclusion = writes(
    SILENT, (Open(app="A"), call('{"action": "open", "text": "A"}')), conclusion="Opened"
)

test_refusals = refuses(
    OWL,
    ("<thinking>\nI do not know.\n</thinking>", "no readable JSON"),
    (call('{"action": "click", "coordinate": [1093, 5]}'), r"\(1093, 5\) lies outside the 1092 x 2408 frame", "CLICK"),
    (call('{"action": "swipe", "coordinate": [5, 5]}'), "coordinate2", "SCROLL"),
    (call('{"action": "open", "text": " "}'), "open names no app", "OPEN"),
    (call('{"action": "fly"}'), "'fly' is not an action"),
    ('<tool_call>\n{"name": "mobile_use", "arguments": {"action": "type", "text": "mPL', "no readable JSON"),
    *(("I would say {'action': 'wait'} here", "talks about a call"), (call("[546, 1204]"), "names no action")),
)


# as a hosted model of the same firm answers; no reply of GUI-Owl itself was found
PRINTED = call('{"action": "left_click", "coordinate": [546, 1204]}', "computer_use")
test_grounding_answers = means(
    OWL,
    Click(point=MIDDLE),
    f"Action: Tap it.\n{PRINTED}",
    PRINTED.replace("</tool_call>", "</think>"),
    PRINTED.partition("}}")[0],
    PRINTED.replace("arguments", "parameters"),
    'Action: Tap it.\n<tool_call>\n{"action": "left_click", "coordinate": [546, 1204]}}\n</action>',
    'Action: Tap it.\n<tool_call>\n{"coordinate": [546, 1204]}\n\n# Action history\n1.',
    'computer_use\n{"action": "left_click", "coordinate": [546, 1204]}}\n',
    *('```json\n{"action": "left_click", "coordinate": [546, 1204]}}\n```', "left_click [546, 1204]"),
    task=GROUNDING,
)
test_no_grounding_answers = refuses(
    OWL,
    *('<tool_call>\n{"action": "left_click", {"coordinate": [748, 676]}}\n</tool_call>', "left_click(546, 1204)"),
    "<tool_call>\n     <action>left_click</action>\n     <coordinate>546, 1204]</tool_call>",
    task=GROUNDING,
)


def test_what_the_format_has_no_word_for_is_still_written_into_the_past() -> None:
    entry = reference_entry(step(Press(button="RECENT")))
    assert '{"action": "system_button", "button": "Menu"}' in TURNS.prepare_input(step(step_index=1), (entry,)).text


def test_it_conforms_with_the_past_as_turns() -> None:
    assert check_adapter(TURNS) == []
    assert check_adapter(adapter("gui_owl", thinking=False, history="turns", max_images=1)) == []
