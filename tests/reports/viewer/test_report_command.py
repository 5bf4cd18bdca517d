"""``guieval report`` as it is typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from guieval.actions import Stop
from tests.command_line import CommandLine
from tests.reports.opened.test_opened_run import drawn
from tests.reports.scripted_runs import edited
from tests.reports.viewer.made_run import at, record, task, write_run
from tests.reports.viewer.test_writing import value_in
from tests.rows import every_row


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [record(task(step=0), at(500, 500)), record(task(step=2), Stop())])


def chunk(folder: Path) -> dict[str, list[dict[str, object]]]:
    value: dict[str, list[dict[str, object]]] = value_in((folder / "data" / "steps-00000.js").read_text(encoding="ascii"))
    return value


def with_benchmark(run: Path, name: str | None) -> Path:
    """The run, whose manifest names another benchmark, or none."""
    with edited(run / "manifest.json") as manifest:
        del manifest["config"]["bench"]
        manifest["config"] |= {} if name is None else {"bench": name}
    return run


def test_a_report_is_written_into_the_run(run: Path, guieval: CommandLine, tmp_path: Path) -> None:
    data = drawn(tmp_path / "data", "e1/0.png")
    done = guieval("report", run, "--data", data, "--protocol", "guievalkit", "--protocol", "ui-s1-sop")
    assert done.code == 0
    assert "3 steps of 1 episode, 1 screenshot" in done.out and str(run / "report" / "index.html") in done.out
    assert "missing: 1 screenshot, first:" in done.err
    rows = chunk(run / "report")["rows"]
    assert [bool(row.get("image")) for row in rows] == [True, False, False]
    assert json.loads((run / "manifest.json").read_text())["config"]["data"] is None  # the run is left as it was


def test_prompts_are_rebuilt_or_reported_as_missing(run: Path, guieval: CommandLine) -> None:
    """The first step's prompt can be rebuilt; a step before the third one has no record."""
    assert guieval("report", run, "--no-images").code == 0
    chunk_values = chunk(run / "report")
    first, second, third = (row["runs"] for row in chunk_values["rows"])
    assert isinstance(first, list) and isinstance(second, list) and isinstance(third, list)
    assert "Goal of e1" in "\n".join(str(chunk_values["lines"][each]) for each in first[0]["prompt"])
    assert second[0]["note"] == "There is no record of this step."
    assert third[0]["prompt"] == [] and "no record of step 1 before it" in third[0]["note"]


@every_row(
    ("arguments", "message"),
    [
        (("nothing",), "the run directory 'nothing' does not exist"),
        (("{run}", "--protocol", "ui-s1-so"), "did you mean 'ui-s1-sop'"),
        (("{of_androidcontrol}", "--data", "nowhere"), "does not exist"),
        (("{run}", "--out", "{run}"), "is not a report; choose another --out"),
        (("{run}", "--against", "{run}/nothing"), "nothing' does not exist"),
    ],
)
def test_a_mistake_is_a_sentence(run: Path, tmp_path: Path, guieval: CommandLine, arguments: list[str], message: str) -> None:
    other = with_benchmark(shutil.copytree(run, tmp_path / "other"), "androidcontrol")
    done = guieval("report", *(each.format(run=run, of_androidcontrol=other) for each in arguments))
    assert (done.code, done.out) == (2, "") and message in done.err
    assert done.err.startswith("guieval: ") and done.err.count("\n") == 1


@pytest.mark.parametrize("name", [None, "androidcontrol"])
def test_data_that_cannot_be_opened_leave_the_images_out(run: Path, guieval: CommandLine, name: str | None) -> None:
    done = guieval("report", with_benchmark(run, name))
    assert done.code == 0 and "there are no screenshots" in done.err
    assert "there are no screenshots" in str(chunk(run / "report")["rows"][0]["why"])


def test_a_report_that_cannot_be_written_names_the_file(run: Path, guieval: CommandLine, tmp_path: Path) -> None:
    command = ("report", run, "--no-images", "--out", tmp_path / "out")
    assert guieval(*command).code == 0
    (tmp_path / "out" / "app.js").unlink()
    (tmp_path / "out" / "app.js").mkdir()
    message = guieval.sentence(*command)
    assert "app.js" in message and "cannot be written" in message
