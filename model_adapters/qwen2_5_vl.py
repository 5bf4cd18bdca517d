"""Qwen2.5-VL: ``mobile_use`` calls in pixels of the resized screenshot, the past as JSON calls in the user turn.

Sources: QwenLM/Qwen2.5-VL ``cookbooks/mobile_agent.ipynb`` (prompt, history, frame); InfiXAI/InfiGUI-R1
``eval/android_control`` (the line for a step instruction, adapted from the authors' own evaluation);
likaixin2000/ScreenSpot-Pro-GUI-Grounding ``models/qwen2_5vl.py`` (grounding: a prefilled ``left_click``); the GUIEvalKit
paper, appendix E (the ``<thinking>`` block of a given thought, printed there for GUI-Owl, which is this family tuned).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from guieval.actions import BUTTONS, Action, ActionSpace, Click
from guieval.history import HistoryEntry
from guieval.models import QWEN_PIXELS, Family, ImageLimits, ModelInput, ParsedResponse, begun, chat, fill
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools


class Qwen25VL(tools.QwenToolsModel):
    """Adapter of Qwen2.5-VL. Options: ``min_pixels`` and ``max_pixels``, which must equal the server's (defaults: its own)."""

    options: ImageLimits
    thinking_form = "<thinking>\n{thought}\n</thinking>\n"
    pixels = QWEN_PIXELS
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    grounds_silently = True
    family = Family(2025, ("phone", "grounding"), reader="vLLM", recorded=349)
    source = "github.com/QwenLM/Qwen2.5-VL cookbooks/mobile_agent.ipynb"
    frame_source = "github.com/QwenLM/Qwen2.5-VL cookbooks/mobile_agent.ipynb; QwenLM/Qwen3-VL issue #676"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self.image(task)
        if task.setting == "grounding":
            # published as a chat template writes it, with the answer begun
            turns = self.prompt("qwen2_5_vl-computer-grounding").split("<|im_start|>")[1:]
            system, question, answer = (turn.partition("\n")[2].removesuffix("<|im_end|>\n") for turn in turns)
            question = fill(question.removeprefix(IMAGE), instruction=task.instruction)
            return begun(chat(image, question, system=fill(system, **self.screen(task))), answer)
        system = self.prompt("qwen2_5_vl-mobile-system", **self.screen(task))
        past = tools.progress([tools.call_json(self._past_call(entry)) for entry in history])
        question = self._question(task, "qwen2_5_vl-mobile-user", past)
        return chat(question, image, system=system)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        continued = tools.CONTINUED.match(text) if task.setting == "grounding" else None
        if continued is not None:
            return ParsedResponse(self.read_click(task, continued[1]))
        return super().parse_response(task, text)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = self._call(task, action)
        if task.setting == "grounding" and isinstance(action, Click):
            # the grounding prompt ends with an open bracket, which the model closes
            return json.dumps(call["arguments"]["coordinate"])[1:] + "}}\n</tool_call>"
        before = self._thinking(thought) if thought else ""
        after = f"\n<conclusion>\n{conclusion}\n</conclusion>" if conclusion else ""
        return before + tools.call_text(call) + after


IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
