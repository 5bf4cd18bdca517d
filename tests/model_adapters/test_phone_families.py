"""MAI-UI, AutoGLM-Phone, Step-GUI and UI-Venus-1.5: what each verb means, slips that are tolerated, and the past."""

from __future__ import annotations

import json
from typing import Any

from guieval.actions import Click, LongPress, Open, Point, Scroll, Stop, Type, Wait
from guieval.conformance.examples import example_step
from guieval.frames import PER_999, PER_1000
from guieval.history import reference_entry
from guieval.models import ABCModel, Message
from guieval.registry import build_model, load_model
from guieval.steps import StepTaskModel
from tests.rows import every_row

from .steps import scroll
from .tables import reads, refuses

MAI_UI, AUTOGLM, STEP_GUI = map(load_model, ("mai-ui-8b", "autoglm-phone-9b", "gelab-zero-4b-preview"))
MIDDLE, CORNER = Point(500.0, 500.0), Point(0.0, 0.0)


def step(**changes: Any) -> StepTaskModel:
    return example_step(Click(point=MIDDLE), **changes)


def texts(message: Message) -> str:
    return "".join(part for part in message.parts if isinstance(part, str))


def past_of(model: ABCModel, replies: int) -> list[Message]:
    """The messages of a step after so many, without the system's."""
    steps = [step(index=index, length=replies + 1) for index in range(replies + 1)]
    entries = [reference_entry(each) for each in steps[:-1]]
    return [each for each in model.prepare_input(steps[-1], entries).messages if each.role != "system"]


# --- MAI-UI -----------------------------------------------------------------------------------------------------------


def mai(thought: str = "t", **arguments: Any) -> str:
    call = json.dumps({"name": "mobile_use", "arguments": arguments})
    return f"<thinking>\n{thought}\n</thinking>\n<tool_call>\n{call}\n</tool_call>"


test_mai_uis_calls = reads(
    MAI_UI,
    ({"action": "swipe", "direction": "up"}, scroll("up")),
    ({"action": "swipe", "direction": "left", "coordinate": [0, 0]}, Scroll(point=CORNER, direction="left")),
    ({"action": "click", "coordinate": [0, 0, 999, 999]}, Click(point=MIDDLE)),
    wrap=lambda arguments: mai(**arguments),
)

test_mai_ui_swipes_to_a_side = refuses(MAI_UI, mai(action="swipe", direction="sideways"))


def test_mai_uis_frames_are_999_in_calls_and_1000_in_grounding() -> None:
    grounding = '<grounding_think>It is there.</grounding_think>\n<answer>\n{"coordinate": [250,500]}\n</answer>'
    parsed = MAI_UI.parse_response(step(setting="grounding"), grounding)
    assert parsed.action == Click(point=Point(250.0, 500.0)) and parsed.thought == "It is there."
    assert MAI_UI.frame(step()) == PER_999 and MAI_UI.frame(step(setting="grounding")) == PER_1000


def test_mai_uis_thought_may_lack_its_first_tag() -> None:
    parsed = MAI_UI.parse_response(step(), "I tap it.</think>\n" + mai(action="wait").partition("</thinking>\n")[2])
    assert parsed.action == Wait() and parsed.thought == "I tap it."


def test_mai_uis_past_keeps_all_replies_and_the_last_two_screenshots() -> None:
    messages = past_of(MAI_UI, 4)
    roles = [message.role if all(isinstance(part, str) for part in message.parts) else "image" for message in messages]
    assert roles == ["user", "assistant", "assistant", "image", "assistant", "image", "assistant", "image"]
    assert '{"name":"mobile_use","arguments":{"action":"click","coordinate":[500,500]}}' in texts(messages[1])


# --- AutoGLM-Phone ----------------------------------------------------------------------------------------------------


test_autoglms_calls = reads(
    AUTOGLM,
    ('do(action="Type", text="say \\"hi\\"")', Type(text='say "hi"')),
    *(('do(action="Type_Name", text="李雷")', Type(text="李雷")), ('finish(message="Done (all of it).")', Stop())),
    wrap=lambda call: (call, f"<think>why</think>\n<answer>{call}</answer>", f"<think>why</think><answer>\n{call}\n</answer>"),
)

