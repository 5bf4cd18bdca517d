"""The counts of a run in progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from guieval.engines import EndpointStats
from guieval.running.costs import Tokens
from guieval.steps import Record, Verdict

MOST_FAULTS = 3
"""Steps with the same fault of the adapter after which a run stops."""


@dataclass
class StageFailures:
    """How many steps failed at one stage, and the first one's message."""

    count: int
    example: str


@dataclass(frozen=True)
class Load:
    """The remaining work at one moment: episodes with a step that could start, episodes not begun, and how the servers fare.

    ``wait`` says which servers are waited for and for how long already, ``None`` when none are.
    """

    ready: int = 0
    waiting: int = 0
    endpoints: Sequence[EndpointStats] = ()
    wait: str | None = None


@dataclass
class RunProgress:
    """The progress of a run, given to the caller's ``on_progress`` after every step."""

    total: int
    done: int = 0
    unit: Literal["step", "task"] = "step"
    """The unit of ``total`` and ``done``: steps, or the tasks of an online run, whose steps are not known before."""
    measure: str = "exact match"
    """The name of the metric ``exact``."""
    exact: int = 0
    failures: int = 0
    in_a_row: int = 0
    resumed: int = 0
    by_stage: dict[str, StageFailures] = field(default_factory=dict)
    faults: dict[str, StageFailures] = field(default_factory=dict)
    """The faults of the adapter's code, by their place and type."""
    warnings: list[str] = field(default_factory=list)
    """Warnings that the user should see before the end: the answers are not what they seem."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    """How the done steps ended, those of earlier sessions too."""
    tokens: Tokens = field(default_factory=Tokens)
    """The tokens of every response so far, as soon as it was received; those of earlier sessions too."""
    in_flight: int = 0
    shrinks: bool = False
    """Whether ``total`` may still fall, because episodes end at their first mismatch."""
    last_failure: tuple[str, str] | None = None
    """Stage and message of the last step that failed."""
    halted: str | None = None
    """Why no further step is begun."""
    load: Callable[[], Load] = Load
    """Returns what is left now; may be called from another thread."""

    @property
    def units(self) -> str:
        """The plural of :attr:`unit`."""
        return f"{self.unit}s"

    @property
    def judged(self) -> int:
        """How many of the done steps or tasks ``exact`` is a share of: a task that failed is in no denominator."""
        return self.done if self.unit == "step" else self.done - self.verdicts["infrastructure_failure"]

    def ahead(self, samples: int) -> int:
        """About how many answers are still to come to what is in flight; a task needs as many as the done ones did."""
        if self.unit == "step" or not self.done:
            return self.in_flight * samples
        return self.in_flight * max(samples, round(self.tokens.answers / self.done))

    def count(self, record: Record) -> None:
        """Count one more record; the tokens are counted with the responses."""
        self.done += 1
        self.exact += record.exact
        self.verdicts[record.verdict] += 1
        if record.finished:
            self.in_a_row = 0
            return
        self.failures += 1
        error = next(sample.error for sample in record.samples if not sample.answered)
        self.in_a_row += error is not None and error.stage == "generate"
        if error is not None:
            self.last_failure = (error.stage, error.message)
            self.by_stage.setdefault(error.stage, StageFailures(0, error.message)).count += 1
            if error.stage == "adapter":
                self.faults.setdefault(": ".join(error.message.split(": ")[:2]), StageFailures(0, error.message)).count += 1

    def take_back(self, failed: Record) -> None:
        """Undo :meth:`count` for a step that failed and runs again."""
        self.done -= 1
        self.failures -= 1
        self.verdicts[failed.verdict] -= 1
        error = next(sample.error for sample in failed.samples if not sample.answered)
        if error is not None:
            failures = self.by_stage[error.stage]
            failures.count -= 1
            if not failures.count:
                del self.by_stage[error.stage]

    @property
    def fault(self) -> str | None:
        """The fault of the adapter that stops the run, because step after step, or task after task, has it."""
        most = max(self.faults.values(), key=lambda failures: failures.count, default=None)
        return f"{most.example}, at {most.count} {self.units}" if most is not None and most.count >= MOST_FAULTS else None
