"""When a reply is well formed."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Unsupported, Wait
from guieval.errors import UsageError
from guieval.rewards import HasThought, Parses, Tags, ThoughtAndAction, format_reward
from guieval.steps import Sample, StepOutcome
from tests.rows import every_row

WRONG = StepOutcome(verdict="wrong")
EMPTY = Sample(outcome=WRONG)


def test_a_reply_that_parses_holds_an_action_of_any_kind_and_a_thought_says_something() -> None:
    assert Parses().holds("wait()", Sample(action=Wait(), outcome=WRONG))
    assert Parses().holds("drag()", Sample(action=Unsupported(name="drag"), outcome=WRONG))
    assert not Parses().holds("hm", EMPTY)
    for thought, holds in (("I wait", True), (" \n", False), (None, False)):
        assert HasThought().holds("", Sample(action=Wait(), thought=thought, outcome=WRONG)) == holds
        assert not HasThought().holds("", Sample(thought=thought, outcome=WRONG))


WAIT = '<action>\n{"action": "wait", "time": 2}\n</action>'
TURN = f"<think>\nIt loads.\n</think>\n{WAIT}"


@every_row(
    ("text", "holds"),
    [
        (TURN, True),
        (f"\n{TURN}\n", True),
        (TURN.replace("\n", ""), True),
        (WAIT, False),  # no thought
        ('{"action": "wait", "time": 2}', False),  # bare JSON
        (TURN.replace("It loads.", " "), False),
        (f"{'word ' * 50}{TURN}", False),
        (f"{TURN}{' word' * 50}", False),
        (TURN.replace("</think>", "</think> so"), False),
        (TURN.replace("</think>", ""), False),  # a thought that never ends
        (f"{TURN}\n{TURN}", False),  # two answers
        (f"{TURN}\n{WAIT}", False),
        (TURN.replace("It loads.", f"It loads. {WAIT}"), False),
        (TURN.replace("2}", '2}\n{"action": "wait", "time": 2}'), False),
        (TURN.replace("{", "[{").replace("}", "}]"), False),
        (TURN.replace('"action"', "action"), False),
        (TURN.replace("</action>", ""), False),
        (f"{WAIT}<think>It loads.</think>", False),
    ],
)
def test_the_papers_form_is_one_thought_and_one_json_object(text: str, holds: bool) -> None:
    assert ThoughtAndAction().holds(text, Sample(action=Wait(), outcome=WRONG)) == holds
    assert not ThoughtAndAction().holds(text, EMPTY)  # the adapter read no action in it
    assert not ThoughtAndAction().holds(TURN.replace("2}", "[" * 100_000), Sample(action=Wait(), outcome=WRONG))


@every_row(
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


@every_row("names", [("a",), ("a", "b"), ("a", "b", "a"), ("a", "a")])
@given(parts=st.lists(st.sampled_from(["<a>", "</a>", "<b>", "</b>", " ", "x", "</a> <b>"]), max_size=12))
def test_tags_are_what_one_pattern_for_the_whole_text_would_find(names: tuple[str, ...], parts: list[str]) -> None:
    text = "".join([f"<{names[0]}>", *parts, f"</{names[-1]}>"])
    whole = re.compile(r"\s*".join(f"<{name}>.*?</{name}>" for name in names), re.DOTALL)
    assert Tags(*names).holds(text, EMPTY) == (whole.fullmatch(text) is not None)
    assert Tags(*names).holds("".join(parts), EMPTY) == (whole.fullmatch("".join(parts)) is not None)


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
