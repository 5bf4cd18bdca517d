"""Recorded replies of real models, which adapter reads which, and what their sources say they mean.

The one table here, :data:`FAMILIES`, is what the tests and ``perf/parsing.py`` go by. A row that its source read as well is
compared; every kind of difference has its explanation in :data:`EXPLAINED`, and a kind without one fails the test.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from guieval.actions import Action, Click, Open, Press, Scroll, Stop, Type, Unsupported, type_of
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.models import ABCModel
from guieval.steps import Setting

from .steps import PHONE, step


@dataclass(frozen=True)
class Row:
    """One recorded reply; ``expected`` is what the source read in it, with the source's own parser."""

    source: str
    text: str
    notes: str
    expected: dict[str, Any] | None


def rows(shared_data: Path, file: str) -> Iterator[Row]:
    for line in (shared_data / "model_outputs" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        expected = row["expected_action_if_the_source_states_it"]
        yield Row(f"{row['source_repo']}/{row['source_path']}", row["raw_response"], row["notes"], expected)


def screenshot_sizes(shared_data: Path) -> dict[str, Size]:
    """Sizes in pixels from the benchmarks' annotations, since the recorded replies do not state them."""
    sizes: dict[str, Size] = {}
    folder = shared_data / "screenspot_pro_format_annotations"
    for file in [*folder.glob("ScreenSpot_Pro_data/*.json"), *folder.glob("ScreenSpot_V2_data/*.json*")]:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        sizes |= {item["img_filename"]: cast(Size, tuple(item["img_size"])) for item in json.loads(data)}
    return sizes


def size_of(row: Row, sizes: dict[str, Size]) -> Size | None:
    """The (width, height) of the screenshot a row is about, where its notes or the annotations tell it."""
    for pattern in (r"\bimg (\d+)x(\d+)", r"img_size=\[(\d+), (\d+)\]"):
        if found := re.search(pattern, row.notes):
            return int(found[1]), int(found[2])
    if found := re.search(r"resized_size\(h,w\)=\[(\d+), (\d+)\]", row.notes):
        return int(found[2]), int(found[1])  # of what the model saw; the original's is not given, only its shape counts
    if found := re.search(r"\b(?:img|image)=(.*?\.\w+)(?:;|$)", row.notes):
        return sizes.get(found[1])
    return None


class Target(NamedTuple):
    """A target's box in thousandths of the screen."""

    left: float
    top: float
    right: float
    bottom: float


def target_of(row: Row, size: Size) -> Target | None:
    """The box that the task asks for; ``None`` too where it is a polygon."""
    number = r"[\d.]+"
    if found := re.search(rf"(?:target bbox xyxy px|gt bbox)=(\[{number}(?:, {number}){{3}}\])", row.notes):
        x1, y1, x2, y2 = ast.literal_eval(found[1])
        return Target(x1 * 1000 / size[0], y1 * 1000 / size[1], x2 * 1000 / size[0], y2 * 1000 / size[1])
    if found := re.search(r"target bbox 0-1=(\[.*?\])", row.notes):
        return Target(*(number * 1000 for number in ast.literal_eval(found[1])))
    return None


# --- which adapter reads which file -----------------------------------------------------------------------------------


def _every(row: Row) -> bool:
    return True


@dataclass(frozen=True)
class Family:
    """An adapter and the recorded replies in its format. ``agreement``: least share of the rows their source read as well."""

    adapter: str
    file: str
    agreement: float = 0.99
    which: Callable[[Row], bool] = _every
    setting: Callable[[Row], Setting] = lambda row: "high"
    options: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[Size, ...] = (PHONE,)
    """Screens to try where a row's is not known: the first in which the reply's points lie on the screen."""

    @property
    def title(self) -> str:
        return self.adapter if self.adapter == self.file else f"{self.adapter} on {self.file}"


def _always_grounding(row: Row) -> Setting:
    return "grounding"


def _os_atlas_setting(row: Row) -> Setting:
    return "grounding" if "<|box_start|>" in row.text or "actions:" not in row.text.lower() else "high"


FAMILIES = (
    Family("qwen2_5_vl", "qwen2_5_vl", setting=_always_grounding),
    Family("se_gui", "se_gui", setting=_always_grounding),
    Family("qwen3_vl", "qwen3_vl"),
    Family("ui_tars", "ui_tars", 0.95, lambda row: "CAGUI" not in row.notes, sizes=((1000, 1000),)),
    Family("ui_tars_1_5", "ui_tars", 0.3, which=lambda row: "CAGUI" in row.notes),
    Family("ui_venus_navi", "ui_venus", 0.98, sizes=((2880, 1800), (1080, 2400))),
    Family("glm_4_1v", "glm_v"),
    Family("glm_4_5v", "glm_v"),
    Family("mimo_vl", "mimo_vl", setting=_always_grounding),
    Family("magicgui", "magicgui"),
    Family("agentcpm_gui", "agentcpm_gui"),
    Family("ui_r1", "ui_r1", 0.5, setting=_always_grounding),
    Family("os_atlas", "os_atlas", setting=_os_atlas_setting),
    Family("aguvis", "aguvis", setting=_always_grounding),
    Family("autoglm_phone", "autoglm"),
    Family("qwen2_vl", "qwen2_vl", setting=_always_grounding),
    Family("gui_plus", "gui_plus", setting=_always_grounding),
    Family("minicpm_gui", "minicpm_gui", setting=lambda row: "grounding" if "ocr_grounding" in row.source else "high"),
    Family("mai_ui", "mai_ui", setting=lambda row: "high" if "<tool_call>" in row.text else "grounding"),
)
OTHERS = {
    "gpt4o_omniact_pyautogui": "targets are descriptions, a planner's output",
    "gpt_android_world": "M3A agents, targets are element numbers",
    "gui_critic_decisions": "decisions shown to a critic, of no one format",
    "screenagent": "ScreenAgent: no adapter",
    "seed_vl": "Seed1.5-VL: no adapter",
    "ui_genie": "UI-Genie: no adapter",
    "webvoyager": "targets are element labels",
}
"""Recorded replies in formats that no adapter is for, and whose they are."""


# --- what a source says, and whether we agree -------------------------------------------------------------------------

Stated = tuple[str, object]
"""An action's type and what distinguishes it; ``("NOTHING", None)`` where the source reads no action."""


def stated(row: Row, size: Size) -> Stated | None:
    """What the source read in a reply, where it says so in a form that can be compared."""
    expected = row.expected or {}
    match expected:
        case {"POINT": _, "to": direction}:
            return "SCROLL", direction
        case {"POINT": [x, y]}:
            return "CLICK", (float(x), float(y))
        case {"TYPE": text}:
            return "TYPE", text
        case {"PRESS": button}:
            return "PRESS", button
        case {"STATUS": status}:
            return "STOP", status
        case {"point_0_1000": [x, y]}:
            return "CLICK", (float(x), float(y))
        case {"point_norm_0_1": [x, y]}:
            return "CLICK", (x * 1000, y * 1000)
        case {"point_px": [x, y], "basis": "source's own parse", **rest} if not rest:  # not scaled to the original
            return "CLICK AS WRITTEN", (float(x), float(y))
        case {"point_px": [x, y]}:
            return "CLICK", (x * 1000 / size[0], y * 1000 / size[1])
        case {"parsed": parsed, "action_string": text}:
            fallen_back = text == "Wait()" and "Wait(" not in row.text  # what the source does where it finds no action
            return _stated_by_venus(None if fallen_back else parsed, text)
        case {"call": _} if re.search(r"Action ?[:：]|^click\(", row.text):  # the rest are other products' notations
            return _stated_by_tars(expected)
    return None


def _stated_by_venus(parsed: dict[str, Any] | None, text: str) -> Stated:
    kinds = {"Click": "CLICK", "Wait": "WAIT", "Finished": "STOP", "PressBack": "PRESS", "Scroll": "SCROLL"}
    if parsed is None:
        return "NOTHING", None
    match parsed["action"]:
        case "Click":  # the source scales by a size it does not tell: the numbers as written are compared
            numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
            return "CLICK AS WRITTEN", (numbers[0], numbers[1])
        case "Type":
            return "TYPE", parsed["params"]["content"]
        case "Launch":
            return "OPEN", parsed["params"].get("app")
        case name:
            return kinds.get(name, name), None


def _stated_by_tars(expected: dict[str, Any]) -> Stated | None:
    """What a unit test demands: a native point, written as such or as a fraction of the test's own factors, or a text."""
    text = str(expected)
    if "'action_type': 'type'" in text and "'action_type': 'click'" not in text:
        return "TYPE", None
    if raw := re.search(r"'raw': \{'x': ([\d.]+), 'y': ([\d.]+)\}", text):
        return "CLICK", (float(raw[1]), float(raw[2]))
    box = re.search(r"'start_box': '\[([\d.,]+)\]'", text)
    if box is not None:
        numbers = [float(number) for number in box[1].split(",")]
        if len(numbers) != 4:
            return "CLICK", tuple(numbers)
        factors = next((item for item in expected["extra_args"] if isinstance(item, list)), [1000, 1000])
        return "CLICK", ((numbers[0] + numbers[2]) / 2 * factors[0], (numbers[1] + numbers[3]) / 2 * factors[1])
    return None


@dataclass(frozen=True)
class Reading:
    """A row as an adapter reads it: an action or the reason for none; and, where its source read it too, the ``difference``
    from that (empty: none)."""

    row: Row
    action: Action | None
    reason: str
    difference: str | None


def readings(family: Family, model: ABCModel, shared_data: Path, sizes: dict[str, Size]) -> Iterator[Reading]:
    """Every row of a family, read; whatever is not a :class:`ParseError` comes through."""
    for row in rows(shared_data, family.file):
        if family.which(row):
            yield _read(family, model, row, size_of(row, sizes))


def agreement(family: Family, model: ABCModel, shared_data: Path, sizes: dict[str, Size]) -> str:
    """A family's row in docs/models.md: rows, read ones, those that the source read too, and equal ones."""
    found = list(readings(family, model, shared_data, sizes))
    compared = [reading for reading in found if reading.difference is not None]
    same = sum(not reading.difference for reading in compared)
    read = sum(reading.action is not None for reading in found)
    share = f"{100 * same / len(compared):.1f} %" if compared else ""
    return f"| `{family.adapter}` | `{family.file}` | {len(found):,} | {read:,} | {len(compared):,} | {same:,} | {share} |"


def _read(family: Family, model: ABCModel, row: Row, size: Size | None) -> Reading:
    action: Action | None = None
    reason = ""
    for tried in (size,) if size is not None else family.sizes:
        task = step(screenshot_size=tried, setting=family.setting(row))
        try:
            action, reason = model.parse_response(task, row.text).action, ""
        except ParseError as error:
            reason = reason or str(error)
            continue
        if type_of(action) != action.type and size is None and tried != family.sizes[-1]:
            continue  # off this screen; the size of the row's own is not known
        message = stated(row, tried)
        return Reading(row, action, "", None if message is None else _difference(message, action, model, task))
    message = stated(row, size or family.sizes[0])
    if message is None:
        return Reading(row, None, reason, None)
    return Reading(
        row, None, reason, "" if message[0] == "NOTHING" else f"{message[0]} there, unparseable here: {kind(reason)}"
    )


def _difference(message: Stated, action: Action, model: ABCModel, task: Any) -> str:
    what, value = message
    if what == "NOTHING":
        return f"nothing there, {action.type} here"
    if what.split()[0] == type_of(action) != action.type:
        return f"{type_of(action)} off the screen here"
    if what.split()[0] != action.type:
        return f"{what.split()[0]} there, {_type(action)} here"
    match action:
        case Click(point=point) if what == "CLICK AS WRITTEN":
            own: object = tuple(round(number, 3) for number in model.frame(task).encode(point, task.screenshot_size))
        case Click(point=point):
            wanted = cast(tuple[float, ...], value)
            same = len(wanted) == 2 and all(abs(one - other) < 1e-3 for one, other in zip(point, wanted, strict=True))
            own = value if same else tuple(point)
        case Type(text=text):
            own = text
        case Open(app=app):
            own = app
        case Scroll(direction=direction):
            own = direction
        case Press(button=button):
            own = button
        case Stop(status=status):
            own = status
        case _:
            own = value
    return "" if value is None or own == value else f"another {action.type} here"


def _type(action: Action) -> str:
    if isinstance(action, Unsupported):
        return f"{action.known} without its place" if action.known else f"UNSUPPORTED {action.name}"
    return action.type


def kind(reason: str) -> str:
    """A reason without what it quotes, so that alike ones count as one."""
    short = re.sub(r"(?<!\w)(?:'(?:[^'\\]|\\.)*'?|\"(?:[^\"\\]|\\.)*\"?)", "'…'", reason)
    return re.sub(r"-?\d[\d.,e+-]*", "#", short)[:110]


EXPLAINED: dict[str, dict[str, str]] = {
    "qwen2_5_vl": {
        "CLICK off the screen here": "the source takes a point right of the screen's edge as it is, and counts it wrong"
    },
    "qwen2_vl": {
        "CLICK there, unparseable here: the response has no box: '…'": "prose with two numbers, in names of variables, which "
        "the source takes for a point"
    },
    "ui_tars": {"another CLICK here": "the source's parser expects the other kind of quote and reads the first number only"},
    "ui_venus_navi on ui_venus": {
        "WAIT there, unparseable here: the response has no action": "prose in a first <action>, then Wait() in another: the "
        "first counts here, the last there"
    },
    "ui_r1": {"another CLICK here": "a click and a swipe in one list: the first counts here, the last coordinate there"},
    "ui_tars_1_5 on ui_tars": {
        "another CLICK here": "the source divides pixels of the resized screenshot by the size of the original"
    },
}
"""Per family, every kind of difference from its source, and why it is one."""
