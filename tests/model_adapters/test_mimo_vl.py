"""MiMo-VL: prompts, past, thinking switch and replies."""

from __future__ import annotations

from guieval.actions import Action, Click, Direction, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.history import HistoryEntry, reference_entry

from .steps import GROUNDING, adapter, outside, own, past, scroll, step
from .tables import means, reads, refuses, thinks, writes

MIMO = adapter("mimo_vl")


def result(*entries: HistoryEntry) -> str:
    text = MIMO.prepare_input(step(step_index=len(entries)), entries).text
    return text.split("## Previous Actions\n")[1].split("\n\nNow, output")[0]


def test_the_past_is_written_in_records_of_another_key_and_frame() -> None:
    """(500, 750) is (540, 1800) of the original 1080 x 2400, and would be (546, 1806) in an answer."""
    first, typed, tapped = past(3)
    assert result(first, typed, tapped) == (
        'Step 0: Open the settings {"action_name": "open", "app_name": "Settings"}.'
        'Step 1: I "did"\n step 1 {"action_name": "input", "text": "it\'s"}.'
        'Step 2: I "did"\n step 2 {"action_name": "click", "start_point": [540, 1800]}.'
    )


def test_a_past_scroll_without_a_place_is_dragged_as_the_authors_do() -> None:
    """From the centre to 0.2 or 0.8 of the axis."""
    ends: dict[Direction, list[int]] = {"up": [540, 480], "down": [540, 1920], "left": [216, 1200], "right": [864, 1200]}
    for direction, end in ends.items():
        entry = reference_entry(step(scroll(direction)))
        assert result(entry) == f'Step 0: {{"action_name": "drag", "start_point": [540, 1200], "end_point": {end}}}.'


def test_every_other_past_action() -> None:
    actions: dict[str, Action] = {
        '{"action_name": "longpress", "start_point": [540, 1800]}': LongPress(point=Point(500.0, 750.0)),
        '{"action_name": "press", "keys": ["back"]}': Press(button="BACK"),
        '{"action_name": "appswitch"}': Press(button="RECENT"),
        '{"action_name": "wait"}': Wait(),
        '{"action_name": "finished", "status": "success"}': Stop(),
        '{"action_name": "finished", "status": "failed"}': Stop(status="impossible"),
        '{"action_name": "zoom", "factor": 2}': outside("zoom", factor=2),
    }
    for record, action in actions.items():
        assert result(reference_entry(step(action))) == f"Step 0: {record}."


def test_its_own_past_is_written_in_the_same_form() -> None:
    raw = '<think>\nHm.\n</think>\n\n```json\n[{"action": "click", "start_point": [546, 1806]}]\n```'
    assert result(own(MIMO, raw)) == 'Step 0: {"action_name": "click", "start_point": [540, 1800]}.'


MIDDLE = Point(500.0, 750.0)
TAP = '{"action": "click", "start_point": [546, 1806]}'


def click(x: object, y: object) -> str:
    return fenced(f'{{"action": "click", "start_point": [{x}, {y}]}}')


def fenced(call: str) -> str:
    return f"<think>\nHm.\n</think>\n\n```json\n[{call}]\n```"


