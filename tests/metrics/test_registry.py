"""Metrics of users: a function of a file or a package is shown by every command in its unit, and ranked the right way round."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import guieval as package
from guieval import evaluate_run, open_run
from guieval.actions import Click, Point
from guieval.errors import UsageError
from guieval.metrics import registry
from guieval.reports.opened import OpenedRun
from guieval.reports.server.overview import judged_run, metrics_section
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run
from tests.metrics.made_columns import PROTOCOL, made_columns
from tests.rows import every_row

NAME = "mean click distance"
HEAD = "import guieval\nimport numpy as np\n\n"
DISTANCE = f"""@guieval.metric({NAME!r}, unit="thousandths of the screen", better="less", of="measured clicks")
def distance(run, judged):
    return judged.distance
"""
TARGET = Click(point=Point(500, 500))


@pytest.fixture(autouse=True)
def none_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_METRICS", {})
    registry._load_packages.cache_clear()
    yield
    registry._load_packages.cache_clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "distances.py"
    path.write_text(HEAD + DISTANCE)
    return path


def a_run(folder: Path, off: float) -> Path:
    """Twelve episodes of one click each, ``off`` thousandths to the right of the target and a bit more each time."""
    tasks = [step(TARGET, episode=f"e{number:02}", dataset="screenspot") for number in range(12)]
    answers = [record(task, Click(point=Point(500 + off + number, 500))) for number, task in enumerate(tasks)]
    return write_run(folder, answers)


def test_every_command_shows_it_in_its_unit_and_ranks_less_as_better(guieval: CommandLine, tmp_path: Path, file: Path) -> None:
    near, far = a_run(tmp_path / "near", 10.0), a_run(tmp_path / "far", 200.0)
    with_file = ("--metrics-from", file)
    summary = json.loads(guieval("score", near, *with_file, "--json").out)["runs"][0]["summary"]
    found = summary["further"][NAME]
    assert found["value"] == pytest.approx(sum(10 + number for number in range(12)) / 12)
    assert (found["n"], found["unit"], found["better"]) == (12, "thousandths of the screen", "less")
    assert found["interval"]["low"] < found["value"] < found["interval"]["high"]
    assert f"{NAME} 15.5 \u2030 of the screen (n = 12) [" in " ".join(guieval("score", near, *with_file).out.split())

    board = json.loads(guieval("leaderboard", near, far, *with_file, "--json").out)
    place = [column["metric"] for column in board["columns"]].index(NAME)
    cells = {Path(row["cells"][place]["directory"]).name: row["cells"][place] for row in board["rows"]}
    assert cells["near"]["measured"] == found
    assert [cells[name]["rank"] for name in ("near", "far")] == [1, 2]
    best = guieval("leaderboard", far, near, *with_file, "--sort", NAME, "--format", "csv").out.splitlines()[1]
    assert best.endswith(str(near))
    text = guieval("leaderboard", near, far, *with_file, "--format", "md").out
    assert f"| {NAME} (thousandths of the screen) |" in text and f"{NAME} (%)" not in text

    compared = json.loads(guieval("compare", near, far, *with_file, "--json").out)["comparisons"][0]["metrics"]
    (mine,) = [each for each in compared if each["metric"] == NAME]
    assert mine["A"] == found and mine["difference"]["value"] == pytest.approx(190)
    assert mine["difference"]["unit"] == "thousandths of the screen" and mine["difference"]["p_value"] < 0.01
    shown = " ".join(guieval("compare", near, far, *with_file).out.split())
    assert "15.5 \u2030 of the screen 205.5 \u2030 of the screen +190.0 \u2030 of the screen" in shown

    (card,) = [each for each in metrics_section(judged_run(near))["cards"] if each["name"] == NAME]
    assert card["measured"] == found and card["value"] == "15.5 \u2030 of the screen"
    opened = open_run(near)
    assert isinstance(opened, OpenedRun)
    assert evaluate_run(near)[NAME].value == opened.metrics()[NAME].value == found["value"]


def test_a_package_names_it_as_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed_metrics.py").write_text(HEAD + DISTANCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("distance", "installed_metrics:distance", registry.METRICS_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    assert NAME in evaluate_run(a_run(tmp_path / "run", 10.0))


def test_a_ratio_of_sums_leaves_out_steps_without_a_number(tmp_path: Path) -> None:
    @package.metric("odd steps right")
    def odd(run, judged):  # type: ignore[no-untyped-def]
        import numpy as np

        odd = np.arange(len(run)) % 2 == 1
        return judged.exact_match & odd, np.where(odd, 1.0, np.nan)

    found = evaluate_run(a_run(tmp_path / "run", 10.0))["odd steps right"]
    assert found.n == 6 and found.value is not None and found.unit == "share"


def test_the_interval_of_a_share_holds_what_missing_steps_may_have_been() -> None:
    names, ends = [f"e{number}" for number in range(20)], ["right"] * 8 + ["wrong"] * 6 + ["not_run"] * 6
    run = made_columns(names, ends=ends)
    own = registry.UserMetric("mine", lambda run, judged: judged.exact_match, "share", "more", "steps")
    interval = own.measure(run, run.judged[PROTOCOL]).interval
    assert interval is not None and interval.low < 8 / 20 and interval.high > 14 / 20
    nothing = made_columns(names, ends=["not_run"] * 20)
    assert own.measure(nothing, nothing.judged[PROTOCOL]).interval is None


@every_row(
    ("text", "sentence"),
    [
        ("x = 1\n", "has no metric: put @guieval.metric"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
        ('@guieval.metric("exact match")\ndef f(run, judged): return judged.exact_match\n', "cannot be called 'exact match'"),
        ('@guieval.metric("m")\ndef f(run, judged): return [1.0]\n', "expected one a step, so (12,)"),
        ('@guieval.metric("m")\ndef f(run, judged): return run.none\n', "the metric 'm' failed at mine.py:5: AttributeError"),
        ('@guieval.metric("Average")\ndef f(run, judged): return judged.exact_match\n', "the name of one of seeclick-official"),
    ],
)
def test_mistakes_are_one_sentence(guieval: CommandLine, tmp_path: Path, text: str, sentence: str) -> None:
    registry._METRICS.clear()
    run = a_run(tmp_path / "run", 10.0)
    (tmp_path / "mine.py").write_text(HEAD + text)
    assert sentence in guieval.sentence("score", run, "--metrics-from", tmp_path / "mine.py")


def test_a_file_that_is_none_is_named(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", 10.0)
    assert "is not a Python file" in guieval.sentence("score", run, "--metrics-from", tmp_path / "nothing.txt")
    with pytest.raises(UsageError, match="cannot be called"):
        package.metric(" ")
