"""The OCR baseline: its wire format both ways, its policy on given texts, what it may not see, and real OCR."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from guieval.actions import Action, Box, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.data.screenshots import Screenshot
from guieval.errors import ScreenshotError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel, Request
from guieval.registry import load_model
from guieval.steps import Setting, StepTaskModel
from tests.rows import every_row

from .steps import step as made

PHONE, DESKTOP = (360, 800), (1920, 1080)
Line = tuple[str, Box]
needs_ocr = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None, reason="the extra 'baseline' (RapidOCR) is not installed"
)


@pytest.fixture(scope="module")
def agent() -> ABCModel:
    return load_model("ocr-baseline")


def step(instruction: str = "Turn on Bluetooth", setting: Setting = "high", index: int = 0, **fields: Any) -> StepTaskModel:
    values: dict[str, Any] = {"episode_length": 9, "screenshot_size": PHONE, "action": Stop(), **fields}
    return made(step_index=index, setting=setting, instruction=instruction, **values)


def line(text: str, y: float, x: float = 100.0, width: float = 200.0) -> Line:
    return text, Box(x, y - 10, x + width, y + 10)


def past(*steps: tuple[Action, str]) -> tuple[HistoryEntry, ...]:
    return tuple(
        reference_entry(step(index=index, action=action, low_level_instruction=sentence))
        for index, (action, sentence) in enumerate(steps)
    )


def answer(
    agent: Any, task: StepTaskModel, texts: Sequence[Line], history: Sequence[HistoryEntry] = (), size: tuple[int, int] = PHONE
) -> Action:
    """The action for given texts on the screen, by way of the agent's own prompt and reply."""
    prompt = next(part for part in agent.prepare_input(task, history).messages[-1].parts if isinstance(part, str))
    return agent.parse_response(task, agent.decide(prompt, texts, size)).action  # type: ignore[no-any-return]


def clicked(action: Action) -> Point:
    assert isinstance(action, Click)
    return action.point


SCREEN = (
    line("Network & internet", 150),
    line("Bluetooth", 250),
    line("Display", 350),
    line("Batterysaver", 450),
    line("Storage", 550),
)


@every_row(
    ("target", "y"),
    [("bluetooth", 250), ("open storage settings", 550), ("view the battery saver", 450), ("check networks", 150)],
)
def test_grounding_clicks_the_text_that_fits_best(agent: ABCModel, target: str, y: float) -> None:
    point = clicked(answer(agent, step(target, "grounding"), SCREEN))
    assert 100 < point.x < 300 and point.y == y


def test_grounding_clicks_within_a_joined_line(agent: ABCModel) -> None:
    screen = (line("Overview   Documents   Pictures   Downloads", 100, x=0, width=1000),)
    left = clicked(answer(agent, step("switch to documents", "grounding"), screen, size=DESKTOP))
    right = clicked(answer(agent, step("switch to downloads", "grounding"), screen, size=DESKTOP))
    assert 250 < left.x < 550 < 750 < right.x


def test_grounding_always_clicks_on_the_screen(agent: ABCModel) -> None:
    for target in ("back to previous page", "close the window", "something unheard of", "...", ""):
        for size in (PHONE, DESKTOP):
            for screen in ((), SCREEN, (("edge", Box(990, 990, 1100, 1100)),)):
                assert isinstance(answer(agent, step(target, "grounding"), screen, size=size), Click)


def test_an_icon_without_text_is_sought_where_it_usually_is(agent: ABCModel) -> None:
    back = clicked(answer(agent, step("back to previous page", "grounding"), SCREEN))
    assert back.x < 150 and back.y < 100


@every_row(
    ("instruction", "expected"),
    [
        *(("Open the Clock app", Open(app="Clock")), ("Type 'red shoes' into the search bar", Type(text="red shoes"))),
        *(("Enter hello", Type(text="hello")), ("Press the back button", Press(button="BACK"))),
        *(("Go back to the previous page", Press(button="BACK")), ("Go to the home screen", Press(button="HOME"))),
        *(("Press enter", Press(button="ENTER")), ("Wait for the page to load", Wait()), ("Finish the task.", Stop())),
        ("Report that the task is impossible.", Stop(status="impossible")),
        ("Swipe up.", Scroll(point=Point(500, 500), direction="up")),
        ("Scroll down to see more", Scroll(point=Point(500, 500), direction="up")),
        ("Scroll the list to the left", Scroll(point=Point(500, 500), direction="right")),
        *(("Tap on Display", Click(point=Point(200, 350))), ("Long press 'Display'", LongPress(point=Point(200, 350)))),
    ],
)
def test_one_steps_instruction_becomes_its_action(agent: ABCModel, instruction: str, expected: Action) -> None:
    assert answer(agent, step("irrelevant", "low", low_level_instruction=instruction), SCREEN) == expected


