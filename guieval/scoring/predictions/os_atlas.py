"""OS-Atlas's prediction files: a row of its test data (``image``, ``conversations``) with the model's reply under ``pred``.

Source: OS-Atlas ``eval/eval_scripts/{android_control,odyssey}/evaluation_unify.py`` (kept in averychen35/OS-Atlas) and
``eval/data/*.jsonl``. Read are AndroidControl (``.../episode_<id>_screenshot_<step>.png``) and GUI-Odyssey
(``.../<id>_<step>.png`` below a folder named odyssey); the step is named by its image.

The call stands behind ``actions:``; a reply without that label is unparseable, as in the scripts, and so is one whose call
is not in the format's own words (:mod:`.calls`), of which the scripts may count the first word as the right type. Places are
thousandths. A SCROLL of AndroidControl names the content's direction, one of GUI-Odyssey the finger's. AndroidControl prompts
that say what the step has to do ("You need to") are ours of ``androidcontrol-low``. Where the row holds the reference answer,
it is a step of its own; its screen's size is not in the file and stands as 1080x2400, marked ``screen_size_from: assumed``,
and an episode is as long as the file's last step of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from guieval.actions import Action
from guieval.errors import DataError, ParseError
from guieval.parsing import ScrollWords
from guieval.scoring.predictions.calls import call_action
from guieval.scoring.predictions.predicted import Predicted, Rows, attempted
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

NAME = "os-atlas"
SUMMARY = "OS-Atlas's predictions on AndroidControl and GUI-Odyssey"
ASSUMED: tuple[str, ...] = (
    "screens are taken to be 1080 x 2400 pixels, because the file does not give their size",
    "the file has no boxes, so a protocol that accepts clicks in boxes alone accepts none of them",
    "a SCROLL is read as the content's direction on AndroidControl and as the finger's on GUI-Odyssey",
)

SIZE = (1080, 2400)

_ANDROID_CONTROL = re.compile(r"(?:.*/)?episode_(\d+)_screenshot_(\d+)\.\w+")
_ODYSSEY = re.compile(r".*odyssey.*/(\w+)_(\d+)\.\w+", re.IGNORECASE)
_TASK = re.compile(r"\nTask: (.*?)(?: You need to: (.*?))?\nHistory:", re.DOTALL)
_LABEL = "actions:\n"
_END = "<|im_end|>"


class _Named(NamedTuple):
    """The step that an image shows."""

    dataset: str
    episode_id: str
    step_index: int


def recognises(values: Mapping[str, Any]) -> bool:
    """A reply beside a row of the test data."""
    return {"image", "pred"} <= values.keys() or {"image", "conversations"} <= values.keys()


def reader(rows: Rows, steps: Iterable[StepTaskModel]) -> Callable[[Row], Predicted]:
    """Reads one row, knowing how long the episodes are in the file."""
    lengths: dict[tuple[str, str], int] = {}
    for row in rows():
        try:
            named = _named(row)
        except DataError:
            continue  # told when the row itself is read
        key = (named.dataset, named.episode_id)
        lengths[key] = max(lengths.get(key, 0), named.step_index + 1)
    return lambda row: _read(row, lengths)


def _named(row: Row) -> _Named:
    image = row.text("image")
    for dataset, pattern in (("androidcontrol", _ANDROID_CONTROL), ("gui-odyssey", _ODYSSEY)):
        if found := pattern.fullmatch(image):
            return _Named(dataset, found[1], int(found[2]))
    raise row.error("image", f"expected a screenshot of AndroidControl or GUI-Odyssey, got {image[-60:]!r}")


def _read(row: Row, lengths: Mapping[tuple[str, str], int]) -> Predicted:
    named = _named(row)
    pred = row.value("pred")
    scroll_words: ScrollWords = "content" if named.dataset == "androidcontrol" else "finger"
    action, reason = attempted(lambda: _replied(pred, scroll_words))
    task = _task(row, named, lengths[named.dataset, named.episode_id], scroll_words) if "conversations" in row else None
    benchmark = named.dataset if task is None else task.benchmark
    return Predicted(benchmark, "", named.episode_id, named.step_index, action, reason, task=task)


def _replied(pred: Any, scroll_words: ScrollWords) -> Action:
    if not isinstance(pred, str):
        raise ParseError("there is no answer")
    _, label, call = pred.partition(_LABEL)
    if not label:
        raise ParseError("the answer lacks the label 'actions:'")
    return call_action(call.partition(_LABEL)[0].replace(_END, ""), scroll_words=scroll_words)


def _task(row: Row, named: _Named, length: int, scroll_words: ScrollWords) -> StepTaskModel:
    turns = row.value("conversations")
    if not isinstance(turns, list) or len(turns) < 2:
        raise row.error("conversations", f"expected a question and an answer, got {turns!r:.80}")
    question, answer = (Row.of(turn, f"{row.where}, field conversations").text("value") for turn in turns[:2])
    action = row.build("conversations", lambda: _replied(answer, scroll_words))
    asked = _TASK.search(question)
    if asked is None:
        raise row.error("conversations", "the question tells no task")
    low = asked[2] is not None
    return row.task(
        benchmark=f"{named.dataset}-low" if low else named.dataset,
        dataset=named.dataset,
        episode_id=named.episode_id,
        step_index=named.step_index,
        episode_length=length,
        setting="low" if low else "high",
        instruction=asked[1],
        low_level_instruction=asked[2],
        screenshot=row.text("image").rsplit("/", 1)[-1],
        screenshot_size=SIZE,
        action=action,
        extras={"screen_size_from": "assumed"},
    )
