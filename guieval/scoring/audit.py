"""``guieval.audit``: in which coordinate frame the points of runs, or of a predictions file, really are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.errors import UsageError, refuse
from guieval.evaluation import ActionEvaluator
from guieval.journal import RunFolder
from guieval.journal.run_folders import over_steps, several_runs
from guieval.models.frame_audit import FrameReport, audit_answers, audit_records
from guieval.registry import reading_model
from guieval.scoring.matrix import answered_file
from guieval.scoring.recorded_run import recorded_model
from guieval.settings.given import AnyPath, one_path


@dataclass(frozen=True)
class Audit:
    """The audit of a run or file; ``report`` is ``None`` if no step has a click both as its reference and as its answer."""

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


def audit(
    source: AnyPath,
    *,
    adapter: AnyPath | None = None,
    bench: str | None = None,
    data: AnyPath | None = None,
    model: str | None = None,
    bench_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Audit, ...]:
    """Test a model's points under every coordinate frame and axis order against the targets, as ``guieval audit`` does.

    ``source`` is a run, a folder of runs, or a predictions file with raw responses. The other arguments are the options of the
    same names; ``bench_options`` are those of the benchmark's loader and ``options`` those of the adapter that reads raw
    responses, which the command has as ``--set``. Raises :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    file, reader_file = Path(source), None if adapter is None else str(adapter)
    if file.is_file():
        reader = reading_model(model, reader_file, options)
        if reader is None:
            raise UsageError("to audit the replies in a predictions file, name what reads them: add --model or --adapter")
        answered = answered_file(
            file, bench, one_path(data), model=reader, bench_options=dict(bench_options or {}), anyway=True
        )
        steps = answered.answers(ActionEvaluator(answered.protocol))
        return (Audit(file, audit_answers(reader, ((task, samples[0]) for task, samples in steps if samples))),)
    given = {"bench": bench, "data": data, "model": model, "set": bench_options or options or None}
    refuse(given, f"is for a file of predictions; the run {str(file)!r} says itself what it is of")
    runs = map(RunFolder, over_steps(several_runs([file]), "audit a run of the model with --mode offline"))
    return tuple(Audit(run.directory, audit_records(recorded_model(run.manifest, reader_file), run.steps)) for run in runs)
