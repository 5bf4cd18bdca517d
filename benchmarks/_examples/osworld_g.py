"""OSWorld-G as its authors release it: ``benchmark/`` with two lists of the same rows, their classification, and
``images/``.

A row is ``id`` (<image>-<n>), ``image_path``, ``image_size`` [width, height], ``instruction``, ``box_type`` (bbox, polygon,
refusal), ``box_coordinates`` in pixels ([x, y, width, height], or x and y of each corner in one list, or four numbers
without meaning) and ``GUI_types``. The classification lists rows by what they test. In both lists, the refusals come last,
on screens used before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.testing.phone import PixelBox

from .targets import SIZE, TappedElement, tapped_elements


def write_osworld_g(folder: Path, *, episodes: int, seed: int) -> None:
    """``episodes`` rows, boxes and polygons in turn, and one refusal more on the first screen."""
    images = folder / "benchmark" / "images"
    images.mkdir(parents=True)
    tapped = tapped_elements(episodes, seed)
    rows = []
    for position, element in enumerate(tapped):
        (images / f"{_image(element)}.png").write_bytes(element.png)
        rows.append(_target_row(element, polygon=position % 2 == 1))
    rows.append(_row(tapped[0], 1, "Close the tab of the spreadsheet.", "refusal", [-1, -1, -1, -1], ["/"]))
    refined = [{**row, "instruction": f"In the window in front: {row['instruction']}"} for row in rows]
    classified = {
        "text_matching": [row for row in rows if row["GUI_types"] == ["Label"]],
        "element_recognition": [row for row in rows if row["box_type"] != "refusal"],
        "refusal": [row for row in rows if row["box_type"] == "refusal"],
    }
    for name, value in (
        ("OSWorld-G.json", rows),
        ("OSWorld-G_refined.json", refined),
        ("classification_result.json", {"classified": classified}),
    ):
        (folder / "benchmark" / name).write_text(json.dumps(value, indent=2), encoding="utf-8")


def _target_row(element: TappedElement, *, polygon: bool) -> dict[str, Any]:
    types = ["Icon", "Button"] if element.kind == "icon" else ["Label"]
    if polygon:
        return _row(element, 0, element.instruction, "polygon", _octagon(element.box), types)
    left, top, right, bottom = element.box
    return _row(element, 0, element.instruction, "bbox", [left, top, right - left, bottom - top], types)


def _row(
    element: TappedElement, number: int, instruction: str, kind: str, coordinates: list[float], types: list[str]
) -> dict[str, Any]:
    return {
        "id": f"{_image(element)}-{number}",
        "image_path": f"{_image(element)}.png",
        "image_size": list(SIZE),
        "instruction": instruction,
        "box_type": kind,
        "box_coordinates": coordinates,
        "GUI_types": types,
    }


def _image(element: TappedElement) -> str:
    return f"PHONE{element.number:05d}"


def _octagon(box: PixelBox) -> list[float]:
    """The corners of ``box`` without their outer quarters, around it in one direction."""
    left, top, right, bottom = box
    across, down = (right - left) / 4, (bottom - top) / 4
    corners = [
        (left + across, top),
        (right - across, top),
        (right, top + down),
        (right, bottom - down),
        (right - across, bottom),
        (left + across, bottom),
        (left, bottom - down),
        (left, top + down),
    ]
    return [float(value) for corner in corners for value in corner]
