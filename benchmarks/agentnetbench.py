"""AgentNetBench (OpenCUA, Wang et al., 2025): recorded desktop tasks on Windows and macOS, judged step by step.

The README in ``evaluation/agentnetbench`` of github.com/xlang-ai/OpenCUA describes the layout; ``sample_data`` next to it is a
sample. The whole benchmark has 100 tasks taken from AgentNet; its number of steps is not published.

**Layout**: one JSON file per task (``task_id``, ``high_level_task_description``, ``steps``), with the screenshots in
``images/`` next to the files; ``root`` is that folder, or one that has it as ``single_data`` or ``sample_data``. A step names
its ``image`` and lists ``ground_truth_actions``; each of its ``alternative_options`` is such a list and just as right.
``step_num`` counts the recorded steps, some of them left out; ours count without gaps, and the extras keep it.

**Labels**: places are fractions of the screenshot, boxes ``rel_bbox`` [x, y, width, height] fractions.

- ``click``: a click; its boxes are the target's. A pointer moved to where it clicks (``moveTo``, ``click``) is the click
  alone.
- ``write``: typing. An Enter after it is a line break at the text's end, as in the authors' scorer.
- ``press`` or ``hotkey`` of enter or return alone: ``Press("ENTER")``.
- ``scroll``: a positive amount rolls the wheel up, so the content comes down as under a finger that moves down; ``hscroll``: a
  positive amount shows what is to the right, as a finger that moves left.
- ``terminate``: ``Stop``, ``success`` as done and anything else that means failure as impossible. ``wait``: ``Wait``.
- Everything else is unsupported in the unified space and keeps its own name, keys in lower case and places in [0, 1000]:
  ``hotkey``, other presses, ``rightClick``, ``doubleClick`` and so on; ``moveTo`` with ``dragTo`` is one ``drag`` from
  ``start`` to ``end``. The authors' protocols judge those that are actions of a device by their places and keys; their boxes
  are in ``extras["unsupported_boxes"]``, those of a drag's end in ``extras["drag_end_boxes"]``. Every other protocol demands
  an equal action.

Assumed, as it is not written down: the model is given ``high_level_task_description``, and a scroll always has a place. The
size of a screenshot is its file's; if there is none, the boxes tell it, as they are given in pixels too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import UsageError
from guieval.frames import RELATIVE, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._episode_folders import text_or_none
from ._examples import written_by
from ._images import find_image, size_of
from ._rows import Row, episode, listed, one_of, placed, read_row, read_whole, step, step_rows

FOLDERS = ("", "single_data", "sample_data")
CONFIRMING = ("enter", "return")
DEVICE_ACTIONS: dict[str, type[act.DoubleClick | act.RightClick | act.Hover]] = {
    "doubleclick": act.DoubleClick,
    "rightclick": act.RightClick,
    "moveto": act.Hover,
}
_HEAD = 4096
_SAMPLE = "xlang-ai/OpenCUA, evaluation/agentnetbench/sample_data (1d70f20), counted"


@dataclass
class _Reading:
    """The meaning of a list of actions: the unified action, and the boxes of its target in thousandths."""

    action: act.Action
    boxes: list[list[float]] = field(default_factory=list)
    end_boxes: list[list[float]] = field(default_factory=list)
    """The boxes at the end of a drag."""


class AgentNetBench(ABCBenchmark):
    """AgentNetBench's trajectories, one JSON file each, with ``images/`` next to them."""

    name = "agentnetbench"
    title = "AgentNetBench"
    source = (
        "AgentNetBench (OpenCUA, arXiv 2508.09123, MIT): <task>.json with images/ from evaluation/agentnetbench of "
        "github.com/xlang-ai/OpenCUA"
    )
    paper = "arXiv 2508.09123"
    licence = "MIT"
    published = (PublishedCount("sample in the authors' repository", 54, _SAMPLE, 5),)
    dataset = "agentnetbench"
    protocol = "agentnetbench"
    action_space = act.ActionSpace(frozenset({"CLICK", "TYPE", "PRESS", "SCROLL", "WAIT", "STOP"}), frozenset({"ENTER"}))
    write_example = written_by("agentnetbench.write_agentnetbench")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        folder = next((name for name in FOLDERS if _looks_right(root / name)), None)
        if folder is None:
            raise self.wrong_folder(root, "<task>.json with a trajectory's task_id and steps")
        self._folder = folder

    def index(self) -> Sequence[EpisodeRef]:
        refs = listed(self, sorted((self.root / self._folder).glob("*.json")), self._ref)
        if not refs and not self.skipped:
            raise UsageError(f"{str(self.root / self._folder)!r} has no trajectory; expected {self.source}")
        return refs

    def _ref(self, file: Path) -> EpisodeRef:
        row = read_row(file)
        if not (name := row.text("task_id")):
            raise row.error("task_id", "expected a name, got ''")
        return EpisodeRef(EpisodeKey(self.name, "", name), len(step_rows(row.value("steps"), row.where)), file)

    def load(self, ref: EpisodeRef) -> Episode:
        row = read_row(ref.locator)
        rows = step_rows(row.value("steps"), row.where)
        steps = [self._step(row, item, ref, index, rows) for index, item in enumerate(rows)]
        return episode(row.where, steps)

    def _step(self, trajectory: Row, row: Row, ref: EpisodeRef, index: int, rows: Sequence[Row]) -> StepTaskModel:
        lists = {"ground_truth_actions": row.value("ground_truth_actions")}
        if row.values.get("alternative_options") is not None:
            options = enumerate(row.items("alternative_options"))
            lists |= {f"alternative_options[{number}]": option for number, option in options}
        readings = [_read(row, field, actions) for field, actions in lists.items()]
        accepted: list[act.Action] = []
        for reading in readings:
            accepted += [reading.action] if reading.action not in accepted else []
        screenshot = find_image(self.root, f"{self._folder}/images/{row.text('image')}".lstrip("/"))
        return step(
            row.where,
            **placed(self, ref, index, len(rows)),
            instruction=trajectory.text("high_level_task_description"),
            low_level_instruction=_monologue(row),
            screenshot=screenshot,
            screenshot_size=self._size(row, screenshot, rows),
            action=accepted[0],
            alternatives=tuple(accepted[1:]),
            targets=row.build("rel_bbox", lambda: act.Boxes(_boxes_of(readings, clicks=True))),
            groups=_groups(trajectory),
            extras=_extras(
                row,
                unsupported_boxes=_boxes_of(readings, clicks=False),
                drag_end_boxes=[box for reading in readings for box in reading.end_boxes],
            ),
        )

    def _size(self, row: Row, screenshot: str, rows: Sequence[Row]) -> Size:
        size = size_of(row, "image", self.root, screenshot)
        size = size or next(filter(None, map(_size_by_boxes, (row, *rows))), None)
        if size is None:
            raise row.error("image", f"there is no image {screenshot!r} in {str(self.root)!r}, and no box gives its size")
        return size


