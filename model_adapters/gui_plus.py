"""GUI-Plus (Alibaba Cloud Model Studio, ``gui-plus-2026-02-26``): an ``Action:`` sentence and a call in tags, in thousandths.

Sources: help.aliyun.com/zh/model-studio/gui-automation (system prompts, the conversation, coordinates divided by 1000) and
gui-plus-interface-interaction-model (request fields, sampling, image limits). The conversation shows the last four steps with
their screenshots and names the older ones in the request; how those are joined follows Mobile-Agent-v3.5 of the same makers
(X-PLUG/MobileAgent@11cea57 ``mobile_use/utils.py``), whose README offers this service as its API.

The request for phones names the day, which a benchmark does not know: it is an option with a fixed default. Not published: a
step instruction takes the goal's place; a grounding query is sent as the page's single request, under the prompt for computers.
The page's example of an answer gives pixels; it is the older ``gui-plus``'s, whose prompt and format are others and not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import Family, Message, ModelInput, Options, ParsedResponse, chat, fill, main_instruction
from guieval.steps import StepTaskModel

from ._mobile_agent import MobileAgentModel


class GUIPlusOptions(Options):
    """What requests show, and the date that the prompt states."""

    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")
    date: str = Field("2026年02月26日 星期四", description="today's date in the prompt's words; by default the model's own")


class GUIPlus(MobileAgentModel):
    """Adapter of GUI-Plus. Options: :class:`GUIPlusOptions`. The service cannot be given a thought."""

    options: GUIPlusOptions
    step_label = "Step "
    answer_ends = True
    thinking_switch = True
    family = Family(2026, ("phone", "desktop"), reader="makers", recorded=300)
    source = frame_source = "help.aliyun.com/zh/model-studio/gui-automation (Alibaba Cloud Model Studio)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        extra = {"vl_high_resolution_images": True, "enable_thinking": self.thinking is not False}
        if task.setting == "grounding":
            return chat(self.image(task), task.instruction, system=self.prompt("gui_plus-computer-system"), extra=extra)
        most = self.options.max_images
        request = fill(
            self.prompt("gui_plus-mobile-user"),
            date=self.options.date,
            instruction=main_instruction(task),
            history=self._older(history, most) or "None",
        )
        messages = self._messages(task, history, request, self.prompt("gui_plus-mobile-system"), most)
        if history and most > 1:
            messages[-1] = Message("user", ("<tool_response>\n", self.image(task), "\n</tool_response>"))
        return ModelInput(tuple(messages), extra=extra)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        # an end tag without a block closes many of its responses in place of the call's own
        return super().parse_response(task, text.rstrip().removesuffix("</think>"))

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return super()._action(task, _plain(call))


def _plain(call: Any) -> Any:
    """A call without the schema's words around it: in ``function``, with ``parameters`` or ``call`` for the usual names."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if isinstance(call, dict) and "arguments" not in call and isinstance(call.get("parameters"), dict):
        call = {"name": call.get("name", ""), "arguments": call["parameters"]}
    if isinstance(call, dict) and call.get("type") == "function":
        call = {key: value for key, value in call.items() if key != "type"}
    return call
