"""UI-Venus (Qwen2.5-VL based): thought, call and conclusion in tags, points in pixels of the resized screenshot.

Sources: inclusionAI/UI-Venus, branch UI-Venus-1.0, ``models/navigation/{utils,ui_venus_navi_agent}.py`` (prompt, history,
frame, reading) and ``models/grounding/*`` (grounding prompts and layout of the sibling Ground checkpoints). Navi and Ground
differ in their image limits, and so do 7B and 72B; the limits are options of the checkpoint, and the frame follows them.
Ground-72B's script sets 3,110,400 to 48,000,000 pixels, but qwen-vl-utils resizes the image within its own limits first, so no
image is larger than 12,845,056 pixels (``library_first``). ``guieval dev audit`` also tries the frame without that resize.

Not published, and taken from GUIEvalKit: a step instruction takes the goal's place; a past step without a thought has an empty
one; ``Drag`` is a swipe. Assumed: a ``Scroll`` with only a word starts in the middle, and the word is the finger's direction,
as in the one recorded response with both path and word. A place outside the screen is an error; the authors' agent moves it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from guieval.actions import BUTTONS, DIRECTIONS, Action, ActionSpace, Click, Open, Scroll, Stop, Wait, scroll_path
from guieval.errors import IncompleteAction, ParseError
from guieval.frames import Frame, ResizedPixels
from guieval.history import HistoryEntry, describe
from guieval.models import PATCH, QWEN_PIXELS, ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, chat
from guieval.models.parsing import CallExpression, ScrollWords, first_call, first_thought, json_value, split_reasoning, tagged
from guieval.models.parsing import call_tables as calls
from guieval.models.prompts import HELPFUL, fill, main_instruction, own_response
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools


def _launch(call: calls.Arguments) -> Action:
    app = call.values.get("app", "")
    if app.strip():
        return Open(app=app)
    if call.values.get("url", "").strip():
        return call.unsupported()
    raise IncompleteAction("Launch names no app")


def _scroll(call: calls.Arguments) -> Action:
    ends = call.values.keys() & {"start", "end"}
    if len(ends) == 2:
        # the path decides, as in the authors' parser, which drops the word
        return call.swipe(call.values["start"], call.values["end"])
    if ends or "direction" not in call.values:
        raise IncompleteAction(f"{call.name} has neither start and end nor one of {', '.join(DIRECTIONS)}")
    return call.scroll("direction")


def _scrolled(action: Scroll, writing: calls.Writing) -> dict[str, Any]:
    start, end = map(writing.place, scroll_path(action))
    return {"start": start, "end": end, "direction": calls.turned(action.direction, writing.scroll_words)}


CALLS = calls.CallTable(
    {
        "Click": calls.tap("box"),
        "LongPress": calls.hold("box"),
        **dict.fromkeys(("Scroll", "Drag"), calls.Form(Scroll, _scroll, _scrolled)),
        "Type": calls.typed("content"),
        "Launch": calls.Form(Open, _launch, calls.opened("app").write),
        "Wait": Wait(),
        "Finished": calls.Form(
            Stop,
            lambda call: calls.FINISH,
            lambda action, _: {"content": "" if action.status == "finish" else describe(action)},
        ),
        "PressBack": calls.BACK,
        "PressHome": calls.HOME,
        "PressEnter": calls.ENTER,
        "PressRecent": calls.RECENT,
        # the last three are in the authors' prompt for web pages
        "Hover": calls.hovered("box"),
        "DoubleClick": calls.double_clicked("box"),
        "Hotkey": calls.pressed_together("keys", "key"),
        "CallUser": calls.answered("content"),
    }
)


LIBRARY = ResizedPixels(PATCH, *QWEN_PIXELS)
"""The limits of qwen-vl-utils for an image whose message gives none."""
GROUND_72B_MAX_PIXELS = 48_000_000
"""The limit in Ground-72B's script, which never binds there."""


class UIVenusOptions(ImageLimits):
    """Options of a UI-Venus checkpoint; limits default to those of the 72B navigation checkpoint."""

    library_first: bool = Field(
        False, description="whether images are first resized within the limits of qwen-vl-utils, 3,136 to 12,845,056 pixels"
    )
    grounding_prompt: Literal["7b", "72b"] = Field("7b", description="whose published grounding prompt is used")
    scroll_words: ScrollWords = Field(
        "finger", description="what the word of a Scroll without points names: where the finger goes or the content comes from"
    )


