"""Shared by models of hosted APIs: the size of the image that is sent, the past in words, and native computer-use responses.

A response is text with calls between ``<tool_call>`` tags, as :mod:`guieval.engines.apis` writes the calls of an answer. Of
several calls the first one that acts is scored, and all are carried out online; calls that only look (screenshot, zoom) are
answered by the engine. A turn that ends without a call ends the task, as it does in the makers' own agent loops.
"""

from __future__ import annotations

import json
import math
import re
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from guieval import actions as act
from guieval.errors import ParseError
from guieval.frames import Frame, OriginalPixels, Size
from guieval.history import HistoryEntry
from guieval.models import END_TURN, LOOKS, ABCModel, ImageRef, ModelConfig, ModelInput, Options, ParsedResponse, chat
from guieval.models.parsing import call_tables as calls
from guieval.models.prompts import step_instruction
from guieval.steps import StepTaskModel

Environment: TypeAlias = Literal["mobile", "browser", "desktop"]
STATUSES: dict[str, act.StopStatus] = {"done": "finish", "impossible": "impossible"}
SIDES: dict[str, act.Direction] = {side: side for side in act.DIRECTIONS}
BUTTON_NAMES: dict[str, act.Button] = {**calls.BUTTON_NAMES, "recent": "RECENT"}


_FURTHEST = 1e9
"""An amount of scrolling above all sense; JSON may hold integers that no float can."""


class ImageSize(Options):
    """Options of models whose service shrinks large images: shrunk before, they are seen as they are sent."""

    max_side: int | None = Field(None, ge=1, description="longest side, in pixels, of the image that is sent")
    max_pixels: int | None = Field(None, ge=1, description="most pixels of the image that is sent")
    max_patches: int | None = Field(None, ge=1, description="most patches of the image that is sent")
    patch: int = Field(28, ge=1, description="side, in pixels, of a patch: a square that the service counts as a token")


@dataclass(frozen=True)
class SentPixels(OriginalPixels):
    """Pixels of the screenshot as it is sent: shrunk until all limits hold, with its proportions, and never enlarged.

    With ``max_patches`` the size is the one to which Anthropic's service would shrink the image: the largest long side for
    which both sides, filled up to whole patches, are within ``max_side``, and their patches within ``max_patches``. Source:
    platform.claude.com, "Coordinates and bounding boxes", as of 22 August 2026.
    """

    name: str = "pixels-sent"
    max_side: int | None = None
    max_pixels: int | None = None
    max_patches: int | None = None
    patch: int = 28

    def sent(self, size: Size) -> Size:
        """The (width, height) in which a screenshot of ``size`` is sent."""
        width, height = size
        if self.max_patches is None:
            scale = min(
                1.0, (self.max_side or math.inf) / max(size), math.sqrt((self.max_pixels or math.inf) / (width * height))
            )
            # a product that floating point leaves a hair below a whole number is that number
            return max(1, math.floor(width * scale + 1e-9)), max(1, math.floor(height * scale + 1e-9))
        ratio = max(size) / min(size)
        too_long = bisect_left(range(max(size) + 1), True, key=lambda edge: not self._fits(edge, round(edge / ratio)))
        long = max(1, too_long - 1)
        short = max(1, round(long / ratio))
        return (long, short) if width >= height else (short, long)

    def _fits(self, width: int, height: int) -> bool:
        across, along = math.ceil(width / self.patch), math.ceil(height / self.patch)
        within = max(across, along) * self.patch <= (self.max_side or math.inf)
        return within and across * along <= (self.max_patches or math.inf) and width * height <= (self.max_pixels or math.inf)

    def extent(self, size: Size) -> tuple[float, float]:
        return super().extent(self.sent(size))


