"""What a kind of picture is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
