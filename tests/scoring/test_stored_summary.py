"""The summary that a run stored is used only while it is the one that its journal gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.journal import RunFolder
from guieval.scoring.score import evaluate_run, stored_summary
from tests.reports.viewer.made_run import at, end, failed, record, task, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(
        tmp_path / "run", [record(task(step=0), at(500, 500)), failed(task(step=1)), record(task(step=2), at(0, 0))]
    )


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_it_is_that_of_the_journal(run: Path) -> None:
    assert stored_summary(RunFolder(run)) is None
    assert end(run) == stored_summary(RunFolder(run)) == evaluate_run(run).summary


def test_a_run_that_went_on_has_none_until_it_ends_again(run: Path) -> None:
    end(run)
    write_run(run, [record(task(step=1), at(500, 500))])
    assert stored_summary(RunFolder(run)) is None
    end(run)
    found = stored_summary(RunFolder(run))
    assert found is not None and found.exact_match.count == 2


def test_rules_that_have_changed_since_leave_none(run: Path) -> None:
    end(run)
    protocol = {"name": "guievalkit", "fingerprint": "0123456789abcdef"}
    change(run / "metrics.json", protocol=protocol)
    assert stored_summary(RunFolder(run)) is None
    change(run / "manifest.json", protocol=protocol)
    assert stored_summary(RunFolder(run)) is None
    for file in ("metrics.json", "manifest.json"):
        change(run / file, protocol={"name": "of a plug-in that is gone", "fingerprint": "0123456789abcdef"})
    assert stored_summary(RunFolder(run)) is None


def test_a_damaged_file_or_one_of_an_earlier_version_leaves_none(run: Path) -> None:
    end(run)
    whole = json.loads((run / "metrics.json").read_text())
    earlier = [
        json.dumps({key: value for key, value in whole.items() if key != gone})
        for gone in ("journal_bytes", "summary", "protocol")
    ]
    for text in ("", "[1]", "[" * 100_000, '{"summary": {"exact_match": 1}}', "null", *earlier):
        (run / "metrics.json").write_text(text)
        assert stored_summary(RunFolder(run)) is None, text[:100]
