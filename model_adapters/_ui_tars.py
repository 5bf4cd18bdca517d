"""Shared by UI-TARS 1.0 and 1.5: the chat layout, and ``Thought: ..`` / ``Action: name(key='value')`` both ways.

Sources: bytedance/UI-TARS ``README_v1.md``, ``data/training_example.json`` (layout), ``README_deploy.md``
(``add_box_token``: past calls are shown with their box tokens), ``codes/ui_tars/action_parser.py`` (reading), issues #79
(prefilled thought), #121 and #143 (images), #129 (scroll words), #164 (``press_appselect``, ``call_user``).
Each adapter defines its version's frame, prompts and action space.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from guieval.actions import Action, LongPress, Point, Scroll, Type, Wait, scroll_path
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, ABCModel, ImageLimits, Message, ModelInput, ParsedResponse, own_response
from guieval.models.parsing import ScrollWords, call_text, first_call, is_place, split_reasoning
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

_START, _END = ("start_box", "point", "start_point"), ("end_box", "end_point")


def _typed(call: calls.Arguments) -> Action:
    # a newline at the end submits the input, which is not part of the text; alone it is the enter key
    text = call.text("content", "text")
    return calls.ENTER if text == "\n" else Type(text=text.removesuffix("\n"))


def _scroll(call: calls.Arguments) -> Action:
    start, end = call.found(*_START), call.found(*_END)
    if start is not None and end is not None:
        return call.swipe(start, end)
    if call.name == "drag":
        raise ParseError("the drag lacks its start or its end")
    return _WORD.read(call)


_WORD = calls.scrolled("direction", *_START)
CALLS = calls.CallTable(
    {
        "click": calls.tap(*_START),
        "long_press": calls.hold(*_START),
        "type": calls.Form(Type, _typed, calls.typed("content").write),
        **dict.fromkeys(("scroll", "drag"), calls.Form(Scroll, _scroll)),
        "open_app": calls.opened("app_name"),
        "press_back": calls.BACK,
        "press_home": calls.HOME,
        "press_appselect": calls.RECENT,
        "press_enter": calls.ENTER,
        "wait": Wait(),
        "finished": calls.FINISH,
        "call_user": calls.IMPOSSIBLE,
        # of the authors' parser and clients, in no published prompt
        "left_single": calls.tap(*_START),
        "hover": calls.hovered(*_START),
        "select": calls.dragged(_START, _END),
        **calls.outside("press", "keydown", "release", "keyup"),
        "left_double": calls.double_clicked(*_START),
        "right_single": calls.right_clicked(*_START),
        "hotkey": calls.pressed_together("key", "hotkey"),
    }
)
MOUSE_CALLS = calls.CallTable(CALLS, drag=calls.dragged(_START, _END))


class UITarsOptions(ImageLimits):
    """Options both versions take besides the image limits."""

    prompt: str
    scroll_words: ScrollWords = Field(
        "content", description="what scroll(direction) names: where the content comes from (#129) or where the finger goes"
    )
    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included (#121)")


class UITarsModel(ABCModel):
    """The base of the adapters of both versions."""

    prompts: ClassVar[str]
    """The beginning of the names of the version's prompt files."""
    options: UITarsOptions
    thought_form = "Thought: {thought}\nAction:"
    table = CALLS

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read ``Thought: ..\\nAction: call``.

        As in the authors' parser the last ``Action:`` counts (at the start of a line, if there is one), and of several calls
        after it the first. Looser than :func:`guieval.models.parsing.first_call`: ``Action：``; no ``Action:`` at all (a
        continued turn), if the call begins a line; a thought labelled ``Reason:``, ``Reflection:`` or ``Action_Summary:``, or
        in tags; ``point`` for ``start_box``; ``text`` for ``content``. A grounding query may be answered by a coordinate alone,
        which is a click (its prompt asks for one); with the computer prompt a drag is a mouse drag, which the unified space has
        no word for, and not a swipe.
        """
        thought, body = _parts(text)
        whole = body.strip().rstrip(".")
        if task.setting == "grounding" and is_place(whole):
            return ParsedResponse(self.read_click(task, whole), thought)
        call = first_call(body, CALLS)
        return ParsedResponse(self.read_call(task, call.name, call.arguments), thought)

    def read_call(self, task: StepTaskModel, name: str, arguments: Mapping[str, Any]) -> Action:
        table = MOUSE_CALLS if self.options.prompt == "computer" else CALLS
        return table.read(name, arguments, self.frame(task), task.screenshot_size, self.scroll_words)

    def _reply(self, task: StepTaskModel, action: Action, thought: str | None) -> str:
        return f"{self.opening(task, thought) if thought else 'Action:'} {self._call(task, action)}"

    def _prompt(self, name: str, *, thought: bool = True) -> str:
        """The text of a prompt file; without ``thought``, the same text without the lines that ask for one: the published form
        of the switch (GUIEvalKit paper, C.2.3, and UI-TARS's own GROUNDING prompt)."""
        text = self.prompt(f"{self.prompts}-{name}")
        if thought:
            return text
        silent = text.replace("Thought: ...\n", "")
        return re.sub(r"\n+## Note\n.*?(?=## User Instruction)", "\n\n", silent, flags=re.DOTALL)

    def _after(self, instruction: str, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The filled prompt, then the conversation: turns without text; older ones are left out with their image."""
        turns = self.conversation(task, history, self.options.max_images)
        return ModelInput((Message("system", (HELPFUL,)), Message("user", (instruction,)), *turns))

    def _writes_thoughts(self, task: StepTaskModel) -> bool:
        return self.thinking is not False

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step as the assistant's turn: the model's own call with its box tokens restored, or the action's call.

        If there is no thought, the step instruction takes its place, as offline evaluation of these models has always done.
        """
        call = own_response(entry, _own_call) or self._call(entry.task, entry.action)
        if not self._writes_thoughts(entry.task):
            return f"Action: {call}"
        words = entry.thought or entry.task.low_level_instruction or self.sentence(entry)
        return f"Thought: {words}\nAction: {call}"

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return "<|box_start|>({:g},{:g})<|box_end|>".format(*super().write_place(task, point))

    def _call(self, task: StepTaskModel, action: Action) -> str:
        """Any action as a call, also one that no published prompt lists, which the past may hold.

        PRESS(ENTER) becomes the family's idiom for it, a submitted empty input. Prompts differ in how a scroll is written (a
        word, a place and a word, or a path) and in whether a long press has a time.
        """
        if action == calls.ENTER:
            return "type(content='\\n')"
        prompt, written = self._prompt(self.options.prompt), partial(self.write_place, task)
        if not isinstance(action, Scroll):
            name, arguments = self.write_call(task, action)
            if isinstance(action, LongPress) and ", time=''" in prompt:
                # nobody states the unit of the 1.0 prompts' time, and it is left empty
                arguments["time"] = ""
            return call_text(name, {key: str(value) for key, value in arguments.items()})
        word = {"direction": calls.turned(action.direction, self.scroll_words)}
        if "scroll(direction=" in prompt:
            return call_text("scroll", word)
        if ", direction=" in prompt:
            return call_text("scroll", {"start_box": written(action.point), **word})
        start, end = scroll_path(action)
        return call_text("scroll", {"start_box": written(start), "end_box": written(end)})


_BARE_BOX = re.compile(r"(start_box|end_box)='\((\d+),\s*(\d+)\)'")


def _own_call(reply: str) -> str | None:
    call = first_call(_parts(reply)[1], CALLS)
    restored = _BARE_BOX.sub(r"\1='<|box_start|>(\2,\3)<|box_end|>'", call.text)
    return restored if restored.endswith(")") else None


_ACTION_LINE = re.compile(r"^[ \t*]*+Action[ \t*]*[:：][*]*", re.MULTILINE | re.IGNORECASE)
_ACTION_ANYWHERE = re.compile(r"Action(?<!\wAction)[ \t]*[:：]")  # a whole word; beginning with a letter, it is found quickly
_CALL = re.compile(r"\w\(")
_AT_ONCE = re.compile(r"[\s`*-]*[A-Za-z_]\w{0,40}\(")
_UNLABELLED = re.compile(r"^[ \t`*-]*+(?=[A-Za-z_]\w{0,40}\()", re.MULTILINE)
_LABEL = re.compile(
    r"\A\s*(?:```\w*\s*)?(?:[\s*]*(?:Thought|Reason|Reflection|Action_Summary)[ \t*]*[:：][\s*]*)?", re.IGNORECASE
)
MAX_LABELS, MAX_READ = 20, 100_000
"""How many ``Action:`` in a response are looked at one by one, and how many characters for all of them together; a model
stuck in a loop writes thousands."""


def _parts(text: str) -> tuple[str | None, str]:
    """A response's thought, and what its call is to be looked for in."""
    labels = list(_ACTION_ANYWHERE.finditer(text))
    reasoning, rest = split_reasoning(text, labels[-1][0] if labels else "")
    label = _last_label(rest) or _UNLABELLED.search(rest)
    if label is None:
        # a call in the middle of a sentence is talked about, not made
        return reasoning, "" if _CALL.search(rest) else rest
    return reasoning or _LABEL.sub("", rest[: label.start()]).strip() or None, rest[label.end() :]


def _last_label(text: str) -> re.Match[str] | None:
    """The last ``Action:`` that is not part of what an earlier call types."""
    labels = list(_ACTION_LINE.finditer(text)) or list(_ACTION_ANYWHERE.finditer(text))
    if len(labels) > MAX_LABELS or len(labels) * len(text) > MAX_READ:
        return labels[-1]
    last, end = None, _call_end(text, 0)
    for label in labels:
        if label.start() >= end:
            last, end = label, _call_end(text, label.end())
    return last


def _call_end(text: str, start: int) -> int:
    """The end of the call that begins at ``start``; ``start`` if there is none."""
    if not _AT_ONCE.match(text, start):
        return start
    try:
        return start + first_call(text[start:], CALLS).end
    except ParseError:
        return start