def _looks_right(folder: Path) -> bool:
    """Whether the folder has trajectories: JSON files next to screenshots, or one that begins like a trajectory."""
    files = [file for file in folder.glob("*.json") if file.is_file()]
    return bool(files) and ((folder / "images").is_dir() or any(b'"task_id"' in read_whole(file)[:_HEAD] for file in files))


def _groups(trajectory: Row) -> dict[str, str]:
    if trajectory.values.get("meta_info") is None:
        return {}
    about = trajectory.row("meta_info")
    return {name: about.text(name) for name in ("system", "domain") if about.values.get(name) is not None}


def _monologue(row: Row) -> str | None:
    if row.values.get("inner_monologue") is None:
        return None
    return text_or_none(row.row("inner_monologue"), "low_level_instruction")


def _extras(row: Row, **boxes: list[list[float]]) -> dict[str, Any]:
    kept = {name: row.values[name] for name in ("step_num", "action", "milestone") if name in row}
    thoughts = row.values.get("inner_monologue") or {}
    kept |= {name: thoughts[name] for name in ("observation", "thought") if name in thoughts}
    return kept | {name: kind for name, kind in boxes.items() if kind}


# --- actions ----------------------------------------------------------------------------------------------------------


def _read(row: Row, where: str, actions: Any) -> _Reading:
    """The meaning of a list of actions that together are one step."""
    if not isinstance(actions, list) or not actions:
        raise row.error(where, f"expected a list of actions, got {actions!r:.80}")
    parts = [Row.of(action, f"{row.where}, field {where}[{number}]") for number, action in enumerate(actions)]
    kinds = [part.text("type").lower() for part in parts]
    params = [part.row("params") for part in parts]
    if len(parts) == 2 and kinds[0] == "write" and kinds[1] in ("press", "hotkey") and _confirms(params[1]):
        return _Reading(act.Type(text=_text(params[0]) + "\n"))
    if kinds == ["moveto", "dragto"]:
        start, end = map(_place, params)
        drag = act.Drag(start=_point(params[0]), end=_point(params[1]))
        action = act.Unsupported(name="drag", arguments={"start": start, "end": end}, device=drag)
        return _Reading(action, _boxes(parts[0]), _boxes(parts[1]))
    if len(parts) == 2 and kinds[0] == "moveto" and "position" in params[1]:
        parts, kinds, params = parts[1:], kinds[1:], params[1:]
    if len(parts) > 1:
        actions = list(map(_unsupported, parts, params))
        arguments = {"actions": [{"name": action.name, **action.arguments} for action in actions]}
        return _Reading(act.Unsupported(name="+".join(action.name for action in actions), arguments=arguments))
    return _Reading(_single(parts[0], kinds[0], params[0]), _boxes(parts[0]))


