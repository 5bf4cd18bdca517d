"""AndroidControl (Li et al., 2024): 15,283 episodes of everyday tasks on Android, with a goal and an instruction a step.

Three layouts are read:

- The authors' release, by ``guieval data prepare androidcontrol --source RELEASE --out DIR`` (:mod:`._androidcontrol_release`):
  ``android_control-00000-of-00020`` to ``-00019-`` (20 shards, 50 GB), ``splits.json``, ``test_subsplits.json``. TensorFlow is
  not needed. A release that lacks shards is refused, unless with --skip-damaged; those that come later are added by the same
  command. By default the test and the validation split are taken (``--set splits=all`` takes everything) and every episode
  gets a finish step on its last screenshot (``--set finish=false`` leaves it out).
- GUIEvalKit's folder, in place (:mod:`._guievalkit_folder`): ``test/android_control/<episode>/<episode>.json`` below the given
  folder, which may also be one of those inner folders; the screenshots are next to ``test``. Its 1,680 episodes are the test
  and the validation split together, all of them called "test" here as there, each with a finish step at its end.
- UI-S1's file, in place (:mod:`._ui_s1_steps`): ``android_control_evaluation_std.jsonl`` (the test split, no finish steps),
  its training files, or another named by the option ``file``, packed with gzip or not, with the images as
  ``images/<episode>_<step>.png`` if at all. It does not state the sizes of the screens.

The data has no labels for finishing: a finish step has the screenshot after the last action, as AgentCPM-GUI and
GUIEvalKit add it; the option ``finish=False`` leaves such steps out of any layout.

Labels: click and long_press are points in pixels; input_text types without confirming; open_app names an app; navigate_back
and navigate_home are buttons; wait has no duration. Scroll labels name the direction in which the content is explored; all
layouts are turned into the finger's direction, and ``extras["direction_label"]`` keeps the word if the layout has it. What
the layouts assume beyond that is in their modules. Which steps a published number counts, and how a step is judged, is defined
by sample sets and evaluation protocols.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from guieval.actions import ActionType
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount, Release
from guieval.data.plugin_options import check_options
from guieval.errors import UsageError
from guieval.frames import Size
from guieval.steps import Episode

from ._androidcontrol_release import AndroidControlRelease, shards
from ._grounding import find_file
from ._guievalkit_folder import EpisodeFolder, episodes_folder, folder_of_test
from ._ui_s1_steps import StepsFile

STEPS_FILES = ("android_control_evaluation_std.jsonl", "android_control_train_example.jsonl")

_UI_S1 = "UI-S1's android_control_evaluation_std.jsonl (X-PLUG/MobileAgent, UI-S1/evaluation/dataset)"
_KIT = "AgentCPM-GUI's and GUIEvalKit's process_ac.py; their results count the 10,161 of these steps that do not open an app"
_FINISH = " and a finish step an episode"
_PAPER = "the paper's table 3 (arXiv 2406.03679)"

_TEST: dict[ActionType, int] = {
    "CLICK": 5074,
    "SCROLL": 1211,
    "TYPE": 632,
    "OPEN": 608,
    "WAIT": 567,
    "PRESS": 343,
    "LONG_PRESS": 9,
}
_NOT_TRAINED: dict[ActionType, int] = {"SCROLL": 1297, "TYPE": 685, "OPEN": 653, "WAIT": 623, "PRESS": 372, "STOP": 1680}
_TRAIN_EXAMPLE = "UI-S1/datasets/android_control_train_example.jsonl of X-PLUG/MobileAgent"

PUBLISHED = (
    PublishedCount("test split", 8444, _UI_S1, episodes=1543, split="test", types={**_TEST, "STOP": 0}),
    PublishedCount("test split with finish steps", 9987, _UI_S1 + _FINISH, 1543, split="test", types={**_TEST, "STOP": 1543}),
    PublishedCount("GUIEvalKit's test folder", 10814, _KIT, episodes=1680, split="test", types=_NOT_TRAINED),
    PublishedCount("validation split", 690, _PAPER, episodes=137, split="validation", types={"STOP": 0}),
    PublishedCount("validation split with finish steps", 827, _PAPER + _FINISH, 137, split="validation", types={"STOP": 137}),
    PublishedCount("train split", 74722, _PAPER, episodes=13604, split="train", types={"STOP": 0}),
    PublishedCount("UI-S1's training example", 206, _TRAIN_EXAMPLE, episodes=32, split="train", types={"STOP": 32}),
)
"""The official splits, with and without finish steps, and the files made from them; their STOP steps tell the layouts apart.

