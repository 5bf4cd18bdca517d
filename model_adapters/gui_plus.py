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

from guieval.actions import Action, ActionSpace
from guieval.frames import PER_1000
from guieval.history import HistoryEntry, describe
from guieval.models import Message, ModelInput, ParsedResponse, Part, fill
from guieval.parsing import call_tables as calls
from guieval.parsing import first_round, split_reasoning
from guieval.steps import StepTaskModel, whole_text

from . import _qwen_tools as tools
from ._family import FamilyModel, Options, chat, main_instruction, past_sentence, template

CALLS = calls.CallTable(tools.CALLS, drag=calls.dragged((), ("coordinate",)), **calls.outside("interact"))


class GUIPlusOptions(Options):
    """Options of GUI-Plus."""

    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")
    date: str = Field("2026年02月26日 星期四", description="today's date in the prompt's words; by default the model's own")


class GUIPlus(tools.QwenToolsModel):
    """Adapter of GUI-Plus. Options: :class:`GUIPlusOptions`. The service cannot be given a thought."""

    _options: GUIPlusOptions
    table = CALLS
    fixed_frame = PER_1000
    action_space = ActionSpace()
    thinking_switch = True
    source = frame_source = "help.aliyun.com/zh/model-studio/gui-automation (Alibaba Cloud Model Studio)"
    _opening = FamilyModel._opening

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        extra = {"vl_high_resolution_images": True, "enable_thinking": self.thinking is not False}
        if task.setting == "grounding":
            return chat(self._image(task), task.instruction, system=template("gui_plus-computer-system"), extra=extra)
        shown = self._options.max_images - 1
        older = history[: max(0, len(history) - shown)]
        request = fill(
            template("gui_plus-mobile-user"),
            date=self._options.date,
            instruction=main_instruction(task),
            history="\n".join(f"Step {number}: {self._sentence(entry)}" for number, entry in enumerate(older, 1)) or "None",
        )
        turns: list[tuple[Part, ...]] = [()] * len(older) + [(request,), *[()] * (len(history) - len(older))]
        messages = [*self._conversation(task, history, turns, shown + 1)][len(older) :]
        if history and shown:
            messages[-1] = Message("user", ("<tool_response>\n", self._image(task), "\n</tool_response>"))
        return ModelInput((Message("system", (template("gui_plus-mobile-system"),)), *messages), extra=extra)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        # an end tag without a block closes many of its replies in place of the call's own
        return super().parse_response(task, whole_text(text).rstrip().removesuffix("</think>"))

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return super()._action(task, _plain(call))

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = self._call(task, action)
        if task.setting == "grounding":
            call["name"] = "computer_use"
        before = self._thinking(thought) if thought and self.thinking is not False else ""
        return f"{before}Action: {conclusion or describe(action)}\n{tools.call_text(call)}"

    def _past_reply(self, entry: HistoryEntry) -> str:
        """A past reply without its thought, as the service's own clients send it back."""
        if entry.raw_response is not None:
            return split_reasoning(first_round(entry.raw_response), "<tool_call>")[1].lstrip()
        return self._written(entry.task, entry.action, None, self._sentence(entry))

    def _sentence(self, entry: HistoryEntry) -> str:
        return past_sentence(entry, PER_1000)


def _plain(call: Any) -> Any:
    """A call without the schema's words around it: in ``function``, with ``parameters`` or ``call`` for the usual names."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if isinstance(call, dict) and "arguments" not in call and isinstance(call.get("parameters"), dict):
        call = {"name": call.get("name", ""), "arguments": call["parameters"]}
    if isinstance(call, dict) and call.get("type") == "function":
        call = {key: value for key, value in call.items() if key != "type"}
    return call
