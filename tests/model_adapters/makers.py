"""What makers' own readers read in responses, beside what our adapters read, and the name of each difference.

The tables in ``makers_results/`` are made by ``perf/makers.py``, which damages responses of our writing and gives them to the
makers' code: a response, how it was damaged, and the result as their reader gives it. A result is translated into a call here,
and read by the adapter's table of calls: only the notation is theirs, the meaning of a call is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from guieval import actions as act
from guieval.errors import ParseError
from guieval.frames import PER_1000, RELATIVE, Frame
from guieval.models import ABCModel
from guieval.models.parsing import function_text
from guieval.models.parsing.call_tables import CallTable, ScrollWords
from guieval.models.parsing.capital_calls import CALLS as CAPITAL
from guieval.steps import Setting, StepTaskModel
from tests.json_values import read_json

from .damages import DAMAGES, THOROUGH
from .steps import adapter, step

FOLDER = Path(__file__).parent / "makers_results"
DRAWS = 3
"""Responses drawn for each damage of a family."""

Native: TypeAlias = tuple[str, dict[str, Any]]
"""A call's name and arguments, in the words of a family."""


def _tool(result: Any) -> Native | None:
    """``{"name": .., "arguments": {"action": ..}}``, or the arguments alone, or a list of calls of which the first counts."""
    first = result[0] if isinstance(result, list) and result else result
    if not isinstance(first, dict):
        return None
    arguments = first.get("arguments", first)
    if not isinstance(arguments, dict) or not isinstance(arguments.get("action"), str):
        return None
    return _named(arguments, "action")


def _tars(result: Any) -> Native | None:
    return (result[0]["action_type"], result[0]["action_inputs"]) if result[0]["action_type"] else None


def _cpm(result: Any) -> act.Action | None:
    actions, parameters, status = result
    if actions is None:
        return None
    read = import_module("guieval.model_adapters.agentcpm_gui").action_of
    action: act.Action = read({**actions, **parameters, "STATUS": status}, step().screenshot_size)
    return action


def _do(result: Any) -> Native | act.Action:
    if result["_metadata"] == "finish":
        return act.Stop()
    return _named({"action": "", **result}, "action", "_metadata")


def _named(result: dict[str, Any], name: str, *others: str) -> Native:
    """A record one of whose fields is the call's name; ``others``: those that are no arguments."""
    return result[name], {key: value for key, value in result.items() if key not in (name, *others)}


_VENUS = {"CLK": "Click", "INPUT": "Type", "SWIPE": "Drag", "BACK": "PressBack", "WAIT": "Wait", "SUCCESS": "Finished"}


def _venus(result: Any) -> Native | None:
    """The agent's action on a screen of 1000 x 1000 px, which is then in thousandths."""
    kind, places = result["action_type"], result["action_pos"]
    match kind:
        case "CLK" | "LongPress":
            return (_VENUS.get(kind, kind), {"box": places[0]}) if places else None
        case "SWIPE":
            return "Drag", {"start": places[0], "end": places[1]}
        case "INPUT":
            return "Type", {"content": result["input"]}
        case "REOPEN":
            return "Launch", {"app": result["app_name"]}
        case "PressMenu":
            return "PressRecent", {}
        case "CallUser" if result["input"].startswith(("无法解析", "解析失败")):
            return None
        case "CallUser":
            return kind, {"content": result["input"]}
        case None:
            return None
    return _VENUS.get(kind, kind), {}


def _typed(result: Any) -> Native | None:
    """A record of AndroidWorld's kind."""
    return _named(result, "action_type") if isinstance(result, dict) and "action_type" in result else None


def _atlas(result: Any) -> Native | None:
    """The call as their scorer compares it: its first word, the first two numbers of a place, and else the words after it."""
    name, *rest = result.split(None, 1) or [""]
    if not rest:
        return (name, {}) if name in CAPITAL else None
    if name in ("CLICK", "LONG_PRESS"):
        numbers = re.findall(r"\d+", result)[:2]
        return (name, {"place": ",".join(numbers)}) if len(numbers) == 2 else None
    if name in ("TYPE", "OPEN_APP", "SCROLL") and rest[0].startswith("[") and rest[0].endswith("]"):
        return name, {"direction" if name == "SCROLL" else "text": rest[0][1:-1]}
    return None


def _magic(result: Any) -> Native | None:
    """Their result in AgentCPM-GUI's keys; a scroll has no place in it."""
    match result:
        case {"to": word}:
            return "scroll", {"place": [500, 500], "direction": word}
        case {"POINT": place, "duration": _}:
            return "long_press", {"place": place}
        case {"POINT": place}:
            return "tap", {"place": place}
        case {"TYPE": text}:
            return "text", {"text": text}
        case {"PRESS": "BACK" | "HOME" as button}:
            return f"navigate_{button.lower()}", {}
        case {"duration": _}:
            return "wait", {}
        case {"STATUS": "finish"}:
            return "finish", {}
    return None


