"""OS-Kairos's steps: OS-Atlas's action beside a stronger teacher's, which is the label.

Source: Wuzheng02/GEM-OODforGUIagents ``Data/Kairos_test_inputscore.json``, from Wuzheng02/OS-Kairos. One JSON list; a row has
``task``, ``image_path`` (``.../<app>/images/<episode>_<step>.png``), ``now_step``, ``osatlas_action`` and ``teacher_action``
(OS-Atlas's calls, places in thousandths, decimals too), and a critic's ``score`` of OS-Atlas's action from 1 to 5, kept as the
group ``critic_score``; ``success`` is kept in the extras.

Episode and step are the image's; ``now_step`` is the planned sub-step, of which several steps may be a part, and stays in the
extras. An episode is as long as the last of its steps in the file, which may lack some. A SCROLL is read as AndroidControl's,
the content's direction, which says nothing of a match, label and answer being in the same words. The screens' size is not
told; 1080x2400 is assumed.
There is no loader of this data set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from guieval.errors import DataError
from guieval.scoring.predictions.calls import call_action
from guieval.scoring.predictions.predicted import Predicted, Rows, attempted
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

NAME = "kairos"
SUMMARY = "OS-Kairos's steps with OS-Atlas's and the teacher's action"
ASSUMED: tuple[str, ...] = (
    "screens are taken to be 1080 x 2400 pixels, because the file does not give their size",
    "the file has no boxes, so a protocol that accepts clicks in boxes alone accepts none of them",
    "a SCROLL is read as the content's direction, in label and answer alike",
)

BENCHMARK = "os-kairos"
SIZE = (1080, 2400)

_IMAGE = re.compile(r"(?:.*/)?([^/]+)/images/([^/]+)_(\d+)\.\w+")


class _Image(NamedTuple):
    """What an image's path tells."""

    app: str
    episode: str
    step: int


def recognises(values: Mapping[str, Any]) -> bool:
    """Both actions side by side."""
    return {"osatlas_action", "teacher_action", "now_step"} <= values.keys()


def reader(rows: Rows, steps: Iterable[StepTaskModel]) -> Callable[[Row], Predicted]:
    """Reads one row, knowing how long the episodes are in the file."""
    lengths: dict[str, int] = {}
    for row in rows():
        try:
            image = _image(row)
            lengths[image.episode] = max(lengths.get(image.episode, 0), image.step + 1)
        except DataError:
            continue  # told when the row itself is read
    return lambda row: _read(row, lengths)


def _image(row: Row) -> _Image:
    found = _IMAGE.fullmatch(row.text("image_path"))
    if found is None:
        raise row.error("image_path", f"expected <app>/images/<episode>_<step>.png, got {row.text('image_path')[-60:]!r}")
    return _Image(found[1], found[2], int(found[3]))


def _read(row: Row, lengths: Mapping[str, int]) -> Predicted:
    app, episode, index = _image(row)
    answered = row.text("osatlas_action")
    taught = row.text("teacher_action")
    label = row.build("teacher_action", lambda: call_action(taught, scroll_words="content"))
    action, reason = attempted(lambda: call_action(answered, scroll_words="content"))
    groups = {"app": app} | ({"critic_score": str(row.whole("score"))} if "score" in row else {})
    task = row.task(
        benchmark=BENCHMARK,
        dataset=BENCHMARK,
        episode_id=episode,
        step_index=index,
        episode_length=lengths[episode],
        instruction=row.text("task"),
        screenshot=row.text("image_path"),
        screenshot_size=SIZE,
        action=label,
        groups=groups,
        extras={"screen_size_from": "assumed"} | {name: row.values[name] for name in ("now_step", "success") if name in row},
    )
    return Predicted(BENCHMARK, "", episode, index, action, reason, task=task)
