from __future__ import annotations

from guieval.actions import Click, Point, Press
from guieval.registry import load_model

from .steps import GROUNDING, step
from .tables import means, reads, refuses, thinks

INFIGUI = load_model("infigui-r1-3b")
SILENT = load_model("infigui-r1-3b", thinking=False)


MIDDLE = Point(500.0, 500.0)  # (546, 1204) of 1092 x 2408


def call(arguments: str) -> str:
    return f'<tool_call>\n{{"name": "mobile_use", "arguments": {arguments}}}\n</tool_call>'


CLICK = call('{"action": "click", "coordinate": [546, 1204]}')

test_replies = reads(
    INFIGUI,
    ("published form", "<think>The bar. <step>Tap the bar.</step></think>\n" + CLICK, Click(point=MIDDLE)),
    ("rehearsed", "<think>not " + call('{"action": "wait"}') + "</think>" + CLICK, Click(point=MIDDLE)),
)

test_refuses = refuses(
    INFIGUI,
    (call('{"action": "click", "coordinate": [1093, 0]}'), r"\(1093, 0\) lies outside the 1092 x 2408 frame", "CLICK"),
    *((call('{"action": "tap_twice"}'), "'tap_twice' is not an action"), ("<think>a</think>", "no readable JSON")),
    ("<think>The bar is at [546, 1204].</think>", "no readable JSON"),
    *(('```json\n[{"point_2d": [546, 1204]}]\n```', "names no action"), ("[546, 1204]", "not a call")),
)

test_thought_and_sub_goal = thinks(
    INFIGUI,
    ("<think>\nThe bar. <step>Tap the bar.</step>\n</think>\n" + CLICK, "The bar. <step>Tap the bar.</step>", "Tap the bar."),
    (CLICK, None, None),
)


def test_a_sub_goal_is_written_into_the_thought() -> None:
    assert INFIGUI.render(step(), Press(button="HOME"), "I leave.", "Go home.") == (
        "<think>\nI leave.\n<step>Go home.</step>\n</think>\n" + call('{"action": "system_button", "button": "Home"}')
    )
    assert SILENT.render(step(), Press(button="HOME"), "I leave.", "Go home.").startswith("<tool_call>")


test_grounding_answers = means(
    INFIGUI,
    Click(point=MIDDLE),
    '<think>The bar.</think>\n```json\n[\n    {"point_2d": [546, 1204], "label": "bar"}\n]\n```',
    '<think>The bar.</think>[{"point_2d": [546, 1204], "label": "bar"}]',
    '<think>```json\n[{"point_2d": [1, 2]}]``` no</think>[{"point_2d": [546, 1204]}]',
    *('<think>The bar.\n```json\n[{"point_2d": [546, 1204]}]\n```', '[{"point_2d": [546, 1204]}, {"point_2d": [1, 2]}]'),
    *('{"bbox_2d": [545, 1200, 547, 1208]}', "<think>a</think>[546, 1204]"),
    "<think>a</think>" + CLICK,
    task=GROUNDING,
)

test_no_grounding_answers = refuses(
    INFIGUI,
    *('<think>[{"point_2d": [546, 1204]}]</think>', '[{"point_2d": [546, 12', "<think>[546, 1204]", '[{"label": "bar"}]', ""),
    task=GROUNDING,
)
