"""How a run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guieval.engines import EndpointStats
from guieval.metrics import AnyLedger, Summary, summary_of
from guieval.running.progress.counts import RunProgress
from guieval.running.resolved import ResolvedRun


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended; ``progress`` says what failed in this session, what it cost, and why it was halted, if it was.

    ``interrupted``: the user stopped it. ``gave_up``: too many requests in a row were not answered. ``endpoints`` are the
    servers as they fared in this session.
    """

    run: ResolvedRun
    directory: Path
    ledger: AnyLedger
    progress: RunProgress
    interrupted: bool
    gave_up: bool
    endpoints: Sequence[EndpointStats]

    def summary(self, *, intervals: bool = False, users: bool = False) -> Summary:
        """The metrics of the run so far; see :func:`guieval.metrics.summarise`."""
        return summary_of(self.ledger.columns(), self.ledger.evaluators[0].protocol, intervals=intervals, users=users)
