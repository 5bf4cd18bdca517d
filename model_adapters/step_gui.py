"""Step-GUI and GELab-Zero: a thought, then fields divided by tabs (explain, action, its arguments, a summary), in thousandths.

Source: stepfun-ai/gelab-zero@19465cf, ``copilot_tools/parser_0920_summary.py`` (prompt, reading, history). The past is the
summary that the model wrote with its last action. If the last step is not the model's own, its place is taken by the
sentences of all past steps. ``explain`` is read and not used.

Not published: a step instruction takes the goal's place; a grounding query is the goal. The prompt speaks of 0 to 1000;
the option ``scale`` chooses 999 instead, and ``guieval dev audit`` shows which one fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Point, Stop
from guieval.errors import ParseError
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, DisputedScale, Family, ModelInput, ParsedResponse, chat, main_instruction, own_response
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import split_reasoning
from guieval.steps import StepTaskModel

_NO_PAST = "暂无历史操作"
"""The authors' text for an empty past."""

CALLS = calls.CallTable(
    {
        "CLICK": calls.tap("point"),
        "TYPE": calls.typed("value"),
        "COMPLETE": calls.Form(
            Stop, lambda call: calls.FINISH, lambda action, _: {"return": "完成"} if action.status == "finish" else None
        ),
        "WAIT": calls.waited("value"),
        "AWAKE": calls.opened("value"),
        "INFO": calls.answered("value"),
        "ABORT": calls.Form(Stop, lambda call: calls.IMPOSSIBLE, lambda action, _: {"value": "无法继续"}),
        "SLIDE": calls.swiped("point1", "point2"),
        "LONGPRESS": calls.hold("point"),
    }
)


class StepGUI(ABCModel):
    """Adapter of Step-GUI and GELab-Zero. Options: :class:`DisputedScale`."""

    options: DisputedScale
    thought_form = "<THINK> {thought} </THINK>\n"
    table = CALLS
    action_space = ActionSpace(types=ActionSpace().types - {"PRESS"})
    """The prompt has no buttons."""
    family = Family(2025, ("phone",), reader="makers")
    source = frame_source = "github.com/stepfun-ai/gelab-zero@19465cf copilot_tools/parser_0920_summary.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        first = self.prompt("step_gui-first", task=main_instruction(task), history=self._past(history))
        return chat(first, self.image(task), self.prompt("step_gui-last"))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, fields = _fields(text)
        name = fields.get("action", "").upper()
        if not name:
            raise ParseError(f"the response has no action: {text.strip()[:80]!r}")
        arguments = {key: value for key, value in fields.items() if key not in ("action", "explain", "summary")}
        return ParsedResponse(self.read_call(task, name, arguments), thought, fields.get("summary") or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        name, arguments = self.write_call(task, action)
        fields = [("explain", describe(action)), ("action", name), *arguments.items(), ("summary", conclusion or "")]
        return f"<THINK> {thought or ''} </THINK>\n" + "\t".join(f"{key}:{_escaped(str(value))}" for key, value in fields)

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return ",".join(f"{side:g}" for side in super().write_place(task, point))

    def _past(self, history: Sequence[HistoryEntry]) -> str:
        if not history:
            return _NO_PAST
        own = own_response(history[-1], lambda reply: _fields(reply)[1].get("summary"))
        return own or " ".join(self.sentence(entry) for entry in history)


_THINK = re.compile(r"<\s*(/?)\s*T(?:H)?INK\s*>", re.IGNORECASE)
_FIELD = re.compile(r"\s*(explain|action|summary|value|return|point[12]?)\s*[:：]", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_MEANINGS = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}


def _fields(text: str) -> tuple[str | None, dict[str, str]]:
    """The thought, and the fields by their names in lower case; the first of a name counts."""
    thought, rest = split_reasoning(_THINK.sub(r"<\1think>", text), "action:")
    fields: dict[str, str] = {}
    for part in rest.split("\t"):
        named = _FIELD.match(part)
        if named is not None:
            fields.setdefault(named[1].lower(), _ESCAPE.sub(_meant, part[named.end() :].strip()))
    return thought, fields


def _escaped(value: str) -> str:
    """A field's value: a tab, a new line or a blank at either end, which the format cannot hold, is written as an escape."""
    inner = value.strip()
    start = value.find(inner) if inner else len(value)
    marks = {"\\", "\t", "\n", "\r"}
    return "".join(
        f"\\u{ord(char):04x}" if (not start <= at < start + len(inner) or char in marks) and ord(char) < 0x10000 else char
        for at, char in enumerate(value)
    )


def _meant(escape: re.Match[str]) -> str:
    written = escape[0]
    if len(written) == 6:
        return chr(int(written[2:], 16))
    return _MEANINGS.get(written, written)
