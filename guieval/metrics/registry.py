"""Metrics of users: a function in a file or an installed package, free of any protocol, next to the built-in ones.

    @metric("mean click distance", unit=THOUSANDTHS, better="less")
    def click_distance(run, judged):
        return judged.distance            # (n,) one number a step; NaN: the step does not count

Packages name such a function, or a module of several, in the entry-point group ``guieval.metrics``; a file is given to
commands as ``--metrics-from FILE.py``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.evaluation.protocol import SHARED
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.intervals import Floats, Terms, pooled, quoted, spanning
from guieval.metrics.measured import SHARE, Better, Measured, mean_over_episodes

METRICS_GROUP = "guieval.metrics"
Compute: TypeAlias = Callable[[RunColumns, Judged], "Floats | NDArray[np.bool_] | tuple[Floats, Floats]"]
"""Returns (n,) values, one a planned step, NaN if it does not count; or (n,) numerators and denominators of a ratio of sums."""


@dataclass(frozen=True)
class UserMetric:
    """A metric of a user: the mean of ``compute`` over steps, in ``unit``; ``of`` says over which steps, in words."""

    name: str
    compute: Compute
    unit: str
    better: Better | None
    of: str
    of_episodes = False

    @property
    def meaning(self) -> str:
        """Its unit, and which way is better."""
        return f"in {self.unit}" + (f", {self.better} is better" if self.better else "")

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured:
        """Its value on these steps; :class:`UsageError` naming file and line if its function fails.

        The interval of a share reaches from that with all missing steps 0 to that with all of them 1; there is none if no
        step was measured.
        """
        own, *possible = self.possible(columns, judged)
        found = mean_over_episodes(own.numerator, own.denominator, share=self.unit == SHARE)
        interval, lost = found.interval, judged.unmeasured
        if not intervals or not judged.measured.any():
            interval = None
        elif possible:
            interval = spanning([*filter(None, [interval]), *(quoted(*each) for each in possible)])
        missing = int(lost.sum()) + columns.left_out
        return replace(found, interval=interval, of=self.of, missing=missing, unit=self.unit, better=self.better)

    def terms(self, columns: RunColumns, judged: Judged) -> Terms:
        """Its sums over episodes; raises as :meth:`measure`."""
        above, below = self._sums(columns, judged)
        return Terms(columns.per_episode(above), columns.per_episode(below), pooled)

    def possible(self, columns: RunColumns, judged: Judged) -> list[Terms]:
        """:meth:`terms`, and, of a share if steps are missing, those with all of them 0 and with all of them 1."""
        above, below = self._sums(columns, judged)
        ways, lost = [(above, below)], judged.unmeasured
        if self.unit == SHARE and lost.any():
            ways += [(np.where(lost, value, above), np.where(lost, 1.0, below)) for value in (0.0, 1.0)]
        return [Terms(columns.per_episode(each), columns.per_episode(every), pooled) for each, every in ways]

    def _sums(self, columns: RunColumns, judged: Judged) -> tuple[Floats, Floats]:
        """(n,) numerators and denominators of the steps; 0 in both for a step that does not count."""
        n = len(columns)
        try:
            values = self.compute(columns, judged)
            pair = values if isinstance(values, tuple) else (values, np.ones(n))
            above, below = (np.asarray(part, dtype=np.float64) for part in pair)
        except Exception as error:  # the user's function may raise anything
            last = extract_tb(error.__traceback__)[-1]
            raise UsageError(
                f"the metric {self.name!r} failed at {Path(last.filename).name}:{last.lineno}: {type(error).__name__}: {error}"
            ) from error
        if above.shape != (n,) or below.shape != (n,):
            raise UsageError(
                f"the metric {self.name!r} returned values of shape {above.shape}; expected one a step, so ({n:,},), NaN if a "
                "step does not count"
            )
        counted = np.isfinite(above) & np.isfinite(below) & judged.reached
        return np.where(counted, above, 0.0), np.where(counted, below, 0.0)


_METRICS: dict[str, UserMetric] = {}


def metric(name: str, *, unit: str = SHARE, better: Better | None = "more", of: str = "steps") -> Callable[[Compute], Compute]:
    """Register a function of a run and its judgements as the metric ``name``, which all commands then show.

    ``unit``: "share" of fractions in [0, 1], which are shown in per cent, else its name, e.g. "s" or "thousandths of the
    screen". ``better``: "more" or "less", or ``None`` if neither is better. ``of``: what it is a mean over, in words. Steps
    that the mode does not reach never count. Raises :class:`UsageError` for the name of a metric of every run.
    """
    if name in {metric.name for metric in SHARED} or not name.strip():
        raise UsageError(f"a metric of yours cannot be called {name!r}: every run has one of this name")

    def register(compute: Compute) -> Compute:
        _METRICS[name] = UserMetric(name, compute, unit, better, of)
        return compute

    return register


def use_metrics(files: Iterable[Path] | None) -> None:
    """Register the metrics of the user's files; :class:`UsageError` for one that cannot be imported or has none."""
    for file in files or ():
        _read(file)


def _read(file: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"guieval_metrics_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(f"{str(file)!r} is not a Python file; --metrics-from expects one with functions under @guieval.metric")
    before = dict(_METRICS)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # the user's file may raise anything
        raise UsageError(f"{str(file)!r} cannot be imported: {type(error).__name__}: {error}") from error
    if before == _METRICS:
        raise UsageError(f"{str(file)!r} has no metric: put @guieval.metric(NAME) above a function of a run and its judgements")


@cache
def _load_packages() -> None:
    for entry in entry_points(group=METRICS_GROUP):
        try:
            entry.load()
        except Exception as error:  # another package's code may raise anything; the message names it
            raise UsageError(
                f"the metrics {entry.name!r} ({entry.value}) cannot be imported: {type(error).__name__}: {error}"
            ) from error


def registered() -> Mapping[str, UserMetric]:
    """The metrics of installed packages and of files that were read, by name."""
    _load_packages()
    return _METRICS
