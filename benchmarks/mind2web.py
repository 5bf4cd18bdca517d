"""Multimodal-Mind2Web (Mind2Web, Deng et al., 2023; SeeAct, Zheng et al., 2024) as UGround evaluates it: steps on web pages.

**How to obtain**: from huggingface.co/datasets/osunlp/Multimodal-Mind2Web, UGround's ``sample.py`` writes
``cross_<subset>/sample.jsonl`` and ``cross_<subset>/images/<image>`` from the parquet files, ``make_blocks.py`` cuts the pages
into *blocks* and writes ``<blocks>/<blocks_path>/<number>.png`` beside a list ``cross_<subset>_blocks.jsonl``, which UGround
also publishes. Its lists leave out steps without a screenshot (the data set's card counts 1,339 in cross_task and 4,060 in
cross_domain).

**Layout**: any of these lists, plain or packed with gzip: ``cross_<subset>_blocks.jsonl`` in ``root``, ``samples/`` or
``data/samples/``, or ``cross_<subset>/sample.jsonl``. Blocks lie in ``blocks/``, ``cross_<subset>/blocks/``,
``blocks/cross_<subset>/`` or ``cross_<subset>_blocks/``, pages in ``cross_<subset>/images/`` or ``images/``. Option ``view``:
``block`` shows the first block with the target (the default if the list has blocks, because UGround shows it),
``page`` the whole page. One task is an episode; its rows are put in the order of ``step``, which may have gaps, and numbered
without; ``extras`` keep ``step`` and ``total_steps``. (UGround's scorer counts the missing steps as wrong. Ours cannot ask
them.)

**Sizes** are the images'. A list without images still loads with the nominal size of a block, 1280x1000 pixels, which
``extras["screen_size_from"]`` then says; a page's size cannot be known without it.

**Labels**: ``bbox`` and ``target_blocks`` hold boxes [x, y, width, height] in pixels of the page and of the blocks; any of
them is right. Block k begins 800 k pixels down the page (17 steps show one that was cut elsewhere, around a wide or high
target); if a list names no target block, the box is put into the first block that contains it.

- ``CLICK``: a click on the middle of the first box whose middle is on the image.
- ``TYPE``: ``Type`` of the value. A unified action cannot have a target and a text; the text is what tells this step from
  the click before it, and the boxes stay in the record for protocols that judge a place too.
- ``SELECT``: ``Unsupported("SELECT", {"value": ...})``, for the space has no word for choosing from a list.
- A click whose element is not on the page (``bbox`` is empty in 339 clicks and 8 entered texts) has no right answer for the
  authors' scorer either. Its label is ``Unsupported("CLICK", {"bbox": []})`` and ``groups["target"]`` is ``absent``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from guieval.actions import Action, ActionSpace, Boxes, Click, Type, Unsupported
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import DataError, UsageError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._grounding import find_file
from ._images import find_image, size_of
from ._rows import Row, episode, line_row, placed, read_whole, step

SUBSETS = ("cross_task", "cross_website", "cross_domain")
LISTS = (
    "{}_blocks.jsonl",
    "samples/{}_blocks.jsonl",
    "data/samples/{}_blocks.jsonl",
    "Multimodal-Mind2Web__{}_blocks.jsonl",
    "{}/sample.jsonl",
)
BLOCKS = ("blocks", "{}/blocks", "blocks/{}", "{}_blocks")
PAGES = ("{}/images", "images")
BLOCK: Size = (1280, 1000)
BLOCK_STEP = 800

_SOURCE = "OSU-NLP-Group/UGround, offline_evaluation/Multimodal-Mind2Web/data/samples (3a9b9f2), counted"

_Box: TypeAlias = list[float]


@dataclass(frozen=True)
class _Image:
    """The screenshot of a step, and its target there: boxes [x, y, width, height] in pixels."""

    path: str
    size: Size
    size_from: str
    boxes: Sequence[_Box]


class Mind2Web(ABCBenchmark):
    """Multimodal-Mind2Web's three test sets from UGround's lists."""

    name = "mind2web"
    title = "Multimodal-Mind2Web"
    source = (
        "Multimodal-Mind2Web (arXiv 2306.06070, OpenRAIL) as UGround lists it: cross_{task,website,domain}_blocks.jsonl with "
        "blocks/ from offline_evaluation/Multimodal-Mind2Web of github.com/OSU-NLP-Group/UGround"
    )
    paper = "arXiv 2306.06070 (Mind2Web), 2401.01614 (Multimodal-Mind2Web), 2410.05243 (UGround)"
    licence = "OpenRAIL (data), MIT (lists)"
    published = (
        PublishedCount("cross task", 1338, _SOURCE, episodes=177, subset="cross_task"),
        PublishedCount("cross website", 1019, _SOURCE, episodes=142, subset="cross_website"),
        PublishedCount("cross domain", 4050, _SOURCE, episodes=694, subset="cross_domain"),
    )
    dataset = "mind2web"
    protocol = "mind2web-element"
    action_space = ActionSpace(frozenset({"CLICK", "TYPE"}), frozenset(), frozenset())
    write_example = written_by("mind2web.write_mind2web")

    def __init__(self, root: Path, *, view: Literal["block", "page"] | None = None, **options: Any) -> None:
        super().__init__(root, **options)
        self._view = view
        self._texts: dict[Path, list[bytes]] = {}
        self._files = {
            subset: file for subset in SUBSETS if (file := find_file(root, [name.format(subset) for name in LISTS])) is not None
        }
        if not self._files:
            raise self.wrong_folder(root, "cross_{task,website,domain}_blocks.jsonl and no cross_<subset>/sample.jsonl")

    def index(self) -> Sequence[EpisodeRef]:
        refs: list[EpisodeRef] = []
        for subset, file in self._files.items():
            tasks: dict[str, dict[int, int]] = {}  # of each task: its steps, with the line each is on
            for number, line in self._lines(file):
                try:
                    task, position = _place(line_row(file, number, line), tasks)
                except DataError as error:
                    self.refuse(error)
                    continue
                tasks.setdefault(task, {})[position] = number
            for task, steps in tasks.items():
                lines = tuple(steps[position] for position in sorted(steps))
                refs.append(EpisodeRef(EpisodeKey(self.name, subset, task), len(lines), lines))
        if not refs and not self.skipped:
            names = ", ".join(str(file) for file in self._files.values())
            raise UsageError(f"the lists {names} are empty; expected {self.source}")
        return refs

    def _lines(self, file: Path) -> Iterator[tuple[int, bytes]]:
        try:
            content = self._content(file)
        except DataError as error:
            self.refuse(error)
            return
        yield from ((number, line) for number, line in enumerate(content, 1) if line.strip())

    def _content(self, file: Path) -> list[bytes]:
        """The file's lines, kept after the first reading: the three lists are 4.7 megabytes."""
        if file not in self._texts:
            self._texts[file] = read_whole(file).splitlines()
        return self._texts[file]

    def load(self, ref: EpisodeRef) -> Episode:
        file = self._files[ref.key.subset]
        content = self._content(file)
        rows = [line_row(file, number, content[number - 1]) for number in ref.locator]
        steps = [self._step(row, ref, index, len(rows)) for index, row in enumerate(rows)]
        return episode(f"{file}, task {ref.key.episode_id!r}", steps)

    def _step(self, row: Row, ref: EpisodeRef, index: int, length: int) -> StepTaskModel:
        image = self._image(row, ref.key.subset)
        action = _action(row, image)
        extras = {name: row.value(name) for name in ("action_uid", "step", "total_steps", "previous_actions", "bbox")}
        extras |= {name: row.values[name] for name in ("website", "subdomain") if name in row}
        return step(
            row.where,
            **placed(self, ref, index, length),
            instruction=row.text("task"),
            screenshot=image.path,
            screenshot_size=image.size,
            action=action,
            targets=row.build("bbox", lambda: Boxes([_corners(box, image.size) for box in image.boxes])),
            groups={"domain": row.text("domain"), "target": "present" if image.boxes else "absent"},
            extras={**extras, "screen_size_from": image.size_from},
        )

    def _image(self, row: Row, subset: str) -> _Image:
        """The block or page the step shows. Only boxes whose middle is on it count."""
        in_page = _boxes(row, row.value("bbox"), "bbox")
        if (self._view or ("block" if "target_blocks" in row or "image" not in row else "page")) == "page":
            path = self._path(PAGES, subset, row.text("image") if "image" in row else _blocks_path(row))
            return self._measured(row, path, None, in_page)
        number, boxes = _first_block(row, in_page)
        path = self._path(BLOCKS, subset, f"{_blocks_path(row)}/{number}.png")
        return self._measured(row, path, BLOCK, boxes)

    def _path(self, folders: Sequence[str], subset: str, name: str) -> str:
        return find_image(self.root, *(f"{folder.format(subset)}/{name}" for folder in folders))

    def _measured(self, row: Row, path: str, nominal: Size | None, boxes: Sequence[_Box]) -> _Image:
        size = size_of(row, "blocks_path", self.root, path)
        stated = "image" if size else "nominal block"
        size = size or nominal
        if size is None:
            raise row.error("bbox", f"there is no image {path!r} in {str(self.root)!r}, whose size is needed to read the label")
        width, height = size
        seen = [box for box in boxes if 0 <= box[0] + box[2] / 2 <= width and 0 <= box[1] + box[3] / 2 <= height]
        return _Image(path, size, stated, seen)