test_autoglms_garbage = refuses(
    AUTOGLM, 'do(action="Fly")', 'do(action="Wait", duration="a while")', "I would tap.", 'do(action="Tap", element=[x,y])'
)


def test_autoglms_thought_is_what_stands_before_the_call() -> None:
    assert AUTOGLM.parse_response(step(), 'The page loads.\ndo(action="Home")').thought == "The page loads."


# --- Step-GUI ---------------------------------------------------------------------------------------------------------


test_step_guis_fields = reads(
    STEP_GUI,
    *(("action:CLICK\tpoint:500,500", Click(point=MIDDLE)), ("action:CLICK\tpoint:500 500", Click(point=MIDDLE))),
    *(("action:TYPE\tvalue:hello: world\tpoint:1,2", Type(text="hello: world")), ("action:COMPLETE\treturn:all done", Stop())),
    *(("action:ABORT\tvalue:no such app", Stop(status="impossible")), ("action:WAIT\tvalue:2", Wait(duration=2000.0))),
    *(("action:AWAKE\tvalue:Maps", Open(app="Maps")), ("action:SLIDE\tpoint1:500,500\tpoint2:100,500", scroll("left", 400))),
    ("action:LONGPRESS\tpoint:0,0", LongPress(point=CORNER)),
    wrap=lambda fields: [
        f"<{opened}> I see it. </{closed}>\nexplain:tap it\t{fields}\tsummary:Opened the app."
        for opened, closed in (("THINK", "THINK"), ("think", "think"), ("TINK", "TINK"))
    ],
    thought="I see it.",
    conclusion="Opened the app.",
)

test_step_guis_garbage_is_no_action = refuses(
    STEP_GUI,
    *("", "<THINK> hm </THINK>", "explain:tap\tsummary:done", "action:JUMP", "action:CLICK\tpoint:here"),
    ("action:CLICK", "lacks", "CLICK"),
)


# --- UI-Venus-1.5 -----------------------------------------------------------------------------------------------------


def test_ui_venus_1_5_keeps_the_last_five_steps_numbered_from_zero() -> None:
    (message,) = past_of(load_model("ui-venus-1.5-8b"), 7)
    assert "Step 4: <think>" in texts(message) and "Step 5:" not in texts(message)


# --- scales that public sources dispute -------------------------------------------------------------------------------

SCALED = [
    ("mai-ui-8b", 999, {}, mai(action="click", coordinate=[500, 250])),
    ("ui-venus-1.5-8b", 1000, {}, "<action>Click(box=(500,250))</action>"),
    ("ui-venus-1.5-8b", 1000, {"setting": "grounding"}, "[500,250]"),
    ("gelab-zero-4b-preview", 1000, {}, "<THINK>x</THINK>\nexplain:y\taction:CLICK\tpoint:500,250\tsummary:z"),
    ("evocua-8b", 999, {}, '<tool_call>\n{"arguments": {"action": "left_click", "coordinate": [500, 250]}}\n</tool_call>'),
    ("autoglm-phone-9b", 1000, {}, '<think>x</think>\n<answer>do(action="Tap", element=[500,250])</answer>'),
]


@every_row(("name", "default", "setting", "text"), SCALED)
@every_row("scale", [None, 999, 1000])
def test_the_scale_is_an_option(name: str, default: int, setting: dict[str, Any], text: str, scale: int | None) -> None:
    config = load_model(name).config
    model = build_model(config if scale is None else config.model_copy(update={"options": {**config.options, "scale": scale}}))
    used = scale or default
    task = step(**setting)
    action = model.parse_response(task, text).action
    assert action == Click(point=Point(500_000 / used, 250_000 / used))
    assert model.parse_response(task, model.render(task, action)).action == action
    assert model.frame(task).name == f"0-{used}"
    assert [frame.name for frame in model.disputed_frames] == ["0-999", "0-1000"]
