"""The metrics of one run or file under one protocol, by name, as :func:`guieval.run` and :func:`guieval.open_run` give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guieval.errors import UsageError, nearest
from guieval.metrics.kinds import Summary
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.rounding import percentage
from guieval.metrics.summary import State

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = {"metric": "string", "value": "Float64", "low": "Float64", "high": "Float64", "n": "Int64", "of": "string"}
_COLUMNS |= {"missing": "Int64", "unit": "string"}


@dataclass(frozen=True, eq=False)
class Metrics(Mapping[str, Measured]):
    """The metrics of one run under one protocol, by name: exact match over all steps (of tasks: success rate) first.

    ``steps`` describes the steps, or tasks, ``notes`` are on the input, e.g. on damaged lines of a journal, and ``overlays``
    describe what else was accepted. ``summary`` also has the counts of verdicts and the breakdowns: a
    :class:`guieval.metrics.RunSummary`, or a :class:`guieval.metrics.TaskSummary`. ``label`` is the heading in tables.
    """

    protocol: str
    steps: str
    summary: Summary = field(repr=False)
    notes: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    label: str = field(default="", repr=False)

    def __getitem__(self, name: str) -> Measured:
        """A metric by its name, e.g. ``metrics["exact match"]``; :class:`UsageError` with the nearest name."""
        known = self.summary.all_metrics
        if name not in known:
            raise UsageError(f"there is no metric {name!r}{nearest(name, known)}; known: {', '.join(known)}")
        return known[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The metric of that name, else ``default``."""
        return self.summary.all_metrics.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.summary.all_metrics)

    def __len__(self) -> int:
        return len(self.summary.all_metrics)

    def __contains__(self, name: object) -> bool:
        return name in self.summary.all_metrics

    @property
    def state(self) -> State:
        """How far the steps came."""
        return self.summary.state

    def to_pandas(self) -> pd.DataFrame:
        """The metrics as a DataFrame with one row each; needs the extra ``pandas``."""
        rows = [{name: key if name == "metric" else getattr(each, name) for name in _COLUMNS} for key, each in self.items()]
        return data_frame(rows, _COLUMNS, index="metric")

    def __str__(self) -> str:
        """A line for each metric: its value, its 95 % interval, what it is over, and how many of these are missing."""
        width = max(map(len, self), default=0)
        lines = [f"{name:{width}}  {in_words(each)}" for name, each in self.items()]
        lines += [f"note: {note}" for note in (*self.notes, *(f"overlay {each}" for each in self.overlays))]
        return "\n".join([f"{self.protocol}, {self.state}: {self.steps}", *lines])


def in_words(each: Measured) -> str:
    """A metric with its spread, interval, n and missing steps."""
    if each.value is None:
        return "-"
    unit = "%" if each.unit == SHARE else each.unit
    numbers = [end for end in (each.value, each.low, each.high) if end is not None]
    ends = [percentage(end) if each.unit == SHARE else f"{end:,.6g}" for end in numbers]
    interval = f" [{', '.join(ends[1:])}]" if each.interval is not None else ""
    missing = f", {each.missing:,} missing" if each.missing else ""
    spread = "" if each.spread is None else f" sd {percentage(each.spread) if each.unit == SHARE else f'{each.spread:,.6g}'}"
    return f"{ends[0]} {unit}{spread}{interval} (n = {each.n:,} {each.of}{missing})"


def data_frame(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], index: str | None = None) -> pd.DataFrame:
    """A DataFrame with a column for each of ``types``; :class:`UsageError` without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("a DataFrame needs pandas: pip install 'guieval[pandas]'") from None
    columns = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in types.items()}
    frame = pd.DataFrame(columns)
    return frame if index is None else frame.set_index(index)
