"""Results of grounding evaluations: a point and the instruction that it answers, one format for each way to write the rows.

A row names an image, an instruction, the target's box and the predicted point (null: the response held none). Box and point are
pixels or fractions of the image. If the benchmark's own steps are given, a row answers one of them, and that step's label
decides: see :class:`_KnownSteps`. A point off the image is unparseable here; the authors call it wrong, which it is either way.

Sources: likaixin2000/ScreenSpot-Pro-GUI-Grounding ``eval_screenspot_pro.py``, whose rows (under ``details``) UI-Venus, MAI-UI
and others write too; Tongyi-MAI/MAI-UI ``evaluation/grounding`` (the lines that it writes when a server answers);
YXB-NKU/SE-GUI ``src/eval`` (under ``results``); qizhanggu/mobilepilot-runtime ``artifacts/evaluation`` (a file of two
conditions answers each step twice and has to be split by ``config``).

ScreenSpot-Pro's rows are steps of their own if they state the image's size (``img_size``), as some forks write them; one
without an ``id`` is then called ``<task_filename>#<row>``. Rows of negative instructions do not keep whether the model refused,
and are refused here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from guieval.actions import Action, Boxes, Click
from guieval.errors import DataError, ParseError, UsageError, nearest
from guieval.exchange.predictions.predicted import SCREEN, Format, Predicted, ReadRow, Rows
from guieval.exchange.predictions.rows import PredictionRow
from guieval.frames import PIXELS, RELATIVE, Frame, Size
from guieval.models.parsing import clicked
from guieval.steps import StepKey, StepTaskModel

BENCHMARK = "screenspot-pro"
SLACK = 0.51
"""How far, in pixels, the edges of a row's box may be from the step's: half a pixel, if a copy has rounded them."""


@dataclass(frozen=True)
class RowLayout:
    """The names of a row's fields, and how its numbers are read; a name is "" if rows have no such field.

    ``reply`` names the field of the raw response; a row without ``point`` has that alone. ``size`` names the field with the
    image's [width, height], or the two fields with one of them each; ``holds_steps`` is whether rows that have it are steps of
    their own, of ``benchmark``, if the benchmark's are not given. ``condition`` names a field that has to be the same in all
    rows, since rows that differ in it answer the same steps. ``frame`` is that of points, ``box_frame`` that of boxes (default:
    the same), which are corners, or with ``xywh`` a corner, width and height. With ``by_id`` the ``id`` names the step, with
    ``subset`` and ``step`` if rows have them; else it decides among steps that are alike, as does ``place``, the row's place in
    the data set from 0. ``read`` reads what is in ``point``, given the image's size.
    ``screen`` is that of images whose size rows do not state, if they are steps of their own.
    """

    image: str
    prompt: str
    box: str
    point: str
    reply: str
    size: tuple[str, ...] = ("img_size",)
    frame: Frame = PIXELS
    holds_steps: bool = False
    condition: str | None = None
    box_frame: Frame | None = None
    xywh: bool = False
    id: str = "id"
    by_id: bool = False
    subset: str = ""
    step: str = ""
    place: str = ""
    read: Callable[[Any, Size], Action] | None = None
    benchmark: str = BENCHMARK
    screen: Size | None = None

    def reader(self, rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
        """Reads one row; without ``steps`` only rows that are steps of their own."""
        if self.condition is not None:
            found = {str(row.values.get(self.condition)) for row in rows()}
            if len(found) > 1:
                raise UsageError(
                    f"the rows have {len(found)} values of {self.condition!r} ({', '.join(sorted(found))}), and each answers "
                    "every step: keep the rows of one"
                )
        known = _KnownSteps(self, steps)
        first = next(rows(), None)
        sized = (
            self.screen is not None or not self._in_pixels or (first is not None and all(each in first for each in self.size))
        )
        stated = self.holds_steps and first is not None and sized
        if not known and first is not None and not stated:
            raise UsageError(
                "these rows do not hold the steps that they answer: add --data, the benchmark's data folder, and --bench, its "
                f"name{f' (default: {BENCHMARK})' if self.holds_steps and self.benchmark == BENCHMARK else ''}"
                f"{'; or map box= and size=, with which rows are steps of their own' if self.benchmark != BENCHMARK else ''}"
            )
        counts: Counter[str] = Counter()
        return lambda row: self._read(row, known, counts)

    def _read(self, row: PredictionRow, known: _KnownSteps, counts: Counter[str]) -> Predicted:
        part = str(row.values.get("task_filename") or self.benchmark)
        number = counts[part]
        counts[part] += 1
        if row.values.get("gt_type", "positive") != "positive":
            kind = row.values["gt_type"]
            raise row.error("gt_type", f"expected positive, got {kind!r:.40}: whether it was refused is not kept")
        task = known.find(row) if known else self._stated(row, f"{part}#{number}")
        size = self.size_of(row) or task.screenshot_size
        boxed = self.box and (self.box in row or not self.place)  # a row that says its place need not have a box
        differs = "" if not boxed or self.box_agrees(row, task) else f"{self.box} {row.value(self.box)!r:.80}"
        raw = row.values.get(self.reply)
        raw = raw if isinstance(raw, str) else None
        if not self.point:
            said = Predicted.of(task, lambda: self._click(None, size), differs)
            return said if raw is None else replace(said, reason="", response=raw)
        point = row.value(self.point)
        if point is not None and self.read is None:
            point = row.numbers(self.point, 2)
        return Predicted.of(task, lambda: self._click(point, size), differs, raw)

    def _click(self, point: Any, size: Size) -> Action:
        if point is None or point == "":
            raise ParseError("there is no answer")
        return clicked(list(point), self.frame, size) if self.read is None else self.read(point, size)

    @property
    def _in_pixels(self) -> bool:
        return PIXELS in (self.frame, self.box_frame or self.frame)

    def _corners(self, row: PredictionRow) -> tuple[float, ...]:
        """The box as a row states it: x and y of its corners in turn, or of a polygon's."""
        value = row.value(self.box)
        corners = row.numbers(self.box, len(value) if isinstance(value, list) and len(value) > 4 else 4)
        if self.xywh and len(corners) == 4:
            x, y, width, height = corners
            corners = (x, y, x + width, y + height)
        return corners

    def size_of(self, row: PredictionRow) -> Size | None:
        """The image's size as the row states it."""
        if not self.size or not all(field in row for field in self.size):
            return None
        numbers = row.numbers(self.size[0], 2) if len(self.size) == 1 else [row.number(field) for field in self.size]
        width, height = numbers
        if not (width.is_integer() and height.is_integer() and width > 0 and height > 0):
            raise row.error(self.size[0], f"expected a width and a height in pixels, got {list(numbers)!r:.80}")
        return int(width), int(height)

    def box_agrees(self, row: PredictionRow, task: StepTaskModel) -> bool:
        """Whether the row's box is the step's, within half a pixel. A target that is not on the screen has no box."""
        corners = self._corners(row)
        if task.action.type == "STOP" or not (task.targets or "polygon" in task.extras):
            return True
        size = self.size_of(row) or task.screenshot_size
        frame = self.box_frame or self.frame
        scales = [pixels / extent for pixels, extent in zip(size, frame.extent(size), strict=True)]
        pixels = [number * scales[place % 2] for place, number in enumerate(corners)]
        polygon = [number for corner in task.extras.get("polygon", ()) for number in corner]
        if len(pixels) > 4:
            # MAI-UI's conversion has added the first corner to the second, as if the numbers were x, y, width and height.
            return _near(pixels[:2] + pixels[4:], polygon[:2] + polygon[4:], size)
        return any(_near(pixels, box, size) for box in task.targets)

    def _stated(self, row: PredictionRow, name: str) -> StepTaskModel:
        size = self.size_of(row)
        extras = {"screen_size_from": "assumed"} if size is None else {}
        size = size or self.screen or (None if self._in_pixels else SCREEN)
        if size is None:
            raise row.error(self.size[0], "is missing")
        frame = self.box_frame or self.frame
        width, height = frame.extent(size)
        corners = self._corners(row)
        x1, y1, x2, y2 = corners[:4]
        if len(corners) > 4 or not (x1 <= x2 and y1 <= y2):
            raise row.error(
                self.box, f"expected [x1, y1, x2, y2], the upper left corner first, got {row.value(self.box)!r:.80}"
            )
        labels = {"group": "group", "application": "application", "platform": "platform", "element": "ui_type"}
        edges = [x1 * 1e3 / width, y1 * 1e3 / height, x2 * 1e3 / width, y2 * 1e3 / height]
        return row.task(
            benchmark=self.benchmark,
            dataset=self.benchmark,
            episode_id=row.identity(self.id) if self.id in row else name,
            step_index=0,
            episode_length=1,
            setting="grounding",
            instruction=row.text(self.prompt) if self.prompt else "",
            screenshot=row.text(self.image) if self.image else "none",
            screenshot_size=size,
            action=row.build(self.box, lambda: Click(point=frame.decode((x1 + x2) / 2, (y1 + y2) / 2, size))),
            targets=row.build(self.box, lambda: Boxes([edges])),
            groups={label: row.text(field) for label, field in labels.items() if field in row and self.benchmark == BENCHMARK},
            extras=extras,
        )


