"""Qwen2-VL: the box of a reply, slips that are tolerated, garbage that is refused, and what is sent."""

from __future__ import annotations

from guieval.actions import Click, Point
from guieval.registry import load_model

from .steps import GROUNDING
from .tables import means, refuses

MODEL = load_model("qwen2-vl-7b")

test_the_middle_of_the_first_box_is_the_click = means(
    MODEL,
    Click(point=Point(250.0, 400.0)),
    "<|box_start|>(200,300),(300,500)<|box_end|> in the image, not <|box_start|>(1,1),(2,2)<|box_end|>",
    *("<|box_start|>(200,300,300,500)<|box_end|>", "<|box_start|>(250,400)<|box_end|>", "the switch(200,300),(300,500)"),
    "It is at [200, 300, 300, 500].",
    task=GROUNDING,
)

test_what_is_no_box_on_the_screen_is_no_action = refuses(
    MODEL,
    *("", "The bounding box is in the pane on the right, next to y1 and y2.", "<|box_start|>the switch<|box_end|>"),
    ("<|box_start|>(200,300),(300,1900)<|box_end|>", "outside", "CLICK"),
    "<|box_start|>(200,300,400)<|box_end|>",
    task=GROUNDING,
)
