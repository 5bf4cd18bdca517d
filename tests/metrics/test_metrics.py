"""Metrics against small runs computed by hand, of columns and of records, and the properties that keep denominators honest."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import (
    Action,
    ActionSpace,
    ActionType,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
)
from guieval.evaluation import FailurePolicy, Metric, get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, Average, Fate, Measure
from guieval.history.modes import Mode, get_mode
from guieval.metrics import RunSummary
from guieval.metrics.columns import RunColumns
from guieval.metrics.measured import Measured
from guieval.metrics.protocol_metric import ProtocolMetric
from guieval.metrics.summary import WITHOUT_OPEN
from guieval.steps import VERDICTS, Plan, Sample, StepOutcome, StepRecord, Usage, Verdict
from tests.json_values import read_json
from tests.made_runs import key, step
from tests.metrics.made_columns import PROTOCOL, made_columns, made_ledger, summarise, whole
from tests.rows import every_row

PLAIN = FailurePolicy()
OPENS: frozenset[ActionType] = frozenset({"OPEN"})


def value_of(metric: Metric, columns: RunColumns, policy: FailurePolicy = PLAIN, *, intervals: bool = False) -> Measured:
    return ProtocolMetric(metric, policy).measure(columns, columns.judged[PROTOCOL], intervals=intervals)


def strict(found: Measured) -> float | None:
    """With every step that is dropped or missing counted as wrong."""
    return found.value if found.dropped_as_wrong is None else found.dropped_as_wrong


# Three episodes of 4, 2 and 1 steps. Right of them: 1 1 0 1 | 1 1 | 0; of the right type also the third.
RUN = made_columns(
    "aaaabbc",
    exact=[True, True, False, True, True, True, False],
    typed=[True] * 6 + [False],
    reference=["CLICK", "TYPE", "CLICK", "CLICK", "TYPE", "CLICK", "CLICK"],
    predicted=["CLICK", "LONG_PRESS", "CLICK", "CLICK", "LONG_PRESS", "CLICK", "TYPE"],
    groups={"kind": ["x", "x", "y", "y", "x", "y", "y"], "place": ["1", "1", "1", "", "2", "2", "2"]},
)

BY_HAND: list[tuple[Measure, Average, float, float, int]] = [
    ("type", "all", 6 / 7, 6, 7),
    ("type", "episodes", (1 + 1 + 0) / 3, 2, 3),
    ("type", "cells", (3 / 3 + 3 / 4) / 2, 1.75, 2),
    ("type", "cells-by-size", (3 * 3 + 3 * 4) / (9 + 16), 1.75, 2),
    ("exact", "all", 5 / 7, 5, 7),
    ("exact", "episodes", (3 / 4 + 1 + 0) / 3, 1.75, 3),
    ("exact", "cells", (3 / 3 + 2 / 4) / 2, 1.5, 2),
    ("exact", "cells-by-size", (3 * 3 + 2 * 4) / (9 + 16), 1.5, 2),
    ("exact-given-type", "all", 5 / 6, 5, 6),
    ("exact-given-type", "episodes", (3 / 4 + 1) / 2, 1.75, 2),
    ("exact-given-type", "cells", (3 / 3 + 2 / 3) / 2, 5 / 3, 2),
    ("exact-given-type", "cells-by-size", (3 * 3 + 2 * 3) / (9 + 9), 5 / 3, 2),
    ("progress", "all", 4 / 7, 4, 7),
    ("progress", "episodes", (2 / 4 + 1 + 0) / 3, 1.5, 3),
    # of an episode its first row's label: a and b are of kind x, c of y
    ("progress", "cells", ((2 / 4 + 1) / 2 + 0) / 2, 0.75, 2),
    ("progress", "cells-by-size", (1.5 * 2 + 0 * 1) / (4 + 1), 0.75, 2),
    ("success", "all", 1 / 3, 1, 3),
    ("success", "episodes", 1 / 3, 1, 3),
    ("success", "cells", (1 / 2 + 0) / 2, 0.5, 2),
    ("success", "cells-by-size", (1 * 2) / (4 + 1), 0.5, 2),
    ("score", "all", (1.5 / 3 + 1 / 3) / 2, (1.5 + 1) / 2, 3),
    ("score", "episodes", (1.5 / 3 + 1 / 3) / 2, (1.5 + 1) / 2, 3),
    ("score", "cells", ((1.5 / 2 + 1 / 2) / 2 + 0) / 2, 0.625, 2),
    ("score", "cells-by-size", (1.25 * 2) / (4 + 1), 0.625, 2),
]
# without distances a step's credit is its exact match; the last step's answer, of another type, has no place
ALIKE: dict[Measure, Measure] = {"exact": "graded", "exact-given-type": "exact-given-place"}
BY_HAND += [(ALIKE[measure], *more) for measure, *more in BY_HAND if measure in ALIKE]  # type: ignore[misc]


@every_row(("measure", "average", "value", "count", "n"), BY_HAND)
def test_every_measure_by_every_average(measure: Measure, average: Average, value: float, count: float, n: int) -> None:
    metric = Metric("f", measure, average=average, keys=("kind",) if average.startswith("cells") else ())
    found = value_of(metric, RUN)
    assert (found.value, found.count) == pytest.approx((value, count))
    assert found.n == n
    assert found.dropped_as_wrong is None and found.upper is None


def test_every_measure_and_average_has_its_row_and_nothing_planned_gives_nothing() -> None:
    every = {(measure, average) for measure in get_args(Measure) for average in get_args(Average)}
    assert {(measure, average) for measure, average, *_ in BY_HAND} == every
    columns = made_columns([], exact=[])
    for measure in get_args(Measure):
        for average in get_args(Average):
            found = value_of(Metric("f", measure, average=average, keys=("kind",)), columns)
            assert (found.value, found.count, found.n, found.dropped_as_wrong, found.upper) == (None, 0.0, 0, None, None)


def test_a_points_credit_falls_with_its_distance_and_a_failed_step_could_earn_all() -> None:
    columns = made_columns(
        "a" * 6,
        exact=[True, True, False, False, True, False],
        typed=[True, True, True, False, True, True],
        distance=[0.0, 250.0, 800.0, 100.0, np.nan, np.nan],
        reference=["CLICK", "CLICK", "CLICK", "CLICK", "TYPE", "TYPE"],
    )
    # the third is beyond 0.7071 screens, the fourth of another type, the last two are texts
    credits = [1.0, 1 - 2**0.5 * 0.25, 0.0, 0.0, 1.0, 0.0]
    found = value_of(Metric("f", "graded"), columns)
    assert (found.value, found.count) == pytest.approx((sum(credits) / 6, sum(credits)))
    assert found.n == 6
    assert value_of(Metric("f", "graded", over=frozenset({"CLICK"})), columns).value == pytest.approx(sum(credits[:4]) / 4)
    ends = ["right", "infrastructure_failure"]
    columns = made_columns("aa", ends=ends, distance=[500.0, np.nan])
    credit = 1 - 2**0.5 / 2
    found = value_of(Metric("f", "graded"), columns, FailurePolicy(missing="left-out"))
    assert found.value == pytest.approx(credit) and strict(found) == pytest.approx(credit / 2)
    assert found.upper == pytest.approx((credit + 1) / 2)


def test_cells_of_two_keys_leave_out_what_lacks_one() -> None:
    found = value_of(Metric("f", "exact", average="cells", keys=("kind", "place")), RUN)
    # x1: 1 1, y1: 0, x2: 1, y2: 1 0; the fourth step has no place
    assert found.value == pytest.approx((1 + 0 + 1 + 1 / 2) / 4)
    assert found.n == 4
    assert value_of(Metric("f", "exact", average="cells", keys=("nowhere",)), RUN).value is None


def test_exact_matches_among_answers_with_a_place() -> None:
    """Of five clicks and long presses, four are answered by one of the two, and two of these match; the others do not count."""
    metric = Metric("f", "exact-given-place", over=frozenset({"CLICK", "LONG_PRESS"}))
    reference = ["CLICK", "LONG_PRESS", "CLICK", "LONG_PRESS", "CLICK", "TYPE"]
    predicted = ["CLICK", "LONG_PRESS", "CLICK", "CLICK", "TYPE", "TYPE"]
    exact = [True, True, False, False, False, True]
    found = value_of(metric, made_columns("a" * 6, exact=exact, reference=reference, predicted=predicted))
    assert (found.value, found.count, found.n) == (2 / 4, 2, 4)


@every_row(
    ("metric", "value", "n"),
    [
        (Metric("f", "exact", over=frozenset({"TYPE"})), 2 / 2, 2),
        (Metric("f", "exact", over=frozenset({"CLICK", "TYPE"}), without=frozenset({"TYPE"})), 3 / 5, 5),
        (Metric("f", "exact", without=frozenset({"TYPE"})), 3 / 5, 5),
        (Metric("f", "exact", over=frozenset({"OPEN"})), None, 0),
        (Metric("f", "exact-given-type", over=frozenset({"CLICK"})), 3 / 4, 4),
        (Metric("f", "progress", without=frozenset({"TYPE"})), (1 + 1 + 0) / (3 + 1 + 1), 5),
        (Metric("f", "success", over=frozenset({"TYPE"})), 1.0, 2),
    ],
)
def test_metrics_over_some_types(metric: Metric, value: float | None, n: int) -> None:
    found = value_of(metric, RUN)
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.n == n


# a: right, (failed), right; b: (failed), right; the failed step ends in each of four ways.
def with_failures(end: str) -> RunColumns:
    ended = "right" if end == "wrong" else end
    columns = made_columns("aaabb", ends=["right", ended, "right", ended, "right"])
    if end == "wrong":  # judged, but outside the spaces
        columns.covered[[1, 3]] = False
    return columns


FIELD_OF = {"unparseable": "unparseable", "unsupported": "unsupported", "wrong": "outside"}
FIELD_OF |= {"infrastructure_failure": "missing", "not_run": "missing"}


# metric: (wrong, left out, zero), each value and n
FATES: list[tuple[Metric, dict[Fate, tuple[float, int]]]] = [
    (Metric("f", "type"), {"wrong": (3 / 5, 5), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Metric("f", "exact"), {"wrong": (3 / 5, 5), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Metric("f", "exact-given-type"), {"wrong": (3 / 3, 3), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Metric("f", "progress"), {"wrong": (1 / 5, 5), "left-out": (3 / 3, 3), "zero": (0 / 3, 3)}),
    (Metric("f", "progress", average="episodes"), {"wrong": ((1 / 3 + 0) / 2, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
    (Metric("f", "success"), {"wrong": (0.0, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
    (Metric("f", "score"), {"wrong": (1 / 12, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
]


@every_row("fate", ["wrong", "left-out", "zero"])
@every_row("end", FIELD_OF)
@every_row(("metric", "expected"), FATES, ids=lambda value: getattr(value, "measure", ""))
def test_every_fate_of_every_failure(metric: Metric, expected: dict[Fate, tuple[float, int]], end: str, fate: Fate) -> None:
    columns = with_failures(end)
    found = value_of(metric, columns, FailurePolicy(**{FIELD_OF[end]: fate}))
    if end == "wrong" and fate == "wrong":  # an action outside the spaces that is left in is judged like any other
        assert found.value == 1.0
    else:
        value, n = expected[fate]
        assert found.value == pytest.approx(value)
        assert found.n == n
        assert strict(found) == pytest.approx(expected["wrong"][0])
    assert found.upper == (1.0 if FIELD_OF[end] == "missing" and found.value != 1.0 else None)
    left_out: dict[str, Fate] = dict.fromkeys({*FIELD_OF.values()} - {FIELD_OF[end]}, "left-out")
    other = FailurePolicy(**left_out)
    assert replace(value_of(metric, columns, other), of=metric.denominator(PLAIN)) == value_of(metric, columns)


def test_a_zero_changes_nothing_but_the_length_and_an_episode_of_zeros_is_one() -> None:
    columns = made_columns("a" * 4, ends=["right", "wrong", "unparseable", "right"])
    policy = FailurePolicy(unparseable="zero")
    assert value_of(PROGRESS, columns, policy).value == pytest.approx(1 / 3)
    assert strict(value_of(PROGRESS, columns, policy)) == pytest.approx(1 / 4)
    columns = made_columns("ab", ends=["right", "unparseable"])
    for metric in (PROGRESS, SUCCESS_RATE, Metric("f", "score")):
        assert (value_of(metric, columns, policy).value, value_of(metric, columns, policy).n) == (1 / 2, 2)
    assert value_of(Metric("f", "progress"), columns, policy).n == 1


def test_an_episode_is_left_out_whole_where_a_step_of_it_is_missing() -> None:
    # a is right throughout; b lacks its second step; c is right, then wrong
    ends = ["right", "right", "right", "not_run", "right", "wrong"]
    columns = made_columns("aabbcc", ends=ends)
    policy = FailurePolicy(missing="episode-left-out")
    by_hand = [
        (EXACT_MATCH, 4 / 5, 5, 4 / 6),  # the steps of b that were answered stay
        (SUCCESS_RATE, 1 / 2, 2, 1 / 3),
        (PROGRESS, (1 + 1 / 2) / 2, 2, (1 + 1 / 2 + 1 / 2) / 3),
        (Metric("f", "progress"), 3 / 4, 4, 4 / 6),
        (Metric("f", "score"), (1 + 1 / 4) / 2, 2, (1 + 1 / 4 + 1 / 4) / 3),
    ]
    for metric, value, n, lower in by_hand:
        found = value_of(metric, columns, policy)
        assert found.value == pytest.approx(value), metric
        assert found.n == n and strict(found) == pytest.approx(lower), metric
    only_b = columns.only(np.array([False, False, True, True, False, False]))
    assert value_of(SUCCESS_RATE, only_b, policy).value is None
    # a missing step of a type that does not count leaves its episode in
    ends = ["right", "infrastructure_failure"]
    opened = made_columns("aa", ends=ends, reference=["CLICK", "OPEN"])
    assert value_of(Metric("f", "success", without=OPENS), opened, policy).value == 1.0


def test_cells_may_be_the_episodes_subsets() -> None:
    # AITW's mean over its subsets: install 2 of 3 steps, single 0 of 1
    columns = made_columns(["install/a", "install/a", "install/b", "single/a"], exact=[True, False, True, False])
    metric = Metric("f", "exact", average="cells", keys=("subset",))
    assert value_of(metric, columns).value == pytest.approx((2 / 3 + 0) / 2)
    assert value_of(Metric("f", "success", average="cells", keys=("subset",)), columns).value == pytest.approx((1 / 2 + 0) / 2)
    labelled = made_columns(["x/a", "x/b"], exact=[True, False], groups={"subset": ["one", "two"]})
    assert value_of(metric, labelled).value == 1 / 2  # a label of that name goes before
    assert value_of(metric, made_columns("a", exact=[True])).value is None  # no subset is no cell


def test_a_gap_ends_an_episode_and_steps_without_information_stay_in() -> None:
    columns = made_columns("aabb", exact=[True, True, True, True], reference=["OPEN", "CLICK", "CLICK", "OPEN"])
    metric = Metric("f", "progress", without=OPENS)
    assert value_of(metric, columns).value == 1.0
    assert value_of(metric, columns, FailurePolicy(missing="zero")).value == 0.0
    first = columns.only(np.array([True, True, False, False]))
    assert value_of(metric, first, FailurePolicy(unparseable="zero")).value == 1.0
    columns = made_columns("aa", ends=["right", "not_run"], reference=["CLICK", ""])
    found = value_of(Metric("f", "exact", without=OPENS), columns)
    assert (found.value, found.n, found.upper) == (1 / 2, 2, 1.0)
    assert value_of(Metric("f", "exact", over=frozenset({"CLICK"})), columns).n == 1


def test_a_metrics_own_policy_takes_the_place_of_the_protocols() -> None:
    columns = with_failures("unparseable")
    metric = Metric("f", "exact", failure=FailurePolicy(unparseable="left-out"))
    assert value_of(metric, columns, PLAIN).value == 1.0
    assert value_of(EXACT_MATCH, columns, FailurePolicy(unparseable="left-out")).value == 1.0


def test_steps_not_reached_are_in_episode_metrics_only() -> None:
    ends, types = ["right", "wrong", "not_reached"], ["CLICK", "CLICK", ""]
    columns = made_columns("aaa", ends=ends, reference=types, stop="first-mismatch")
    assert (value_of(EXACT_MATCH, columns).value, value_of(EXACT_MATCH, columns).n) == (1 / 2, 2)
    assert value_of(PROGRESS, columns).value == pytest.approx(1 / 3)
    without = Metric("f", "progress", without=OPENS)
    found = value_of(without, columns)
    assert (found.value, found.n, found.interval) == (None, 0, None)
    assert np.isnan(combined(without, columns))
    assert value_of(Metric("f", "exact", without=OPENS), columns).value == 1 / 2


def combined(metric: Metric, columns: RunColumns, policy: FailurePolicy = PLAIN) -> float:
    made = ProtocolMetric(metric, policy).terms(columns, columns.judged[PROTOCOL])
    assert made.numerator.shape == made.denominator.shape and made.numerator.shape[0] == len(columns.episodes)
    sums = made.numerator.sum(axis=0, keepdims=True), made.denominator.sum(axis=0, keepdims=True)
    return float(made.combine(*sums)[0])


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.sampled_from(["right", "wrong", "typed", "unparseable", "unsupported", "infrastructure_failure", "not_run"]),
            st.sampled_from(["x", "y", ""]),
            st.sampled_from(["CLICK", "OPEN"]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(get_args(Measure)),
    st.sampled_from(get_args(Average)),
    st.tuples(*[st.sampled_from(get_args(Fate))] * 4).map(lambda fates: FailurePolicy(*fates)),
)
def test_terms_add_up_to_the_metric(
    rows: list[tuple[str, str, str, str]], measure: Measure, average: Average, policy: FailurePolicy
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    columns = made_columns(
        [episode for episode, *_ in rows],
        typed=[end in ("right", "typed") for _, end, *_ in rows],
        ends=["wrong" if end == "typed" else end for _, end, *_ in rows],
        reference=["" if end == "not_run" else reference for _, end, _, reference in rows],
        groups={"kind": [kind for *_, kind, _ in rows]},
    )
    metric = Metric("f", measure, without=OPENS, average=average, keys=("kind",))
    found, total = value_of(metric, columns, policy), combined(metric, columns, policy)
    assert np.isnan(total) if found.value is None else found.value == pytest.approx(total)
    if found.value is not None:
        assert 0.0 <= found.value <= 1.0


@every_row(
    ("policy", "exact", "progress", "weighted", "success"),
    [
        # steps: 1 - 1 | 1 1; the second one is missing
        (FailurePolicy(missing="wrong"), 4 / 5, (1 / 3 + 1) / 2, 3 / 5, 1 / 2),
        (FailurePolicy(missing="left-out"), 4 / 4, (2 / 2 + 1) / 2, 4 / 4, 2 / 2),  # AgentCPM: as if there were no such step
        (FailurePolicy(missing="zero"), 4 / 4, (0 / 2 + 1) / 2, 2 / 4, 1 / 2),  # GUIEvalKit: the gap takes the whole prefix
    ],
)
def test_a_missing_step(policy: FailurePolicy, exact: float, progress: float, weighted: float, success: float) -> None:
    columns = made_columns("aaabb", ends=["right", "not_run", *["right"] * 3])
    metrics = (EXACT_MATCH, PROGRESS, Metric("f", "progress"), SUCCESS_RATE)
    for metric, expected in zip(metrics, (exact, progress, weighted, success), strict=True):
        value = value_of(metric, columns, policy)
        assert value.value == pytest.approx(expected)
        assert strict(value) == value_of(metric, columns).value  # what is dropped never hides
        assert value.upper == (None if expected == 1.0 else 1.0)


@every_row("missing", ["wrong", "left-out", "zero"])
@every_row("metric", [EXACT_MATCH, TYPE_MATCH, PROGRESS, SUCCESS_RATE], ids=lambda metric: metric.name)
def test_an_interval_holds_whatever_the_missing_steps_may_have_been(metric: Metric, missing: Fate) -> None:
    """Otherwise 0 % of 237, of which most are missing, is said to be at most 8.8 %, next to bounds of 0 and 97 %."""
    names = [f"e{number}" for number in range(20) for _ in range(2)]
    ends = (["right", "wrong"] * 4 + ["infrastructure_failure", "not_run"] * 16)[:40]
    run = made_columns(names, ends=ends)
    found = value_of(metric, run, FailurePolicy(missing=missing), intervals=True)
    value, interval = found.value, found.interval
    assert value is not None and interval is not None
    filled = ([end == "right" or (answer and end not in ("right", "wrong")) for end in ends] for answer in (False, True))
    possible = [value_of(metric, made_columns(names, exact=exact)).value or 0.0 for exact in filled]
    assert interval.low <= min(*possible, value) < max(*possible, value) <= interval.high


def test_where_nothing_was_measured_there_is_no_interval() -> None:
    run = made_columns("abb", ends=["not_run"] * 3)
    for metric in (EXACT_MATCH, PROGRESS, SUCCESS_RATE):
        assert value_of(metric, run, intervals=True).interval is None


OFFLINE, SOP = get_mode("offline"), get_mode("sop")
SPACE = ActionSpace()
CLICK = Click(point=Point(500.0, 500.0))
OPEN = Open(app="Maps")


# How a planned step ended: its verdict and, for a wrong answer, whether the type matched; None where there is no record.
End: TypeAlias = tuple[Verdict, bool] | None


def outcome(verdict: Verdict, *, typed: bool = False, distance: float | None = None) -> StepOutcome:
    right = verdict == "right"
    return StepOutcome(verdict=verdict, type_match=right or typed, exact_match=right, distance=distance)


def record(
    episode: str,
    index: int,
    length: int,
    verdict: Verdict = "right",
    *,
    typed: bool = False,
    reference: Action = CLICK,
    message: Action | None = None,
    groups: Mapping[str, str] | None = None,
) -> StepRecord:
    task = step(reference, episode=episode, index=index, length=length, groups=dict(groups or {}))
    if message is None and verdict in ("right", "wrong"):
        message = reference
    if message is None and verdict == "unsupported":
        message = Unsupported(name="key_combo")
    return StepRecord(task=task, samples=(Sample(action=message, outcome=outcome(verdict, typed=typed)),))


def episode(name: str, *ends: End | Verdict, reference: Action = CLICK) -> list[StepRecord]:
    """Records of one episode; ``None`` leaves a step without a record, a pair says whether the type matched."""
    pairs = [(end, False) if end is None or isinstance(end, str) else end for end in ends]
    return [
        record(name, index, len(ends), verdict, typed=typed, reference=reference)
        for index, (verdict, typed) in enumerate(pairs)
        if verdict is not None
    ]


def offline(records: Iterable[StepRecord], plan: Mapping[str, int], mode: Mode = OFFLINE) -> RunSummary:
    return summarise(records, {key(name): range(length) for name, length in plan.items()}, mode, SPACE, SPACE)


def sop(records: Iterable[StepRecord], plan: Mapping[str, int]) -> RunSummary:
    return offline(records, plan, SOP)


def test_unparseable_and_unsupported_are_wrong_and_outside_coverage() -> None:
    summary = offline(episode("a", "right", ("wrong", True), "unparseable", "unsupported"), {"a": 4})
    assert summary.exact_match.value == 1 / 4
    assert (summary.coverage.count, summary.coverage.n) == (2, 4)
    assert not summary.coverage_ok
    assert (summary.metrics["covered exact match"].count, summary.metrics["covered exact match"].n) == (1, 2)
    assert (summary.metrics["covered type match"].count, summary.metrics["covered type match"].n) == (2, 2)
    assert [getattr(summary.verdicts, name) for name in VERDICTS] == [1, 1, 1, 1, 0]


@every_row(("outside", "enough"), [(5, True), (6, False)])
def test_coverage_is_enough_from_95_percent_on(outside: int, enough: bool) -> None:
    ends: list[Verdict] = ["unparseable" if index < outside else "right" for index in range(100)]
    assert offline(episode("a", *ends), {"a": 100}).coverage_ok is enough


def test_coverage_asks_both_action_spaces() -> None:
    messages: tuple[Action, ...] = (Press(button="RECENT"), Type(text="x"))
    records = [*(record("a", index, 3, "wrong", message=each) for index, each in enumerate(messages)), record("a", 2, 3)]
    mute = ActionSpace(types=frozenset({"CLICK", "PRESS"}), buttons=frozenset({"RECENT"}))
    for model, benchmark, count in ((SPACE, SPACE, 2), (mute, SPACE, 1), (SPACE, mute, 1), (mute, mute, 2)):
        assert summarise(records, {key("a"): range(3)}, OFFLINE, model, benchmark).coverage.count == count


def test_failed_and_missing_steps_stay_in_every_denominator() -> None:
    records = episode("a", "right", "infrastructure_failure", "right", "right") + episode("b", "right", None, None)
    summary = offline(records, {"a": 4, "b": 3, "c": 1})
    assert not summary.complete
    assert (summary.incomplete, summary.incomplete_episodes) == (4, 3)
    assert (summary.verdicts.infrastructure_failure, summary.verdicts.not_run) == (1, 3)
    assert (summary.exact_match.count, summary.exact_match.n, summary.exact_match.upper) == (4, 8, 1.0)
    assert summary.progress.value == pytest.approx((1 / 4 + 1 / 3 + 0) / 3)
    assert summary.progress.upper == 1.0
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (2, 8)
    assert (summary.success_rate.count, summary.success_rate.n, summary.success_rate.upper) == (0, 3, 1.0)
    assert summary.coverage.n == 4
    assert summary.by_action_type["CLICK"].n == 5  # a step never run has no known label
    assert "PG" not in summary.metrics


def test_upper_bounds_stop_at_a_measured_mismatch() -> None:
    summary = offline(episode("a", "right", "infrastructure_failure", "right", "wrong", "right"), {"a": 5})
    assert summary.metrics["step-weighted progress"].count == 1
    assert summary.metrics["step-weighted progress"].upper == 3 / 5
    assert summary.success_rate.value == 0.0 and summary.success_rate.upper is None
    trailing = offline(episode("a", "right", "wrong", "infrastructure_failure"), {"a": 3})
    assert trailing.progress.upper is None
    assert (trailing.exact_match.value, trailing.exact_match.upper) == (1 / 3, 2 / 3)


def test_sop_metrics_and_steps_not_reached() -> None:
    records = episode("a", "right", ("wrong", True), None, None) + episode("b", "right", "right")
    records += episode("c", "unparseable", None, None)
    summary = sop(records, {"a": 4, "b": 2, "c": 3})
    found = [summary.metrics[name] for name in ("PG", "TSR", "score")]
    assert [each.value for each in found] == pytest.approx([(1 / 4 + 1 + 0) / 3, 1 / 3, (5 / 12 + 1 / 3) / 2])
    assert [each.n for each in found] == [3, 3, 3]
    assert (summary.verdicts.not_reached, summary.verdicts.not_run, summary.verdicts.planned) == (4, 0, 9)
    assert summary.complete
    assert (summary.exact_match.count, summary.exact_match.n) == (3, 5)
    assert (summary.type_match.count, summary.type_match.n) == (4, 5)


def test_steps_after_a_failure_are_not_run_rather_than_not_reached() -> None:
    summary = sop(episode("a", "right", "infrastructure_failure", None, None), {"a": 4})
    verdicts = summary.verdicts
    assert (verdicts.infrastructure_failure, verdicts.not_run, verdicts.not_reached) == (1, 2, 0)
    found = [(each.value, each.upper) for each in (summary.metrics[name] for name in ("PG", "TSR", "score"))]
    assert found == [(1 / 4, 1.0), (0.0, 1.0), (1 / 8, 1.0)]


def test_scoring_again_ends_an_episode_earlier_or_shows_the_steps_never_asked() -> None:
    """Under a stricter protocol the second step is wrong; under a looser one both that were answered are right."""
    stricter: tuple[list[Verdict], list[Verdict]] = (["right", "right", "wrong"], ["right", "wrong", "wrong"])
    looser: tuple[list[Verdict], list[Verdict]] = (["right", "wrong"], ["right", "right"])
    ended = []
    for before, after in (stricter, looser):
        ledger = made_ledger({key("a"): range(4)}, SOP)
        for one, verdict in zip(episode("a", *before, *[None] * (4 - len(before))), after, strict=True):
            ledger.add(one.task, one.samples, outcome(verdict, typed=True))
        ended.append(whole(ledger))
    counts = [[getattr(each.verdicts, name) for name in ("right", "wrong", "not_reached", "not_run")] for each in ended]
    assert counts == [[1, 1, 2, 0], [2, 0, 0, 2]] and not ended[1].complete
    assert ended[0].progress.value == 1 / 4
    assert (ended[1].metrics["PG"].value, ended[1].metrics["PG"].upper) == (2 / 4, 1.0)


def test_the_last_finished_record_of_a_step_counts() -> None:
    ledger = made_ledger({key("a"): range(1)}, OFFLINE)
    for verdict in ("infrastructure_failure", "wrong", "right", "infrastructure_failure"):
        ledger.take(record("a", 0, 1, verdict))
    assert len(ledger) == 1
    assert whole(ledger).exact_match.value == 1.0
    ledger.take(record("a", 0, 1, "wrong"))
    assert whole(ledger).exact_match.value == 0.0


def test_a_record_with_a_failed_further_sample_yields_to_a_finished_one() -> None:
    whole = record("a", 0, 1, "right")
    failed = Sample(outcome=outcome("infrastructure_failure"))
    partial = record("a", 0, 1, "wrong")
    partial = partial.model_copy(update={"samples": (*partial.samples, failed)})
    assert offline([whole, partial], {"a": 1}).exact_match.value == 1.0
    assert offline([partial], {"a": 1}).complete
    assert offline([partial, record("a", 0, 1, "infrastructure_failure")], {"a": 1}).verdicts.wrong == 1


def test_metrics_without_open_steps() -> None:
    records = [
        record("a", 0, 3, "wrong", reference=OPEN),
        record("a", 1, 3, "right"),
        record("a", 2, 3, "wrong", typed=True),
        record("b", 0, 2, "unsupported", reference=OPEN),
        record("b", 1, 2, "right"),
        record("c", 0, 1, "right", reference=OPEN),
    ]
    summary = offline(records, {"a": 3, "b": 2, "c": 1})
    assert summary.exact_match.value == 3 / 6
    left = {name.removesuffix(WITHOUT_OPEN): each for name, each in summary.metrics.items() if name.endswith(WITHOUT_OPEN)}
    counts = {"exact match": (2, 3), "type match": (3, 3), "coverage": (3, 3), "covered exact match": (2, 3)}
    # an episode that opens with OPEN keeps its prefix, and one of nothing but OPEN is skipped
    counts |= {"step-weighted progress": (2, 3), "success rate": (1, 2)}
    assert {name: (left[name].count, left[name].n) for name in counts} == counts
    assert left["progress"].value == pytest.approx((1 / 2 + 1) / 2)


def test_failed_and_unrun_steps_stay_in_the_metrics_without_open_and_sop_has_none_of_episodes() -> None:
    summary = sop([record("a", 0, 3, "wrong", reference=OPEN)], {"a": 3})
    assert "progress without OPEN" not in summary.metrics and "success rate without OPEN" not in summary.metrics
    exact = summary.metrics["exact match without OPEN"]
    assert (exact.value, exact.n) == (None, 0)
    opened = record("a", 0, 3, "infrastructure_failure", reference=OPEN)
    records = [opened, record("a", 1, 3, "infrastructure_failure"), record("a", 2, 3)]
    one = offline(records, {"a": 3}).metrics["exact match without OPEN"]
    assert (one.count, one.n, one.upper) == (1, 2, 1.0)
    left = offline([record("a", 0, 3, reference=OPEN), record("a", 1, 3)], {"a": 3}).metrics
    for name in ("exact match without OPEN", "step-weighted progress without OPEN"):
        assert (left[name].count, left[name].n, left[name].upper) == (1, 2, 1.0)
    assert (left["success rate without OPEN"].value, left["success rate without OPEN"].upper) == (0.0, 1.0)


def test_a_match_outside_the_spaces_counts_in_the_main_metric_only_and_a_failed_request_never() -> None:
    answer = record("a", 0, 1, "wrong", typed=True, reference=Press(button="BACK"), message=Press(button="RECENT"))
    summary = offline([answer], {"a": 1})
    assert (summary.type_match.count, summary.type_match.n) == (1, 1)
    assert (summary.metrics["covered type match"].count, summary.metrics["covered type match"].n) == (0, 0)
    ledger, one = made_ledger({key("a"): range(1)}, OFFLINE), record("a", 0, 1)
    ledger.add(one.task, one.samples, StepOutcome(verdict="infrastructure_failure", type_match=True, exact_match=True))
    summary = whole(ledger)
    assert (summary.exact_match.value, summary.type_match.value, summary.success_rate.value) == (0.0, 0.0, 0.0)


def test_means_are_the_same_to_the_last_bit_in_any_order() -> None:
    prefixes = {"a": 1, "b": 2, "c": 3}
    records = [record(name, index, 10) for name, prefix in prefixes.items() for index in range(prefix)]
    assert 1 / 10 + 2 / 10 + 3 / 10 != 3 / 10 + 2 / 10 + 1 / 10
    there, back = (offline(records, dict.fromkeys(names, 10)) for names in ("abc", "cba"))
    assert there.progress == back.progress


def test_scores_by_reference_action_type() -> None:
    scroll = Scroll(point=Point(500.0, 500.0), direction="up")
    records = episode("a", "right", ("wrong", True), "infrastructure_failure", None, reference=scroll)
    by_type = offline([*records, record("a", 3, 4)], {"a": 4}).by_action_type
    assert list(by_type) == ["CLICK", "SCROLL"]
    assert by_type["SCROLL"].n == 3
    assert (by_type["SCROLL"].type_match.value, by_type["SCROLL"].exact_match.value) == (2 / 3, 1 / 3)
    assert by_type["SCROLL"].exact_match.upper == 2 / 3


def test_diagnostics() -> None:
    def with_numbers(one: StepRecord, distance: float | None, similarity: float | None, seconds: float) -> StepRecord:
        scored = one.sample.outcome.model_copy(update={"distance": distance, "text_similarity": similarity})
        usage = Usage(prompt_tokens=100, completion_tokens=None if similarity else 7)
        sample = one.sample.model_copy(update={"outcome": scored, "seconds": seconds, "usage": usage})
        return one.model_copy(update={"samples": (sample,)})

    records = [
        with_numbers(record("a", 0, 6), 10.0, None, 1.0),
        with_numbers(record("a", 1, 6, "wrong"), 200.0, None, 2.0),
        with_numbers(record("a", 2, 6, "wrong"), 40.0, None, 6.0),
        with_numbers(record("a", 3, 6, reference=Type(text="x")), None, 0.5, 3.0),
        with_numbers(record("a", 4, 6, "infrastructure_failure"), None, None, 600.0),
        with_numbers(record("a", 5, 6, reference=LongPress(point=Point(1.0, 2.0))), 999.0, None, 3.0),
    ]
    metrics = offline(records, {"a": 6}).metrics
    expected = {"median click distance": (40.0, 3), "mean text similarity": (0.5, 1), "mean seconds to answer": (3.0, 5)}
    expected |= {"prompt tokens": (600, 6), "completion tokens": (35, 5)}
    assert {name: (metrics[name].value, metrics[name].n) for name in expected} == expected
    assert metrics["median click distance"].unit == "thousandths of the screen"  # never per cent


def test_false_completion_and_over_refusal_are_shares_of_the_claims() -> None:
    """Else a model that never stops would look careful, or a right stop would count against it."""
    done, refused = Stop(), Stop(status="impossible")
    ends: list[tuple[Action, Action | None]] = [
        (CLICK, done),
        (done, done),
        (done, refused),
        (refused, refused),
        (CLICK, CLICK),
        (CLICK, None),
    ]
    records = []
    for index, (reference, action) in enumerate(ends):
        one = record(str(index), 0, 1, "right" if reference == action else "wrong", reference=reference)
        records.append(one.model_copy(update={"samples": (one.sample.model_copy(update={"action": action}),)}))
    episodes = dict.fromkeys(map(str, range(7)), 1)
    metrics = offline([*records, record("6", 0, 1, "infrastructure_failure")], episodes).metrics
    found = {
        name: (metrics[name].count, metrics[name].n, metrics[name].missing) for name in ("false completion", "over-refusal")
    }
    assert found == {"false completion": (1, 2, 1), "over-refusal": (1, 2, 1)}
    assert "over-refusal" not in offline(records[4:], episodes).metrics


def test_a_step_without_a_record_stays_in_every_denominator_and_an_episode_needs_steps() -> None:
    summary = summarise(episode("a", "right", "right", None), {key("a"): (1, 2)}, OFFLINE, SPACE, SPACE)
    assert (summary.exact_match.count, summary.exact_match.n, summary.verdicts.not_run) == (1, 2, 1)
    assert not summary.complete and summary.exact_match.upper == 1.0
    with pytest.raises(ValueError, match="made-up/a is planned without steps"):
        offline([], {"a": 0})


ENDS: st.SearchStrategy[End] = st.one_of(st.none(), st.tuples(st.sampled_from(VERDICTS), st.booleans()))
EPISODES = st.lists(st.lists(ENDS, min_size=1, max_size=7), max_size=6)
MODES = st.sampled_from([OFFLINE, SOP])
REFERENCES: tuple[Action, ...] = (CLICK, OPEN, Type(text="x"))


def journal(episodes: Sequence[Sequence[End]]) -> tuple[list[StepRecord], Plan]:
    records = []
    for number, index, end, length in ((i, j, end, len(ends)) for i, ends in enumerate(episodes) for j, end in enumerate(ends)):
        groups = {"parity": "odd" if number % 2 else "even", "place": "first" if index == 0 else "later"}
        if end is not None:
            of: dict[str, Any] = {"typed": end == ("wrong", True), "reference": REFERENCES[(number + index) % 3]}
            records.append(record(str(number), index, length, end[0], groups=groups, **of))
    return records, {key(str(number)): range(len(ends)) for number, ends in enumerate(episodes)}


@given(EPISODES, MODES, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_order_and_duplicates_do_not_matter(episodes: list[list[End]], mode: Mode, rng: random.Random) -> None:
    records, plan = journal(episodes)
    straight = summarise(records, plan, mode, SPACE, SPACE)
    mixed = records + [one for one in records if rng.random() < 0.5]
    rng.shuffle(mixed)
    turned = dict(rng.sample(sorted(plan.items()), len(plan)))
    assert summarise(mixed, turned, mode, SPACE, SPACE) == straight
    assert RunSummary.model_validate_json(straight.model_dump_json()) == straight


@given(EPISODES, MODES)
@settings(max_examples=50)
def test_every_planned_step_is_counted_once_and_metrics_are_ordered(episodes: list[list[End]], mode: Mode) -> None:
    records, plan = journal(episodes)
    summary = summarise(records, plan, mode, SPACE, SPACE)
    verdicts = summary.verdicts
    assert verdicts.measured + verdicts.unmeasured + verdicts.not_reached == verdicts.planned == sum(map(len, plan.values()))
    assert summary.exact_match.n == summary.type_match.n == verdicts.planned - verdicts.not_reached
    assert summary.exact_match.count == verdicts.right <= summary.type_match.count
    assert sum(row.n for row in summary.by_action_type.values()) == summary.exact_match.n - verdicts.not_run
    for table in summary.groups:
        assert sum(cell.n for cell in table.cells) == summary.exact_match.n - verdicts.not_run
    assert summary.success_rate.count <= summary.metrics["step-weighted progress"].count <= verdicts.right
    for rate in (summary.type_match, summary.exact_match, summary.metrics["step-weighted progress"], summary.success_rate):
        if rate.value is not None:
            assert 0.0 <= rate.value <= (rate.value if rate.upper is None else rate.upper) <= 1.0
        if rate.upper is not None:
            assert not summary.complete


@given(EPISODES)
@settings(max_examples=40)
def test_stopping_changes_no_prefix(episodes: list[list[End]]) -> None:
    records, plan = journal(episodes)
    never, stopped = summarise(records, plan, OFFLINE, SPACE, SPACE), summarise(records, plan, SOP, SPACE, SPACE)
    for sop, name in (("PG", "progress"), ("TSR", "success rate"), ("step-weighted progress", "step-weighted progress")):
        found = [stopped.metrics[sop], stopped.metrics[name], never.metrics[name]]
        assert len({(each.value, each.n, each.upper) for each in found}) == 1


@given(EPISODES)
@settings(max_examples=40)
def test_finishing_a_run_lands_within_its_bounds(episodes: list[list[End]]) -> None:
    records, plan = journal(episodes)
    before = summarise(records, plan, OFFLINE, SPACE, SPACE)
    fills: tuple[Verdict, ...] = ("right", "wrong")
    for verdict in fills:
        lost = (None, "infrastructure_failure")
        filled: list[list[End]] = [[(verdict, False) if (end and end[0]) in lost else end for end in ends] for ends in episodes]
        after = summarise(journal(filled)[0], plan, OFFLINE, SPACE, SPACE)
        assert after.complete
        for name in ("exact match", "type match", "step-weighted progress", "success rate", "progress"):
            old, new = before.metrics[name], after.metrics[name]
            bound = old.upper if verdict == "right" and old.upper is not None else old.value
            assert new.value == bound if bound is None else new.value == pytest.approx(bound)


@every_row("probability", [0.5, 0.9])
def test_simulated_sop_agrees_with_its_closed_form(shared_data: Path, probability: float) -> None:
    """Steps right independently with probability p: E[s/t] = (p + ... + p^t) / t and P(s = t) = p^t, summed over episodes."""
    file = shared_data / "ui_s1" / "android_control_evaluation_std.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no AndroidControl episodes at {file}")
    with gzip.open(file) as lines:
        lengths = [len(read_json(line)["steps"]) for line in lines]
    assert (len(lengths), sum(lengths)) == (1543, 8444)
    rng = random.Random(20250917)
    ledger = made_ledger({key(str(number)): range(length) for number, length in enumerate(lengths)}, SOP)
    for number, length in enumerate(lengths):
        for index in range(length):
            right = rng.random() < probability
            ledger.take(record(str(number), index, length, "right" if right else "wrong"))
            if not right:
                break
    summary = whole(ledger)
    assert summary.complete

    mean = variance = rate = rate_variance = 0.0
    for length in lengths:
        reach = [probability**k for k in range(1, length + 1)]  # P(s >= k)
        expected = sum(reach) / length
        mean += expected
        variance += sum((2 * k - 1) * p for k, p in enumerate(reach, 1)) / length**2 - expected**2
        rate += reach[-1]
        rate_variance += reach[-1] * (1 - reach[-1])
    n = len(lengths)
    assert summary.metrics["PG"].n == summary.metrics["TSR"].n == n
    assert summary.metrics["PG"].value == pytest.approx(mean / n, abs=4 * math.sqrt(variance) / n)
    assert summary.metrics["TSR"].value == pytest.approx(rate / n, abs=4 * math.sqrt(rate_variance) / n)


def test_an_episode_is_the_sequence_of_the_steps_that_count_and_a_part_calls_no_other_unplanned() -> None:
    # Steps 0 right, 1 wrong (does not count), 2 right, 3 wrong: a prefix of 2 of the 3 that count.
    records = episode("a", "right", "wrong", "right", "wrong") + episode("b", "wrong", "right")
    plan: Plan = {key("a"): (0, 2, 3), key("b"): (1,)}
    summary = summarise(records, plan, OFFLINE, SPACE, SPACE)
    assert (summary.verdicts.planned, summary.verdicts.right, summary.verdicts.wrong) == (4, 3, 1)
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (3, 4)
    assert summary.progress.value == pytest.approx((2 / 3 + 1) / 2)
    assert (summary.success_rate.count, summary.success_rate.n) == (1, 2)
    assert summary.unplanned == 2  # steps a#1 and b#0
    stopped = summarise(records, plan, SOP, SPACE, SPACE)
    assert stopped.metrics["PG"].value == pytest.approx((2 / 3 + 1) / 2)
    assert stopped.verdicts.not_reached == 0
    ledger = made_ledger({key("a"): range(2), key("b"): range(1)}, OFFLINE)
    for one in episode("a", "right", "wrong", "right") + episode("b", "right"):
        ledger.take(one)
    assert whole(ledger, {key("a"): (0,)}).unplanned == 1  # a#2 was never planned


def test_a_protocols_own_metrics_are_under_its_policy() -> None:
    ends = [*episode("a", "right", "unparseable", "wrong"), record("a", 3, 4, "wrong", message=Press(button="RECENT"))]
    mute = ActionSpace(types=frozenset({"CLICK"}))
    exact = summarise(ends, {key("a"): range(4)}, OFFLINE, mute, SPACE).own["IN_UNIFIED exact match"]
    assert (exact.value, exact.n, exact.dropped_as_wrong) == (1 / 3, 3, 1 / 4)  # the reply without an action is in neither part
    assert exact.of == "steps, unparseable, unsupported and missing ones dropped"


def test_where_an_app_is_opened_first_guievalkits_progress_is_nothing() -> None:
    ledger = made_ledger({key("a"): range(2), key("b"): range(2)}, OFFLINE)
    for one in [record("a", 0, 2, reference=OPEN), record("a", 1, 2), *episode("b", "right", "wrong")]:
        ledger.take(one)
    assert whole(ledger).own["TARGET_NOT_OPEN progress"].value == (0 + 1) / 3
    intended = get_protocol("guievalkit-intended")
    (progress,) = (each for each in intended.metrics if each.name == "step-weighted progress, without OPEN")
    assert value_of(progress, ledger.columns(), intended.failure).value == (1 + 1) / 3
