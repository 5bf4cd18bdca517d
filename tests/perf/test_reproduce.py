"""docs/reproduce.md holds the rows of the papers' tables, with a command or a reason each."""

from __future__ import annotations

import re
import shlex
from functools import cache

import yaml

from guieval.reports.leaderboards.published_results import get_results
from perf.reproduce import PAGE, TABLES, page

LOOP = re.compile(r"for (\w) in ([^;]+); do (.*); done")
HEADING = "\n## Requirement by requirement\n"


@cache
def commands(text: str) -> list[str]:
    """The command lines in a part of the page, loops unrolled."""
    found: list[str] = []
    for line in re.findall(r"`((?:for |guieval |accelerate ).*?)`", text):
        if loop := LOOP.fullmatch(line):
            found += [each.replace(f"${loop[1]}", value) for value in loop[2].split() for each in loop[3].split("; ")]
        else:
            found.append(line)
    return list(dict.fromkeys(found))


def test_the_page_is_what_the_command_writes() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_requirement_has_a_command_or_a_reason() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page().partition(HEADING)[2], re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 200))
    for number, row in rows:
        *_, how, verdict = row.split(" | ")
        assert verdict == "works" or ": " in verdict, number
        assert commands(how) or "/" in how or "perf." in how or verdict != "works", number


def test_no_two_commands_write_the_same_folder() -> None:
    writers: dict[str, set[str]] = {}
    for command in commands(page().partition(HEADING)[0]):
        words = shlex.split(command)
        if "--out" in words:
            writers.setdefault(words[words.index("--out") + 1], set()).add(command)
        elif "train" in words and "plan" not in words:
            writers.setdefault(f"training/{words[words.index('--config') + 1]}", set()).add(command)
    assert len(writers) > 40
    assert {out: found for out, found in writers.items() if len(found) > 1} == {}


def test_every_evaluated_training_is_one_of_the_page() -> None:
    text = page()
    evaluated = set(re.findall(r"--set model_path=(training/[^/ ]+)/", text))
    trained = {f"training/{name}" for name in re.findall(r"guieval train \S+ --config (\S+)(?![^`]*--out)[^`]*`", text)}
    trained |= set(re.findall(r"guieval train [^`]*--out (\S+?)`", text))
    assert evaluated and evaluated <= trained


def test_every_expected_number_has_a_command_or_a_note() -> None:
    sections = [each for paper in yaml.safe_load(TABLES.read_text(encoding="utf-8")) for each in paper["sections"]]
    listed = [each for each in sections if any("columns" in run for run in each.get("runs", ()))]
    assert len(listed) == 5
    for section in listed:
        covered = {name for run in section["runs"] for name in run["columns"]}
        covered |= {name for names in section.get("columns", {}) for name in names.split()}
        assert {column.name for column in get_results(section["results"]).columns} <= covered


def test_a_training_of_32_processes_is_on_four_machines() -> None:
    launched = [command for command in commands(page()) if command.startswith("accelerate")]
    assert len(launched) > 3
    for command in launched:
        assert ("--num_machines 4" in command) == ("--num_processes 32" in command)