GUIEvalKit's folder is the test and the validation split together. Its clicks and long presses are left out: AgentCPM-GUI, which
counted 5,504 clicks, made clicks of the long presses. The shards of the train split hold 13,603
episodes and 74,714 actions (by their source), 9 episodes without any: 1 episode and 8 steps fewer than the paper's table.
"""


class AndroidControl(ABCBenchmark):
    """AndroidControl with the goal as the only instruction (*high*).

    ``screen_size`` ("WIDTHxHEIGHT" or a pair) is the size of all screens of a UI-S1 file without images; ``file`` names
    another annotation file of that format in ``root``. ``finish=False`` leaves out finish steps.
    """

    name = "androidcontrol"
    title = "AndroidControl (high)"
    source = (
        "AndroidControl (arXiv 2406.03679, CC BY 4.0; gs://gresearch/android_control) by `guieval data prepare`, "
        "as prepared by GUIEvalKit's data/process_ac.py "
        "(test/android_control/<episode>/<episode>.json), or as android_control_evaluation_std.jsonl[.gz] "
        "from UI-S1/evaluation/dataset of github.com/X-PLUG/MobileAgent"
    )
    paper = "arXiv 2406.03679"
    licence = "CC BY 4.0 (google-research's data sets); the data set's README says Apache-2.0"
    published = PUBLISHED
    protocol = "guievalkit"
    dataset = "androidcontrol"

    def __init__(
        self,
        root: Path,
        *,
        screen_size: str | Sequence[int] | None = None,
        file: str | None = None,
        finish: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(root, **options)
        folder = episodes_folder(root) if file is None else None
        if folder is not None:
            if screen_size is not None:
                raise UsageError(
                    f"screen_size={screen_size!r} has no use here: the steps in {str(folder)!r} state the size of their screens"
                )
            self.root = folder_of_test(root, folder)
            self._layout: EpisodeFolder | StepsFile = EpisodeFolder(self, folder, finish=finish)
        else:
            size = None if screen_size is None else _parse_size(screen_size)
            self._layout = StepsFile(self, self._steps_file(file), size, finish=finish)

    def skipping_damaged(self) -> Self:
        other = super().skipping_damaged()
        other._layout = copy(self._layout)
        other._layout.benchmark = other  # the layout passes what is damaged to its benchmark
        return other

    def _steps_file(self, file: str | None) -> Path:
        if found := find_file(self.root, STEPS_FILES) if file is None else find_file(self.root, [file]):
            return found
        if file is not None:
            raise UsageError(f"there is no annotation file {file!r} in {str(self.root)!r}")
        if shards(self.root):
            raise UsageError(
                f"the folder {str(self.root)!r} holds AndroidControl as its authors release it, which is converted once by "
                f"`guieval data prepare {self.name} --source {self.root} --out DIR` and then read with `--data DIR`"
            )
        raise self.wrong_folder(self.root, "AndroidControl data in a known layout")

    def index(self) -> Sequence[EpisodeRef]:
        refs = self._layout.index()
        if not refs and not self.skipped:
            raise self.wrong_folder(self.root, "AndroidControl episodes: what should hold them is empty")
        return refs

    def load(self, ref: EpisodeRef) -> Episode:
        return self._layout.load(ref)

    @classmethod
    def release(cls, source: Path, /, **options: Any) -> Release:
        """The shards in ``source`` (options ``splits`` and ``finish``); a folder without any is read in place."""
        if shards(source):
            check_options(AndroidControlRelease, options, f"the release of {cls.name!r}")
            return AndroidControlRelease(cls, source, **options)
        return super().release(source, **options)

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        """A folder as GUIEvalKit's preparation leaves it."""
        from ._examples.androidcontrol import fitting_episodes
        from ._examples.androidcontrol_guievalkit import write_folder

        write_folder(folder, fitting_episodes(seed, episodes))


class AndroidControlLow(AndroidControl):
    """AndroidControl with the step's own instruction given (*low*); every step must have one."""

    name = "androidcontrol-low"
    title = "AndroidControl (low)"
    setting = "low"

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        """UI-S1's test file with its images, so that both layouts that are read in place have their example."""
        from ._examples.androidcontrol import fitting_episodes
        from ._examples.androidcontrol_ui_s1 import write_test_file

        write_test_file(folder, fitting_episodes(seed, episodes))


def _parse_size(value: str | Sequence[int]) -> Size:
    numbers = re.fullmatch(r"\s*(\d+)\s*[xX×]\s*(\d+)\s*", value) if isinstance(value, str) else None
    pair = [int(number) for number in numbers.groups()] if numbers else value
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):
        raise UsageError(f"screen_size is {value!r}; expected WIDTHxHEIGHT in pixels, e.g. 1080x2400")
    return pair[0], pair[1]