class HostedModel(ABCModel):
    """Base class of adapters of hosted models, by default in pixels of the image that is sent."""

    options: ImageSize
    action_space = act.ActionSpace(buttons=frozenset(act.BUTTONS))

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self.sent = SentPixels(**{name: getattr(self.options, name) for name in ImageSize.__annotations__})

    def frame(self, task: StepTaskModel) -> Frame:
        return self.fixed_frame or self.sent

    def image(self, task: StepTaskModel) -> ImageRef:
        size = self.sent.sent(task.screenshot_size)
        return ImageRef(task, None if size == task.screenshot_size else size)

    def question(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> str:
        """The user's turn: a query, or the task and the past, one line a step with the model's own thoughts."""
        if task.setting == "grounding":
            return task.instruction
        past: list[str] = []
        for number, entry in enumerate(history, 1):
            words = f"{self.sentence(entry)} Thought: {entry.thought}" if entry.thought else self.sentence(entry)
            past.append(f"Step {number}: {' '.join(words.split())}")  # a line is a step
        goal = task.instruction
        if task.setting == "low":
            goal += f"\nWhat to do in this step: {step_instruction(task)}"
        return self.prompt("openai_tools-user", instruction=goal, history="\n".join(past) or "nothing")


class ComputerOptions(ImageSize):
    """Options of models with a computer tool of their own."""

    environment: Literal["auto", "mobile", "browser", "desktop"] = Field(
        "auto", description="what the model operates; auto: mobile if the screenshot is taller than wide, else desktop"
    )
    looks: int = Field(3, ge=0, description="how often a step may ask for a screenshot or a zoom before it must act")


class ComputerUse(HostedModel):
    """Base class of adapters of native computer-use APIs. Subclasses state the tool and the table of its calls."""

    options: ComputerOptions
    scroll_words: calls.ScrollWords = "content"
    several_actions: ClassVar[str] = "the first is scored"
    """The scored part of a response with several actions."""
    own_mobile_tools: ClassVar[bool] = False
    """Whether the API's tool can open apps, press buttons and hold on phones, so that no functions are added for these."""

    @property
    def looks(self) -> int:
        return self.options.looks

    @property
    def reply_rules(self) -> Mapping[str, str]:
        return {"several actions": self.several_actions, "looks before the first action": "answered, up to option looks"}

    def environment(self, size: Size) -> Environment:
        """The device named in the prompt, for a screenshot of ``size``."""
        if self.options.environment != "auto":
            return self.options.environment
        return "mobile" if size[1] > size[0] else "desktop"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        grounding = task.setting == "grounding"
        system = self.prompt(f"computer_use-{'grounding-' if grounding else ''}system")
        environment = self.environment(task.screenshot_size)
        added = "" if grounding else self.prompt("computer_use-functions")
        if added and environment == "mobile" and not self.own_mobile_tools:
            added += "\n" + self.prompt("computer_use-mobile-functions")
        tools = self._tools(environment, self.sent.sent(task.screenshot_size), functions(added))
        return chat(self.question(task, history), self.image(task), system=system, extra={"looks": self.looks, **tools})

    @abstractmethod
    def _tools(self, environment: Environment, size: Size, functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The fields of a request that offer the API's tool, and ``functions`` (name, description, parameters) next to it.

        ``size`` is the (width, height) in pixels of the image that is sent.
        """

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        words, made = split_calls(text)
        acting = [each for name, arguments in made for each in self._expanded(name, arguments) if each[0] not in LOOKS]
        intents = [arguments.get("intent") for _, arguments in made]
        said = _TAGS.sub("", words).replace(END_TURN, "").strip()
        thought = said or next((intent for intent in intents if isinstance(intent, str)), None)
        if not acting:
            return ParsedResponse(_without_call(words, bool(made), grounding=task.setting == "grounding"), thought)
        (name, arguments), *further = acting
        actions = [self.read_call(task, name, arguments)]
        for name, arguments in further:
            try:
                actions.append(self.read_call(task, name, arguments))
            except ParseError:  # what the model meant after this cannot be carried out in its place
                break
        scored = self._scored(actions, made)
        return ParsedResponse(scored, thought, batch=tuple(actions) if len(actions) > 1 else ())

    def _expanded(self, name: str, arguments: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """The calls of the table that a call consists of."""
        return [(name, arguments)]

    def _scored(self, actions: Sequence[act.Action], made: Sequence[tuple[str, Mapping[str, Any]]]) -> act.Action:
        """The action that is scored: the first one."""
        return actions[0]

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        name, arguments = self.write_call(task, action)
        if not isinstance(action, act.Unsupported):
            name, arguments = self._written_call(name, arguments)
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        return (f"{thought}\n" if thought else "") + f"<tool_call>\n{call}\n</tool_call>"

    def _written_call(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A call of the table as the checkpoint's tool has it."""
        return name, arguments

    def write_place(self, task: StepTaskModel, point: act.Point) -> list[int]:
        return [round(side) for side in self.frame(task).quantise(point, task.screenshot_size)]


@lru_cache(maxsize=256)
def functions(described: str) -> tuple[dict[str, Any], ...]:
    """Functions that are offered, each described on a line in JSON: name, description and parameters."""
    return tuple(json.loads(line) for line in described.splitlines())


ADDED_CALLS: dict[str, act.Action | calls.Form] = {
    "open_app": calls.opened("name", "app_name", "package_name", "package"),
    "press_button": calls.pressed("button", BUTTON_NAMES),
    "long_press": calls.hold(*calls.XY, seconds="seconds"),
    "end_task": calls.stopped("status", STATUSES),
}
"""The table's rows for the functions offered next to a computer tool: to end the task as impossible, and what only phones
have."""

_CALL = re.compile(r"<tool_call>\n(.*)\n</tool_call>")
_TAGS = re.compile(r"<(safety_check|refusal)>(.*?)</\1>", re.DOTALL)


def split_calls(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """A response's words and calls (name, arguments) in order. Raises :class:`ParseError` for a call without a name."""
    made = []
    for written in _CALL.findall(text):
        try:
            call = json.loads(written)
        except (ValueError, RecursionError):
            call = None
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise ParseError(f"the response's call cannot be read: {written[:80]!r}")
        arguments = call.get("arguments")
        made.append((call["name"], arguments if isinstance(arguments, dict) else {}))
    return _CALL.sub("", text).strip(), made


def _without_call(words: str, looked: bool, *, grounding: bool) -> act.Stop:
    if looked:
        raise ParseError("the response only looks at the screen, and never acts")
    if grounding or END_TURN not in words:
        raise ParseError(f"the response makes no call: {words[:80]!r}" if words else "the response is empty")
    return act.Stop(status="impossible" if "<refusal>" in words else "finish")


def keys_pressed(names: Sequence[str], call: calls.Arguments) -> act.Action:
    """Keys pressed together; Enter alone is the button of Table 9."""
    keys = [name.strip().lower() for name in names]
    if keys in (["enter"], ["return"]):
        return calls.ENTER
    if not keys or not all(keys):
        raise ParseError(f"{call.name} names no key")
    return call.unsupported(act.Hotkey(keys=tuple(_KEYS.get(key, key) for key in keys)))


_KEYS = {
    "return": "enter",
    "control": "ctrl",
    **dict.fromkeys(("cmd", "super", "meta"), "win"),
    "option": "alt",
    "escape": "esc",
    **{f"page_{side}": f"page{side}" for side in ("up", "down")},
    **{f"arrow{side}": side for side in ("up", "down", "left", "right")},
}
"""Names of keys in the APIs, as pyautogui calls them."""


def drag(call: calls.Arguments, start: object, end: object) -> act.Action:
    """A drag: on a screen taller than wide a swipe of the finger, elsewhere the mouse's."""
    if call.size[1] > call.size[0]:
        return call.swipe(start, end)
    places = call._replace(values={"start": start, "end": end})
    return call.unsupported(act.Drag(start=places.point("start"), end=places.point("end")))


def scroll_by(
    call: calls.Arguments, direction: act.Direction, amount: object, *, whole: float = 1000.0, keys: Sequence[str] = calls.XY
) -> act.Action:
    """A scroll in a content direction by ``amount``, of which the screen has ``whole``; what is no amount is none."""
    point = call.point(*keys) if call.found(*keys) is not None else calls.MIDDLE
    number = amount if isinstance(amount, int | float) and not isinstance(amount, bool) else 0
    distance = 1000.0 * number / whole if 0 < number < _FURTHEST else None
    return act.Scroll(point=point, direction=act.OPPOSITE[direction], distance=distance)
