"""UI-R1 (Qwen2.5-VL-3B): one action as a Python literal in ``<answer>``, pixels of the resized screenshot, no past.

Sources: lll6gg/UI-R1 ``evaluation/test_androidcontrol.py`` (navigation), ``evaluation/test_screenspot.py`` (grounding),
``src/ui_r1/src/open_r1/grpo_json_action_coord-nothink.py`` (the E checkpoint, which does not think), ``README.md``.

In the published format ``scroll`` has no direction, ``open_app`` no app and ``input_text`` no text: actions of which only the
type is known. If a model adds the text or the app, it is read. E is a grounding model whose only published prompt
allows clicks alone, so that prompt is used on every step. The authors' scorers take the last coordinate of a response and
rescale by fixed factors; here the first action counts, in pixels of the image that the model sees.

The paper's section 4.4 also trains with a box in place of the coordinate, and its prompt is not published: option ``target`` =
``box`` asks for one in the released words, and the middle of the box is the click.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from guieval.actions import Action, ActionSpace, Box, Click, Open, Point, Scroll, Type
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import QWEN_PIXELS, ABCModel, Family, ImageLimits, ModelConfig, ModelInput, ParsedResponse, chat
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import json_value, named_object, split_reasoning, tagged
from guieval.models.prompts import fill, main_instruction
from guieval.steps import StepTaskModel


def _typed(call: calls.Arguments) -> Action:
    text = call.values.get("text")
    return Type(text=text) if isinstance(text, str) else call.incomplete("TYPE", "it states no text")


def _opened(call: calls.Arguments) -> Action:
    app = call.values.get("app_name")
    return Open(app=app) if isinstance(app, str) and app.strip() else call.incomplete("OPEN", "it names no app")


CALLS = calls.CallTable(
    {
        # the second is the base model's own word for it; the authors' reader takes the two numbers under any key
        **dict.fromkeys(("click", "left_click"), calls.tap("coordinate", "point", "bbox")),
        "navigate_back": calls.BACK,
        "input_text": calls.Form(Type, _typed),
        "open_app": calls.Form(Open, _opened),
        "scroll": calls.Form(Scroll, lambda call: call.incomplete("SCROLL", "it has no direction")),
    }
)


class UIR1Options(ImageLimits):
    """Options of UI-R1: image limits (defaults: the processor's own), and which of the two published forms it answers in."""

    form: Literal["thinking", "direct"] = Field(
        "thinking", description="thinking: <think> then <answer> (UI-R1-3B); direct: <answer> alone (UI-R1-E-3B)"
    )
    target: Literal["point", "box"] = Field(
        "point", description="what a click gives: a coordinate, or the element's bounding box (form thinking; reward ui-r1-iou)"
    )

    @model_validator(mode="after")
    def _box_is_thought_about(self) -> Self:
        if self.target == "box" and self.form == "direct":
            raise ValueError("target 'box' is asked for in form 'thinking' alone")
        return self


class UIR1Model(ABCModel):
    """Adapter of UI-R1. Whether a checkpoint thinks is decided by its training, hence an option and no switch."""

    options: UIR1Options
    table = CALLS
    pixels = QWEN_PIXELS
    action_space = ActionSpace(types=frozenset({"CLICK", "PRESS"}), buttons=frozenset({"BACK"}), statuses=frozenset({"finish"}))
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=4)
    source = frame_source = "github.com/lll6gg/UI-R1 evaluation/test_androidcontrol.py, test_screenspot.py"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._thinks = self.options.form == "thinking"
        if not self._thinks:
            self.thinking = False

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        prompt = "ui_r1-screenspot" if task.setting == "grounding" else "ui_r1-androidcontrol"
        prompt += "-box" if self.options.target == "box" else ""
        text = self.prompt(prompt if self._thinks else "ui_r1_e-grounding")
        return chat(self.image(task), fill(text, instruction=main_instruction(task)))

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"{_thinking(thought)}<answer>"

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, rest = split_reasoning(_NEXT_ROUND.split(text, maxsplit=1)[0], "<answer>")
        action = json_value(_answer(rest))
        # the first of several actions, but not the first corner of a box
        while isinstance(action, list) and action and (len(action) == 1 or isinstance(action[0], dict)):
            action = action[0]
        grounding = task.setting == "grounding"
        if grounding and isinstance(action, list):
            action = {"coordinate": action}
        if not isinstance(action, dict):
            raise ParseError(f"the response's answer is not an action: {action!r:.80}")
        if grounding and ("coordinate" in action or "bbox" in action):
            action = {"action": "click", **action}
        name, arguments = named_object(action, "action")
        return ParsedResponse(self.read_call(task, name, arguments), thought or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        boxed = self.options.target == "box"
        place: list[float] = [0, 0, 0, 0] if boxed else [0, 0]
        name = "navigate_back"  # the authors' filler if there is no place
        if isinstance(action, Click):
            name, place = "click", self.write_place(task, action.point)
            place = self._box(task, action.point) if boxed else place
        answer = f"<answer>{[{'action': name, 'bbox' if boxed else 'coordinate': place}]!r}</answer>"
        return _thinking(thought) + answer if thought and self._thinks else answer

    def _box(self, task: StepTaskModel, point: Point) -> list[float]:
        """The smallest box around the point, in the step's frame; without one, a box that is the point."""
        around = [box for box in task.boxes_of_screen if box.x1 <= point.x <= box.x2 and box.y1 <= point.y <= box.y2]
        box = min(around, key=lambda box: (box.x2 - box.x1) * (box.y2 - box.y1), default=Box(*point, *point))
        return [*self.write_place(task, Point(box.x1, box.y1)), *self.write_place(task, Point(box.x2, box.y2))]


def _thinking(thought: str) -> str:
    return f"<think> {thought} </think> "


_NEXT_ROUND = re.compile(r"</answer>\s*<think>")
"""Where, after its answer, a response plays the next step as well."""
_BARE = re.compile(r"\s*(?:```\w*\s*)?[\[{]")


def _answer(text: str) -> str:
    """The content of ``<answer>``; without the tag, the text itself if it begins with a list or an object."""
    answer = tagged(text, "answer")
    if answer is not None:
        return answer
    if _BARE.match(text):
        return text
    raise ParseError(f"the response has no answer: {text.strip()[:80]!r}")
