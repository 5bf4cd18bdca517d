"""MMBench-GUI L2 as its authors release it: ``L2_annotations.json``, and images in ``offline_images/os_<platform>/``.

A row is ``index``, ``image_path`` (without the platform's folder), ``instruction``, ``bbox`` [x1, y1, x2, y2] in fractions
of the image, ``image_size`` [width, height], ``data_type`` (text, icon), ``platform`` (os_...), ``app_name`` and
``grounding_type`` (basic, advanced).
"""

from __future__ import annotations

import json
from pathlib import Path

from .targets import SIZE, tapped_elements

PLATFORMS = ("os_android", "os_ios")


def write_mmbench_gui(folder: Path, *, episodes: int, seed: int) -> None:
    """``episodes`` rows, in turn basic and advanced, and of two platforms."""
    width, height = SIZE
    rows = []
    for position, element in enumerate(tapped_elements(episodes, seed)):
        platform = PLATFORMS[position % len(PLATFORMS)]
        image = folder / "offline_images" / platform / f"{element.number:08x}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(element.png)
        left, top, right, bottom = element.box
        fractions = (left / width, top / height, right / width, bottom / height)
        rows.append(
            {
                "index": position,
                "image_path": image.name,
                "instruction": element.instruction,
                "bbox": [round(fraction, 4) for fraction in fractions],
                "image_size": [width, height],
                "data_type": element.kind,
                "platform": platform,
                "app_name": element.app,
                "grounding_type": ("basic", "advanced")[position % 2],
            }
        )
    (folder / "L2_annotations.json").write_text(json.dumps(rows, indent=4, ensure_ascii=False), encoding="utf-8")
