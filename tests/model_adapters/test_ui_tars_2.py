"""UI-TARS-2: what each function means, several in a reply, and the conversation with the last five screenshots."""

from __future__ import annotations

from dataclasses import replace

from guieval.actions import Click, DoubleClick, Drag, Hotkey, Hover, Point, Press, RightClick, Scroll, Stop, Type, Wait
from guieval.history import reference_entry
from guieval.parsing import function_text
from guieval.registry import load_model

from .steps import step
from .tables import reads, refuses

MODEL = load_model("ui-tars-2")
CORNER, PLACE = Point(1000.0, 0.0), "<point>1000 0</point>"
REASONED = "<think_never_used_51bce0c785ca2f68081bfa7d91973934>So.</think_never_used_51bce0c785ca2f68081bfa7d91973934>"


def written(*functions: str) -> str:
    return f"{REASONED}\n<gui_think> I see it. </gui_think>\n<seed:tool_call>{''.join(functions)}</seed:tool_call>"


test_functions = reads(
    MODEL,
    (("click", {"point": PLACE}), Click(point=CORNER)),
    (("click", {"point": "1000 0"}), Click(point=CORNER)),
    (("scroll", {"point": PLACE, "direction": "down"}), Scroll(point=CORNER, direction="up")),
    (("scroll", {"direction": "left"}), Scroll(point=Point(500.0, 500.0), direction="right")),
    (("type", {"content": "a b"}), Type(text="a b")),
    (("press", {"key": "enter"}), Press(button="ENTER")),
    (("wait", {}), Wait(duration=5000.0)),
    (("wait", {"time": "2"}), Wait(duration=2000.0)),
    (("finished", {"content": "Done."}), Stop(status="finish")),
    (("call_user", {}), Stop(status="impossible")),
    (("navigate_back", {}), Press(button="BACK")),
    (("left_double", {"point": PLACE}), DoubleClick(point=CORNER)),
    (("right_single", {"point": PLACE}), RightClick(point=CORNER)),
    (("move_to", {"point": PLACE}), Hover(point=CORNER)),
    (("drag", {"start_point": PLACE, "end_point": PLACE}), Drag(start=CORNER, end=CORNER)),
    (("hotkey", {"key": "ctrl c"}), Hotkey(keys=("ctrl", "c"))),
    (("mouse_down", {}), None),
    (("navigate", {"content": "example.org"}), None),
    wrap=lambda call: [written(function_text(*call, lines=lines)) for lines in (True, False)],
    thought="I see it.",
    batch=(),
)


def test_a_text_that_ends_with_a_new_line_is_submitted() -> None:
    parsed = MODEL.parse_response(step(), written("<function=type><parameter=content>a\n</parameter></function>"))
    assert (parsed.action, parsed.batch) == (Type(text="a"), (Type(text="a"), Press(button="ENTER")))


def test_the_first_function_that_acts_is_scored() -> None:
    click, wait = function_text("click", {"point": PLACE}), function_text("wait", {"time": "1"})
    parsed = MODEL.parse_response(
        step(), written(function_text("take_screenshot", {}), click, wait, function_text("fly", {}), click)
    )
    assert (parsed.action, parsed.batch) == (Click(point=CORNER), (Click(point=CORNER), Wait()))


test_garbage_is_no_action = refuses(
    MODEL,
    "",
    "I will click on <point>5 5</point>.",
    written(),
    written(function_text("take_screenshot", {})),
    written(function_text("fly", {})),
    written(function_text("click", {})),
    written(function_text("click", {"point": "<point>1001 0</point>"})),
    written(function_text("scroll", {"direction": "away"})),
    "<seed:tool_call><function=type><parameter=content>cut",
)


def test_the_last_five_screenshots_are_shown_and_replies_lose_their_reasoning() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(7)]
    past = [reference_entry(one) for one in steps[:-1]]
    past[5] = replace(past[5], raw_response=written(function_text("wait", {})))
    prepared = MODEL.prepare_input(steps[-1], past)
    assert [image.task.step_index for image in prepared.images] == [2, 3, 4, 5, 6]
    assert prepared.messages[-2].parts == (written(function_text("wait", {})).removeprefix(f"{REASONED}\n"),)
