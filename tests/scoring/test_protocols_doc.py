"""docs/protocols.md is what `guieval protocols --markdown --run RUN` writes, up to its marks."""

from __future__ import annotations

from pathlib import Path

from guieval.evaluation import ClickRule, FailurePolicy, StepRules, TextRule, get_protocol, list_protocols
from guieval.exchange.importing import import_predictions
from guieval.reports import protocol_page as page
from guieval.scoring.matrix import ALL, judge_run
from tests.conftest import REPOSITORY
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
