"""MobiBench (Im et al., 2025): recorded tasks in Android apps with every action that is acceptable on each screen.

The repository (github.com/fclab-skku/Mobi-Bench) links to the data, a folder on Google Drive. Its list of tasks
(``dataset/mobibench_tasks_info.tsv``) names 508.

**Layout**: a folder a task, directly in the data folder, in its ``dataset/``, or in a folder of an app there, as the authors'
program expects it. Step i has ``<i>.png`` and ``<i>_answers.json``, counted from 0 without gaps; ``instruction.txt`` is the
goal; if it is absent or empty, the name of the folder is, with blanks for underscores. View hierarchies (``<i>.xml``)
are not read. Sizes are not stated, so loading an episode reads the headers of its images.

**Labels**: a list of accepted actions, each with ``type``, ``bounds`` ("[x1,y1][x2,y2]" in pixels), ``params`` and
``default``. The reference is the first default one (the first of all if none is); the others are alternatives.

=====================  ==========================  ====================================================================
``type``               further fields              unified action
=====================  ==========================  ====================================================================
Click, Long Click      ``bounds``                  CLICK, LONG_PRESS on the middle of the box
Input                  ``params``: ``text``        TYPE (the field's place has no unified word)
Scroll, Swipe          none that count             SCROLL in all four directions, as the authors' scorer accepts any
OpenApp, Open App      ``params``: ``app``         OPEN
Navigate Back          none                        PRESS BACK
Finish                 none                        STOP
any other              all                         UNSUPPORTED, which the authors' scorer never accepts either
=====================  ==========================  ====================================================================

``targets`` are those of clicks and long clicks; ``extras["accepted"]`` keeps the list as it is. The group ``app`` is the
folder above the task's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import DataError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._images import needed_size
from ._rows import Row, episode, listed, pixel_boxes, placed, read_list, read_whole, step

FOLDERS = ("", "dataset")
FIRST = "0_answers.json"
_ANSWERS = re.compile(r"(\d+)_answers\.json")
_BOUNDS = re.compile(r"\[(\d+),(\d+)\]\[(\d+),(\d+)\]")


class MobiBench(ABCBenchmark):
    """MobiBench's recorded tasks, with several accepted actions a step."""

    name = "mobi-bench"
    title = "MobiBench"
    source = (
        "drive.google.com/drive/folders/11MaohFL5ggQGJEQWtbnjOzCb67z1Ff2E, linked by github.com/fclab-skku/Mobi-Bench: "
        "<app>/<task>/ or <task>/ with <i>.png, <i>_answers.json and instruction.txt"
    )
    paper = "arXiv 2512.12634"
    licence = "none found stated"
    published = (
        PublishedCount("all", None, "github.com/fclab-skku/Mobi-Bench, dataset/mobibench_tasks_info.tsv: a row a task", 508),
    )
    protocol = "mobi-bench"
    dataset = "mobi-bench"
    action_space = act.ActionSpace(
        frozenset({"CLICK", "LONG_PRESS", "TYPE", "SCROLL", "OPEN", "PRESS", "STOP"}),
        frozenset({"BACK"}),
        frozenset({"finish"}),
    )
    write_example = written_by("mobi_bench.write_mobi_bench")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        found = [root / name for name in FOLDERS if any(_tasks(root / name))]
        if not found:
            raise self.wrong_folder(root, f"<task>/{FIRST}, directly or in a folder of an app")
        self._folder = found[0]

    def index(self) -> Sequence[EpisodeRef]:
        tasks = sorted(_tasks(self._folder), key=lambda task: [_natural(part) for part in task.relative_to(self._folder).parts])
        return listed(self, tasks, self._ref)

    def _ref(self, task: Path) -> EpisodeRef:
        numbers = sorted(int(match.group(1)) for file in task.iterdir() if (match := _ANSWERS.fullmatch(file.name)))
        missing = next((number for number, found in enumerate(numbers) if number != found), None)
        if missing is not None:
            raise DataError(f"{task}: there are {len(numbers)} steps, but no {missing}_answers.json")
        name = task.relative_to(self._folder).as_posix()
        return EpisodeRef(EpisodeKey(self.name, "", name), len(numbers), task)

    def load(self, ref: EpisodeRef) -> Episode:
        goal = _goal(ref.locator)
        return episode(str(ref.locator), [self._step(ref, index, goal) for index in range(ref.length)])

    def _step(self, ref: EpisodeRef, index: int, goal: str) -> StepTaskModel:
        file: Path = ref.locator / f"{index}_answers.json"
        answers = [Row.of(value, f"{file}, action {number}") for number, value in enumerate(read_list(file))]
        if not answers:
            raise DataError(f"{file}: expected a list of accepted actions, got []")
        answers.sort(key=lambda answer: not _is_default(answer))
        screenshot = (ref.locator / f"{index}.png").relative_to(self.root).as_posix()
        size = needed_size(answers[0], "the step's image", self.root, screenshot)
        accepted: list[act.Action] = []
        boxes: list[tuple[float, ...]] = []
        for answer in answers:
            accepted += [action for action in _actions(answer, size, boxes) if action not in accepted]
        folders = ref.key.episode_id.split("/")[:-1]
        return step(
            str(file),
            **placed(self, ref, index, ref.length),
            instruction=goal,
            screenshot=screenshot,
            screenshot_size=size,
            action=accepted[0],
            alternatives=tuple(accepted[1:]),
            targets=pixel_boxes(boxes, size) if boxes else act.Boxes(),
            groups={"app": folders[-1]} if folders else {},
            extras={"accepted": [dict(answer.values) for answer in answers]},
        )


