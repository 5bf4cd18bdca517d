"""Reasoning-execution consistency as one HTML page: the tables, and examples of failures on their screenshots.

Examples have the form of the GUIEvalKit paper's Figures 20 and 21: the thought, the execution it led to, and what most judges
execute who are given it. The page needs no other file and no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Scroll
from guieval.data.screenshots import jpeg_url, read_picture
from guieval.errors import ScreenshotError
from guieval.history import in_words
from guieval.reports.pages.kit import KIT, NODES, STYLE, THEME, whole_page
from guieval.reports.private_places import Shortener
from guieval.studies.consistency.judging import Consistency, Majority, Trace
from guieval.studies.consistency.tables import MEANING, decided, examples, tables

SIDE = (600, 900)
"""The largest (width, height) of an embedded screenshot, in pixels."""
QUALITY = 78


def consistency_page(found: Consistency, roots: Mapping[str, Path], each: int, *, undecided_as: bool | None = None) -> str:
    """The page, with ``each`` examples of every kind of failure; ``roots``: each benchmark's data folder, with screenshots."""
    shown = [(kind, _example(trace, roots.get(trace.task.benchmark))) for kind, trace in examples(found, each)]
    grouped = [(kind, [example for _, example in group]) for kind, group in groupby(shown, key=lambda pair: pair[0])]
    return whole_page(
        KIT / "consistency.html.jinja",
        [STYLE, KIT / "consistency.css"],
        [NODES, THEME],
        title=f"Reasoning-execution consistency of {found.model}",
        subtitle=f"Judges: {', '.join(judge.title for judge in found.judges)}",
        tables=tables(found, undecided_as=undecided_as),
        examples=grouped,
        meaning=MEANING,
    )


def _example(trace: Trace, root: Path | None) -> dict[str, Any]:
    decision = trace.joint.decision
    image, size, why = _image(trace, root)
    return {
        "step": str(trace.task.key),
        "exact": trace.exact,
        "instruction": trace.task.instruction,
        "thought": trace.thought,
        "execution": in_words(trace.action),
        "consensus": decided(trace.joint),
        "image": image,
        "why": why,
        "width": size[0],
        "height": size[1],
        "own_at": _points(trace.action, size),
        "judges_at": _points(decision.prototype, size) if isinstance(decision, Majority) else [],
    }


def _points(action: Action | None, size: tuple[int, int]) -> list[tuple[float, float]]:
    """The point of an action, in pixels of an image of ``size``; empty if it has none."""
    if not isinstance(action, Click | LongPress | Scroll):
        return []
    return [(round(action.point.x / 1000 * size[0], 1), round(action.point.y / 1000 * size[1], 1))]


def _image(trace: Trace, root: Path | None) -> tuple[str, tuple[int, int], str]:
    if root is None:
        return "", (0, 0), "The run's data folder is not here."
    try:
        image = read_picture(root, trace.task.screenshot, trace.task.screenshot_size, at_most=SIDE)
    except ScreenshotError as error:
        return "", (0, 0), Shortener([root], ()).message(str(error))
    return jpeg_url(image, QUALITY), image.size, ""
