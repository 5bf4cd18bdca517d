"""Every figure against runs computed by hand, and against the run's summary where both say the same."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, ActionSpace, ActionType, Click, Open, Point, Press, Type, Unsupported
from guieval.evaluation import FailurePolicy, Figure
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, Average, Fate, Measure
from guieval.evaluation.protocols import get_protocol
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import compute, terms
from guieval.metrics.measured import Measured
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import evaluate_run
from guieval.steps import StepRecord
from tests.made_runs import record, step, write_run
from tests.metrics.made_columns import PROTOCOL, made_columns
from tests.rows import every_row

PLAIN = FailurePolicy()
OPENS: frozenset[ActionType] = frozenset({"OPEN"})


def value_of(figure: Figure, columns: RunColumns, policy: FailurePolicy = PLAIN) -> Measured:
    return compute(figure, policy, columns, columns.judged[PROTOCOL])


def figures_of(protocol: str, columns: RunColumns) -> dict[str, Measured]:
    found = get_protocol(protocol)
    return {each.name: compute(each, found.failure, columns, columns.judged[protocol]) for each in found.figures}


def strict(found: Measured) -> float | None:
    """With every step that is dropped or missing counted as wrong."""
    return found.value if found.dropped_as_wrong is None else found.dropped_as_wrong


# Three episodes of 4, 2 and 1 steps. Right of them: 1 1 0 1 | 1 1 | 0; of the right type also the third.
RUN = made_columns(
    ["a", "a", "a", "a", "b", "b", "c"],
    exact=[True, True, False, True, True, True, False],
    typed=[True, True, True, True, True, True, False],
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
    # the last step's answer has no place
    ("exact-given-place", "all", 5 / 6, 5, 6),
    ("exact-given-place", "episodes", (3 / 4 + 1) / 2, 1.75, 2),
    ("exact-given-place", "cells", (3 / 3 + 2 / 3) / 2, 5 / 3, 2),
    ("exact-given-place", "cells-by-size", (3 * 3 + 2 * 3) / (9 + 9), 5 / 3, 2),
    # without distances a step's credit is its exact match
    ("graded", "all", 5 / 7, 5, 7),
    ("graded", "episodes", (3 / 4 + 1 + 0) / 3, 1.75, 3),
    ("graded", "cells", (3 / 3 + 2 / 4) / 2, 1.5, 2),
    ("graded", "cells-by-size", (3 * 3 + 2 * 4) / (9 + 16), 1.5, 2),
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


@every_row(("measure", "average", "value", "count", "n"), BY_HAND)
def test_every_measure_by_every_average(measure: Measure, average: Average, value: float, count: float, n: int) -> None:
    figure = Figure("f", measure, average=average, keys=("kind",) if average.startswith("cells") else ())
    found = value_of(figure, RUN)
    assert (found.value, found.count) == pytest.approx((value, count))
    assert found.n == n
    assert found.dropped_as_wrong is None and found.upper is None


def test_every_measure_and_average_has_its_row() -> None:
    assert {(measure, average) for measure, average, *_ in BY_HAND} == {
        (measure, average) for measure in get_args(Measure) for average in get_args(Average)
    }


def test_a_points_credit_falls_with_its_distance_to_none() -> None:
    columns = made_columns(
        ["a"] * 6,
        exact=[True, True, False, False, True, False],
        typed=[True, True, True, False, True, True],
        distance=[0.0, 250.0, 800.0, 100.0, np.nan, np.nan],
        reference=["CLICK", "CLICK", "CLICK", "CLICK", "TYPE", "TYPE"],
    )
    # the third is beyond 0.7071 screens, the fourth of another type, the last two are texts
    credits = [1.0, 1 - 2**0.5 * 0.25, 0.0, 0.0, 1.0, 0.0]
    found = value_of(Figure("f", "graded"), columns)
    assert (found.value, found.count) == pytest.approx((sum(credits) / 6, sum(credits)))
    assert found.n == 6
    assert value_of(Figure("f", "graded", over=frozenset({"CLICK"})), columns).value == pytest.approx(sum(credits[:4]) / 4)


def test_a_step_that_the_policy_drops_earns_nothing_and_a_failed_one_could_earn_all() -> None:
    columns = made_columns(
        ["a", "a"],
        exact=[True, False],
        ends=["right", "infrastructure_failure"],
        distance=[500.0, np.nan],
        reference=["CLICK", "CLICK"],
    )
    credit = 1 - 2**0.5 / 2
    found = value_of(Figure("f", "graded"), columns, FailurePolicy(missing="left-out"))
    assert found.value == pytest.approx(credit) and strict(found) == pytest.approx(credit / 2)
    assert found.upper == pytest.approx((credit + 1) / 2)


def test_cells_of_two_keys_leave_out_what_lacks_one() -> None:
    found = value_of(Figure("f", "exact", average="cells", keys=("kind", "place")), RUN)
    # x1: 1 1, y1: 0, x2: 1, y2: 1 0; the fourth step has no place
    assert found.value == pytest.approx((1 + 0 + 1 + 1 / 2) / 4)
    assert found.n == 4
    assert value_of(Figure("f", "exact", average="cells", keys=("nowhere",)), RUN).value is None


def test_exact_matches_among_answers_with_a_place() -> None:
    """Of five clicks and long presses, four are answered by one of the two, and two of these match; the others do not count."""
    figure = Figure("f", "exact-given-place", over=frozenset({"CLICK", "LONG_PRESS"}))
    columns = made_columns(
        ["a"] * 6,
        exact=[True, True, False, False, False, True],
        reference=["CLICK", "LONG_PRESS", "CLICK", "LONG_PRESS", "CLICK", "TYPE"],
        predicted=["CLICK", "LONG_PRESS", "CLICK", "CLICK", "TYPE", "TYPE"],
    )
    found = value_of(figure, columns)
    assert (found.value, found.count, found.n) == (2 / 4, 2, 4)


@every_row(
    ("figure", "value", "n"),
    [
        (Figure("f", "exact", over=frozenset({"TYPE"})), 2 / 2, 2),
        (Figure("f", "exact", over=frozenset({"CLICK", "TYPE"}), without=frozenset({"TYPE"})), 3 / 5, 5),
        (Figure("f", "exact", without=frozenset({"TYPE"})), 3 / 5, 5),
        (Figure("f", "exact", over=frozenset({"OPEN"})), None, 0),
        (Figure("f", "exact-given-type", over=frozenset({"CLICK"})), 3 / 4, 4),
        (Figure("f", "progress", without=frozenset({"TYPE"})), (1 + 1 + 0) / (3 + 1 + 1), 5),
        (Figure("f", "success", over=frozenset({"TYPE"})), 1.0, 2),
    ],
)
def test_figures_over_some_types(figure: Figure, value: float | None, n: int) -> None:
    found = value_of(figure, RUN)
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.n == n


# a: right, (failed), right; b: (failed), right; the failed step ends in each of four ways.
def with_failures(end: str) -> RunColumns:
    columns = made_columns(
        ["a", "a", "a", "b", "b"],
        exact=[True, end == "wrong", True, end == "wrong", True],
        ends=["right", "right" if end == "wrong" else end, "right", "right" if end == "wrong" else end, "right"],
    )
    if end == "wrong":  # judged, but outside the spaces
        columns.covered[[1, 3]] = False
    return columns


FIELD_OF = {
    "unparseable": "unparseable",
    "unsupported": "unsupported",
    "infrastructure_failure": "missing",
    "not_run": "missing",
    "wrong": "outside",
}


def policy_with(fates: Mapping[str, Fate]) -> FailurePolicy:
    return FailurePolicy(**fates)


# figure: (wrong, left out, zero), each value and n
FATES: list[tuple[Figure, dict[Fate, tuple[float, int]]]] = [
    (Figure("f", "type"), {"wrong": (3 / 5, 5), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Figure("f", "exact"), {"wrong": (3 / 5, 5), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Figure("f", "exact-given-type"), {"wrong": (3 / 3, 3), "left-out": (3 / 3, 3), "zero": (3 / 3, 3)}),
    (Figure("f", "progress"), {"wrong": (1 / 5, 5), "left-out": (3 / 3, 3), "zero": (0 / 3, 3)}),
    (Figure("f", "progress", average="episodes"), {"wrong": ((1 / 3 + 0) / 2, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
    (Figure("f", "success"), {"wrong": (0.0, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
    (Figure("f", "score"), {"wrong": (1 / 12, 2), "left-out": (1.0, 2), "zero": (0.0, 2)}),
]


@every_row("fate", ["wrong", "left-out", "zero"])
@every_row("end", FIELD_OF)
@every_row(("figure", "expected"), FATES, ids=lambda value: getattr(value, "measure", ""))
def test_every_measure_under_every_fate_of_every_failure(
    figure: Figure, expected: dict[Fate, tuple[float, int]], end: str, fate: Fate
) -> None:
    columns = with_failures(end)
    found = value_of(figure, columns, policy_with({FIELD_OF[end]: fate}))
    if end == "wrong" and fate == "wrong":  # an action outside the spaces that is left in is judged like any other
        assert found.value == 1.0
    else:
        value, n = expected[fate]
        assert found.value == pytest.approx(value)
        assert found.n == n
        assert strict(found) == pytest.approx(expected["wrong"][0])
    assert found.upper == (1.0 if FIELD_OF[end] == "missing" and found.value != 1.0 else None)
    other = policy_with({name: "left-out" for name in FIELD_OF.values() if name != FIELD_OF[end]})
    assert replace(value_of(figure, columns, other), of=figure.denominator(PLAIN)) == value_of(figure, columns)


def test_a_zero_after_the_first_mismatch_changes_nothing_but_the_length() -> None:
    columns = made_columns(["a"] * 4, exact=[True, False, False, True], ends=["right", "wrong", "unparseable", "right"])
    policy = FailurePolicy(unparseable="zero")
    assert value_of(PROGRESS, columns, policy).value == pytest.approx(1 / 3)
    assert strict(value_of(PROGRESS, columns, policy)) == pytest.approx(1 / 4)


def test_an_episode_of_nothing_but_zeros_counts_as_an_episode() -> None:
    columns = made_columns(["a", "b"], exact=[True, False], ends=["right", "unparseable"])
    policy = FailurePolicy(unparseable="zero")
    for figure in (PROGRESS, SUCCESS_RATE, Figure("f", "score")):
        assert (value_of(figure, columns, policy).value, value_of(figure, columns, policy).n) == (1 / 2, 2)
    assert value_of(Figure("f", "progress"), columns, policy).n == 1


def test_an_episode_is_left_out_whole_where_a_step_of_it_is_missing() -> None:
    # a is right throughout; b lacks its second step; c is right, then wrong
    columns = made_columns(
        [*"aa", *"bb", *"cc"],
        exact=[True, True, True, False, True, False],
        ends=["right", "right", "right", "not_run", "right", "wrong"],
    )
    policy = FailurePolicy(missing="episode-left-out")
    by_hand = [
        (EXACT_MATCH, 4 / 5, 5, 4 / 6),  # the steps of b that were answered stay
        (SUCCESS_RATE, 1 / 2, 2, 1 / 3),
        (PROGRESS, (1 + 1 / 2) / 2, 2, (1 + 1 / 2 + 1 / 2) / 3),
        (Figure("f", "progress"), 3 / 4, 4, 4 / 6),
        (Figure("f", "score"), (1 + 1 / 4) / 2, 2, (1 + 1 / 4 + 1 / 4) / 3),
    ]
    for figure, value, n, lower in by_hand:
        found = value_of(figure, columns, policy)
        assert found.value == pytest.approx(value), figure
        assert found.n == n and strict(found) == pytest.approx(lower), figure
    only_b = columns.only(np.array([False, False, True, True, False, False]))
    assert value_of(SUCCESS_RATE, only_b, policy).value is None
    # a missing step of a type that does not count leaves its episode in
    opened = made_columns(
        ["a", "a"], exact=[True, False], ends=["right", "infrastructure_failure"], reference=["CLICK", "OPEN"]
    )
    assert value_of(Figure("f", "success", without=OPENS), opened, policy).value == 1.0


def test_cells_may_be_the_episodes_subsets() -> None:
    # AITW's mean over its subsets: install 2 of 3 steps, single 0 of 1
    columns = made_columns(["install/a", "install/a", "install/b", "single/a"], exact=[True, False, True, False])
    figure = Figure("f", "exact", average="cells", keys=("subset",))
    assert value_of(figure, columns).value == pytest.approx((2 / 3 + 0) / 2)
    assert value_of(Figure("f", "success", average="cells", keys=("subset",)), columns).value == pytest.approx((1 / 2 + 0) / 2)
    labelled = made_columns(["x/a", "x/b"], exact=[True, False], groups={"subset": ["one", "two"]})
    assert value_of(figure, labelled).value == 1 / 2  # a label of that name goes before
    assert value_of(figure, made_columns(["a"], exact=[True])).value is None  # no subset is no cell


def test_where_a_gap_ends_an_episode_so_does_a_step_that_is_not_counted() -> None:
    columns = made_columns(["a", "a", "b", "b"], exact=[True, True, True, True], reference=["OPEN", "CLICK", "CLICK", "OPEN"])
    figure = Figure("f", "progress", without=OPENS)
    assert value_of(figure, columns).value == 1.0
    assert value_of(figure, columns, FailurePolicy(missing="zero")).value == 0.0
    first = columns.only(np.array([True, True, False, False]))
    assert value_of(figure, first, FailurePolicy(unparseable="zero")).value == 1.0


def test_a_figures_own_policy_takes_the_place_of_the_protocols() -> None:
    columns = with_failures("unparseable")
    figure = Figure("f", "exact", failure=FailurePolicy(unparseable="left-out"))
    assert value_of(figure, columns, PLAIN).value == 1.0
    assert value_of(EXACT_MATCH, columns, FailurePolicy(unparseable="left-out")).value == 1.0


def test_a_step_without_information_stays_in_unless_certain_types_are_counted() -> None:
    columns = made_columns(["a", "a"], exact=[True, False], ends=["right", "not_run"], reference=["CLICK", ""])
    found = value_of(Figure("f", "exact", without=OPENS), columns)
    assert (found.value, found.n, found.upper) == (1 / 2, 2, 1.0)
    assert value_of(Figure("f", "exact", over=frozenset({"CLICK"})), columns).n == 1


def test_steps_not_reached_are_in_episode_figures_only() -> None:
    columns = made_columns(
        ["a", "a", "a"],
        exact=[True, False, False],
        ends=["right", "wrong", "not_reached"],
        reference=["CLICK", "CLICK", ""],
        stop="first-mismatch",
    )
    assert (value_of(EXACT_MATCH, columns).value, value_of(EXACT_MATCH, columns).n) == (1 / 2, 2)
    assert value_of(PROGRESS, columns).value == pytest.approx(1 / 3)
    without = Figure("f", "progress", without=OPENS)
    found = value_of(without, columns)
    assert (found.value, found.n, found.interval) == (None, 0, None)
    assert np.isnan(combined(without, columns))
    assert value_of(Figure("f", "exact", without=OPENS), columns).value == 1 / 2


def test_nothing_planned_gives_nothing() -> None:
    columns = made_columns([], exact=[])
    for measure in get_args(Measure):
        for average in get_args(Average):
            found = value_of(Figure("f", measure, average=average, keys=("kind",)), columns)
            assert (found.value, found.count, found.n, found.dropped_as_wrong, found.upper) == (None, 0.0, 0, None, None)


def combined(figure: Figure, columns: RunColumns, policy: FailurePolicy = PLAIN) -> float:
    made = terms(figure, policy, columns, columns.judged[PROTOCOL])
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
def test_terms_add_up_to_the_figure(
    rows: list[tuple[str, str, str, str]], measure: Measure, average: Average, policy: FailurePolicy
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    columns = made_columns(
        [episode for episode, *_ in rows],
        exact=[end == "right" for _, end, *_ in rows],
        typed=[end in ("right", "typed") for _, end, *_ in rows],
        ends=["wrong" if end == "typed" else end for _, end, *_ in rows],
        reference=["" if end == "not_run" else reference for _, end, _, reference in rows],
        groups={"kind": [kind for *_, kind, _ in rows]},
    )
    figure = Figure("f", measure, without=OPENS, average=average, keys=("kind",))
    found, total = value_of(figure, columns, policy), combined(figure, columns, policy)
    assert np.isnan(total) if found.value is None else found.value == pytest.approx(total)
    if found.value is not None:
        assert 0.0 <= found.value <= 1.0


# Answers that a box of a tenth of the screen judges as stated, whatever the run's own protocol made of them.
TARGET = Click(point=Point(500, 500))
BOX = [[450.0, 450.0, 550.0, 550.0]]
ANSWERS: dict[str, Action | None] = {
    "right": TARGET,
    "miss": Click(point=Point(900, 100)),
    "other type": Type(text="x"),
    "outside": Press(button="RECENT"),
    "unparseable": None,
    "unsupported": Unsupported(name="hover"),
}


def records_of(episodes: Sequence[Sequence[str]]) -> list[StepRecord]:
    """Records of the steps; "none" leaves none."""
    made = []
    for number, ends in enumerate(episodes):
        for index, end in enumerate(ends):
            task = step(
                Open(app="Maps") if end == "open" else TARGET,
                episode=str(number),
                index=index,
                length=len(ends),
                targets=BOX,
                groups={"parity": "odd" if number % 2 else "even", "place": "first" if index == 0 else "later"},
            )
            if end == "failed":
                made.append(record(task))
            elif end == "open":
                made.append(record(task, Open(app="maps")))
            elif end != "none":
                made.append(record(task, ANSWERS[end]))
    return made


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.sampled_from([*ANSWERS, "open", "failed", "none", "right", "right"]), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(["offline", "sop"]),
)
def test_figures_equal_the_runs_summary_where_both_say_the_same(episodes: list[list[str]], mode: str) -> None:
    plan = {step(TARGET, episode=str(i)).episode_key: range(len(ends)) for i, ends in enumerate(episodes)}
    with tempfile.TemporaryDirectory() as folder:
        directory = write_run(Path(folder) / "run", records_of(episodes), plan=plan, mode=mode)
        columns = judge_run(directory, ["seeclick-official", "guievalkit"]).columns()
        summaries = {name: evaluate_run(directory, name).summary for name in columns.judged}
    for name, summary in summaries.items():
        judged = columns.judged[name]
        same: list[tuple[Figure, Measured]] = [
            (TYPE_MATCH, summary.type_match),
            (EXACT_MATCH, summary.exact_match),
            (Figure("f", "progress"), summary.metrics["step-weighted progress"]),
            (PROGRESS, summary.progress),
            (SUCCESS_RATE, summary.success_rate),
        ]
        found = summary.metrics
        if mode == "sop":
            same.append((Figure("f", "score"), found["score"]))
        if "exact match without OPEN" in found:
            same.append((Figure("f", "exact", without=OPENS), found["exact match without OPEN"]))
        if "success rate without OPEN" in found:
            same.append((Figure("f", "progress", without=OPENS), found["step-weighted progress without OPEN"]))
            same.append((Figure("f", "success", without=OPENS), found["success rate without OPEN"]))
        for figure, expected in same:
            own = compute(figure, PLAIN, columns, judged)
            assert own.value == pytest.approx(expected.value) and own.n == expected.n, figure
            assert (own.upper or own.value) == pytest.approx(expected.upper or expected.value), figure
        for table in summary.groups:
            own = compute(Figure("f", "exact", average="cells", keys=table.keys), PLAIN, columns, judged)
            assert own.value == pytest.approx(table.mean_exact_match.value)
        covered, measured = int((columns.covered & judged.measured).sum()), int(judged.measured.sum())
        assert (covered, measured) == (summary.coverage.count, summary.coverage.n)


def test_a_protocols_figures_are_under_its_own_policy(tmp_path: Path) -> None:
    mute = ActionSpace(types=frozenset({"CLICK"}))
    run = write_run(tmp_path / "run", records_of([["right", "unparseable", "miss", "outside"]]), model_space=mute)
    columns = judge_run(run, ["guievalkit"]).columns()
    exact = figures_of("guievalkit", columns)["IN_UNIFIED exact match"]  # the reply without an action is in neither part
    assert (exact.value, exact.n, exact.dropped_as_wrong) == (1 / 3, 3, 1 / 4)
    assert exact.of == "steps, unparseable, unsupported and missing ones dropped"


@every_row(
    ("policy", "exact", "progress", "weighted", "success"),
    [
        # steps: 1 - 1 | 1 1; the second one is missing
        (FailurePolicy(missing="wrong"), 4 / 5, (1 / 3 + 1) / 2, 3 / 5, 1 / 2),
        (FailurePolicy(missing="left-out"), 4 / 4, (2 / 2 + 1) / 2, 4 / 4, 2 / 2),  # AgentCPM: as if there were no such step
        (FailurePolicy(missing="zero"), 4 / 4, (0 / 2 + 1) / 2, 2 / 4, 1 / 2),  # GUIEvalKit: the gap takes the whole prefix
    ],
)
def test_what_a_missing_step_of_a_run_does(
    tmp_path: Path, policy: FailurePolicy, exact: float, progress: float, weighted: float, success: float
) -> None:
    run = write_run(tmp_path / "run", records_of([["right", "none", "right"], ["right", "right"]]))
    columns = judge_run(run, [PROTOCOL]).columns()
    figures = (EXACT_MATCH, PROGRESS, Figure("f", "progress"), SUCCESS_RATE)
    for figure, expected in zip(figures, (exact, progress, weighted, success), strict=True):
        value = value_of(figure, columns, policy)
        assert value.value == pytest.approx(expected)
        assert strict(value) == value_of(figure, columns).value  # what is dropped never hides
        assert value.upper == (None if expected == 1.0 else 1.0)


def test_where_an_app_is_opened_first_guievalkits_progress_is_nothing(tmp_path: Path) -> None:
    names = ["guievalkit", "guievalkit-intended"]
    columns = judge_run(write_run(tmp_path / "run", records_of([["open", "right"], ["right", "miss"]])), names).columns()
    released, intended = (figures_of(name, columns) for name in names)
    assert released["TARGET_NOT_OPEN progress"].value == (0 + 1) / 3
    assert intended["step-weighted progress, without OPEN"].value == (1 + 1) / 3


@every_row("missing", ["wrong", "left-out", "zero"])
@every_row("figure", [EXACT_MATCH, TYPE_MATCH, PROGRESS, SUCCESS_RATE], ids=lambda figure: figure.name)
def test_an_interval_holds_whatever_the_missing_steps_may_have_been(figure: Figure, missing: Fate) -> None:
    """Otherwise 0 % of 237, of which most are missing, is said to be at most 8.8 %, next to bounds of 0 and 97 %."""
    names = [f"e{number}" for number in range(20) for _ in range(2)]
    ends = (["right", "wrong"] * 4 + ["infrastructure_failure", "not_run"] * 16)[:40]
    run = made_columns(names, exact=[end == "right" for end in ends], ends=ends)
    found = compute(figure, FailurePolicy(missing=missing), run, run.judged[PROTOCOL], intervals=True)
    value, interval = found.value, found.interval
    assert value is not None and interval is not None
    possible = []
    for answer in (False, True):
        filled = [end == "right" or (answer and end not in ("right", "wrong")) for end in ends]
        whole = made_columns(names, exact=filled)
        possible.append(value_of(figure, whole).value or 0.0)
    assert interval.low <= min(*possible, value) < max(*possible, value) <= interval.high


def test_where_nothing_was_measured_there_is_no_interval() -> None:
    run = made_columns(["a", "b", "b"], exact=[False] * 3, ends=["not_run"] * 3)
    for figure in (EXACT_MATCH, PROGRESS, SUCCESS_RATE):
        assert compute(figure, PLAIN, run, run.judged[PROTOCOL], intervals=True).interval is None
