"""When a reply is well formed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from guieval.actions import Unsupported, Wait
from guieval.errors import UsageError
from guieval.rewards import HasThought, Parses, Tags, format_reward
from guieval.steps import Sample, StepOutcome

WRONG = StepOutcome(verdict="wrong")
EMPTY = Sample(outcome=WRONG)


def test_a_reply_that_parses_holds_an_action_of_any_kind() -> None:
    assert Parses().holds("wait()", Sample(action=Wait(), outcome=WRONG))
    assert Parses().holds("drag()", Sample(action=Unsupported(name="drag"), outcome=WRONG))
    assert not Parses().holds("hm", EMPTY)


@pytest.mark.parametrize(("thought", "holds"), [("I wait", True), (" \n", False), (None, False)])
def test_a_thought_must_say_something(thought: str | None, holds: bool) -> None:
    assert HasThought().holds("", Sample(action=Wait(), thought=thought, outcome=WRONG)) == holds
    assert not HasThought().holds("", Sample(thought=thought, outcome=WRONG))


@pytest.mark.parametrize(
    ("names", "text", "holds"),
    [
        (("think", "answer"), "<think>a</think>\n<answer>b</answer>", True),
        (("think", "answer"), "<think>a</think> so <answer>b</answer>", False),
        (("think", "action", "conclusion"), "<think>a</think><action>b</action><conclusion></conclusion>", True),
        (("answer",), "<answer>\n</answer>", True),
        (("answer",), "<answer></answer>.", False),
    ],
)
def test_tags_are_the_whole_text_in_order(names: tuple[str, ...], text: str, holds: bool) -> None:
    assert Tags(*names).holds(text, EMPTY) == holds


def test_tags_are_values_and_need_names() -> None:
    assert Tags("think", "answer") == Tags("think", "answer") != Tags("answer", "think")
    assert "<think>" in Tags("think").describe()
    for names in ((), ("",), ("<think>",)):
        with pytest.raises(UsageError, match="Tags needs names"):
            Tags(*names)


def test_on_recorded_completions_tags_are_ui_r1s_format_reward(shared_data: Path) -> None:
    with gzip.open(shared_data / "conformance" / "ui-r1-reward.jsonl.gz", "rt", encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream]
    assert {line["expected"]["format"] for line in lines} == {0.0, 1.0}
    for line in lines:
        text = line["completion"]
        assert Tags("think", "answer").holds(text, EMPTY) == format_reward(text) == line["expected"]["format"]
