"""What a test of a fault says of itself: the rows of docs/reliability.md.

A test that is handed a :class:`Row` checks it: each piece of :attr:`Row.sees` in backticks must stand in the program's output.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Row:
    """One fault. ``server`` are settings of the mock server, ``options`` are the program's, ``code`` is its exit code."""

    fault: str
    does: str
    sees: str
    code: int = 0
    server: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def check_seen(self, output: str) -> None:
        """What the row says that the user sees is what the program printed."""
        shown = " ".join(output.split())
        for piece in re.findall("`(.+?)`", self.sees):
            assert piece in shown, f"{piece!r} was promised, but this was printed: {output}"
        assert "one sentence" not in self.sees or output.count("\n") == 1, output


def rows(*described: Row) -> Callable[[Test], Test]:
    """Run a test once for each row, and put the rows on the page; what they check is the test's docstring."""

    def mark(test: Test) -> Test:
        test.rows = described  # type: ignore[attr-defined]
        marked: Test = pytest.mark.parametrize("row", described, ids=lambda row: row.fault)(test)
        return marked

    return mark


def tables() -> dict[str, list[tuple[Row, str]]]:
    """By section (the first line of a test module), its rows, each with what is checked."""
    found: dict[str, list[tuple[Row, str]]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        for test in filter(callable, vars(module).values()):
            for row in getattr(test, "rows", ()):
                section = (module.__doc__ or "").split("\n")[0].rstrip(".")
                found.setdefault(section, []).append((row, " ".join((test.__doc__ or "").split())))
    return found
