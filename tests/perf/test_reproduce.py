"""docs/reproduce.md holds the rows of the papers' tables, with commands that the command line takes."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
import yaml

from guieval.cli import load
from guieval.data.sample_sets import list_sample_sets
from guieval.evaluation import list_protocols
from guieval.online.find import environments
from guieval.registry import list_benchmarks, list_models
from guieval.reports.leaderboards.published_results import get_results
from guieval.running.config import merge, settings_file
from guieval.training.config import KINDS, Kind, parse_config, read_config
from perf.reproduce import PAGE, TABLES, page
from tests.docs.world import command_of
from tests.rows import every_row

LOOP = re.compile(r"for (\w) in ([^;]+); do (.*); done")
KNOWN = {
    "model": cache(list_models),
    "bench": cache(lambda: [*list_benchmarks(), *environments()]),
    "protocol": cache(list_protocols),
    "sample_set": cache(list_sample_sets),
}
HEADING = "\n## Requirement by requirement\n"
command_named = cache(load)
"""Made once for all command lines: Typer needs longer to make a command than to read its options."""


@cache
def commands() -> list[str]:
    """The command lines of the page, loops unrolled."""
    found: list[str] = []
    for line in re.findall(r"`((?:for |guieval |accelerate ).*?)`", page().partition(HEADING)[0]):
        if loop := LOOP.fullmatch(line):
            found += [loop[3].replace(f"${loop[1]}", value) for value in loop[2].split()]
        elif "--" in line:  # else the name of a command in the text
            found.append(line)
    return list(dict.fromkeys(found))


def checked(command: str) -> None:
    """Raise for what the command line would refuse before it reads data or weights."""
    words = shlex.split(command.partition("-m ")[2] if command.startswith("accelerate") else command)
    name, arguments = command_of(words)
    context = command_named(name).make_context(name, [*arguments])
    given: dict[str, Any] = context.params
    for option, names in KNOWN.items():
        if isinstance(given.get(option), str):
            assert given[option] in names(), f"{option} {given[option]!r}: {command}"
    kind: dict[str, Kind | None] = {"train plan": None, **{f"train {each}": each for each in KINDS}}
    if name in kind:
        file = settings_file(given["config"], "training", "training")
        config = read_config(file, given["override"] or (), kind=kind[name], data=given["data"])
        assert config.open_adapter() and parse_config(config.model_dump(exclude_unset=True))
    elif name == "run" and given.get("bench"):
        merge(None, given.get("override") or (), {"model": given["model"], "bench": given["bench"], "engine": given["engine"]})


def test_the_page_is_what_the_command_writes() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")


@every_row("command", commands)
def test_every_command_is_taken_by_the_command_line(command: str) -> None:
    checked(command)


def test_every_requirement_has_a_command_that_is_taken_or_a_reason() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page().partition(HEADING)[2], re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 200))
    for number, row in rows:
        *_, how, verdict = row.split(" | ")
        assert verdict == "works" or ": " in verdict, number
        commands = re.findall(r"`(guieval .*?)`", how)
        assert commands or "/" in how or "perf." in how or verdict != "works", number
        for command in commands:
            checked(command)


def test_no_two_commands_write_the_same_folder() -> None:
    writers: dict[str, set[str]] = {}
    for command in commands():
        words = shlex.split(command)
        if "--out" in words:
            writers.setdefault(words[words.index("--out") + 1], set()).add(command)
        elif "train" in words:
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
    launched = [command for command in commands() if command.startswith("accelerate")]
    assert len(launched) > 3
    for command in launched:
        assert ("--num_machines 4" in command) == ("--num_processes 32" in command)


def test_a_wrong_command_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        checked("guieval run --modle x")
    with pytest.raises(Exception, match="unknown setting"):
        checked("accelerate launch -m guieval train semi-online --config ui-s1 --set rolout.budget=1")
    with pytest.raises(AssertionError, match="model 'ui-s2-7b'"):
        checked("guieval run --model ui-s2-7b --bench androidcontrol")


def test_no_row_of_the_published_tables_is_missing() -> None:
    text = page()
    sections = [each for paper in yaml.safe_load(TABLES.read_text(encoding="utf-8")) for each in paper["sections"]]
    for table in (get_results(each["results"]) for each in sections if "results" in each):
        assert all(f"| {row.title} |" in text for row in table.rows)
