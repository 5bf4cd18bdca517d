"""Votes over decisions: majorities, ties, abstentions, the consensus of several judges, and the kinds of failure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Action, Click, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.studies.consistency import judging
from guieval.studies.consistency.contingency import Contingency, Detection
from guieval.studies.consistency.judging import Abstention, Majority, Trace, consensus, detection, find, majority
from guieval.studies.decisions.clustering import DEFAULTS, ClusterSettings
from guieval.studies.decisions.executions import StepExecutions
from tests.made_runs import step
from tests.rows import every_row

HOME, BACK = Press(button="HOME"), Press(button="BACK")
UP = Scroll(point=Point(500.0, 500.0), direction="up")
ODD = Unsupported(name="shake", arguments={})
TASK = step(HOME)


def click(x: float, y: float = 500.0) -> Click:
    return Click(point=Point(x, y))


def executions(*drawn: tuple[Action | None, int], failed: int = 0) -> StepExecutions:
    counts = np.array([count for _, count in drawn], dtype=np.int64)
    return StepExecutions(TASK, tuple(action for action, _ in drawn), counts, failed=failed)


def decision(*drawn: tuple[Action | None, int], settings: ClusterSettings = DEFAULTS) -> Majority:
    found = majority(executions(*drawn), settings)
    assert isinstance(found, Majority)
    return found


def votes(*each: Action | Abstention) -> list[Majority | Abstention]:
    return [one if isinstance(one, str) else decision((one, 32)) for one in each]


def joint(*each: Action | Abstention) -> Majority | Abstention:
    return consensus(votes(*each), DEFAULTS)


def test_the_decision_with_most_executions_wins_though_no_execution_of_it_does() -> None:
    found = decision((HOME, 3), (click(480), 1), (click(500), 2), (click(520), 3))
    assert (found.votes, found.of) == (6, 9)
    assert found.prototype == click((480 + 2 * 500 + 3 * 520) / 6)
    assert set(found.actions) == {click(480), click(500), click(520)}


def test_executions_without_a_decision_have_no_vote() -> None:
    found = decision((None, 20), (ODD, 9), (HOME, 2), (BACK, 1))
    assert found.actions == (HOME,) and (found.votes, found.of) == (2, 3)
    assert decision((HOME, 4), (BACK, 3), (Wait(), 3)).actions == (HOME,)  # a tie below the first place is none


@every_row(
    ("drawn", "why"),
    [
        *(([(HOME, 4), (BACK, 4), (Wait(), 1)], "tie"), ([(click(100), 5), (click(900), 5)], "tie")),
        *(([(None, 30), (ODD, 2)], "no decision"), ([], "not asked")),
    ],
)
def test_a_judge_abstains(drawn: Sequence[tuple[Action | None, int]], why: Abstention) -> None:
    assert majority(executions(*drawn, failed=1), DEFAULTS) == why


@every_row(
    ("each", "expected"),
    [
        ((HOME, HOME, BACK), HOME),
        ((HOME, BACK, "tie", BACK), BACK),
        *(((HOME,), HOME), ((HOME, "no decision", "tie"), HOME)),
        *(((HOME, BACK), "tie"), ((HOME, BACK, Wait()), "tie"), ((HOME, HOME, BACK, BACK, Wait()), "tie")),
        *((("tie", "not asked"), "no decision"), (("not asked", "not asked"), "not asked")),
    ],
)
def test_the_consensus_of_judges(each: Sequence[Action | Abstention], expected: Action | Abstention) -> None:
    found = joint(*each)
    assert (found.prototype if isinstance(found, Majority) else found) == expected


def test_judges_agree_within_the_radius_and_not_beyond() -> None:
    near = joint(click(500), click(560), click(900))
    assert isinstance(near, Majority) and (near.votes, near.of) == (2, 3)
    assert near.prototype == click(530.0)
    assert joint(click(500), click(571), click(900)) == "tie"
    wide = consensus(votes(click(500), click(571), click(900)), ClusterSettings(radius=71))
    assert isinstance(wide, Majority) and wide.votes == 2


def test_a_few_executions_need_not_be_dense() -> None:
    strict = ClusterSettings(min_samples=5)
    near = consensus([decision((click(x), 1), settings=strict) for x in (500, 560, 900)], strict)
    assert isinstance(near, Majority) and near.votes == 2
    assert find(decision((click(500), 1), settings=strict), click(560), strict).consistent


def test_one_judge_cannot_outvote_two_by_drawing_more() -> None:
    found = consensus([decision((HOME, 1000)), decision((BACK, 1)), decision((BACK, 1))], DEFAULTS)
    assert isinstance(found, Majority) and found.prototype == BACK


@given(st.permutations([click(500), click(540), click(900), HOME, HOME, HOME]))
def test_the_order_of_judges_states_nothing(order: list[Action]) -> None:
    found = joint(*order)
    assert isinstance(found, Majority) and found.prototype == HOME and found.votes == 3


@every_row(
    ("meant", "done", "consistent", "failure"),
    [
        *((click(500), click(500), True, None), (click(500), click(569), True, None)),
        *((click(500), click(571), False, "action target"), (click(500), HOME, False, "action type")),
        *((HOME, BACK, False, "action target"), (Type(text="coffee"), Type(text="Coffee near me"), False, "action target")),
        *((Type(text="coffee"), Type(text="coffee"), True, None), (Open(app="Clock"), click(500), False, "action type")),
        (UP, Scroll(point=Point(100, 900), direction="up"), True, None),
        (UP, Scroll(point=Point(500, 500), direction="down"), False, "action target"),
        *((Wait(), Wait(duration=3.0), True, None), (Stop(), Wait(), False, "action type")),
        *((HOME, None, False, "invalid action"), (HOME, ODD, False, "invalid action"), ("tie", HOME, None, None)),
        ("no decision", None, False, "invalid action"),
    ],
)
def test_an_execution_against_a_decision(
    meant: Action | Abstention, done: Action | None, consistent: bool | None, failure: str | None
) -> None:
    found = find(votes(meant)[0], done, DEFAULTS)
    assert (found.consistent, found.failure) == (consistent, failure)


def test_an_execution_beside_any_execution_of_the_decision_belongs_to_it() -> None:
    wide = decision((click(400), 16), (click(450), 16), (click(500), 16))
    assert find(wide, click(560), DEFAULTS).consistent and find(wide, click(341), DEFAULTS).consistent
    assert find(wide, click(580), DEFAULTS).consistent is False


def trace(human: bool | None, exact: bool, done: Action | None, *each: Action | Abstention) -> Trace:
    return judging.judged(TASK, "thought", done, exact, votes(*each), DEFAULTS, human)


TRACES = [
    trace(True, True, HOME, HOME, HOME, BACK),
    trace(True, False, HOME, BACK, BACK, HOME),
    trace(False, False, HOME, BACK, Wait(), BACK),
    trace(False, True, HOME, HOME, HOME, HOME),
    trace(True, True, HOME, BACK, HOME, Wait()),
    trace(False, False, HOME, "tie", "no decision", "tie"),
    trace(None, False, None, "tie", "tie", "tie"),
]


def test_what_is_counted_against_humans() -> None:
    assert detection(TRACES) == Detection(1, 1, 1, 1, undecided=2)
    named = ["true_positive", "false_negative", "false_positive", "true_negative", "undecided", "accuracy", "tpr", "tnr"]
    assert list(detection(TRACES).to_json()) == named
    for found in (detection(TRACES, 0), detection(TRACES, 2)):
        assert (found.true_positive, found.false_negative, found.false_positive, found.true_negative) == (1, 2, 1, 1)
    forced = detection(TRACES, undecided_as=False)
    assert (forced.false_negative, forced.true_negative, forced.undecided) == (2, 2, 0)


def test_what_is_counted_against_exact_match() -> None:
    assert judging.contingency(TRACES) == Contingency(2, 0, 0, 3)
    assert judging.contingency(TRACES, undecided_as=False) == Contingency(2, 0, 1, 4)


def test_failures_by_kind() -> None:
    found = judging.failures(TRACES)
    assert {kind: len(traces) for kind, traces in found.items()} == {"action type": 0, "action target": 2, "invalid action": 1}


@given(st.permutations(["search for", "search for ca", "search for cafe"]))
def test_the_order_of_judges_states_nothing_of_texts_either(order: list[str]) -> None:
    # the middle one is near both of the others, which are apart from each other: Algorithm 1 tells them by who came first
    found = joint(*(Type(text=text) for text in order))
    once = joint(*(Type(text=text) for text in ("search for", "search for ca", "search for cafe")))
    assert isinstance(found, Majority) and isinstance(once, Majority)
    assert (found.prototype, found.actions, found.votes) == (once.prototype, once.actions, once.votes)