class UIVenusNavi(ABCModel):
    """Adapter of UI-Venus-Navi and UI-Venus-Ground. Options: :class:`UIVenusOptions`."""

    options: UIVenusOptions
    # the appendix's form with the family's own tag: GUIEvalKit's file for this family writes GUI-Owl's <thinking>
    thought_form = "<think>\n{thought}\n</think>\n"
    table = CALLS
    pixels = QWEN_PIXELS
    action_space = ActionSpace(buttons=frozenset(BUTTONS), statuses=frozenset({"finish"}))
    """All but an impossible task, which has no call of its own (``CallUser`` answers the user and goes on)."""
    grounds_silently = True
    family = Family(2025, ("phone",), reader="makers", recorded=226, grounders="-ground-")
    source = "github.com/inclusionAI/UI-Venus branch UI-Venus-1.0, models/navigation/utils.py"
    frame_source = "github.com/inclusionAI/UI-Venus branch UI-Venus-1.0, models/navigation/*_vllm.py, models/grounding/*.py"

    @property
    def first_resize(self) -> ResizedPixels | None:
        return LIBRARY if self.options.library_first else None

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        least, most = self.options.min_pixels or QWEN_PIXELS[0], self.options.max_pixels or QWEN_PIXELS[1]
        if self.options.library_first:
            return (ResizedPixels(PATCH, least, GROUND_72B_MAX_PIXELS),)
        return (ResizedPixels(PATCH, least, most, LIBRARY),) if most > QWEN_PIXELS[1] else ()

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self.image(task)
        if task.setting == "grounding":
            # the authors give no system message here, and the screenshot first
            prompt = self.prompt(f"ui_venus_ground-{self.options.grounding_prompt}")
            return chat(image, fill(prompt, instruction=task.instruction))
        # the authors keep every step by default, and number them from zero
        past = "\n".join(f"Step {index}: {self._past_step(entry)}" for index, entry in enumerate(history))
        prompt = self.prompt("ui_venus_navi-mobile", instruction=main_instruction(task), history=past)
        return chat(prompt, image, system=HELPFUL)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding" and "<action>" not in text:
            thought, start = first_thought(text, "<action>")
            if not start and _THOUGHT_START.match(text):
                raise ParseError(f"the response ends in its thought: {text.strip()[:80]!r}")
            return ParsedResponse(self._grounded(task, text[start:]), thought or None)
        turn = _read_turn(text)
        action = self.read_call(task, turn.call.name, turn.call.arguments)
        return ParsedResponse(action, turn.thought, turn.conclusion)

    def _grounded(self, task: StepTaskModel, text: str) -> Action:
        """A grounding answer: a box or point in square or round brackets, or in the notations of Qwen2.5-VL."""
        whole = text.strip().rstrip(".")
        if whole.startswith("(") and whole.endswith(")"):
            return self.read_click(task, whole)
        return tools.action_of(self, task, json_value(text), table=tools.CALLS)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            # a box without size: of an action no more than its point is known
            x, y = self.write_place(task, action.point)
            return f"[{x:g},{y:g},{x:g},{y:g}]"
        before = self.opening(task, thought) if thought else ""
        after = f"\n<conclusion>\n{conclusion}\n</conclusion>" if conclusion else ""
        return f"{before}<action>\n{self._call(task, action)}\n</action>{after}"

    def _past_step(self, entry: HistoryEntry) -> str:
        # as the authors' agent does, the action is repeated as the model wrote it
        call = own_response(entry, lambda reply: _read_turn(reply).text) or self._call(entry.task, entry.action)
        return f"<think>{entry.thought or ''}</think><action>{call}</action>"

    def _call(self, task: StepTaskModel, action: Action) -> str:
        return CALLS.write_text(action, lambda point: tuple(self.write_place(task, point)), self.scroll_words)


_ALONE = ("Wait", "Finished", "PressBack", "PressHome", "PressEnter", "PressRecent")

_THOUGHT_START = re.compile(r"\s*<think\w*>", re.IGNORECASE)
# a quote after the tag means that it is part of a text to be typed
_ACTION_END = re.compile(r"</action>(?![\"'\\])")
_UNCLOSED = re.compile(r"\w{1,40}\(\s*box\s*=\s*\([^()]*\)\Z")
_UNQUOTED = re.compile(r"(\w{1,40}\(\s*\w{1,40}\s*=\s*)'([^'\"]*)\)")
"""A call whose text lacks its second quote, as the authors' readers take it; if the tag is closed, nothing was cut off."""
UNLABELLED = re.compile(r"^[ \t`*-]*+(?=[A-Za-z_]\w{0,40}\()", re.MULTILINE)


class _Turn(NamedTuple):
    call: CallExpression
    text: str  # the action as it was written
    thought: str | None
    conclusion: str | None


def _read_turn(text: str) -> _Turn:
    """Take a response apart; the first action after the reasoning counts, and what follows is not looked at.

    Looser than :func:`guieval.models.parsing.first_call`: tags that are not closed; no ``<action>`` tag, if the call begins a
    line (a continued turn, or a response without any tags); a call without arguments written without brackets (``Wait``); the
    last bracket missing after a box, or the second quote around a text.
    """
    thought, start = first_thought(text, "<action>")
    closing = _ACTION_END.search(text, start)
    concluding = text.find("<conclusion>", start)
    end = closing.start() if closing is not None else concluding if concluding >= 0 else len(text)
    rest = text[start:end]
    if not start:
        thought, rest = split_reasoning(rest, "<action>")
    _, tag, body = rest.partition("<action>")
    if not tag:
        begins = UNLABELLED.search(rest)
        # a call in the middle of a sentence is talked about, not made, unless the closing tag says that it was
        body = rest[begins.start() :] if begins is not None else rest if closing is not None else ""
    body = body.strip()
    if not body:
        raise ParseError(f"the response has no <action>: {text.strip()[:80]!r}")
    if _UNCLOSED.match(body):
        body += ")"
    elif closing is not None and (unquoted := _UNQUOTED.fullmatch(body)) is not None:
        body = f"{unquoted[1]}'{unquoted[2]}')"
    call = CallExpression(body) if body in _ALONE else first_call(body, CALLS)
    following = text[end:].partition("<think")[0].partition("<action>")[0]
    written = body if tag or not call.text else call.text  # without tags, what follows the call is not part of the action
    return _Turn(call, written, thought or None, tagged(following, "conclusion") or None)
