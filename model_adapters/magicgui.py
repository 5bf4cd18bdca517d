"""MagicGUI (Qwen2-VL based): one bare call with unnamed, unquoted arguments, points in thousandths of the screen.

Sources: MagicAgent-GUI/MagicGUI ``utils/dataset/utils/configs.py`` (prompts), ``datasets/eval_data_process/`` (query and
past), ``inferece.py`` (another prompt, image limits), ``utils/dataset/screen_understanding.py`` and ``utils/tool.py`` (what
their evaluation reads in a response), ``utils/model/model.py`` (layout, sampling). Only the English prompt has a place for the
past: step instructions, or calls if there are none and for the model's own steps. A step instruction takes the goal's place.
The ``<image>`` in the prompts is plain text to the model: the screenshot comes first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field

from guieval.actions import Action, ActionSpace, Click, Drag, Open, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError, whole_text
from guieval.frames import PER_1000, Size
from guieval.history import HistoryEntry, describe
from guieval.models import PATCH, ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import clicked, decoded, is_place, numbers, place, split_reasoning
from guieval.steps import StepTaskModel

Prompt: TypeAlias = Literal["androidcontrol", "magicrich", "readme"]


class MagicGUIOptions(ImageLimits):
    """Options of MagicGUI; limits default to the authors' own."""

    prompt: Prompt | Literal["auto"] = Field(
        "auto",
        description="published navigation prompt; auto: magicrich for goals with Chinese characters, else androidcontrol",
    )
    grounding: Literal["zh", "en"] = Field(
        "zh", description="which published grounding prompt is used: that for ScreenSpot (zh) or that for OS-Atlas (en)"
    )


