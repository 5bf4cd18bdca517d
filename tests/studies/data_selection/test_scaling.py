"""Scaling laws: exact recovery, a case by hand, intervals that hold their level, what cannot be fitted, and the command."""

from __future__ import annotations

import math
from math import exp
from pathlib import Path

import numpy as np
import pytest

from guieval.errors import UsageError
from guieval.metrics import Measured
from guieval.studies.scaling import ScalingFit, fit_exponential, fit_log_linear, fit_scaling
from tests.command_line import CommandLine
from tests.rows import every_row

SHARES = [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0]


def test_three_points_by_hand() -> None:
    """log2 x = 1, 2, 3 and y = 1, 2, 4: slope 3/2, intercept 7/3 - 3 = -2/3, residuals 1/6, -1/3, 1/6, so SS_res = 1/6 and
    SS_tot = 14/3. One degree of freedom: s^2 = 1/6, the slope's error sqrt(s^2 / 2), and t is 12.7062."""
    law = fit_log_linear([2, 4, 8], [1, 2, 4])
    slope = law["slope"]
    assert (slope.value, law["intercept"].value) == pytest.approx((1.5, -2 / 3))
    assert law.r2 == pytest.approx(1 - (1 / 6) / (14 / 3))
    assert law.deviation == pytest.approx(math.sqrt(1 / 6))
    assert slope.standard_error == pytest.approx(math.sqrt(1 / 12))
    assert (slope.low, slope.high) == pytest.approx((1.5 - 12.7062 * math.sqrt(1 / 12), 1.5 + 12.7062 * math.sqrt(1 / 12)))
    assert law.at([8]) == pytest.approx([-2 / 3 + 3 * 1.5])
    # In the middle of the points the line is as sure as their mean: s / sqrt(3).
    low, high = law.band([4])
    assert (high - low)[0] / 2 == pytest.approx(12.7062 * math.sqrt(1 / 18))


def test_values_that_do_not_vary_have_slope_0_and_no_r2() -> None:
    law = fit_log_linear([2, 4, 8, 16], [5, 5, 5, 5])
    assert law["slope"].value == pytest.approx(0, abs=1e-12) and law.r2 is None


@every_row(("a", "b", "k"), [(30, -12, -0.73), (30, -12, -1.13), (5, 1, 0.3), (0, 4, -0.5)])
def test_an_exponential_law_is_found_exactly(a: float, b: float, k: float) -> None:
    """With the rates UI-S1 prints, growing away from A, and ending at 0."""
    law = fit_exponential(SHARES, [a + b * math.exp(k * x) for x in SHARES])
    assert [each.value for each in law.coefficients.values()] == pytest.approx([a, b, k], abs=1e-9)
    assert law.r2 == pytest.approx(1)
    assert law.at([0, 1]) == pytest.approx([a + b, a + b * math.exp(k)])


def test_the_papers_three_sizes_determine_the_law_exactly_and_bound_nothing() -> None:
    """UI-S1, Table 3: the SOP scores of thought-free patches with epsilon 0."""
    law = fit_exponential([0.2, 0.5, 1.0], [20.3, 21.4, 22.3])
    assert law.at([0.2, 0.5, 1.0]) == pytest.approx([20.3, 21.4, 22.3]) and np.isnan(law.band([0.5])).all()
    assert law.deviation is None and {each.interval for each in law.coefficients.values()} == {None}


def test_k_is_per_the_sizes_unit_and_nothing_else_changes() -> None:
    rng = np.random.default_rng(3)
    values = (30 - 12 * np.exp(-0.73 * np.array(SHARES)) + rng.normal(0, 0.5, len(SHARES))).tolist()
    small, large = fit_exponential(SHARES, values), fit_exponential([1000 * x for x in SHARES], values)
    for name, factor in {"A": 1.0, "B": 1.0, "k": 1e-3}.items():
        ours = [part * factor for part in numbers(small[name])]
        assert numbers(large[name]) == pytest.approx(ours, rel=1e-4)


def numbers(coefficient: Measured) -> list[float]:
    assert coefficient.value is not None and coefficient.interval is not None
    return [coefficient.value, coefficient.interval.low, coefficient.interval.high]


def covered(law: ScalingFit, truth: dict[str, float]) -> list[bool]:
    ends = {name: numbers(law[name])[1:] for name in truth}
    return [ends[name][0] <= value <= ends[name][1] for name, value in truth.items()]


def test_exponential_intervals_hold_their_level() -> None:
    """Of 120 simulated curves of 7 points 95 % within 3.5 standard deviations (2 % each)."""
    rng = np.random.default_rng(0)
    middle = 30 - 12 * np.exp(-0.73 * np.array(SHARES))
    hits = np.zeros(3)
    for _ in range(120):
        law = fit_exponential(SHARES, (middle + rng.normal(0, 0.5, len(SHARES))).tolist())
        hits += covered(law, {"A": 30, "B": -12, "k": -0.73})
    assert hits / 120 == pytest.approx(0.95, abs=0.07)
    assert (hits < 120).any(), "intervals that never miss are too wide"