def _place(row: Row, tasks: Mapping[str, Mapping[int, int]]) -> tuple[str, int]:
    """The task a row is of, and which step of it; ``tasks`` are the rows before it."""
    task, position = row.text("annotation_id"), row.whole("step")
    if not task:
        raise row.error("annotation_id", "expected a name, got ''")
    if position < 0:
        raise row.error("step", f"expected a position from 0, got {position}")
    if "blocks_path" in row and row.text("blocks_path") != f"{task}_{row.text('action_uid')}":
        raise row.error("annotation_id", f"{task!r} is not that of blocks_path {row.text('blocks_path')!r:.100}")
    if position in tasks.get(task, {}):
        raise row.error("step", f"{position} of task {task!r} is already on line {tasks[task][position]}")
    return task, position


def _boxes(row: Row, value: Any, name: str) -> list[_Box]:
    if not isinstance(value, list):
        raise row.error(name, f"expected a list of boxes, got {value!r:.80}")
    for box in value:
        if not isinstance(box, list) or len(box) != 4 or not all(_pixels(side) for side in box):
            raise row.error(name, f"expected boxes [x, y, width, height] in pixels, got {box!r:.80}")
        if box[2] < 0 or box[3] < 0:
            raise row.error(name, f"expected a width and a height of at least 0, got {box!r:.80}")
    return value


