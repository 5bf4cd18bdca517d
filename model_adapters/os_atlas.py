"""OS-Atlas: ``actions:`` in capital letters (``CLICK <point>[[x,y]]</point>``, ``TYPE [text]``), points in thousandths.

Sources: OS-Copilot/OS-Atlas ``eval/data/*.jsonl`` (the Pro checkpoints' prompts with their history, and reference answers),
``README.md`` (the Base checkpoints' grounding prompts, an answer of the 7B, the frame).

Each published prompt adds the actions of its benchmark to three basic ones, so the prompt is an option of the checkpoint. A
step instruction follows the task, as in AndroidControl's prompt. No grounding prompt is published for Pro: the query is sent as
the task, without a history. Base only grounds: on any step it is queried for a place, which is read as a click.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import DIRECTIONS, Action, ActionSpace, Click
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelConfig, ModelInput, ParsedResponse, Part, chat
from guieval.models.parsing import ScrollWords, stated_place
from guieval.models.parsing.capital_calls import ALONE, CALLS, PLACED, WRITTEN, capital_call
from guieval.models.prompts import fill, main_instruction, step_instruction
from guieval.steps import StepTaskModel


class OSAtlasOptions(ImageLimits):
    """Options of OS-Atlas. Its coordinates are relative, so by default every screenshot is sent as it is."""

    prompt: Literal["androidcontrol", "guiodyssey", "guiact", "base-bbox", "base-point"] = Field(
        "androidcontrol", description="which published prompt is used; the last two are the Base checkpoints'"
    )
    scroll_words: ScrollWords | None = Field(
        None,
        description="what SCROLL names: where the content comes from, or the finger goes; finger by default for guiodyssey",
    )


class OSAtlas(ABCModel):
    """Adapter of OS-Atlas-Pro and OS-Atlas-Base. Options: :class:`OSAtlasOptions`."""

    options: OSAtlasOptions
    thought_form = "thoughts:\n{thought}\nactions:\n"
    table = CALLS
    fixed_frame = PER_1000
    action_space = ActionSpace(buttons=frozenset({"BACK", "HOME", "ENTER", "RECENT"}))
    """The union over the published prompts and labels."""
    family = Family(2024, ("phone", "web", "grounding"), reader="makers", recorded=253, grounders="-base-")
    source = "github.com/OS-Copilot/OS-Atlas eval/data and README.md"
    frame_source = "github.com/OS-Copilot/OS-Atlas README.md (relative coordinates within a 0-1000 range)"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._base = self.options.prompt.startswith("base")
        if self._base:
            self.thinking = False

    @property
    def scroll_words(self) -> ScrollWords:
        return self.options.scroll_words or ("finger" if self.options.prompt == "guiodyssey" else "content")

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if not self._base:
            return chat(*self._question(task, history))
        kind = "point-4b" if self.options.prompt == "base-point" else "bbox"
        text = self.prompt(f"os_atlas_base-grounding-{kind}", instruction=main_instruction(task))
        # the box is separated from the words before it by special tokens, which the authors keep too
        return chat(self.image(task), text, extra={} if kind == "point-4b" else {"skip_special_tokens": False})

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read ``thoughts: .. actions: CALL``.

        Tolerated: labels in either number and case, in bold, or with a full-width colon; words around the call; bullets,
        numbers and fences before it; several calls (the first counts); no labels at all (a continued turn,
        OS-Kairos's records), if a call in capitals begins a line. A grounding query, and every query to a Base checkpoint,
        may be answered by a point or box alone, which is a click on it.
        """
        bare_place = self._base or task.setting == "grounding"
        label = _ACTIONS.search(text)
        body = text[label.end() :] if label else text
        thought = text[: label.start()] if label else ""
        found = _first_call(body, labelled=label is not None, bare_place=bare_place)
        if found is None and bare_place:
            place = stated_place(body)
            if place is not None:
                return ParsedResponse(self.read_click(task, place))
        if found is None:
            raise ParseError("the response has no action")
        name = found[1].upper()
        if not label:
            thought = body[: found.start()]
        action = self.read_call(task, name, _arguments(name, body[found.end() :]))
        return ParsedResponse(action, _THOUGHTS.sub("", thought).strip() or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if self._base and isinstance(action, Click):
            x, y = self.write_place(task, action.point)
            if self.options.prompt == "base-point":
                return f"<point>[[{x:g},{y:g}]]</point>"
            return f"<|box_start|>({x:g},{y:g}),({x:g},{y:g})<|box_end|>"
        call = f"actions:\n{self._call(task, action)}"
        return f"thoughts:\n{thought}\n{call}" if thought else call

    def _question(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> tuple[Part, ...]:
        text = self.prompt(f"os_atlas_pro-{self.options.prompt}").replace(" You need to: {step_instruction}", "")
        before, after = text.split("<image>")
        goal = task.instruction
        if task.setting == "low":
            goal += f" You need to: {step_instruction(task)}"
        lines = "".join(f"Step {number}: {self._past(entry)}\n" for number, entry in enumerate(history, 1))
        return before, self.image(task), fill(after, instruction=goal, history=lines or "None")

    def _past(self, entry: HistoryEntry) -> str:
        """A past step: its call in GUI-Odyssey's prompt, else its sentence, which is what a response's thoughts are here."""
        if self.options.prompt == "guiodyssey":
            return " ".join(self._call(entry.task, entry.action).split())
        sentence = entry.thought or self.sentence(entry)
        return " ".join(sentence.split())

    def _call(self, task: StepTaskModel, action: Action) -> str:
        return capital_call(action, self.frame(task), task.screenshot_size, self.scroll_words)


_BULLET = r"[ \t`*\-]*+(?:\d{1,2}[.)][ \t]*)?"
_ACTIONS = re.compile(r"^[ \t*#]*+actions?[ \t*]*[:：][ \t*]*", re.MULTILINE | re.IGNORECASE)
_THOUGHTS = re.compile(r"\A[\s*#]*+thoughts?[ \t*]*[:：][ \t*]*", re.IGNORECASE)
_FIRST = re.compile(r"[\s`*\-]*(?:\d{1,2}[.)][ \t]*)?([A-Za-z_]{2,40})(?![A-Za-z_])")
_LINE = re.compile(rf"^{_BULLET}([A-Z_]{{3,40}})(?![A-Za-z_])", re.MULTILINE)
# a word without arguments is an action only if no sentence goes on after it ("WAIT for the page")
_ALONE = re.compile(r"[ \t]*(?:\Z|[\n.,;。`*<]|\(\)|\[[ \d]{0,9}\])")
_ARGUMENT = re.compile(r"[ \t]*[\[(（［<:：\d]")
_BRACKET = re.compile(r"[ \t]*(?:\[|<(?:point|box|bbox|\|box_start\|)>)")
_WORD = rf"(?:{'|'.join(sorted(CALLS))})(?![A-Za-z_])"
_FOLLOWING = re.compile(rf"\][\s`,;.]*(?:\d{{1,2}}[.)][ \t]*)?(?:{_WORD}|(?i:[*#]{{0,3}}(?:thought|action)s?[*]{{0,2}}[:：]))")
# one direction, not the prompt's "UP/DOWN/LEFT/RIGHT" over again
_DIRECTION = re.compile(
    r"[ \t:：]*\[?[ \t'\"]*([A-Za-z]{2,5})(?![A-Za-z]|[ \t'\"]*(?:[/|]|(?:,|or\b)[ \t'\"]*(?:up|down|left|right)\b))",
    re.IGNORECASE,
)
_MARK = r"</?(?:point|box|bbox)>|<\|box_(?:start|end)\|>"
_PLACE = re.compile(rf"[ \t:：]*((?:{_MARK}|[\[\](),（），［］ \t'\"]|-?\d+(?:\.\d+)?)+)")
_CLOSED = re.compile(r"</(?:point|box|bbox)>|<\|box_end\|>")


def _first_call(body: str, *, labelled: bool, bare_place: bool) -> re.Match[str] | None:
    """The first action word: right after the label in any case, else in capitals at the beginning of a line.

    If a place alone is a response, a line may also begin with the name of the element that is at the place.
    """
    first = _FIRST.match(body)
    if first is not None and labelled:
        word = first[1]
        if word.upper() in CALLS and _is_call(first, body):
            return first
        if word.upper() not in CALLS and (_BRACKET.match(body, first.end()) or (word.isupper() and len(word) > 3)):
            raise ParseError(f"the response calls {word!r}, which is not an action of this family")
    for line in _LINE.finditer(body):
        if line[1] in CALLS and _is_call(line, body):
            return line
        # what follows a call of another name was meant to come second
        if not bare_place and line[1] not in CALLS and _BRACKET.match(body, line.end()):
            raise ParseError(f"the response calls {line[1]!r}, which is not an action of this family")
    return None


def _is_call(word: re.Match[str], body: str) -> bool:
    if word[1].upper() in ALONE:
        return _ALONE.match(body, word.end()) is not None
    return word[1].isupper() or _ARGUMENT.match(body, word.end()) is not None


def _arguments(name: str, rest: str) -> dict[str, str]:
    if name in ALONE or not rest.strip(" \t\r\n`*"):  # their scorer counts a bare word by its type
        return {}
    if name in PLACED:
        return {"place": _place(name, rest)}
    if name in WRITTEN:
        return {"text": _bracketed(name, rest)}
    if name != "SCROLL":
        return {"text": rest.partition("\n")[0].strip()} if rest.strip() else {}
    word = _DIRECTION.match(rest)
    if word is None or word[1].lower() not in DIRECTIONS:
        raise ParseError(f"SCROLL names no direction: {rest.strip()[:80]!r}")
    return {"direction": word[1]}


def _place(name: str, rest: str) -> str:
    match = _PLACE.match(rest)
    if match is None or not any(char.isdigit() for char in match[1]):
        raise ParseError(f"{name} gives no point: {rest.strip()[:80]!r}")
    closed = _CLOSED.search(match[1])
    place = (match[1] if closed is None else match[1][: closed.end()]).strip()
    # cut off within a bracket, the last number may lack digits
    if match.end() == len(rest) and place[-1:].isdigit() and not place[:1].isdigit():
        raise ParseError(f"the response ends inside a point: {place[-80:]!r}")
    return place.replace("][", "],[").replace(")(", "),(")


def _bracketed(name: str, rest: str) -> str:
    """The text in brackets, unescaped: from the first ``[`` to the last ``]`` in front of the next call.

    If words follow that, they may have brackets too: then the text ends where its own bracket is closed.
    """
    start = re.match(r"[ \t:：]*\[", rest)
    if start is None:
        raise ParseError(f"{name} gives no text in brackets: {rest.strip()[:80]!r}")
    text = rest[start.end() :]
    following = _FOLLOWING.search(text)
    end = following.start() if following is not None else text.rfind("]")
    if end < 0:
        raise ParseError(f"the response ends inside the text of {name}: {text[-80:]!r}")
    if following is None and not _NO_WORDS.fullmatch(text, end + 1):
        end = _closing(text, end)
    return text[:end]


_NO_WORDS = re.compile(r"[\s`*]*(?:<\|\w+\|>\s*)*")


def _closing(text: str, last: int) -> int:
    """Where the bracket that is open in front of ``text`` is closed; ``last`` if brackets are not in pairs."""
    depth = 1
    for mark in re.finditer(r"[\[\]]", text):
        depth += 1 if mark[0] == "[" else -1
        if not depth:
            return mark.start()
    return last
