"""Reading a reply takes time in proportion to its length at most, and a long thought runs no more Python than a short one."""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.conformance import every_model, example_step
from guieval.errors import ParseError
from guieval.models import ABCModel, ModelConfig
from guieval.models.parsing import first_call
from guieval.registry import adapter_class, list_adapters
from guieval.steps import StepTaskModel
from perf.parsing import TARGET, long_replies
from tests.checkpoints import of_each_kind
from tests.rows import every_row

from .adversarial import LONGEST, replies
from .steps import step

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


def out_of_proportion(model: ABCModel, task: StepTaskModel, short: str, long: str) -> str | None:
    """What a reply and its quarter take, if that is too much; all is measured again, since the machine may be the reason."""
    for _ in range(5):
        whole = seconds(partial(characters, long), 0.0)
        took = seconds(partial(read, model, task, long), whole)
        quarter = seconds(partial(read, model, task, short), whole / 8)
        if took <= min(MOST * whole, 8 * max(quarter, whole / 4)):
            return None
    return f"{took * 1e3:.1f} ms, a quarter of it {quarter * 1e3:.1f} ms"


@pytest.mark.ci
@every_row("name", list_adapters)
def test_the_time_for_a_reply_grows_no_faster_than_the_reply(name: str) -> None:
    model = adapter_class(name)(ModelConfig(name=name, adapter=name))
    whole = seconds(partial(characters, "x" * LONGEST), 0.0)
    slow = []
    for (what, short), (_, long) in zip(replies(LONGEST // 4), replies(LONGEST), strict=True):
        for task in TASKS:
            if seconds(partial(read, model, task, long), whole) > whole and (
                took := out_of_proportion(model, task, short, long)
            ):
                slow.append(f"{task.setting}, {what}: {took}")
    assert not slow


def readers() -> list[tuple[str, ABCModel]]:
    """A checkpoint of each adapter, options and state of thinking."""
    return [(name, model) for name, model in every_model(of_each_kind()) if model.config.engine != "local"]


LINES, OF_A_LOOP = 700, 2000
"""Most lines of Python that reading a reply runs: measured were 592, and 1,480 where the model is caught in a loop."""


def lines_run(call: Callable[[], object]) -> int:
    """How many lines, calls and returns of Python a call runs; the same on every machine."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    gc.disable()  # a collection may call what other tests have left
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@every_row(("name", "model"), readers)
def test_a_long_reply_is_read_in_few_lines_of_python(name: str, model: ABCModel) -> None:
    """As many for a thought or a text of 8,000 characters as for one of 2,000, so that no parser walks through them."""
    task = step(TARGET, low_level_instruction="Tap the switch")
    for (what, short), (_, long) in zip(long_replies(model, task), long_replies(model, task, 8000), strict=True):
        read(model, task, short)  # what is prepared once does not count
        few, many = (lines_run(partial(read, model, task, text)) for text in (short, long))
        if what == "loop":
            assert few <= OF_A_LOOP and many <= 5 * few, (what, few, many)
        else:
            assert many <= few <= LINES, (what, few, many)


def test_a_call_has_only_so_many_arguments() -> None:
    written = ", ".join(f"k{index}='x'" for index in range(41))
    with pytest.raises(ParseError, match="more than 40 arguments"):
        first_call(f"click({written})", ["click"])
    assert len(first_call(f"click({', '.join(written.split(', ')[:40])})", ["click"]).arguments) == 40
