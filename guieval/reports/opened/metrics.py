"""The output of ``guieval score`` for one protocol as an object: tables, and every metric with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guieval.data.selection import Choice
from guieval.errors import UsageError, nearest
from guieval.metrics import Measured
from guieval.metrics.summary import State
from guieval.reports.console import Run, report_tables, warning_lines
from guieval.reports.score_tables import breakdown_table, sample_table
from guieval.reports.tables.table import Table
from guieval.reports.tables.terminal import as_text
from guieval.scoring.matrix import JudgedAnswers
from guieval.scoring.score import scored

_COLUMNS = {"metric": "string", "value": "Float64", "low": "Float64", "high": "Float64", "n": "Int64", "of": "string"}
_COLUMNS |= {"missing": "Int64", "unit": "string"}

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Metrics(Mapping[str, Measured]):
    """The metrics of one run under one protocol, by name: exact match over all steps first, then every other.

    ``tables`` are those that ``guieval score`` prints, ``steps`` describes the steps, ``state`` how far they came, and
    ``notes`` what a reader should know; those of them on the input are ``warnings``.
    """

    protocol: str
    steps: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = field(repr=False)
    tables: tuple[Table, ...] = field(repr=False)
    run: Run = field(repr=False)

    def __getitem__(self, name: str) -> Measured:
        """A metric by its name, e.g. ``metrics["exact match"]``; :class:`UsageError` with the nearest name."""
        known = self.run.summary.all_metrics
        if name not in known:
            raise UsageError(f"there is no metric {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        found: Measured = known[name]
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """The metric of that name, else ``default``."""
        return self.run.summary.all_metrics.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.run.summary.all_metrics)

    def __len__(self) -> int:
        return len(self.run.summary.all_metrics)

    def __contains__(self, name: object) -> bool:
        return name in self.run.summary.all_metrics

    @property
    def state(self) -> State:
        """How far the steps came."""
        state: State = self.run.summary.state
        return state

    def to_pandas(self) -> pd.DataFrame:
        """The metrics as a DataFrame with one row each; needs the extra ``pandas``."""
        rows = [{name: name_ if name == "metric" else getattr(each, name) for name in _COLUMNS} for name_, each in self.items()]
        return data_frame(rows, _COLUMNS, index="metric")

    def __str__(self) -> str:
        """The tables as text, as the command prints them to a file."""
        return as_text(self.tables) + "\n".join([*self.notes, f"data:     {self.steps}"])


def data_frame(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], index: str | None = None) -> pd.DataFrame:
    """A DataFrame with a column for each of ``types``; :class:`UsageError` without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("a DataFrame needs pandas: pip install 'guieval[pandas]'") from None
    columns = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in types.items()}
    frame = pd.DataFrame(columns)
    return frame if index is None else frame.set_index(index)


def score_metrics(answers: JudgedAnswers, choice: Choice | None = None, by: Sequence[str] = ()) -> Metrics:
    """The metrics of answers that one protocol judged; ``by`` adds breakdowns."""
    found = scored(answers, choice)
    lines = (found.served, found.steps_title, found.protocol, found.foreign, "with overlay" if found.overlays else "")
    run = Run("\n".join(filter(None, lines)), found.summary)
    columns = answers.columns(choice)
    tables = [*report_tables([run]), sample_table(columns, [found.protocol])]
    tables += [breakdown_table(columns, found.protocol, name) for name in by]
    notes = (*found.warnings, *warning_lines([run]), *(f"overlay: {line}" for line in found.overlays))
    return Metrics(found.protocol, found.steps, notes, found.warnings, tuple(filter(None, tables)), run)
