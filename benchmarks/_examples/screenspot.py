"""ScreenSpot and ScreenSpot-v2 as SeeClick and OS-Copilot release them: three lists of rows, images in one folder.

A row is ``img_filename``, ``bbox`` [x, y, width, height] in whole pixels, ``instruction``, ``data_type`` (text, icon) and
``data_source`` (the system or site). The names of images begin with ``mobile_``, ``pc_`` or ``web_``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .targets import tapped_elements

PREFIXES = {"mobile": "mobile", "desktop": "pc", "web": "web"}
SOURCES = {"mobile": "android", "desktop": "windows", "web": "shop"}


def write_screenspot(folder: Path, *, episodes: int, seed: int) -> None:
    """Version 1, with ``episodes`` rows spread over the three lists."""
    _write(folder, episodes, seed, "screenspot_{}.json", "screenspot_imgs")


def write_screenspot_v2(folder: Path, *, episodes: int, seed: int) -> None:
    """Version 2, which has the same rows under other names."""
    _write(folder, episodes, seed, "screenspot_{}_v2.json", "screenspotv2_image")


def _write(folder: Path, episodes: int, seed: int, pattern: str, images: str) -> None:
    lists: dict[str, list[dict[str, Any]]] = {platform: [] for platform in PREFIXES}
    (folder / images).mkdir(parents=True)
    for position, element in enumerate(tapped_elements(episodes, seed)):
        platform = list(PREFIXES)[position % len(PREFIXES)]
        name = f"{PREFIXES[platform]}_{element.number:04d}.png"
        (folder / images / name).write_bytes(element.png)
        left, top, right, bottom = element.box
        lists[platform].append(
            {
                "img_filename": name,
                "bbox": [left, top, right - left, bottom - top],
                "instruction": element.instruction,
                "data_type": element.kind,
                "data_source": SOURCES[platform],
            }
        )
    for platform, rows in lists.items():
        (folder / pattern.format(platform)).write_text(json.dumps(rows, indent=1), encoding="utf-8")