def _ui_r1(result: Any) -> Native | None:
    name, place = result
    return (name, {"coordinate": place if len(place) == 2 else None}) if name else None


def _gui_r1(result: Any) -> Native | None:
    name, text, place = result
    written = {} if text == "no input text" else {"input_text": text}
    return (name, {**written, **({"point": place} if len(place) == 2 else {})}) if name else None


def _step_gui(result: Any) -> Native | None:
    return _named(result, "action", "cot") if result.get("action") else None


def _code(result: Any) -> Native | act.Action | None:
    """The first of the pyautogui calls of EvoCUA's agent, on a screen of 999 x 999 px."""
    if not result:
        return None
    first = result[0]
    if first in ("DONE", "FAIL"):
        return act.Stop(status="finish" if first == "DONE" else "impossible")
    if first == "WAIT":
        return act.Wait()
    pressed = re.findall(r"pyautogui\.press\((['\"])(.*?)\1\)", first)
    if not first or first.endswith("\n"):
        return act.Type(text="".join("\n" if key == "enter" else key.replace("\\\\", "\\") for _, key in pressed))
    called = re.fullmatch(r"pyautogui\.(\w+)\((.*)\)", first)
    assert called is not None, first
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", called[2])]
    names = {"click": "left_click", "rightClick": "right_click", "doubleClick": "double_click", "moveTo": "mouse_move"}
    match called[1]:
        case "press" | "hotkey":
            return "key", {"keys": re.findall(r"'([^']*)'", called[2])}
        case "scroll":
            return "scroll", {"pixels": numbers[0]}
        case "dragTo":
            return "left_click_drag", {"coordinate": numbers[:2]}
    return names.get(called[1], called[1]), {"coordinate": numbers[:2]} if len(numbers) >= 2 else {}


def _opencua(result: Any) -> Native | None:
    if not result:
        return None
    name, value = result[0]
    only = {"write": "message", "press": "keys", "hotkey": "keys", "scroll": "clicks", "terminate": "status"}
    return name, {only[name]: value} if name in only else dict(zip("xy", value, strict=True))


def _aguvis(result: Any) -> Native | None:
    name, arguments = _opencua(result) or (None, {})
    return None if name is None else (name, {key: value if key in "xy" else str(value) for key, value in arguments.items()})


def _mimo(result: Any) -> Native:
    """Their record, in which a drag has become a scroll, and up and down are turned round."""
    name, fields = _named(result, "action_name", "think")
    turned = {"up": "down", "down": "up"}.get(fields.get("direction", ""))
    return "drag" if "end_point" in fields else name, {**fields, **({"direction": turned} if turned else {})}


def _scalecua(result: Any) -> Native | None:
    """AndroidWorld's action, in which a swipe is a scroll of the other direction, and has no place."""
    first = next(filter(None, result or ()), None)
    if first is None:
        return None
    name, fields = _named(first, "action_type")
    match name:
        case "input_text":
            return "write", {"message": fields["text"]}
        case "scroll":
            return "swipe", {"direction": act.OPPOSITE.get(fields["direction"], "")}
        case "status":
            return "terminate", {"status": {"complete": "success"}.get(fields["goal_status"], "failure")}
        case "answer":
            return "response", {"answer": fields["text"]}
    return name, fields


def _clicked(result: Any) -> Native | None:
    """A place alone or in fields; SE-GUI's reader gives the corner of the screen where there is none."""
    place = [result[key] for key in "xy"] if isinstance(result, dict) and "x" in result else result
    place = place["coordinate"] if isinstance(place, dict) else place
    return ("click", {"coordinate": place}) if place and place != [0, 0] else None


def _grounded(result: Any) -> Native | act.Action | None:
    """UI-Venus-1.5's place, or its refusal of the query."""
    if result == [-1, -1]:
        return act.Stop(status="impossible")
    return ("Click", {"box": result}) if result else None


def _grounded_2(result: Any) -> Native | act.Action | None:
    """UI-Venus-2's place with the name of its form, or its refusal."""
    if result[1] == "infeasible":
        return act.Stop(status="impossible")
    return ("Click", {"point": result[0]}) if result[0] else None


