"""What a kind of picture is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.errors import UsageError
from guieval.reports.plots.paper import Width
from guieval.scoring.matrix import ALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from guieval.metrics.columns import RunColumns


class Drawn(NamedTuple):
    """A picture, what it shows in words for its caption, and the numbers it was drawn from."""

    figure: Figure
    shows: str
    numbers: Any


class PlotOptions(NamedTuple):
    """The arguments and options of ``guieval plot``; an option that was not given is ``None`` or empty."""

    kind: str
    runs: Sequence[Path] = ()
    width: Width = "column"
    protocol: Sequence[str] = ()
    label: Sequence[str] | None = None
    by: str | None = None
    metric: str | None = None
    table: Sequence[str] = ()
    x: Sequence[str] = ()
    y: Sequence[str] = ()
    degree: int | None = None
    cost: bool | None = None
    prices: Path | None = None
    sample_set: str | None = None
    subset: Sequence[str] = ()
    task: str | None = None
    pool: bool = False
    kappa: Sequence[float] = ()
    gap: Sequence[float] = ()


class PlotKind(NamedTuple):
    """A kind of picture: what it shows, what it is drawn of (empty: no directories), the options it takes, and how."""

    what: str
    of: str
    takes: str
    draw: Callable[[PlotOptions], Drawn]

    def check(self, given: PlotOptions, kinds: Mapping[str, PlotKind]) -> None:
        """Raise :class:`UsageError` for an option that is for other kinds, and for directories missing or not needed."""
        for option, value in given._asdict().items():
            fitting = [name for name, kind in kinds.items() if option in kind.takes.split()]
            if value and fitting and given.kind not in fitting:
                raise UsageError(f"--{option.replace('_', '-')} is for {', '.join(fitting)}, not for {given.kind}")
        if given.kind in ONE_PROTOCOL and (len(given.protocol) > 1 or ALL in given.protocol):
            raise UsageError(f"{given.kind} is drawn under one protocol; matrix shows several")
        if self.of and not given.runs:
            raise UsageError(f"{given.kind} is drawn of {self.of}")
        if given.runs and not self.of:
            raise UsageError(f"{given.kind} is drawn without runs, and {str(given.runs[0])!r} was given")


def check_labels(labels: Sequence[str] | None, count: int, what: str = "runs") -> None:
    """Raise :class:`UsageError` unless there is a label for each of ``count`` runs, or none at all."""
    if labels is not None and len(labels) != count:
        raise UsageError(f"there are {count} {what} and {len(labels)} --label; give one for each, in order")


def apart(labels: Sequence[str], places: Sequence[Path]) -> list[str]:
    """Unique labels: the run's directory is added to duplicates; :class:`UsageError` if that does not tell them apart."""
    titles = [
        f"{label} ({place.name})" if labels.count(label) > 1 else label for label, place in zip(labels, places, strict=True)
    ]
    if twice := next((label for label in titles if titles.count(label) > 1), None):
        raise UsageError(f"two runs would be called {twice!r}; give each its own --label")
    return titles


def titles_of(columns: Sequence[RunColumns]) -> list[str]:
    """A label from those of model, benchmark and mode that differ between runs; the model if none differs."""
    named = [(run.model, run.benchmark, run.mode) for run in columns]
    telling = [place for place in range(3) if len({each[place] for each in named}) > 1] or [0]
    return [", ".join(each[place] for place in telling) for each in named]


RUNS = "runs: name at least one run directory"
"""What most kinds of picture are drawn of."""
ONE_PROTOCOL = ("actions", "bars", "horizon", "pareto", "samples")
"""Kinds that are drawn of runs under one protocol."""
