"""Running one reading function of a file in a repository, at a commit, without what the file imports."""

from __future__ import annotations

import pytest

from perf.makers import READERS, lines, method, run
from tests.model_adapters.makers import FAMILIES, Family, table_of
from tests.rows import every_row

FILE = """
import heavy_framework
LIMIT = 3
def cut(text): return text[:LIMIT]
class Agent(heavy_framework.Agent):
    def read(self, text: heavy_framework.Text): return cut(text)
    def step(self, text):
        try:
            answer = text.split("<a>")[1]
            action = answer.strip()
        except IndexError:
            action = None
"""


def test_only_what_is_named_is_run() -> None:
    code = run(FILE, ["LIMIT", "cut", "Agent"])
    assert code["Agent"]().read("abcdef") == "abc"
    assert method(FILE, "Agent", "step")(None, "<a> x") is None
    assert len(lines(FILE, "answer =", "action =")) == 2
    with pytest.raises(LookupError, match="lacks gone"):
        run(FILE, ["cut", "gone"])
    with pytest.raises(LookupError, match="no statement 'gone ='"):
        lines(FILE, "gone =")


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_a_table_names_the_reader_that_made_it(family: Family) -> None:
    header, reader = table_of(family)[0], READERS[family.title]
    assert tuple(header) == reader[:4]