def _format(name: str, summary: str, layout: RowLayout) -> Format:
    return Format(name, summary, frozenset({layout.image, layout.prompt, layout.box, layout.point}), layout.reader)


FORMATS = (
    _format(
        "screenspot-pro",
        "ScreenSpot-Pro's results, details and metrics",
        RowLayout("img_path", "prompt_to_evaluate", "bbox", "pred", "raw_response", holds_steps=True),
    ),
    _format(
        "mai-ui",
        "MAI-UI's results of a server, one line each",
        RowLayout("img_filename", "instruction", "bbox", "pred", "raw_response"),
    ),
    _format(
        "se-gui",
        "SE-GUI's results, accuracy and results",
        RowLayout("image", "question", "ground_truth", "extracted_answer", "model_output", frame=RELATIVE),
    ),
    _format(
        "mobilepilot",
        "mobilepilot-runtime's runs of one condition",
        RowLayout(
            *("img_filename", "instruction", "target_bbox_xyxy", "prediction_point", "raw_model_response"),
            size=("image_width", "image_height"),
            condition="config",
        ),
    ),
)


class _KnownSteps:
    """The benchmark's steps, among which a row's is found by the image's name, the instruction and the row's ``id``.

    The folders above an image, and its suffix, differ from copy to copy. Instructions may be in any of the benchmark's
    languages. If several steps share both, the row's ``id`` decides, else the image's folder, then the box; steps that
    share all of it are answered in the benchmark's order. A box alone never rules out a step: the benchmark's label counts.
    """

    def __init__(self, layout: RowLayout, steps: Iterable[StepTaskModel]) -> None:
        self._layout = layout
        self._by_prompt: dict[str, list[StepTaskModel]] = {}
        self._by_id: dict[str, StepTaskModel] = {}
        self._by_key: dict[tuple[str, int], list[StepTaskModel]] = {}
        self._listed: list[StepTaskModel] = []
        self._answered: set[StepKey] = set()
        for task in steps:
            others = (str(task.extras[name]) for name in ("instruction", "instruction_cn") if name in task.extras)
            for prompt in dict.fromkeys(map(_words, (task.instruction, *others))):
                self._by_prompt.setdefault(prompt, []).append(task)
            self._by_id.setdefault(task.episode_id, task)
            self._by_key.setdefault((task.episode_id, task.step_index), []).append(task)
            self._listed.append(task)

    def __bool__(self) -> bool:
        return bool(self._by_prompt)

    def find(self, row: PredictionRow) -> StepTaskModel:
        """The step that a row answers; :class:`DataError` if there is none, or several are possible."""
        layout = self._layout
        if layout.by_id:
            return self._named(row)
        image = row.text(layout.image) if layout.image in row else ""
        alike = self._by_prompt.get(_words(row.text(layout.prompt)), [])
        alike = [task for task in alike if not image or _same_image(task, image)]
        if not alike:
            raise self._unknown(row)
        name = str(row.values.get(layout.id))
        alike = [task for task in alike if task.episode_id == name] or alike
        alike = [task for task in alike if _folder(task.screenshot) == _folder(image)] or alike
        if len(alike) > 1 and layout.place in row and (place := row.whole(layout.place)) < len(self._listed):
            alike = [task for task in alike if task is self._listed[place]] or alike
        if len(alike) > 1 and layout.box in row:
            alike = [task for task in alike if self._layout.box_agrees(row, task)] or alike
        if any(
            (task.targets, task.extras.get("polygon")) != (alike[0].targets, alike[0].extras.get("polygon")) for task in alike
        ):
            if layout.box not in row:
                raise row.error(
                    layout.prompt, f"{len(alike)} steps have this instruction, and the row does not say which it is"
                )
            raise row.error(
                layout.box, f"{row.value(layout.box)!r:.120} is not the box of any step with that image and instruction"
            )
        task = next((task for task in alike if task.key not in self._answered), alike[0])
        self._answered.add(task.key)
        return task

    def _named(self, row: PredictionRow) -> StepTaskModel:
        """The step of the row's id, and of its subset and index if it has them."""
        layout = self._layout
        name = row.identity(layout.id)
        index = _index(row, layout.step) if layout.step else 0
        found = self._by_key.get((name, index), [])
        if layout.subset in row:
            found = [task for task in found if task.subset == row.identity(layout.subset)]
        if len(found) == 1:
            return found[0]
        benchmark = self._listed[0].benchmark
        if found:
            subsets = ", ".join(repr(task.subset) for task in found)
            raise row.error(layout.id, f"{name!r:.80} is in several subsets of {benchmark} ({subsets}): map subset= too")
        if name in self._by_id:
            raise row.error(layout.step or layout.id, f"the episode {name!r:.80} of {benchmark} has no step {index}")
        raise row.error(layout.id, f"{benchmark} in this data has no step {name!r:.80}{nearest(name, self._by_id)}")

    def _unknown(self, row: PredictionRow) -> DataError:
        named = self._by_id.get(str(row.values.get("id")))
        benchmark = self._listed[0].benchmark
        if self._layout.image not in row:
            near = nearest(row.text(self._layout.prompt), [task.instruction for task in self._listed])
            prompt = f"{row.text(self._layout.prompt)!r:.120}"
            return row.error(self._layout.prompt, f"{prompt} is not the instruction of any step of {benchmark}{near}")
        if named is not None and _same_image(named, row.text(self._layout.image)):
            prompt = row.text(self._layout.prompt)
            problem = (
                f"{prompt!r:.120} is not the instruction of {benchmark}'s step {named.episode_id!r}: {named.instruction!r:.120}"
            )
            return row.error(self._layout.prompt, problem)
        image = row.text(self._layout.image)
        shown = dict.fromkeys(
            task.instruction for tasks in self._by_prompt.values() for task in tasks if _same_image(task, image)
        )
        if shown:
            near = nearest(row.text(self._layout.prompt), shown) or f" (it has {next(iter(shown))!r:.120})"
            problem = (
                f"{row.text(self._layout.prompt)!r:.120} is not the instruction of any step of {benchmark} with the image "
                f"{image!r:.120}{near}: the row was written for another edition"
            )
            return row.error(self._layout.prompt, problem)
        return row.error(
            self._layout.image, f"no step of {benchmark} in this data has the image {row.text(self._layout.image)!r:.120}"
        )


def _index(row: PredictionRow, field: str) -> int:
    """A step's place in its episode, from 0; tables have it as text."""
    text = row.identity(field)
    if not text.isdecimal():
        raise row.error(field, f"expected a whole number from 0, got {text!r:.80}")
    return int(text)


def _words(text: str) -> str:
    return " ".join(text.split())


def _path(text: str) -> PurePosixPath:
    return PurePosixPath(text.replace("\\", "/"))


def _folder(image: str) -> str:
    return _path(image).parent.name


def _same_image(task: StepTaskModel, image: str) -> bool:
    """Whether both name one image; ScreenSpot-v2's have the platform before the name, or in the folder's."""
    ours, theirs = _path(task.screenshot).stem, _path(image).stem
    return ours == theirs or ours.endswith(f"_{theirs}") or theirs.endswith(f"_{ours}")


def _near(pixels: Sequence[float], unified: Iterable[float], size: Size) -> bool:
    """Whether numbers in pixels and in thousandths of the image, x and y in turn, are the same within half a pixel."""
    edges = [number * size[place % 2] / 1000.0 for place, number in enumerate(unified)]
    return len(edges) == len(pixels) and all(abs(edge - number) <= SLACK for edge, number in zip(edges, pixels, strict=True))
