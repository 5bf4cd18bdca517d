"""Files of OS-Atlas's action calls: ``CLICK <point>[[x,y]]</point>``, ``TYPE [text]``, ``SCROLL [UP]``, ``PRESS_BACK``, ...

Its calls are in :mod:`guieval.models.parsing.capital_calls`; places are in thousandths of the screen. Only whole calls in the
format's own words are read, as files of results and labels hold them; prose around a call is the model adapter's to read. The
screen's size is in neither file; 1080x2400 is assumed and marked ``screen_size_from: assumed``. An episode is as long as the
last of its steps in the file.

``os-atlas``: ``eval/eval_scripts/{android_control,odyssey}/evaluation_unify.py`` (kept in averychen35/OS-Atlas) and
``eval/data/*.jsonl``. A row of the test data (``image``, ``conversations``) with the model's response under ``pred``. Read are
AndroidControl (``.../episode_<id>_screenshot_<step>.png``) and GUI-Odyssey (``.../<id>_<step>.png`` below a folder named
odyssey); the step is named by its image. The call follows ``actions:``; a response without that label is unparseable, as in the
scripts, and so is one whose call is not in the format's own words, of which the scripts may count the first word as the right
type. A SCROLL of AndroidControl names the content's direction, one of GUI-Odyssey the finger's. AndroidControl prompts that
say what the step has to do ("You need to") belong to our ``androidcontrol-low``. A row with the reference answer is a
step of its own.

``kairos``: Wuzheng02/GEM-OODforGUIagents ``Data/Kairos_test_inputscore.json``, from Wuzheng02/OS-Kairos. One JSON list; a row
has ``task``, ``image_path`` (``.../<app>/images/<episode>_<step>.png``), ``osatlas_action`` and ``teacher_action``, a stronger
model's, which is the label. ``score``, a critic's of OS-Atlas's action from 1 to 5, is kept as the group ``critic_score``;
``success`` and ``now_step``, the planned sub-step of which several steps may be a part, are kept in the extras. A SCROLL is
read as AndroidControl's; label and answer are in the same words, so this decides no match. There is no loader of this data set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from guieval.actions import Action, Open
from guieval.errors import ParseError, whole_text
from guieval.exchange.predictions.predicted import (
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
from guieval.exchange.predictions.rows import PredictionRow
from guieval.frames import PER_1000
from guieval.models.parsing import CallTable, ScrollWords
from guieval.models.parsing.call_tables import Form
from guieval.models.parsing.capital_calls import ALONE, CALLS, PLACED, WRITTEN
from guieval.steps import StepTaskModel

_CALLS = CallTable(CALLS, OPEN_APP=Form(Open, lambda call: Open(app=call.text("text"))))
"""As in the scripts, an app without a name is an answer."""
_NAME = re.compile(r"\s*([A-Z_]+)(?![A-Za-z])\s*")
_PLACE = re.compile(r"(?:<point>)?\[\[?\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\]?\](?:</point>)?")
_BRACKETED = re.compile(r"\[(.*)\]", re.DOTALL)
_ANDROID_CONTROL = re.compile(r"(?:.*/)?episode_(\d+)_screenshot_(\d+)\.\w+")
_ODYSSEY = re.compile(r".*odyssey.*/(\w+)_(\d+)\.\w+", re.IGNORECASE)
_TASK = re.compile(r"\nTask: (.*?)(?: You need to: (.*?))?\nHistory:", re.DOTALL)
_LABEL = "actions:\n"
_END = "<|im_end|>"
KAIROS_BENCHMARK = "os-kairos"
_KAIROS_IMAGE = re.compile(r"(?:.*/)?([^/]+)/images/([^/]+)_(\d+)\.\w+")


def call_action(call: str, *, scroll_words: ScrollWords) -> Action:
    """The action of one call; raises :class:`ParseError` for anything else."""
    named = _NAME.match(call)
    if named is None:
        raise ParseError("there is no answer" if not call.strip() else f"{call.strip()[:60]!r} is not a call")
    name = named[1]
    return _CALLS.read(name, _arguments(name, call[named.end() :].strip()), PER_1000, (1, 1), scroll_words)


def _arguments(name: str, rest: str) -> dict[str, Any]:
    if name in PLACED:
        place = _PLACE.fullmatch(rest)
        if place is None:
            raise ParseError(f"{name} gives no place: {rest[:60]!r}")
        return {"place": [float(place[1]), float(place[2])]}
    if name in WRITTEN or name == "SCROLL":
        text = _BRACKETED.fullmatch(rest)
        if text is None:
            raise ParseError(f"{name} gives no text in brackets: {rest[:60]!r}")
        return {"direction" if name == "SCROLL" else "text": whole_text(text[1])}
    if rest and name in ALONE:
        raise ParseError(f"{name} occurs with other words: {rest[:60]!r}")
    return {"text": whole_text(rest)} if rest else {}


class _NamedStep(NamedTuple):
    """The step that an image shows."""

    dataset: str
    episode_id: str
    step_index: int


def _reader(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    def step_of(row: PredictionRow) -> tuple[tuple[str, str], int]:
        dataset, episode_id, step_index = _named(row)
        return (dataset, episode_id), step_index

    lengths = episode_lengths(rows, step_of)
    return lambda row: _read(row, lengths)


def _named(row: PredictionRow) -> _NamedStep:
    image = row.text("image")
    for dataset, pattern in (("androidcontrol", _ANDROID_CONTROL), ("gui-odyssey", _ODYSSEY)):
        if found := pattern.fullmatch(image):
            return _NamedStep(dataset, found[1], int(found[2]))
    raise row.error("image", f"expected a screenshot of AndroidControl or GUI-Odyssey, got {image[-60:]!r}")


def _read(row: PredictionRow, lengths: Mapping[tuple[str, str], int]) -> Predicted:
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


def _task(row: PredictionRow, named: _NamedStep, length: int, scroll_words: ScrollWords) -> StepTaskModel:
    turns = row.value("conversations")
    if not isinstance(turns, list) or len(turns) < 2:
        raise row.error("conversations", f"expected a question and an answer, got {turns!r:.80}")
    question, answer = (PredictionRow.of(turn, f"{row.where}, field conversations").text("value") for turn in turns[:2])
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


def _kairos_reader(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    lengths = episode_lengths(rows, lambda row: _kairos_image(row)[1:])
    return lambda row: _kairos(row, lengths)


def _kairos_image(row: PredictionRow) -> tuple[str, str, int]:
    image = _KAIROS_IMAGE.fullmatch(row.text("image_path"))
    if image is None:
        raise row.error("image_path", f"expected <app>/images/<episode>_<step>.png, got {row.text('image_path')[-60:]!r}")
    return image[1], image[2], int(image[3])


def _kairos(row: PredictionRow, lengths: Mapping[str, int]) -> Predicted:
    app, episode, index = _kairos_image(row)
    answer = row.text("osatlas_action")
    label = row.text("teacher_action")
    groups = {"app": app} | ({"critic_score": str(row.whole("score"))} if "score" in row else {})
    task = row.task(
        benchmark=KAIROS_BENCHMARK,
        dataset=KAIROS_BENCHMARK,
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


OS_ATLAS = Format(
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
KAIROS = Format(
    "kairos",
    "OS-Kairos's steps with OS-Atlas's and the teacher's action",
    frozenset({"osatlas_action", "teacher_action", "now_step"}),
    _kairos_reader,
    assumed=(ASSUMED_SCREEN, NO_BOXES, "a SCROLL is read as the content's direction, in label and answer alike"),
)
