"""``guieval benchmarks NAME`` prints plain text, and the options that can be set."""

from __future__ import annotations

import re

from guieval.online.find import environments
from guieval.registry import list_benchmarks
from tests.command_line import CommandLine
from tests.rows import every_row


@every_row("name", [*list_benchmarks(), *(name for name in environments() if name not in list_benchmarks())])
def test_no_marks_of_docstrings_are_printed(guieval: CommandLine, name: str) -> None:
    shown = guieval("benchmarks", name).out
    assert shown.startswith(f"{name}: ") and not re.search(r"``|:[a-z]+:`", shown)


def test_what_has_an_option_of_its_own_is_not_listed_among_those_for_set(guieval: CommandLine) -> None:
    shown = guieval("benchmarks", "miniwob").out
    assert "options:  max_steps=20, scale=3, text=False\n" in shown and "allow_network" not in shown
    assert "with --allow-network other hosts too" in shown
    assert "network" not in guieval("benchmarks", "androidworld").out
