"""Plots: what is drawn is what was computed, nothing is cut off, and equal input gives equal files."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from guieval.errors import UsageError
from guieval.metrics.breakdown import BreakdownCell, breakdown
from guieval.metrics.front import Spent, fronts
from guieval.metrics.intervals import Interval
from guieval.metrics.measured import Measured
from guieval.metrics.sampling import sampled
from guieval.reports.leaderboards.published_results import joined
from guieval.reports.plots.breakdowns import bars, horizon
from guieval.reports.plots.heat import Grid, contrast, heat, span
from guieval.reports.plots.paper import MOST_SERIES, WIDTHS, write
from guieval.reports.plots.pareto import pareto
from guieval.reports.plots.samples import samples
from guieval.studies.correlation.coefficients import correlate
from guieval.studies.plots.reliability import Panel, reliability
from tests.metrics.made_columns import PROTOCOL, made_columns


def cell(label: str | tuple[str, ...], share: float, n: int = 20) -> BreakdownCell:
    labels = (label,) if isinstance(label, str) else label
    interval = Interval(max(share - 0.1, 0.0), min(share + 0.2, 1.0), 0.95, "episodes")
    return BreakdownCell(labels, Measured(1.0, n), Measured(share, n, interval=interval))


RUNS = {
    "offline": [cell("CLICK", 0.5, 120), cell("LONG_PRESS", 0.0, 4), cell("STOP", 1.0, 30)],
    "sop": [cell("CLICK", 0.25, 60), cell("STOP", 0.75, 30)],
}


def axes_of(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def assert_nothing_is_cut_off(figure: Figure) -> None:
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert box.x0 >= 0 and box.y0 >= 0, box
    assert box.x1 <= width and box.y1 <= height, (box, width, height)


def overlapping(texts: list[Text]) -> list[tuple[str, str]]:
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    return [(one, other) for (one, box), (other, beside) in combinations(boxes, 2) if box.overlaps(beside)]


def test_bars_are_the_cells_shares_in_percent_beside_each_other_with_their_intervals() -> None:
    figure = bars(RUNS)
    axes = axes_of(figure)
    containers = [each for each in axes.containers if isinstance(each, BarContainer)]
    assert [[bar.get_width() for bar in each] for each in containers] == [[50.0, 0.0, 100.0], [25.0, 75.0]]
    labels = ["CLICK\nn = 60–120", "LONG_PRESS\nn = 0–4", "STOP\nn = 30"]
    assert [label.get_text() for label in axes.get_yticklabels()] == labels
    whiskers = [tuple(np.asarray(line.get_xdata()).tolist()) for line in axes.lines if line.get_color() == "black"]
    assert np.allclose(whiskers, [(40, 70), (0, 20), (90, 100), (15, 45), (65, 95)])
    assert axes.get_xlim() == (0, 100) and axes.get_xlabel() == "exact match (%)"
    assert len({bar.get_hatch() for each in containers for bar in each}) == 2
    assert_nothing_is_cut_off(figure)
    drawn = [bar for each in containers for bar in each]
    spans = sorted((bar.get_y(), bar.get_y() + bar.get_height()) for bar in drawn)
    assert all(above[1] <= below[0] + 1e-9 for above, below in pairwise(spans))
    assert not axes_of(bars({"a": [BreakdownCell(("CLICK",), Measured(1.0, 3), Measured(0.5, 3))]})).lines


def test_bars_come_in_the_order_of_the_action_space_and_lengths_by_number() -> None:
    def order(labels: list[str]) -> list[str]:
        axes = axes_of(bars({"a": [cell(label, 0.5) for label in labels]}))
        return [label.get_text().split("\n")[0] for label in axes.get_yticklabels()]

    assert order(["STOP", "CLICK", "TYPE"]) == ["CLICK", "TYPE", "STOP"]
    assert order(["21+", "6-10", "1", "11-15"]) == ["1", "6-10", "11-15", "21+"]


def test_horizon_draws_the_cells_of_a_real_breakdown() -> None:
    # Two episodes of two steps: the first step exact in both, the second in one. Fifths 2 and 4 of 5 are (0.4, 0.6], (0.8, 1].
    run = made_columns("aabb", exact=[True, True, True, False])
    figure = horizon({"a run": breakdown(run, PROTOCOL, "ratio")}, "ratio")
    axes = axes_of(figure)
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    assert np.asarray(curve.get_ydata()).tolist() == [100.0, 50.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["40-60 %\nn = 2", "80-100 %\nn = 2"]
    assert axes.get_ylim() == (0, 100)
    assert_nothing_is_cut_off(figure)
    axes = axes_of(horizon({"a": [cell("2-5", 0.5), cell("6-10", 0.3)]}, "length"))
    (band,) = (each for each in axes.collections if isinstance(each, PolyCollection))
    corners = {(round(x, 6), round(y, 6)) for x, y in np.asarray(band.get_paths()[0].vertices).tolist()}
    assert corners == {(0, 40), (0, 70), (1, 20), (1, 50)}


def test_horizon_by_step_leaves_small_cells_out_and_no_line_leads_over_them() -> None:
    cells = [cell("0", 0.9, 40), cell("1", 0.8, 30), cell("2", 0.1, 9), cell("3", 0.6, 12), cell("4", 0.2, 3)]
    axes = axes_of(horizon({"a": cells}, "step"))
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    assert np.asarray(curve.get_xdata()).tolist() == [0, 1, 2, 3]
    assert np.allclose(np.asarray(curve.get_ydata(), dtype=float), [90, 80, np.nan, 60], equal_nan=True)
    whiskers = [each.get_segments() for each in axes.collections if hasattr(each, "get_segments")]
    assert np.allclose(whiskers, [[[[3, 50], [3, 80]]]])  # step 3 has no neighbour, hence no band


@pytest.mark.parametrize(("width", "shape"), [("column", (5, 1)), ("two-column", (1, 5))])
def test_figure_19_has_a_panel_for_each_fifth(width: str, shape: tuple[int, int]) -> None:
    fifths = ["0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %"]
    cells = [cell((fifth, str(step)), 0.5) for fifth in fifths for step in range(12)]
    figure = horizon({"a": cells, "b": cells}, "ratio-step", width="two-column" if width == "two-column" else "column")
    assert [axes.get_title() for axes in figure.axes] == fifths
    corners = [axes.get_position() for axes in figure.axes]
    lefts, tops = {round(box.x0, 2) for box in corners}, {round(box.y1, 2) for box in corners}
    assert (len(tops), len(lefts)) == shape
    assert_nothing_is_cut_off(figure)


def test_heat_writes_every_value_readably() -> None:
    values: list[list[float | None]] = [[0.0, 0.25, 0.5], [0.625, 1.0, None]]
    figure = heat(Grid(["strict", "lenient"], ["CLICK", "TYPE", "STOP"], values, ["100", "20", "5"]))
    one = heat(Grid(["strict"], ["CLICK", "TYPE", "STOP"], values[:1]))
    assert [len(each.axes) for each in (figure, one)] == [2, 1] and one.axes[0].get_xlabel() == "exact match (%)"
    axes = figure.axes[0]
    cells = {(round(text.get_position()[1]), round(text.get_position()[0])): text for text in axes.texts}
    assert [cells[0, column].get_text() for column in range(3)] == ["0.0", "25.0", "50.0"]
    assert [cells[1, column].get_text() for column in range(3)] == ["62.5", "100", "–"]
    assert [cells[2, column].get_text() for column in range(3)] == ["100", "20", "5"]
    assert_nothing_is_cut_off(figure)


def test_digits_contrast_with_every_colour_of_the_scale() -> None:
    """WCAG 2.1, level AA: 4.5."""
    steps = np.linspace(-30, 30, 61)
    figure = heat(Grid([str(each) for each in range(61)], ["a"], [[(50 + each) / 100] for each in steps.tolist()]))
    axes = figure.axes[0]
    (image,) = axes.images
    colours = np.asarray(image.cmap(image.norm(steps)))
    for text in axes.texts:
        ground = tuple(colours[round(text.get_position()[1]), :3].tolist())
        assert contrast(to_rgb(text.get_color()), ground) >= 4.5, text


def test_a_heat_map_is_coloured_by_the_difference_from_its_columns_median() -> None:
    """Ten protocols agree on 60 %, one has 62 %, one 10 %: the colours are not those of 0 to 100."""
    agreeing: list[list[float | None]] = [[0.6, 0.9] for _ in range(10)]
    shares: list[list[float | None]] = [*agreeing, [0.62, 0.9], [0.1, None]]
    figure = heat(Grid([f"protocol-with-a-name-{each}" for each in range(12)], ["x", "y"], shares))
    axes, scale = figure.axes
    (image,) = axes.images
    drawn: Any = np.ma.asarray(image.get_array()).data
    assert np.allclose(drawn[:, 0], [0] * 10 + [2, -50]) and np.allclose(drawn[:11, 1], 0) and np.isnan(drawn[11, 1])
    assert image.get_clim() == pytest.approx((-span(drawn), span(drawn)))
    assert "points from the column's median" in scale.get_xlabel()
    assert_nothing_is_cut_off(figure)


def test_the_scale_of_colours_leaves_few_far_ones_out_and_contrast_is_the_standards() -> None:
    assert span(np.array([[0.0, 0.2], [np.nan, -0.3]])) == 1.0
    assert span(np.array([0.0] * 50 + [4.0] * 19 + [-80.0])) == 4.0
    assert span(np.zeros(4)) == 1.0
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21.0)
    assert contrast((0.2, 0.4, 0.6), (0.2, 0.4, 0.6)) == 1.0


def test_names_of_many_columns_lean_and_values_stay_within_their_cells() -> None:
    types = ["CLICK", "LONG_PRESS", "SCROLL", "TYPE", "OPEN", "PRESS", "WAIT", "STOP"]
    rows = [f"protocol-number-{each}" for each in range(12)]
    figure = heat(Grid(rows, types, [[0.875] * 8] * 12, ["1,234"] * 8))
    axes = figure.axes[0]
    assert_nothing_is_cut_off(figure)
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {45.0}
    assert not overlapping(list(axes.texts)) and not overlapping(list(axes.get_yticklabels()))
    height = axes.get_window_extent().height / figure.dpi / 13
    assert height == pytest.approx(0.19, abs=0.005)


TABLE_20 = joined(["guievalkit-table-20"])


def panel(x: str, table: str = "guievalkit-table-20") -> Panel:
    points = joined([table]).pairs(x, "androidworld")
    return Panel(x, [name for name, _, _ in points], [one for _, one, _ in points], [other for _, _, other in points])


def test_reliability_of_table_20_states_what_the_paper_prints() -> None:
    names = ("soeval-exact", "offline-exact", "soeval-progress")
    figure = reliability([panel(name) for name in names], ["AW (%)"], 1, "two-column")
    titles = [axes.get_title() for axes in figure.axes]
    stated = [re.findall(r"= (\d\.\d\d)[ ,(]", title) for title in titles]
    assert stated == [["0.62", "0.77"], ["0.48", "0.66"], ["0.54", "0.77"]]
    for axes, name in zip(figure.axes, names, strict=True):
        points = next(line for line in axes.lines if line.get_marker() == "o")
        pairs = [[one, other] for _, one, other in TABLE_20.pairs(name, "androidworld")]
        assert np.asarray(points.get_xydata()).tolist() == pairs
        assert axes.get_ylim()[0] == 0
    assert_nothing_is_cut_off(figure)
    given = panel("soeval-exact")
    axes = axes_of(reliability([given], ["AW (%)"], degree=2))
    curve = next(line for line in axes.lines if line.get_linestyle() == "--")
    fit = correlate(given.x, given.y, degrees=(2,)).fits[0]
    assert np.allclose(np.asarray(curve.get_ydata()), fit.at(np.asarray(curve.get_xdata())))
    assert "R² = 0.76" in axes.get_title()  # 0.7586 by the table's note


@pytest.mark.parametrize(("table", "x"), [("guievalkit-table-20", "soeval-exact"), ("ui-s1-table-1", "sop-pg")])
def test_names_of_models_cover_neither_each_other_nor_a_point_nor_the_edge(table: str, x: str) -> None:
    points = joined([table]).pairs(x, "androidworld")
    axes = axes_of(reliability([panel(x, table)], ["AW (%)"]))
    names = [text for text in axes.texts if text.get_text()]
    assert {text.get_text().replace("\n", " ") for text in names} == {name for name, _, _ in points}
    assert not overlapping(names)
    inside = axes.get_window_extent()
    places = axes.transData.transform([(one, other) for _, one, other in points])
    for text in names:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1, text
        assert not any(box.contains(*place) for place in places.tolist()), text


def test_samples_are_drawn_against_the_number_of_answers_and_one_answer_makes_no_curve() -> None:
    # One step with four answers, two of them right: pass@2 = 1 - C(2,2)/C(4,2) = 5/6, pass^2 = C(2,2)/C(4,2) = 1/6.
    run = made_columns("ab", exact=[True, True], samples=[4, 4], right_samples=[2, 2], vote=[True, False])
    figures = [sampled([run], PROTOCOL, "any", k) for k in (1, 2, 4)] + [sampled([run], PROTOCOL, "all", k) for k in (4, 2, 1)]
    figure = samples({"m": [*figures, sampled([run], PROTOCOL, "vote")]})
    axes = axes_of(figure)
    curves = {str(line.get_linestyle()): np.asarray(line.get_xydata()).tolist() for line in axes.lines}
    assert np.allclose(curves["-"], [(1, 50), (2, 100 * 5 / 6), (4, 100)])
    assert np.allclose(curves["--"], [(1, 50), (2, 100 / 6), (4, 0)])
    assert curves[":"] == [[4, 50]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "4"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pass@n", "vote", "pass^n"]
    assert_nothing_is_cut_off(figure)
    run = made_columns("ab", exact=[True, False])
    with pytest.raises(UsageError, match="one answer to each step"):
        samples({"m": [sampled([run], PROTOCOL, "any", 1)]})


def test_series_differ_in_more_than_colour() -> None:
    runs = {f"run {each}": [cell("2-5", 0.5), cell("6-10", each / 10)] for each in range(MOST_SERIES)}
    lines = [line for line in axes_of(horizon(runs, "length")).lines if line.get_marker() != "None"]
    assert len({line.get_marker() for line in lines}) == MOST_SERIES
    hatches = {bar.get_hatch() for each in axes_of(bars(runs)).containers if isinstance(each, BarContainer) for bar in each}
    assert len(hatches) == MOST_SERIES
    with pytest.raises(UsageError, match="at most 8"):
        bars({**runs, "one more": [cell("2-5", 0.5)]})


def test_long_names_fit_the_column() -> None:
    name = "a-model-with-quite-a-long-name-{}, offline, with thinking and more"
    long = {name.format(each): [cell("CLICK", 0.5)] for each in range(4)}
    for figure in (bars(long), horizon({name: [cell("2-5", 0.5)] for name in long}, "length")):
        assert_nothing_is_cut_off(figure)


SPENT = [
    Spent("dear and good", 900, Measured(0.8, interval=Interval(0.75, 0.85, 0.95, "wilson"))),
    Spent("beaten", 500, Measured(0.5)),
    Spent("cheap", 100, Measured(0.4)),
    Spent("better for less", 400, Measured(0.6)),
    Spent("as dear and worse", 900, Measured(0.7)),
]


def test_accuracy_against_tokens_names_every_run_and_its_front(tmp_path: Path) -> None:
    assert [run.name for best in fronts(SPENT) for run in best] == ["cheap", "better for less", "dear and good"]
    for name in ("a.svg", "b.svg"):
        write(pareto(SPENT, "exact match", "tokens per step", "column"), tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert (tmp_path / "b.svg").read_text() == text
    assert all(run.name in text for run in SPENT) and "tokens per step" in text


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_files_are_as_wide_as_asked_for_and_equal_each_time(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with rc_context({"font.size": 20, "savefig.bbox": "tight", "font.family": "serif"} if name == "two" else {}):
            write(bars(RUNS), tmp_path / "new" / f"{name}.{suffix}")
    one, two = ((tmp_path / "new" / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two
    starts = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
    assert one.startswith(starts[suffix])
    assert b"CreationDate" not in one and b"dc:date" not in one
    if suffix == "png":
        assert int.from_bytes(one[16:20]) == round(WIDTHS["column"] * 300)
    if suffix == "svg":
        assert b'width="237.6pt"' in one  # 3.3 in of 72 pt
        assert b">exact match (%)</text>" in one and b"LONG_PRESS</t" in one


def test_mistakes_are_sentences() -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        bars({})
    with pytest.raises(UsageError, match="no cell holds 10 steps"):
        horizon({"a": [cell("0", 0.5, 9)]}, "step")
    with pytest.raises(UsageError, match="too few for a curve of degree 2"):
        reliability([Panel("x", ["a", "b", "c"], [1, 2, 3], [1, 2, 4])], ["y"], degree=2)
