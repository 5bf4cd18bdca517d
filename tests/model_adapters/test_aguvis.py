from __future__ import annotations

import ast
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Action, Answer, Click, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef, Message
from guieval.registry import load_model, model_config

from .replies import rows, screenshot_sizes, size_of
from .steps import CLICK, adapter, past, step

HIGH = step()
LOW = step(setting="low", low_level_instruction="Tap the switch")
GROUNDING = step(setting="grounding")
WHOLE = "pyautogui.click(x=0.5, y=0.75)"
TURN = "<|im_end|>\n<|im_start|>assistant<|recipient|>os\n"
USER = (
    "Please generate the next move according to the ui screenshot, instruction and previous actions.\n\n"
    "Instruction: Turn on Wi-Fi\n\nPrevious actions:\n"
)


def test_the_published_messages_with_the_past_as_sentences() -> None:
    system, user, begun = adapter("aguvis", thinking=True).prepare_input(HIGH, past()).messages
    assert user.parts == (ImageRef(HIGH, None), f'{USER}Step 1: Open the settings\nStep 2: I "did" step 1\n')
    (text,) = system.parts
    assert isinstance(text, str)
    # agent_system_message; first 16 digits of its SHA-256
    assert hashlib.sha256(text.encode()).hexdigest().startswith("4a27a4babe8fe868")
    assert text.startswith(
        "You are a GUI agent. You are given a task and a screenshot of the screen. You need to perform a series "
    )
    assert '\n- {"name": "mobile.home", "description": "Press the home button"}\n' in text
    assert text.count("\n- ") == 6
    assert begun == Message("assistant", ("<|recipient|>all\nThought: ",))


def test_history_of_plain_steps_is_in_fractions() -> None:
    own = HistoryEntry(step(step_index=1), CLICK, None, None, "raw", "model")
    back = reference_entry(step(Press(button="BACK")))
    text = adapter("aguvis").prepare_input(HIGH, (own, back)).text
    assert text.endswith("Previous actions:\nStep 1: Click at (0.5, 0.75).\nStep 2: Press the back button.\n")
    assert adapter("aguvis").prepare_input(HIGH, ()).text.endswith("Previous actions:\nNone\n")


def test_modes_are_beginnings_of_the_turn() -> None:
    force, direct, own = (adapter("aguvis", thinking=thinking) for thinking in (True, False, None))
    assert force.prepare_input(HIGH, ()).messages[-1] == Message("assistant", ("<|recipient|>all\nThought: ",))
    assert direct.prepare_input(HIGH, ()).messages[-1] == Message("assistant", ("<|recipient|>os\n",))
    assert own.prepare_input(HIGH, ()).messages[-1].role == "user"
    assert not own.prepare_input(HIGH, ()).prefill
    for model in (force, direct, own):
        request = model.prepare_input(LOW, ())
        assert request.messages[-1] == Message("assistant", ("<|recipient|>all\nAction: Tap the switch\n",))
        assert request.prefill
        assert request.extra == {"continue_final_message": True, "add_generation_prompt": False}
    with pytest.raises(DataError, match="step instruction"):
        force.prepare_input(step(setting="low"), ())


def test_grounding_has_its_own_system_message_and_no_past() -> None:
    system, user, begun = adapter("aguvis").prepare_input(GROUNDING, past()).messages
    assert system.parts == (
        "You are a GUI agent. You are given a task and a screenshot of the screen. You need to perform a series of pyautogui "
        "actions to complete the task.",
    )
    assert user.parts == (ImageRef(GROUNDING, None), f"{USER}None\n")
    assert begun.parts == ("<|recipient|>all\n",)


def test_a_fixed_thought_is_the_begun_turn() -> None:
    model = adapter("aguvis", thinking=True)
    request = model.prepare_fixed_thought(HIGH, (), "I see it.")
    assert request.messages[-1] == Message("assistant", ("<|recipient|>all\nThought: I see it.\n",))
    assert request.prefill
    begun = model.prepare_fixed_thought(LOW, (), "I see it.").messages[-1]
    assert begun.parts == ("<|recipient|>all\nThought: I see it.\nAction: Tap the switch\n",)
    parsed = model.parse_response(HIGH, f"Action: Tap it.\n{TURN}{WHOLE}")
    assert (parsed.action, parsed.thought, parsed.conclusion) == (CLICK, None, "Tap it.")
    with pytest.raises(UsageError, match="thinking is turned off"):
        adapter("aguvis", thinking=False).prepare_fixed_thought(HIGH, (), "I see it.")


