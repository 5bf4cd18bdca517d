"""Kimi K2.5 and K2.6 (hosted) on desktops: a sentence and ``pyautogui`` code in sections, places as fractions of the screen.

Source: OSWorld's agent (xlang-ai/OSWorld ``mm_agents/kimi/kimi_agent.py``, read in ljxpython/OSWorldUse@b5007a9), a beta: its
prompts with thinking and without, the conversation (three screenshots; the steps before them are one turn of text; the task
stands with the last screenshot alone), and how a response is read: the last fence counts, and numbers above 1 are pixels.

A model of the service thinks by itself; the switch chooses the prompt, as in that agent, which sends no field for it. All calls
of a block are carried out online, and the first that acts is scored; ``computer.wait`` is 20 seconds. A step instruction and a
grounding query take the task's place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from guieval import actions as act
from guieval.errors import ParseError
from guieval.frames import RELATIVE, Size
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, Message, ModelInput, Options, ParsedResponse, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import split_reasoning
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _pyautogui as code

LONG = act.Wait(duration=20_000.0)
FENCE = re.compile(r"```(?:code|python)?\s*(.*?)\s*```", re.DOTALL | re.IGNORECASE)
SECTION = re.compile(r"^[ \t]*##[ \t]*(Thought|Action|Code)\b[ \t]*:?[ \t]*$", re.MULTILINE)
ANSWER = re.compile(r"answer['\"]?\s*[=:]\s*(['\"])(.*?)\1", re.DOTALL)


class KimiOptions(Options):
    """What requests show, and what the prompt states of the computer."""

    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")
    password: str = Field("osworld-public-evaluation", description="the computer's password, which the prompt names")


class KimiK25(ABCModel):
    """Adapter of Kimi K2.5. Options: :class:`KimiOptions`."""

    options: KimiOptions
    table = calls.CallTable(
        {**code.CALLS, "wait": calls.Form(act.Wait, lambda _: LONG, lambda action, _: {} if action == LONG else None)}
    )
    fixed_frame = RELATIVE
    thinking_switch = True
    action_space = desktop.SPACE
    family = Family(2026, ("desktop",))
    source = "github.com/ljxpython/OSWorldUse@b5007a9 mm_agents/kimi/kimi_agent.py, a copy of xlang-ai/OSWorld's"
    frame_source = f"{source} (fractions up to 1, else pixels)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        name = f"kimi_k2_5-computer-{'no-' if self.thinking is False else ''}thinking-system"
        messages = [Message("system", (self.prompt(name, password=self.options.password),))]
        shown = self.first_shown(history, self.options.max_images)
        texts = [f"# Step {number}:\n{self.past_response(entry)}" for number, entry in enumerate(history, 1)]
        if shown:
            messages.append(Message("assistant", ("\n".join(texts[:shown]),)))
        for entry, text in zip(history[shown:], texts[shown:], strict=True):
            messages += [Message("user", (self.image(entry.task),)), Message("assistant", (text,))]
        query = self.prompt("kimi_k2_5-computer-user", instruction=main_instruction(task))
        return ModelInput((*messages, Message("user", (self.image(task), query))))

    def past_response(self, entry: HistoryEntry) -> str:
        form = "## Thought:\n{}\n\n## Action:\n{}\n" if self.thinking is False else "◁think▷{}◁/think▷## Action:\n{}\n"
        return form.format(entry.thought or "", self.sentence(entry))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response: its sections, and the last fence."""
        reasoning, rest = split_reasoning(text.replace("◁", "<").replace("▷", ">"), "## Action")
        parts = SECTION.split(rest)
        sections = dict(zip((name.lower() for name in parts[1::2]), map(str.strip, parts[2::2]), strict=True))
        blocks = FENCE.findall(rest)
        if not blocks:
            raise ParseError(f"the response has no code: {rest.strip()[:80]!r}")
        batch = self._actions(task, blocks[-1])
        thought, sentence = reasoning or sections.get("thought"), sections.get("action")
        return ParsedResponse(
            batch[-1] if batch[-1].type == "STOP" else batch[0],
            thought or None,
            sentence or None,
            tuple(batch) if len(batch) > 1 else (),
        )

    def _actions(self, task: StepTaskModel, block: str) -> list[act.Action]:
        words = block.lower()
        if "computer.wait" in words:
            return [LONG]
        if "computer.terminate" in words:
            if "fail" not in words and "success" not in words:
                raise ParseError(f"the response's end has no status: {block[:80]!r}")
            end = calls.IMPOSSIBLE if "fail" in words else calls.FINISH
            answer = ANSWER.search(block)
            return [*calls.answer_first("terminate", answer and answer[2], end)] or [end]
        found, batch, pending = code.calls_of(block, code.POSITIONS), list[act.Action](), list[code.PyAutoGuiCall]()
        for number, call in enumerate(found, 1):
            pending.append(code.PyAutoGuiCall(call.name, _fractions(call.arguments, task.screenshot_size)))
            if call.name not in ("moveTo", "sleep") or number == len(found):
                batch.append(code.action_of(self, task, pending))
                pending = []
        return batch

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        before = f"<think>{thought}</think>" if self.thinking is not False else f"## Thought\n{thought}\n"
        block = f"```python\n{code.written(self, task, action)}\n```"
        return f"{before if thought else ''}## Action:\n{conclusion or ''}\n## Code:\n{block}"


def _fractions(arguments: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """A call's arguments with its place in fractions: both numbers up to 1 are some, else they are pixels."""
    x, y = arguments.get("x"), arguments.get("y")
    if not isinstance(x, int | float) or not isinstance(y, int | float) or (x <= 1 and y <= 1):
        return dict(arguments)
    return {**arguments, "x": x / size[0], "y": y / size[1]}
