"""What UI-TARS 1.0 and 1.5 share: the chat layout, and ``Thought: ..`` / ``Action: name(key='value')`` both ways.

Sources: bytedance/UI-TARS ``README_v1.md``, ``data/training_example.json`` (layout), ``README_deploy.md``
(``add_box_token``: past calls are shown with their box tokens), ``codes/ui_tars/action_parser.py`` (reading), issues #79
(prefilled thought), #121 and #143 (images), #129 (scroll words), #164 (``press_appselect``, ``call_user``).
Frames, prompts and what each version can say are the adapters' business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from guieval.actions import Action, Click, LongPress, Point, Scroll, Type, Wait, scroll_path
from guieval.errors import ParseError
from guieval.frames import Frame, Size
from guieval.history import HistoryEntry
from guieval.models import Message, ModelConfig, ParsedResponse
from guieval.parsing import ScrollWords, call_text, decoded, first_call, is_place, split_reasoning
from guieval.parsing import call_tables as calls
from guieval.steps import StepTaskModel, whole_text

from ._family import FamilyModel, ImageLimits
from ._prompting import own_reply, past_sentence, template

SYSTEM = "You are a helpful assistant."


class UITarsOptions(ImageLimits):
    """Options both versions take beside the image limits."""

    prompt: str
    scroll_words: ScrollWords = Field(
        "content", description="what scroll(direction) names: where the content comes from (#129) or where the finger goes"
    )
    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included (#121)")


@dataclass(frozen=True)
class CallForm:
    """How a prompt's action space writes what the prompts write differently."""

    scroll: Literal["word", "point and word", "path"]
    timed_press: bool


def call_form(text: str) -> CallForm:
    """The form that a prompt's text asks for."""
    word: Literal["point and word", "path"] = "point and word" if ", direction=" in text else "path"
    return CallForm("word" if "scroll(direction=" in text else word, ", time=''" in text)


class UITarsModel(FamilyModel):
    """What the adapters of both versions do alike."""

    prompts: ClassVar[str]
    """What the names of the version's prompt files begin with."""
    _options: UITarsOptions

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._form = call_form(self._prompt(self._options.prompt))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return parse_reply(
            text,
            self.frame(task),
            task.screenshot_size,
            scroll_words=self._options.scroll_words,
            mouse=self._options.prompt == "computer",
            bare_point=task.setting == "grounding",
        )

    def _opening(self, task: StepTaskModel, thought: str) -> str:
        return reply_begun(thought)

    def _prompt(self, name: str, *, thought: bool = True) -> str:
        """The text of a prompt file; without ``thought``, the same text without the lines that ask for one.

        Leaving out ``Thought: ...`` and the note about it is the published form of the switch (GUIEvalKit paper, C.2.3, and
        UI-TARS's own GROUNDING prompt).
        """
        text = template(f"{self.prompts}-{name}")
        if thought:
            return text
        silent = text.replace("Thought: ...\n", "")
        return re.sub(r"\n+## Note\n.*?(?=## User Instruction)", "\n\n", silent, flags=re.DOTALL)

    def _conversation(
        self, instruction: str, task: StepTaskModel, history: Sequence[HistoryEntry], *, thought: bool
    ) -> tuple[Message, ...]:
        """The filled prompt, then each past step as screenshot and answer, then the current screenshot.

        Only the last ``max_images - 1`` past steps keep their screenshot; the answers of older ones stay, in order.
        """
        messages = [Message("system", (SYSTEM,)), Message("user", (instruction,))]
        first_with_image = len(history) - (self._options.max_images - 1)
        for index, entry in enumerate(history):
            if index >= first_with_image:
                messages.append(Message("user", (self._image(entry.task),)))
            messages.append(Message("assistant", (self._past_answer(entry, thought),)))
        messages.append(Message("user", (self._image(task),)))
        return tuple(messages)

    def _past_answer(self, entry: HistoryEntry, thought: bool) -> str:
        """A past step as the assistant's turn: the model's own call with its box tokens restored, or the action's call.

        Where there is no thought, the step instruction stands for it, as offline evaluation of these models has always done.
        """
        call = own_reply(entry, _own_call) or self._call(entry.task, entry.action)
        if not thought:
            return f"Action: {call}"
        words = entry.thought or entry.task.low_level_instruction or past_sentence(entry, self.frame(entry.task))
        return f"Thought: {words}\nAction: {call}"

    def _call(self, task: StepTaskModel, action: Action) -> str:
        return write_call(action, self.frame(task), task.screenshot_size, self._form, self._options.scroll_words)


_BARE_BOX = re.compile(r"(start_box|end_box)='\((\d+),\s*(\d+)\)'")


def _own_call(reply: str) -> str | None:
    call = first_call(_parts(reply)[1], CALLS)
    restored = _BARE_BOX.sub(r"\1='<|box_start|>(\2,\3)<|box_end|>'", call.text)
    return restored if restored.endswith(")") else None


# --- replies --------------------------------------------------------------------------------------------------------

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
        **calls.outside("left_double", "right_single", "hotkey"),
    }
)
MOUSE_CALLS = calls.CallTable(CALLS, drag=calls.OUTSIDE)

