"""How a run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.data.selection import Selection
from guieval.engines import EndpointStats
from guieval.journal.run_files import RecordedOverlay
from guieval.metrics import AnyLedger, summary_of
from guieval.running.costs import Tokens
from guieval.running.progress.counts import RunProgress, StageFailures
from guieval.running.resolved import ResolvedRun
from guieval.steps import Plan


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended, and what failed in this session, by stage.

    ``interrupted``: the user stopped it. ``gave_up``: too many requests in a row were not answered. ``halted`` says why it
    began no further step, if it did not. ``tokens`` are those of every answer, ``endpoints`` the servers as
    they fared in this session, and ``foreign`` is the protocol's mark if its source does not evaluate such data.
    """

    directory: Path
    ledger: AnyLedger
    selection: Selection
    protocol: str
    interrupted: bool
    gave_up: bool
    failures: Mapping[str, StageFailures]
    overlay: RecordedOverlay | None = None
    warnings: tuple[str, ...] = ()
    halted: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    endpoints: Sequence[EndpointStats] = ()
    foreign: str = ""

    @classmethod
    def of(
        cls,
        run: ResolvedRun,
        directory: Path,
        ledger: AnyLedger,
        progress: RunProgress,
        *,
        interrupted: bool,
        gave_up: bool,
        endpoints: Sequence[EndpointStats],
    ) -> RunOutcome:
        """The outcome of a run that has come this far."""
        return cls(
            directory,
            ledger,
            run.selection,
            run.protocol.name,
            interrupted,
            gave_up,
            progress.by_stage,
            run.overlay,
            tuple(progress.warnings),
            progress.halted,
            progress.tokens,
            endpoints,
            run.protocol.foreign_mark(filter(None, [run.benchmark.dataset])),
        )

    @property
    def plan(self) -> Plan:
        """The steps that count of every episode."""
        return self.selection.plan

    def summary(self, *, intervals: bool = False, users: bool = False) -> Any:
        """The metrics of the run so far; see :func:`guieval.metrics.summarise`."""
        return summary_of(self.ledger.columns(), self.ledger.evaluators[0].protocol, intervals=intervals, users=users)
