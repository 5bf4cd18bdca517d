"""UI-Venus-2 (Qwen3.5 based): a thought and a call in tags; phones, computers, web pages and grounding have calls of their own.

Source: inclusionAI/UI-Venus@81945ac, ``models/mobile/mobile_example.py``, ``models/computer/computer_example.py``,
``models/browser/venus_browser.py``, ``models/grounding/ui_venus2_gd.py`` (prompts, conversations, frames, reading).

The chat template opens the thought, so a response holds its end alone. The authors leave thinking to the template, which
thinks, on phones and computers, and turn it off on web pages and for grounding. All prompts say 0 to 999; the code divides by
999 on computers and by 1000 elsewhere (option ``scale`` chooses one for all, and ``guieval dev audit`` shows which one fits).

``Swipe`` is a path on phones and a turn of the wheel on computers; ``Scroll`` on web pages names what comes into view. Of a
``Sequence`` the first call is scored, and all are carried out online. ``CallUser`` reports failure on computers and asks
elsewhere, as ``Answer`` does. Brackets in typed text stay as they are (the authors' reader for phones makes them wide). What
``GetUrl`` found and which options a list has is not recorded by benchmarks. A step instruction takes the goal's place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval import actions as act
from guieval.errors import ParseError
from guieval.frames import Frame
from guieval.history import HistoryEntry
from guieval.models import SCALES, ABCModel, Family, ImageLimits, Message, ModelInput, ParsedResponse, chat
from guieval.models.parsing import CallExpression, ScrollWords, first_place, first_round, numbers, split_reasoning, tagged
from guieval.models.parsing import call_tables as calls
from guieval.models.prompts import main_instruction, own_response
from guieval.steps import StepTaskModel

from ._venus_calls import MOST, SURFACES, calls_in
from .ui_venus_navi import UNLABELLED

_TIMES = re.compile(r"[1-9]\d?")


class UIVenus2Options(ImageLimits):
    """Options of UI-Venus-2; image limits default to the base model's, and the authors' for grounding."""

    prompt: Literal["mobile", "computer", "browser"] = Field("mobile", description="what the model operates")
    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")
    scale: Literal[999, 1000] | None = Field(None, description="extent of the screen; null: 999 on computers, else 1000")
    password: str = Field("password", description="the computer's password, which the prompt for computers names")
    date: str = Field("2026-08-01", description="today's date in the prompt for web pages; by default the model's month")


class UIVenus2(ABCModel):
    """Adapter of UI-Venus-2. Options: :class:`UIVenus2Options`."""

    options: UIVenus2Options
    surfaces = SURFACES
    patch = 32
    pixels = 65_536, 16_777_216
    grounding_pixels = 3136, 12_845_056
    thinking_switch = grounds_silently = True
    thinking_argument = "enable_thinking"
    scroll_words: ScrollWords = "content"
    disputed_frames = tuple(SCALES.values())
    family = Family(2026, ("phone", "desktop", "web", "grounding"), reader="makers", recorded=4)
    source = "github.com/inclusionAI/UI-Venus@81945ac models/{mobile,computer,browser,grounding}"
    frame_source = "github.com/inclusionAI/UI-Venus@81945ac models/mobile/mobile_example.py (1000), models/computer (999)"

    def frame(self, task: StepTaskModel) -> Frame:
        computer = self.options.prompt == "computer" and task.setting != "grounding"
        return SCALES[self.options.scale or (999 if computer else 1000)]

    def fields(self, task: StepTaskModel) -> Mapping[str, Any]:
        return super().fields(task) if self.options.prompt == "browser" or not self.thinks(task) else {}

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            query = self.prompt("ui_venus_2-grounding-user", instruction=task.instruction.removesuffix("."))
            return chat(self.image(task), query)
        browser, goal = self.options.prompt == "browser", main_instruction(task)
        values = {"task": goal, "current_date": self.options.date} if browser else {"user_task": goal}
        if self.options.prompt == "computer":
            values["sudo_password"] = self.options.password
        system = Message("system", (self.prompt(f"ui_venus_2-{self.options.prompt}-system", **values),))
        return ModelInput((system, *self._turns(task, history)))

    def _turns(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Iterator[Message]:
        """All steps, of which the last show their screenshots; on web pages the last alone, with the notes taken before."""
        browser, first_shown = self.options.prompt == "browser", self.first_shown(history, self.options.max_images)
        for index, step in enumerate((*(entry.task for entry in history), task)):
            label = "History Screenshot:" + "\n" * (self.options.prompt == "computer")
            label = label if index < len(history) else "Current Screenshot:\n"
            if browser:
                label = "\n- ".join(["Notes from earlier steps:", *filter(None, map(_note, history[:index]))])
            if index >= first_shown:
                unlabelled = browser and label.endswith(":")
                yield Message("user", (self.image(step),) if unlabelled else (label, self.image(step)))
            elif not browser:
                yield Message("user", ("",))
            if index < len(history) and not (browser and index < first_shown):
                yield Message("assistant", (self.past_response(history[index]),))

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step as it was written; on computers its thought and call are put together anew."""
        if entry.raw_response is not None and self.options.prompt != "computer":
            apart = entry.thought and entry.thought not in entry.raw_response
            return f"<think>{entry.thought}</think>\n{entry.raw_response}" if apart else entry.raw_response
        call = own_response(entry, lambda response: self._parts(response)[1]) or self._call(entry.task, entry.action)
        return _turn(entry.thought, call)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding":
            thought, rest = split_reasoning(first_round(text), "[")
            place = first_place(rest)
            refused = numbers(place)[:2] == (-1, -1)
            return ParsedResponse(calls.IMPOSSIBLE if refused else self.read_click(task, place), thought or None)
        thought, body = self._parts(text)
        made = calls_in(body, self.table, sequences=self.options.prompt == "computer")
        batch = [action for call in made for action in self._read(task, call)]
        return ParsedResponse(batch[0], thought or None, batch=tuple(batch) if len(batch) > 1 else ())

    def _parts(self, text: str) -> tuple[str | None, str]:
        """A response's thought and its call; of several on phones the first, elsewhere an error, as in the authors' readers."""
        thought, rest = split_reasoning(first_round(text), "<action>")
        if self.options.prompt != "mobile" and rest.count("<action>") > 1:
            raise ParseError("the response has more than one <action>")
        begins = UNLABELLED.search(rest)  # without tags; a call in the middle of a sentence is talked about
        body = tagged(rest, "action") or (rest[begins.end() :].partition("</action>")[0] if begins else "")
        if not body:
            raise ParseError(f"the response has no <action>: {rest.strip()[:80]!r}")
        return thought, body

    def _read(self, task: StepTaskModel, call: CallExpression) -> list[act.Action]:
        """What a call does: on computers a line feed at the end of a text presses Enter, and keys are pressed several times."""
        action, values = self.read_call(task, call.name, call.arguments), call.arguments
        if self.options.prompt != "computer" or call.name not in ("Type", "Hotkey"):
            return [action]
        if values.get("content", "").endswith("\n") and action != calls.ENTER:
            return [action, calls.ENTER]
        repeat = values.get("repeat", "")
        return [action] * (min(int(repeat), MOST) if _TIMES.fullmatch(repeat) else 1)

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting != "grounding":
            return _turn(thought, self._call(task, action))
        x, y = self.write_place(task, action.point) if isinstance(action, act.Click) else (-1, -1)
        return f"[{x:g},{y:g}]"

    def _call(self, task: StepTaskModel, action: act.Action) -> str:
        return self.table.write_text(action, lambda point: tuple(self.write_place(task, point)), self.scroll_words)


def _turn(thought: str | None, call: str) -> str:
    return (f"<think>{thought}</think>\n" if thought else "") + f"<action>{call}</action>"


def _note(entry: HistoryEntry) -> str:
    action = entry.action
    noted = action.arguments.get("content") if isinstance(action, act.Unsupported) and action.name == "TakeNote" else ""
    return str(noted or "").strip()
