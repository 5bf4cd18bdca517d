"""``guieval.audit``: in which coordinate frame the points of runs really are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from guieval.given import AnyPath
from guieval.journal import RunFolder
from guieval.journal.run_folders import runs_over, several_runs
from guieval.models.frame_audit import FrameReport, audit_records
from guieval.scoring.recorded_run import recorded_model


@dataclass(frozen=True)
class Audit:
    """The audit of a run; ``report`` is ``None`` if no step has a click both as its reference and as its answer."""

    source: Path
    report: FrameReport | None

    @property
    def finding(self) -> str:
        """What was found, as a sentence."""
        if self.report is None:
            return "no step has both a click as its reference and a click as its answer"
        return self.report.sentence

    @property
    def better(self) -> str | None:
        """The frame that fits far better than the declared one, if there is one."""
        return None if self.report is None or self.report.better is None else self.report.better.name


def audit(source: AnyPath, *, adapter: AnyPath | None = None) -> tuple[Audit, ...]:
    """Test a model's points under every coordinate frame and axis order against the targets, as ``guieval dev audit`` does.

    ``source`` is a run or a folder of runs, ``adapter`` the family or file that reads their raw responses (default: the
    run's). Raises :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    found = runs_over("steps", several_runs([Path(source)]), "audit a run of the model with --mode offline")
    reader = None if adapter is None else str(adapter)
    runs = map(RunFolder, found)
    return tuple(Audit(run.directory, audit_records(recorded_model(run.manifest, reader), run.steps)) for run in runs)