def _seeclick(result: Any) -> Native | act.Action | None:
    """AITW's record, in which a scroll is a path; places have y first."""
    (y, x), (end_y, end_x) = result["touch_point"], result["lift_point"]
    match result["action_type"]:
        case 4 if [y, x] == [end_y, end_x]:
            return "click", {"coordinate": [x, y]}
        case 4:
            direction = act.path_direction((x, y), (end_x, end_y))
            return None if direction is None else act.Scroll(point=act.Point(500, 500), direction=direction)
        case 3:
            return act.Type(text=result["typed_text"])
    ends: dict[int, act.Action] = {5: act.Press(button="BACK"), 6: act.Press(button="HOME"), 7: act.Press(button="ENTER")}
    return (ends | {10: act.Stop(), 11: act.Stop(status="impossible")}).get(result["action_type"])


def _guicourse(result: Any) -> Native:
    first = result[0]
    match first["name"]:
        case "tap":
            return "tap", {"place": first["point"]}
        case "click" | "hover":
            return first["name"], {"place": first["element"]}
        case "swipe":
            return "swipe", first["dual_point"]
        case "scroll":
            return "scroll", {key: float(value) for key, value in first["scroll"].items()}
    return _named(first, "name")


def _cogagent(result: Any) -> Native | None:
    """Their fields, in which a text keeps its quotes, as their own code takes them off an app's name."""
    name, fields = _named(result, "operation")
    unquoted = {key: value[1:-1] if isinstance(value, str) else value for key, value in fields.items()}
    return None if name == "NO_ACTION" else (name, unquoted)


def _seed(result: Any) -> Native | None:
    return (result[0]["function"], result[0]["parameters"]) if result else None


@dataclass(frozen=True)
class Family:
    """An adapter whose makers publish a reader; ``frame``: what their result's places are in, the adapter's own by default."""

    adapter: str
    translate: Callable[[Any], Native | act.Action | None]
    calls: str | CallTable = "CALLS"
    frame: Frame | None = None
    options: dict[str, Any] = field(default_factory=dict)
    setting: Setting = "high"
    forms: tuple[str, ...] = ()
    """Published forms that the adapter reads and does not write."""
    rendered: bool = True
    """Whether the form that the adapter writes is one that their reader is for."""
    tokens: str = ""
    """A pattern of special tokens that servers take out of a response before their reader gets it."""

    scroll_words: ScrollWords = "finger"
    """What a scroll's word names by the adapter's default."""

    part: str = ""
    """Which part of the family, where it has several readers."""

    @property
    def title(self) -> str:
        return f"{self.adapter}-{self.part}" if self.part else self.adapter

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.title}.jsonl"

    @cached_property
    def model(self) -> ABCModel:
        return adapter(self.adapter, **self.options)

    @cached_property
    def table(self) -> CallTable:
        if isinstance(self.calls, CallTable):
            return self.calls
        module, _, name = self.calls.rpartition(".")
        table: CallTable = getattr(import_module(f"guieval.model_adapters.{module or self.adapter}"), name)
        return table

    @cached_property
    def task(self) -> StepTaskModel:
        return step(setting=self.setting)


_BOX = r"<\|box_(?:start|end)\|>"
_TARS_FORMS = (
    "Thought: I see it.\nAction: click(point='<point>500 750</point>')",
    "Thought: I see it.\nAction: scroll(point='<point>500 500</point>', direction='down')",
    "Thought: I see it.\nAction: drag(start_point='<point>500 700</point>', end_point='<point>500 300</point>')",
    "Thought: I see it.\nAction: type(content='it\\'s here')",
    "Reflection: It failed.\nAction_Summary: I tap it.\nAction: click(start_box='(500,750)')",
    *("Thought: I see it.\nAction: click(start_box='[500,750,500,750]')", "Action: wait()"),
)


def _xml(tool: str, **values: str) -> str:
    return f"<tool_call>\n{function_text(tool, values)}\n</tool_call>"


