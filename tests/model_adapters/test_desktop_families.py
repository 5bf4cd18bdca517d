"""Fara, OpenCUA, Qwen3.5 and ScaleCUA: what their calls and code mean, what is refused, prompts and conversations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from guieval import actions as act
from guieval.conformance import check_adapter
from guieval.connectors.servers.pyautogui_code import pyautogui_code
from guieval.errors import UsageError
from guieval.history import reference_entry
from guieval.models import ABCModel, Message
from guieval.models.parsing import function_text
from guieval.registry import adapter_class, load_model, model_config
from tests.rows import every_row

from .steps import adapter, after, past, scroll, step, words
from .tables import reads, refuses

CORNER, RIGHT, MIDDLE = act.Point(0.0, 0.0), act.Point(1000.0, 0.0), act.Point(500.0, 500.0)


def computer(checkpoint: str, *, thinking: bool | None = None) -> ABCModel:
    """A checkpoint whose own prompt is the phones', with the one for computers."""
    config = model_config(checkpoint).model_copy(update={"options": {"prompt": "computer"}})
    return adapter_class(config.adapter)(config, thinking=thinking)


@every_row("thinking", [True, False])
@every_row("checkpoint", ["qwen3.5-9b", "scalecua-7b"])
def test_the_computer_prompt_conforms(checkpoint: str, thinking: bool) -> None:
    assert [str(finding) for finding in check_adapter(computer(checkpoint, thinking=thinking), "computer")] == []


# --- Fara -------------------------------------------------------------------------------------------------------------

FARA = adapter("fara")
FARAS_SCREEN = step(screenshot_size=(1428, 896))  # both sides are multiples of 28, so the resize changes nothing


def reply(**arguments: Any) -> str:
    return f"I do it.\n<tool_call>\n{json.dumps({'name': 'computer_use', 'arguments': arguments})}\n</tool_call>"


test_faras_calls = reads(
    FARA,
    ({"action": "type", "text": "zucchini", "press_enter": False}, act.Type(text="zucchini")),
    ({"action": "scroll", "pixels": 300, "coordinate": [0, 0]}, act.Scroll(point=act.Point(0.0, 0.0), direction="down")),
    ({"action": "wait"}, act.Wait(duration=3000.0)),
    ({"action": "key", "keys": ["Control", "ArrowUp"]}, act.Hotkey(keys=("ctrl", "up"))),
    ({"action": "key", "keys": ["Escape"]}, act.Hotkey(keys=("esc",))),
    *(({"action": "visit_url", "url": "https://example.org"}, None), ({"action": "web_search", "query": "lasagna"}, None)),
    ({"action": "pause_and_memorize_fact", "fact": "It is blue."}, None),
    wrap=lambda arguments: reply(**arguments),
    task=FARAS_SCREEN,
    thought="I do it.",
    batch=(),
)


def test_faras_typing_is_scored_and_all_that_it_does_is_carried_out() -> None:
    whole = FARA.parse_response(FARAS_SCREEN, reply(action="type", text="a", coordinate=[714, 448], delete_existing_text=True))
    assert whole.action == act.Type(text="a")
    click, emptied, typed, entered = whole.batch
    assert (click, typed, entered) == (act.Click(point=MIDDLE), act.Type(text="a"), act.Press(button="ENTER"))
    assert isinstance(emptied, act.Unsupported) and emptied.device == act.Hotkey(keys=("ctrl", "a"))


test_what_fara_cannot_mean_is_refused = refuses(
    FARA,
    *("", "I would click."),
    reply(action="fly"),
    *((reply(action="left_click"), "", "CLICK"), (reply(action="left_click", coordinate=[1429, 1]), "", "CLICK")),
    *(reply(action="scroll", pixels=0), reply(action="scroll", pixels="far")),
    (reply(action="scroll"), "", "SCROLL"),
    reply(action="type", text="a", coordinate=[5000, 1]),
    task=FARAS_SCREEN,
)


def test_faras_conversation_keeps_all_replies_and_the_last_two_screenshots() -> None:
    now = step(step_index=4)
    own = replace(past(2)[1], raw_response=reply(action="left_click", coordinate=[1, 1]))
    held = reference_entry(step(act.LongPress(point=MIDDLE), step_index=2))
    messages = FARA.prepare_input(now, (past(1)[0], own, held, past(4)[3])).messages
    said = ["".join(words(message)) for message in messages[1:]]
    following = "Here is the next screenshot. Think about what to do next."
    assert [message.role for message in messages] == ["system", "user", *["assistant"] * 2, *["user", "assistant"] * 2, "user"]
    assert said[0] == "Turn on Wi-Fi" and [said[3], said[5], said[7]] == [f"<{index}>{following}" for index in (2, 3, 4)]
    assert said[1].startswith('Open the settings\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "open"')
    assert said[2] == f"Thought 1\n{own.raw_response}"
    assert '"action": "long_press"' in said[4]