_ACTION_LINE = re.compile(r"^[ \t*]*+Action[ \t*]*[:：][*]*", re.MULTILINE | re.IGNORECASE)
_ACTION_ANYWHERE = re.compile(r"Action(?<!\wAction)[ \t]*[:：]")  # a whole word; beginning with a letter, it is found quickly
_CALL = re.compile(r"\w\(")
_AT_ONCE = re.compile(r"[\s`*-]*[A-Za-z_]\w{0,40}\(")
_UNLABELLED = re.compile(r"^[ \t`*-]*+(?=[A-Za-z_]\w{0,40}\()", re.MULTILINE)
_LABEL = re.compile(
    r"\A\s*(?:```\w*\s*)?(?:[\s*]*(?:Thought|Reason|Reflection|Action_Summary)[ \t*]*[:：][\s*]*)?", re.IGNORECASE
)
MAX_LABELS, MAX_READ = 20, 100_000
"""How many ``Action:`` in a reply are looked at one by one, and how many characters for all of them together; a model stuck in
a loop writes thousands."""


def parse_reply(
    text: str,
    frame: Frame,
    size: Size,
    *,
    scroll_words: ScrollWords = "content",
    mouse: bool = False,
    bare_point: bool = False,
) -> ParsedResponse:
    """Read ``Thought: ..\\nAction: call`` with points in ``frame`` on a screenshot of ``size``.

    As in the authors' parser the last ``Action:`` counts (at the start of a line, if there is one), and of several calls
    after it the first. Tolerated beyond :func:`guieval.parsing.first_call`: ``Action：``; no ``Action:`` at all (a
    continued turn), if the call begins a line; a thought labelled ``Reason:``, ``Reflection:`` or ``Action_Summary:``, or in
    tags; ``point`` for ``start_box``; ``text`` for ``content``. With ``bare_point`` a lone coordinate is a click (the
    grounding prompt asks for one); with ``mouse`` a drag is a mouse drag, which the unified space has no word for, and not a
    swipe.
    """
    thought, body = _parts(text)
    whole = body.strip().rstrip(".")
    if bare_point and is_place(whole):
        return ParsedResponse(Click(point=decoded(whole, frame, size)), thought)
    call = first_call(body, CALLS)
    return ParsedResponse((MOUSE_CALLS if mouse else CALLS).read(call.name, call.arguments, frame, size, scroll_words), thought)


def _parts(text: str) -> tuple[str | None, str]:
    """A reply's thought, and what its call is to be looked for in."""
    text = whole_text(text)
    labels = list(_ACTION_ANYWHERE.finditer(text))
    reasoning, rest = split_reasoning(text, labels[-1][0] if labels else "")
    label = _last_label(rest) or _UNLABELLED.search(rest)
    if label is None:
        # a call in the middle of a sentence is talked about, not made
        return reasoning, "" if _CALL.search(rest) else rest
    return reasoning or _LABEL.sub("", rest[: label.start()]).strip() or None, rest[label.end() :]


def _last_label(text: str) -> re.Match[str] | None:
    """The last ``Action:`` that is not part of what an earlier call types."""
    found = list(_ACTION_LINE.finditer(text)) or list(_ACTION_ANYWHERE.finditer(text))
    if len(found) > MAX_LABELS or len(found) * len(text) > MAX_READ:
        return found[-1]
    last, end = None, _call_end(text, 0)
    for label in found:
        if label.start() >= end:
            last, end = label, _call_end(text, label.end())
    return last


def _call_end(text: str, start: int) -> int:
    """Where the call ends that stands at ``start``; ``start`` if there is none."""
    if not _AT_ONCE.match(text, start):
        return start
    try:
        return start + first_call(text[start:], CALLS).end
    except ParseError:
        return start


# --- calls ----------------------------------------------------------------------------------------------------------


def write_call(action: Action, frame: Frame, size: Size, form: CallForm, scroll_words: ScrollWords = "content") -> str:
    """Any action as a call, also one that no published prompt lists, which the past may hold.

    PRESS(ENTER) becomes the family's idiom for it, a submitted empty input.
    """
    if action == calls.ENTER:
        return "type(content='\\n')"
    if not isinstance(action, Scroll):
        name, arguments = CALLS.write(action, lambda point: box(point, frame, size))
        if isinstance(action, LongPress) and form.timed_press:
            # nobody states the unit of the 1.0 prompts' time, and it is left empty
            arguments["time"] = ""
        return call_text(name, {key: str(value) for key, value in arguments.items()})
    word = {"direction": calls.turned(action.direction, scroll_words)}
    if form.scroll == "path":
        start, end = scroll_path(action)
        return call_text("scroll", {"start_box": box(start, frame, size), "end_box": box(end, frame, size)})
    return call_text("scroll", ({} if form.scroll == "word" else {"start_box": box(action.point, frame, size)}) | word)


def box(point: Point, frame: Frame, size: Size) -> str:
    """A point as the models write it, with its special tokens."""
    x, y = frame.quantise(point, size)
    return f"<|box_start|>({x:g},{y:g})<|box_end|>"


def reply(call: str, thought: str | None) -> str:
    """A whole reply."""
    return f"{reply_begun(thought)} {call}" if thought else f"Action: {call}"


def reply_begun(thought: str) -> str:
    """A reply up to where its call begins (#79; GUIEvalKit paper, appendix E)."""
    return f"Thought: {thought}\nAction:"
