"""Qwen2-VL: the box of a reply, slips that are tolerated, garbage that is refused, and what is sent."""

from __future__ import annotations

import pytest

from guieval.actions import Action, Click, Point
from guieval.errors import ParseError
from guieval.models import ImageRef
from guieval.registry import load_model

from .steps import past, step


def read(text: str) -> Action:
    return load_model("qwen2-vl-7b").parse_response(step(setting="grounding"), text).action


@pytest.mark.parametrize(
    "text",
    [
        "<|object_ref_start|>the switch<|object_ref_end|><|box_start|>(200,300),(300,500)<|box_end|><|im_end|>",
        "<|box_start|>(200,300),(300,500)<|box_end|> in the image, not <|box_start|>(1,1),(2,2)<|box_end|>",
        "<|box_start|>(200,300,300,500)<|box_end|>",
        "<|box_start|>(250,400)<|box_end|>",
        "the switch(200,300),(300,500)",
        "It is at [200, 300, 300, 500].",
        "<|box_start|>(200,300),(300,500)",
    ],
)
def test_the_middle_of_the_first_box_is_the_click(text: str) -> None:
    assert read(text) == Click(point=Point(250.0, 400.0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The bounding box is in the pane on the right, next to y1 and y2.",
        "<|box_start|>the switch<|box_end|>",
        "<|box_start|>(200,300),(300,1900)<|box_end|>",
        "<|box_start|>(200,300,400)<|box_end|>",
    ],
)
def test_what_is_no_box_on_the_screen_is_no_action(text: str) -> None:
    with pytest.raises(ParseError):
        read(text)


def test_the_screenshot_comes_first_and_there_is_no_past() -> None:
    model = load_model("qwen2-vl-7b")
    second = step(step_index=1)
    prepared = model.prepare_input(second, past(1))
    (message,) = prepared.messages
    assert isinstance(message.parts[0], ImageRef) and message.parts[0].task == second
    assert second.instruction in str(message.parts[1])
    assert prepared.extra == {"skip_special_tokens": False}
