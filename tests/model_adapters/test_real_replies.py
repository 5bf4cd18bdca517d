"""Replies that real models gave, read by their family's adapter and compared with what the source says they mean."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from guieval.conformance.adapters import SETTINGS
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.registry import list_adapters
from tests.conftest import REPOSITORY
from tests.rows import every_row

from .replies import EXPLAINED, FAMILIES, OTHERS, Family, agreement, readings, rows, screenshot_sizes
from .steps import adapter, step

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = {row.group(1, 2): row[0] for row in re.finditer(r"^\| `(\w+)` \| `(\w+)` \|.*$", PAGE, re.MULTILINE)}
"""The rows of the page's table, by adapter and file."""


@pytest.fixture(scope="module")
def sizes(shared_data: Path) -> dict[str, Size]:
    return screenshot_sizes(shared_data)


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_every_reply_is_read_or_refused(family: Family, shared_data: Path, sizes: dict[str, Size]) -> None:
    """Whatever a model wrote: an action or a reason, and what its source read too; every kind of difference is explained."""
    model = adapter(family.adapter, **family.options)
    found = list(readings(family, model, shared_data, sizes))
    assert found
    assert all((reading.action is None) == bool(reading.reason) for reading in found)
    compared = [reading for reading in found if reading.difference is not None]
    differences = Counter(reading.difference for reading in compared if reading.difference)
    assert differences.keys() == EXPLAINED.get(family.title, {}).keys(), "each difference is explained, and each is needed"
    assert len(compared) - differences.total() >= family.agreement * len(compared)
    now = agreement(family, model, shared_data, sizes)
    assert ROWS[family.adapter, family.file] == now, "docs/models.md: regenerate it: python -m perf.parsing --table"


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.ci)])
def test_no_recorded_reply_of_any_family_breaks_another(every: int, shared_data: Path) -> None:
    """All 3,110 rows, most of them in a foreign format: an action, or one reason in words, and nothing else raised."""
    texts = [
        row.text for file in sorted({family.file for family in FAMILIES} | OTHERS.keys()) for row in rows(shared_data, file)
    ]
    assert len(texts) == 3110
    for name in list_adapters():
        model = adapter(name)
        for task in [step(setting=setting) for setting in SETTINGS]:
            for text in texts[::every]:
                try:
                    model.parse_response(task, text)
                except ParseError as error:
                    assert str(error).strip() and "\n" not in str(error), name


def test_the_table_names_every_file_and_nothing_else_is_explained(shared_data: Path) -> None:
    files = {path.stem for path in (shared_data / "model_outputs").glob("*.jsonl")}
    assert files == {family.file for family in FAMILIES} | OTHERS.keys()
    assert EXPLAINED.keys() <= {family.title for family in FAMILIES}
