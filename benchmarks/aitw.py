"""Android in the Wild (AITW; Rawles et al., 2023), in the instruction-wise split that SeeClick made and others use since.

The original release, TFRecords of 715,142 episodes, is not read.

Layout: ``aitw_data_test.json``, ``aitw_data_val.json`` and ``aitw_data_train.json``, any of them, with the screenshots below
``aitw_images/``, ``aitw_imgs/`` or ``images/``, or in the folder itself. A file is one object: for each of the subsets
general, single, webshopping, install and googleapps a list of episodes, each a list of steps. The
parsed files stay in memory.

Labels: ``action_type_id`` has AITW's codes: 3 types ``type_text``, 5, 6 and 7 press BACK, HOME and ENTER, 10 ends the task
as done, 11 as impossible. With 4, ``action_type_text`` says "click", at ``touch``, or "scroll" and a direction. Touch and lift
are [x, y] fractions. A scroll's direction here is the finger's, from touch to lift as in AITW; the word after "scroll" is
SeeClick's, names the way the view moves over the page (SeeClick's scorer draws "scroll down" as a path upwards), and is kept
as ``extras["direction_label"]``. If touch and lift of a "click" are apart, both are kept as ``extras["path"]``. The boxes
(``annot_position``) are y, x, height, width fractions one after the other.

SeeClick publishes no counts; according to UIPro's evaluation, the test file has 578 episodes with 4,663 steps. The sizes of
the screens are not stated, so loading reads the images' headers. SeeClick's scorer passes over a step whose screenshot is
missing (some are in "single", whose names are too long for some file systems); here the whole episode is
damaged then, to be left out with --skip-damaged. Assumed: the point of a click is where the finger touched, as SeeClick's
scorer has it (its training data takes the middle of touch and lift).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval.actions import Action, ActionSpace, Click, Point, Scroll, Type, path_direction
from guieval.data.aitw_labels import CODES_ALONE, TAP_DISTANCE, boxes_from_fractions, swipe_path
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError
from guieval.frames import RELATIVE
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._images import needed_size
from ._rows import Row, episode, listed, placed, read_row, step, step_rows

FILES = {"test": "aitw_data_test.json", "validation": "aitw_data_val.json", "train": "aitw_data_train.json"}
SUBSETS = ("general", "single", "webshopping", "install", "googleapps")
IMAGE_FOLDERS = ("aitw_images", "aitw_imgs", "images")


class AITW(ABCBenchmark):
    """Android in the Wild in SeeClick's JSON files."""

    name = "aitw"
    title = "AITW (SeeClick's split)"
    source = (
        "the AITW annotations and screenshots that agent_tasks/readme_agent.md of github.com/njucckevin/SeeClick links "
        "(aitw_data_{test,val,train}.json with aitw_images/)"
    )
    paper = "arXiv 2307.10088, split by arXiv 2401.10935"
    licence = "CC BY 4.0 for the original data; none stated for SeeClick's extract"
    dataset = "aitw"
    protocol = "aitw-original"
    action_space = ActionSpace(frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "STOP"}))
    write_example = written_by("aitw.write_aitw")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        self._files = {split: root / name for split, name in FILES.items() if (root / name).is_file()}
        if not self._files:
            raise self.wrong_folder(root, ", ".join(FILES.values()))
        self._images = next((f"{folder}/" for folder in IMAGE_FOLDERS if (root / folder).is_dir()), "")

    def index(self) -> Sequence[EpisodeRef]:
        return listed(self, self._episodes.items(), self._ref)

    @cached_property
    def _episodes(self) -> dict[str, tuple[str, str, Any]]:
        """Split, subset and list of steps of every episode, by its place in messages."""
        episodes: dict[str, tuple[str, str, Any]] = {}
        for split, file in self._files.items():
            try:
                episodes |= {where: (split, subset, steps) for where, subset, steps in _episodes_in(file)}
            except DataError as error:
                self.refuse(error)
        return episodes

    def _ref(self, item: tuple[str, tuple[str, str, Any]]) -> EpisodeRef:
        where, (split, subset, steps) = item
        rows = step_rows(steps, where, "ep_id")
        return EpisodeRef(EpisodeKey(self.name, subset, rows[0].text("ep_id")), len(rows), where, split)

    def load(self, ref: EpisodeRef) -> Episode:
        rows = step_rows(self._episodes[ref.locator][2], ref.locator, "ep_id")
        return episode(ref.locator, [self._step(ref, index, len(rows), row) for index, row in enumerate(rows)])

    def _step(self, ref: EpisodeRef, index: int, length: int, row: Row) -> StepTaskModel:
        extras: dict[str, Any] = {}
        if (stated := row.whole("step")) != index:
            extras["step_id"] = stated
        action = _action(row, extras)
        screenshot = f"{self._images}{row.text('img_filename')}.png"
        return step(
            row.where,
            **placed(self, ref, index, length),
            instruction=row.text("goal"),
            screenshot=screenshot,
            screenshot_size=needed_size(row, "img_filename", self.root, screenshot),
            action=action,
            elements=row.build("annot_position", lambda: boxes_from_fractions(_boxes(row))),
            extras=extras,
        )


