"""Other radii and metrics: every figure against a new clustering, distances against a solved transport problem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from guieval.actions import Action, Press, Stop, Type
from guieval.reports.tables.table import Table, text
from guieval.studies.decisions import sensitivity as figures
from guieval.studies.decisions.clustering import ClusterSettings, decide
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.sensitivity import DIAMETER, SCALE, Neighbourhood, l2, sensitivity, trends, wasserstein
from guieval.studies.decisions.tables import sensitivity_tables, trend_tables
from tests.studies.decisions.scripted_executions import click, executions, scattered, task


def mixed(steps: int, seed: int, spread: float = 60.0) -> list[StepExecutions]:
    """Steps of clicks about a few places, texts and presses, the first click of each step right."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(steps):
        centres = rng.uniform(100, 900, (rng.integers(1, 4), 2))
        drawn: list[Action | None] = []
        for x, y in centres[rng.integers(0, len(centres), 30)] + rng.normal(0, spread, (30, 2)):
            drawn.append(click(round(float(np.clip(x, 0, 1000)), 1), round(float(np.clip(y, 0, 1000)), 1)))
        drawn += [Type(text="hello there"), Type(text="hello ther"), Press(button="BACK"), None]
        right = [each for each in drawn[: int(rng.integers(1, 20))] if each is not None]
        made.append(executions(drawn, right, task(f"e{i // 3}", i % 3, 3)))
    return made


def test_every_neighbourhood_is_what_clustering_with_it_gives() -> None:
    steps = mixed(12, 0)
    found = sensitivity(steps, ClusterSettings())
    assert set(found.decisions) == set(figures.neighbourhoods(70.0))
    for at in (l2(5.0), l2(70.0), l2(140.0), Neighbourhood("l1", 70.0), l2(SCALE * 70.0)):
        again = [decide(step, ClusterSettings(radius=at.radius, metric=at.metric)) for step in steps]
        assert found.decisions[at].tolist() == [len(each.clusters) for each in again]
        assert found.diversity[at].tolist() == pytest.approx([each.diversity for each in again])
    assert found.mean_decisions(l2(5.0)).value == pytest.approx(found.decisions[l2(5.0)].mean())
    one, other = found.decisions[l2(15.0)], found.decisions[l2(70.0)]
    assert found.r2(l2(15.0), l2(70.0)) == pytest.approx(np.corrcoef(one, other)[0, 1] ** 2)
    assert found.r2(l2(70.0), l2(70.0)) == pytest.approx(1.0)


