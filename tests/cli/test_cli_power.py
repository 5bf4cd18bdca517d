"""``guieval power``: what it measures with two runs, and what it says that it assumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.reports.scripted_runs import EPISODES, made_run

HARD = EPISODES[:4]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both models miss all four steps of four episodes, and elsewhere each a step of its own in every second episode."""
    folder = tmp_path_factory.mktemp("runs")
    easy = EPISODES[len(HARD) :]
    hard = [(name, step) for name in HARD for step in range(4)]
    one = made_run(folder / "one", [*hard, *((name, 0) for name in easy[::2])])
    return one, made_run(folder / "other", [*hard, *((name, 1) for name in easy[1::2])])


def told(guieval: CommandLine, *asked: Any) -> dict[str, Any]:
    return dict(json.loads(guieval("power", *asked, "--json").out))


def test_episodes_that_are_hard_for_both_models_are_no_difference(runs: tuple[Path, Path], guieval: CommandLine) -> None:
    """Right and wrong of one run correlate by some 0.8 within episodes, the difference of the two hardly."""
    found = told(guieval, *runs)
    assert (found["steps"], found["episodes"], found["icc_is"]) == (48, 12, "measured")
    assert found["icc"] == pytest.approx(0.022, abs=0.001)
    assert found["disagreement"] == pytest.approx(8 / 48) and found["disagreement_is"] == "measured"
    assert "icc of the difference within episodes 0.02 (measured)" in guieval("power", *runs).out
    assert found == told(guieval, *runs[::-1])


def test_one_run_has_no_difference_to_measure(runs: tuple[Path, Path], guieval: CommandLine) -> None:
    found = told(guieval, runs[0])
    assert (found["icc"], found["icc_is"], found["disagreement"], found["disagreement_is"]) == (0.1, "assumed", 0.2, "assumed")
    assert found == told(guieval, "--steps", 48, "--episodes", 12)
    out = guieval("power", runs[0]).out
    assert "one model alone is right on 20 % of the steps (assumed)" in out and "guieval power RUN OTHER" in out


def test_what_is_given_is_not_measured(runs: tuple[Path, Path], guieval: CommandLine) -> None:
    found = told(guieval, *runs, "--icc", 0.3, "--disagreement", 0.5)
    assert (found["icc"], found["icc_is"], found["disagreement"]) == (0.3, "given", 0.5)


def test_few_episodes_show_less_than_as_many_independent_steps(guieval: CommandLine) -> None:
    """Two episodes go into finding out how much they differ."""
    few, many = (told(guieval, "--steps", 200, "--episodes", episodes, "--icc", 0)["smallest"] for episodes in (10, 200))
    assert few > 1.1 * many


def test_runs_that_cannot_be_compared_or_do_not_differ_are_refused(
    runs: tuple[Path, Path], tmp_path: Path, guieval: CommandLine
) -> None:
    short = made_run(tmp_path / "short", episodes=EPISODES[:6])
    assert "cannot be compared: the steps differ" in guieval.sentence("power", runs[0], short)
    assert "there is no difference" in guieval.sentence("power", runs[0], runs[0])
    assert "give a run, or two, or --steps" in guieval.sentence("power")
