"""docs/reliability.md is what its command writes."""

from __future__ import annotations

from tests.faults.page import PAGE, page
from tests.faults.rows import tables


def test_the_page_is_what_the_command_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: python -m tests.faults.page"


def test_every_row_states_everything_once() -> None:
    described = [pair for section in tables().values() for pair in section]
    assert len({row.fault for row, _ in described}) == len(described) > 20
    assert all(row.does and row.sees and checked for row, checked in described)