_QWEN35_FORMS = (
    _xml("mobile_use", action="click", coordinate="[500, 750]"),
    "I tap it.\n" + _xml("mobile_use", action="swipe", coordinate="[500, 700]", coordinate2="[500, 300]"),
    "I think.\n</think>\n\n" + _xml("mobile_use", action="type", text="hello\nworld"),
    *(_xml("mobile_use", action="system_button", button="Back"), _xml("mobile_use", action="terminate", status="success")),
    _xml("mobile_use", action="long_press", coordinate="[500, 750]", time="2"),
)
_GROUNDING = '<tool_call>\n{"name": "grounding", "arguments": {"action": "click", "coordinate": [540,1800]}}\n</tool_call>'
_COMPUTER_FORMS = (
    _xml("computer", action="left_click", coordinate="[500, 750]"),
    _xml("computer", type="left_click", coordinate="[500, 750]"),
    _xml("computer", action="type", text="hello\nworld"),
    _xml("computer", action="key", keys='["ctrl", "c"]'),
)
_AUTOGLM_FORMS = (
    'I tap it.\ndo(action="Tap", element=[500,750])',
    'I type.</think>\n<answer>do(action="Type", text="it\'s "quoted"")',
    '<think>I see it.</think>\n<answer>do(action="Tap", element=[500,750])</answer>',
    'do(action="Swipe", start=[500,700], end=[500,300])',
    '<think>Done.</think>\n<answer>finish(message="All "done".")',
    'do(action="Tap", element=[500,750], message="pay")',
)
_AGUVIS_FORMS = (
    "Thought: I see it.\nAction: Tap it.\npyautogui.click(x=0.5, y=0.75)",
    "pyautogui.click(x=0.5, y=0.75)",
    "Thought: I see it.\nAction: Type it.\npyautogui.write(message='hello world')",
    "pyautogui.write(message='it\\'s 5')",
    "Action: Press it.\npyautogui.press(keys=['enter'])",
    "pyautogui.hotkey(keys=['ctrl', 'c'])",
    "pyautogui.moveTo(x=0.5, y=0.75)",
)
_COGAGENT_FORMS = (
    "Action: Tap it.\nGrounded Operation: CLICK(box=[[480,730,520,770]], element_type='Icon', element_info='Wi-Fi')",
    "Status: I see it.\nPlan: 1. Go on.\nAction: Tap it.\nGrounded Operation: CLICK(box=[[480,730,520,770]])\n"
    "<<General Operation>>",
    "Grounded Operation: TYPE(box=[[480,730,520,770]], text='hello world', element_info='Search')",
    "Grounded Operation: LAUNCH(app='Google Maps', url='None')",
    "Grounded Operation: SCROLL_DOWN(box=[[500,500,500,500]], step_count=5)",
)
_MAGIC_FORMS = ("tap(500,750)", "long_press(500,750)", "text(500,750,hello)", "scroll(500,500,up)", "navigate_back()", "wait()")
_VENUS_FORMS = ("[-1,-1]", "[500,750]")
_VENUS_2_FORMS = (
    "I see it.\n</think>\n<action>DoubleClick(point=(500, 750))</action>",
    "<think>I see it.</think>\n<action>Drag(start=(500, 700), end=(500, 300))</action>",
    "<think>I save it.</think>\n<action>Sequence(actions=[Click(box=(500, 750)), Hotkey(keys=['ctrl', 's'])])</action>",
    "<action>Hotkey(keys=['ctrl', 'z'], repeat=3)</action>",
)
_POINT_FORMS = (
    '[{"point_2d": [540, 1800]}, {"point_2d": [10, 20]}]',
    '<think>\nI see it.\n</think>\n\n```json\n[\n\t{"point_2d": [540, 1800], "label": "Wi-Fi"}\n]\n```',
)
_LEFT_CLICK = '<tool_call>\n{"name":"computer_use","arguments":{"action":"left_click","coordinate":[540,1800]}}\n</tool_call>'
FAMILIES = (
    Family("ui_tars", _tars, "_ui_tars.CALLS", RELATIVE, forms=_TARS_FORMS, tokens=_BOX, scroll_words="content"),
    Family("ui_tars_1_5", _tars, "_ui_tars.CALLS", RELATIVE, forms=_TARS_FORMS[:5], tokens=_BOX, scroll_words="content"),
    Family("ui_tars_1_5", _tars, "_ui_tars.CALLS", RELATIVE, forms=_TARS_FORMS[:5], scroll_words="content", part="desktop"),
    Family("qwen2_5_vl", _tool, "_qwen_tools.CALLS"),
    Family("qwen3_vl", _tool, "_qwen_tools.CALLS"),
    Family("qwen3_5", _tool, "_qwen_tools.CALLS", forms=_QWEN35_FORMS, rendered=False),
    Family("qwen3_5", _tool, options={"prompt": "computer"}, forms=_COMPUTER_FORMS, part="computer"),
    Family("ui_s1", _tool, "_qwen_tools.CALLS"),
    Family("agentcpm_gui", _cpm),
    # the token is their server's stop text, which is missing in the response that README.md shows
    Family("autoglm_phone", _do, forms=_AUTOGLM_FORMS, tokens="</answer>"),
    Family("gui_owl", _tool, "_qwen_tools.CALLS"),
    Family("gui_owl_1_5", _tool, "_qwen_tools.CALLS"),
    Family("ui_venus_navi", tuple),
    Family("ui_venus_1_5", _venus, "ui_venus_navi.CALLS", PER_1000),
    Family("glm_4_1v", _typed, "_glm.CALLS"),
    Family("glm_4_5v", _typed, "_glm.CALLS"),
    Family("os_atlas", _atlas, CAPITAL, scroll_words="content"),
    Family("mai_ui", _tool, "mai_ui.CALLS", RELATIVE),
    Family("mai_ui", _clicked, "mai_ui.CALLS", RELATIVE, {"grounding_scale": 999}, "grounding", part="grounding"),
    Family("magicgui", _magic, forms=_MAGIC_FORMS),
    Family("ui_r1", _ui_r1),
    Family("gui_r1", _gui_r1, scroll_words="content"),
    Family("step_gui", _step_gui),
    Family("infigui_r1", _tool, "_qwen_tools.CALLS"),
    Family("os_genesis", _typed, scroll_words="content"),
    Family("fara", _tool),
    Family("fara1_5", _tool),
    Family("evocua", _code),
    Family("opencua", _opencua, "_pyautogui.CALLS"),
    Family("aguvis", _aguvis, forms=_AGUVIS_FORMS, rendered=False),  # theirs is for desktops, and knows no call of a phone
    Family("scalecua", _scalecua, "scalecua.PHONE"),
    Family("mimo_vl", _mimo),
    Family("minicpm_gui", _guicourse),
    Family("seeclick", _seeclick, "_qwen_tools.CALLS", RELATIVE),
    Family("seeclick", _clicked, "_qwen_tools.CALLS", RELATIVE, setting="grounding", part="grounding"),
    Family("gta1", _clicked, "_qwen_tools.CALLS", setting="grounding", part="grounding"),
    Family("ui_venus_1_5", _grounded, "ui_venus_navi.CALLS", RELATIVE, {}, "grounding", _VENUS_FORMS, part="grounding"),
    Family("ui_tars_2", _seed, scroll_words="content"),
    Family("ui_venus_2", tuple, "_venus_calls.PHONE", forms=_VENUS_2_FORMS),
    Family(
        "ui_venus_2", tuple, "_venus_calls.COMPUTER", options={"prompt": "computer"}, forms=_VENUS_2_FORMS[1:], part="computer"
    ),
    Family("ui_venus_2", _grounded_2, "_venus_calls.PHONE", setting="grounding", forms=_VENUS_FORMS, part="grounding"),
    Family("cogagent", _cogagent, forms=_COGAGENT_FORMS),
    Family("gui_plus", _tool, "_qwen_tools.CALLS"),
    Family("showui", _clicked, "_qwen_tools.CALLS", RELATIVE, setting="grounding", forms=("[0.73, 0.21]",), part="grounding"),
    *(
        Family(name, _clicked, "_qwen_tools.CALLS", setting="grounding", forms=forms)
        for name, forms in (
            ("holo2", ('{"x":500,"y":750}', '{"x": 500, "y": 750}\n')),
            ("holo1_5", ('{"x": 540, "y": 1800}', '{"action":"click_absolute","x":540,"y":1800}\n')),
            ("infigui_g1", _POINT_FORMS),
            ("gui_g2", ("[500,1760,580,1840]", "[500, 1760, 580, 1840]")),
            ("ui_ins", (_GROUNDING, f"<think>\nI see it.\n</think>\n{_GROUNDING}")),
            *(("se_gui", (_LEFT_CLICK,)), ("groundnext", (_LEFT_CLICK,))),
            ("uground", ("(500,750)", "500, 750")),
            ("qwen2_vl", ("<|object_ref_start|>it<|object_ref_end|><|box_start|>(480,730),(520,770)<|box_end|>",)),
        )
    ),
)


