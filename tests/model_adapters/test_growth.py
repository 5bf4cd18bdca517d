"""The time to read a reply grows no faster than the reply, whatever stands in it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from functools import partial

import pytest

from guieval.actions import Click, Point
from guieval.errors import ParseError
from guieval.models import ABCModel, ModelConfig
from guieval.parsing import first_call
from guieval.registry import adapter_class, list_adapters
from guieval.steps import StepTaskModel
from guieval.testing.conformance import example_step

from .adversarial import LONGEST, replies

TASKS = [example_step(Click(point=Point(500.0, 500.0)), setting=setting) for setting in ("high", "low", "grounding")]
MOST = 3.0
"""A reply may take this many times as long as going through its characters one by one."""


def seconds(call: Callable[[], object], enough: float) -> float:
    """CPU time of a call; of a slow one the least of several, since other work on the machine makes single calls slow."""
    best = float("inf")
    for _ in range(6):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
        if best <= enough:
            break
    return best


def read(model: ABCModel, task: StepTaskModel, text: str) -> None:
    with contextlib.suppress(ParseError):
        model.parse_response(task, text)


def characters(text: str) -> int:
    """What a linear parser does at least: one step of Python for each character."""
    return sum(1 for _ in re.finditer(".", text, re.DOTALL))


@pytest.mark.parametrize("name", list_adapters())
def test_the_time_for_a_reply_grows_no_faster_than_the_reply(name: str) -> None:
    model = adapter_class(name)(ModelConfig(name=name, adapter=name))
    slow = []
    whole = seconds(partial(characters, "x" * LONGEST), 0.0)
    for (what, short), (_, long) in zip(replies(LONGEST // 4), replies(LONGEST), strict=True):
        for task in TASKS:
            took = seconds(partial(read, model, task, long), whole)
            if took <= whole:
                continue
            quarter = seconds(partial(read, model, task, short), whole / 8)
            if took > 8 * max(quarter, whole / 4) or took > MOST * whole:
                slow.append(f"{task.setting}, {what}: {took * 1e3:.1f} ms, a quarter of it {quarter * 1e3:.1f} ms")
    assert not slow


def test_a_call_has_only_so_many_arguments() -> None:
    written = ", ".join(f"k{index}='x'" for index in range(41))
    with pytest.raises(ParseError, match="more than 40 arguments"):
        first_call(f"click({written})", ["click"])
    assert len(first_call(f"click({', '.join(written.split(', ')[:40])})", ["click"]).arguments) == 40
