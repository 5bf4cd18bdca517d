"""OpenCUA: what its code means, its sections, and the conversation."""

from __future__ import annotations

import pytest

from guieval.actions import Click, DoubleClick, Drag, Hotkey, Hover, Point, Press, RightClick, Scroll, Stop, Type, Wait
from guieval.errors import UsageError
from guieval.frames import RELATIVE, ResizedPixels
from guieval.models import Message
from guieval.online.servers.pyautogui_code import pyautogui_code
from guieval.registry import load_model
from tests.rows import every_row

from .steps import adapter, past, step
from .tables import reads, refuses

OPENCUA = adapter("opencua")
SIZE = (1960, 1120)  # both sides are multiples of 28, so the resize changes nothing
SCREEN = step(screenshot_size=SIZE)
CORNER, MIDDLE = Point(0.0, 0.0), Point(500.0, 500.0)


test_opencuas_code = reads(
    OPENCUA,
    ("pyautogui.click(x=980, y=560)", Click(point=MIDDLE)),
    ("pyautogui.click(980, 560)", Click(point=MIDDLE)),
    ("pyautogui.click(x=980, y=560, button='left', clicks=1)", Click(point=MIDDLE)),
    ("pyautogui.moveTo(x=980, y=560)\npyautogui.click()", Click(point=MIDDLE)),
    ("import time\nimport pyautogui\npyautogui.write(message='it\\'s \"a\"\\n')", Type(text='it\'s "a"\n')),
    ('pyautogui.write("pyautogui.click(1, 2)")', Type(text="pyautogui.click(1, 2)")),
    ("pyautogui.press(keys=['enter'])", Press(button="ENTER")),
    ("pyautogui.press('return')", Press(button="ENTER")),
    ("pyautogui.scroll(-5)", Scroll(point=MIDDLE, direction="up", distance=500_000 / 1120)),
    ("pyautogui.scroll(3, x=0, y=0)", Scroll(point=CORNER, direction="down", distance=300_000 / 1120)),
    ("pyautogui.scroll(-1e12)", Scroll(point=MIDDLE, direction="up")),
    (
        "pyautogui.moveTo(x=0, y=0)\ntime.sleep(1)\npyautogui.hscroll(10)",
        Scroll(point=CORNER, direction="left", distance=1_000_000 / 1960),
    ),
    ("computer.wait()", Wait()),
    ("time.sleep(2)", Wait(duration=2000.0)),
    ("computer.terminate(status='success')", Stop()),
    ("computer.terminate('failure')", Stop(status="impossible")),
    wrap=lambda code: (
        code,
        f"```python\n{code}\n```",
        f"# Step 2:\n## Thought:\nHm.\n\n## Action:\nDo it.\n\n## Code:\n{code}\n",
    ),
    task=SCREEN,
)

test_opencuas_code_that_only_a_desktop_has = reads(
    OPENCUA,
    ("pyautogui.doubleClick(x=0, y=0)", DoubleClick(point=CORNER)),
    ("pyautogui.click(x=0, y=0, clicks=2)", DoubleClick(point=CORNER)),
    ("pyautogui.rightClick(0, 0)", RightClick(point=CORNER)),
    ("pyautogui.moveTo(x=980, y=560)", Hover(point=MIDDLE)),
    ("pyautogui.moveTo(x=0, y=0)\npyautogui.dragTo(x=980, y=560, button='left')", Drag(start=CORNER, end=MIDDLE)),
    ("pyautogui.dragTo(x=980, y=560, button='left')", Drag(start=None, end=MIDDLE)),
    ("pyautogui.hotkey('ctrl', 'c')", Hotkey(keys=("ctrl", "c"))),
    ("pyautogui.hotkey(['ctrl', 'c'])", Hotkey(keys=("ctrl", "c"))),
    ("pyautogui.hotkey(keys=['ctrl', 'c'])", Hotkey(keys=("ctrl", "c"))),
    ("pyautogui.press('backspace')", Hotkey(keys=("backspace",))),
    ("pyautogui.press(keys=['backspace'], presses=3)", None),
    ("computer.triple_click(x=0, y=0)", None),
    wrap=lambda code: f"```python\n{code}\n```",
    task=SCREEN,
)

test_what_opencua_cannot_mean_is_refused = refuses(
    OPENCUA,
    "",
    "I would click the button.",
    "```python\nprint('hello')\n```",
    "```python\nfor i in range(3):\n    pyautogui.press('tab')\n```",
    "```python\npyautogui.click(x=a, y=b)\n```",
    "```python\npyautogui.click(x=1, y=\n```",
    "pyautogui.click(x=99999, y=1)",
    "pyautogui.scroll(0)",
    "pyautogui.fly()",
    "os.system('true')",
    "import pyautogui",
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
    assert (parsed.action, parsed.thought, parsed.conclusion) == (Click(point=MIDDLE), "I open it.", "Click on the icon.")


def test_opencuas_frames() -> None:
    assert load_model("opencua-7b").frame(step()) == ResizedPixels(28, 3136, 12_845_056)
    assert load_model("opencua-qwen2-7b").frame(step()) == RELATIVE
    assert adapter("opencua", relative=True).parse_response(
        step(), "```python\npyautogui.click(x=0.5, y=0.25)\n```"
    ).action == Click(point=Point(500.0, 250.0))


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
    carried_out = pyautogui_code(Scroll.model_validate(OPENCUA.parse_response(SCREEN, code).action.model_dump()), SIZE)
    assert carried_out is not None and carried_out.splitlines()[-1].replace("; ", "").endswith(code)
