"""MiniCPM-GUI (GUICourse): lines of a verb and its arguments, ``tap, <point> x y</point>``, in thousandths of the screen.

Source: RUCBM/GUICourse@a6dd4c3, ``results/minicpm_guiagent_*.json`` (prompts and responses), ``data_preprocess/
convert_to_sft_instructions.py`` (the format and its verbs), ``utils.py`` and ``evaluation/process_results.py`` (reading,
thousandths), ``evaluation/eval_single_action.py`` (a scroll's direction). It shares its base with AgentCPM-GUI, a later model
of other makers, and neither prompt nor format.

A response may hold several lines, of which the first one counts. The past is each step's verbs; what the format has no verb for
is named by its type. Phones write ``tap``, ``swipe`` and ``answer, task complete``, pages ``click`` and ``scroll``; both are
read. A scroll's numbers are where the view goes. ``go_back``, ``go_home`` and ``task_impossible`` are the converter's; no
recorded response has them. Not published: a step instruction takes the goal's place; a grounding query is sent with the prompt
for finding a text on the screen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guieval.actions import ACTION_TYPES, Action, ActionSpace, Answer, Click, Direction, Point, Scroll, Stop, Unsupported
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ModelInput, Options, ParsedResponse, chat, fill, main_instruction, own_response
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import stated_place
from guieval.steps import StepTaskModel

_DONE = "task complete"


def _answer(call: calls.Arguments) -> Action:
    text = call.text("text")
    return calls.FINISH if text.strip().lower() == _DONE else call.unsupported(Answer(text=text))


def _scroll(call: calls.Arguments) -> Action:
    down, right = (call.values["down"], call.values["right"])
    if not down and not right:
        raise ParseError("the scroll has no length, so it has no direction")
    direction: Direction = ("right" if right > 0 else "left") if abs(right) > abs(down) else ("down" if down > 0 else "up")
    return Scroll(point=calls.MIDDLE, direction=calls.turned(direction, "content"))


CALLS = calls.CallTable(
    {
        "tap": calls.tap("place"),
        "click": calls.tap("place"),
        "swipe": calls.swiped("from", "to"),
        "scroll": calls.Form(Scroll, _scroll),
        "input": calls.typed("text"),
        "enter": calls.ENTER,
        "go_back": calls.BACK,
        "go_home": calls.HOME,
        "answer": calls.Form(Stop, _answer, lambda action, _: {"text": _DONE} if action.status == "finish" else None),
        "task_complete": calls.FINISH,
        "task_impossible": calls.IMPOSSIBLE,
        "hover": calls.hovered("place"),
        **calls.outside("select", "select_text", "copy"),
    }
)
_ALONE = ("enter", "copy", "go_back", "go_home", "task_complete", "task_impossible")


class MiniCPMGUI(ABCModel):
    """Adapter of MiniCPM-GUI. It has no options: screenshots are sent as they are, and the model cuts them up itself."""

    options: Options
    thought_form = "thoughts: {thought}\nactions:\n"
    table = CALLS
    fixed_frame = PER_1000
    action_space = ActionSpace(types=frozenset(ACTION_TYPES) - {"LONG_PRESS", "OPEN", "WAIT"})
    grounds_silently = True
    family = Family(2024, ("phone", "web", "grounding"), reader="makers", recorded=192)
    source = "github.com/RUCBM/GUICourse results/minicpm_guiagent_*.json, data_preprocess/convert_to_sft_instructions.py"
    frame_source = "github.com/RUCBM/GUICourse evaluation/process_results.py (related_version1: divided by 1000)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(self.image(task), self.prompt("minicpm_gui-grounding", instruction=task.instruction))
        text, past = self.prompt("minicpm_gui-agent"), {}
        if history:
            past = {"history": "\n".join(f"step {number}: {_verbs(entry)}" for number, entry in enumerate(history))}
        else:
            text = text.partition("{history}\n")[2]
        return chat(self.image(task), fill(text, instruction=main_instruction(task), **past))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, body = _split(text)
        line = _LINE.match(body)
        if line is None and task.setting == "grounding" and (place := stated_place(body)) is not None:
            return ParsedResponse(self.read_click(task, place))
        if line is None:
            raise ParseError(f"the response begins with no action of this family: {body[:80]!r}")
        following = _LINE.search(body, line.end())
        # blanks at the end of a line are habit, but at the end of a response they may have been meant
        rest = body[line.end() :].removesuffix("\n") if following is None else body[line.end() : following.start()].rstrip()
        return ParsedResponse(self.read_call(task, line[1], _arguments(line[1], rest)), thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            place = self._numbers(task, action.point)
            return f"<box> {place} {place}</box>"
        before = f"thoughts: {thought}\n" if thought else ""
        return f"{before}actions:\n{self._line(task, action)}"

    def _line(self, task: StepTaskModel, action: Action) -> str:
        name, arguments = self.write_call(task, action)
        if name == "swipe":
            return f"swipe, from {arguments['from']} to {arguments['to']}"
        return ", ".join([name, *arguments.values()])

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return f"<point> {self._numbers(task, point)}</point>"

    def _numbers(self, task: StepTaskModel, point: Point) -> str:
        return "{:g} {:g}".format(*super().write_place(task, point))


_ACTIONS = re.compile(r"^[ \t]*actions:", re.MULTILINE)
_WITH = "|".join(name for name in CALLS if name not in _ALONE)
_LINE = re.compile(rf"^[ \t]*((?:{_WITH})(?=[ \t]*,)|(?:{'|'.join(_ALONE)})(?=[ \t]*$))", re.MULTILINE)
_END = r"((?:<point>)?[\d.,\s]{1,60}(?:</point>)?)"
_PATH = re.compile(rf"from\s*{_END}\s*to\s*{_END}")
_DISTANCE = re.compile(r"down\s*(-?\d{1,6}(?:\.\d{1,6})?)\s*right\s*(-?\d{1,6}(?:\.\d{1,6})?)")


def _split(text: str) -> tuple[str | None, str]:
    """The thought, and the lines of actions."""
    label = _ACTIONS.search(text)
    if label is None:
        return None, text.lstrip()
    again = _ACTIONS.search(text, label.end())
    body = text[label.end() : again.start() if again is not None else len(text)].lstrip()
    return text[: label.start()].strip().removeprefix("thoughts:").strip() or None, body


def _arguments(name: str, rest: str) -> dict[str, str | float]:
    rest = rest.lstrip(" \t").removeprefix(",")
    if name in ("input", "answer"):
        return {"text": rest.removeprefix(" ")}
    rest = rest.strip()
    if name == "swipe":
        path = _PATH.fullmatch(rest)
        if path is None:
            raise ParseError(f"the swipe has no path: {rest[:80]!r}")
        return {"from": path[1], "to": path[2]}
    if name == "scroll":
        distance = _DISTANCE.fullmatch(rest)
        if distance is None:
            raise ParseError(f"the scroll has no distance: {rest[:80]!r}")
        return {"down": float(distance[1]), "right": float(distance[2])}
    return {"place" if name in ("tap", "click", "hover") else "text": rest}


def _verbs(entry: HistoryEntry) -> str:
    """A past step, as GUIAct names it: the verbs of its response, or of its action."""
    found = own_response(entry, lambda reply: [line[1] for line in _LINE.finditer(_split(reply)[1])])
    if found:
        return ", ".join(found)
    if entry.action in MiniCPMGUI.action_space:
        return CALLS.write(entry.action, str)[0]
    return entry.action.name if isinstance(entry.action, Unsupported) else entry.action.type.lower()