def _action(row: Row, extras: dict[str, Any]) -> Action:
    match row.whole("action_type_id"):
        case 3:
            return Type(text=row.text("type_text"))
        case 4:
            return _gesture(row, extras)
        case 5 | 6 | 7 | 10 | 11 as code:
            return CODES_ALONE[code]
        case code:
            raise row.error("action_type_id", f"expected one of 3, 4, 5, 6, 7, 10, 11, got {code}")


def _gesture(row: Row, extras: dict[str, Any]) -> Action:
    touch_x, touch_y = row.numbers("touch", 2)
    lift_x, lift_y = row.numbers("lift", 2)
    point: Point = row.build("touch", lambda: RELATIVE.decode(touch_x, touch_y, (1, 1)))
    path = swipe_path(row, "lift", point, lift_x, lift_y)
    word = row.text("action_type_text")
    if word == "click":
        if math.hypot(lift_x - touch_x, lift_y - touch_y) > TAP_DISTANCE:
            extras["path"] = path
        return Click(point=point)
    if word not in ("scroll up", "scroll down", "scroll left", "scroll right"):
        raise row.error("action_type_text", f"expected click, or scroll and up, down, left or right, got {word!r:.80}")
    direction = path_direction((touch_x, touch_y), (lift_x, lift_y))
    if direction is None:
        raise row.error("lift", f"expected another place than touch for a scroll, got {row.value('lift')!r:.80}")
    extras |= {"direction_label": word.removeprefix("scroll "), "path": path}
    return Scroll(point=point, direction=direction)


def _boxes(row: Row) -> list[list[float]]:
    if row.values.get("annot_position") is None:
        return []
    flat = row.value("annot_position")
    if not isinstance(flat, list) or len(flat) % 4:
        raise row.error("annot_position", f"expected y, x, height, width one after the other, got {flat!r:.80}")
    numbers = row.numbers("annot_position", len(flat))
    return [list(numbers[start : start + 4]) for start in range(0, len(numbers), 4)]


def _episodes_in(file: Path) -> Iterator[tuple[str, str, Any]]:
    """Place, subset and list of steps of every episode; :class:`DataError` if the file does not hold every subset."""
    row = read_row(file)
    for subset, episodes in row.values.items():
        if subset not in SUBSETS:
            raise DataError(f"{file}: expected the fields {', '.join(SUBSETS)}, got {subset!r:.80}")
        if not isinstance(episodes, list) or not episodes:
            raise row.error(subset, f"expected a list of episodes, got {episodes!r:.80}")
        yield from ((f"{file}, {subset} episode {number}", subset, steps) for number, steps in enumerate(episodes))
    if missing := [subset for subset in SUBSETS if subset not in row]:
        raise row.error(missing[0], "is missing, and a score over the other subsets alone would mislead")
