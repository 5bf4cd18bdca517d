"""Pictures of decisions: what is drawn is what was counted, and nothing is cut off."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from guieval.actions import Click, Stop, Wait
from guieval.errors import UsageError
from guieval.studies.decisions.clustering import RADIUS, ClusterSettings, decide
from guieval.studies.decisions.measures import DecisionColumns, measure
from guieval.studies.decisions.plots import BIN, diversities, level_shifts, pass_curves, trade_offs
from guieval.studies.decisions.reachability import reachability
from guieval.studies.decisions.shifts import shift
from tests.studies.decisions.scripted_executions import executions, scattered, task


def run(title: str, right: tuple[int, ...], n: int = 10) -> DecisionColumns:
    """Steps with the given numbers of right executions of n; the others are one wrong decision."""
    tasks = [task(f"e{i // 2}", i % 2, 2) for i in range(len(right))]
    drawn = [[Stop()] * good + [Wait()] * (n - good) for good in right]
    return measure([executions(each, [Stop()], of) for each, of in zip(drawn, tasks, strict=True)], ClusterSettings(), title)


BEFORE, AFTER = run("offline", (10, 10, 10, 2, 0, 5)), run("SOEval", (10, 9, 8, 6, 0, 10))


def whole(figure: Figure) -> None:
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


def test_a_shift_is_counts_by_level_and_trend() -> None:
    figure = level_shifts([shift(BEFORE, AFTER), shift(AFTER, BEFORE)])
    first, second = figure.axes
    assert first.get_title() == "offline → SOEval" and second.get_title() == "SOEval → offline"
    cells = {tuple(map(int, text.get_position())): text.get_text().split("\n")[0] for text in first.texts}
    assert [[cells[column, row] for column in range(3)] for row in range(3)] == [list("011"), list("001"), list("210")]
    assert first.images[0].get_clim() == second.images[0].get_clim()  # equal shares look equal
    assert [label.get_text() for label in first.get_yticklabels()] == ["low", "medium", "high"]
    whole(figure)


def test_a_trade_off_parts_bars_of_shares_by_what_became_of_the_stability() -> None:
    found = shift(BEFORE, AFTER)
    figure = trade_offs([found])
    left, right = figure.axes
    for axes, counts in ((left, found.support_by_stability()), (right, found.levels_by_trend())):
        bars = [each for each in axes.containers if isinstance(each, BarContainer)]
        heights = np.array([[bar.get_height() for bar in each] for each in bars]).T
        assert np.allclose(heights, 100 * counts / 6)
        tops = [bar.get_y() + bar.get_height() for bar in bars[-1]]
        assert np.allclose(tops, 100 * counts.sum(axis=1) / 6)
        assert len({bar[0].get_hatch() for bar in bars}) == 3
    assert [label.get_text() for label in left.get_xticklabels()] == ["narrower\nn = 1", "same\nn = 2", "wider\nn = 3"]
    whole(figure)


def test_diversity_is_a_histogram_of_each_runs_steps() -> None:
    figure = diversities([BEFORE, AFTER])
    (axes,) = figure.axes
    drawn = [each.get_data() for each in axes.patches if isinstance(each, StepPatch)]
    for held, (values, edges, _) in zip((BEFORE, AFTER), drawn, strict=True):
        shares = np.histogram(held.diversity, edges)[0] / 6 * 100
        assert np.allclose(np.nan_to_num(values), shares) and shares.sum() == pytest.approx(100)
        assert np.allclose(np.diff(edges), BIN)
    assert axes.get_yscale() == "log"
    whole(figure)


@pytest.mark.filterwarnings("error")  # of a division by the distance of equal clicks
def test_peaks_of_reachability_above_the_radius_begin_the_clusters_of_dbscan() -> None:
    """OPTICS and DBSCAN are different algorithms; a click weighed wrongly or out of order has another cluster's label."""
    step = scattered((0.5, 0.3, 0.2), 200, np.random.default_rng(1))
    found = reachability(step, decide(step))
    begins = np.flatnonzero(found.distances > RADIUS)
    assert begins[0] == 0 and np.isinf(found.distances[0]) and len(found.points) == 200
    assert sorted(found.labels[begins]) == [0, 1, 2] and all(len({*each}) == 1 for each in np.split(found.labels, begins[1:]))
    equal = executions([Click(point=(5, 5))] * 3 + [Click(point=(900, 5))] * 3)
    assert sorted(reachability(equal, decide(equal)).distances)[:3] == [0, 0, 0]
    with pytest.raises(UsageError, match="has 0 clicks"):
        reachability(executions([Stop()]), decide(executions([Stop()])))


def test_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="no diversity"):
        diversities([measure([executions([None, None])], ClusterSettings(), "a")])
    with pytest.raises(UsageError, match="one answer to each step"):
        pass_curves([run("a", (1, 0), n=1)])
