"""MiMo-VL: a JSON list of actions in pixels of the resized screenshot; the past as records in original pixels.

Source: XiaomiMiMo/lmms-eval, branch ``mimo_vl_eval``: ``lmms_eval/tasks/_task_utils/gui_utils.py`` (prompts, past, reading),
``models/mimo_agent.py`` (layout, thinking switch), ``tasks/screenspot/utils_rec.py`` and ``models/mivllm.py`` (grounding),
``mimovl_docs/eval_mimo_vl.sh`` (image limit). That runner reads actions that the published prompt does not list: ``longpress``,
``open`` and ``scroll`` (it reverses up and down only; here one option sets what all four words mean), and ``appswitch``,
``hover`` and ``select`` (only their names are known).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Click, Press, Stop, Wait
from guieval.errors import ParseError
from guieval.frames import PIXELS, Frame, Size
from guieval.history import HistoryEntry, describe
from guieval.models import (
    HELPFUL,
    PATCH,
    ABCModel,
    Family,
    ImageLimits,
    ModelInput,
    ParsedResponse,
    begun,
    chat,
    step_instruction,
)
from guieval.models.parsing import ScrollWords, closed_thought, first_round, json_value, named_object
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from ._qwen_tools import named_place

NO_THINK = " /no_think"
EMPTY_THOUGHT = "<think>\n</think>\n"


_FAILED = frozenset({"fail", "failed", "failure", "unsuccessful", "impossible", "infeasible"})


def _press(call: calls.Arguments) -> Action:
    keys = call.deciding("keys")
    keys = [keys] if isinstance(keys, str) else keys
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key.strip() for key in keys):
        raise ParseError(f"press has {keys!r:.80} as 'keys'")
    button = calls.BUTTON_NAMES.get(keys[0].strip().lower()) if len(keys) == 1 else None
    return Press(button=button) if button else call._replace(values={"keys": keys}).unsupported(call.keys("keys"))


def _finished(call: calls.Arguments) -> Action:
    # any end counts as one in the authors' scorer; only an explicit word for it is a failure
    status = call.values.get("status")
    return calls.IMPOSSIBLE if isinstance(status, str) and status.strip().lower() in _FAILED else calls.FINISH


CALLS = calls.CallTable(
    {
        "click": calls.tap("start_point"),
        "longpress": calls.hold("start_point"),
        "drag": calls.swiped("start_point", "end_point"),
        "scroll": calls.scrolled("direction", "start_point"),
        "input": calls.typed("text"),
        "open": calls.opened("app_name", "app"),
        "appswitch": calls.RECENT,
        "press": calls.Form(Press, _press, lambda action, _: {"keys": [action.button.lower()]}),
        "wait": Wait(),
        # the prompt leaves the words open; these are GUIEvalKit's
        "finished": calls.Form(
            Stop, _finished, lambda action, _: {"status": "success" if action.status == "finish" else "failed"}
        ),
        "hover": calls.hovered("start_point"),
        "select": calls.OUTSIDE,
    }
)


class MiMoVLOptions(ImageLimits):
    """Options of MiMo-VL; the limit defaults to the authors' 4,096 tokens."""

    no_think: Literal["suffix", "prefill"] = Field(
        "suffix", description="how thinking is turned off: ' /no_think' after the prompt (2508), or an empty thought begun"
    )
    scroll_words: ScrollWords = Field(
        "finger", description="what scroll(direction), which the prompt does not offer, names: where the finger or view goes"
    )


