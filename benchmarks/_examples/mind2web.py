"""Multimodal-Mind2Web's steps as UGround lists them: ``cross_<subset>_blocks.jsonl`` and ``blocks/<step>/<number>.png``.

After ``sample.py`` and ``make_blocks.py`` in github.com/OSU-NLP-Group/UGround, offline_evaluation/Multimodal-Mind2Web. Boxes
are [x, y, width, height] in pixels. A phone's screen is used as a page of one block.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from guieval.actions import Click, Type
from guieval.playground.phone import PhoneEpisode, PhoneStep, generate_episode

from .played import draw, write_lines

SIZE = (360, 800)
SPLITS = ("task", "website", "domain")


def write_mind2web(folder: Path, *, episodes: int, seed: int) -> None:
    """The first ``episodes`` of ``seed`` that click at least twice, in turn in the three lists.

    Only what the format has words for is listed, so ``step`` has gaps, as in the published lists: clicks, texts entered into
    the field clicked before, and switches, which stand for choosing from a list.
    """
    lists: dict[str, list[dict[str, Any]]] = {split: [] for split in SPLITS}
    numbers = count()
    for written in range(episodes):
        rows: list[dict[str, Any]] = []
        while sum(row["operation"] == "CLICK" for row in rows) < 2:
            played = generate_episode(seed, next(numbers), SIZE)
            rows = _rows(played, SPLITS[written % len(SPLITS)])
        lists[SPLITS[written % len(SPLITS)]] += rows
        for row in rows:
            draw(played.steps[row["step"]], folder / "blocks" / row["blocks_path"] / "0.png")
    for split, listed in lists.items():
        if listed:
            write_lines(folder / f"cross_{split}_blocks.jsonl", listed)


def _rows(played: PhoneEpisode, split: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    name = f"{played.seed:08x}-{played.number:04x}-4000-8000-000000000000"
    done: list[str] = []
    for number, step in enumerate(played.steps):
        stated = _operation(step)
        if stated is None or step.target is None:
            continue
        operation, value = stated
        x1, y1, x2, y2 = map(float, step.target.box)
        box = [x1, y1, x2 - x1, y2 - y1]
        action = f"{number:08x}-0000-4000-8000-000000000000"
        rows.append(
            {
                "annotation_id": name,
                "action_uid": action,
                "task": played.task.instruction,
                "website": played.task.app.lower(),
                "domain": "Service",
                "subdomain": "Phone",
                "operation": operation,
                "value": value,
                "bbox": [box],
                "previous_actions": list(done),
                "step": number,
                "total_steps": len(played),
                "split": split,
                "blocks_path": f"{name}_{action}",
                "target_blocks": {"0": [box]},
            }
        )
        done.append(f"[{step.target.role}]  {step.target.label} -> {operation}{f': {value}' if value else ''}")
    return rows


def _operation(step: PhoneStep) -> tuple[str, str] | None:
    match step.action:
        case Click() if step.target is not None and step.target.role == "switch":
            return "SELECT", "on"
        case Click():
            return "CLICK", ""
        case Type(text=text):
            return "TYPE", text
        case _:
            return None
