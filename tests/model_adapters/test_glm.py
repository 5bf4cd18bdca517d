"""GLM-4.1V and GLM-4.5V: prompts, past, replies, and the replies the authors' own tests hold."""

from __future__ import annotations

from typing import Any

import pytest

from guieval.actions import Answer, Click, LongPress, Open, Point, Press, Scroll, Stop, Type
from guieval.history import reference_entry
from guieval.models import ABCModel, ImageRef

from .steps import GROUNDING, adapter, outside, own, scroll, step
from .tables import means, reads, refuses, thinks

OLD = adapter("glm_4_1v")
NEW = adapter("glm_4_5v")
SILENT = adapter("glm_4_5v", thinking=False)


def prompt(model: ABCModel, **changes: Any) -> str:
    (message,) = model.prepare_input(step(**changes), ()).messages
    image, text = message.parts
    assert (message.role, image) == ("user", ImageRef(step(**changes)))
    assert isinstance(text, str)
    return text


def test_the_prompts_name_the_apps() -> None:
    apps = ["Clock", "Retro Music"]
    assert "\n-- supported app_names: Clock,Retro Music\n" in prompt(adapter("glm_4_1v", supported_apps=apps))
    assert '"The name of the app to open. Supported apps: Clock,Retro Music"' in prompt(
        adapter("glm_4_5v", supported_apps=apps)
    )


def test_the_notes_can_be_left_out() -> None:
    assert prompt(adapter("glm_4_5v", notes="none")).endswith("\n\n# Some Additional Notes\n")


@pytest.mark.parametrize("model", [OLD, NEW])
def test_the_past_is_written_as_the_published_sample(model: ABCModel) -> None:
    """The sample of agent.md: one step, an opened app, whose reason was written for it."""
    task = step(Open(app="Broccoli"), low_level_instruction="The user needs to access the Broccoli app to manage recipes.")
    text = model.prepare_input(step(step_index=1), [reference_entry(task)]).text
    sample = (
        "Step 0:\nMemory: None\nReason: The user needs to access the Broccoli app to manage recipes.\n"
        "Action: {'action_type': 'open_app', 'app_name': 'Broccoli'}\n\n"
    )
    assert sample in text
    assert text.split(sample)[1].startswith("\n\nThe current screenshot is given" if model is OLD else "# Output Format")


def test_its_own_past_is_written_without_its_thought_and_box_tokens() -> None:
    raw = (
        "<think>Long thought. Action: none yet.</think>\n<answer>Memory: The code is 42.\nReason: It is the field.\n"
        'Action: <|begin_of_box|>{"action_type": "input_text", "text": "é", "box_2d": [[38, 115, 961, 140]], '
        '"override": true}<|end_of_box|></answer>'
    )
    text = OLD.prepare_input(step(step_index=1), [own(OLD, raw)]).text
    assert (
        "Step 0:\nMemory: The code is 42.\nReason: It is the field.\nAction: {'action_type': 'input_text', 'text': 'é', "
        "'box_2d': [[38, 115, 961, 140]], 'override': True}\n\n"
    ) in text


MIDDLE = Point(500 * 1000 / 999, 749 * 1000 / 999)
"""The centre of the published format's box [[480,734,520,764]], unified (500.5, 749.7)."""
TAP = '{"action_type": "click", "box_2d": [[480,734,520,764]]}'
WAIT = '{"action_type": "wait"}'
TYPED_TAG = '{"action_type": "input_text", "text": "</think>"}'


def boxed(call: str) -> str:
    return f"Memory: None\nReason: The bell.\nAction: <|begin_of_box|>{call}<|end_of_box|>"


def test_the_worked_anchor() -> None:
    assert tuple(round(axis, 1) for axis in MIDDLE) == (500.5, 749.7)
    assert NEW.parse_response(step(), boxed(TAP)).action == Click(point=MIDDLE)
    assert NEW.frame(step()).name == "0-999"
    assert NEW.frame(step(setting="grounding")).name == "0-1000"