def test_an_app_that_is_named_is_opened_first_and_once(agent: ABCModel) -> None:
    task = step("Turn on Bluetooth in the Settings app")
    assert answer(agent, task, SCREEN) == Open(app="Settings")
    assert clicked(answer(agent, task, SCREEN, past((Open(app="Settings"), "Open the Settings app")))).y == 250


def test_a_search_taps_the_field_types_and_submits(agent: ABCModel) -> None:
    task = step("Search for 'red shoes' in the Shop app")
    shop, keys = line("Search products", 80), line("qwertyuiop", 750)
    steps: list[tuple[Action, str]] = [(Open(app="Shop"), "Open the Shop app")]
    assert clicked(answer(agent, task, [shop], past(*steps))).y == 80
    steps.append((Click(point=Point(200, 80)), "Tap the search field"))
    assert answer(agent, task, [shop, keys], past(*steps)) == Type(text="red shoes")
    steps.append((Type(text="red shoes"), "Type 'red shoes'"))
    assert answer(agent, task, [line("red shoes", 80), keys], past(*steps)) == Press(button="ENTER")
    steps.append((Press(button="ENTER"), "Submit"))
    assert answer(agent, task, [line("Red shoes 42", 200)], past(*steps)) == Stop()


def test_deleting_finds_the_thing_then_the_button(agent: ABCModel) -> None:
    task = step("Delete the note 'Milk'")
    assert clicked(answer(agent, task, [line("Bread", 100), line("Milk", 200)])).y == 200
    after = past((Click(point=Point(200, 200)), "Tap 'Milk'"))
    assert clicked(answer(agent, task, [line("Milk", 80), line("Share", 300), line("Delete", 400)], after)).y == 400


def test_what_is_not_on_the_screen_is_looked_for_below_and_then_elsewhere(agent: ABCModel) -> None:
    task = step("Open the note 'Zebra'")
    screen = [line("Apple", 100), line("Pear", 200)]
    swipe = (Scroll(point=Point(500, 500), direction="up"), "Swipe up.")
    actions = [answer(agent, task, screen, past(*[swipe] * count)) for count in range(4)]
    assert [action.type for action in actions] == ["SCROLL", "SCROLL", "SCROLL", "PRESS"]


def test_loading_is_waited_for_and_absence_is_reported(agent: ABCModel) -> None:
    task = step("Open the note 'Zebra'")
    assert answer(agent, task, [line("Loading...", 500)]) == Wait()
    assert answer(agent, task, [line("No results for Zebra", 500)]) == Stop(status="impossible")


def test_the_same_tap_is_not_repeated(agent: ABCModel) -> None:
    task = step("Open the note 'Milk'")
    tapped = past((Click(point=Point(200, 200)), "Tap on the second row"))
    assert answer(agent, task, [line("Milk", 200)], tapped).type != "CLICK"


def test_a_form_is_filled_field_by_field_and_saved(agent: ABCModel) -> None:
    task = step("Create a note titled 'Milk' with the text 'Two litres' in the Notes app")
    steps: list[tuple[Action, str]] = [(Open(app="Notes"), "Open the Notes app")]
    form, keys = [line("Save", 70, x=850, width=80), line("Title", 150), line("Text", 300)], line("qwertyuiop", 750)
    assert clicked(answer(agent, task, [line("Notes", 70)], past(*steps))).y > 800
    steps.append((Click(point=Point(880, 930)), "Tap the 'New note' button"))
    assert clicked(answer(agent, task, form, past(*steps))).y == 150
    steps.append((Click(point=Point(200, 150)), "Tap the title field"))
    assert answer(agent, task, [*form, keys], past(*steps)) == Type(text="Milk")
    steps.append((Type(text="Milk"), "Type 'Milk'"))
    assert clicked(answer(agent, task, [*form, keys], past(*steps))).y == 300
    steps.append((Click(point=Point(200, 300)), "Tap the text field"))
    assert answer(agent, task, [*form, keys], past(*steps)) == Type(text="Two litres")
    steps.append((Type(text="Two litres"), "Type 'Two litres'"))
    assert clicked(answer(agent, task, [*form, keys], past(*steps))).y == 70
    steps.append((Click(point=Point(890, 70)), "Tap 'Save'"))
    assert answer(agent, task, [line("Milk", 200)], past(*steps)) == Stop()


def test_a_switch_is_tapped_at_the_end_of_its_row_once(agent: ABCModel) -> None:
    task = step("Turn off 'Dark theme'")
    row = line("Dark theme", 400)
    point = clicked(answer(agent, task, [row], past((Open(app="Settings"), "Open the Settings app"))))
    assert point.x > 850 and point.y == 400
    flipped = past((Open(app="Settings"), "Open the Settings app"), (Click(point=point), "Tap the switch"))
    assert answer(agent, task, [row], flipped) == Stop()