test_replies = reads(
    MIMO,
    ("without a list", f"<think>\nHm.\n</think>\n```json\n{TAP}\n```", Click(point=MIDDLE)),
    ("without a fence", f"<think>\n</think>\n[{TAP}]", Click(point=MIDDLE)),
    ("tried out in the thought, no fence", f'<think>```json\n[{{"action": "wait"}}]```?</think>[{TAP}]', Click(point=MIDDLE)),
    ("an action in the thought", '<think>[{"action": "wait"}]?</think>' + TAP, Click(point=MIDDLE)),
    ("a fence in the thought", '<think>```json\n[{"action": "wait"}]\n```?</think>' + fenced(TAP), Click(point=MIDDLE)),
    ("fence not closed", f"```json\n[{TAP}]", Click(point=MIDDLE)),
    ("fence without a language", f"```\n[{TAP}]\n```", Click(point=MIDDLE)),
    ("after words", f"The next action is [{TAP}].", Click(point=MIDDLE)),
    ("several actions", fenced(TAP + ', {"action": "wait"}'), Click(point=MIDDLE)),
    ("several lists", f'[{TAP}]\n[{{"action": "wait"}}]', Click(point=MIDDLE)),
    ("single quotes", "[{'action': 'click', 'start_point': [546, 1806]}]", Click(point=MIDDLE)),
    ("a point as text", fenced('{"action": "click", "start_point": "（546，1806）"}'), Click(point=MIDDLE)),
    (
        "drag is the finger's path",
        fenced('{"action": "drag", "start_point": [546, 1806], "end_point": [500, 600]}'),
        Scroll(point=MIDDLE, direction="up", distance=500.831),
    ),
    ("input", fenced('{"action": "input", "text": "a ```json b"}'), Type(text="a ```json b")),
    ("input with a place", fenced('{"action": "input", "start_point": [1, 2], "text": 42}'), Type(text="42")),
    ("home", fenced('{"action": "press", "keys": ["HOME"]}'), Press(button="HOME")),
    ("a key without a list", fenced('{"action": "press", "keys": "enter"}'), Press(button="ENTER")),
    (fenced('{"action": "press", "keys": ["ctrl", "c"]}'), outside("press", Hotkey(keys=("ctrl", "c")), keys=["ctrl", "c"])),
    (fenced('{"action": "press", "keys": ["volume_up"]}'), outside("press", Hotkey(keys=("volume_up",)), keys=["volume_up"])),
    ("finished in its own words", fenced('{"action": "finished", "status": "The alarm is set."}'), Stop()),
    ("failed", fenced('{"action": "finished", "status": "Failed"}'), Stop(status="impossible")),
    # of the authors' runner, not of the prompt
    ("long press", fenced(TAP.replace("click", "longpress")), LongPress(point=MIDDLE)),
    ("open", fenced('{"action": "open", "app": "Clock"}'), Open(app="Clock")),
    ("open by the record's key", fenced('{"action": "open", "app_name": "Clock"}'), Open(app="Clock")),
    ("scroll", fenced('{"action": "scroll", "direction": "up"}'), scroll("up")),
    (fenced('{"action": "scroll", "direction": "left", "start_point": [546, 1806]}'), Scroll(point=MIDDLE, direction="left")),
    ("app switch", fenced('{"action": "appswitch"}'), Press(button="RECENT")),
)

test_refusals = refuses(
    MIMO,
    *((click(1093, 0), r"\(1093, 0\) lies outside the 1092 x 2408 frame", "CLICK"), (click(-1, 0), "outside", "CLICK")),
    ('```json\n[{"action": "click", "start_point": [546, 180', "no readable JSON"),
    (fenced('{"action": "click"}'), "click lacks 'start_point'", "CLICK"),
    (fenced('{"action": "drag", "start_point": [5, 5]}'), "drag lacks 'end_point'", "SCROLL"),
    (fenced('{"action": "drag", "start_point": [5, 5], "end_point": [5, 5]}'), "no length", "SCROLL"),
    (fenced('{"action": "scroll", "direction": "direction"}'), "'direction' is none of"),
    (fenced('{"action": "input", "text": ["a"]}'), "as 'text'"),
    (fenced('{"action": "open", "app": ""}'), "names no app", "OPEN"),
    *((fenced('{"action": "press", "keys": []}'), "as 'keys'"), (fenced('{"action": "press"}'), "press lacks 'keys'")),
    (fenced('{"action": "{action_name}"}'), "action's name is none: '{action_name}'"),
    *((fenced('{"action": ""}'), "names no action"), (fenced('{"action_name": "wait"}'), "is not an action")),
    *((fenced('{"bbox_2d": [1, 2, 3, 4]}'), "is not an action"), ("```json\n[]\n```", "is not an action")),
    ('<think>\nI could do [{"action": "wait"}] but', "the thought is never closed"),
    (f"<think>\nHm.\n```json\n[{TAP}]\n```", "the thought is never closed"),
    *((f"<think>\nHm.\n```json\n[{TAP}]\n```\n</think>", "ends in its thought"), ("I am done.", "has no action")),
)

test_thoughts = thinks(MIMO, (fenced(TAP), "Hm."), (fenced(TAP).replace("Hm.\n", ""), None))

test_rendered_replies_without_thinking = writes(
    adapter("mimo_vl", thinking=False), (Click(point=MIDDLE), f"```json\n[{TAP}]\n```")
)

test_grounding_answers = means(
    MIMO,
    Click(point=MIDDLE),
    '<think>\n</think>\n\n```json\n[\n\t{"bbox_2d": [545, 1800, 547, 1812], "label": "x"},\n\t{"bbox_2d": [1, 2]}\n]\n```',
    *('[{"bbox_2d": [545, 1800, 547, 1812], "label": "x"}]', 'It is here: {"point_2d": [546, 1806]}', "[546, 1806]"),
    "[[545, 1800, 547, 1812]]",
    fenced(TAP),
    task=GROUNDING,
)

test_a_part_of_a_grounding_answer_is_none = refuses(
    MIMO,
    *('```json\n[{"bbox_2d": [545, 1800, 547, 18', "```json\n[]\n```", "[546, 18"),
    *('[{"bbox_2d": [545, 1800, 547], "label": "x"}]', "<think>It is at [546, 1806]"),
    task=GROUNDING,
)