def test_distances_are_between_the_decisions_prototypes() -> None:
    steps = mixed(6, 1)
    found = sensitivity(steps, ClusterSettings())
    pair = (l2(30.0), l2(50.0))
    expected = []
    for step in steps:
        ends = []
        for at in pair:
            clicks = [each for each in decide(step, ClusterSettings(radius=at.radius)).clusters if each.type == "CLICK"]
            counts = np.array([each.count for each in clicks], dtype=np.float64)
            ends.append((np.array([each.prototype.point for each in clicks]), counts / counts.sum()))  # type: ignore[union-attr]
        expected.append(wasserstein(*ends[0], *ends[1]) / DIAMETER)
    assert found.moved[pair].tolist() == pytest.approx(expected)
    assert max(expected) > 0 and found.moved_row.tolist() == list(range(6))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_the_distance_is_that_of_the_best_pairing(seed: int) -> None:
    """Of as many points of equal mass on both sides, an assignment is the best plan."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    one, other = (100 * rng.integers(0, 4, (n, 2)).astype(np.float64) for _ in range(2))
    costs = np.hypot(*(one[:, None] - other[None]).transpose(2, 0, 1))
    best = costs[linear_sum_assignment(costs)].sum() / n
    mass = np.full(n, 1 / n)
    assert wasserstein(one, mass, other, mass) == pytest.approx(best, abs=1e-6)
    assert wasserstein(other, mass, one, mass) == pytest.approx(best, abs=1e-6)
    assert wasserstein(one, mass, one[::-1], mass) == pytest.approx(0.0, abs=1e-6)


def test_distances_by_hand() -> None:
    left, both = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1000.0, 1000.0]])
    assert wasserstein(left, np.ones(1), both, np.array([0.75, 0.25])) == pytest.approx(0.25 * DIAMETER)
    assert wasserstein(left, np.ones(1), both[1:], np.ones(1)) == pytest.approx(DIAMETER)


def test_l1_and_l2_are_adjusted_as_printed_and_the_other_way_round() -> None:
    assert math.isclose(SCALE, (math.sqrt(2) + 1) / 2)
    assert [f"{at}" for at in figures.as_printed(70.0)] == ["L1, ε = 70", "L2, ε = 84.5"]
    assert [f"{at}" for at in figures.turned_about(70.0)] == ["L1, ε = 84.5", "L2, ε = 70"]


def test_what_is_no_point_does_not_depend_on_a_radius() -> None:
    steps = [executions([Stop(), Press(button="BACK"), Type(text="a"), Type(text="b")], of=task(f"e{i}")) for i in range(3)]
    found = sensitivity([*steps, executions([None], of=task("e3"))], ClusterSettings())
    assert len(found.keys) == 3  # the last step has no decision
    assert all(each.tolist() == [4, 4, 4] for each in found.decisions.values())
    assert found.mean_moved((l2(5.0), l2(30.0))).value is None and found.r2(l2(5.0), l2(70.0)) is None


def test_trends_count_what_moved_with_what() -> None:
    right, wrong = click(100, 100), click(900, 900)
    before = [executions([right] * a + [wrong] * (20 - a), [right], task("e", i, 4)) for i, a in enumerate((20, 10, 10, 18))]
    after = [executions([right] * a + [wrong] * (20 - a), [right], task("e", i, 4)) for i, a in enumerate((10, 20, 0, 10))]
    one, other = (sensitivity(each, ClusterSettings(), name) for each, name in ((before, "one"), (after, "two")))
    assert trends(one, other, one.baseline).tolist() == [[0, 2], [1, 1]]
    assert trends(other, one, one.baseline).tolist() == [[1, 1], [2, 0]]
    by_radius, by_metric = trend_tables(one, other)
    assert [text(cell) for cell in by_radius.rows[0]] == ["L2, ε = 70 (baseline)", "up", "0", "2"]
    assert [text(cell) for cell in by_radius.rows[3]] == ["L2, ε = 30", "down", "1 (+0)", "1 (+0)"]
    assert [row[0] for row in by_metric.rows[2::2]] == ["L1, ε = 70", "L2, ε = 84.5", "L1, ε = 84.5"]


def test_trends_move_with_the_radius() -> None:
    """Two targets 80 apart: one decision from a radius of 90 on, so that nothing is more diverse there."""
    near = [click(100, 100)] * 10
    before, after = executions(near, near), executions([*near, *[click(180, 100)] * 10], near)
    one, other = sensitivity([before], ClusterSettings(), "one"), sensitivity([after], ClusterSettings(), "two")
    by_radius, _ = trend_tables(one, other)
    assert [tuple(map(text, row[2:])) for row in by_radius.rows] == [
        *(("0", "1"), ("0", "0")),
        *(("0 (+0)", "1 (+0)"), ("0 (+0)", "0 (+0)")),
        *(("0 (+0)", "0 (-1)"), ("0 (+0)", "0 (+0)")),
        *(("0 (+0)", "0 (-1)"), ("0 (+0)", "0 (+0)")),
    ]


def headings(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)


def test_tables_have_the_papers_form() -> None:
    rng = np.random.default_rng(4)
    steps = [scattered((0.4, 0.3, 0.3), 64, rng, of=task(f"e{i}")) for i in range(6)]
    support, aligned, moved, metrics = sensitivity_tables(sensitivity(steps, ClusterSettings(), "a run"))
    assert headings(support) == ("ε", *(f"{radius:g}" for radius in figures.SUPPORT_RADII))
    assert headings(aligned)[1:] == ("5-70", "15-70", "25-70", "35-70", "70-100", "35-100")
    assert headings(moved)[1:] == ("5→30", "10→30", "30→50", "50→70", "70→100", "100→140")
    assert [row[0] for row in metrics.rows] == ["L1 at ε, L2 at 1.207 ε (as printed)", "L1 at 1.207 ε, L2 at ε"]
    assert text(support.rows[0][5]).startswith("3.00 [")  # the three targets, from every radius that holds them together
