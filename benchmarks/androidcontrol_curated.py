"""AndroidControl-Curated (Leung et al., 2025), its point files: 7,708 steps of AndroidControl's test split, high and low.

Put ``android_control_high_point.json`` or ``android_control_low_point.json``, packed with gzip or not, into a folder, or use a
clone of github.com/batechworks/AndroidControl_Curated (``src/benchmark_resource/``). Screenshots are looked for next to the
folder of the file and above it, by the names of the rows (``android_control_high/image_<n>.jpg``); the repository does not
have them.

Layout: one JSON list; a row has ``image``, ``instruction`` (the goal; in the low file the step's instruction), ``history``
(the instructions of the earlier steps; only in the high file) and the label:

==============  ===================================  ================================================================
``gt_action``   further fields                       unified action
==============  ===================================  ================================================================
click           ``gt_bbox``, [x, y] in pixels        CLICK
long_press      ``gt_bbox``, [x, y] in pixels        LONG_PRESS
type            ``gt_input_text``                    TYPE
open_app        ``gt_input_text``                    OPEN
scroll          ``gt_input_text``, UP, DOWN, ...     SCROLL from the middle of the screen, against the word, which names
                                                     where the content is explored; ``extras["direction_label"]``
press_back      none                                 PRESS BACK
wait            none                                 WAIT
==============  ===================================  ================================================================

These labels are not AndroidControl's own. Compared with UI-S1's file, points lie up to 2 pixels further left and 4 further up
(97 of 4,598 clicks agree), and 331 of 569 texts and 166 of 554 app names stop at their first blank ("Leonardo", "To"; 13 are
empty), so that protocols which want equal texts are harder here.

Rows do not name their episode. In the high file goal and history tell: a row with a history of n steps follows the one of the
same goal whose history is the first n - 1 of them. That gives the 1,412 episodes of the sample set without a gap, each named
by the number of its first image. Fourteen goals have two or three episodes; if their histories agree word for word, a step
continues the episode whose latest image has the nearest number; against UI-S1's file all of them are right.
``extras["past_instructions"]`` keeps a row's history. A row of the low file is an episode of its own.

The files do not state the sizes of the screens. A step's size is its image's if there is one, else 1080x2400, or 1440x3120
if a point of the episode is outside of that. ``extras["screen_size_from"]`` names the source: image or fit.

The other three files (boxes of the target, and the improved goals with several accepted actions) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import DataError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey

from ._androidcontrol_screens import screen_for
from ._examples import written_by
from ._grounding import find_file
from ._images import find_image, size_of
from ._rows import Row, episode, one_of, placed, read_list, step

FOLDERS = ("", "benchmark_resource/", "src/benchmark_resource/")
ACTIONS = ("click", "long_press", "type", "open_app", "scroll", "press_back", "wait")
_SOURCE = "src/benchmark_resource/android_control_{}_point.json of github.com/batechworks/AndroidControl_Curated"
_TYPES: dict[act.ActionType, int] = {
    "CLICK": 4598,
    "SCROLL": 1138,
    "TYPE": 569,
    "OPEN": 554,
    "WAIT": 527,
    "PRESS": 315,
    "LONG_PRESS": 7,
}
_NUMBER = re.compile(r"_(\d+)\.\w+$")
_STEP = re.compile(r"(?:^|\n)Step \d+:")
_NO_HISTORY = " \nNone\n"


class PlacedRow(NamedTuple):
    """A row with its image's number and the instructions of the steps before it."""

    row: Row
    image: int
    past: tuple[str, ...]


