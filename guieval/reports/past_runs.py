"""Past runs as a list: the settings, leading metrics and state of each run below a folder.

The metrics are those of ``guieval score``, computed from the journal in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from guieval.errors import GuievalError
from guieval.evaluation.protocol import EXACT_MATCH, SUCCESS_RATE
from guieval.journal import EPISODES, JOURNALS, LOCK, MANIFEST, METRICS, ROLLOUT, SWEEP, RunFolder
from guieval.journal.caveats import describe_served, model_label
from guieval.journal.repeats import FOLDER, grouped
from guieval.journal.run_files import Manifest, setup_line
from guieval.journal.setup import engine_of
from guieval.metrics import Measured
from guieval.metrics.repeats import over_repeats
from guieval.metrics.summary import State
from guieval.reports.notes import read_notes
from guieval.scoring.score import summary_of_run

RunState: TypeAlias = State | Literal["running", "broken"]
_STATES: Sequence[RunState] = ("broken", "running", "stopped", "never answered", "finished")
"""Of repeats, the first of these that one of them is in represents all."""
_OF_A_RUN = frozenset({EPISODES, LOCK, METRICS}.union(*JOURNALS.values()))


@dataclass(frozen=True)
class PastRun:
    """One run directory, or one folder of repeats. ``name`` is its path below the folder that was searched; ``problem`` is the
    reason why it is broken.

    ``title``, ``tags`` and ``note`` are what its user calls it (:mod:`guieval.reports.notes`).

    ``exact_match`` and ``success_rate`` are over all planned steps and episodes; ``None`` if no step was answered. An online
    run has no exact match, and its success rate is over the repetitions with an outcome. ``state``, n and missing steps are of
    one summary. ``engine`` is who answered, with the version; ``setup`` all that is known of how.
    """

    name: str
    directory: Path
    state: RunState
    created: datetime
    model: str | None = None
    benchmark: str | None = None
    mode: str | None = None
    protocol: str | None = None
    engine: str | None = None
    setup: str | None = None
    exact_match: Measured | None = None
    success_rate: Measured | None = None
    problem: str | None = None
    title: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""


def past_runs(folder: Path) -> list[PastRun]:
    """Every run below a folder, or in it, the newest first, repeats as one, without the runs of a sweep, which has its own
    table."""
    found: dict[Path, list[PastRun]] = {}
    for each in run_directories(folder):
        whole = each.parent if FOLDER.fullmatch(each.name) else each
        found.setdefault(whole, []).append(_read(folder, each))
    runs = [own[0] if own[0].directory == whole else _repeats(folder, whole, own) for whole, own in found.items()]
    return sorted(runs, key=lambda run: (run.created, run.name), reverse=True)


def run_directories(folder: Path, *, rollouts: bool = False) -> Iterator[Path]:
    """The directories of these runs; with ``rollouts`` a rollout is one, and so is a run that has no journal yet."""
    for place, below, files in os.walk(folder):
        begun = MANIFEST in files and not _OF_A_RUN.isdisjoint(files)
        found = MANIFEST in files or ROLLOUT in files if rollouts else begun
        if SWEEP in files or found:
            below.clear()  # parts of the run, e.g. of its workers
        below.sort()
        if found and SWEEP not in files:
            yield Path(place)


def _repeats(folder: Path, whole: Path, own: Sequence[PastRun]) -> PastRun:
    """Repeats as one: the means of their metrics, and the state of the one that came least far."""
    own = sorted(own, key=lambda run: _STATES.index(run.state))
    worst, known = own[0], [run for run in own if run.problem is None]
    if worst.problem is not None:
        return replace(worst, directory=whole, name=_name(folder, whole))
    planned = grouped([run.directory for run in known])[0].planned
    state = "stopped" if planned > len(own) and worst.state == "finished" else worst.state

    def mean(name: str) -> Measured | None:
        values = [value for run in known if (value := getattr(run, name)) is not None]
        return over_repeats(values) if values else None

    exact, success = mean("exact_match"), mean("success_rate")
    created = max(run.created for run in own)
    return replace(
        worst, name=_name(folder, whole), directory=whole, state=state, created=created, exact_match=exact, success_rate=success
    )


def _name(folder: Path, directory: Path) -> str:
    name = directory.relative_to(folder).as_posix()
    return directory.name if name == "." else name


def _read(folder: Path, directory: Path) -> PastRun:
    return past_run(directory, _name(folder, directory))


def past_run(directory: Path, name: str) -> PastRun:
    """The run in a directory, from its stored summary, or from its journal if that has changed since."""
    changed = datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    folder, notes = RunFolder(directory), read_notes(directory)
    try:
        manifest = folder.check().manifest
        found = summary_of_run(folder)
    except GuievalError as error:
        return PastRun(name, directory, "broken", changed, problem=str(error))
    metrics, state = found.all_metrics, found.state
    exact, success = (None if state == "never answered" else metrics.get(each.name) for each in (EXACT_MATCH, SUCCESS_RATE))
    return PastRun(
        name,
        directory,
        "running" if folder.held else state,
        _created(manifest) or changed,
        model=folder.label,
        benchmark=manifest.benchmark.name,
        mode=manifest.mode.label,
        protocol=folder.protocol,
        engine=engine_of(manifest.setups),
        setup=setup_line([manifest]),
        exact_match=exact,
        success_rate=success,
        title=notes.name,
        tags=tuple(notes.tags),
        note=notes.text,
    )


def described(manifest: Manifest, directory: Path) -> dict[str, str]:
    """The facts of a run that its pages show, as text; empty ones are of what is not known, and labels are there if set."""
    notes = read_notes(directory)
    labels = {"name": notes.name, "tags": ", ".join(notes.tags), "note": notes.text}
    return {
        **{name: text for name, text in labels.items() if text},
        "model": model_label(manifest),
        "benchmark": manifest.benchmark.name,
        "mode": manifest.mode.label,
        "protocol": manifest.protocol.name,
        "created": manifest.created,
        "steps": (manifest.selection and manifest.selection.text) or "",
        "labels": manifest.benchmark.edition_line,
        "scaffold": manifest.scaffold_line,
        "served": "; ".join(describe_served(manifest)),
        "engine": engine_of(manifest.setups),
        "setup": setup_line([manifest]),
    }


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
