"""One case over the rows of a table: every row is tried, and a failure lists all rows that failed, not only the first.

A table of sixty replies is one rule of one parser. As sixty cases it costs sixty set-ups in each worker, and hides which
rule broke.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

Rows = Iterable[Any] | Callable[[], Iterable[Any]]


def every_row(
    names: str | Sequence[str], rows: Rows, ids: Iterable[str] | Callable[[Any], str | None] | None = None
) -> Callable[..., Callable[..., None]]:
    """``pytest.mark.parametrize`` within one case; ``rows`` may be a function, which is called when the case runs.

    Each row has a ``tmp_path`` and a ``monkeypatch`` of its own, and what earlier rows printed is gone; all other fixtures are
    shared. Rows that are skipped skip the case after the others have been tried.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def case(*args: Any, **fixtures: Any) -> None:
            table = list(rows() if callable(rows) else rows)
            assert table, f"no rows for {names!r}"
            failed: list[tuple[str, BaseException]] = []
            skipped: list[str] = []
            for number, row in enumerate(table):
                values = row.values if hasattr(row, "marks") else (row,) if len(columns) == 1 else row
                try:
                    with _own(fixtures, number) as own:
                        function(*args, **own, **dict(zip(columns, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((_label(ids, number, row, values), error))
            if failed:
                listed = "\n\n".join(f"[{label}] {type(error).__name__}: {error}" for label, error in failed)
                raise AssertionError(f"{len(failed)} of {len(table)} rows failed:\n\n{listed}") from failed[0][1]
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(table)} rows: {skipped[0]}")

        signature = inspect.signature(function)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in columns]
        case.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest reads the fixtures there
        return case

    return decorate


@contextlib.contextmanager
def _own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """The fixtures of one row."""
    own = dict(fixtures)
    with contextlib.ExitStack() as undone:
        if "monkeypatch" in own:
            own["monkeypatch"] = undone.enter_context(own["monkeypatch"].context())
        if "tmp_path" in own:
            own["tmp_path"] = own["tmp_path"] / f"row{number}"
            own["tmp_path"].mkdir()
        if "capsys" in own:
            own["capsys"].readouterr()
        yield own


def _label(ids: Iterable[str] | Callable[[Any], str | None] | None, number: int, row: Any, values: Sequence[Any]) -> str:
    if getattr(row, "id", None) and hasattr(row, "marks"):
        return str(row.id)
    if ids is None or callable(ids):
        named = ids or (lambda value: None)
        return ", ".join(named(value) or repr(value)[:120] for value in values)
    return list(ids)[number]
