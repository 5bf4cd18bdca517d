"""OS-Genesis: a low-level thought and an action in AndroidWorld's JSON, points in pixels of the screenshot itself.

Sources: OS-Copilot/OS-Genesis ``evaluation/android_world/genesis_agents.py`` (prompt, history, actions),
``genesis_utils.py`` (layout and a training sample), ``evaluation/android_control/{qwen2vl_inference,ac_eval}.py`` (image
limit, reading). The AndroidControl prompts are those of OpenBMB/AgentCPM-GUI's evaluation, in the authors' form, since the
authors' own input files are not published.

The authors also send the screen's accessibility tree, from which the model copies its coordinates. Steps here have none, so its
place in the prompt is empty, as in the published screenshot-only evaluations; the frame of the model's guesses is an option.
AndroidWorld's prompt has no form for a step instruction, which takes the goal's place. No grounding prompt is published: the
query is sent as a goal without a history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Point, StopStatus, Wait
from guieval.errors import ParseError
from guieval.frames import PER_1000, PIXELS, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction, step_instruction
from guieval.models.parsing import ScrollWords, json_value, named_object
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

_STATUSES: dict[str, StopStatus] = {"successful": "finish", "complete": "finish", "infeasible": "impossible"}
"""``complete`` is AndroidWorld's word for what the authors call ``successful``."""
_TEXTS = {"type": "text", "input_text": "text", "open_app": "app_name"}
"""The arguments that have to be text; numbers are not taken for it."""
CALLS = calls.CallTable(
    {
        "click": calls.tap(*calls.XY),
        "long_press": calls.hold(*calls.XY),
        # the place they may come with has the focus already, or is a click that the labels keep apart
        **dict.fromkeys(("type", "input_text"), calls.typed("text")),
        "open_app": calls.opened("app_name"),
        "scroll": calls.scrolled("direction"),
        "navigate_back": calls.BACK,
        "navigate_home": calls.HOME,
        "keyboard_enter": calls.ENTER,
        "wait": Wait(),
        "status": calls.stopped("goal_status", _STATUSES),
        # the authors' "answer"; what others saw the checkpoints say; and AndroidWorld's actions beyond the authors' list
        "answer": calls.answered("text"),
        "double_tap": calls.double_clicked(*calls.XY),
        **calls.outside("dismiss", "get_text", "swipe"),
    }
)


class OSGenesisOptions(ImageLimits):
    """The checkpoint's prompt and the units of its coordinates, which differ between the released checkpoints."""

    prompt: Literal["androidcontrol", "androidworld"] = Field(
        "androidcontrol", description="which prompt is used: that of the AC or of the AW checkpoints"
    )
    coordinates: Literal["pixels", "thousandths"] = Field(
        "pixels", description="what x and y are in: pixels of the screenshot, or thousandths of it, as third parties read them"
    )
    scroll_words: ScrollWords = Field(
        "content", description="what a scroll's direction names: where the content comes from or where the finger goes"
    )


class OSGenesis(ABCModel):
    """Adapter of OS-Genesis's mobile checkpoints. Options: :class:`OSGenesisOptions`."""

    options: OSGenesisOptions
    thought_form = "Low-level thought: {thought}\naction:"
    table = CALLS
    action_space = ActionSpace()
    family = Family(2024, ("phone",), reader="makers")
    source = frame_source = "github.com/OS-Copilot/OS-Genesis evaluation/android_world/genesis_agents.py"

    def frame(self, task: StepTaskModel) -> Frame:
        return PIXELS if self.options.coordinates == "pixels" else PER_1000

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response. As in the authors' scorer a missing ``action:`` is tolerated, and the first object counts."""
        label = _LABEL.search(text)
        start = label.end() if label is not None else text.find("{")
        if start < 0:
            raise ParseError("the response has no action")
        thought = _THOUGHT.sub("", text[: label.start() if label is not None else start]).strip(" \t\r\n`*")
        name, arguments = named_object(json_value(text[start:]), "action_type")
        if (key := _TEXTS.get(name)) and not isinstance(written := arguments.get(key), str | None):
            raise ParseError(f"{name} has {written!r:.80} as {key!r}, which is not a text")
        return ParsedResponse(self.read_call(task, name, arguments), thought or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = self._call(task, action)
        return f"Low-level thought: {thought}\naction: {call}" if thought else f"action: {call}"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        lines = "\n".join(f"Step {number}: {self._past(entry)}" for number, entry in enumerate(history, 1))
        if self.options.prompt == "androidworld":
            values = {"instruction": main_instruction(task), "accessibility_tree": ""}
        else:
            values = {"instruction": task.instruction, "a11y_tree": ""}
        name = f"os_genesis-{self.options.prompt}"
        if self.options.prompt == "androidcontrol":
            name += "-low" if task.setting == "low" else "-high"
            if task.setting == "low":
                values["step_instruction"] = step_instruction(task)
        # the samples begin with "<image>\n"
        return chat(self.image(task), f"\n{self.prompt(name, history=lines, **values)}")

    def _past(self, entry: HistoryEntry) -> str:
        sentence = " ".join((entry.thought or self.sentence(entry)).split())
        if entry.action not in self.action_space:
            return sentence
        return f"{sentence} action: {self._call(entry.task, entry.action)}"

    def _call(self, task: StepTaskModel, action: Action) -> str:
        name, arguments = self.write_call(task, action)
        return json.dumps({"action_type": name, **arguments}, ensure_ascii=False, separators=(",", ":"))

    def write_place(self, task: StepTaskModel, point: Point) -> list[float]:
        return list(map(float, super().write_place(task, point)))


_LABEL = re.compile(r"\baction\s{0,3}[*]{0,2}[:：][*]{0,2}\s*(?=\{|\[\s*\{|```)", re.IGNORECASE)
_THOUGHT = re.compile(r"\A[\s*]*+low-level thought[ \t*]*[:：][ \t*]*", re.IGNORECASE)