def test_faras_space_has_no_scrolls_to_the_sides() -> None:
    space = FARA.action_space
    assert scroll("up") in space and scroll("left") not in space


# --- OpenCUA ----------------------------------------------------------------------------------------------------------

OPENCUA = adapter("opencua")
SIZE = (1960, 1120)  # both sides are multiples of 28, so the resize changes nothing
SCREEN = step(screenshot_size=SIZE)

test_opencuas_code = reads(
    OPENCUA,
    ("pyautogui.click(980, 560)", act.Click(point=MIDDLE)),
    ("pyautogui.click(x=980, y=560, button='left', clicks=1)", act.Click(point=MIDDLE)),
    ("pyautogui.moveTo(x=980, y=560)\npyautogui.click()", act.Click(point=MIDDLE)),
    ("import time\nimport pyautogui\npyautogui.write(message='it\\'s \"a\"\\n')", act.Type(text='it\'s "a"\n')),
    ('pyautogui.write("pyautogui.click(1, 2)")', act.Type(text="pyautogui.click(1, 2)")),
    *(("pyautogui.press(keys=['enter'])", act.Press(button="ENTER")), ("pyautogui.press('return')", act.Press(button="ENTER"))),
    ("pyautogui.scroll(-5)", scroll("up", 500_000 / 1120)),
    ("pyautogui.scroll(3, x=0, y=0)", act.Scroll(point=CORNER, direction="down", distance=300_000 / 1120)),
    ("pyautogui.scroll(-1e12)", scroll("up")),
    (
        "pyautogui.moveTo(x=0, y=0)\ntime.sleep(1)\npyautogui.hscroll(10)",
        act.Scroll(point=CORNER, direction="left", distance=1_000_000 / 1960),
    ),
    *(("computer.wait()", act.Wait()), ("time.sleep(2)", act.Wait(duration=2000.0))),
    ("computer.terminate('failure')", act.Stop(status="impossible")),
    wrap=lambda code: (
        code,
        f"```python\n{code}\n```",
        f"# Step 2:\n## Thought:\nHm.\n\n## Action:\nDo it.\n\n## Code:\n{code}\n",
    ),
    task=SCREEN,
)

test_opencuas_code_that_only_a_desktop_has = reads(
    OPENCUA,
    ("pyautogui.click(x=0, y=0, clicks=2)", act.DoubleClick(point=CORNER)),
    ("pyautogui.dragTo(x=980, y=560, button='left')", act.Drag(start=None, end=MIDDLE)),
    ("pyautogui.hotkey(['ctrl', 'c'])", act.Hotkey(keys=("ctrl", "c"))),
    ("pyautogui.press(keys=['backspace'], presses=3)", None),
    wrap=lambda code: f"```python\n{code}\n```",
    task=SCREEN,
)

test_what_opencua_cannot_mean_is_refused = refuses(
    OPENCUA,
    *("", "I would click the button.", "```python\nprint('hello')\n```"),
    *("```python\nfor i in range(3):\n    pyautogui.press('tab')\n```", "```python\npyautogui.click(x=a, y=b)\n```"),
    "```python\npyautogui.click(x=1, y=\n```",
    ("pyautogui.click(x=99999, y=1)", "", "CLICK"),
    *("pyautogui.scroll(0)", "pyautogui.fly()", "os.system('true')", "import pyautogui"),
    "pyautogui.click(" + "(" * 5000 + ")" * 5000 + ")",
    "pyautogui.write(message={1: 2})",
    task=SCREEN,
)


def test_opencuas_sections_are_its_thought_and_its_conclusion() -> None:
    text = (
        "# Step 1:\n## Observation:\nA desktop.\n\n## Thought:\nI open it.\n\n## Action:\nClick on the icon.\n\n"
        "## Code:\n```python\npyautogui.click(x=980, y=560)\n```\n"
    )
    parsed = adapter("opencua").parse_response(step(screenshot_size=SIZE), text)
    assert (parsed.action, parsed.thought, parsed.conclusion) == (act.Click(point=MIDDLE), "I open it.", "Click on the icon.")


def test_opencuas_other_frame() -> None:
    relative = adapter("opencua", relative=True).parse_response(step(), "pyautogui.click(x=0.5, y=0.25)")
    assert relative.action == act.Click(point=act.Point(500.0, 250.0))