class AndroidControlCurated(ABCBenchmark):
    """AndroidControl-Curated with the goal as the only instruction (*hard*, from the point file)."""

    name = "androidcontrol-curated"
    title = "AndroidControl-Curated (high, points)"
    source = (
        "huggingface.co/datasets/batwBMW/AndroidControl_Curated: benchmark_resource/android_control_high_point.json, "
        "also in src/benchmark_resource of github.com/batechworks/AndroidControl_Curated; AndroidControl's screenshots as "
        "android_control_high/image_<n>.jpg if there are any"
    )
    paper = "arXiv 2510.18488"
    licence = "none found stated (AndroidControl itself is CC BY 4.0)"
    published: ClassVar[tuple[PublishedCount, ...]] = (
        PublishedCount("high, points", 7708, _SOURCE.format("high"), 1412, types=_TYPES),
    )
    protocol = "ac-curated"
    dataset = "androidcontrol"
    action_space = act.ActionSpace(frozenset(_TYPES), frozenset({"BACK"}), frozenset())
    write_example = written_by("androidcontrol_curated.write_high")
    file: ClassVar[str] = "android_control_high_point.json"

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        file = find_file(root, [folder + self.file for folder in FOLDERS])
        if file is None:
            raise self.wrong_folder(root, self.file)
        self._file = file
        inside = file.parent.relative_to(root)
        self._image_folders = [f"{folder.as_posix()}/".removeprefix("./") for folder in (inside, *inside.parents)]

    @cached_property
    def _episodes(self) -> dict[str, list[PlacedRow]]:
        """The rows by episode, in order; the whole file is 4 MB."""
        return self._joined(list(self._rows()))

    def _rows(self) -> Iterator[PlacedRow]:
        images: dict[int, Row] = {}
        for number, value in enumerate(read_list(self._file)):
            try:
                row = Row.of(value, f"{self._file}, row {number}")
                image = _number(row)
                if image in images:
                    raise row.error("image", f"{row.value('image')!r:.80} is already that of {images[image].where}")
                images[image] = row
                yield PlacedRow(row, image, self._past(row))
            except DataError as error:
                self.refuse(error)

    def _past(self, row: Row) -> tuple[str, ...]:
        text = row.text("history")
        if text == _NO_HISTORY:
            return ()
        before, *past = _STEP.split(text.strip("\n").removeprefix(" \n"))
        if before.strip() or not past:
            raise row.error("history", f"expected None or lines of steps, got {text!r:.80}")
        return tuple(words.strip() for words in past)

    def _joined(self, rows: Sequence[PlacedRow]) -> dict[str, list[PlacedRow]]:
        """Every row appended to the episode that it continues."""
        episodes: dict[str, list[PlacedRow]] = {}
        open_ends: dict[tuple[str, tuple[str, ...]], list[list[PlacedRow]]] = {}
        for placed_row in sorted(rows, key=lambda each: (len(each.past), each.image)):
            try:
                goal, past = placed_row.row.text("instruction"), placed_row.past
                if not past:
                    steps = episodes[str(placed_row.image)] = []
                else:
                    ends = [end for end in open_ends.get((goal, past[:-1]), []) if len(end) == len(past)]
                    if not ends:
                        raise placed_row.row.error("history", f"no step of the same goal comes before it: {past[-1]!r:.80}")
                    steps = min(ends, key=lambda end: abs(end[-1].image - placed_row.image))
                steps.append(placed_row)
                open_ends.setdefault((goal, past), []).append(steps)
            except DataError as error:
                self.refuse(error)
        return dict(sorted(episodes.items(), key=lambda each: int(each[0])))

    def index(self) -> Sequence[EpisodeRef]:
        if not self._episodes and not self.skipped:
            raise self.wrong_folder(self.root, f"step: its list in {self._file.name} is empty")
        return [EpisodeRef(EpisodeKey(self.name, "", name), len(steps), name) for name, steps in self._episodes.items()]

    def load(self, ref: EpisodeRef) -> Episode:
        entries = self._episodes[ref.locator]
        screen, _ = screen_for(
            "", [_pixels(each.row) for each in entries if one_of(each.row, "gt_action", ACTIONS) in _POINTED]
        )
        steps = []
        for index, (row, _, past) in enumerate(entries):
            name = row.text("image")
            screenshot = find_image(self.root, *(folder + name for folder in self._image_folders))
            image = size_of(row, "image", self.root, screenshot)
            extras: dict[str, Any] = {"past_instructions": list(past), "screen_size_from": "image" if image else "fit"}
            instruction = row.text("instruction")
            steps.append(
                step(
                    row.where,
                    **placed(self, ref, index, len(entries)),
                    instruction=instruction,
                    low_level_instruction=instruction if self.setting == "low" else None,
                    screenshot=screenshot,
                    screenshot_size=image or screen,
                    action=_action(row, image or screen, extras),
                    extras=extras,
                )
            )
        return episode(f"{self._file}, episode {ref.key.episode_id}", steps)


class AndroidControlCuratedLow(AndroidControlCurated):
    """AndroidControl-Curated with the step's own instruction (*easy*, from the point file); every step is an episode."""

    name = "androidcontrol-curated-low"
    title = "AndroidControl-Curated (low, points)"
    source = AndroidControlCurated.source.replace("_high", "_low")
    setting = "low"
    published = (PublishedCount("low, points", 7708, _SOURCE.format("low"), 7708, types=_TYPES),)
    write_example = written_by("androidcontrol_curated.write_low")
    file = "android_control_low_point.json"

    def _past(self, row: Row) -> tuple[str, ...]:
        return ()


_POINTED = ("click", "long_press")


def _number(row: Row) -> int:
    match = _NUMBER.search(row.text("image"))
    if match is None:
        raise row.error("image", f"expected a name that ends with _<number>, got {row.value('image')!r:.80}")
    return int(match.group(1))


def _pixels(row: Row) -> tuple[float, float]:
    x, y = row.numbers("gt_bbox", 2)
    return x, y


def _action(row: Row, size: Size, extras: dict[str, Any]) -> act.Action:
    match one_of(row, "gt_action", ACTIONS):
        case "click" | "long_press" as name:
            kind = act.Click if name == "click" else act.LongPress
            return row.build("gt_bbox", lambda: kind(point=PIXELS.decode(*_pixels(row), size)))
        case "scroll":
            extras["direction_label"] = word = one_of(row, "gt_input_text", act.DIRECTIONS, str.lower)
            return act.Scroll(point=act.Point(500.0, 500.0), direction=act.OPPOSITE[word])
        case "type" | "open_app" as name:
            text = row.text("gt_input_text")
            return act.Type(text=text) if name == "type" else act.Open(app=text)
        case name:
            return act.Press(button="BACK") if name == "press_back" else act.Wait()
