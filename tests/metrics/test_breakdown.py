"""Cells and kinds of misses of small runs, counted by hand, and the properties that keep their sums honest."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.evaluation import ClickRule, Protocol, StepRules, get_protocol
from guieval.metrics.breakdown import (
    ERROR_KINDS,
    LENGTHS,
    NEAR,
    REASONING,
    BreakdownCell,
    breakdown,
    error_kinds,
    misses,
    near_limit,
    rows_by,
    ways,
)
from guieval.metrics.columns import ENDS, TYPES, RunColumns
from guieval.metrics.intervals import quoted
from tests.metrics.made_columns import PROTOCOL, made_columns
from tests.rows import every_row


def shares(cells: list[BreakdownCell]) -> dict[str, tuple[int, float | None, float | None]]:
    return {cell.label: (cell.n, cell.type_match.value, cell.exact_match.value) for cell in cells}


def test_by_action_type_failures_are_wrong_in_their_cell_and_steps_without_a_record_have_no_type() -> None:
    types = ["CLICK", "CLICK", "SCROLL", "CLICK", "TYPE"]
    run = made_columns("aaabb", exact=[each in (0, 2) for each in range(5)], typed=[True] * 3 + [False] * 2, reference=types)
    cells = breakdown(run, PROTOCOL, "action")
    assert shares(cells) == {"CLICK": (3, 2 / 3, 1 / 3), "SCROLL": (1, 1.0, 1.0), "TYPE": (1, 0.0, 0.0)}
    assert [cell.label for cell in cells] == ["CLICK", "SCROLL", "TYPE"]
    run = made_columns("aabb", ends=["right", "infrastructure_failure", "wrong", "not_reached"], stop="first-mismatch")
    assert shares(breakdown(run, PROTOCOL, "step")) == {"0": (2, 0.5, 0.5), "1": (1, 0.0, 0.0)}
    run = made_columns("aa", ends=["right", "not_run"], reference=["CLICK", ""], predicted=["CLICK", ""])
    assert shares(breakdown(run, PROTOCOL, "action")) == {"CLICK": (1, 1.0, 1.0)}
    assert shares(breakdown(run, PROTOCOL, "step")) == {"0": (1, 1.0, 1.0), "1": (1, 0.0, 0.0)}


def test_by_length_without_a_gap() -> None:
    cells = {"1": [1], "2-5": [2, 5], "6-10": [6, 10], "11-15": [11], "16-20": [16, 20], "21+": [21, 90]}
    for label, lengths in cells.items():
        run = made_columns("ab"[: len(lengths)], exact=[True] * len(lengths), lengths=lengths)
        assert [(cell.label, cell.n) for cell in breakdown(run, PROTOCOL, "length")] == [(label, len(lengths))]
    assert all(first == last + 1 for (_, last), (first, _) in pairwise(LENGTHS) if last is not None)
    assert LENGTHS[0][0] == 1 and LENGTHS[-1][1] is None
    run = replace(made_columns("abcd", exact=[True] * 4), reasoning=np.array([-1, 0, 100, 5000]))
    assert [cell.label for cell in breakdown(run, PROTOCOL, "reasoning")] == ["0", "1-100", "1601+"]  # one has no answer
    assert all(first == last + 1 for (_, last), (first, _) in pairwise(REASONING) if last is not None)


@every_row(
    ("length", "labels"),
    [
        (1, ["80-100 %"]),
        (2, ["40-60 %", "80-100 %"]),
        (3, ["20-40 %", "60-80 %", "80-100 %"]),
        (5, ["0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %"]),
        (6, ["0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %", "80-100 %"]),
        (10, ["0-20 %"] * 2 + ["20-40 %"] * 2 + ["40-60 %"] * 2 + ["60-80 %"] * 2 + ["80-100 %"] * 2),
    ],
)
def test_by_step_ratio(length: int, labels: list[str]) -> None:
    """sr = (t + 1) / T in fifths, upper borders included (GUIEvalKit paper, D.2 and D.4)."""
    run = made_columns("a" * length, exact=[True] * length)
    assert {label: n for label, (n, *_) in shares(breakdown(run, PROTOCOL, "ratio")).items()} == Counter(labels)


@given(st.integers(1, 300), st.data())
def test_step_ratio_is_within_the_borders_of_its_cell(length: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, length - 1))
    (cell,) = breakdown(made_columns("a", exact=[True], steps=[index], lengths=[length]), PROTOCOL, "ratio")
    low, high = (int(each) for each in cell.label.removesuffix(" %").split("-"))
    assert low * length < 100 * (index + 1) <= high * length


def test_what_is_not_known_is_not_guessed() -> None:
    # Of an episode without a record the length is only the number of planned steps; here step 7 alone was planned.
    run = made_columns("a", ends=["not_run"], steps=[7], lengths=[1])
    assert breakdown(run, PROTOCOL, "ratio") == []
    run = made_columns("ab", exact=[True, False])
    for name in ("app", "language", "element", "subset"):
        assert breakdown(run, PROTOCOL, name) == []
    assert breakdown(made_columns([], exact=[]), PROTOCOL, "step") == []


def test_horizon_is_by_ratio_and_step_together() -> None:
    run = made_columns("aabbbb", exact=[True, False, True, True, False, False])
    expected = dict.fromkeys(("20-40 % / 0", "40-60 % / 0", "40-60 % / 1"), (1, 1.0, 1.0))
    expected |= dict.fromkeys(("60-80 % / 2", "80-100 % / 1", "80-100 % / 3"), (1, 0.0, 0.0))
    assert shares(breakdown(run, PROTOCOL, ("ratio", "step"))) == expected


def test_by_subset_and_by_labels_of_the_benchmark() -> None:
    groups = {"app": ["Maps", "Clock", "", "Maps"], "element": ["text", "icon", "icon", "icon"]}
    run = made_columns(["web/a", "web/a", "mobile/b", "mobile/c"], exact=[True, False, True, False], groups=groups)
    assert shares(breakdown(run, PROTOCOL, "subset")) == {"mobile": (2, 0.5, 0.5), "web": (2, 0.5, 0.5)}
    assert shares(breakdown(run, PROTOCOL, "app")) == {"Clock": (1, 0.0, 0.0), "Maps": (2, 0.5, 0.5)}
    crossed = {"icon / mobile": (2, 0.5, 0.5), "icon / web": (1, 0.0, 0.0), "text / web": (1, 1.0, 1.0)}
    assert shares(breakdown(run, PROTOCOL, ["element", "subset"])) == crossed
    assert ways(run) == ("action", "length", "step", "ratio", "reasoning", "subset", "app", "element")


def test_a_task_is_in_the_rows_of_each_of_its_tags_and_difficulties_have_an_order() -> None:
    run = replace(made_columns("abc", exact=[True] * 3), ended=np.zeros((3, 7), np.int32))
    run = replace(run, groups={"tags": ["a, b", "b", ""], "difficulty": ["hard", "easy", "medium"]})
    assert list(rows_by(run, ["difficulty"])) == [("easy",), ("medium",), ("hard",)]
    found = {labels: np.flatnonzero(rows).tolist() for labels, rows in rows_by(run, ["tags", "difficulty"]).items()}
    assert found == {("a", "hard"): [0], ("b", "easy"): [1], ("b", "hard"): [0]}
    with pytest.raises(UsageError, match="did you mean 'tags'"):
        rows_by(run, ["tag"])


def test_a_name_or_protocol_that_is_unknown_is_reported_with_the_nearest() -> None:
    run = made_columns("a", exact=[True], groups={"platform": ["web"]})
    with pytest.raises(UsageError, match=r"'platfrom' \(did you mean 'platform'\?\); this one can by action, length"):
        breakdown(run, PROTOCOL, "platfrom")
    with pytest.raises(UsageError, match=r"not judged by 'guievalkit2' \(did you mean 'guievalkit'\?\)"):
        breakdown(run, "guievalkit2", "step")
    with pytest.raises(UsageError, match="not judged by 'ui-s1-sop'"):
        error_kinds(run, "ui-s1-sop")


def test_intervals_of_cells_are_over_the_episodes_that_are_in_them() -> None:
    names = [f"e{number}" for number in range(12) for _ in range(3)]
    exact = [(7 * row) % 5 < 3 for row in range(36)]
    run = made_columns(names, exact=exact, reference=["CLICK", "CLICK", "SCROLL"] * 12)
    clicks, scrolls = breakdown(run, PROTOCOL, "action")
    right = np.array(exact).reshape(12, 3)
    assert clicks.exact_match.interval == quoted(right[:, :2].sum(axis=1).astype(float), np.full(12, 2.0))
    assert scrolls.exact_match.interval == quoted(right[:, 2].astype(float), np.ones(12))


def test_intervals_of_cells_hold_what_unanswered_steps_may_have_been() -> None:
    names, ends = [f"e{number}" for number in range(20)], ["right"] * 8 + ["wrong"] * 6 + ["infrastructure_failure"] * 6
    run = made_columns(names, ends=ends)
    (cell,) = breakdown(run, PROTOCOL, "action")
    for match in (cell.exact_match, cell.type_match):
        assert match.interval is not None and match.interval.low < 8 / 20 and match.interval.high > 14 / 20
    (typed,) = (each for kind, each in misses(run, PROTOCOL).items() if kind != "infrastructure")
    assert typed.interval is not None and typed.interval.high > 12 / 20
    nothing = made_columns(names, ends=["not_run"] * 20)
    assert [cell.exact_match.interval for cell in breakdown(nothing, PROTOCOL, "action")] == [None]


KINDS: list[tuple[str, str, str, bool, float, str]] = [
    *[("CLICK", "SCROLL", "wrong", False, math.nan, "type"), ("CLICK", "CLICK", "wrong", True, 79.9, "near miss")],
    *[("CLICK", "CLICK", "wrong", True, 80.1, "far"), ("LONG_PRESS", "LONG_PRESS", "wrong", True, 300.0, "far")],
    ("OPEN", "CLICK", "wrong", True, math.nan, "target"),
    ("SCROLL", "CLICK", "wrong", True, 50.0, "near miss"),  # an alternative is a click
    *[("TYPE", "TYPE", "wrong", True, math.nan, "text"), ("OPEN", "OPEN", "wrong", True, math.nan, "app")],
    *[("SCROLL", "SCROLL", "wrong", True, math.nan, "direction"), ("PRESS", "PRESS", "wrong", True, math.nan, "button")],
    *[("STOP", "STOP", "wrong", True, math.nan, "other"), ("UNSUPPORTED", "UNSUPPORTED", "wrong", True, math.nan, "other")],
    ("CLICK", "", "unparseable", False, math.nan, "unparseable"),
    ("CLICK", "UNSUPPORTED", "unsupported", False, math.nan, "unsupported"),
    ("CLICK", "", "infrastructure_failure", False, math.nan, "infrastructure"),
    ("", "", "not_run", False, math.nan, "not run"),
]


@every_row(("reference", "predicted", "end", "typed", "distance", "kind"), KINDS)
def test_kinds_of_misses(reference: str, predicted: str, end: str, typed: bool, distance: float, kind: str) -> None:
    """Clicks may be 0.04 of the screen off here, so a near miss is up to 80 thousandths."""
    protocol = Protocol(PROTOCOL, "", "", StepRules(click=ClickRule("targets", fallback=0.04)))
    run = made_columns("a", typed=[typed], ends=[end], reference=[reference], predicted=[predicted], distance=[distance])
    assert ERROR_KINDS[error_kinds(run, protocol)[0]] == kind
    ((name, found),) = misses(run, protocol).items()
    assert (name, found.count, found.n, found.value) == (kind, 1, 1, 1.0)


def test_a_point_in_another_box_is_another_element_however_close() -> None:
    protocol = Protocol(PROTOCOL, "", "", StepRules(click=ClickRule("targets", fallback=0.04)))
    run = made_columns(
        "aaabb",
        exact=[False, False, False, True, False],
        typed=[True, True, True, True, False],
        distance=[79.9, 300.0, 300.0, 10.0, math.nan],
        elsewhere=[True, True, False, True, True],  # a right click may lie in another box too; a wrong type stays one
    )
    kinds = ["other element", "other element", "far", "", "type"]
    assert [ERROR_KINDS[code] if code >= 0 else "" for code in error_kinds(run, protocol)] == kinds
    assert {kind: each.count for kind, each in misses(run, protocol).items()} == {"type": 1, "other element": 2, "far": 1}
    kept = run.only(np.array([False, True, True, False, False]))
    assert [ERROR_KINDS[code] for code in error_kinds(kept, protocol)] == ["other element", "far"]


def test_neither_right_steps_nor_unreached_ones_are_misses() -> None:
    run = made_columns("aaa", ends=["right", "wrong", "not_reached"], stop="first-mismatch")
    assert error_kinds(run, PROTOCOL)[[0, 2]].tolist() == [-1, -1]
    (found,) = misses(run, PROTOCOL).values()
    assert (found.count, found.n, found.value) == (1, 2, 0.5)


def test_what_is_near_depends_on_what_the_protocol_allows() -> None:
    def allowing(rule: ClickRule) -> Protocol:
        wide = StepRules(click=ClickRule("targets", fallback=0.14))
        return Protocol("p", "", "", StepRules(click=rule), variants={"wide": wide})

    assert near_limit(allowing(ClickRule("targets", fallback=0.05)), "any") == pytest.approx(100)
    assert near_limit(allowing(ClickRule("targets", fallback=0.05)), "wide") == pytest.approx(280)
    assert near_limit(allowing(ClickRule("targets")), "any") == NEAR == 140
    assert near_limit(allowing(ClickRule("targets", fallback=151.0, measure="canvas")), "any") == NEAR
    assert near_limit(get_protocol("ui-s1-sop"), "androidcontrol") == pytest.approx(80)


@st.composite
def runs(draw: st.DrawFn) -> RunColumns:
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    names = [f"{number % 2}/e{number}" for number, length in enumerate(lengths) for _ in range(length)]
    n = len(names)
    ends = draw(st.lists(st.sampled_from(ENDS), min_size=n, max_size=n))
    known = [end != "not_run" for end in ends]
    types = st.lists(st.sampled_from(TYPES), min_size=n, max_size=n)
    exact = [end == "right" for end in ends]
    return made_columns(
        names,
        typed=[right or (end == "wrong" and draw(st.booleans())) for right, end in zip(exact, ends, strict=True)],
        ends=ends,
        reference=[each if here else "" for each, here in zip(draw(types), known, strict=True)],
        predicted=draw(types),
        distance=draw(st.lists(st.one_of(st.just(math.nan), st.floats(0, 1000)), min_size=n, max_size=n)),
        stop="first-mismatch",
    )


@given(runs())
@settings(max_examples=15)
def test_cells_and_misses_add_up_to_the_reached_steps(run: RunColumns) -> None:
    judged = run.judged[PROTOCOL]
    reached, exact = int(judged.reached.sum()), int(judged.exact_match.sum())
    for by in ("step", "ratio", "length", "subset", ("subset", "step")):
        cells = breakdown(run, PROTOCOL, by)
        assert sum(cell.n for cell in cells) == reached
        assert sum(cell.exact_match.count for cell in cells) == exact
        assert all(0 <= (cell.exact_match.value or 0) <= (cell.type_match.value or 0) <= 1 for cell in cells)
    known = int((judged.reached & (run.reference_type >= 0)).sum())
    assert sum(cell.n for cell in breakdown(run, PROTOCOL, "action")) == known
    found = misses(run, PROTOCOL).values()
    assert sum(each.count for each in found) + exact == reached
    assert all(each.n == reached and each.count for each in found)