def kinds(messages: tuple[Message, ...]) -> list[str]:
    return ["".join("i" if not isinstance(part, str) else "t" for part in message.parts) for message in messages]


def test_opencuas_conversation_keeps_the_last_steps_and_three_screenshots() -> None:
    now = step(step_index=9)
    messages = adapter("opencua", max_history=7).prepare_input(now, past(9)).messages
    assert [message.role for message in messages] == ["system", *["assistant"] * 5, *["user", "assistant"] * 2, "user"]
    assert kinds(messages)[-5:] == ["i", "t", "i", "t", "it"]
    assert messages[1].parts == ('# Step 3:\n## Action:\nI "did"\n step 2\n',)
    with_thoughts = adapter("opencua", history="thought", max_images=1).prepare_input(now, past(2)).messages
    assert with_thoughts[2].parts == ('# Step 2:\n## Thought:\nThought 1\n\n## Action:\nI "did"\n step 1\n',)
    assert kinds(with_thoughts) == ["t", "t", "t", "it"]


def test_opencua_cannot_be_given_a_thought_where_its_prompt_asks_for_none() -> None:
    given = adapter("opencua").prepare_fixed_thought(step(), (), "It is there.").messages[-1]
    assert given.parts == ("## Thought:\nIt is there.\n\n",)
    with pytest.raises(UsageError, match="asks for no thought"):
        adapter("opencua", reasoning="l1").prepare_fixed_thought(step(), (), "It is there.")


@every_row("code", [f"pyautogui.{call}" for call in ("scroll(-5)", "scroll(12)", "hscroll(3)", "hscroll(-1)")])
def test_a_desktop_turns_the_wheel_as_far_as_the_reply_states(code: str) -> None:
    carried_out = pyautogui_code(act.Scroll.model_validate(OPENCUA.parse_response(SCREEN, code).action.model_dump()), SIZE)
    assert carried_out is not None and carried_out.splitlines()[-1].replace("; ", "").endswith(code)


# --- Qwen3.5 ----------------------------------------------------------------------------------------------------------

QWEN_PHONE = load_model("qwen3.5-9b")
QWEN = computer("qwen3.5-9b")


def both(name: str, arguments: dict[str, Any]) -> list[str]:
    """A call in JSON and in tags."""
    written = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    call = json.dumps({"name": name, "arguments": arguments})
    return [f"<tool_call>\n{text}\n</tool_call>" for text in (call, function_text(name, written))]


test_qwens_calls_on_computers = reads(
    QWEN,
    ({"action": "left_click", "coordinate": [1000, 0], "text": ""}, act.Click(point=RIGHT)),
    (
        {"action": "scroll", "pixels": 5, "coordinate": [1000, 0]},
        act.Scroll(point=RIGHT, direction="down", distance=500_000 / 2400),
    ),
    ({"action": "scroll", "pixels": -5}, scroll("up", 500_000 / 2400)),
    ({"action": "hscroll", "pixels": 5}, scroll("left", 500_000 / 1080)),
    ({"action": "terminate", "status": "failure"}, act.Stop(status="impossible")),
    ({"action": "answer", "text": "7"}, act.Answer(text="7")),
    wrap=lambda given: [f"I see it.\n</think>\n\n{text}" for text in both("computer", given)],
    thought="I see it.",
)

test_qwens_calls_on_phones = reads(
    QWEN_PHONE,
    (
        {"action": "swipe", "coordinate": [999, 0], "coordinate2": [0, 0]},
        act.Scroll(point=RIGHT, direction="left", distance=1000.0),
    ),
    wrap=lambda given: [f'Thought: I see it.\nAction: "Do it."\n{text}' for text in both("mobile_use", given)],
    thought="I see it.",
    conclusion="Do it.",
)

test_a_call_of_the_tool_for_computers_is_in_thousandths_under_the_prompt_for_phones_too = reads(
    QWEN_PHONE,
    ({"action": "left_click", "coordinate": [1000, 0]}, act.Click(point=RIGHT)),
    ({"action": "left_click", "coordinate": [999, 500]}, act.Click(point=act.Point(999.0, 500.0))),
    ({"action": "key", "keys": ["enter"]}, act.Press(button="ENTER")),
    wrap=lambda given: both("computer", given),
)


def test_the_actions_name_may_be_given_as_type() -> None:
    text = function_text("computer", {"type": "left_click", "coordinate": "[1000, 0]"})
    assert QWEN.parse_response(step(), f"<tool_call>\n{text}\n</tool_call>").action == act.Click(point=RIGHT)


