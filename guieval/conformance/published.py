"""Responses in the words of a family's makers, with the action each of them means: what ``render`` cannot show.

A round trip proves that a parser reads what its adapter writes, not that either agrees with the makers. Next to an adapter's
module, ``responses/MODULE.yaml`` has responses that were written by hand from the makers' prompts, data and code. It is a
list of groups::

    - source: github.com/OWNER/REPOSITORY@COMMIT path/to/file.py
      size: [1260, 2240]                    # of the screenshot in pixels; this is the default
      setting: high                         # the default
      options: {prompt: mobile}             # of the adapter; none by default
      recorded: true                        # models wrote them; false by default
      form: "Action: CALL"                  # the response, with CALL for each row's call; by default the call is all of it
      rows:
        - {line: 17, call: "tap(630, 1120)", action: {type: CLICK, point: [500, 500]}}
        - {line: 18, call: "zoom()", action: {type: UNSUPPORTED, name: zoom}}

``line`` is where the source names the word, in its file. ``action`` states those fields of the action that the words fix, in
unified units; numbers agree within 1, so that a place may be rounded to the family's frame.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter

from guieval.actions import Action, Click, Frozen, Point
from guieval.conformance.examples import example_step
from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import ParseError
from guieval.models import ABCModel, ModelConfig
from guieval.steps import Setting, StepTaskModel

TOLERANCE = 1.0
"""How far numbers may be apart, in unified units: less than half a pixel of any frame here."""


class PublishedRow(Frozen):
    """One response and what it means."""

    line: int | str = Field(description="line of the source, or lines as 12-15")
    call: str
    action: dict[str, Any]


class PublishedGroup(Frozen):
    """Responses from one source, for one setting and one choice of the adapter's options."""

    source: str
    size: tuple[int, int] = (1260, 2240)
    setting: Setting = "high"
    options: dict[str, Any] = Field(default_factory=dict)
    form: str = "CALL"
    recorded: bool = Field(False, description="whether models of the family wrote these responses")
    rows: tuple[PublishedRow, ...] = Field(min_length=1)

    def response(self, row: PublishedRow) -> str:
        return self.form.replace("CALL", row.call)

    def model_of(self, kind: type[ABCModel], adapter: str) -> ABCModel:
        return kind(ModelConfig(name=adapter, adapter=adapter, options=self.options))

    def task(self) -> StepTaskModel:
        """A step on a screenshot of this group's size."""
        return example_step(Click(point=Point(500.0, 500.0)), setting=self.setting, size=self.size)


_GROUPS = TypeAdapter(list[PublishedGroup])


def published_groups(model: ABCModel) -> list[PublishedGroup]:
    """The groups of the model's adapter; none if it has no such file."""
    written_in = getattr(sys.modules.get(type(model).__module__), "__file__", None)  # none in a notebook
    if written_in is None:
        return []
    module = Path(written_in)
    file = module.parent / "responses" / f"{module.stem}.yaml"
    return _GROUPS.validate_python(read_yaml(read_text(file))) if file.is_file() else []


def published_responses_are_read(model: ABCModel) -> Iterator[str]:
    """A sentence for each published response that the adapter does not read as the action it means."""
    for group in published_groups(model):
        reader, task = group.model_of(type(model), model.config.adapter), group.task()
        for row in group.rows:
            text, where = group.response(row), f"{group.source}:{row.line}"
            try:
                read = reader.parse_response(task, text).action
            except ParseError as error:
                yield f"{group.setting}: {text!r} ({where}) is not read: {error}"
                continue
            if not agrees(row.action, read):
                yield f"{group.setting}: {text!r} ({where}) means {row.action!r} and is read as {read!r}"


def agrees(stated: dict[str, Any], action: Action) -> bool:
    """Whether an action has all the fields that are stated."""
    return _agrees(stated, action.model_dump(mode="json"))


def _agrees(stated: Any, given: Any) -> bool:
    if isinstance(stated, dict):
        return isinstance(given, dict) and all(key in given and _agrees(value, given[key]) for key, value in stated.items())
    if isinstance(stated, list):
        return isinstance(given, list) and len(stated) == len(given) and all(map(_agrees, stated, given))
    if isinstance(stated, int | float) and not isinstance(stated, bool):
        return isinstance(given, int | float) and abs(stated - given) <= TOLERANCE
    return bool(stated == given)
