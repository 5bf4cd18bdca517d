from __future__ import annotations

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.errors import ParseError
from guieval.history import HistoryEntry, reference_entry
from guieval.registry import build_model, load_model, model_config
from guieval.steps import StepTaskModel
from tests.rows import every_row

from .steps import step

MODEL = load_model("tiny-policy")
GOAL = "tap red circle, blue star"
SCREEN = (252, 448)
TAP = Click(point=Point(500.5005005, 37.0370370))


def task(**changes: object) -> StepTaskModel:
    sentence = {"instruction": GOAL, "low_level_instruction": "tap red circle", "screenshot_size": SCREEN}
    return step(TAP, **{**sentence, **changes})


def test_the_past_is_a_line_a_step() -> None:
    own = HistoryEntry(task(), TAP, "red  circle", None, "raw", "model")
    assert MODEL.prepare_input(task(), (own,)).text == f"{GOAL}\nred circle click(500,037)"
    assert MODEL.prepare_input(task(), (reference_entry(task()),)).text == f"{GOAL}\ntap red circle click(500,037)"
    bare = HistoryEntry(task(), TAP, None, None, None, "model")
    assert MODEL.prepare_input(task(), (bare,)).text == f"{GOAL}\nclick(500,037)"
    untold = reference_entry(task(low_level_instruction=None))
    assert MODEL.prepare_input(task(), (untold,)).text == f"{GOAL}\nclick(500,037)"
    other = reference_entry(step(Scroll(point=Point(500.0, 500.0), direction="up")))
    assert MODEL.prepare_input(task(), (other, own)).text == f"{GOAL}\nswipe(500,500,up)\nred circle click(500,037)"


def test_a_large_screenshot_is_sent_as_the_checkpoint_sees_it() -> None:
    (image,) = MODEL.prepare_input(step(TAP, screenshot_size=(1080, 2400)), ()).images
    assert image.resize is not None
    width, height = image.resize
    assert width % 28 == height % 28 == 0 and width * height <= 256 * 28**2


def test_a_reply_is_a_thought_and_a_place() -> None:
    read = MODEL.parse_response(task(), "blue star click(512,037)\n")
    assert isinstance(read.action, Click)
    assert (read.thought, read.conclusion) == ("blue star", None)
    assert read.action.point == pytest.approx((512 / 999 * 1000, 37 / 999 * 1000))
    assert MODEL.parse_response(task(), "click(512,037)").thought is None
    assert MODEL.render(task(), TAP, "blue star") == "blue star click(500,037)"


@every_row(
    "reply",
    [
        *("", "blue star", "click(512,37)", "blue star click(512,037", "click(512,037) blue star", "click(0512,037)"),
        "tap(512,037)",
    ],
)
def test_any_other_form_is_no_action(reply: str) -> None:
    with pytest.raises(ParseError, match="does not end in an action"):
        MODEL.parse_response(task(), reply)


@every_row(
    ("action", "reply"),
    [
        *((LongPress(point=TAP.point), "hold(500,037)"), (Scroll(point=TAP.point, direction="up"), "swipe(500,037,up)")),
        *((Type(text="7 (of 9)\nnow "), "type(7 (of 9)\nnow )"), (Open(app="Notes"), "open(Notes)")),
        *((Press(button="BACK"), "press(BACK)"), (Wait(), "wait()"), (Stop(status="impossible"), "stop(impossible)")),
    ],
)
def test_every_action_has_a_form(action: Action, reply: str) -> None:
    assert MODEL.render(task(), action, "the bar") == f"the bar {reply}"
    read = MODEL.parse_response(task(), f"the bar {reply}")
    assert read.thought == "the bar"
    assert MODEL.render(task(), read.action) == reply
    if not isinstance(action, LongPress | Scroll):  # a place is written in whole thousandths
        assert read.action == action


def test_without_words_the_past_and_the_reply_are_actions_alone() -> None:
    model = build_model(model_config("tiny-policy").model_copy(update={"options": {"words": False, "max_pixels": 50176}}))
    past = (reference_entry(task()), HistoryEntry(task(), Open(app="Notes"), "the notes", None, "raw", "model"))
    asked = model.prepare_input(task(screenshot_size=(360, 800)), past)
    assert asked.text == f"{GOAL}\nclick(500,037)\nopen(Notes)"
    assert asked.images[0].resize == (140, 308)
    assert model.render(task(), TAP, "blue star", "tap blue star") == "click(500,037)"