test_replies = reads(
    (OLD, NEW, SILENT),
    ("published form", boxed(TAP), Click(point=MIDDLE)),
    ("with thought and answer", f"<think>Hm.</think>\n<answer>{boxed(TAP)}</answer>", Click(point=MIDDLE)),
    ("tried out in the thought", f"<think>{boxed(WAIT)}?</think>\n{boxed(TAP)}", Click(point=MIDDLE)),
    ("tried out in a box, answered without", f"<think>{boxed(WAIT)}?</think>\nAction: {TAP}", Click(point=MIDDLE)),
    ("full-width colon", f"Memory：None\nReason：x\nAction：{TAP}", Click(point=MIDDLE)),
    ("label within a line", f"<think>x</think>Reason: x. Action: {TAP}", Click(point=MIDDLE)),
    ("a list of actions", boxed(f'[{TAP}, {{"action_type": "wait"}}]'), Click(point=MIDDLE)),
    ("a continued turn", f" {TAP}", Click(point=MIDDLE)),
    ("a continued turn in a box", f" <|begin_of_box|>{TAP}<|end_of_box|>", Click(point=MIDDLE)),
    ("doubled brackets", boxed("{" + TAP + "}"), Click(point=MIDDLE)),
    ("a box without its list", boxed('{"action_type": "click", "box_2d": [480,734,520,764]}'), Click(point=MIDDLE)),
    ("a point", boxed('{"action_type": "click", "box_2d": [[500, 749]]}'), Click(point=MIDDLE)),
    ("a box as text", boxed('{"action_type": "click", "box_2d": "[[480，734，520，764]]"}'), Click(point=MIDDLE)),
    ("leading zeros", boxed('{"action_type": "click", "box_2d": [[0480,0734,520,764]]}'), Click(point=MIDDLE)),
    (
        "Python notation with JSON's words",
        boxed("{'action_type': 'input_text', 'text': 'is true, not false', 'override': true, 'box_2d': [[038, 0, 99, 9]]}"),
        Type(text="is true, not false"),
    ),
    ("a box in the reason", f"Reason: the bell <|begin_of_box|>[[1,2,3,4]]<|end_of_box|>.\nAction: {TAP}", Click(point=MIDDLE)),
    ("a tag in a typed text", boxed('{"action_type": "input_text", "text": "</answer>"}'), Type(text="</answer>")),
    ("an end of thought in a typed text", f"<think>Hm.</think>{boxed(TYPED_TAG)}", Type(text="</think>")),
    ("an end of turn in a typed text", boxed('{"action_type": "input_text", "text": "<|user|>"}'), Type(text="<|user|>")),
    ("a number as text", boxed('{"action_type": "input_text", "text": 42}'), Type(text="42")),
    ("long press", boxed(TAP.replace("click", "long_press")), LongPress(point=MIDDLE)),
    ("home", boxed('{"action_type": "navigate_home"}'), Press(button="HOME")),
    ("enter", boxed('{"action_type": "keyboard_enter"}'), Press(button="ENTER")),
    ("open", boxed('{"action_type": "open_app", "app_name": "Bob\'s"}'), Open(app="Bob's")),
    ("swipe is the finger's", boxed('{"action_type": "swipe", "direction": "up"}'), scroll("up")),
    ("with an empty box", boxed('{"action_type": "swipe", "direction": "Left", "box_2d": [[]]}'), scroll("left")),
    (
        "swipe in a box: the word counts, not the corners",
        boxed('{"action_type": "swipe", "direction": "up", "box_2d": [[480,734,520,764]]}'),
        Scroll(point=MIDDLE, direction="up"),
    ),
    ("complete", boxed('{"action_type": "status", "goal_status": "complete"}'), Stop()),
    ("infeasible", boxed('{"action_type": "status", "goal_status": "Infeasible"}'), Stop(status="impossible")),
    (boxed('{"action_type": "answer", "text": "At 5 pm"}'), outside("answer", Answer(text="At 5 pm"), text="At 5 pm")),
)

