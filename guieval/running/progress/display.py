"""Where a user sees how runs go: nowhere, in the log with a progress bar (:func:`guieval.run`), or on the command line."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from guieval.metrics.rounding import percentage
from guieval.running.costs import Tokens
from guieval.running.progress.counts import RunProgress

Cost = Callable[[Tokens], str | None]
"""Says what tokens cost, if there is a price."""
Waited = Callable[[float, str], None]
"""Called while a server starts, with the seconds since and the last line of its log."""


class RunDisplay:
    """Shows nothing of one run."""

    def update(self, progress: RunProgress) -> None:
        """Show the run's progress; new warnings at once."""

    def warn(self, text: str) -> None:
        """Show a warning while there is time to stop the run."""


class Display:
    """Shows nothing."""

    def following(self, title: str, cost: Cost) -> AbstractContextManager[RunDisplay]:
        """The display of a run in progress; ``cost`` writes the cost of its tokens."""
        return nullcontext(RunDisplay())

    @contextmanager
    def starting(self, title: str) -> Iterator[Waited]:
        yield lambda seconds, line: None

    def note(self, text: str) -> None:
        """Show a remark."""


class LogDisplay(Display):
    """Writes warnings to the logger ``guieval``; with ``bar``, a progress bar shows a run's progress."""

    def __init__(self, *, bar: bool) -> None:
        self._bar = bar
        self._log = logging.getLogger("guieval")

    def following(self, title: str, cost: Cost) -> AbstractContextManager[RunDisplay]:
        return _Followed(self._log, title, bar=self._bar)

    @contextmanager
    def starting(self, title: str) -> Iterator[Waited]:
        self._log.info("%s is starting", title)
        yield lambda seconds, line: self._log.debug("%s is starting, %.0f s: %s", title, seconds, line)

    def note(self, text: str) -> None:
        self._log.info(text)


class _Followed(RunDisplay):
    def __init__(self, log: logging.Logger, title: str, *, bar: bool) -> None:
        self._log = log
        self._title = title
        self._warned = 0
        self._bar = _tqdm()(desc=title, unit="step", disable=not bar)

    def __enter__(self) -> _Followed:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def update(self, progress: RunProgress) -> None:
        for warning in progress.warnings[self._warned :]:
            self.warn(warning)
        self._warned = len(progress.warnings)
        self._bar.total = progress.total
        self._bar.unit = progress.unit
        if not self._bar.n:
            self._bar.initial = progress.resumed  # so that the rate is this session's
        if progress.judged:
            share = percentage(progress.exact / progress.judged, ".1f")
            self._bar.set_postfix_str(f"{progress.measure} {share} %", refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def warn(self, text: str) -> None:
        self._log.warning("%s: %s", self._title, text)


def _tqdm() -> Any:
    """A notebook's own bar if ipywidgets is installed, else one of text: without it ``tqdm.auto`` would print a warning."""
    if find_spec("ipywidgets") is None:
        from tqdm import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm


def shows_bars() -> bool:
    """Whether a progress bar can be seen: in a notebook, or on a terminal."""
    shell = sys.modules.get("IPython")
    return sys.stderr.isatty() or (shell is not None and hasattr(shell.get_ipython(), "kernel"))
