"""OS-Kairos's steps: OS-Atlas's action beside a stronger teacher's, which is the label.

Source: Wuzheng02/GEM-OODforGUIagents ``Data/Kairos_test_inputscore.json``, from Wuzheng02/OS-Kairos. One JSON list; a row has
``task``, ``image_path`` (``.../<app>/images/<episode>_<step>.png``), ``now_step``, ``osatlas_action`` and ``teacher_action``
(OS-Atlas's calls, places in thousandths, decimals too), and a critic's ``score`` of OS-Atlas's action from 1 to 5, kept as the
group ``critic_score``; ``success`` is kept in the extras.

Episode and step are the image's; ``now_step`` is the planned sub-step, of which several steps may be a part, and stays in the
extras. An episode is as long as the last of its steps in the file, which may lack some. A SCROLL is read as AndroidControl's,
the content's direction, which says nothing of a match, label and answer being in the same words. The size of the
screens is not given; 1080x2400 is assumed.
There is no loader of this data set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from guieval.scoring.predictions.calls import call_action
from guieval.scoring.predictions.predicted import (
    ASSUMED_SCREEN,
    NO_BOXES,
    SCREEN,
    Format,
    Predicted,
    ReadRow,
    Rows,
    episode_lengths,
)
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

BENCHMARK = "os-kairos"
_IMAGE = re.compile(r"(?:.*/)?([^/]+)/images/([^/]+)_(\d+)\.\w+")


def _reader(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    lengths = episode_lengths(rows, lambda row: _image(row)[1:])
    return lambda row: _read(row, lengths)


def _image(row: Row) -> tuple[str, str, int]:
    """App, episode and step of a row's image."""
    image = _IMAGE.fullmatch(row.text("image_path"))
    if image is None:
        raise row.error("image_path", f"expected <app>/images/<episode>_<step>.png, got {row.text('image_path')[-60:]!r}")
    return image[1], image[2], int(image[3])


def _read(row: Row, lengths: Mapping[str, int]) -> Predicted:
    app, episode, index = _image(row)
    answer = row.text("osatlas_action")
    label = row.text("teacher_action")
    groups = {"app": app} | ({"critic_score": str(row.whole("score"))} if "score" in row else {})
    task = row.task(
        benchmark=BENCHMARK,
        dataset=BENCHMARK,
        episode_id=episode,
        step_index=index,
        episode_length=lengths[episode],
        instruction=row.text("task"),
        screenshot=row.text("image_path"),
        screenshot_size=SCREEN,
        action=row.build("teacher_action", lambda: call_action(label, scroll_words="content")),
        groups=groups,
        extras={"screen_size_from": "assumed"} | {name: row.values[name] for name in ("now_step", "success") if name in row},
    )
    return Predicted.of(task, lambda: call_action(answer, scroll_words="content"))


FORMAT = Format(
    "kairos",
    "OS-Kairos's steps with OS-Atlas's and the teacher's action",
    frozenset({"osatlas_action", "teacher_action", "now_step"}),
    _reader,
    assumed=(ASSUMED_SCREEN, NO_BOXES, "a SCROLL is read as the content's direction, in label and answer alike"),
)