# --- drawing responses ------------------------------------------------------------------------------------------------

ACTIONS: tuple[act.Action, ...] = (
    *(act.Click(point=act.Point(500.0, 750.0)), act.LongPress(point=act.Point(500.0, 750.0))),
    *(act.Scroll(point=act.Point(500.0, 500.0), direction="up"), act.Type(text="hello world"), act.Type(text='it\'s 5, "no"')),
    *(
        act.Open(app="Google Maps"),
        act.Press(button="BACK"),
        act.Press(button="ENTER"),
        act.Wait(),
        act.Stop(),
        act.Stop(status="impossible"),
    ),
)


def published(family: Family) -> list[str]:
    """The responses that are damaged: what the adapter writes for each kind of action, and the hand-written forms."""
    model, task = family.model, family.task
    actions = [action for action in ACTIONS if action in model.action_space]
    if family.setting == "grounding":
        actions = actions[:1]
    rendered = actions if family.rendered else []
    written = (model.render(task, action, "I see it.", "Tap it.") for action in rendered)
    return [*(re.sub(family.tokens, "", text) if family.tokens else text for text in written), *family.forms]


def drawn(family: Family) -> Iterator[tuple[str, str]]:
    """The family's responses, each with the name of its damage."""
    dice, texts, seen = Random(f"{family.title} 1"), published(family), set[str]()
    for damage, change in DAMAGES.items():
        for text in texts if damage in THOROUGH else dice.sample(texts, min(DRAWS, len(texts))):
            damaged = change(dice, text)
            if damaged is not None and damaged not in seen:
                seen.add(damaged)
                yield damage, damaged


