"""What `guieval score` shows beside a run's report: figures with their intervals, several answers a step, and breakdowns.

Shares are in per cent. Intervals are over whole episodes (:mod:`guieval.metrics.intervals`), drawn with seed 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from guieval.evaluation import get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, FailurePolicy
from guieval.metrics.breakdown import breakdown, misses
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import compute, terms
from guieval.metrics.intervals import LEVEL, Interval, quoted
from guieval.metrics.sampling import Luck, sampled

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

ERROR = "error"
"""The breakdown of the misses by what went wrong."""
_NAMES = {"action-type": "action"}
"""What users call a breakdown, where it is called otherwise inside."""
_HEADLINES = (TYPE_MATCH, EXACT_MATCH, PROGRESS, SUCCESS_RATE)
_SAMPLED: tuple[Luck, ...] = get_args(Luck)


def interval_text(interval: Interval | None) -> str:
    """Both ends in per cent, or nothing."""
    return "" if interval is None else f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def interval_json(interval: Interval | None) -> dict[str, Any] | None:
    """All of it, its seed included."""
    return None if interval is None else asdict(interval)


def figure_table(columns: RunColumns, protocol: str) -> RenderableType:
    """The headline figures of every run, then those of the protocol's own that are not among them, with their intervals."""
    table = _table("figure", "value", f"{100 * LEVEL:.0f}% interval", "n", "method")
    own, judged = get_protocol(protocol), columns.judged[protocol]
    for figure in (*_HEADLINES, *(each for each in own.figures if each not in _HEADLINES)):
        policy = FailurePolicy() if figure in _HEADLINES else own.failure  # the former divide as every report here does
        value = compute(figure, policy, columns, judged)
        interval = quoted(*terms(figure, policy, columns, judged))
        method = "" if interval is None else interval.method
        table.add_row(figure.name, _percent(value.value), interval_text(interval), f"{value.n:,}", method)
    return _titled(f"Headline figures under {protocol}", table)


def sample_table(columns: RunColumns, protocols: Sequence[str]) -> RenderableType | None:
    """Figures of all answers to a step, one line a protocol; ``None`` where every step has one answer at most."""
    if int(columns.samples.max(initial=0)) < 2:
        return None
    found = {name: [sampled([columns], name, luck) for luck in _SAMPLED] for name in protocols}
    heads = [each.name for each in next(iter(found.values()))]
    table = _table("protocol", *heads, "n")
    for name, figures in found.items():
        table.add_row(
            name, *(f"{_percent(each.value)} {interval_text(each.interval)}" for each in figures), f"{figures[0].n:,}"
        )
    return _titled("All answers to a step (exact match is of the first alone)", table)


def sample_json(columns: RunColumns, protocol: str) -> list[dict[str, Any]]:
    """The same for one protocol as plain values."""
    several = int(columns.samples.max(initial=0)) > 1
    return [asdict(sampled([columns], protocol, luck)) for luck in _SAMPLED] if several else []


def breakdown_table(columns: RunColumns, protocol: str, by: str) -> RenderableType:
    """The steps apart by ``action-type``, ``length``, ``step``, ``ratio``, ``subset`` or a label, or the misses by ``error``.

    Raises :class:`guieval.errors.UsageError` for a name that the run cannot be broken down by.
    """
    interval = f"{100 * LEVEL:.0f}% interval"
    if by == ERROR:
        table = _table("error", "share", interval, "steps", "of")
        for each in misses(columns, protocol):
            table.add_row(each.kind, _percent(each.share), interval_text(each.interval), f"{each.n:,}", f"{each.of:,}")
        return _titled(f"What goes wrong under {protocol} (share of all steps)", table)
    table = _table(by, "type match", "exact match", interval, "n")
    for cell in breakdown(columns, protocol, _NAMES.get(by, by)):
        figures = (_percent(cell.type_match), _percent(cell.exact_match), interval_text(cell.interval))
        table.add_row(cell.labels[0], *figures, f"{cell.n:,}")
    return _titled(f"By {by} under {protocol}", table)


def cell_json(columns: RunColumns, protocol: str, by: str) -> list[dict[str, Any]]:
    """The same as plain values."""
    if by == ERROR:
        return [asdict(each) for each in misses(columns, protocol)]
    return [asdict(each) for each in breakdown(columns, protocol, _NAMES.get(by, by))]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}%"


def _table(*heads: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for position, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if position else "left")
    return table


def _titled(title: str, table: Table) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(Text(title, style="bold"), table)