def test_a_text_may_hold_tags_of_a_call_in_json() -> None:
    text = both("computer", {"action": "type", "text": "<function=wait>"})[0]
    assert QWEN.parse_response(step(), text).action == act.Type(text="<function=wait>")


def test_a_call_that_is_rehearsed_in_the_thought_does_not_count() -> None:
    rehearsed, made = (both("computer", {"action": "wait", "time": time})[1] for time in (1, 2))
    assert QWEN.parse_response(step(), f"{rehearsed}\n</think>\n{made}").action == act.Wait(duration=2000.0)


test_qwens_garbage_is_no_action = refuses(
    QWEN,
    *("", "<tool_call>\n</tool_call>", "<function=>", "<tool_call><function=computer><parameter=action>left_click"),
    "<function=computer></function>",
    *((text, "outside", "CLICK") for text in both("computer", {"action": "left_click", "coordinate": [2000, 10]})),
    *both("computer", {"action": "scroll", "pixels": "far"}),
    *both("computer", {"action": "fly"}),
)


@pytest.mark.parametrize("thinking", [True, False])
def test_the_switch_is_the_chat_templates(thinking: bool) -> None:
    for model in (computer("qwen3.5-9b", thinking=thinking), load_model("qwen3.5-9b", thinking=thinking)):
        assert model.prepare_input(step(), ()).extra == {"chat_template_kwargs": {"enable_thinking": thinking}}


def test_the_conversation_shows_the_last_three_screenshots() -> None:
    prepared = QWEN.prepare_input(*after(4))
    roles = [message.role for message in prepared.messages]
    assert roles == ["system", "user", "assistant", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert [image.task.step_index for image in prepared.images] == [2, 3, 4]


# --- ScaleCUA ---------------------------------------------------------------------------------------------------------

SCALE_PHONE = load_model("scalecua-7b")
SCALE = computer("scalecua-7b")
WIDTH, HEIGHT = map(int, SCALE_PHONE.frame(step()).extent(step().screenshot_size))


def written(*calls: str) -> str:
    lines = "\n".join(calls)
    return f"<think>\nI see it.\n</think>\n<operation>\nDo it.\n</operation>\n<action>\n{lines}\n</action>"


test_scalecuas_functions_of_phones = reads(
    SCALE_PHONE,
    *((f"click(x={WIDTH}, y=0)", act.Click(point=RIGHT)), (f"click({WIDTH}, 0)", act.Click(point=RIGHT))),
    *(("click(x=1.0, y=0.0)", act.Click(point=RIGHT)), ("click(x=0.5, y=0.5)", act.Click(point=MIDDLE))),
    ("click(x=1, y=1)", act.Click(point=act.Point(1000 / WIDTH, 1000 / HEIGHT))),
    ("swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.1])", scroll("up", 400.0)),
    (f"swipe(from_coord=[{WIDTH}, 0], to_coord=[0, 0])", act.Scroll(point=RIGHT, direction="left", distance=1000.0)),
    ("swipe(direction='down', amount=0.5)", scroll("down")),
    ("swipe(from_coord=[0.5, 0.5], direction='left')", scroll("left")),
    *(("swipe()", scroll("up")), ("write(message='a \"b\"')", act.Type(text='a "b"'))),
    ("write(message='it's')", act.Type(text="it's")),
    ("terminate()", act.Stop(status="finish")),
    wrap=written,
    thought="I see it.",
    conclusion="Do it.",
    batch=(),
)


def test_all_calls_of_a_reply_are_carried_out() -> None:
    parsed = SCALE.parse_response(step(), written("click(x=0.5, y=0.5)", "  write(message='a')", "fly()", "wait()"))
    assert (parsed.action, parsed.batch) == (act.Click(point=MIDDLE), (act.Click(point=MIDDLE), act.Type(text="a")))


@pytest.mark.parametrize("model", [SCALE_PHONE, SCALE])
def test_scalecuas_past_is_the_operations(model: ABCModel) -> None:
    now, past = after(2)
    told = [replace(entry, conclusion=f"Do {index}.") for index, entry in enumerate(past)]
    _, request = model.prepare_input(now, told).messages
    assert "Previous operations:\nStep 1: Do 0.\nStep 2: Do 1.\n" in "".join(map(str, request.parts))
    _, first = model.prepare_input(step(), ()).messages
    assert (
        str(first.parts[-1]).strip().endswith("Previous operations:" if model is SCALE_PHONE else "Previous operations:\nNone")
    )
