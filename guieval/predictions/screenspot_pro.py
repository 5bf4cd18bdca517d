"""ScreenSpot-Pro's result files: one JSON object with the rows under ``details`` and their averages under ``metrics``.

Source: likaixin2000/ScreenSpot-Pro-GUI-Grounding ``eval_screenspot_pro.py``; UI-Venus and other grounding evaluations write
the same rows. A row: ``img_path``, ``prompt_to_evaluate``, ``task_filename``, ``group``, ``application``, ``platform``,
``ui_type``, ``lang``, ``instruction_style``, ``gt_type``, ``bbox`` (x1, y1, x2, y2), ``pred`` ([x, y], or null for a reply of
the wrong format) and ``correctness`` (correct, wrong, wrong_format). Box and point are pixels of the image. A point off the
image is unparseable here (the authors call it wrong; it is wrong either way).

The authors' rows name neither the step (``id``) nor the image's size (``img_size``), so the benchmark's own steps have to be
given: a row is the step of the same image, instruction (English or Chinese) and box. Rows that hold ``img_size``, as some
forks write them, are steps of their own; one without an ``id`` is then called ``<task_filename>#<row>``, which is no name of
ours. Rows of negative instructions do not keep whether the model refused, and are refused here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from guieval.actions import Boxes, Click
from guieval.errors import UsageError
from guieval.frames import PIXELS, Size
from guieval.parsing import decoded
from guieval.predictions.predicted import Predicted, Rows, attempted
from guieval.predictions.rows import Row
from guieval.steps import StepTaskModel

NAME = "screenspot-pro"
SUMMARY = "ScreenSpot-Pro's results, details and metrics"
ASSUMED: tuple[str, ...] = ()

BENCHMARK = "screenspot-pro"
SLACK = 0.51
"""How far, in pixels, the edges of a row's box may be from the step's: half a pixel, where a copy has rounded them."""


def recognises(values: Mapping[str, Any]) -> bool:
    """A point beside the prompt it answers."""
    return {"img_path", "prompt_to_evaluate", "pred"} <= values.keys()


def reader(rows: Rows, steps: Iterable[StepTaskModel]) -> Callable[[Row], Predicted]:
    """Reads one row; without ``steps`` only rows that say how large their image is."""
    known: dict[tuple[str, str], list[StepTaskModel]] = {}
    for task in steps:
        prompts = {
            task.instruction,
            *(str(task.extras[name]) for name in ("instruction", "instruction_cn") if name in task.extras),
        }
        for prompt in prompts:
            known.setdefault((_image(task.screenshot), prompt), []).append(task)
    first = next(rows(), None)
    if not known and first is not None and "img_size" not in first:
        raise UsageError(
            "these results are in pixels and do not say how large the images are; name ScreenSpot-Pro's data folder with --data"
        )
    counts: Counter[str] = Counter()
    return lambda row: _read(row, known, counts)


def _image(path: str) -> str:
    """An image's file name and folder; what is above them differs from machine to machine."""
    return "/".join(path.replace("\\", "/").rsplit("/", 2)[-2:])


def _read(row: Row, known: Mapping[tuple[str, str], list[StepTaskModel]], counts: Counter[str]) -> Predicted:
    part = str(row.values.get("task_filename") or BENCHMARK)
    number = counts[part]
    counts[part] += 1
    if row.values.get("gt_type", "positive") != "positive":
        raise row.error("gt_type", f"expected positive, got {row.values['gt_type']!r:.40}: whether it was refused is not kept")
    task = _matched(row, known) if known else _stated(row, f"{part}#{number}")
    pred = row.value("pred")
    action, reason = None, "there is no answer"
    if pred is not None:
        x, y = row.numbers("pred", 2)
        action, reason = attempted(lambda: Click(point=decoded([x, y], PIXELS, task.screenshot_size)))
    return Predicted(task.benchmark, task.subset, task.episode_id, 0, action, reason, task=task)


def _matched(row: Row, known: Mapping[tuple[str, str], list[StepTaskModel]]) -> StepTaskModel:
    candidates = known.get((_image(row.text("img_path")), row.text("prompt_to_evaluate")), [])
    corners = row.numbers("bbox", 4)
    for task in candidates:
        width, height = task.screenshot_size
        for box in task.boxes:
            edges = (box.x1 * width / 1000, box.y1 * height / 1000, box.x2 * width / 1000, box.y2 * height / 1000)
            if all(abs(edge - told) <= SLACK for edge, told in zip(edges, corners, strict=True)):
                return task
    problem = "is of none of the benchmark's steps" if not candidates else "is not the box of the benchmark's step of that text"
    raise row.error("bbox" if candidates else "img_path", f"{row.value('bbox' if candidates else 'img_path')!r:.120} {problem}")


def _stated(row: Row, name: str) -> StepTaskModel:
    size = _size(row)
    width, height = size
    x1, y1, x2, y2 = row.numbers("bbox", 4)
    if not (x1 <= x2 and y1 <= y2):
        raise row.error("bbox", f"expected [x1, y1, x2, y2], the upper left corner first, got {row.value('bbox')!r:.80}")
    labels = {"group": "group", "application": "application", "platform": "platform", "element": "ui_type"}
    return row.task(
        benchmark=BENCHMARK,
        dataset=BENCHMARK,
        episode_id=row.identity("id") if "id" in row else name,
        step_index=0,
        episode_length=1,
        setting="grounding",
        instruction=row.text("prompt_to_evaluate"),
        screenshot=row.text("img_path"),
        screenshot_size=size,
        action=row.build("bbox", lambda: Click(point=PIXELS.decode((x1 + x2) / 2, (y1 + y2) / 2, size))),
        boxes=row.build("bbox", lambda: Boxes([[x1 * 1e3 / width, y1 * 1e3 / height, x2 * 1e3 / width, y2 * 1e3 / height]])),
        groups={label: row.text(field) for label, field in labels.items() if field in row},
    )


def _size(row: Row) -> Size:
    width, height = row.numbers("img_size", 2)
    if not (width.is_integer() and height.is_integer() and width > 0 and height > 0):
        raise row.error("img_size", f"expected a width and a height in pixels, got {row.value('img_size')!r:.80}")
    return int(width), int(height)
