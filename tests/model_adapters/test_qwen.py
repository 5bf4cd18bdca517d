from __future__ import annotations

from guieval.actions import Answer, Click, Hotkey, LongPress, Open, Point, Press, Stop, Type
from guieval.history import reference_entry

from .steps import GROUNDING, adapter, outside, own, scroll, step
from .tables import means, reads, refuses, thinks

QWEN25 = adapter("qwen2_5_vl")
QWEN3 = adapter("qwen3_vl")

PLACES = ('[{"point_2d": [500, 750], "label": "bar"}]', '{"bbox_2d": [400, 700, 600, 800]}')
CALL = '<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [999, 0]}}</tool_call>'

test_qwen3_reads_lists_in_thousandths_and_calls_in_0_to_999 = reads(
    QWEN3,
    *((text, Click(point=Point(500, 750))) for text in PLACES),
    *(('{"point_2d": [1000, 1000]}', Click(point=Point(1000, 1000))), (CALL, Click(point=Point(1000, 0)))),
    task=GROUNDING,
)
test_qwen3_reads_lists_in_0_to_999_where_that_is_chosen = reads(
    adapter("qwen3_vl", list_scale=999),
    *((text, Click(point=Point(500 * 1000 / 999, 750 * 1000 / 999))) for text in PLACES),
    (CALL, Click(point=Point(1000, 0))),
    task=GROUNDING,
)


def click(x: object, y: object) -> str:
    return f'<tool_call>\n{{"name": "mobile_use", "arguments": {{"action": "click", "coordinate": [{x}, {y}]}}}}\n</tool_call>'


def call(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "mobile_use", "arguments": {arguments}}}\n</tool_call>'


MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408

test_qwen_replies = reads(
    QWEN25,
    ("published example", click(546, 1204), Click(point=MIDDLE)),
    ("empty line first", "\n\n" + click(546, 1204), Click(point=MIDDLE)),
    ("coordinate as text", call('{"action": "click", "coordinate": "(546, 1204)"}'), Click(point=MIDDLE)),
    ("desktop word", call('{"action": "left_click", "coordinate": [546, 1204]}'), Click(point=MIDDLE)),
    ("action as tool", '<tool_call>{"name": "left_click", "arguments": {"coordinate": [546, 1204]}}', Click(point=MIDDLE)),
    ("coordinate as arguments", '{"name": "click", "arguments": [546, 1204]}}', Click(point=MIDDLE)),
    ("arguments beside the name", '{"name": "click", "coordinate": [546, 1204]}', Click(point=MIDDLE)),
    ("full-width", call('{"action": "click", "coordinate": "（546，1204）"}'), Click(point=MIDDLE)),
    ("brackets before the call", "<tool_call>\nitem [3]: " + click(546, 1204)[12:], Click(point=MIDDLE)),
    ("fenced within the tags", "<tool_call>\n```json\n" + click(546, 1204)[12:], Click(point=MIDDLE)),
    ("after a label", 'Call: {"name": "mobile_use", "arguments": {"action": "open", "text": "A"}} Done.', Open(app="A")),
    ("arguments as text", call('"{\\"action\\": \\"open\\", \\"text\\": \\"X\\"}"'), Open(app="X")),
    ("the tag in a text", call('{"action": "open", "text": "</tool_call>"}'), Open(app="</tool_call>")),
    (call('{"action": "long_press", "coordinate": [546, 1204], "time": 2.5}'), LongPress(point=MIDDLE, duration=2500)),
    ("no time", call('{"action": "long_press", "coordinate": [546, 1204]}'), LongPress(point=MIDDLE)),
    ("null time", call('{"action": "long_press", "coordinate": [546, 1204], "time": null}'), LongPress(point=MIDDLE)),
    (
        "swipe is the finger's path",
        call('{"action": "swipe", "coordinate": [546, 1204], "coordinate2": [500, 600]}'),
        scroll("up", 250.831),
    ),
    ("typo", call('{"action": "swipe", "coordinate": [546, 1204], "coordinates2": [900, 1204]}'), scroll("right", 324.176)),
    ("number as text", call('{"action": "type", "text": 42}'), Type(text="42")),
    ("button", call('{"action": "system_button", "button": "enter"}'), Press(button="ENTER")),
    ("key that is a button", call('{"action": "key", "text": "BACK"}'), Press(button="BACK")),
    ("recent apps", call('{"action": "system_button", "button": "Menu"}'), Press(button="RECENT")),
    ("answer", call('{"action": "answer", "text": "7"}'), outside("answer", Answer(text="7"), text="7")),
    ("key", call('{"action": "key", "text": "volume_up"}'), outside("key", Hotkey(keys=("volume_up",)), text="volume_up")),
    ("double click", call('{"action": "double_click"}'), outside("double_click")),
    ("success", call('{"action": "terminate", "status": "success"}'), Stop()),
    ("failure", call('{"action": "terminate", "status": "failure"}'), Stop(status="impossible")),
    ("no status", call('{"action": "terminate"}'), Stop()),
    (
        "two calls in a list",
        "<tool_call>\n["
        '{"name": "mobile_use", "arguments": {"action": "open", "text": "A"}}, '
        '{"name": "mobile_use", "arguments": {"action": "open", "text": "B"}}'
        "]\n</tool_call>",
        Open(app="A"),
    ),
)

