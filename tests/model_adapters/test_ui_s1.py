from __future__ import annotations

import json

from guieval.actions import Action, Answer, Click, Hotkey, Open, Point, Press, Type, Wait
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef
from tests.rows import every_row

from .steps import CLICK, GROUNDING, adapter, outside, own, scroll, step
from .tables import means, reads, refuses, writes

MODEL = adapter("ui_s1")

FORMAT = "Output Format: ```\n<think> ... </think>\n\n<action> ... </action>\n```"
NOTE = "If the query asks a question, please answer the question through the answer action before terminating the process.\n"


def test_examples_as_the_code_sends_them_and_the_prompt_as_the_paper_prints_it() -> None:
    printed = adapter("ui_s1", prompt="paper").prepare_input(step(), ()).messages
    assert printed[1].parts[:-1] == ("User Instruction: Turn on Wi-Fi",)
    assert str(printed[0].parts[0]).endswith("process.\n- Swipe the screen to find the File Manager app if needed.\n")
    paper, code = (str(adapter("ui_s1", examples=form).prepare_input(step(), ()).messages[0].parts[0]) for form in FORMS)
    thought = "<think>\n...\n</think>\n"
    action = '<action>\n{"action": "key", "text": "<value>"}\n</action>\n'
    assert f"Example outputs:\n{thought}{action}{thought}<action>\n" in paper
    assert f"Example outputs:\n{action}<action>\n" in code
    assert code == paper.replace(thought, "")


FORMS = ("paper", "code")
OWN = "<think>\nThe list.\n</think>\n<action>\n" + json.dumps({"action": "click", "coordinate": [546, 1806]}) + "\n</action>"


def test_number_of_screenshots_is_an_option() -> None:
    entries = (own(MODEL, OWN), own(MODEL, OWN, 1))
    task = step(step_index=2, screenshot="2.png")
    shown = adapter("ui_s1", max_images=1).prepare_input(task, entries).images
    assert [image.task.screenshot for image in shown] == ["2.png"]
    shown = adapter("ui_s1", max_images=9).prepare_input(task, entries).images
    assert [image.task.screenshot for image in shown] == ["0.png", "1.png", "2.png"]


@every_row(
    ("action", "written"),
    [
        (Press(button="BACK"), '{"action": "system_button", "button": "Back"}'),
        (Wait(duration=2000), '{"action": "wait", "time": 2}'),
        (Type(text="Sculpture art"), '{"action": "type", "text": "Sculpture art"}'),
        (CLICK, '{"action": "click", "coordinate": [546, 1806]}'),
        (Press(button="RECENT"), '{"action": "system_button", "button": "Menu"}'),
    ],
)
def test_labels_of_past_steps_are_written_as_in_the_authors_data(action: Action, written: str) -> None:
    messages = MODEL.prepare_input(step(step_index=1), (reference_entry(step(action)),)).messages
    assert messages[2].parts == (f"<action>\n{written}\n</action>",)


def test_a_thought_that_is_not_in_the_reply_is_put_back() -> None:
    entry = HistoryEntry(step(), CLICK, "The list.", None, OWN.partition("</think>\n")[2], "model")
    assert MODEL.prepare_input(step(step_index=1), (entry,)).messages[2].parts == (OWN,)


def test_every_turn_states_its_own_step_instruction() -> None:
    entries = (own(MODEL, OWN, setting="low", low_level_instruction="Open the settings"), own(MODEL, OWN, 1))
    task = step(step_index=2, setting="low", low_level_instruction="Tap {instruction}")
    turns = [message for message in MODEL.prepare_input(task, entries).messages if message.role == "user"]
    assert turns[0].parts == (f"User Instruction: Open the settings\n{FORMAT}", NOTE)
    assert turns[1].parts[0] == f"User Instruction: Click at (546, 1806).\n{FORMAT}"
    assert turns[2].parts == (f"User Instruction: Tap {{instruction}}\n{FORMAT}", ImageRef(task))


MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408


def sentence(action: str) -> str:
    return f"<think>\nI see it.\n</think>\n<action>\n{action}\n</action>"


CLICKED = sentence('{"action": "click", "coordinate": [546, 1204]}')

test_replies = reads(
    MODEL,
    ("other tags", '<think>\na\n</think>\n<answer>{"action": "open", "text": "Clock"}</answer>', Open(app="Clock")),
    ("fenced as a whole", f"```\n{CLICKED}\n```", Click(point=MIDDLE)),
    ("the next step played as well", sentence('{"action": "open", "text": "A"}') + "\n" + CLICKED, Open(app="A")),
    ("an action rehearsed in the thought", f"<think>\nI say <action> then {{x}}.\n{CLICKED[8:]}", Click(point=MIDDLE)),
    ("the tag in a text", sentence('{"action": "type", "text": "</action>"}'), Type(text="</action>")),
    ("numbers as text", sentence('{"action": "click", "coordinate": ["546", "1204"]}'), Click(point=MIDDLE)),
    ("place as text", sentence('{"action": "click", "coordinate": "(546, 1204)"}'), Click(point=MIDDLE)),
    ("full-width", sentence('{"action": "click", "coordinate": "（546，1204）"}'), Click(point=MIDDLE)),
    ("call around it", sentence('{"name": "mobile_use", "arguments": {"action": "open", "text": "A"}}'), Open(app="A")),
    ("path", sentence('{"action": "swipe", "coordinate": [546, 1204], "coordinate2": [546, 300]}'), scroll("up", 375.415)),
    ("answer", sentence('{"action": "answer", "text": "7"}'), outside("answer", Answer(text="7"), text="7")),
    ("key", sentence('{"action": "key", "text": "camera"}'), outside("key", Hotkey(keys=("camera",)), text="camera")),
    ("recent apps", sentence('{"action": "system_button", "button": "Menu"}'), Press(button="RECENT")),
)

test_refusals = refuses(
    MODEL,
    *(("<think>\nI do not know.\n</think>", "no readable JSON"), (sentence("click(546, 1204)"), "no readable JSON")),
    (sentence('{"action": "click", "coordinate": "<value>"}'), "'<value>' is not a point"),
    (sentence('{"action": "click", "coordinate": [546, 2409]}'), r"\(546, 2409\) lies outside the 1092 x 2408 frame", "CLICK"),
    (sentence('{"action": "click", "coordinate": [546]}'), "1 numbers, not 2 or 4"),
    (sentence('{"action": "swipe", "direction": "down"}'), "lacks 'coordinate'", "SCROLL"),
    *((sentence('{"coordinate": [546, 1204]}'), "names no action"), (sentence('{"action": "fly"}'), "'fly' is not an action")),
    ('<think>\na\n</think>\n<action>\n{"action": "type", "text": "Scul', "no readable JSON"),
    ('I could do {"action": "wait"} here', "talks about a call"),
)

test_a_place_alone_is_an_answer_to_a_grounding_query_only = means(
    MODEL, Click(point=MIDDLE), '{"coordinate": [546, 1204]}', wrap=sentence, task=GROUNDING
)
test_what_is_written = writes(MODEL, (CLICK, OWN), thought="The list.")
