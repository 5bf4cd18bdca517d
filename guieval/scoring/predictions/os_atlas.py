"""OS-Atlas's prediction files: a row of its test data (``image``, ``conversations``) with the model's reply under ``pred``.

Source: OS-Atlas ``eval/eval_scripts/{android_control,odyssey}/evaluation_unify.py`` (kept in averychen35/OS-Atlas) and
``eval/data/*.jsonl``. Read are AndroidControl (``.../episode_<id>_screenshot_<step>.png``) and GUI-Odyssey
(``.../<id>_<step>.png`` below a folder named odyssey); the step is named by its image.

The call follows ``actions:``; a reply without that label is unparseable, as in the scripts, and so is one whose call
is not in the format's own words (:mod:`.calls`), of which the scripts may count the first word as the right type. Places are
thousandths. A SCROLL of AndroidControl names the content's direction, one of GUI-Odyssey the finger's. AndroidControl prompts
that say what the step has to do ("You need to") belong to our ``androidcontrol-low``. Where the row holds the reference answer,
it is a step of its own; its screen's size is not in the file and stands as 1080x2400, marked ``screen_size_from: assumed``,
and an episode is as long as the file's last step of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from guieval.actions import Action
from guieval.errors import ParseError
from guieval.parsing import ScrollWords
from guieval.scoring.predictions.calls import call_action
from guieval.scoring.predictions.predicted import (
    ASSUMED_SCREEN,
    NO_BOXES,
    SCREEN,
    Format,
    Predicted,
    ReadRow,
    Rows,
    attempted,
    episode_lengths,
)
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

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


def _reader(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    def step_of(row: Row) -> tuple[tuple[str, str], int]:
        dataset, episode_id, step_index = _named(row)
        return (dataset, episode_id), step_index

    lengths = episode_lengths(rows, step_of)
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
    prompt = _TASK.search(question)
    if prompt is None:
        raise row.error("conversations", "the question has no task")
    low = prompt[2] is not None
    return row.task(
        benchmark=f"{named.dataset}-low" if low else named.dataset,
        dataset=named.dataset,
        episode_id=named.episode_id,
        step_index=named.step_index,
        episode_length=length,
        setting="low" if low else "high",
        instruction=prompt[1],
        low_level_instruction=prompt[2],
        screenshot=row.text("image").rsplit("/", 1)[-1],
        screenshot_size=SCREEN,
        action=action,
        extras={"screen_size_from": "assumed"},
    )


FORMAT = Format(
    "os-atlas",
    "OS-Atlas's predictions on AndroidControl and GUI-Odyssey",
    frozenset({"image"}),
    _reader,
    one_of=frozenset({"pred", "conversations"}),
    assumed=(
        ASSUMED_SCREEN,
        NO_BOXES,
        "a SCROLL is read as the content's direction on AndroidControl and as the finger's on GUI-Odyssey",
    ),
)