def test_an_interval_has_no_end_where_the_data_set_no_bound() -> None:
    """Nearly a straight line: where the curve would end up is anybody's guess, and k may be 0."""
    law = fit_exponential([1, 2, 3, 4, 5], [1.0, 2.1, 2.9, 4.05, 4.9])
    assert {numbers(law["A"])[1], -numbers(law["A"])[2]} & {-math.inf}
    assert numbers(law["k"])[1] < 0 < numbers(law["k"])[2]


@every_row("form", ["log-linear", "exponential"])
@every_row(
    ("sizes", "values", "message"),
    [
        ([16, 32], [1, 2], "2 points of 2 different sizes are too few"),
        ([16, 16, 16, 16], [1, 2, 3, 4], "4 points of 1 different sizes are too few"),
        ([-16, 32, 64, 128], [1, 2, 3, 4], "a size must be a number .*, got -16"),
        ([math.nan, 32, 64, 128], [1, 2, 3, 4], "got nan"),
        ([16, 32, 64, 128], [1, 2, math.inf, 4], "a value must be a finite number, got inf"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused(form: str, sizes: list[float], values: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fit_scaling(form, sizes, values)


def test_the_untrained_model_is_a_point_of_the_exponential_law_alone() -> None:
    values = [18 + 0.0, 24.2, 27.2, 28.7]
    assert fit_exponential([0, 1, 2, 3], values).n == 4
    with pytest.raises(UsageError, match="a size must be a number above 0, got 0"):
        fit_log_linear([0, 1, 2, 3], values)


def test_curves_that_are_no_exponential_are_refused() -> None:
    for values, reason in (
        ([1, 2, 3, 4, 5], "straight line over the sizes: k cannot be distinguished from 0"),
        ([1, 2, 2, 2, 2], "k cannot be distinguished from infinity"),
        ([7, 7, 7, 7, 7], "every value is 7"),
    ):
        with pytest.raises(UsageError, match=reason):
            fit_exponential([1, 2, 3, 4, 5], values)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two exact log-linear series; one line has no value yet."""
    lines = [f"{size},SFT,{10 + place}\n{size},RL,{12 + 2 * place}\n" for place, size in enumerate((16, 32, 64, 128, 256))]
    file = tmp_path / "scores.csv"
    file.write_text("episodes,method,exact match\n" + "".join(lines) + "512,RL,-\n")
    return file


def test_each_series_has_its_own_law(guieval: CommandLine, table: Path) -> None:
    done = guieval("study", "fit-scaling", table, "--by", "method")
    assert done.code == 0 and "SFT: y = 6 + 1 log2(x)" in done.out and "RL: y = 4 + 2 log2(x)" in done.out
    assert "R² 1.0000, residual standard deviation 0, n = 5" in done.out


def test_an_exponential_law_states_its_unit_and_its_letters(guieval: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("size,sop\n" + "".join(f"{1000 * x},{30 - 12 * exp(-0.73 * x)!r}\n" for x in (1, 2, 3, 4, 6)))
    done = guieval("study", "fit-scaling", file, "--form", "exponential", "--unit", "1000")
    assert "sop: y = 30 - 12 e^(-0.73 x)" in done.out
    assert "x is counted in units of 1000: k is per 1000 of the sizes, and B stands for B e^C" in done.out


def test_the_picture_shows_points_and_curves_of_every_series(guieval: CommandLine, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / name for name in ("one.svg", "two.svg")]
    for file in files:
        assert guieval("study", "fit-scaling", table, "--by", "method", "--y", "exact match", "--out", file).code == 0
    first, second = (file.read_bytes() for file in files)
    assert b"<svg" in first and first == second, "equal input gives equal bytes"


@every_row(
    ("arguments", "message"),
    [
        (("--by", "methd"), "has no column 'methd' (did you mean 'method'?)"),
        (("--y", "method"), "column method: expected a number, got 'SFT'"),
        (("--form", "power", "--by", "method"), "SFT: unknown form 'power'; known: log-linear, exponential"),
        (("--form", "loglinear", "--by", "method"), "unknown form 'loglinear' (did you mean 'log-linear'?)"),
        (("--by", "method", "--unit", "10"), "--unit is for --form exponential"),
        (("--form", "exponential", "--unit", "inf"), "--unit is a number above 0, got inf"),
        (("--x", "episodes", "--y", "episodes"), "the column 'episodes' cannot be both the sizes and the values"),
        (("--by", "method", "--level", "1.5"), "the level of an interval is between 0 and 1, got 1.5"),
        (("--by", "method", "--out", "x.gif"), ".gif"),
    ],
)
def test_mistakes_end_with_one_sentence(guieval: CommandLine, table: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in guieval.sentence("study", "fit-scaling", table, *arguments)


def test_a_file_without_points_or_columns_is_refused(guieval: CommandLine, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in guieval.sentence("study", "fit-scaling", tmp_path / "none.csv")
    wrong = {"": "it has: none", "size\n1\n": "it has: size", "size,y\n1,\n": "no line with a value in column 'y'"}
    for text, message in wrong.items():
        (tmp_path / "some.csv").write_text(text)
        assert message in guieval.sentence("study", "fit-scaling", tmp_path / "some.csv")