test_qwen_refuses = refuses(
    QWEN25,
    *((click(1093, 0), r"\(1093, 0\) lies outside the 1092 x 2408 frame", "CLICK"), (click(-1, 0), "outside", "CLICK")),
    ('<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [546, 12', "no readable JSON"),
    (call('{"action": "swipe", "coordinate": [5, 5], "coordinate2": [5, 5]}'), "no length", "SCROLL"),
    (call('{"action": "swipe", "coordinate": [5, 5]}'), "coordinate2", "SCROLL"),
    *((call('{"action": "fly"}'), "'fly' is not an action"), (call('{"action": "click"}'), "lacks 'coordinate'", "CLICK")),
    *((call('{"action": "open"}'), "lacks 'text'", "OPEN"), (call('{"action": "type", "text": true}'), "True as 'text'")),
    (call('{"action": "wait", "time": -1}'), "not a number of seconds"),
    (call('{"action": "terminate", "status": "maybe"}'), "maybe"),
    *((call('{"action": "system_button", "button": "Volume"}'), "Volume"), (call("{}"), "names no action")),
    *((call('{"coordinate": [546, 1204]}'), "names no action"), (call("[546, 1204]"), "names no action")),
    ('<tool_call>{"name": "mobile_use", "arguments": {"action": "terminate", ', "no readable JSON"),
    ('<tool_call>{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [5, 6]}, "x": "a', "no readable"),
    (call('{"action": "type", "text": "5" tall"}'), "no readable JSON"),
    ('{"name": broken}\n' + click(1, 2)[12:-13], "no readable JSON"),
    ('So it would be {"action": "wait", "time": 2}, but', "talks about a call"),
    *((call("{'action': 'type', 'text': 0x" + "f" * 1_000 + "}"), "endless number"), ("[546, 1204]", "not a call")),
    *(('[{"bbox_2d": [1, 2, 3, 4]}]', "no action"), ("I am done.", "no readable JSON")),
)

test_qwen_grounding_answers = means(
    QWEN25,
    Click(point=MIDDLE),
    "545, 1200, 547, 1208]}}\n</tool_call>",
    call("[546, 1204]"),
    *("[546, 1204]", '```json\n[{"bbox_2d": [545, 1200, 547, 1208], "label": "x"}]\n```', '{"point_2d": [546, 1204]}'),
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [546, 1204]}}\n</tool_call>',
    task=GROUNDING,
)

test_a_part_of_a_grounding_answer_is_none = refuses(
    QWEN25,
    *("546, 120", "546, 1204"),
    '{"name": "computer_use", "arguments": {"action": "left_click_drag", "coordinate": [5, 6], "text": "ab',
    '<tool_call>{"name": "computer_use", "arguments": {"action": "mouse_move", "coordinate": [5, 6], "x": [1)}}',
    task=GROUNDING,
)

test_thoughts_and_conclusions = thinks(
    QWEN3,
    ('**Thought:** the bar.\n**Action:** "tap it"\n' + click(5, 6), "the bar.", "tap it"),
    ("thought: the bar.\naction：tap it\n" + click(5, 6), "the bar.", "tap it"),
    ("Thought: I use a <tool_call>.\nAction: tap it\n" + click(5, 6), "I use a <tool_call>.", "tap it"),
    ("Thought: the [bar].\nAction: tap it\n```json\n" + click(5, 6)[12:-13] + "\n```", "the [bar].", "tap it"),
    # a thinking checkpoint's reply starts inside its reasoning
    ("The bar.\nTap it.\n</think>\n\nThought: Short.\nAction: I tapped.\n" + click(447, 81), "The bar.\nTap it.", "I tapped."),
)


def test_qwen25_writes_its_own_past_calls_as_it_made_them() -> None:
    swipe = '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [540, 2000], "coordinate2": [540, 99]}}'
    flat = '{"name": "left_click", "arguments": [546, 1204]}'
    query = (
        QWEN25.prepare_input(step(), [own(QWEN25, f"<tool_call>\n{swipe}\n</tool_call>"), own(QWEN25, flat)])
        .messages[-1]
        .parts[0]
    )
    assert isinstance(query, str)
    assert query.endswith(
        f'Step 1: {swipe}; Step 2: {{"name": "mobile_use", "arguments": {{"action": "click", "coordinate": [546, 1204]}}}}; '
    )


def test_qwen3_reply_in_three_parts() -> None:
    text = 'Thought: To search.\nAction: "I tapped on the search bar."\n' + click(447, 81)
    parsed = QWEN3.parse_response(step(), text)
    assert (parsed.thought, parsed.conclusion) == ("To search.", "I tapped on the search bar.")
    assert parsed.action == Click(point=Point(447 * 1000 / 999, 81 * 1000 / 999))
    assert QWEN3.render(step(), parsed.action, parsed.thought, parsed.conclusion) == text


def test_qwen25_reply_with_thinking_and_conclusion() -> None:
    parsed = QWEN25.parse_response(step(), QWEN25.render(step(), Press(button="HOME"), "Why not.", "Go home."))
    assert (parsed.thought, parsed.conclusion) == ("Why not.", "Go home.")


def test_the_button_of_the_recent_apps_is_the_prompts_menu() -> None:
    menu = '{"action": "system_button", "button": "Menu"}'
    recent = Press(button="RECENT")
    assert menu in QWEN25.prepare_input(step(), [reference_entry(step(recent))]).text
    assert menu in QWEN25.render(step(), recent)
    assert QWEN25.parse_response(step(), QWEN25.render(step(), recent)).action == recent