@pytest.mark.parametrize("setting", ["high", "low", "grounding"])
def test_labels_do_not_change_the_input(agent: ABCModel, setting: Setting) -> None:
    plain = step(setting=setting, low_level_instruction="Tap on Bluetooth" if setting == "low" else None)
    labelled = step(
        setting=setting,
        low_level_instruction="Tap on Bluetooth" if setting == "low" else "Tap on Display",
        action=Click(point=Point(1, 2)),
        alternatives=(Press(button="HOME"),),
        targets=Boxes([[0, 0, 5, 5]]),
        extras={"answer": "Display"},
        groups={"element": "icon"},
    )
    assert agent.prepare_input(plain, ()).text == agent.prepare_input(labelled, ()).text
    assert answer(agent, plain, SCREEN) == answer(agent, labelled, SCREEN)


@given(
    goal=st.text(max_size=60),
    texts=st.lists(st.tuples(st.text(max_size=12), st.integers(0, 1000)), max_size=6),
    setting=st.sampled_from(["high", "low", "grounding"]),
)
def test_any_prompt_and_screen_give_one_action_the_same_each_time(
    agent: ABCModel, goal: str, texts: list[tuple[str, int]], setting: Setting
) -> None:
    task = step(goal, setting, low_level_instruction=goal)
    screen = [line(text, y) for text, y in texts]
    first = answer(agent, task, screen)
    assert first in agent.action_space
    assert answer(agent, task, screen) == first


def png(texts: Sequence[tuple[str, int]], size: tuple[int, int] = PHONE, colour: str = "white") -> Screenshot:
    image = Image.new("RGB", size, colour)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size[0] / 20)
    for text, y in texts:
        draw.text((size[0] * 0.06, size[1] * y / 1000), text, font=font, fill="black")
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return Screenshot(buffer.getvalue(), "png", size)


def request(agent: ABCModel, task: StepTaskModel, *images: Screenshot) -> Request:
    return Request(agent.prepare_input(task, ()), images, {}, "r", task)


@needs_ocr
@pytest.mark.parametrize("size", [(360, 800), (2160, 4800)])
def test_it_reads_pixels_and_clicks_the_text(agent: ABCModel, size: tuple[int, int]) -> None:
    screen = png([("Bluetooth", 200), ("Display", 400), ("Storage", 600)], size)
    other = png([("Storage", 200), ("Bluetooth", 400), ("Display", 600)], size)
    task = step("display", "grounding", screenshot_size=size)
    for images, y in (((screen,), 410), ((other,), 610), ((other, screen), 410)):
        reply = agent.respond(request(agent, task, *images))
        assert clicked(agent.parse_response(task, reply).action).y == pytest.approx(y, abs=25)
        assert agent.respond(request(agent, task, *images)) == reply


@needs_ocr
def test_respond_looks_at_input_and_images_only(agent: ABCModel) -> None:
    asked = request(agent, step("bluetooth", "grounding"), png([("Bluetooth", 200), ("Display", 400)]))
    elsewhere = Request(asked.input, asked.images, {}, "other", step("display", "low", low_level_instruction="Go back"))
    assert agent.respond(elsewhere) == agent.respond(asked)


@needs_ocr
def test_threads_share_the_reader(agent: ABCModel) -> None:
    screens = [png([(text, 300)]) for text in ("Alarm", "Camera", "Gallery")] * 3
    asked = [request(agent, step("anything", "grounding"), screen) for screen in screens]
    alone = [agent.respond(one) for one in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(agent.respond, asked)) == alone


@needs_ocr
def test_an_empty_screen_and_a_damaged_one(agent: ABCModel) -> None:
    task = step("display", "grounding")
    assert clicked(agent.parse_response(task, agent.respond(request(agent, task, png([])))).action) == Point(500, 500)
    damaged = Screenshot(b"\x89PNG\r\n\x1a\n" + bytes(50), "png", PHONE)
    with pytest.raises(ScreenshotError, match="the screenshot is not a readable PNG, JPEG or WebP image"):
        agent.respond(request(agent, task, damaged))


def test_without_the_extra_the_error_states_what_to_install_before_there_is_a_run(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['rapidocr_onnxruntime'] = sys.modules['rapidocr'] = None\n"
        "from guieval.cli import main; sys.argv[1:] = 'run --model ocr-baseline --bench demo --out run'.split(); main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, "pip install 'guieval[baseline]'" in done.stderr, (tmp_path / "run").exists()) == (2, True, False)
