"""``guieval report`` as it is typed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from guieval.actions import Stop
from guieval.cli import main
from tests.reports.viewer.made_run import at, record, task, write_run
from tests.reports.viewer.test_writing import value_in


def guieval(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["guieval", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", [record(task(step=0), at(500, 500)), record(task(step=2), Stop())])


def chunk(folder: Path) -> dict[str, list[dict[str, object]]]:
    value: dict[str, list[dict[str, object]]] = value_in((folder / "data" / "steps-00000.js").read_text(encoding="ascii"))
    return value


def test_a_report_is_written_into_the_run(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    (data / "e1").mkdir(parents=True)
    Image.new("RGB", (300, 600)).save(data / "e1" / "0.png")
    assert guieval(monkeypatch, "report", run, "--data", data, "--protocol", "guievalkit", "--protocol", "ui-s1-sop") == 0
    out, err = capsys.readouterr()
    assert "3 steps of 1 episode, 1 screenshot" in out and str(run / "report" / "index.html") in out
    assert "missing: 1 screenshot, first:" in err
    rows = chunk(run / "report")["rows"]
    assert [bool(row.get("image")) for row in rows] == [True, False, False]
    assert json.loads((run / "manifest.json").read_text())["config"]["data"] is None  # the run is left as it was


def test_prompts_are_rebuilt_or_reported_as_missing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step's prompt can be rebuilt; a step before the third one has no record."""
    assert guieval(monkeypatch, "report", run, "--no-images") == 0
    chunk_values = chunk(run / "report")
    first, second, third = (row["runs"] for row in chunk_values["rows"])
    assert isinstance(first, list) and isinstance(second, list) and isinstance(third, list)
    assert "Goal of e1" in "\n".join(str(chunk_values["lines"][each]) for each in first[0]["prompt"])
    assert second[0]["note"] == "There is no record of this step."
    assert third[0]["prompt"] == [] and "no record of step 1 before it" in third[0]["note"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "the run directory 'nothing' does not exist"),
        (("{run}", "--protocol", "ui-s1-so"), "did you mean 'ui-s1-sop'"),
        (("{run}", "--data", "nowhere"), "does not exist"),
        (("{run}", "--out", "{run}"), "is not a report; choose another --out"),
        (("{run}", "--against", "{run}/nothing"), "nothing' does not exist"),
    ],
)
def test_a_mistake_is_one_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    if "--data" in arguments:
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["config"]["bench"] = "androidcontrol"
        (run / "manifest.json").write_text(json.dumps(manifest))
    assert guieval(monkeypatch, "report", *(each.format(run=run) for each in arguments)) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("guieval: ") and err.count("\n") == 1 and message in err


def test_a_manifest_that_lost_its_benchmark_leaves_the_images_out(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["config"]["bench"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert guieval(monkeypatch, "report", run) == 0
    assert "the report has no screenshots" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_names_the_file(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert guieval(monkeypatch, "report", run, "--no-images", "--out", tmp_path / "out") == 0
    capsys.readouterr()
    (tmp_path / "out" / "app.js").unlink()
    (tmp_path / "out" / "app.js").mkdir()
    assert guieval(monkeypatch, "report", run, "--no-images", "--out", tmp_path / "out") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "app.js" in err and "cannot be written" in err


def test_data_that_cannot_be_opened_leaves_the_images_out(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["config"]["bench"] = "androidcontrol"
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert guieval(monkeypatch, "report", run) == 0
    assert "the report has no screenshots" in capsys.readouterr().err
    assert "the report has no screenshots" in str(chunk(run / "report")["rows"][0]["why"])