# --- comparing --------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A response, how it was damaged, and what their reader made of it: its result, or the class of the exception it raised."""

    damage: str
    text: str
    result: Any
    raised: str | None = None


class Header(NamedTuple):
    """Whose reader it is."""

    repository: str
    commit: str
    path: str
    reader: str


def table_of(family: Family) -> tuple[Header, list[Row]]:
    """A family's committed table."""
    first, *lines = family.file.read_text(encoding="utf-8").splitlines()
    return Header(**read_json(first)), [Row(*read_json(line)) for line in lines]


def theirs(family: Family, row: Row) -> act.Action | None:
    """The action that their reader's result means; ``None`` where there is none, or its arguments cannot be used."""
    if row.raised is not None:
        return None
    native = family.translate(row.result)
    if native is None or not isinstance(native, tuple):
        return native
    name, arguments = native
    task, table = family.task, family.table
    frame = family.frame or family.model.frame(task)
    try:
        return table.read(name, arguments, frame, task.screenshot_size, family.scroll_words)
    except ParseError:
        return None


def ours(family: Family, row: Row) -> act.Action | None:
    """What the adapter reads."""
    try:
        return family.model.parse_response(family.task, row.text).action
    except ParseError:
        return None


def kind(family: Family, row: Row) -> str:
    """How what we read differs from what they read: ``same``, ``neither``, or words; with the damage where one reads alone."""
    own, other = ours(family, row), theirs(family, row)
    if own is None or other is None:
        return "neither" if own is other else f"{row.damage}: {OURS if other is None else THEIRS}"
    if _equal(_told(own), _told(other)):
        return "same"
    if act.type_of(own) != act.type_of(other):
        return f"{act.type_of(own)} here, {act.type_of(other)} there"
    if isinstance(own, act.Unsupported) or isinstance(other, act.Unsupported):
        return f"{act.type_of(own)} without its argument {'here' if isinstance(own, act.Unsupported) else 'there'}"
    return f"another {own.type}"


OURS, THEIRS = "read here alone", "read there alone"


def _told(action: act.Action) -> dict[str, Any]:
    """What distinguishes an action, without how a call was written."""
    return action.model_dump(exclude={"arguments", "problem", "name", "distance"})


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < 2  # some of theirs cut coordinates to whole numbers
    return bool(one == other)


# --- names for what differs -------------------------------------------------------------------------------------------

LENIENCIES: dict[str, str] = {
    "as published": "a box of four numbers, a call whose answer tag is closed, and MagicGUI's `call_api`",
    "quote dropped": "one of the quotes around a place, a key or a text is missing, and its other end is plain",
    "curly quotes": "curly quotes around a text",
    "other quotes": "single quotes for double ones or the reverse: a Python literal for JSON",
    "thought unclosed": "the thought has no end tag, and the answer's own tag or label ends it",
    "thought unopened": "the thought has no start tag, as chat templates that begin it leave it",
    "thought missing": "there is no thought, as where thinking is turned off",
    "tag unclosed": "an end tag is missing, and what it would end is complete",
    "tag missing": "a start tag is missing, and the call begins a line",
    "tags missing": "a server has taken all tags out as special tokens, and the call begins a line",
    "tag doubled": "a tag is written twice",
    "key renamed": "`parameters` for `arguments`, `function` for `name`, `point`, `box` and `coordinate` for each other",
    "wide punctuation": "full-width commas, colons and brackets outside of texts, as Chinese prompts invite them",
    "numbers as text": "a number in quotes",
    "decimals": "a coordinate with decimals",
    "negative": "an action with a place of negative numbers counts by its type; a box by its middle",
    "off the screen": "an action with a place beyond the screen's edge counts by its type",
    "box for a point": "a box of four numbers, whose middle counts",
    "words after": "words follow the call",
    "words before": "words come between thought and call, and the call begins a line",
    "fence": "a code fence around the call, or around the whole response",
    "second call": "of several calls the first counts, as one action is scored a step",
    "bracket missing": "a bracket is missing where the call is known to end",
    "bracket surplus": "there is one bracket too many at the end",
    "cut off": "the response ends after its call, in the conclusion or an end tag",
    "blanks": "blanks are missing or surplus",
    "line feeds": "new lines are missing",
    "comma at the end": "a comma stands before the last bracket",
    "other case": "a name in upper or lower case",
    "end mark": "the end of the turn is left in the text",
    "bold label": "a label is in bold type",
    "argument missing": "an action without its text, direction or app counts by its type; `terminate` alone is a finish",
}
"""Per damage, what is read here and not by every maker's reader."""

