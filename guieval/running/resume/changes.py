"""Whether a directory is fit for a run: a new one that is empty, or its own one, whose differences the user accepts.

Changes that a user accepts are written into the manifest, whose run is marked as mixed from then on
(:mod:`guieval.journal.caveats`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from guieval.data.content_digest import changed_fields
from guieval.data.files import read_bytes
from guieval.data.names import path_inside
from guieval.data.screenshots import file_digest
from guieval.errors import GuievalError, UsageError
from guieval.journal import Journal, RunFolder, has_records, is_run
from guieval.journal.run_files import Manifest, RecordedChange
from guieval.running.kinds import kind_of
from guieval.running.resolved import ResolvedRun, load_episode
from guieval.running.resume.identity import in_terms_of, manifest_of, refuse_unlike
from guieval.steps import EpisodeKey, Record, ReferenceTypes, StepRecord

DIGEST_SECONDS = 1.0
"""How long screenshots of answered steps are read again on resume, in random order; the sizes of all files are compared."""
SCREENSHOTS = "screenshots of answered steps"
ACCEPT = "--accept-changes continues anyway, and marks the run as mixed in every table"


@contextmanager
def open_journal(run: ResolvedRun, directory: Path, *, resume: bool) -> Iterator[Journal]:
    """The directory's one writer, once the directory is known to be fit for this run; see :func:`check_directory`."""
    manifest = manifest_of(run)
    check_directory(run, directory, manifest, resume=resume)
    with Journal(directory, run.mode, compact=run.config.tracking.compact) as journal:
        changes = check_directory(run, directory, manifest, resume=resume)  # again: another process may have been quicker
        if resume:
            old, new = RunFolder(directory).manifest, Manifest.of(manifest)
            labels = [each.config.tracking.model_dump(include={"name", "tags", "note"}) for each in (old, new)]
            if changes:
                journal.amend(with_changes(old, new, changes))
            elif labels[0] != labels[1]:
                journal.amend(
                    old.model_copy(update={"config": old.config.model_copy(update={"tracking": new.config.tracking})})
                )
        journal.start(None if resume else manifest, run.plan, run.selection.refs, reference_types(run, directory))
        yield journal


def check_directory(run: ResolvedRun, directory: Path, manifest: Mapping[str, Any], *, resume: bool) -> list[str]:
    """Raise :class:`UsageError` unless the directory is fit for this run; the changes that its user accepts, in words."""
    where = str(directory)
    if is_run(directory):
        if not resume:
            raise UsageError(f"{where!r} already has a run; `guieval run --resume {where}` continues it; or give another --out")
        return accepted_changes(run, directory, manifest)
    if resume:
        raise UsageError(f"there is nothing to resume: {where!r} has no run")
    if has_records(directory):
        raise UsageError(f"{where!r} has records but no manifest that says of what run; give another --out")
    return []


def accepted_changes(run: ResolvedRun, directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    """How a run differs from the one in its directory, if its user accepts that; else a :class:`UsageError`.

    Settings, code, prompts and data are compared, and the screenshots that answered steps were shown.
    """
    old = RunFolder(directory).manifest
    new = in_terms_of(old, Manifest.of(manifest), run)
    differing = refuse_unlike(
        old, new, directory, accept=run.accept_changes, hint=ACCEPT, example=lambda: _example_of_change(run, directory)
    )
    accepted = any(SCREENSHOTS in what for change in old.changes or () for what in change.what)
    screens = [] if accepted else changed_screenshots(run.benchmark.root, RunFolder(directory).records)
    if screens and not run.accept_changes:
        raise UsageError(
            f"{str(directory)!r} cannot be resumed, because {len(screens):,} {SCREENSHOTS} have "
            f"changed since, the first is {screens[0]!r}; {ACCEPT}"
        )
    return [one.text for one in differing] + ([f"{len(screens):,} {SCREENSHOTS}"] if screens else [])


def with_changes(old: Manifest, new: Manifest, what: Iterable[str]) -> Manifest:
    """The manifest of a run that continues under changes: as it is now, with what earlier sessions recorded and accepted."""
    kept: dict[str, Any] = {
        name: getattr(old, name)
        for name in ("created", "setups", "patch_setups", "reply_models")
        if name in old.model_fields_set
    }
    entry = RecordedChange(when=datetime.now(UTC).isoformat(timespec="seconds"), what=list(what))
    return new.model_copy(update={**kept, "changes": [*(old.changes or ()), entry]})


def reference_types(run: ResolvedRun, directory: Path) -> ReferenceTypes:
    """The action types of the planned steps' references, so that metrics by type count a step whether it was run or not.

    Of an episode that cannot be loaded they are those that an earlier session wrote down.
    """
    types: dict[EpisodeKey, Mapping[int, str]] = {}
    if len(run.content.types) < len(run.plan):
        with suppress(UsageError):
            types |= RunFolder(directory).planned.types
    return {**types, **run.content.types}


def changed_screenshots(root: Path, records: Iterable[Record]) -> list[str]:
    """Screenshots of answered steps whose files are no longer those that the model was shown.

    The size of every file is compared, the content of as many as can be read in :data:`DIGEST_SECONDS`. A file that is gone is
    not among them.
    """
    steps = (record for record in records if isinstance(record, StepRecord))  # a task is shown its screens as it goes on
    shown = {record.task.screenshot: record.screen for record in steps if record.screen is not None}
    changed: dict[str, None] = {}
    for name, screen in shown.items():
        try:
            if path_inside(root, name).stat().st_size != screen[0]:
                changed[name] = None
        except (OSError, ValueError):
            continue
    deadline = time.monotonic() + DIGEST_SECONDS
    names = list(shown)
    random.Random(0).shuffle(names)
    for name in names:
        if time.monotonic() > deadline:
            break
        try:
            if tuple(file_digest(read_bytes(path_inside(root, name)))) != shown[name]:
                changed[name] = None
        except (OSError, ValueError):
            continue
    return list(changed)


def _example_of_change(run: ResolvedRun, directory: Path) -> str:
    """The first recorded step that the benchmark now gives otherwise, in words; empty if only unasked ones changed."""
    known = {ref.key: ref for ref in run.selection.refs if ref.key in run.plan}
    for record in RunFolder(directory).records:
        ref = known.get(record.task.episode_key)
        if ref is None:
            continue
        try:
            now = kind_of(run.config).part(load_episode(run.benchmark, ref), record.task.key.step_index)
        except (GuievalError, IndexError):
            continue
        if changed := changed_fields(record.task, now):
            return f": of step {record.task.key} {'; '.join(changed[:2])}"
    return ""
