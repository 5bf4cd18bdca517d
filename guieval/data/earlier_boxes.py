"""What the field ``boxes`` of earlier versions held: the one place that knows it, for journals and prepared folders.

A step now has ``targets`` and ``elements``. Earlier versions wrote both into ``boxes``, and each loader meant one of the two,
or the target and then the others. Only what guieval wrote itself is read so: in a user's file the field is refused, since
nobody can tell what its author meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from guieval.actions import Boxes, Point
from guieval.steps import StepTaskModel

TARGETS = frozenset(
    {
        *("agentnetbench", "cagui-grounding", "demo-icons", "demo-screens", "gui-odyssey", "hypertrack", "mind2web", "miniwob"),
        *("mmbench-gui-l2", "mobi-bench", "onekey", "osworld-g", "screenspot", "screenspot-pro", "screenspot-v2"),
        *("ui-i2e-bench", "ui-vision", "venusbench-gd"),
    }
)
"""Data sets whose loaders gave the boxes of the target alone."""
ELEMENTS = frozenset({"aitw", "aitz", "amex", "androidcontrol", "cagui"})
"""Data sets whose loaders gave the boxes of a screen's elements, the target's among them if it has one."""
TARGET_FIRST = frozenset({"demo"})
"""Data sets whose loaders gave the target, if a step has one, and then the others."""


def divided(text: bytes) -> bytes:
    """The JSON of a journal's record with ``targets`` and ``elements``; unchanged if it has them already."""
    if b'"boxes":' not in text:
        return text
    record = from_json(text)
    task = record.get("task") if isinstance(record, dict) else None
    if not isinstance(task, dict) or "boxes" not in task:
        return text
    return to_json({**record, "task": divided_step(task, task.get("dataset"))}) + b"\n"


def divided_line(text: bytes, dataset: str) -> bytes:
    """The same for a line of a prepared folder, which names its data set if that is not the folder's, ``dataset``."""
    if b'"boxes":' not in text:
        return text
    line = from_json(text)
    steps = line.get("steps") if isinstance(line, dict) else None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        return text
    return to_json({**line, "steps": [divided_step(step, line.get("dataset") or dataset) for step in steps]})


def divided_step(step: Mapping[str, Any], dataset: object) -> dict[str, Any]:
    """A step's fields with its ``boxes``, if it has any, divided as the data set's loader meant them.

    Of a data set that is not known here the boxes are targets if all are around an accepted point, else elements.
    """
    values = dict(step)
    boxes = values.pop("boxes", None)
    if not isinstance(boxes, list) or not boxes:
        return values
    targets = 0
    if dataset in TARGETS:
        targets = len(boxes)
    elif dataset in TARGET_FIRST:
        named = isinstance(extras := values.get("extras"), dict) and extras.get("target") is not None
        targets = int(named or _around_a_point(values, boxes[:1]))
    elif dataset not in ELEMENTS and _around_a_point(values, boxes):
        targets = len(boxes)
    return {**values, "targets": boxes[:targets], "elements": boxes[targets:]}


def earlier_json(step: StepTaskModel) -> bytes:
    """A step as earlier versions wrote it, by which data is recognised that an earlier run has been over."""
    merged = step.model_copy(update={"targets": step.boxes_of_screen})
    text = merged.model_dump_json(exclude={"elements"}).encode("utf-8", "replace")
    return text.replace(b',"targets":', b',"boxes":', 1)


def _around_a_point(step: Mapping[str, Any], boxes: Sequence[Any]) -> bool:
    """Whether each box contains the point of the reference or of an alternative; ``False`` for what is no box or point."""
    accepted = [step.get("action"), *(step.get("alternatives") or ())]
    try:
        points = [Point(*map(float, each["point"])) for each in accepted if isinstance(each, dict) and "point" in each]
        return bool(points) and all(any(Boxes([box]).containing(point)[0] for point in points) for box in boxes)
    except (TypeError, ValueError):
        return False
