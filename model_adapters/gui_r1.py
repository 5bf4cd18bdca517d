"""GUI-R1 (Qwen2.5-VL based): a thought, then a Python literal with one action, points in pixels of the resized screenshot.

Sources: ritzz-ai/GUI-R1 ``guir1/inference/inference_vllm_{android,guiodyssey,screenspot}.py`` (prompts, layout, limits), issues
#12 (the past of GUI-Odyssey in OS-Atlas's notation), #13 (frame) and #20 (of an own step, the answer part is appended to the
past). The two navigation prompts list different actions, so the prompt is an option of the checkpoint. The models learnt their
scroll words from benchmark labels, which name where the content comes from on AndroidControl and where the finger goes on
GUI-Odyssey (option ``scroll_words``). On AndroidControl the past is step instructions, and a step instruction takes the goal's
place, as in the authors' test set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import BUTTONS, Action, ActionSpace, Hotkey, Scroll, Unsupported, Wait
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import QWEN_PIXELS, ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, chat
from guieval.models.parsing import ScrollWords, first_round, first_thought, json_value, named_object, place, split_reasoning
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing.capital_calls import capital_call
from guieval.models.prompts import main_instruction, own_response
from guieval.steps import StepTaskModel

NO_TEXT = "no input text"
NO_POINT = [-100, -100]


def _scroll(call: calls.Arguments) -> Action:
    point = call.values.get("point")
    filler = not point or max(place(point)) < 0
    return call.scroll("input_text", calls.MIDDLE if filler else call.point("point"))


CALLS = calls.CallTable(
    {
        # the authors' reader takes the two numbers under any key
        "click": calls.tap("point", "coordinate"),
        "long_press": calls.hold("point", "coordinate"),
        "scroll": calls.Form(Scroll, _scroll, calls.scrolled("input_text").write),
        "type": calls.typed("input_text"),
        "open_app": calls.opened("input_text"),
        "press_back": calls.BACK,
        "press_home": calls.HOME,
        "press_recent": calls.RECENT,
        "press_enter": calls.ENTER,
        "enter": calls.ENTER,
        "wait": Wait(),
        "complete": calls.FINISH,
        "impossible": calls.IMPOSSIBLE,
        # the authors' prompts for web pages and desktops list these
        "hotkey": calls.pressed_together("input_text"),
        "moveto": calls.hovered("point"),
        "rightclick": calls.right_clicked("point"),
        "doubleclick": calls.double_clicked("point"),
        **{f"press_{key}": calls.on_device(lambda call: Hotkey(keys=(call.name[6:],))) for key in ("tab", "space", "down")},
        "press_pgdn": calls.on_device(lambda call: Hotkey(keys=("pagedown",))),
        "select": calls.selected("input_text"),
        **calls.outside("close/delete"),
    }
)


class GUIR1Options(ImageLimits):
    """Options of GUI-R1; limits default to the server's own, as in the authors' tests."""

    prompt: Literal["androidcontrol", "guiodyssey"] = Field(
        "androidcontrol", description="which published navigation prompt is used"
    )
    scroll_words: ScrollWords | None = Field(
        None, description="what a scroll's word names: where the content comes from or where the finger goes (by the prompt)"
    )


class GUIR1(ABCModel):
    """Adapter of GUI-R1. Options: :class:`GUIR1Options`."""

    options: GUIR1Options
    table = CALLS
    pixels = QWEN_PIXELS
    action_space = ActionSpace(buttons=frozenset(BUTTONS) - {"ENTER"})
    """The union over the two published prompts; neither lists the enter key."""
    family = Family(2025, ("phone", "grounding"), reader="makers")
    source = frame_source = "github.com/ritzz-ai/GUI-R1 guir1/inference"

    @property
    def scroll_words(self) -> ScrollWords:
        return self.options.scroll_words or ("content" if self.options.prompt == "androidcontrol" else "finger")

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            prompt = self.prompt("gui_r1-screenspot", instruction=task.instruction)
        else:
            past = "\n".join(f"Step {number}: {self._past_step(entry)}" for number, entry in enumerate(history, 1))
            name = f"gui_r1-{self.options.prompt}"
            prompt = self.prompt(name, instruction=main_instruction(task), history=past or "None")
        # the text keeps its two literal "<image>", which are not the screenshot
        return chat(self.image(task), prompt)

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"<think> {thought.strip()} </think> <answer>"

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, answer = _parts(text)
        item = _item(answer)
        if task.setting == "grounding" and "action" not in item and "point" in item:
            item = {**item, "action": "click"}  # the only action that its prompt knows
        name, arguments = named_object(item, "action")
        name = name.strip().lower()
        if arguments.get("input_text") == NO_TEXT and not CALLS.outside(name):
            del arguments["input_text"]
        return ParsedResponse(self.read_call(task, name, arguments), thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = f"<think> {thought} </think> " if thought else ""
        return f"{before}<answer>{self._answer(task, action)}</answer>"

    def _past_step(self, entry: HistoryEntry) -> str:
        if entry.origin == "model":
            return own_response(entry, _own_answer) or self._answer(entry.task, entry.action)
        if self.options.prompt == "androidcontrol":
            return self.sentence(entry)
        # as GUI-R1's GUI-Odyssey data writes it: in OS-Atlas's notation, with places in thousandths
        if isinstance(entry.action, Unsupported):
            return entry.action.name.upper()
        if entry.action == calls.ENTER:
            return "PRESS_ENTER"
        return capital_call(entry.action, PER_1000, entry.task.screenshot_size, self.scroll_words)

    def _answer(self, task: StepTaskModel, action: Action) -> str:
        """The answer for any action, also one that the family has no word for, which the past may hold."""
        name, arguments = self.write_call(task, action)
        if isinstance(action, Unsupported):
            return str([{"action": name, **arguments}])
        return str([{"action": name, "point": NO_POINT, "input_text": NO_TEXT} | arguments])


_ANSWER_END = re.compile(r"</answer>(?![\"'\\])")  # a quote after the tag means that it is part of a text to be typed
_UNTAGGED = re.compile(r"(?:\A|[\n:：`>])[ \t]*(?=(?:\[\s*)?\{\s*['\"](?:action|point)['\"])")
_ENUM = re.compile(r"enum\[\s*(['\"])([^'\"\]]*)\1\s*\]")
# the three keys in the published order; a quote within the text ends it only if the list goes on or ends
_WRITTEN = re.compile(
    r"\s*\[?\s*\{\s*['\"]action['\"]\s*:\s*['\"]([\w/]+)['\"]\s*,\s*['\"]point['\"]\s*:\s*(\[[^\[\]]*\])\s*,"
    r"\s*['\"]input_text['\"]\s*:\s*(['\"])(.*?)\3\s*\}\s*(?=[\],]|\Z)",
    re.DOTALL,
)


def _parts(text: str) -> tuple[str | None, str]:
    """A response's thought, and its answer without tags.

    Only what follows the reasoning counts, and of several answers the first. Tolerated: tags that are not closed, and
    no ``<answer>`` tag if the literal begins the answer, a line, or what follows a colon or a fence.
    """
    text = first_round(text)
    thought, end = first_thought(text, "<answer>")
    thought, rest = (thought, text[end:]) if end else split_reasoning(text, "<answer>")
    start = rest.find("<answer>")
    if start >= 0:
        body = rest[start + len("<answer>") :]
    else:
        begins = _UNTAGGED.search(rest)
        if begins is None:
            raise ParseError(f"the response has no <answer>: {text.strip()[:80]!r}")
        body = rest[begins.end() :]
    closing = _ANSWER_END.search(body)
    return thought or None, (body if closing is None else body[: closing.start()]).strip()


def _item(answer: str) -> dict[str, Any]:
    """The first action of an answer.

    Looser than :func:`guieval.models.parsing.json_value`: the prompt's ``enum['click']`` copied with one word in it, and quotes
    in the input text that are not escaped.
    """
    try:
        value = json_value(answer)
    except ParseError:
        plain = _ENUM.sub(r"'\2'", answer)
        written = _WRITTEN.match(plain)
        if written is not None:
            value = {"action": written[1], "point": json_value(written[2]), "input_text": written[4]}
        elif plain != answer:
            value = json_value(plain)
        else:
            raise
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        raise ParseError(f"the answer is not an action: {value!r:.80}")
    return first


def _own_answer(reply: str) -> str:
    answer = _parts(reply)[1]
    _item(answer)
    return answer
