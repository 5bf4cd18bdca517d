"""Tests that differ in their rows alone: what a family reads, what it refuses, and how it writes.

Each function makes one test of a table: ``test_replies = reads(MODEL, (text, action), ...)``. A row may begin with a few words
on what it shows. What a family is sent is not here: golden files pin it, and its own file has what only an option reaches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from guieval.actions import Action, Unsupported
from guieval.errors import ParseError
from guieval.models import ABCModel
from guieval.steps import StepTaskModel
from tests.rows import every_row

from .steps import HIGH

Test = Callable[[], None]
Wrap = Callable[[Any], str | Iterable[str]]
"""Makes whole replies of what a row states."""


def reads(
    models: ABCModel | Sequence[ABCModel], *rows: tuple[Any, ...], wrap: Wrap = str, task: StepTaskModel = HIGH, **also: Any
) -> Test:
    """``([case,] given, expected)``: an action; what a call outside the unified ones does on a device (``None``: nothing);
    or ``Unsupported``, whatever it does there. ``also`` are further fields that the rows' replies have in common.
    """

    @every_row(("given", "expected"), [row[-2:] for row in rows], ids=[f"{row[0]!r:.120}" for row in rows])
    def test(given: Any, expected: Any) -> None:
        for model, text in _every(models, wrap(given)):
            parsed = model.parse_response(task, text)
            assert _agree(parsed.action, expected), f"{text!r} is read as {parsed.action!r}"
            for name, value in also.items():
                assert getattr(parsed, name) == value, f"{text!r} has the {name} {getattr(parsed, name)!r}"

    return test


def means(
    models: ABCModel | Sequence[ABCModel],
    action: Action | type[Unsupported],
    *rows: Any,
    wrap: Wrap = str,
    task: StepTaskModel = HIGH,
) -> Test:
    """``given`` or ``(case, given)``: all of them mean ``action``."""
    return reads(models, *((*_labelled(row), action) for row in rows), wrap=wrap, task=task)


def refuses(models: ABCModel | Sequence[ABCModel], *rows: Any, wrap: Wrap = str, task: StepTaskModel = HIGH) -> Test:
    """``given`` or ``(given, reason)``: no action, for a reason that its message states.

    ``(given, reason, type)``: for that reason only the type of the action is known.
    """

    @every_row(("given", "reason", "known"), [(*row, "", "")[:3] if isinstance(row, tuple) else (row, "", "") for row in rows])
    def test(given: Any, reason: str, known: str) -> None:
        for model, text in _every(models, wrap(given)):
            if not known:
                with pytest.raises(ParseError, match=reason or None):
                    model.parse_response(task, text)
                continue
            action = model.parse_response(task, text).action
            assert isinstance(action, Unsupported) and action.known == known, f"{text!r} is read as {action!r}"
            assert re.search(reason, action.problem or ""), f"the problem of {text!r} is {action.problem!r}"

    return test


def refusal(model: ABCModel, task: StepTaskModel, text: str) -> str:
    """Why a reply has no action, or one of which only the type is known; an error where it holds a whole one."""
    try:
        action = model.parse_response(task, text).action
    except ParseError as error:
        return str(error)
    assert isinstance(action, Unsupported) and action.known and action.problem, f"{text!r} is read as {action!r}"
    return action.problem


def writes(
    model: ABCModel,
    *rows: tuple[Action, str | None],
    wrap: Callable[[str], str] = str,
    task: StepTaskModel = HIGH,
    **words: str,
) -> Test:
    """``(action, text)``: an action is written so, next to the ``thought`` in ``words``, and read back.

    ``None`` for the text: the format has no word for the action.
    """

    @every_row(("action", "text"), rows)
    def test(action: Action, text: str | None) -> None:
        if text is None:
            with pytest.raises(ValueError, match="has no word for"):
                model.render(task, action)
            return
        assert model.render(task, action, **words) == wrap(text), f"it is written {model.render(task, action, **words)!r}"
        parsed = model.parse_response(task, wrap(text))
        assert (parsed.action, parsed.thought) == (action, words.get("thought")), f"it is read as {parsed!r}"

    return test


def thinks(model: ABCModel, *rows: tuple[str | None, ...], task: StepTaskModel = HIGH) -> Test:
    """``(text, thought)`` or ``(text, thought, conclusion)``: what a reply's thought is, and how it sums itself up."""

    @every_row(("text", "said"), [(text, said) for text, *said in rows])
    def test(text: str, said: list[str | None]) -> None:
        parsed = model.parse_response(task, text)
        assert [parsed.thought, parsed.conclusion][: len(said)] == said, f"{text!r} is read as {parsed!r}"

    return test


def _labelled(row: Any) -> tuple[str, Any]:
    return row if isinstance(row, tuple) else ("", row)


def _every(models: ABCModel | Sequence[ABCModel], texts: str | Iterable[str]) -> Iterable[tuple[ABCModel, str]]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    return [(model, text) for model in (models if isinstance(models, Sequence) else [models]) for text in listed]


def _agree(action: Action, expected: Any) -> bool:
    if expected is Unsupported:
        return isinstance(action, Unsupported)
    if isinstance(action, Unsupported) and not isinstance(expected, Unsupported):
        return bool(action.device == expected)
    return bool(action == expected)
