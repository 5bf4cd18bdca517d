"""InfiGUI-R1 (Qwen2.5-VL-3B based): the ``mobile_use`` calls of Qwen2.5-VL after a thought that names the step's sub-goal.

Sources: InfiXAI/InfiGUI-R1 ``eval/android_control/android_control.py`` (prompts with and without a step instruction, the past
as the calls' arguments alone, image limit, the prompt without thinking). Grounding is published on the model card only; its
words are those with which two public evaluators ask this model, one of which also sends its lower image limit. That a
grounding prompt without thinking begins with the plain assistant line is the other's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, ParsedResponse, fill
from guieval.parsing import json_value, split_reasoning, tagged
from guieval.steps import StepTaskModel, whole_text

from . import _qwen_tools as tools
from ._family import PATCH, FamilyModel
from ._prompting import begun, given_thought, step_instruction, template
from ._rounds import first_round

PLAIN = "You are a helpful assistant."
NEVER = "\0"  # no answer begins with it: where the reasoning is closed, its end tag alone counts


class InfiGUIR1(FamilyModel):
    """Adapter of InfiGUI-R1. Options: ``min_pixels`` and ``max_pixels``, the latter for navigation and grounding alike."""

    title = "InfiGUI-R1"
    pixels = 4 * PATCH**2, 6400 * PATCH**2
    grounding_pixels = 4 * PATCH**2, 5600 * PATCH**2
    action_space = ActionSpace()
    thinking_switch = True
    fixes_thought = True
    source = "github.com/InfiXAI/InfiGUI-R1 eval/android_control/android_control.py"
    frame_source = "github.com/InfiXAI/InfiGUI-R1 eval/android_control/android_control.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self._image(task)
        width, height = (f"{side:.0f}" for side in self.frame(task).extent(task.screenshot_size))
        if task.setting == "grounding":
            system = template("infigui_r1-grounding-system") if self.thinking is not False else PLAIN
            question = fill(template("infigui_r1-grounding-user"), width=width, height=height, instruction=task.instruction)
            return ModelInput((Message("system", (system,)), Message("user", (image, question))))
        system = fill(template("infigui_r1-androidcontrol-system"), width=width, height=height)
        if self.thinking is False:
            # the three lines that ask for a thought end where the tools begin
            system = PLAIN + "\n\n" + system[system.index("# Tools") :]
        past = tools.progress([self._past_arguments(entry) for entry in history])
        return ModelInput((Message("system", (system,)), Message("user", (_query(task, past), image))))

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if self.thinking is False:
            raise UsageError(f"model {self.config.name!r} is asked not to think, so no thought can be given")
        return begun(self.prepare_input(task, history), f"<think>\n{given_thought(thought)}\n</think>\n")

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding":
            return self._grounded(task, whole_text(text))
        reply = tools.split_reply(text)
        action = tools.action_of(reply.call, self.frame(task), task.screenshot_size)
        sub_goal = tagged(reply.thought, "step") if reply.thought else None
        return ParsedResponse(action, reply.thought, reply.conclusion or sub_goal or None)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        goal = f"<step>{conclusion}</step>" if conclusion and "<step>" not in (thought or "") else ""
        words = "\n".join(part for part in (thought, goal) if part)
        before = f"<think>\n{words}\n</think>\n" if words and self.thinking is not False else ""
        call = tools.call_of(action, self.frame(task), task.screenshot_size)
        if task.setting == "grounding" and isinstance(action, Click):
            answer = json.dumps([{"point_2d": call["arguments"]["coordinate"], "label": "target"}])
            return f"{before}```json\n{answer}\n```"
        return before + tools.call_text(call)

    def _grounded(self, task: StepTaskModel, text: str) -> ParsedResponse:
        # the answer is the JSON after the reasoning, in which the model may already weigh a place
        text = first_round(text)
        thought, rest = split_reasoning(text, NEVER if "</think" in text else "```json")
        if "{" not in rest and "[" not in rest:
            raise ParseError(f"the reply gives no place: {text.strip()[:80]!r}")
        call = tools.split_reply(rest).call if "<tool_call>" in rest else json_value(rest)
        return ParsedResponse(tools.action_of(call, self.frame(task), task.screenshot_size, grounding=True), thought or None)

    def _past_arguments(self, entry: HistoryEntry) -> str:
        call = tools.past_call(entry, self.frame(entry.task))
        return json.dumps(call["arguments"], ensure_ascii=False)


def _query(task: StepTaskModel, past: str) -> str:
    if task.setting != "low":
        return fill(template("infigui_r1-androidcontrol-user-high"), instruction=task.instruction, history=past)
    return fill(
        template("infigui_r1-androidcontrol-user-low"),
        instruction=task.instruction,
        step_instruction=step_instruction(task),
        history=past,
    )