_CUT = "theirs closes a call that ends anywhere, and leaves its arguments out; here it is cut off"
_RAW = "theirs takes out no escapes, and lets a text end at an inner quote or comma"
_ANYWHERE = "theirs looks for a word and two numbers by regular expressions, whatever notation they stand in"
_WHOLE = "theirs needs two whole numbers in square brackets, and goes on without a place where there are none"
_LATER = "theirs takes the later of two fields of one name"
_REST = "theirs takes what follows the call for a part of its text"
_LAST_TWO = "theirs takes all but the first character and the last two after `text=`, whatever they are"
_ANSWER = "theirs takes what it does not know for an answer to the user"
_LINE = "theirs takes a line at a time"
_CORNER = "theirs takes the first corner of a box"
_BARE = "theirs gives a call whose arguments it cannot read without them"
_UNENDED = "theirs takes numbers without the bracket that ends them; here the last of them may be cut off"
_FIRST = "theirs takes the first numbers of however many"
_LAST = "theirs takes the last two numbers of a call, and no sign"
_IN_THOUGHT = "theirs looks for an answer in the thought too, which here is none"
_EMPTY = "theirs takes a text that is missing or that it cannot read for an empty one"
_UNFINISHED = (
    "theirs reads an answer within a thought that is not closed; another script of theirs (inference/trans_infer_bench.py) "
    "takes such a response for unfinished, and so do we: what is tried out in a thought is no answer"
)


def _alone(reason: str, *damages: str) -> dict[str, str]:
    """Damages with which a response is read there alone."""
    return {f"{damage}: {THEIRS}": reason for damage in damages}


