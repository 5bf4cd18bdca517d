"""docs/protocols.md is what its command writes, and a stored summary is used only while its journal gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.evaluation import ClickRule, FailurePolicy, StepRules, TextRule, get_protocol, list_protocols
from guieval.exchange.importing import import_predictions
from guieval.journal import RunFolder
from guieval.reports import protocol_page as page
from guieval.scoring.matrix import ALL, judge_run
from guieval.scoring.score import evaluate_run, stored_summary
from tests.conftest import REPOSITORY
from tests.json_values import read_json
from tests.reports.viewer.made_run import at, end, failed, record, task, write_run
from tests.rows import every_row

PAGE = (REPOSITORY / "docs" / "protocols.md").read_text(encoding="utf-8")
KAIROS = "Kairos_test_inputscore.json.gz"


def test_the_rules_are_what_the_command_writes() -> None:
    written = page.protocol_page([get_protocol(name) for name in list_protocols()])
    generated, mark, _ = PAGE.partition(page.END)
    assert mark and generated + mark + "\n" == written, "write it again: guieval protocols --markdown --run RUN"


def test_the_measured_part_is_what_the_answers_give(shared_data: Path, tmp_path: Path) -> None:
    run = import_predictions(shared_data / "kairos_test" / KAIROS, tmp_path / "kairos").directory
    written = page.measured_part(judge_run(run, [ALL]), f"guieval score {run.name} --protocol all")
    measured, mark, _ = PAGE.partition(page.END)[2].partition(page.MEASURED_END)
    assert mark and measured.strip() + "\n\n" + mark + "\n" == written, "write it again: guieval protocols --markdown"


def test_the_measured_part_states_what_is_assumed_and_how_far_protocols_are_apart() -> None:
    measured = PAGE.partition(page.END)[2]
    parts = ("1080 x 2400", "neither targets nor elements", "content's direction", "599 steps of os-kairos", "points apart")
    for text in parts:
        assert text in measured
    assert measured.count("\n| [") == len([line for line in measured.splitlines() if line.endswith("| 0 | 0 | 0 |")]) > 20


@every_row(
    ("rule", "words"),
    [
        (ClickRule("nothing", fallback=0.14), "0.14"),
        (ClickRule("targets"), "any of the targets"),
        (ClickRule("elements", "nearest", enlarge=1.2, fallback=0.04), "5 elements nearest to the reference x1.2, else 0.04"),
        (ClickRule("nothing", fallback=151.2, measure="canvas", fallback_strict=True), "less than 151.2 px of 1080 x 2400"),
        (ClickRule("targets", strict=True), "any of the targets, border left out"),
    ],
)
def test_click_rules_in_few_words(rule: ClickRule, words: str) -> None:
    assert page.click_in_short(StepRules(click=rule)) == words


def test_texts_and_failures_in_few_words() -> None:
    rules = StepRules(ClickRule("targets"), text=TextRule("equal-or-token-f1", threshold=0.5, above=True))
    assert page.text_in_short(rules) == "equal or token F1 above 0.5"
    assert page.failure_in_short(FailurePolicy()) == "wrong"
    failure = FailurePolicy(unparseable="left-out", missing="episode-left-out")
    assert page.failure_in_short(failure) == "no action: left out; no answer: left out, its episode too"


def test_every_protocol_has_its_line_and_its_section_with_everything_it_states() -> None:
    for name in list_protocols():
        assert f"| [{name}](#{name}) |" in PAGE and f"\n## {name}\n" in PAGE
        section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0].replace("\\", "")
        message = get_protocol(name)
        stated = (*message.notes, *(each.describe() for each in message.metrics), *message.failure.describe().split("; "))
        for text in stated:
            assert f"- {text}\n" in section, (name, text)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(
        tmp_path / "run", [record(task(step=0), at(500, 500)), failed(task(step=1)), record(task(step=2), at(0, 0))]
    )


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**read_json(path.read_text()), **values}))


def test_it_is_that_of_the_journal(run: Path) -> None:
    assert stored_summary(RunFolder(run)) is None
    assert end(run) == stored_summary(RunFolder(run)) == evaluate_run(run).summary


def test_a_run_that_went_on_has_none_until_it_ends_again(run: Path) -> None:
    end(run)
    write_run(run, [record(task(step=1), at(500, 500))])
    assert stored_summary(RunFolder(run)) is None
    end(run)
    found = stored_summary(RunFolder(run))
    assert found is not None and found.metrics["exact match"].count == 2


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
    whole = read_json((run / "metrics.json").read_text())
    earlier = [
        json.dumps({key: value for key, value in whole.items() if key != gone})
        for gone in ("journal_bytes", "summary", "protocol")
    ]
    for text in ("", "[1]", "[" * 100_000, '{"summary": {"exact_match": 1}}', "null", *earlier):
        (run / "metrics.json").write_text(text)
        assert stored_summary(RunFolder(run)) is None, text[:100]
