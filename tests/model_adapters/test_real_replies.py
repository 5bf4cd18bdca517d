"""Replies that real models gave, read by their family's adapter and compared with what the source says they mean."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from guieval.conformance.adapters import SETTINGS
from guieval.conformance.published import published_groups
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.registry import adapter_class, list_adapters
from tests.conftest import REPOSITORY
from tests.rows import every_row

from . import makers
from .replies import EXPLAINED, FAMILIES, OTHERS, Family, agreement, readings, rows, screenshot_sizes
from .steps import adapter, step

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = {row.group(1, 2): row[0] for row in re.finditer(r"^\| `(\w+)` \| `(\w+)` \|.*$", PAGE, re.MULTILINE)}
"""The rows of the page's table, by adapter and file."""
READERS = {"vllm-project/vllm": "vLLM", "trycua/cua": "cua", "likaixin2000/ScreenSpot-Pro-GUI-Grounding": "ScreenSpot-Pro"}
"""Repositories of readers that are not the makers' own, and what lists call them."""


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


def test_what_lists_say_of_a_family_is_what_was_tested() -> None:
    """Its reader is the one of the table of damaged responses, and the recorded responses are as many as are read."""
    wrong = []
    for name in list_adapters():
        family, model = adapter_class(name).family, adapter(name)
        count = sum(int(ROWS[name, each.file].split("|")[3]) for each in FAMILIES if each.adapter == name)
        count += sum(len(group.rows) for group in published_groups(model) if group.recorded)
        tables = [each for each in makers.FAMILIES if each.adapter == name]
        reader = READERS.get(makers.table_of(tables[0])[0].repository, "makers") if tables else ""
        only_points = model.action_space.types == {"CLICK"}
        if (
            family is None
            or (family.reader, family.recorded) != (reader, count)
            or only_points != (family.tasks == ("grounding",))
        ):
            wrong.append((name, family, reader, count))
    assert not wrong


def test_the_table_names_every_file_and_nothing_else_is_explained(shared_data: Path) -> None:
    files = {path.stem for path in (shared_data / "model_outputs").glob("*.jsonl")}
    assert files == {family.file for family in FAMILIES} | OTHERS.keys()
    assert EXPLAINED.keys() <= {family.title for family in FAMILIES}