def _single(row: Row, kind: str, params: Row) -> act.Action:
    match kind:
        case "click":
            return params.build("position", lambda: act.Click(point=_point(params)))
        case "write":
            return act.Type(text=_text(params))
        case "press" | "hotkey" if _confirms(params):
            return act.Press(button="ENTER")
        case "scroll":
            return _scroll(params, "down", "up")
        case "hscroll":
            return _scroll(params, "left", "right")
        case "wait":
            return act.Wait()
        case "terminate":
            status = one_of(params, "status", ("success", "failure", "fail"))
            return act.Stop(status="finish" if status == "success" else "impossible")
        case _:
            return _unsupported(row, params)


def _unsupported(row: Row, params: Row) -> act.Unsupported:
    """The action by its own name, with keys in lower case and a place as [x, y] in thousandths."""
    arguments = dict(params.values)
    if "keys" in params:
        arguments["keys"] = _keys(params)
    if "position" in params:
        del arguments["position"]
        arguments["point"] = _place(params)
    device: act.DeviceAction | None = None
    name = row.text("type")
    if name.lower() in ("press", "hotkey"):
        device = act.Hotkey(keys=tuple(_keys(params)))
    elif "position" in params and (kind := DEVICE_ACTIONS.get(name.lower())):
        device = kind(point=_point(params))
    return act.Unsupported(name=name, arguments=arguments, device=device)


def _scroll(params: Row, positive: act.Direction, negative: act.Direction) -> act.Scroll:
    amount = params.number("amount")
    if not (amount > 0 or amount < 0):
        raise params.error("amount", f"expected a number other than 0, got {params.value('amount')!r}")
    point = _point(params)
    return act.Scroll(point=point, direction=positive if amount > 0 else negative)


def _point(params: Row) -> act.Point:
    place = params.row("position")
    x, y = place.number("x"), place.number("y")
    return params.build("position", lambda: RELATIVE.decode(x, y, (1, 1)))


def _place(params: Row) -> list[float]:
    """A place without the rounding errors of its multiplication by 1000, since protocols compare it exactly."""
    return [round(side, 6) for side in _point(params)]


def _text(params: Row) -> str:
    return params.text("content" if "content" in params and "text" not in params else "text")


def _keys(params: Row) -> list[str]:
    keys = params.value("keys")
    keys = [keys] if isinstance(keys, str) else keys
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) for key in keys):
        raise params.error("keys", f"expected a list of names of keys, got {keys!r:.80}")
    return [key.lower() for key in keys]


def _confirms(params: Row) -> bool:
    keys = _keys(params)
    return len(keys) == 1 and keys[0] in CONFIRMING


def _boxes_of(readings: Sequence[_Reading], *, clicks: bool) -> list[list[float]]:
    return [box for reading in readings if isinstance(reading.action, act.Click) is clicks for box in reading.boxes]


def _boxes(action: Row) -> list[list[float]]:
    corners = []
    for box in _rectangles(action):
        x, y, width, height = box.numbers("rel_bbox", 4)
        corners.append([1000 * x, 1000 * y, 1000 * (x + width), 1000 * (y + height)])
    return corners


def _rectangles(action: Row) -> list[Row]:
    about = action.row("metadata") if action.values.get("metadata") is not None else action
    return about.rows("bboxes") if about is not action and about.values.get("bboxes") is not None else []


def _size_by_boxes(row: Row) -> Size | None:
    for action in row.rows("ground_truth_actions"):
        for box in _rectangles(action):
            _, _, width, height = box.numbers("rel_bbox", 4)
            _, _, pixels_wide, pixels_high = box.numbers("abs_bbox", 4) if "abs_bbox" in box else (0.0, 0.0, 0.0, 0.0)
            if min(width, height, pixels_wide, pixels_high) > 0:
                return max(1, round(pixels_wide / width)), max(1, round(pixels_high / height))
    return None
