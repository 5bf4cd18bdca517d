"""The page's data of one step: plain JSON values, with coordinates in thousandths of the screen as in the record.

The areas in which a protocol accepts a point come from its own rules, so their geometry is not implemented twice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from guieval.actions import Action, Click, ExecutableAction, LongPress, Open, Point, Scroll, scroll_path
from guieval.evaluation import ActionEvaluator, ClickRule, StepRules
from guieval.evaluation.rules import polygon_of
from guieval.frames import Size
from guieval.models.composition import StageResponse, stages_in
from guieval.reports.viewer.reading import SeenStep, code_of
from guieval.steps import Sample, StepOutcome, StepTaskModel

TEXT_LIMIT = 20_000
"""Limit of a text in the page, in characters; the journal has the whole text."""
JSON_LIMIT = 4_000


def task_values(task: StepTaskModel, evaluators: Sequence[ActionEvaluator]) -> dict[str, Any]:
    """The step as provided by the benchmark, and the areas in which each protocol accepts a click.

    ``areas`` has the distinct accepted areas and ``area`` the index of each evaluator's area (-1: the step does not expect
    a click). ``polygon`` has the corners of the step's target, if it has one.
    """
    areas: list[dict[str, Any]] = []
    chosen: list[int] = []
    for evaluator in evaluators:
        area = _accepted(evaluator.protocol.rules_for(task.dataset), task)
        if area is None:
            chosen.append(-1)
            continue
        if area not in areas:
            areas.append(area)
        chosen.append(areas.index(area))
    polygon = polygon_of(task)
    return {
        "instruction": clipped(task.instruction),
        "low": clipped(task.low_level_instruction),
        "setting": task.setting,
        "split": task.split,
        "length": task.episode_length,
        "size": list(task.screenshot_size),
        "reference": action_values(task.action),
        "alternatives": [action_values(action) for action in task.alternatives],
        "targets": _rounded(task.targets),
        "elements": _rounded(task.elements),
        **({} if (how := task.perturbation) is None else {"lure": _rounded(how.lure), "close": _rounded(how.close)}),
        **({} if how is None else {"perturbed": f"{how.variant}{f' (skipped: {how.skipped})' if how.skipped else ''}"}),
        "polygon": None if polygon is None else [list(corner) for corner in polygon],
        "areas": areas,
        "area": chosen,
        "groups": dict(task.groups),
        "extras": _as_text(task.extras) if task.extras else None,
    }


def seen_values(seen: SeenStep) -> dict[str, Any]:
    """A run's data of the step: its result under each protocol, its samples, the number of ``more`` samples, its ``patch``."""
    values: dict[str, Any] = {"ends": list(seen.ends)}
    if seen.record is not None:
        values["history"] = list(seen.record.history)
        if seen.record.patch is not None:
            values["patch"] = {"method": seen.record.patch.method, "thought": seen.record.patch.thought}
        pairs = zip(seen.record.billed, seen.outcomes, strict=False)
        size = seen.record.task.screenshot_size
        values["samples"] = [_sample_values(sample, outcomes, size) for sample, outcomes in pairs]
        if more := len(seen.record.samples) - len(seen.outcomes):
            values["more"] = more
    return values


def action_values(action: Action | ExecutableAction) -> dict[str, Any]:
    """An action with its own fields; a scroll also with the ``path`` to draw: [x1, y1, x2, y2]."""
    values = action.model_dump(mode="python")
    if isinstance(action, Scroll):
        start, end = scroll_path(action)
        values["path"] = [*start, *end]
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = clipped(value)
        elif isinstance(value, dict):
            values[name] = _as_text(value)
    return values


def clipped(text: str | None, limit: int = TEXT_LIMIT) -> str | None:
    """The text, cut at ``limit`` with a note about the cut."""
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[... {len(text) - limit:,} more characters, in the journal]"


