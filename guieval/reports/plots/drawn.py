"""What a kind of picture is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.errors import UsageError
from guieval.reports.plots.paper import Width

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        if self.of and not given.runs:
            raise UsageError(f"{given.kind} is drawn of {self.of}")
        if given.runs and not self.of:
            raise UsageError(f"{given.kind} is drawn without runs, and {str(given.runs[0])!r} was given")


RUNS = "runs: name at least one run directory"
"""What most kinds of picture are drawn of."""