DIFFERENCES: dict[str, dict[str, str]] = {
    "ui_tars": {"another TYPE": _REST, **_alone(_CUT, "bracket missing")},
    "ui_tars_1_5": {"another TYPE": _REST, **_alone(_CUT, "cut off")},
    "ui_tars_1_5-desktop": {
        "another TYPE": _RAW,
        "LONG_PRESS without its argument there": "theirs cuts a place at its comma where the second quote is missing",
    },
    "autoglm_phone": {"another TYPE": _LAST_TWO, **_alone(_LAST_TWO, "quote dropped", "bracket surplus")},
    "ui_venus_navi": {
        "another TYPE": _RAW,
        "another OPEN": "theirs knows single quotes only, and keeps double ones in the name",
    },
    "ui_venus_1_5": {
        "another TYPE": _RAW,
        "TYPE without its argument here": _EMPTY,
        "another OPEN": "theirs keeps the second quote where the first is missing",
        **_alone("theirs takes curly quotes for text; here a text whose quotes differ is not read", "curly quotes"),
    },
    "glm_4_1v": _alone(_UNFINISHED, "thought unclosed"),
    "glm_4_5v": _alone(_UNFINISHED, "thought unclosed", "tag unclosed"),
    "os_atlas": {"another CLICK": "theirs takes the first two runs of digits, and with decimals the second is the first's"},
    "magicgui": {
        "another TYPE": "theirs takes what stands between the response's last comma and its end without one character",
        **_alone("theirs takes the last character for the bracket; here the text may be cut off", "bracket missing"),
        **_alone("theirs takes the place's second number for the text where there is none", "argument missing"),
        **_alone("theirs looks for `text(` anywhere; here a call in the middle of a sentence is talked about", "words before"),
    },
    "ui_r1": {"CLICK without its argument there": _WHOLE, **_alone(_ANYWHERE, "quote dropped", "wide punctuation")},
    "gui_r1": {
        **dict.fromkeys(("CLICK without its argument there", "LONG_PRESS without its argument there"), _WHOLE),
        "another TYPE": _RAW,
        **_alone(_ANYWHERE, "quote dropped", "bracket missing", "wide punctuation"),
    },
    "step_gui": {
        **dict.fromkeys(("another TYPE", "another WAIT", "SCROLL without its argument there"), _LATER),
        "another SCROLL": _CORNER,
    },
    "minicpm_gui": {
        **dict.fromkeys(("PRESS here, UNSUPPORTED there", "STOP here, UNSUPPORTED there"), _ANSWER),
        **_alone(_ANSWER, "bold label", "cut off", "end mark", "wide punctuation"),
        **dict.fromkeys(("UNSUPPORTED here, STOP there", "another TYPE"), _LINE),
        "another CLICK": "theirs takes what follows the last label",
        **_alone("theirs finds the label in the middle of a line", "words before"),
    },
    "seeclick": {"CLICK without its argument there": _CORNER},
    "seeclick-grounding": {
        "CLICK without its argument there": "theirs takes all numbers of a response for one place",
        **_alone(_UNENDED, "bracket missing"),
    },
    "gta1-grounding": {"CLICK without its argument there": "theirs takes two places for none"},
    "groundnext": _alone(
        "theirs takes the numbers of a call that is no JSON", "curly quotes", "quote dropped", "wide punctuation"
    ),
    "ui_venus_2": {"LONG_PRESS without its argument there": _BARE, **_alone(_BARE, "bracket missing", "quote dropped")},
    "ui_venus_2-computer": _alone("theirs takes tags in any case", "other case"),
    "ui_venus_2-grounding": _alone(_UNENDED, "bracket missing"),
    "ui_venus_1_5-grounding": _alone(_FIRST, "box for a point") | _alone(_UNENDED, "bracket missing", "cut off"),
    "aguvis": {"another TYPE": _RAW, **_alone(_ANYWHERE, "quote dropped"), **_alone(_CUT, "bracket missing")},
    "scalecua": {
        "another TYPE": _RAW,
        **dict.fromkeys(("TYPE without its argument here", "OPEN without its argument there"), _EMPTY),
        "another WAIT": "theirs leaves the time of a wait out",
        "SCROLL without its argument here": "theirs keeps a swipe's direction alone, so its places may be off the screen",
    },
    "mimo_vl": {"another CLICK": _CORNER, **_alone(_IN_THOUGHT, "thought unclosed")},
    "cogagent": {"another TYPE": _RAW, **_alone(_RAW, "quote dropped")},
    "infigui_g1": _alone(_IN_THOUGHT, "thought unclosed"),
    "gui_g2": _alone(_FIRST, "box for a point"),
    "ui_ins": _alone(_ANYWHERE, "quote dropped", "curly quotes"),
    "se_gui": {
        **dict.fromkeys(("another CLICK", "CLICK without its argument here"), _LAST),
        **_alone(_ANYWHERE, "quote dropped", "curly quotes", "wide punctuation"),
    },
    "qwen2_vl": {"another CLICK": "theirs takes the last box of several"},
    "evocua": {"TYPE without its argument here": _EMPTY},
    "ui_tars_2": {"another TYPE": "theirs takes a tag that is written twice for text"},
    "opencua": {"another TYPE": _RAW, **_alone(_ANYWHERE, "quote dropped", "wide punctuation", "line feeds", "other case")},
}
"""Per family, every kind of difference but those of :data:`LENIENCIES`, and why it stays."""

NO_READER: dict[str, str] = {
    **dict.fromkeys(("anthropic_computer", "gemini_computer", "openai_computer"), "its actions are fields of the makers' API"),
    "seed": "its reader is a package that the agent imports; UI-TARS-2's functions, which it writes, have one above",
    "kimi_k2_5": "its reader rewrites code and reads no calls",
    "openmobile_2": "its reader is published and could not be read; vLLM's of this form is Qwen3.5's above",
    "phi_ground": "its reader is published and was not read; only the forms that it takes are known",
    "holo3_1": "the makers publish a recipe and no reader",
    "qwen3_8": "its reader in OSWorld is published and could not be read; vLLM's of this form is Qwen3.5's above",
    **dict.fromkeys(("openai_tools", "ocr_baseline", "ocr_errant", "tiny_policy"), "prompt and format are this project's"),
}
"""The adapters without a table, and why there is none."""


def page_row(family: Family) -> str:
    """A family's row in docs/models.md: whose reader, what both read alike, what is read here alone, and what else differs."""
    header, rows = table_of(family)
    found = [(row.damage, kind(family, row)) for row in rows]

    def listed(*ends: str) -> str:
        return ", ".join(d for d in DAMAGES if any(one == d != "as published" and what.endswith(ends) for one, what in found))

    name = f"`{family.adapter}`" + (f" ({family.part})" if family.part else "")
    where = f"{header.repository}@{header.commit[:7]} `{header.path.rsplit('/', 1)[-1]}`"
    others = "; ".join(dict.fromkeys(DIFFERENCES.get(family.title, {}).values()))
    return f"| {name} | {where} | {listed('same')} | {listed(OURS)} | {others} |"