class MiMoVL(ABCModel):
    """Adapter of MiMo-VL. Options: :class:`MiMoVLOptions`."""

    options: MiMoVLOptions
    table = CALLS
    pixels = 4 * PATCH**2, 4096 * PATCH**2
    action_space = ActionSpace(types=frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "WAIT", "STOP"}))
    thinking_switch = True
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=1)
    source = frame_source = "github.com/XiaomiMiMo/lmms-eval (mimo_vl_eval) lmms_eval/tasks/_task_utils/gui_utils.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        silent = self.thinking is False
        # a part of its own, as the authors send it
        last = (NO_THINK,) if silent and self.options.no_think == "suffix" else ()
        image = self.image(task)
        if task.setting == "grounding":
            question = self.prompt("mimo_vl-grounding", instruction=task.instruction)
            # the authors' runner for navigation sends no system prompt
            prepared = chat(image, question, *last, system=HELPFUL)
        else:
            # counted from 0 and not separated, as the authors' runner writes them
            past = "".join(f"Step {index}: {_past_step(entry)}." for index, entry in enumerate(history))
            values = {"instruction": task.instruction, "history": past or "None"}
            if task.setting == "low":
                values["step_instruction"] = step_instruction(task)
            prepared = chat(image, self.prompt(f"mimo_vl-agent-{task.setting}", **values), *last)
        return begun(prepared, EMPTY_THOUGHT) if silent and self.options.no_think == "prefill" else prepared

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"<think>\n{thought.strip()}\n</think>\n"

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, body = _parts(text, grounding=task.setting == "grounding")
        value = json_value(body, ends=body.rfind("```"))
        if task.setting == "grounding":
            place = value if isinstance(value, list) and value and not isinstance(value[0], dict) else named_place(value)
            if place is not None:
                return ParsedResponse(self.read_click(task, place), thought)
        name, arguments = named_object(value, "action")
        return ParsedResponse(self.read_call(task, name.strip().lower(), arguments), thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        frame, size = self.frame(task), task.screenshot_size
        if task.setting == "grounding" and isinstance(action, Click):
            x, y = frame.quantise(action.point, size)
            answer: dict[str, Any] = {"bbox_2d": [x, y, x, y], "label": task.instruction}
        else:
            record = _record(action, frame, size)
            answer = {"action": record.pop("action_name"), **record}
        before = f"<think>\n{thought}\n</think>\n\n" if thought and self.thinking is not False else ""
        return f"{before}```json\n{json.dumps([answer], ensure_ascii=False)}\n```"


def _past_step(entry: HistoryEntry) -> str:
    """A step's record, which has another key and frame than an answer, after its instruction or conclusion if it has one."""
    record = json.dumps(_record(entry.action, PIXELS, entry.task.screenshot_size), ensure_ascii=False)
    explained = entry.conclusion and entry.conclusion != describe(entry.action)
    return f"{entry.conclusion} {record}" if explained else record


def _record(action: Action, frame: Frame, size: Size) -> dict[str, Any]:
    """Any action in the family's names, also one that the prompt does not offer, which the past may hold."""
    name, arguments = CALLS.write(action, lambda point: list(frame.quantise(point, size)))
    return {"action_name": name, **arguments}


_FENCE = re.compile(r"```(?:json)?[ \t]*\n?", re.IGNORECASE)
_OBJECT = re.compile(r"(?:\[\s{0,9})?\{\s{0,9}[\"']action[\"']\s{0,9}:")
_PLACE = re.compile(r"(?:\[\s{0,9})?\{\s{0,9}[\"'](?:bbox_2d|point_2d|action)[\"']\s{0,9}:|\[\s{0,9}\d")


def _parts(text: str, *, grounding: bool) -> tuple[str | None, str]:
    """A response's thought, and its text from the answer on.

    As in the authors' reader, that is a fenced block, else the first object that begins with ``action``. That reader looks for
    them in the thought as well; here what is tried out in a thought is not an answer, so a thought that is never closed leaves
    none. Tolerated: no closing fence, a fence that names no language.
    """
    text = first_round(text)
    fence = "```json" if "```json" in text else ""
    thought, rest = closed_thought(text, fence)
    if thought is not None and not rest.strip():
        raise ParseError("the response ends in its thought")
    fenced = _FENCE.search(rest)
    opening = fenced or (_PLACE if grounding else _OBJECT).search(rest)
    if opening is None:
        raise ParseError(f"the response has no action: {rest.strip()[:80]!r}")
    return thought or None, rest[opening.end() if fenced else opening.start() :]
