"""Every recorded verdict of a published scorer must be ours too.

The vectors are real AndroidControl targets with predictions drawn on both sides of each decision border, and what the authors'
code gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait, path_direction
from guieval.evaluation import ActionEvaluator
from guieval.steps import StepTaskModel
from tests.model_adapters.steps import step

from .conftest import Vectors


class Case(NamedTuple):
    id: str
    task: StepTaskModel
    action: Action
    type_match: bool
    exact_match: bool


def task(line: dict[str, Any], dataset: str, action: Action, boxes: list[list[float]], **extras: str) -> StepTaskModel:
    fields: dict[str, Any] = {"dataset": dataset, "episode_id": line["id"], "screenshot_size": tuple(line["screen"])}
    return step(action, elements=boxes, extras=extras, **fields)


def click(point: Point) -> Click:
    """A click that may lie outside the screen: the vectors assume one screen size, and a few labels are from larger ones."""
    return Click.model_construct(type="CLICK", point=point)


def guievalkit_action(spec: dict[str, Any], point: Point, direction: str | None) -> Action:
    match spec["type"]:
        case "CLICK":
            return click(point)
        case "LONG_PRESS":
            return LongPress(point=point, duration=spec.get("duration", 1000))
        case "SCROLL":
            return Scroll.model_validate({"point": point, "direction": direction})
        case "TYPE":
            return Type(text=spec["text"])
        case "OPEN":
            return Open(app=spec["app"])
        case "PRESS":
            return Press(button=spec["button"])
        case "WAIT":
            return Wait()
        case "STOP":
            return Stop()
    raise AssertionError(spec)


def guievalkit_case(line: dict[str, Any], dataset: str) -> Case:
    target, predicted, expected = line["target"], line["prediction"], line["expected"]
    x, y = target.get("point") or target.get("start") or (0.0, 0.0)
    direction = path_direction(target["start"], target["end"]) if "start" in target else None
    reference = guievalkit_action(target, Point(1000 * x, 1000 * y), direction)
    boxes = [[1000 * side for side in box] for box in target.get("boxes", ())]
    action = guievalkit_action(predicted, Point(*predicted.get("point", (0, 0))), predicted.get("direction"))
    return Case(line["id"], task(line, dataset, reference, boxes), action, **expected)


def ui_s1_action(spec: dict[str, Any], size: list[int]) -> Action:
    def point(key: str) -> Point:
        return Point(*(1000 * value / side for value, side in zip(spec[key], size, strict=True)))

    match spec["action"]:
        case "click":
            return click(point("coordinate"))
        case "long_press":
            return LongPress(point=point("coordinate"))
        case "swipe":
            if "coordinate" not in spec:  # a SOP target tells no path: any direction stands for it
                return Scroll(point=Point(500, 500), direction="up")
            start, end = point("coordinate"), point("coordinate2")
            return Scroll.model_validate({"point": start, "direction": path_direction(start, end)})
        case "type":
            return Type(text=spec["text"])
        case "open":
            return Open(app=spec["text"])
        case "system_button":
            return Press.model_validate({"button": spec["button"].upper()})
        case "wait":
            return Wait()
        case "terminate":
            return Stop(status="finish" if spec["status"] == "success" else "impossible")
    raise AssertionError(spec)


def ui_s1_case(line: dict[str, Any], dataset: str) -> Case:
    target = line["target"]
    width, height = line["screen"]
    boxes = [
        [1000 * x1 / width, 1000 * y1 / height, 1000 * x2 / width, 1000 * y2 / height]
        for x1, y1, x2, y2 in target.get("candidate_bbox", ())
    ]
    label = {"direction_label": target["direction"]} if "direction" in target else {}
    reference = ui_s1_action(target, line["screen"])
    action = ui_s1_action(line["prediction"], line["resized"])
    return Case(line["id"], task(line, dataset, reference, boxes, **label), action, **line["expected"])


@pytest.mark.parametrize(
    ("file", "protocol", "dataset", "convert"),
    [
        ("guievalkit-androidcontrol", "guievalkit", "androidcontrol", guievalkit_case),
        ("guievalkit-common", "guievalkit", "aitz", guievalkit_case),
        ("ui-s1-sop", "ui-s1-sop", "androidcontrol", ui_s1_case),
        ("ui-s1-reward-match", "ui-s1-reward-match", "androidcontrol", ui_s1_case),
    ],
)
def test_every_line_agrees(
    vectors: Vectors,
    capsys: pytest.CaptureFixture[str],
    file: str,
    protocol: str,
    dataset: str,
    convert: Callable[[dict[str, Any], str], Case],
) -> None:
    cases = [convert(line, dataset) for line in vectors.lines(file)]
    expected = [(case.type_match, case.exact_match) for case in cases]

    evaluator = ActionEvaluator(protocol)
    outcomes = [evaluator.evaluate(case.task, case.action) for case in cases]
    judged = [(outcome.type_match, outcome.exact_match) for outcome in outcomes]

    assert vectors.named or len(set(expected)) == 3, "the vectors must hold no, type and exact matches to tell anything"
    unlike = [case.id for case, ours, theirs in zip(cases, judged, expected, strict=True) if ours != theirs]
    with capsys.disabled():
        print(f"\n{file}: {len(cases) - len(unlike)} of {len(cases)} lines agree", end="")
    assert not unlike, f"{file}: {len(unlike)} lines disagree: {', '.join(unlike)}"
