"""When a reply is well formed, and UI-R1's rewards on completions as models write them, well and badly."""

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
from guieval.rewards import HasThought, Parses, Tags, ThoughtAndAction, action_reward, coordinate_reward, format_reward
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
        *[(TURN, True), (f"\n{TURN}\n", True), (TURN.replace("\n", ""), True)],
        (WAIT, False),  # no thought
        ('{"action": "wait", "time": 2}', False),  # bare JSON
        *[(TURN.replace("It loads.", " "), False), (f"{'word ' * 50}{TURN}", False), (f"{TURN}{' word' * 50}", False)],
        (TURN.replace("</think>", "</think> so"), False),
        (TURN.replace("</think>", ""), False),  # a thought that never ends
        (f"{TURN}\n{TURN}", False),  # two answers
        *[(f"{TURN}\n{WAIT}", False), (TURN.replace("It loads.", f"It loads. {WAIT}"), False)],
        (TURN.replace("2}", '2}\n{"action": "wait", "time": 2}'), False),
        *[(TURN.replace("{", "[{").replace("}", "}]"), False), (TURN.replace('"action"', "action"), False)],
        *[(TURN.replace("</action>", ""), False), (f"{WAIT}<think>It loads.</think>", False)],
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


CLICK = "<answer>[{'action': 'click' ,'coordinate': [100, 200, 300, 400] }]</answer>"
BACK = "<answer>[{'action': 'navigate_back' ,'coordinate': [0,0,0,0]}]</answer>"


def message(answer: str) -> str:
    return f"<think>so</think> <answer>{answer}</answer>"


def click(x: int, y: int) -> str:
    return message(f"[{{'action': 'click', 'coordinate': [{x}, {y}]}}]")


@every_row(
    ("answer", "solution", "reward"),
    [
        ("[{'action': 'click', 'coordinate': [1, 2]}]", CLICK, 1.0),
        ("[{'action': click, 'coordinate': [1, 2]}]", CLICK, 1.0),  # without quotes too
        ("{'action':'navigate_back'}", BACK, 1.0),
        ("[{'action': 'Click', 'coordinate': [1, 2]}]", CLICK, 0.0),
        ('[{"action": "click", "coordinate": [1, 2]}]', CLICK, 0.0),  # only single quotes are looked for
        ("[{'action': 'click'}]", BACK, 0.0),
        ("", "<answer></answer>", 0.0),  # two answers that say nothing do not agree
    ],
)
def test_actions_agree_by_their_quoted_names(answer: str, solution: str, reward: float) -> None:
    assert action_reward(message(answer), solution) == reward


def test_only_the_first_answer_counts_and_a_missing_place_is_the_corner() -> None:
    assert action_reward(message("[{'action': 'scroll'}]") + click(150, 250), CLICK) == 0.0
    assert coordinate_reward(click(150, 250) + click(9, 9), CLICK) == 1.0
    assert action_reward("[{'action': 'click', 'coordinate': [150, 250]}]", CLICK) == 0.0
    # other actions need no place
    assert coordinate_reward(message("[{'action': 'navigate_back'}]"), BACK) == 1.0
    assert coordinate_reward(message("[{'action': 'scroll'}]"), BACK) == 0.0
    bare = message("[{'action': 'click'}]")
    assert coordinate_reward(bare, CLICK) == 0.0
    assert coordinate_reward(bare, "<answer>[{'action': 'click' ,'coordinate': [0, 0, 50, 50] }]</answer>") == 1.0
    assert coordinate_reward(bare, "<answer>[{'action': 'click'}]</answer>") == 1.0
    broken = message("[{'action': 'click', 'coordinate': [150.5, 250]}]")
    assert coordinate_reward(broken, CLICK) == 0.0  # no integers, no point
    assert coordinate_reward(message(f"[{{'action': 'click', 'coordinate': [{'9' * 5000}, 1]}}]"), CLICK) == 0.0
    assert coordinate_reward(message(f"[{{'action': 'click', 'coordinate': [{'9' * 400}, 1]}}]"), CLICK, (1.5, 1.5)) == 0.0


def test_a_click_hits_up_to_the_border_of_the_box_and_scaled_points_are_cut_to_whole_pixels() -> None:
    places = ((100, 200), (300, 400), (99, 200), (301, 400), (100, 199), (300, 401))
    assert [coordinate_reward(click(x, y), CLICK) for x, y in places] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    # 66 x 1.504 = 99.264, 67 x 1.504 = 100.768, 200 x 1.504 = 300.8 which is cut to 300, 201 x 1.504 = 302.304
    assert [coordinate_reward(click(x, 300), CLICK, (1.504, 1.0)) for x in (66, 67, 200, 201)] == [0.0, 1.0, 1.0, 0.0]


@every_row(
    ("completion", "reward"),
    [
        *[("<think>a</think><answer>b</answer>", 1.0), ("<think>a\nb</think>\n <answer></answer>", 1.0)],
        *[("<think>a</think><answer>b</answer><answer>c</answer>", 1.0), ("<think>a</think> so <answer>b</answer>", 0.0)],
        *[("<think>a</think><answer>b</answer> ", 0.0), ("<answer>b</answer>", 0.0)],
        *[("<answer>b</answer><think>a</think>", 0.0), ("", 0.0)],
    ],
)
def test_the_format_is_a_thought_and_an_answer(completion: str, reward: float) -> None:
    assert format_reward(completion) == reward