def _sample_values(sample: Sample, outcomes: Iterable[StepOutcome], size: Size) -> dict[str, Any]:
    usage, stages = sample.paid, stages_in(sample.raw_response or "")
    return {
        "raw": None if sample.raw_response is None or stages else clipped(sample.raw_response),
        **({"stages": [_stage_values(stage, size) for stage in stages]} if stages else {}),
        **({"stage": clipped(sample.stage)} if sample.stage else {}),
        "reasoning": clipped(sample.reasoning),
        "thought": clipped(sample.thought),
        "conclusion": clipped(sample.conclusion),
        "action": None if sample.action is None else action_values(sample.action),
        "error": None if sample.error is None else [sample.error.stage, clipped(sample.error.message)],
        "tokens": None if usage is None else [usage.prompt_tokens, usage.completion_tokens],
        "finish": clipped(sample.finish_reason, JSON_LIMIT),
        "seconds": _finite(sample.seconds),
        "attempts": sample.attempts,
        "outcomes": [
            [code_of(outcome), _finite(outcome.distance), _finite(outcome.text_similarity), clipped(outcome.reason)]
            for outcome in outcomes
        ],
    }


def _stage_values(stage: StageResponse, size: Size) -> dict[str, Any]:
    """A composition's response: what was queried in short, its text, and the part of the screen that was shown, if a part."""
    name, *more = stage.about
    values: dict[str, Any] = {"name": clipped(name), "about": clipped(", ".join(more)), "text": clipped(stage.words)}
    if stage.crop is not None:
        values["part"] = [round(1000 * side / size[place % 2], 3) for place, side in enumerate(stage.crop)]
    return values


def _accepted(rules: StepRules, task: StepTaskModel) -> dict[str, Any] | None:
    """The area in which ``rules`` accept a click; ``boxes`` is the name of the step's own list, if they equal one.

    ``radii`` are the distances accepted around points: [x, y, horizontally, vertically], in thousandths of each side.
    ``varies``: the accepted boxes depend on the click; ``boxes`` are then the candidates, or empty.
    """
    targets: list[tuple[ClickRule, Point]] = []
    for action in (task.action, *task.alternatives):
        read = rules.read(action)
        if isinstance(read, Click | LongPress):
            targets.append((rules.click, read.point))
        elif isinstance(read, Open) and rules.open.icon is not None and (icon := rules.open.icon_point(task)) is not None:
            targets.append((rules.open.icon, icon))
    if not targets:
        return None
    boxes: dict[tuple[float, ...], None] = {}
    radii: list[list[float]] = []
    polygon = varies = False
    for rule, point in targets:
        if rule.polygon and polygon_of(task) is not None:
            polygon = True
        elif rule.by_node:
            varies = True
        else:
            varies |= rule.which == "nearest-to-prediction" and len(task.boxes_of_screen) > rule.nearest
            corners = 1000 * rule.accepted(task.targets, task.elements, point, screen=task.screenshot_size).T
            boxes.update((tuple(round(side, 3) for side in box), None) for box in corners.tolist())
        if rule.fallback is not None:
            x, y = (0.0, 0.0) if rule.reference == "origin" else point
            across, down, limit = rule.reach(task.screenshot_size)
            radii.append([round(value, 3) for value in (x, y, 1000 * limit / across, 1000 * limit / down)])
    listed = [list(box) for box in boxes]
    same = (name for name in ("targets", "elements") if listed and listed == _rounded(getattr(task, name)))
    return {"boxes": next(same, listed), "polygon": polygon, "radii": radii, "varies": varies}


def _rounded(boxes: Iterable[Iterable[float]]) -> list[list[float]]:
    return [[round(side, 3) for side in box] for box in boxes]


def _as_text(value: Any) -> str:
    """Foreign values as JSON text, since they may contain NaN, which JSON does not have, or be nested too deeply."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1, default=repr)
    except (ValueError, RecursionError):
        text = "(nested too deep to show)"
    return clipped(text, JSON_LIMIT) or ""


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
