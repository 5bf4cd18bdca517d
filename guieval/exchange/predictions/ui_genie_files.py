"""The result files of UI-Genie as rows, one for every step.

Source: Euphoria16/UI-Genie@bb7df6b ``src/ms-swift/eval_results_androidcontrol.py``. ``details.json`` lists the steps by the
type of their label and by whether the response was right. ``<type>_badcase.json``, next to it, has the labels and responses of
the wrong ones; the responses of the right ones were not kept.

A step whose response was not JSON is in no list. It leaves a gap in the numbers of its episode's steps, which begin at 0 and
end with a step of their own, and ``all_<type>`` counts it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from guieval.data.text_files import read_whole
from guieval.data.typed_rows import Row
from guieval.errors import DataError

KEYS = ("actiontype_notmatch_gt", "action_acc", "click_success_action", "system_button_success_action")
"""One of these keys is in every one of the files."""
DETAILS = "details.json"
RIGHT, WRONG, UNREADABLE = "right", "wrong", "unreadable"
"""The kinds of a row's ``reply``."""
_RIGHT, _WRONG = "_success_action", "_error_action"
_STEP = re.compile(r"([0-9]{1,12})_([0-9]{1,4})")


class NamedPlace(NamedTuple):
    """A step's episode, and its place there."""

    episode: str
    step: int


def place_of(row: Row) -> NamedPlace:
    """The step that a row names in ``questionID``."""
    named = _STEP.fullmatch(row.text("questionID"))
    if named is None:
        raise row.error("questionID", f"expected <episode>_<step>, got {row.text('questionID')!r:.80}")
    return NamedPlace(named[1], int(named[2]))


def step_rows(file: Path, details: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of ``details``, the content of ``file``, each with its place for messages.

    A row has ``questionID``, ``reply`` ("right", "wrong" or "unreadable"), ``type`` and, of a wrong response, ``gt`` and
    ``answer``. Raises :class:`DataError` for another of UI-Genie's files, and for a file next to it that is missing or does not
    have what ``details`` names.
    """
    if DETAILS not in file.name or not any(name.endswith(_RIGHT) for name in details):
        raise DataError(
            f"{file}: UI-Genie's results are read from {DETAILS}; the files *_badcase.json next to it have the wrong responses"
        )
    whole = Row(details, str(file))
    seen: dict[str, set[int]] = {}
    lacking: Counter[str] = Counter()
    for type_ in (name.removesuffix(_RIGHT) for name in details if name.endswith(_RIGHT)):
        right = whole.items(type_ + _RIGHT)
        wrong = whole.items(type_ + _WRONG) if type_ + _WRONG in whole else []
        if not right and not wrong:
            continue
        cases = _Cases.beside(file, type_)
        for step in (*right, *wrong):
            row = Row({"questionID": step}, f"{file}, {type_}")
            place = place_of(row)
            seen.setdefault(place.episode, set()).add(place.step)
            case = cases.of(step) if step in wrong else None
            values = {"questionID": step, "type": type_, "reply": RIGHT if case is None else WRONG, **(case or {})}
            yield values, f"{file}, step {step}"
        lacking[type_] += max(0, cases.planned - len(right) - len(wrong))
    gaps = [f"{episode}_{index}" for episode, known in seen.items() for index in range(max(known)) if index not in known]
    types = [type_ for type_, count in lacking.items() if count]
    known = {"type": types[0]} if len(types) == 1 and lacking.total() == len(gaps) else {}
    for step in gaps:
        yield {"questionID": step, "reply": UNREADABLE, **known}, f"{file}, step {step}"


class _Cases(NamedTuple):
    """The wrong responses to the steps of one type, and how many steps of the type there are."""

    where: str
    replies: Mapping[str, Row]
    planned: int

    @classmethod
    def beside(cls, details: Path, type_: str) -> _Cases:
        name = details.name.replace(DETAILS, f"{type_}_badcase.json").removesuffix(".gz")
        file = next((file for file in (details.with_name(name), details.with_name(f"{name}.gz")) if file.is_file()), None)
        if file is None:
            raise DataError(f"{details}: there is no {name} beside it, which has the wrong responses to steps of type {type_}")
        try:
            whole = Row.of(from_json(read_whole(file)), str(file))
        except ValueError as error:
            raise DataError(f"{file}: is not JSON ({error})") from None
        replies: dict[str, Row] = {}
        for part in ("actiontype_notmatch", "actiontype_match"):
            for case in whole.row(f"{part}_gt").rows(f"{part}_details"):
                replies[case.text("questionID")] = case
        return cls(str(file), replies, whole.whole(f"all_{type_}", 0))

    def of(self, step: str) -> dict[str, str]:
        case = self.replies.get(step)
        if case is None:
            raise DataError(f"{self.where}: has no response to the step {step}, which {DETAILS} lists as wrong")
        return {"gt": case.text("gt"), "answer": case.text("answer")}