def _tasks(folder: Path) -> Iterator[Path]:
    """The folders of tasks in a folder and in the folders in it."""
    return (file.parent for pattern in (f"*/{FIRST}", f"*/*/{FIRST}") for file in folder.glob(pattern))


def _natural(name: str) -> tuple[bool, int, str]:
    return (False, int(name), "") if name.isdecimal() else (True, 0, name)


def _goal(task: Path) -> str:
    file = task / "instruction.txt"
    if not file.is_file():
        return task.name.replace("_", " ")
    try:
        text = read_whole(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: is not UTF-8 text ({error})") from None
    return " ".join(text.split()) or task.name.replace("_", " ")


def _is_default(answer: Row) -> bool:
    value = answer.values.get("default", False)
    if not isinstance(value, bool):
        raise answer.error("default", f"expected true or false, got {value!r:.80}")
    return value


def _actions(answer: Row, size: Size, boxes: list[tuple[float, ...]]) -> list[act.Action]:
    """The unified actions that an accepted action means; the box of a click is added to ``boxes``."""
    match answer.text("type").lower().replace(" ", "_"):
        case "click" | "long_click" as name:
            x1, y1, x2, y2 = corners = _corners(answer)
            boxes.append(corners)
            point = answer.build("bounds", lambda: PIXELS.decode((x1 + x2) / 2, (y1 + y2) / 2, size))
            return [act.Click(point=point) if name == "click" else act.LongPress(point=point)]
        case "input":
            return [act.Type(text=_param(answer, "text"))]
        case "scroll" | "swipe":
            return [act.Scroll(point=act.Point(500, 500), direction=direction) for direction in act.DIRECTIONS]
        case "openapp" | "open_app":
            return [act.Open(app=_param(answer, "app"))]
        case "navigate_back":
            return [act.Press(button="BACK")]
        case "finish":
            return [act.Stop()]
        case name:
            return [act.Unsupported(name=name, arguments={key: value for key, value in answer.values.items() if key != "type"})]


def _param(answer: Row, name: str) -> str:
    return answer.row("params").text(name)


def _corners(answer: Row) -> tuple[float, ...]:
    match = _BOUNDS.fullmatch(answer.text("bounds").replace(" ", ""))
    corners = tuple(map(float, match.groups())) if match else ()
    if not corners or not (corners[0] <= corners[2] and corners[1] <= corners[3]):
        raise answer.error(
            "bounds", f"expected [x1,y1][x2,y2], the upper left corner first, got {answer.value('bounds')!r:.80}"
        )
    return corners
