"""Schedules of history mixing against values computed by hand from equations 11 and 12, and against their properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid

from guieval.errors import UsageError
from guieval.history.mixing import Schedule, admissible_means, centre_for, mean_of_logistic, normalised_logistic
from guieval.studies.mix_sweep.sweep import Sweep, get_preset, setting_name
from tests.rows import every_row

PROBABILITIES = st.floats(0.0, 1.0)
KAPPAS = st.floats(0.05, 100.0)
CENTRES = st.floats(0.01, 0.99)


def test_the_normalised_logistic_equals_a_calculators_value() -> None:
    # sigma(-8) = 0.00033535, sigma(-4) = 0.01798621, sigma(8) - sigma(-8) = 0.99932930
    found = normalised_logistic([0.0, 0.25, 0.5, 0.75, 1.0], kappa=16, mu=0.5)
    assert found.tolist() == pytest.approx([0.0, 0.0176627, 0.5, 0.9823373, 1.0], abs=1e-7)
    # sigma(-1) = 0.26894142, sigma(3) = 0.95257413, sigma(1) = 0.73105858
    assert normalised_logistic(0.5, kappa=4, mu=0.25) == pytest.approx((0.73105858 - 0.26894142) / (0.95257413 - 0.26894142))


@given(KAPPAS, CENTRES)
def test_the_closed_form_of_the_mean_is_the_integral_and_the_centre_found_gives_it_back(kappa: float, mu: float) -> None:
    mean = mean_of_logistic(kappa, mu)
    points = [max(0.0, mu - 5 / kappa), mu, min(1.0, mu + 5 / kappa)]
    assert mean == pytest.approx(quad(lambda x: float(normalised_logistic(x, kappa, mu)), 0, 1, points=points)[0], abs=1e-7)
    assert mean_of_logistic(kappa, centre_for(mean, kappa)) == pytest.approx(mean, abs=1e-10)


def test_the_admissible_means_are_those_of_the_centres_0_and_1() -> None:
    # mu = 0: ((ln(1 + e^16) - ln 2) / 16 - 1/2) / (sigma(16) - 1/2)
    most = ((math.log1p(math.exp(16)) - math.log(2)) / 16 - 0.5) / (1 / (1 + math.exp(-16)) - 0.5)
    assert most == pytest.approx(0.913357, abs=1e-6)
    assert admissible_means(0.0, 1.0) == pytest.approx((1 - most, most))
    assert admissible_means(1.0, 0.0) == pytest.approx((1 - most, most))
    assert admissible_means(1 / 3, 2 / 3) == pytest.approx((1 / 3 + (1 - most) / 3, 1 / 3 + most / 3))
    assert admissible_means(0.25, 0.25) == (0.25, 0.25)
    assert admissible_means(0.0, 0.5, "linear") == (0.25, 0.25)


def test_a_history_of_four_steps_has_the_ratios_a_quarter_to_one() -> None:
    rising = Schedule(0.0, 1.0).probabilities(4)
    assert rising.tolist() == pytest.approx([0.0176627, 0.5, 0.9823373, 1.0], abs=1e-7)
    assert Schedule(1.0, 0.0).probabilities(4).tolist() == pytest.approx((1 - rising).tolist())
    assert Schedule(0.2, 0.6).probabilities(4).tolist() == pytest.approx((0.2 + 0.4 * rising).tolist())
    assert Schedule(0.0, 1.0, "linear").probabilities(4).tolist() == [0.25, 0.5, 0.75, 1.0]
    assert Schedule(0.5, 0.1, "linear").probabilities(4).tolist() == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert Schedule(0.3, 0.3, "constant").probabilities(2).tolist() == [0.3, 0.3]
    assert Schedule(0.0, 1.0).probabilities(1).tolist() == [1.0]
    assert Schedule(0.0, 1.0).probabilities(0).shape == (0,)


@given(PROBABILITIES, PROBABILITIES, KAPPAS, st.floats(0.001, 0.999), st.integers(1, 40))
def test_a_schedule_keeps_its_mean_and_its_ends(start: float, end: float, kappa: float, place: float, length: int) -> None:
    low, high = admissible_means(start, end, kappa=kappa)
    wanted = low + place * (high - low)
    if not low < wanted < high:  # a gap below what floats can tell
        wanted = low
        end = start
    schedule = Schedule(start, end, kappa=kappa, mean=wanted if start != end else start)
    x = np.linspace(0, 1, 4001)
    assert trapezoid(schedule.at(x), x) == pytest.approx(schedule.mean, abs=2e-4)
    found = schedule.probabilities(length)
    assert found.shape == (length,)
    assert np.all(found >= min(start, end) - 1e-9) and np.all(found <= max(start, end) + 1e-9)
    assert np.all(np.diff(found) * np.sign(end - start) >= -1e-9)
    assert found[-1] == pytest.approx(end, abs=1e-9)


@every_row(
    ("values", "message"),
    [
        ({"start": 1.2, "end": 1.0}, "start is 1.2"),
        ({"start": 0.0, "end": 1.0, "mean": 0.95}, "between 0.08664"),
        ({"start": 0.0, "end": 1.0, "mean": admissible_means(0.0, 1.0)[0]}, "between 0.08664"),  # only a step has it
        ({"start": 0.0, "end": 1.0, "shape": "linear", "mean": 0.4}, "always has the mean 0.5"),
        ({"start": 0.2, "end": 0.2, "mean": 0.4}, "always has the mean 0.2"),
        ({"start": 0.0, "end": 1.0, "shape": "constant"}, "constant schedule cannot go from 0 to 1"),
        ({"start": 0.0, "end": 1.0, "shape": "logistics"}, "did you mean 'logistic'"),
        ({"start": 0.0, "end": 1.0, "kappa": 0.0}, "kappa is 0.0"),
        ({"start": 0.0, "end": 1.0, "kappa": math.nan}, "kappa is nan"),
    ],
)
def test_an_impossible_schedule_is_reported(values: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Schedule(**values)  # type: ignore[arg-type]


def test_the_papers_sweep_has_its_800_settings() -> None:
    mixes = get_preset("paper").mixes()
    regimes = [mix.schedule.regime for mix in mixes]
    assert [regimes.count(each) for each in ("increasing", "decreasing", "stationary")] == [300, 300, 200]
    assert {mix.kappa for mix in mixes} == {16.0}
    assert {round(3 * mix.start, 9) for mix in mixes} == {0, 1, 2, 3}
    assert len({setting_name(number, mix) for number, mix in enumerate(mixes)}) == 800
    assert len({mix.model_dump_json() for mix in mixes}) == 800  # no two have the same draws
    rising = [mix.mean for mix in mixes if (mix.start, mix.end) == (0.0, 1.0) and mix.mean is not None]
    low, high = admissible_means(0.0, 1.0)
    step = (high - low) / 50
    assert np.diff([low, *rising, high]).tolist() == pytest.approx([step / 2, *[step] * 49, step / 2])


def test_pairs_of_ones_own_take_the_place_of_the_levels() -> None:
    mixes = Sweep(pairs=((0.1, 0.9), (0.4, 0.4)), means=3).mixes()
    assert [(mix.start, mix.end, mix.repeat) for mix in mixes] == 3 * [(0.1, 0.9, 0)] + [(0.4, 0.4, each) for each in range(3)]
    with pytest.raises(UsageError, match="start is 2"):
        Sweep(pairs=((2.0, 0.0),)).mixes()
    with pytest.raises(UsageError, match="the pair 0:1 is given twice"):
        Sweep(pairs=((0.0, 1.0), (1.0, 0.0), (0.0, 1.0))).mixes()


@every_row("kappa", [0.01, 16.0, 1000.0])
@every_row(("start", "end"), [(0.0, 1.0), (1.0, 0.0), (1 / 3, 2 / 3), (2 / 3, 1 / 3), (0.3, 0.30001)])
def test_a_mean_at_the_border_of_what_is_admissible_has_a_centre(start: float, end: float, kappa: float) -> None:
    low, high = admissible_means(start, end, kappa=kappa)
    rising = start < end
    for mean, expected in ((math.nextafter(low, 1), 1.0 if rising else 0.0), (math.nextafter(high, 0), 0.0 if rising else 1.0)):
        assert Schedule(start, end, kappa=kappa, mean=mean).mu == pytest.approx(expected, abs=1e-4)


def test_ends_that_differ_by_one_float_have_a_schedule() -> None:
    for start, end in ((0.5, math.nextafter(0.5, 1)), (0.0, 5e-324)):
        assert Schedule(start, end).probabilities(3).tolist() == pytest.approx([start] * 3, abs=1e-15)