def _pixels(value: Any) -> bool:
    """Whether a value can be a number of pixels; not-a-number and infinities cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e9 < value < 1e9


def _first_block(row: Row, in_page: list[_Box]) -> tuple[int, list[_Box]]:
    """The first block with a target, by its number, and its boxes in pixels of the block."""
    targets: dict[int, list[_Box]] = {}
    for key, value in row.row("target_blocks").values.items():
        if not key.isdecimal():
            raise row.error("target_blocks", f"expected numbers of blocks, got {key!r:.80}")
        targets[int(key)] = _boxes(row, value, "target_blocks")
    for number, boxes in sorted(targets.items()):
        if boxes:
            return number, boxes
    for x, y, width, height in in_page:
        number = max(0, -int(-(y + height - BLOCK[1]) // BLOCK_STEP))  # the first whose lower edge is not above the box's
        if y >= number * BLOCK_STEP:
            return number, [[x, y - number * BLOCK_STEP, width, height]]
    return 0, []


def _blocks_path(row: Row) -> str:
    return f"{row.text('annotation_id')}_{row.text('action_uid')}"


def _action(row: Row, image: _Image) -> Action:
    match row.text("operation"):
        case "CLICK" if not image.boxes:
            return Unsupported(name="CLICK", arguments={"bbox": []})
        case "CLICK":
            x, y, width, height = image.boxes[0]
            return row.build("bbox", lambda: Click(point=PIXELS.decode(x + width / 2, y + height / 2, image.size)))
        case "TYPE":
            return Type(text=row.text("value"))
        case "SELECT":
            return Unsupported(name="SELECT", arguments={"value": row.text("value")})
        case name:
            raise row.error("operation", f"expected CLICK, TYPE or SELECT, got {name!r:.80}")


def _corners(box: _Box, size: Size) -> list[float]:
    (x, y, width, height), (wide, high) = box, size
    return [1000 * x / wide, 1000 * y / high, 1000 * (x + width) / wide, 1000 * (y + height) / high]
