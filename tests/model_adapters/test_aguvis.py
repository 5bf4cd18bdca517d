from __future__ import annotations

from guieval.actions import Answer, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.registry import load_model, model_config

from .steps import CLICK, HIGH, LOW, adapter, outside, scroll
from .tables import means, reads, refuses, writes

WHOLE = "pyautogui.click(x=0.5, y=0.75)"
TURN = "<|im_end|>\n<|im_start|>assistant<|recipient|>os\n"


def test_a_fixed_thought_is_the_begun_turn() -> None:
    model = adapter("aguvis", thinking=True)
    begun = model.prepare_fixed_thought(LOW, (), "I see it.").messages[-1]
    assert begun.parts == ("<|recipient|>all\nThought: I see it.\nAction: Tap the switch\n",)
    parsed = model.parse_response(HIGH, f"Action: Tap it.\n{TURN}{WHOLE}")
    assert (parsed.action, parsed.thought, parsed.conclusion) == (CLICK, None, "Tap it.")


def test_replies_of_the_three_modes() -> None:
    force, direct, own = (adapter("aguvis", thinking=thinking) for thinking in (True, False, None))
    sentence = f"I see it.\nAction: Tap it.\n{TURN}{WHOLE}"
    assert force.render(HIGH, CLICK, "I see it.", "Tap it.") == sentence
    assert own.render(HIGH, CLICK, "I see it.", "Tap it.") == f"<|recipient|>all\nThought: {sentence}"
    assert direct.render(HIGH, CLICK, "I see it.", "Tap it.") == WHOLE
    for model in (force, own):
        parsed = model.parse_response(HIGH, model.render(HIGH, CLICK, "I see it.", "Tap it."))
        assert (parsed.action, parsed.thought, parsed.conclusion) == (CLICK, "I see it.", "Tap it.")


test_calls_both_ways = writes(
    adapter("aguvis", thinking=False),
    *((CLICK, "pyautogui.click(x=0.5, y=0.75)"), (LongPress(point=Point(500, 750)), "mobile.long_press(x=0.5, y=0.75)")),
    (scroll("up", 300), "mobile.swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.2])"),
    *((Type(text="it's"), "pyautogui.write(message='it\\'s')"), (Open(app="drupe"), "mobile.open_app(app_name='drupe')")),
    *((Press(button="ENTER"), "pyautogui.press(keys='enter')"), (Press(button="BACK"), "mobile.back()")),
    *((Press(button="HOME"), "mobile.home()"), (Wait(duration=3000), "mobile.wait(seconds=3)")),
    *((Wait(duration=2500), "mobile.wait(seconds=2.5)"), (Stop(), "mobile.terminate(status='success')")),
    *((Stop(status="impossible"), None), (Press(button="RECENT"), None)),
)

test_tolerances = means(
    adapter("aguvis"),
    CLICK,
    ("stripped tokens", f"assistantall\nThought: a\nAction: b\nassistantos\n{WHOLE}"),
    *(("no recipient", f"Thought: a\nAction: b\n{WHOLE}"), ("by position", "pyautogui.click(0.5, 0.75)")),
    *(("one by position", "pyautogui.click(x=0.5, 0.75)"), ("numbers as text", "pyautogui.click(x='0.5', y='0.75')")),
    *(("no module", "click(x=0.5, y=0.75)"), ("the call as the sentence", f"Action: {WHOLE}")),
    ("after the end of the turn", f"{WHOLE}<|diff_marker|>\nassistantos\npyautogui.click(x=0.1, y=0.1)"),
    *(("other code before", f"import time\ntime.sleep(1)\n{WHOLE}"), ("comment", f"{WHOLE} # tap")),
    ("call talked about in the words", f"I could call pyautogui.click(x=0.1, y=0.1).{TURN}{WHOLE}"),
)

test_further_calls = reads(
    adapter("aguvis"),
    *(("pyautogui.write('a b')", Type(text="a b")), ('pyautogui.write(text="a, b)")', Type(text="a, b)"))),
    *(("pyautogui.typewrite(content='a')", Type(text="a")), ("pyautogui.press(['enter'])", Press(button="ENTER"))),
    ("pyautogui.press(key='Return')", Press(button="ENTER")),
    ("pyautogui.press('tab')", outside("press", Hotkey(keys=("tab",)), keys="tab")),
    ("mobile.swipe([0.581, 0.898], [0.601, 0.518])", Scroll(point=Point(581, 898), direction="up", distance=380)),
    *(("mobile.wait(3)", Wait(duration=3000)), ("mobile.wait()", Wait())),
    ("terminate(status='failure')", Stop(status="impossible")),
    *(("answer('42')", outside("answer", Answer(text="42"), text="42")), ("pyautogui.scroll(-0.1)", scroll("up", 100.0))),
    ("browser.select_option(x=0.5, y=0.75, value='Large')", outside("SELECT", value="Large")),
    *(("pyautogui.doubleClick()", outside("doubleClick")), ("pyautogui.click(x=0.5, y=0.75, button='right')", Unsupported)),
    ("pyautogui.click(x=0.5, y=0.75, clicks=2)", Unsupported),
    ("browser.select_option(x=0.1, y=0.2, value='a')", Unsupported),
)

test_refusals = refuses(
    adapter("aguvis"),
    *(("Thought: a\nAction: Tap it.", "no call"), ("I would call pyautogui.click(x=0.5, y=0.75).", "no call")),
    (f"{WHOLE}\nassistantos\n", "no call"),
    ("pyautogui.locateOnScreen('a.png')", "'locateOnScreen', which is not an action"),
    *(("pyautogui.click()", "lacks 'x'", "CLICK"), ("pyautogui.click(x=0.5)", "lacks 'y'", "CLICK")),
    *(("pyautogui.click(x=0.5, y=0.7", "ends inside a value"), ("pyautogui.click(x=540, y=1800)", "outside", "CLICK")),
    *(("pyautogui.write()", "lacks 'message'", "TYPE"), ("pyautogui.write(message='a", "ends inside a quoted value")),
    ("mobile.open_app(app_name='')", "names no app", "OPEN"),
    ("mobile.swipe(from_coord=[0.5, 0.5], to_coord=[0.5, 0.5])", "no length", "SCROLL"),
    ("mobile.swipe(from_coord=[0.5, 0.5])", "lacks 'to_coord'", "SCROLL"),
    *(("mobile.wait(seconds='soon')", "not a number of seconds"), ("mobile.terminate(status='maybe')", "none of success")),
)


def test_checkpoints() -> None:
    for name in ("aguvis-7b", "aguvis-72b"):
        assert load_model(name).thinking is True
        assert model_config(name).scaffold.sampling["stop"] == ["<|diff_marker|>"]
