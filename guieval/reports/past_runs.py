"""Past runs as a list: the settings, headline figures and state of each run below a folder.

The headline figures are those of ``guieval score``, computed from the journal in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from guieval.errors import GuievalError
from guieval.evaluation.protocol import EXACT_MATCH, SUCCESS_RATE, FailurePolicy, Figure
from guieval.history.modes import ONLINE
from guieval.journal import (
    EPISODES,
    LOCK,
    MANIFEST,
    METRICS,
    PACKED_STEPS,
    STEPS,
    SWEEP,
    Records,
    is_held,
    read_manifest,
    read_planned,
)
from guieval.journal.caveats import model_label
from guieval.journal.run_files import Manifest
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.figures import compute_with_interval
from guieval.online.figures import online_figures
from guieval.reports.online_tables import success
from guieval.reports.tables.table import Number, per_cent
from guieval.scoring.matrix import judge_run

State: TypeAlias = Literal["running", "finished", "stopped", "never answered", "broken"]
_OF_A_RUN = frozenset({EPISODES, LOCK, METRICS, STEPS, PACKED_STEPS})


@dataclass(frozen=True)
class PastRun:
    """One run directory. ``name`` is its path below the folder that was searched; ``problem`` is the reason why it is broken.

    ``exact_match`` and ``success_rate`` are over all planned steps and episodes; ``None`` if no step was answered. An online
    run has no exact match, and its success rate is over the judged tasks.
    """

    name: str
    directory: Path
    state: State
    created: datetime
    model: str | None = None
    benchmark: str | None = None
    mode: str | None = None
    protocol: str | None = None
    exact_match: Number | None = None
    success_rate: Number | None = None
    problem: str | None = None


def past_runs(folder: Path) -> list[PastRun]:
    """Every run below a folder, or in it, the newest first, without the runs of a sweep, which has its own figures."""
    return sorted(
        (_read(folder, each) for each in run_directories(folder)), key=lambda run: (run.created, run.name), reverse=True
    )


def run_directories(folder: Path) -> Iterator[Path]:
    """The directories of these runs."""
    for place, below, files in os.walk(folder):
        if SWEEP in files:
            below.clear()
        elif MANIFEST in files and not _OF_A_RUN.isdisjoint(files):
            below.clear()  # parts of the run, e.g. of its workers
            yield Path(place)


def _read(folder: Path, directory: Path) -> PastRun:
    name = directory.relative_to(folder).as_posix()
    name = directory.name if name == "." else name
    changed = datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    try:
        manifest = read_manifest(directory)
        columns = judge_run(directory).columns()
    except GuievalError as error:
        return PastRun(name, directory, "broken", changed, problem=str(error))
    protocol = manifest.protocol.name
    judged = columns.judged[protocol]
    online = manifest.recorded_mode.name == ONLINE
    state: State = "finished"
    if is_held(directory):
        state = "running"
    elif not columns.answered:
        state = "never answered"
    elif judged.unmeasured.any():
        state = "stopped"
    return PastRun(
        name,
        directory,
        state,
        _created(manifest) or changed,
        model=model_label(manifest),
        benchmark=manifest.benchmark.name,
        mode=columns.mode,
        protocol=protocol,
        exact_match=None if online else _headline(EXACT_MATCH, columns, judged),
        success_rate=_success(directory) if online else _headline(SUCCESS_RATE, columns, judged),
    )


def _success(directory: Path) -> Number | None:
    figures = online_figures(Records(directory), read_planned(directory).plan)
    return None if figures.success.value is None else success(figures, show_n=False)


def _headline(figure: Figure, columns: RunColumns, judged: Judged) -> Number | None:
    if not columns.answered:
        return None
    value, interval = compute_with_interval(figure, FailurePolicy(), columns, judged)
    if value.value is None:
        return None
    return per_cent(value.value, value.n, interval, show_n=False, missing=value.missing)


def _created(manifest: Manifest) -> datetime | None:
    try:
        created = datetime.fromisoformat(manifest.created)
    except ValueError:
        return None
    return created if created.tzinfo is not None else created.replace(tzinfo=UTC)


def age(since: datetime, now: datetime) -> str:
    """How long ago, in its largest unit: ``45 s``, ``12 min``, ``5 h``, ``9 d``."""
    seconds = max(0, int((now - since).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