def test_replies_of_the_three_modes() -> None:
    force, direct, own = (adapter("aguvis", thinking=thinking) for thinking in (True, False, None))
    sentence = f"I see it.\nAction: Tap it.\n{TURN}{WHOLE}"
    assert force.render(HIGH, CLICK, "I see it.", "Tap it.") == sentence
    assert own.render(HIGH, CLICK, "I see it.", "Tap it.") == f"<|recipient|>all\nThought: {sentence}"
    assert direct.render(HIGH, CLICK, "I see it.", "Tap it.") == WHOLE
    for model in (force, own):
        parsed = model.parse_response(HIGH, model.render(HIGH, CLICK, "I see it.", "Tap it."))
        assert (parsed.action, parsed.thought, parsed.conclusion) == (CLICK, "I see it.", "Tap it.")


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (CLICK, "pyautogui.click(x=0.5, y=0.75)"),
        (LongPress(point=Point(500, 750)), "mobile.long_press(x=0.5, y=0.75)"),
        (
            Scroll(point=Point(500, 500), direction="up", distance=300),
            "mobile.swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.2])",
        ),
        (Type(text="it's"), "pyautogui.write(message='it\\'s')"),
        (Open(app="drupe"), "mobile.open_app(app_name='drupe')"),
        (Press(button="ENTER"), "pyautogui.press(keys='enter')"),
        (Press(button="BACK"), "mobile.back()"),
        (Press(button="HOME"), "mobile.home()"),
        (Wait(duration=3000), "mobile.wait(seconds=3)"),
        (Wait(duration=2500), "mobile.wait(seconds=2.5)"),
        (Stop(), "mobile.terminate(status='success')"),
    ],
)
def test_calls_both_ways(action: Action, call: str) -> None:
    model = adapter("aguvis", thinking=False)
    assert model.render(HIGH, action) == call
    assert model.parse_response(HIGH, call).action == action


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"assistantall\nThought: a\nAction: b\nassistantos\n{WHOLE}", id="stripped tokens"),
        pytest.param(f"Thought: a\nAction: b\n{WHOLE}", id="no recipient"),
        pytest.param(f"```python\n{WHOLE}\n```", id="fence"),
        pytest.param("pyautogui.click(0.5, 0.75)", id="by position"),
        pytest.param("pyautogui.click(x=0.5, 0.75)", id="one by position"),
        pytest.param("pyautogui.click(x='0.5', y='0.75')", id="numbers as text"),
        pytest.param("click(x=0.5, y=0.75)", id="no module"),
        pytest.param(f"Action: {WHOLE}", id="the call as the sentence"),
        pytest.param(f"{WHOLE}\npyautogui.write(message='a')", id="several calls"),
        pytest.param(f"{WHOLE}<|diff_marker|>\nassistantos\npyautogui.click(x=0.1, y=0.1)", id="after the end of the turn"),
        pytest.param(f"import time\ntime.sleep(1)\n{WHOLE}", id="other code before"),
        pytest.param(f"{WHOLE} # tap", id="comment"),
        pytest.param(f"I could call pyautogui.click(x=0.1, y=0.1).{TURN}{WHOLE}", id="call talked about in the words"),
    ],
)
def test_tolerances(text: str) -> None:
    assert adapter("aguvis").parse_response(HIGH, text).action == CLICK


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pyautogui.write('a b')", Type(text="a b")),
        ('pyautogui.write(text="a, b)")', Type(text="a, b)")),
        ("pyautogui.typewrite(content='a')", Type(text="a")),
        ("pyautogui.press(['enter'])", Press(button="ENTER")),
        ("pyautogui.press(key='Return')", Press(button="ENTER")),
        ("pyautogui.press('tab')", Unsupported(name="press", arguments={"keys": "tab"}, device=Hotkey(keys=("tab",)))),
        ("mobile.swipe([0.581, 0.898], [0.601, 0.518])", Scroll(point=Point(581, 898), direction="up", distance=380)),
        ("mobile.wait(3)", Wait(duration=3000)),
        ("mobile.wait()", Wait()),
        ("terminate(status='failure')", Stop(status="impossible")),
        ("answer('42')", Unsupported(name="answer", arguments={"text": "42"}, device=Answer(text="42"))),
        (
            "pyautogui.hotkey(keys=['ctrl', 'c'])",
            Unsupported(name="hotkey", arguments={"keys": "['ctrl', 'c']"}, device=Hotkey(keys=("ctrl", "c"))),
        ),
        ("pyautogui.scroll(-0.1)", Unsupported(name="scroll", arguments={"page": "-0.1"})),
        ("pyautogui.doubleClick()", Unsupported(name="doubleClick")),
        ("pyautogui.click(x=0.5, y=0.75, button='right')", None),
        ("pyautogui.click(x=0.5, y=0.75, clicks=2)", None),
        ("browser.select_option(x=0.1, y=0.2, value='a')", None),
    ],
)
def test_further_calls(call: str, expected: Action | None) -> None:
    action = adapter("aguvis").parse_response(HIGH, call).action
    assert action == expected if expected is not None else isinstance(action, Unsupported)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Thought: a\nAction: Tap it.", "no call"),
        ("I would call pyautogui.click(x=0.5, y=0.75).", "no call"),
        (f"{WHOLE}\nassistantos\n", "no call"),
        ("pyautogui.locateOnScreen('a.png')", "'locateOnScreen', which is not an action"),
        ("pyautogui.click()", "lacks 'x'"),
        ("pyautogui.click(x=0.5)", "lacks 'y'"),
        ("pyautogui.click(x=0.5, y=0.7", "ends inside a value"),
        ("pyautogui.click(x=540, y=1800)", "outside"),
        ("pyautogui.write()", "lacks 'message'"),
        ("pyautogui.write(message='a", "ends inside a quoted value"),
        ("mobile.open_app(app_name='')", "names no app"),
        ("mobile.swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.5])", "no length"),
        ("mobile.swipe(from_coord=[0.5, 0.5])", "lacks 'to_coord'"),
        ("mobile.wait(seconds='soon')", "not a number of seconds"),
        ("mobile.terminate(status='maybe')", "none of success"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("aguvis").parse_response(HIGH, text)


def test_what_it_cannot_say() -> None:
    for action in (Stop(status="impossible"), Press(button="RECENT")):
        with pytest.raises(ValueError, match="has no word for"):
            adapter("aguvis").render(HIGH, action)


def test_checkpoints() -> None:
    for name in ("aguvis-7b", "aguvis-72b"):
        assert load_model(name).thinking is True
        assert model_config(name).frame == load_model(name).frame(HIGH).name
        assert model_config(name).sampling["stop"] == ["<|diff_marker|>"]


def test_recorded_replies(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """150 grounding replies; the source states each point in pixels of the screenshot: all agree.

    So do its verdicts: the point lies in the target's box where it says so, and nowhere else.
    """
    model, sizes = adapter("aguvis"), screenshot_sizes(shared_data)
    counts: Counter[str] = Counter()
    for row in rows(shared_data, "aguvis"):
        size = size_of(row, sizes)
        assert size is not None
        assert row.expected is not None
        action = model.parse_response(step(setting="grounding", screenshot_size=size), row.text).action
        assert isinstance(action, Click)
        point = action.point.x * size[0] / 1000, action.point.y * size[1] / 1000
        assert point == pytest.approx(row.expected["point_px"], abs=1e-6), row.text
        left, top, right, bottom = ast.literal_eval(row.note(r"px=(\[.*?\])"))
        verdict = row.note(r"verdict=(\w+)")
        assert (left <= point[0] <= right and top <= point[1] <= bottom) == (verdict == "correct")
        counts[f"same, {verdict}"] += 1
    with capsys.disabled():
        print(f"\naguvis: {dict(counts)}")
    assert counts.total() == 150
