"""The output of ``guieval score`` for one protocol as an object: tables, and every figure with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.data.display.notebook import escaped
from guieval.data.selection import Choice
from guieval.errors import UsageError, nearest
from guieval.metrics.intervals import Interval
from guieval.reports.console import Run, intervals, report_tables, run_table, warning_lines
from guieval.reports.score_tables import breakdown_table, figure_table, own_figures, sample_table
from guieval.reports.tables.table import Number, Table, text
from guieval.reports.tables.terminal import as_text
from guieval.reports.tables.writers import html
from guieval.scoring.matrix import JudgedAnswers
from guieval.scoring.score import Scored

if TYPE_CHECKING:
    import pandas as pd


class FigureRow(NamedTuple):
    """A figure: a fraction, or for diagnostics a number, with the ends of its 95 % interval and its denominator."""

    figure: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None


@dataclass(frozen=True)
class Figures:
    """The figures of one run under one protocol.

    ``tables`` are those that ``guieval score`` prints, ``rows`` the single figures, ``steps`` describes their steps, and
    ``notes`` what a reader should know.
    """

    protocol: str
    steps: str
    notes: tuple[str, ...]
    rows: tuple[FigureRow, ...] = field(repr=False)
    tables: tuple[Table, ...] = field(repr=False)
    run: Run = field(repr=False)

    def __getitem__(self, name: str) -> FigureRow:
        """A figure by its name, e.g. ``figures["exact match"]``; :class:`UsageError` with the nearest name."""
        for row in self.rows:
            if row.figure == name:
                return row
        raise UsageError(f"there is no figure {name!r}{nearest(name, [row.figure for row in self.rows])}")

    def to_pandas(self) -> pd.DataFrame:
        """The figures as a DataFrame with one row each; needs the extra ``pandas``."""
        types = {"figure": "string", "value": "Float64", "low": "Float64", "high": "Float64", "n": "Int64"}
        return data_frame([row._asdict() for row in self.rows], types, index="figure")

    def __str__(self) -> str:
        """The tables as text, as the command prints them to a file."""
        return as_text(self.tables) + "\n".join([*self.notes, f"data:     {self.steps}"])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escaped(note)}</p>" for note in (*self.notes, f"Steps: {self.steps}"))
        return f"<div>{''.join(map(html, self.tables))}{notes}</div>"


def data_frame(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], index: str | None = None) -> pd.DataFrame:
    """A DataFrame with a column for each of ``types``; :class:`UsageError` without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("a DataFrame needs pandas: pip install 'guieval[pandas]'") from None
    columns = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in types.items()}
    frame = pd.DataFrame(columns)
    return frame if index is None else frame.set_index(index)


def score_figures(answers: JudgedAnswers, scored: Scored, choice: Choice | None = None, by: Sequence[str] = ()) -> Figures:
    """The figures of answers that were judged and scored under one protocol; ``by`` adds breakdowns."""
    columns, protocol = answers.columns(choice), scored.protocol
    own = own_figures(columns, protocol)
    lines = (scored.served, scored.steps_title, protocol, scored.foreign, "with overlay" if scored.overlays else "")
    run = Run("\n".join(filter(None, lines)), scored.summary, intervals(columns, protocol))
    tables = [*report_tables([run]), figure_table(columns, protocol, own), sample_table(columns, [protocol])]
    tables += [breakdown_table(columns, protocol, name) for name in by]
    rows = list(_headlines(run_table([run])))
    for figure, value, interval in own:
        rows.append(_row(figure.name, value.value, interval, value.n))
    notes = (*scored.warnings, *warning_lines([run]), *(f"overlay: {line}" for line in scored.overlays))
    return Figures(protocol, scored.steps, notes, tuple(rows), tuple(filter(None, tables)), run)


def _headlines(table: Table) -> Iterator[FigureRow]:
    """The rows of the table of headline figures; those of a section with a heading begin with it."""
    heading = ""
    for name, cell in table.filled:
        indented = text(name).startswith(" ")
        label = f"{heading}: {text(name).strip()}" if indented else text(name)
        if isinstance(cell, Number):
            yield _row(label, cell.value, cell.interval, cell.n)
        elif isinstance(cell, int):
            yield _row(label, cell)
        else:
            heading = label


def _row(name: str, value: float | None, interval: Interval | None = None, n: int | None = None) -> FigureRow:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return FigureRow(name, value, low, high, n)