test_refusals = refuses(
    NEW,
    (boxed('{"action_type": "click", "box_2d": [[980,10,1100,20]]}'), "outside the 999 x 999 frame", "CLICK"),
    (boxed('{"action_type": "click", "box_2d": [[1,2,3]]}'), "holds 3 numbers"),
    (boxed('{"action_type": "click", "box_2d": [[480,734,520,76'), "no readable JSON"),
    (boxed('{"action_type": "click"}'), "click lacks 'box_2d'", "CLICK"),
    (boxed('{"action_type": "input_text", "text": true}'), "has True as 'text'"),
    (boxed('{"action_type": "open_app", "app_name": " "}'), "names no app", "OPEN"),
    (boxed('{"action_type": "swipe"}'), "swipe lacks 'direction'", "SCROLL"),
    (boxed('{"action_type": "swipe", "direction": "down or up"}'), "'down or up' is none of"),
    (boxed('{"action_type": "status"}'), "status lacks 'goal_status'", "STOP"),
    (boxed('{"action_type": "status", "goal_status": "done"}'), "'done' is none of"),
    (boxed('{"action_type": "double_tap"}'), "'double_tap' is not an action"),
    (boxed('{"action_type": ""}'), "names no action"),
    (boxed('{"name": "click", "box_2d": [[1,2,3,4]]}'), "is not an action"),
    (boxed("[[480,734,520,764]]"), "is not an action"),
    (boxed("left_click(start_box='[300, 400]')"), "'left_click', as the desktop and web prompts ask"),
    (boxed("CLICK(point=(214, 100), element_type='a')"), "'CLICK', as the desktop and web prompts ask"),
    ("I would choose " + TAP + " here.", "talks about an action"),
    ("<think>I should tap it. " + TAP, "the thought is never closed"),
    (f"<think>Hm.\n{boxed(TAP)}", "the thought is never closed"),
    (f"<think>Hm.\n<answer>{boxed(TAP)}</answer>", "the thought is never closed"),
    *((f"<think>Hm.\n{boxed(TYPED_TAG)}", "no readable JSON"), (f"<think>Hm.\n{boxed(TAP)}</think>", "no readable JSON")),
    *(("<think>Hm.</think>", "no readable JSON"), ("Action: tap the bell", "no readable JSON")),
)

test_thoughts_and_conclusions = thinks(
    NEW,
    (f"<think>\nThe Action: tap.\n</think>\n{boxed(TAP)}", "The Action: tap.", "The bell."),
    (boxed(TAP), None, "The bell."),  # where the server took the thought out, the reason must not stand in for it
    (boxed(TAP).replace("The bell.", "None"), None, None),
)
test_with_thinking_off_the_reason_is_the_thought = thinks(SILENT, ("<think></think>" + boxed(TAP), "The bell."))


def test_rendered_replies() -> None:
    task, action = step(), Click(point=Point(500.0, 750.0))
    call = '<|begin_of_box|>{"action_type": "click", "box_2d": [[500, 749, 500, 749]]}<|end_of_box|>'
    result = f"Memory: None\nReason: Tap.\nAction: {call}"
    assert OLD.render(task, action, "Hm.", "Tap.") == f"<think>Hm.</think>\n<answer>{result}</answer>"
    assert NEW.render(task, action, "Hm.", "Tap.") == f"<think>Hm.</think>\n{result}"
    assert SILENT.render(task, action, "Hm.", "Tap.") == result
    swipe = scroll("up")
    assert NEW.render(task, swipe).endswith('Action: <|begin_of_box|>{"action_type": "swipe", "direction": "up"}<|end_of_box|>')
    placed = swipe.model_copy(update={"point": Point(500.0, 750.0)})
    assert '"direction": "up", "box_2d": [[500, 749, 500, 749]]}' in NEW.render(task, placed)
    assert NEW.render(step(setting="grounding"), action) == "<|begin_of_box|>[[500, 750, 500, 750]]<|end_of_box|>"


test_grounding_answers = means(
    NEW,
    Click(point=Point(200.0, 300.0)),
    "The bell is at <|begin_of_box|>[[100,200,300,400]]<|end_of_box|>.",
    "Of the bells (1, 2) it is the one at [[100, 200, 300, 400]].",
    "<think>[[1,2,3,4]]?</think><answer><|begin_of_box|>[100, 200, 300, 400]<|end_of_box|></answer>",
    *("<|begin_of_box|>(100,200,300,400)<|end_of_box|>", "<|begin_of_box|><100, 200, 300, 400><|end_of_box|>"),
    *("<|begin_of_box|>[[100,200,300,400],[1,2,3,4]]<|end_of_box|>", "<|begin_of_box|>100, 200, 300, 400<|end_of_box|>"),
    *("<|begin_of_box|>［100，200，300，400］", "The box is [[100, 200, 300, 400]].", "[[200, 300]]"),
    boxed('{"action_type": "click", "box_2d": [[100,200,300,400]]}'),
    task=GROUNDING,
)

test_a_part_of_a_box_is_none = refuses(
    NEW,
    *(("<|begin_of_box|>[[100,200,300,40", "no box"), ("<|begin_of_box|>100, 200, 300, 40", "no box")),
    *(("<|begin_of_box|>[[900,0,1200,10]]<|end_of_box|>", "outside", "CLICK"), ("<think>[[1,2,3,4]]", "never closed")),
    ("<think>It is at <|begin_of_box|>[[1,2,3,4]]<|end_of_box|>", "never closed"),
    *(("<think>It is at <|begin_of_box|>[[1,2,3,4]]<|end_of_box|></think>", "no box"), ("It is not there.", "no box")),
    task=GROUNDING,
)
