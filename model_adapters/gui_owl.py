"""GUI-Owl: Qwen2.5-VL's ``mobile_use`` calls between a thinking block and a conclusion, in pixels of the resized screenshot.

Sources: X-PLUG/MobileAgent ``Mobile-Agent-v3/cookbook/end2end_usage.ipynb`` (prompts, both forms of history, limits),
``android_world_v3/.../agents/gui_owl.py`` (past conclusions without newlines and double quotes; ``tap`` for ``click``,
``open_app`` for ``open``). The past is given as conclusions, or as the whole conversation with the last two screenshots,
which is how its authors evaluate AndroidControl (issue #157); which one is an option of the checkpoint.

For a step instruction nothing is published: it takes the goal's place, as GUIEvalKit does it, with the past as conclusions
(a conversation opened by the current step's instruction would make no sense). The authors' grounding prompt was never put
into the repository; a grounding query is put as the instruction of the published ``computer_use`` prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace
from guieval.errors import UsageError
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, ParsedResponse, fill
from guieval.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._family import PATCH, FamilyModel
from ._options import ImageLimits
from ._prompting import begun, given_thought, main_instruction, past_sentence, template
from ._rounds import first_round

CALLS = calls.CallTable(tools.CALLS, open_app=tools.CALLS["open"], drag=calls.OUTSIDE)
"""``drag`` is the computer prompt's, where it is the mouse's and no swipe."""


class GUIOwlOptions(ImageLimits):
    """Options of GUI-Owl; limits default to the authors' own, which differ between the mobile and the computer prompt."""

    history: Literal["conclusions", "turns"] = Field(
        "conclusions", description="how the past is given: in the user's turn, or as the conversation (high-level steps only)"
    )
    max_images: int = Field(
        2, ge=1, description="screenshots per request where the past is given in turns, with the current one"
    )


class GUIOwl(FamilyModel):
    """Adapter of GUI-Owl. Options: :class:`GUIOwlOptions`."""

    title = "GUI-Owl"
    pixels = 4 * PATCH**2, 12800 * PATCH**2
    grounding_pixels = 100 * PATCH**2, 12800 * PATCH**2
    options_type = GUIOwlOptions
    _options: GUIOwlOptions
    action_space = ActionSpace()
    thinking_switch = True
    fixes_thought = True
    source = "github.com/X-PLUG/MobileAgent Mobile-Agent-v3/cookbook/end2end_usage.ipynb"
    frame_source = "github.com/X-PLUG/MobileAgent Mobile-Agent-v3/cookbook/end2end_usage.ipynb"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        name = "gui_owl-computer-system" if task.setting == "grounding" else "gui_owl-mobile-system"
        width, height = (f"{side:.0f}" for side in self.frame(task).extent(task.screenshot_size))
        system = Message("system", (fill(template(name), width=width, height=height),))
        if task.setting == "grounding":
            query = fill(
                self._asking("gui_owl-computer-user"),
                instruction=task.instruction,
                history="No history. This is the first step.\n",
            )
            # the text between query and image is in the notebook's printed messages
            return ModelInput((system, Message("user", (query, "Current screenshot:\n", self._image(task)))))
        if self._options.history == "turns" and task.setting == "high" and history:
            return ModelInput((system, *self._conversation(task, history)))
        past = [tools.plain_sentence(past_sentence(entry, self.frame(entry.task))) for entry in history]
        return ModelInput((system, Message("user", (self._query(task, tools.progress(past)), self._image(task)))))

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if not self._thinks:
            raise UsageError(f"model {self.config.name!r} is asked not to think, so no thought can be given; leave thinking on")
        return begun(self.prepare_input(task, history), _thinking(given_thought(thought)))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        reply = tools.split_reply(text)
        frame, grounding = self.frame(task), task.setting == "grounding"
        action = tools.action_of(reply.call, frame, task.screenshot_size, grounding=grounding, table=CALLS)
        return ParsedResponse(action, reply.thought, reply.conclusion)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return self._answer(task, action, thought, conclusion)

    def _conversation(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Iterator[Message]:
        """Every step as a user's turn and the whole answer to it; screenshots only of the last ``max_images``."""
        first_with_image = len(history) + 1 - self._options.max_images
        for index, step in enumerate((*(entry.task for entry in history), task)):
            text = self._asking("gui_owl-mobile-user-next-round") if index else self._query(task, "")
            yield Message("user", (text, self._image(step)) if index >= first_with_image else (text,))
            if index < len(history):
                yield Message("assistant", (self._past_answer(history[index]),))

    def _past_answer(self, entry: HistoryEntry) -> str:
        if entry.raw_response is None:
            sentence = past_sentence(entry, self.frame(entry.task))
            return self._answer(entry.task, entry.action, entry.thought, sentence)
        written = first_round(entry.raw_response)
        # a thought that was given to the model, or that the server split off, is not in what it wrote
        apart = entry.thought and self._thinks and entry.thought not in written
        return _thinking(f"{entry.thought}\n") + written if apart else written

    def _answer(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = tools.call_of(action, self.frame(task), task.screenshot_size)
        if task.setting == "grounding":
            call["name"] = "computer_use"
        written = tools.call_text(call)
        if not self._thinks:
            return written
        before = _thinking(f"{thought}\n") if thought else ""
        return before + written + (f"\n<conclusion>\n{conclusion}\n</conclusion>" if conclusion else "")

    def _query(self, task: StepTaskModel, past: str) -> str:
        return fill(self._asking("gui_owl-mobile-user"), instruction=main_instruction(task), history=past)

    def _asking(self, name: str) -> str:
        """A prompt's text; without thinking, up to where it asks for a thought and a conclusion, as in the notebook."""
        text = template(name)
        return text if self._thinks else text[: text.index("Before answering, explain")]

    @property
    def _thinks(self) -> bool:
        return self.thinking is not False


def _thinking(thought: str) -> str:
    return f"<thinking>\n{thought}\n</thinking>\n"
