from __future__ import annotations

from guieval.actions import Answer, Click, Point, Press, Stop, Type
from guieval.history import HistoryEntry, reference_entry
from guieval.registry import load_model

from .steps import CLICK, GROUNDING, HIGH, adapter, outside, past, scroll, step
from .tables import means, reads, refuses, writes

SAMPLE = (
    "Low-level thought: Click 'Get started' to open the setup screen for configuring audio recording settings.\n"
    'action: {"action_type":"click","x":539.5,"y":2148.0}'
)
"""The one sample the authors print."""


def test_history_in_words_and_without_what_the_format_lacks() -> None:
    own = HistoryEntry(step(step_index=1), CLICK, None, None, "raw", "model")
    text = adapter("os_genesis").prepare_input(HIGH, (own, reference_entry(step(Press(button="RECENT"))))).text
    assert 'Step 1: Click at (540, 1800). action: {"action_type":"click","x":540.0,"y":1800.0}\n' in text
    assert "Step 2: Press the recent button.\nAccessibility" in text
    assert "Step" not in adapter("os_genesis").prepare_input(GROUNDING, past()).text.replace("next step", "")


def test_points_are_pixels_of_the_screenshot_itself() -> None:
    model = load_model("os-genesis-7b")
    assert model.render(HIGH, CLICK, "a") == 'Low-level thought: a\naction: {"action_type":"click","x":540.0,"y":1800.0}'
    parsed = model.parse_response(HIGH, SAMPLE)
    assert parsed.action == Click(point=Point(539.5 / 1.08, 2148.0 / 2.4))
    assert parsed.thought == "Click 'Get started' to open the setup screen for configuring audio recording settings."
    third_party = adapter("os_genesis", coordinates="thousandths")
    assert third_party.parse_response(HIGH, '{"action_type":"click","x":500,"y":750}').action == CLICK


test_calls_both_ways = writes(
    adapter("os_genesis"),
    *((Press(button="HOME"), '{"action_type":"navigate_home"}'), (Press(button="RECENT"), None)),
    wrap=lambda call: f"action: {call}",
)

test_scroll_words_can_be_the_fingers = writes(
    adapter("os_genesis", scroll_words="finger"), (scroll("up"), 'action: {"action_type":"scroll","direction":"up"}')
)
CALL = '{"action_type":"click","x":540.0,"y":1800.0}'

test_tolerances = means(
    adapter("os_genesis"),
    CLICK,
    *(("no blank", f"action:{CALL}"), ("no label, as the scorer allows", f"Low-level thought: a\n{CALL}")),
    ("capital letter", f"Low-level thought: a\nAction: {CALL}"),
    ("bold labels", f"**Low-level thought:** a\n**action:** {CALL}"),
    *(("full-width colon", f"Low-level thought: a\naction：{CALL}"), ("list of one", f"action: [{CALL}]")),
    ("numbers as text", 'action: {"action_type":"click","x":"540","y":"1800"}'),
    *(("several actions", f'action: {CALL}\naction: {{"action_type":"wait"}}'), ("continued turn", f" {CALL}")),
)

test_further_words = reads(
    adapter("os_genesis"),
    ('{"action_type":"input_text","text":"a","x":1,"y":2}', Type(text="a")),
    ('{"action_type":"status","goal_status":"complete"}', Stop()),
    ('{"action_type":"answer","text":"42"}', outside("answer", Answer(text="42"), text="42")),
    ('{"action_type":"dismiss"}', outside("dismiss")),
    wrap=lambda call: f"action: {call}",
)

test_refusals = refuses(
    adapter("os_genesis"),
    *(("Low-level thought: click the switch", "no action"), ("action: click", "no action"), ("action: {}", "is not an action")),
    *(('action: {"x": 1, "y": 2}', "is not an action"), ('action: {"action_type":"click","x":540.0}', "lacks 'y'", "CLICK")),
    ('action: {"action_type":"click","x":540.0,"y":18', "no readable JSON"),
    ('action: {"action_type":"click","x":1540.0,"y":1800.0}', "outside", "CLICK"),
    ('action: {"action_type":"scroll"}', "lacks 'direction'", "SCROLL"),
    ('action: {"action_type":"scroll","direction":"forward"}', "none of up"),
    ('action: {"action_type":"type"}', "lacks 'text'", "TYPE"),
    ('action: {"action_type":"open_app","app_name":" "}', "names no app", "OPEN"),
    ('action: {"action_type":"status"}', "lacks 'goal_status'", "STOP"),
    ('action: {"action_type":"status","goal_status":"unknown"}', "none of successful"),
    ('action: {"action_type":"fly"}', "'fly' is not an action"),
)
