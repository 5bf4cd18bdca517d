"""ScreenSpot-Pro as its authors release it: ``annotations/<application>_<platform>.json`` and ``images/``.

A row is ``img_filename``, ``bbox`` [x1, y1, x2, y2] and ``img_size`` [width, height] in pixels, ``instruction`` in English
and ``instruction_cn`` in Chinese, ``id``, ``application``, ``platform``, ``ui_type`` (text, icon) and ``group``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .targets import SIZE, tapped_elements

APPLICATIONS = (("word", "macos", "Office"), ("vivado", "windows", "CAD"))


def write_screenspot_pro(folder: Path, *, episodes: int, seed: int) -> None:
    """``episodes`` rows, in turn in the lists of two applications."""
    lists: dict[str, list[dict[str, Any]]] = {}
    for position, element in enumerate(tapped_elements(episodes, seed)):
        application, platform, group = APPLICATIONS[position % len(APPLICATIONS)]
        rows = lists.setdefault(f"{application}_{platform}", [])
        name = f"{application}_{platform}/screenshot_{element.number:04d}.png"
        image = folder / "images" / name
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(element.png)
        rows.append(
            {
                "img_filename": name,
                "bbox": list(element.box),
                "instruction": element.instruction,
                "instruction_cn": f"请点击:{element.instruction}",
                "id": f"{application}_{platform}_{len(rows)}",
                "application": application,
                "platform": platform,
                "img_size": list(SIZE),
                "ui_type": element.kind,
                "group": group,
            }
        )
    (folder / "annotations").mkdir(parents=True, exist_ok=True)
    for name, rows in lists.items():
        text = json.dumps(rows, indent=2, ensure_ascii=False)
        (folder / "annotations" / f"{name}.json").write_text(text, encoding="utf-8")
