"""docs/models.md: the rows of its table are what the recorded replies give."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import REPOSITORY

from .replies import FAMILIES, agreement, screenshot_sizes
from .steps import adapter

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \|.*$", re.MULTILINE)


def test_the_rows_of_the_page_are_what_the_replies_give(shared_data: Path) -> None:
    written = {row.group(1, 2): row[0] for row in ROW.finditer(PAGE)}
    sizes = screenshot_sizes(shared_data)
    known = [family for family in FAMILIES if (family.adapter, family.file) in written]
    assert len(known) > 15
    for family in known:
        now = agreement(family, adapter(family.adapter, **family.options), shared_data, sizes)
        assert written[family.adapter, family.file] == now, "regenerate it: python -m perf.parsing --table"
