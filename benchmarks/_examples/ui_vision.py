"""UI-Vision's element grounding as its authors release it: three lists below ``annotations/``, and ``images/``.

A row is ``image_path`` (relative to ``images/``), ``image_size`` [width, height], ``prompt_to_evaluate``, ``bbox`` [x1, y1,
x2, y2] in fractional pixels, ``platform`` (the program), ``category`` and ``element_type`` (text, icon). Rows have no id.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .targets import SIZE, tapped_elements

SUBSETS = ("basic", "functional", "spatial")


def write_ui_vision(folder: Path, *, episodes: int, seed: int) -> None:
    """``episodes`` rows, in turn in the three lists."""
    lists: dict[str, list[dict[str, Any]]] = {subset: [] for subset in SUBSETS}
    (folder / "images" / "element_grounding").mkdir(parents=True)
    for position, element in enumerate(tapped_elements(episodes, seed)):
        path = f"element_grounding/{element.number:032x}.png"
        (folder / "images" / path).write_bytes(element.png)
        lists[SUBSETS[position % len(SUBSETS)]].append(
            {
                "image_path": path,
                "image_size": list(SIZE),
                "prompt_to_evaluate": element.instruction,
                "bbox": [edge + 0.25 for edge in element.box[:2]] + [edge - 0.25 for edge in element.box[2:]],
                "platform": ("GIMP", "LibreOffice Calc")[position % 2],
                "category": "Button" if element.kind == "icon" else "Menu",
                "element_type": element.kind,
            }
        )
    annotations = folder / "annotations" / "element_grounding"
    annotations.mkdir(parents=True)
    for subset, rows in lists.items():
        (annotations / f"element_grounding_{subset}.json").write_text(json.dumps(rows, indent=4), encoding="utf-8")
