"""Writes a folder of our own episode format by hand, as ``docs/episodes.md`` describes it and not as the package writes it.

Episodes take turns at the three frames. Those in pixels leave the size of the screenshots out, for the images are there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Scroll
from guieval.playground.phone import DEFAULT_SIZE, PhoneEpisode, PhoneStep, generate_episode

from .played import draw_all, write_lines

FRAMES = ("pixels", "relative", "unified")


def write_episodes(
    folder: Path, *, episodes: int = 2, seed: int = 0, size: tuple[int, int] = DEFAULT_SIZE
) -> list[PhoneEpisode]:
    """Write ``episodes.jsonl`` and ``screenshots/`` into ``folder`` and return what was written, in order."""
    written = [generate_episode(seed, number, size) for number in range(episodes)]
    for played in written:
        draw_all(played.steps, folder / "screenshots", f"{played.number}_{{}}.png")
    write_lines(folder / "episodes.jsonl", map(_line, written))
    return written


def screenshot(played: PhoneEpisode, index: int) -> str:
    return f"screenshots/{played.number}_{index}.png"


def _line(played: PhoneEpisode) -> dict[str, Any]:
    frame = FRAMES[played.number % len(FRAMES)]
    return {
        "episode_id": str(played.number),
        "subset": played.task.status,
        "dataset": "synthetic",
        "instruction": played.task.instruction,
        "frame": frame,
        "steps": [_step(played, index, step, frame) for index, step in enumerate(played.steps)],
    }


def _step(played: PhoneEpisode, index: int, step: PhoneStep, frame: str) -> dict[str, Any]:
    width, height = played.size
    across, down = {"pixels": (width / 1000, height / 1000), "relative": (0.001, 0.001), "unified": (1.0, 1.0)}[frame]

    def action(value: Action) -> dict[str, Any]:
        fields = value.model_dump(mode="json")
        if isinstance(value, Click | LongPress | Scroll):
            fields["point"] = [value.point.x * across, value.point.y * down]
        return fields

    fields: dict[str, Any] = {
        "screenshot": screenshot(played, index),
        "action": action(step.action),
        "alternatives": [action(other) for other in step.alternatives],
        **{
            name: [[x1 * across, y1 * down, x2 * across, y2 * down] for x1, y1, x2, y2 in boxes]
            for name, boxes in (("targets", step.targets), ("elements", step.elements))
        },
        "low_level_instruction": step.instruction,
        "groups": {"app": played.task.app},
        "extras": {"task": played.task.kind},
    }
    return fields if frame == "pixels" else {**fields, "screenshot_size": [width, height]}
