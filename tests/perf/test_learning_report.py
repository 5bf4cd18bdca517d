"""How the comparison of training methods decides: power, Welch's intervals, and figures from stored digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from guieval.actions import Wait
from guieval.steps import Sample, StepOutcome, StepRecord
from perf.learning import RESULTS, keep
from perf.learning_report import Evaluated, by_seed, chance_to_see, compared, read
from tests.json_values import read_json
from tests.made_runs import step, write_run
from tests.rows import every_row


@pytest.mark.parametrize(("deviation", "seeds"), [(1.0, 17), (2.0, 64)])
def test_power_is_cohens(deviation: float, seeds: int) -> None:
    """Cohen 1988, table 2.4.1: d = 1 needs 17 per group, d = 0.5 64."""
    assert chance_to_see(1.0, 2 * deviation**2, seeds - 1) < 0.8 <= chance_to_see(1.0, 2 * deviation**2, seeds)
    assert chance_to_see(0.0, 2 * deviation**2, seeds) == pytest.approx(0.05)


def test_figures_by_hand() -> None:
    """Three episodes: all of 2 steps, 1 of 4 (the second asked step was wrong), none of 1."""
    cell = Evaluated.of("210", "241")
    assert by_seed([cell]).tolist() == [pytest.approx([100 * 3 / 5, 100 * (1 + 0.25 + 0) / 3, 100 / 3])]


def test_welch_by_hand() -> None:
    """Means 2 and 5, variances 1 and 4 of three seeds each: 3 +- t(2.94 degrees of freedom) x sqrt(5 / 3)."""
    found = compared(np.array([4.0, 5.0, 6.0]), np.array([0.0, 2.0, 4.0]))
    assert found.difference == pytest.approx(3.0)
    assert pytest.approx(2.941, abs=1e-3) == (5 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2)
    assert found.wide == pytest.approx((3 - 3.2202 * (5 / 3) ** 0.5, 3 + 3.2202 * (5 / 3) ** 0.5), abs=2e-2)
    assert found.p == pytest.approx(2 * t.sf(3 / (5 / 3) ** 0.5, 2.941), abs=1e-4)


@every_row(
    ("one", "other", "words"),
    [
        ([60, 61, 62, 61], [50, 51, 52, 51], "better"),
        ([50, 51, 52, 51], [60, 61, 62, 61], "worse"),
        ([60, 61, 62, 61], [60, 61, 62, 60.5], "equal to within 3 points"),
        ([55, 61, 66, 60], [53, 58, 66, 60], "undecided"),
    ],
)
def test_verdicts(one: list[float], other: list[float], words: str) -> None:
    assert compared(np.array(one), np.array(other)).words == words


def test_results_are_kept_once(tmp_path: Path) -> None:
    """Episode a matches in two of three steps, b in none of one, c in both; a second call replaces, another set is refused."""
    training = tmp_path / "trainings" / "sft-5"
    (training / "final").mkdir(parents=True)
    outcomes = {"a": [True, True, False], "b": [False], "c": [True, True]}
    records = [
        StepRecord(task=step(Wait(), episode=name, index=index, length=len(found)), samples=(answered(exact),))
        for name, found in outcomes.items()
        for index, exact in enumerate(found)
    ]
    write_run(training / "evaluations" / "step-80", records)
    results = tmp_path / "results.jsonl"
    for _ in range(2):
        keep(tmp_path / "trainings", results)
    lengths, line = (read_json(line) for line in results.read_text(encoding="utf-8").splitlines())
    assert lengths == {"lengths": "312"}
    assert line == {"method": "sft", "seed": 5, "step": 80, "matched": "202"}
    (row,) = by_seed(read(results)[0]["sft"][80])
    assert row == pytest.approx([100 * 4 / 6, 100 * (2 / 3 + 0 + 1) / 3, 100 / 3])
    write_run(training / "evaluations" / "step-160", records[:-2])
    with pytest.raises(SystemExit, match="evaluates other episodes"):
        keep(tmp_path / "trainings", results)


def answered(exact: bool) -> Sample:
    verdict = StepOutcome(verdict="right" if exact else "wrong", type_match=True, exact_match=exact)
    return Sample(raw_response="", action=Wait(), outcome=verdict)


def test_the_stored_results_are_whole() -> None:
    curves, _ = read(RESULTS)
    assert {len(cell.length) for steps in curves.values() for cells in steps.values() for cell in cells} == {600}
