"""Files of unknown fields: the user says which field is what, as in ``id=sample_id,point=prediction_px,frame=pixels``.

With a benchmark's steps, a row answers the one that ``id`` names (``subset`` and ``step`` too, if there are several), or else
the one with its ``image`` and ``instruction``. Without, each row is a step of its own, whose target is ``box``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from guieval.actions import Action, action_from_json
from guieval.errors import ParseError, UsageError, first_problem, nearest
from guieval.exchange.predictions.grounding import RowLayout
from guieval.exchange.predictions.predicted import Format, ReadRow, Rows
from guieval.exchange.predictions.rows import PredictionRow
from guieval.frames import PER_999, PER_1000, PIXELS, RELATIVE, Frame, Size
from guieval.journal.run_files import IMPORTED
from guieval.models.parsing import clicked
from guieval.models.parsing.points import is_numbers, numbers
from guieval.steps import StepTaskModel

FIELDS: Mapping[str, str] = {
    "id": "the step's episode, or the row's own name",
    "subset": "its subset",
    "step": "its index in the episode, from 0",
    "image": "the screenshot's name",
    "instruction": "the instruction",
    "point": "the answer: x and y, or a box, whose middle counts",
    "x": "the answer's x",
    "y": "the answer's y",
    "action": "the answer as a unified action",
    "response": "the raw response, read by --model",
    "box": "the target",
    "size": "the image's width and height",
    "width": "the image's width",
    "height": "the image's height",
}
"""What a field can be."""
FRAMES: Mapping[str, Frame] = {frame.name: frame for frame in (PIXELS, RELATIVE, PER_999, PER_1000)}
VALUES: Mapping[str, tuple[str, ...]] = {"frame": tuple(FRAMES), "box_frame": tuple(FRAMES), "box_form": ("corners", "xywh")}
"""What is no field, and its values."""
ASSUMED = "the file gives no sizes of images, so they are taken to reach as far as its numbers do; hits do not depend on that"
_XY = "x, y"


def parse_mapping(text: str) -> dict[str, str]:
    """``a=b,c=d`` as a mapping; :class:`UsageError` naming the part that is wrong."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise UsageError(f"--map needs NAME=FIELD, separated by commas, got {part.strip()!r}")
        if name in pairs:
            raise UsageError(f"--map gives {name!r} twice")
        pairs[name] = value
    return pairs


def mapped_format(mapping: Mapping[str, str]) -> Format:
    """The format of files whose fields are ``mapping``; :class:`UsageError` for what a field cannot be."""
    for name, value in mapping.items():
        if name not in FIELDS and name not in VALUES:
            known = (*FIELDS, *VALUES)
            raise UsageError(f"--map has no {name!r}{nearest(name, known)}; it takes {', '.join(known)}")
        if name in VALUES and value not in VALUES[name]:
            raise UsageError(f"--map {name}={value}: expected one of {', '.join(VALUES[name])}{nearest(value, VALUES[name])}")
    answers = [name for name in ("point", "x", "action", "response") if name in mapping]
    if ("x" in mapping) != ("y" in mapping):
        raise UsageError("--map needs both x and y, or point")
    if not answers:
        raise UsageError("--map does not say which field is the answer: add point=FIELD, x= and y=, action= or response=")
    if not mapping.keys().isdisjoint({"point", "x", "box"}) and "frame" not in mapping:
        raise UsageError(f"--map does not say what the numbers are: add frame=, one of {', '.join(FRAMES)}")
    unsized = PIXELS.name in (mapping.get("frame"), mapping.get("box_frame")) and mapping.keys().isdisjoint({"size", "width"})
    return Format(
        "mapped",
        "fields that the user names",
        frozenset(),
        lambda rows, steps: _reader(mapping, rows, steps),
        assumed=(ASSUMED,) if unsized else (),
    )


def _reader(mapping: Mapping[str, str], rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    first = next(rows(), None)
    fields = {} if first is None else _flat(first.values)
    for name in FIELDS.keys() & mapping.keys():
        if first is not None and mapping[name] not in fields:
            raise UsageError(
                f"--map {name}={mapping[name]}: the file has no such field{nearest(mapping[name], fields)}; its first row has "
                f"{', '.join(map(repr, fields)):.600}"
            )
    frame = FRAMES[mapping.get("frame", PIXELS.name)]
    layout = RowLayout(
        mapping.get("image", ""),
        mapping.get("instruction", ""),
        mapping.get("box", ""),
        _XY if "x" in mapping else mapping.get("point", mapping.get("action", "")),
        mapping.get("response", ""),
        size=tuple(mapping[name] for name in ("size", "width", "height") if name in mapping),
        frame=frame,
        holds_steps="box" in mapping,
        box_frame=FRAMES[mapping.get("box_frame", frame.name)],
        xywh=mapping.get("box_form") == "xywh",
        id=mapping.get("id", ""),
        by_id="id" in mapping,
        subset=mapping.get("subset", ""),
        step=mapping.get("step", ""),
        read=_action if "action" in mapping else lambda value, size: clicked(value, frame, size),
        benchmark=IMPORTED,
    )
    listed = list(steps)
    if listed and not layout.by_id and not layout.prompt:
        raise UsageError("--map does not say which step a row answers: add id=FIELD, or image= and instruction=")
    if not listed and not layout.size and PIXELS in (frame, layout.box_frame):
        layout = replace(
            layout,
            screen=_covering(
                _mapped(row, mapping, layout).values.get(name) for row in rows() for name in (layout.box, layout.point)
            ),
        )
    read = layout.reader(lambda: (_mapped(row, mapping, layout) for row in rows()), listed)
    return lambda row: read(_mapped(row, mapping, layout))


def _covering(values: Iterable[Any]) -> Size:
    """A size, in pixels, that reaches to all of the numbers; of a box as corner, width and height it is larger."""
    sides = [1.0, 1.0]
    for value in values:
        found = value if isinstance(value, list) else numbers(value) if isinstance(value, str) and is_numbers(value) else ()
        places = [each for each in found if isinstance(each, int | float) and math.isfinite(each)]
        for axis in (0, 1):
            sides[axis] = max([sides[axis], sum(map(abs, places[axis::2]))])
    return math.ceil(sides[0]), math.ceil(sides[1])


def _mapped(row: PredictionRow, mapping: Mapping[str, str], layout: RowLayout) -> PredictionRow:
    """The row with nested fields under dotted names, and with numbers that its cells hold as text."""
    values = _flat(row.values)
    if "x" in mapping:
        pair = [values.get(mapping[axis]) for axis in "xy"]
        values[_XY] = None if None in pair else pair
    for field in (layout.box, *layout.size):
        if isinstance(values.get(field), str):
            values[field] = _numbers(values[field])
    for field in (layout.image, layout.prompt):
        if field and isinstance(values.get(field), int | float):
            values[field] = str(values[field])
    return PredictionRow(values, row.where)


def _numbers(text: str) -> Any:
    """The numbers in a text, one alone as a number; the text if it has anything else."""
    try:
        found = numbers(text.strip().replace("x", " "))
    except ValueError:
        return text
    return list(found) if len(found) > 1 else found[0]


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat[before + name] = value
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
    return flat


def _action(value: Any, size: Size) -> Action:
    try:
        return action_from_json(value)
    except ValidationError as error:
        raise ParseError(f"the answer is no unified action: {first_problem(error).sentence}") from None