class MagicGUI(ABCModel):
    """Adapter of MagicGUI. Options: :class:`MagicGUIOptions`."""

    options: MagicGUIOptions
    pixels = 4 * PATCH**2, 768 * PATCH**2
    fixed_frame = PER_1000
    action_space = ActionSpace()
    """The union over the published prompts; the English one has no ``call_api``, ``enter`` and ``no_answer``."""
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=10)
    source = "github.com/MagicAgent-GUI/MagicGUI utils/dataset/utils/configs.py"
    frame_source = "github.com/MagicAgent-GUI/MagicGUI utils/eval/format_convert.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        return chat(self.image(task), self._text(task, history))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, body = split_reasoning(text, "<answer>")
        size = task.screenshot_size
        click = read_place(body, size) if task.setting == "grounding" else None
        return ParsedResponse(click or read_call(body, size), thought or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            x, y = PER_1000.quantise(action.point, task.screenshot_size)
            return f"<|box_start|>({x:g}, {y:g}),({x:g}, {y:g})<|box_end|>"
        return write_call(action, task.screenshot_size, self._prompt(task))

    def _prompt(self, task: StepTaskModel) -> Prompt:
        if self.options.prompt != "auto":
            return self.options.prompt
        return "magicrich" if _CHINESE.search(task.instruction) else "androidcontrol"

    def _text(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str:
        if task.setting == "grounding":
            return self.prompt(f"magicgui-grounding-{self.options.grounding}", query=task.instruction)
        instruction, prompt = main_instruction(task), self._prompt(task)
        match prompt:
            case "androidcontrol":
                past = "".join(f"{self._past_step(entry)} \n" for entry in history)
                return self.prompt(f"magicgui-{prompt}", query=f'"{instruction}"\nAction History: "{past}"')
            case "magicrich":
                return self.prompt(f"magicgui-{prompt}", query=instruction)
            case "readme":
                return self.prompt(f"magicgui-{prompt}", instruction=instruction)

    def _past_step(self, entry: HistoryEntry) -> str:
        if entry.conclusion and entry.conclusion != describe(entry.action):
            return entry.conclusion
        own = (entry.raw_response or "").strip()
        if _ONE_CALL.fullmatch(own):
            return own
        try:
            return write_call(entry.action, entry.task.screenshot_size, self._prompt(entry.task))
        except ValueError:
            return describe(entry.action)


_CHINESE = re.compile("[\u4e00-\u9fff]")
_ONE_CALL = re.compile(r"[a-z_]{1,40}\(.*\)")


def _drag(call: calls.Arguments) -> Drag:
    start, end = ([call.values[x], call.values[y]] for x, y in (("x1", "y1"), ("x2", "y2")))
    return Drag(start=decoded(start, call.frame, call.size), end=decoded(end, call.frame, call.size))


CALLS = calls.CallTable(
    {
        "tap": calls.tap("place"),
        "long_press": calls.hold("place"),
        "scroll": calls.scrolled("direction", "place", needs_place=True),
        "text": calls.typed("text"),
        "call_api": calls.Form(
            Open,
            lambda call: call.unsupported() if call.values["operation"] == "kill" else Open(app=call.values["api_name"]),
            calls.opened("app").write,
        ),
        "navigate_back": calls.BACK,
        "navigate_home": calls.HOME,
        "enter": calls.ENTER,
        "wait": Wait(),
        "finish": calls.FINISH,
        "action_completed": calls.FINISH,
        "no_answer": calls.IMPOSSIBLE,
        "screen_shot": Unsupported(name="screen_shot"),
        "long_screen_shot": Unsupported(name="long_screen_shot"),
        "drag": calls.on_device(_drag),
        **calls.outside("take_over"),
    }
)
_ALONE = frozenset(name for name, entry in CALLS.items() if not isinstance(entry, calls.Form))
"""The calls without arguments."""
LONGEST_PLACE = 120
"""Longest text, in characters, that can be a place and nothing else."""

# a call begins a line, or follows a label or a tag; in the middle of a sentence it is talked about, not made
_BEGIN = re.compile(r"(?:^|[:：>])[\s\"'`{*-]{0,12}+([A-Za-z_]\w{0,40}+)[ ]?([(（])", re.MULTILINE)
_WORD = re.compile(r"^[\s\"'`{*-]{0,12}+([A-Za-z_]\w{0,40}+)[\s\"'`}*.。-]{0,12}(?:$|<\|)", re.MULTILINE)
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?"
# every run is bounded: a model stuck in a loop writes thousands of blanks
_BLANK = r"\s{0,4}"
_ONE = rf"(?:[A-Za-z]\w{{0,9}}{_BLANK}={_BLANK})?[\"']?({_NUMBER})[\"']?"
_PAIR = rf"{_ONE}{_BLANK}[,，]{_BLANK}{_ONE}"
_PLACE = re.compile(
    rf"{_BLANK}(?:<\|box_start\|>|<point>)?(?:[\[(（]{_BLANK}{_PAIR}{_BLANK}[\])）]|{_PAIR})(?:<\|box_end\|>|</point>)?{_BLANK}"
)
_TWO = rf"{_NUMBER}{_BLANK}[,，]{_BLANK}{_NUMBER}"
_CORNERS = rf"[(（]{_BLANK}({_TWO}){_BLANK}[)）]{_BLANK}[,，]?{_BLANK}[(（]{_BLANK}({_TWO}){_BLANK}[)）]"
_BOX = re.compile(rf"{_BLANK}<\|box_start\|>{_BLANK}{_CORNERS}{_BLANK}<\|box_end\|>{_BLANK}")
_BARE_BOX = re.compile(_CORNERS)
_COMMA = re.compile(rf"{_BLANK}[,，]{_BLANK}")
_CLOSE = re.compile(rf"{_BLANK}[)）]")
_LABEL = re.compile(rf"(?:text_input|message|api_name|direction){_BLANK}={_BLANK}")
_DIRECTION = re.compile(rf"[\"']?([A-Za-z]{{1,9}})[\"']?{_BLANK}(?:[)）]|\Z)")
_OPERATION = re.compile(
    rf"{_BLANK}[,，]{_BLANK}(?:[A-Za-z]\w{{0,9}}{_BLANK}={_BLANK})?[\"']?(open|kill)[\"']?{_BLANK}(?:[)）]|\Z)", re.IGNORECASE
)
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# what may follow the bracket that ends a text: the end, a new line, a mark, or another call
_AFTER_TEXT = re.compile(r"[\s\"'`}*.。]*(?:\Z|\n|<\||```|[,，;；]?\s*(?:" + "|".join(sorted(CALLS)) + r")[(（])")


def read_call(text: str, size: Size) -> Action:
    """The first call of a response; raises :class:`ParseError` when it makes none, or begins with one of another name.

    Tolerated: the quotes, braces, fences, list marks and labels around a call, and words after it; names in upper or lower
    case; names without brackets if there are no arguments; full-width brackets and commas; numbers in quotes or with
    their parameter's name; a place as box or point tokens; texts in quotes; a missing bracket if nothing can be cut off.
    """
    begun = _BEGIN.search(text)
    # with the call's own bracket, so that a label in front of it ("Wait: tap(1,2)") does not seem to end a line
    for word in _WORD.finditer(text[: begun.end()] if begun else text):
        if word[1].lower() in _ALONE:
            return CALLS.read(word[1].lower(), {}, PER_1000, size)
    if begun is None:
        raise ParseError(f"the response makes no call: {text.strip()[:80]!r}")
    name = begun[1].lower()
    if name not in CALLS:
        raise ParseError(f"the response calls {begun[1]!r}, which is not an action of this family")
    arguments = {} if name in _ALONE else _arguments(name, text[begun.end() :], begun[2] == "（")
    return CALLS.read(name, arguments, PER_1000, size)


def _arguments(name: str, rest: str, wide: bool) -> dict[str, Any]:
    match name:
        case "take_over":
            message = _unquoted(_last_argument(rest, wide))
            return {"message": message} if message else {}
        case "call_api":
            return _app_and_operation(rest.split("\n", 1)[0])
    point, after = _place(name, rest)
    match name:
        case "text":
            written = _last_argument(_next(after), wide)
            if not written:
                raise ParseError("text gives no text after its place")
            return {"text": _unquoted(written)}
        case "scroll":
            rest = _unlabelled(_next(after))
            word = _DIRECTION.match(rest)
            return {"place": point, "direction": word[1] if word is not None else rest[:20].strip()}
        case "drag":
            end, after = _place(name, _next(after))
            _closed(name, after)
            return dict(zip(("x1", "y1", "x2", "y2"), (*point, *end), strict=True))
    _closed(name, after)
    return {"place": point}


def _place(name: str, rest: str) -> tuple[tuple[float, float], str]:
    """A place's two numbers, a box's middle, and what follows them."""
    box = _BOX.match(rest)
    if box is not None:
        return place(f"{box[1]},{box[2]}"), rest[box.end() :]
    match = _PLACE.match(rest)
    # cut off within the second number, what it would have been is unknown
    if match is None or (match.end() == len(rest) and rest[-1:].isdigit()):
        raise ParseError(f"{name} gives no place: {rest[:40]!r}")
    return (float(match[1] or match[3]), float(match[2] or match[4])), rest[match.end() :]


def _closed(name: str, after: str) -> None:
    if after and not _CLOSE.match(after):
        raise ParseError(f"{name} does not end after its place: {after[:40]!r}")


def _next(after: str) -> str:
    comma = _COMMA.match(after)
    return after[comma.end() :] if comma else ""


def _unlabelled(rest: str) -> str:
    label = _LABEL.match(rest)
    return rest[label.end() :] if label else rest


def _last_argument(rest: str, wide: bool) -> str:
    """The free text that ends a call, as it is written: it may itself hold brackets, commas and quotes."""
    rest = _unlabelled(rest)
    written = _JSON_STRING.match(rest)
    if written is not None and _CLOSE.match(rest, written.end()):
        return written[0]
    closings = [match.start() for match in re.finditer("[)）]" if wide or ")" not in rest else r"\)", rest)]
    if not closings:
        raise ParseError("the response ends inside a text")
    end = next((place for place in closings if _AFTER_TEXT.match(rest, place + 1)), closings[-1])
    return rest[:end].strip()


def _unquoted(value: str) -> str:
    """``value`` without quotes around it, unless there are more of them inside: then they may belong to it.

    Double quotes are read with JSON's escapes, if they can be.
    """
    if len(value) >= 2 and value[0] == value[-1] == '"':
        try:
            return whole_text(str(json.loads(value, strict=False)))
        except ValueError:
            pass
    for quote in "\"'":
        if len(value) >= 2 and value[0] == value[-1] == quote and quote not in value[1:-1]:
            return value[1:-1]
    return value


def _app_and_operation(rest: str) -> dict[str, str]:
    rest = _unlabelled(rest)
    written = _JSON_STRING.match(rest)
    operation = _OPERATION.match(rest, written.end()) if written else _OPERATION.search(rest)
    app = _unquoted(rest[: operation.start()].strip()) if operation else ""
    if operation is None or not app.strip():
        raise ParseError(f"call_api names no app, or an operation other than open and kill: {rest[:40]!r}")
    return {"api_name": app, "operation": operation[1].lower()}


def read_place(text: str, size: Size) -> Action | None:
    """A grounding response's place as a click: the middle of its first box, or the one point or box it consists of.

    ``None`` if there is none, so that a call can be looked for. The box tokens are optional, as servers strip them.
    """
    box = _BARE_BOX.search(text)
    if box is not None:
        return clicked(f"{box[1]},{box[2]}", PER_1000, size)
    whole = text.strip().strip("{}\"'`.").strip()
    if len(whole) > LONGEST_PLACE or not is_place(whole) or len(numbers(whole)) not in (2, 4):
        return None
    return clicked(whole, PER_1000, size)


def write_call(action: Action, size: Size, prompt: Prompt) -> str:
    """An action as a call, also one that the prompt does not list, which the past may hold.

    A typed text has no place in the unified space; (0, 0) means an unknown one, as in the authors' converters. Raises
    ``ValueError`` for what no prompt of the family has a word for.
    """
    match action:
        case Type():
            return f"text(0,0,{_plain_or_quoted(action.text, 'text(0,0,{})', action, size)})"
        case Open():
            return f"call_api({_plain_or_quoted(action.app, 'call_api({}, open)', action, size)}, open)"
        case Stop() if prompt == "readme":
            return "action_completed" if action.status == "finish" else "no_answer"
        case Stop(status="finish") if prompt == "magicrich":
            return "action_completed()"
    name, arguments = CALLS.write(action, lambda point: "{:g},{:g}".format(*PER_1000.quantise(point, size)))
    return f"{name}({','.join(map(str, arguments.values()))})"


def _plain_or_quoted(value: str, form: str, action: Action, size: Size) -> str:
    """``value`` as the model writes it, without quotes, if it is read back so; else in quotes with JSON's escapes."""
    try:
        if read_call(form.replace("{}", value), size) == action:
            return value
    except ParseError:
        pass
    return json.dumps(value, ensure_ascii=False)
