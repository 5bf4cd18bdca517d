"""Finds the runs of a path: the run itself, the runs below it, or the rounds of a rollout (one for each seed)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from guieval.errors import UsageError, harmless
from guieval.history.modes import Kind
from guieval.journal.directory import MANIFEST, ROLLOUT, is_run
from guieval.journal.reading import RunFolder
from guieval.journal.repeats import Repeats, grouped, repeats_in
from guieval.journal.run_files import RolloutFile, read_file
from guieval.steps import EpisodeKey

_LOG = logging.getLogger(__name__)


def runs_below(directory: Path) -> list[Path]:
    """The runs in the subfolders of a folder, e.g. of several modes, and the repeats in these subfolders."""
    if not directory.is_dir():
        return []
    repeats = repeats_in(directory)
    folders = [*repeats, *(path for path in sorted(directory.iterdir()) if path.is_dir() and path not in repeats)]
    runs = ([path] if is_run(path) else [each for each in repeats_in(path) if is_run(each)] for path in folders)
    return list(chain.from_iterable(runs))


def one_run(directory: Path) -> Path:
    """The run in a directory, or the only one in its subfolders; :class:`UsageError` if there are none or several."""
    if is_run(directory):
        return directory
    if not directory.exists():
        raise UsageError(f"the run directory {str(directory)!r} does not exist")
    if directory.is_file():
        raise UsageError(f"{str(directory)!r} is a file, not a run: `guieval data import {directory} --out RUN` makes a run")
    below = runs_below(directory)
    if len(below) == 1:
        return below[0]
    if not below:
        raise UsageError(f"{str(directory)!r} is not a run directory and has no run: it has no {MANIFEST}")
    named = ", ".join(repr(str(path)) for path in below)
    raise UsageError(f"{str(directory)!r} is not a run directory: it has no {MANIFEST}; below it are the runs {named}")


def is_rollout(directory: Path) -> bool:
    """Whether a folder is a rollout."""
    return (directory / ROLLOUT).is_file()


def rollouts_below(directory: Path) -> list[Path]:
    """The rollouts in the subfolders of a folder, e.g. of several benchmarks."""
    return [path for path in sorted(directory.iterdir()) if is_rollout(path)] if directory.is_dir() else []


def pooled_parts(directory: Path) -> tuple[Path, ...]:
    """The runs and rollouts below a folder that are read as one study: of one model in one mode, each over other steps.

    A run or rollout is a study of one part. Raises :class:`UsageError` if there is none, and for parts that cannot be pooled.
    """
    if is_run(directory) or is_rollout(directory):
        return (directory,)
    parts = (*rollouts_below(directory), *runs_below(directory)) or (one_run(directory),)
    firsts = [RunFolder(rounds_of(part)[0]) for part in parts]
    known: dict[EpisodeKey, Path] = {}
    for part, run in zip(parts, firsts, strict=True):
        for what, own, other in (
            ("models", run.label, firsts[0].label),
            ("modes", run.manifest.mode.label, firsts[0].manifest.mode.label),
        ):
            if own != other:
                named = f"{parts[0].name!r} ({other}) and {part.name!r} ({own})"
                raise UsageError(f"{str(directory)!r} cannot be pooled: {named} are of different {what}")
        for key in run.plan:
            if key in known:
                named = f"{known[key].name!r} and {part.name!r}"
                raise UsageError(f"{str(directory)!r} cannot be pooled: {named} share the episode {key}")
            known[key] = part
    return parts


def open_folder(directory: Path) -> RunFolder:
    """A run, or a rollout as its first round with the further ones; their records are not read yet, and there may be none.

    Raises :class:`UsageError` if there is neither, or the rounds are over different steps.
    """
    first, *others = [RunFolder(each) for each in rounds_of(directory)]
    for other in others:
        if other.plan != first.plan:
            named = f"{str(first.directory)!r} and {str(other.directory)!r}"
            raise UsageError(f"the rounds {named} are over different steps, so they cannot be pooled")
    return RunFolder(first.directory, others).check()


def rounds_of(directory: Path) -> list[Path]:
    """The runs of ``directory``: the run itself, or the rounds of a rollout that have begun, in order.

    Raises :class:`UsageError` if there is neither, or the list of rounds is damaged.
    """
    if not is_rollout(directory):
        _ = RunFolder(directory).manifest
        return [directory]
    rounds = [directory / entry.directory for entry in read_file(directory / ROLLOUT, RolloutFile).rounds]
    if begun := [path for path in rounds if is_run(path)]:
        return begun
    raise UsageError(f"no round of the rollout {str(directory)!r} has begun")


def several_runs(directories: Iterable[Path], *, rollouts: bool = False) -> list[Path]:
    """Every run that the directories are or hold one below them, each once, in the order given.

    Of several runs, one whose manifest or plan cannot be read is left out, with a warning; a
    :class:`guieval.errors.UsageError` is raised if that leaves none. With ``rollouts`` a rollout is one of them itself.
    """
    found: dict[Path, None] = {}
    for directory in directories:
        whole = not directory.exists() or is_run(directory) or (rollouts and is_rollout(directory))
        of_rollouts = [] if whole else rollouts_below(directory)
        below = [] if whole else [*(of_rollouts if rollouts else chain.from_iterable(map(runs_below, of_rollouts)))]
        below += [] if whole else runs_below(directory)
        found.update(dict.fromkeys(below or [directory if rollouts and is_rollout(directory) else one_run(directory)]))
    if len(found) == 1:
        return list(found)
    problems = {run: problem for run in found if (problem := None if is_rollout(run) else _problem(run)) is not None}
    if len(problems) == len(found):
        raise UsageError(f"none of the {len(found)} runs can be read; the first: {next(iter(problems.values()))}")
    for run, problem in problems.items():
        _LOG.warning("%s", harmless(f"note: the run {str(run)!r} is left out: {problem}"))
    return [run for run in found if run not in problems]


def paired(first: Path, second: Path, *, rollouts: bool = False) -> list[tuple[Repeats, Repeats]]:
    """The runs of two directories to put side by side, repeats as one: by their modes, if one of the two has several.

    With ``rollouts`` a rollout is itself, and each repeat a run. A mode that only one side has is named in a warning. Raises
    :class:`guieval.errors.UsageError` if no mode is on both sides, or a side has several runs in one mode.
    """
    found = [several_runs([each], rollouts=rollouts) for each in (first, second)]
    sides = [[Repeats((run,), (), 1) for run in runs] if rollouts else grouped(runs) for runs in found]
    if all(len(side) == 1 for side in sides):
        return [(sides[0][0], sides[1][0])]
    by_mode: list[dict[str, Repeats]] = []
    for side in sides:
        by_mode.append({})
        for run in side:
            other = by_mode[-1].setdefault(RunFolder(run.first).manifest.mode.label, run)
            if other != run:
                raise UsageError(f"{str(other.first)!r} and {str(run.first)!r} are in the same mode; name one of them")
    one, two = by_mode
    shared = [mode for mode in one if mode in two]
    if not shared:
        raise UsageError(
            f"{str(first)!r} and {str(second)!r} have no mode in common ({', '.join(one)} and {', '.join(two)}); name two runs"
        )
    for mode in one.keys() ^ two.keys():
        _LOG.warning("note: mode %s is only in %r, so it is not compared", mode, str((one | two)[mode].first))
    return [(one[mode], two[mode]) for mode in shared]


def rivals(folder: Path) -> list[tuple[Repeats, Repeats]]:
    """The models in a folder, e.g. a campaign's, each with the first that was run on the same steps in the same mode.

    Raises :class:`guieval.errors.UsageError` if there are no two.
    """
    alike: dict[tuple[str, str, str], list[Repeats]] = {}

    def begun(each: Repeats) -> tuple[str, int]:
        # the runs of a command are begun in its order, within the second that a manifest knows
        return RunFolder(each.first).manifest.created, (each.first / MANIFEST).stat().st_mtime_ns

    for each in sorted(grouped(several_runs([folder])), key=begun):
        run = RunFolder(each.first)
        alike.setdefault((run.manifest.benchmark.name, run.manifest.mode.label, run.planned_digest), []).append(each)
    pairs = [(first, other) for first, *others in alike.values() for other in others]
    if not pairs:
        raise UsageError(
            f"there is nothing to compare {str(folder)!r} with: give two or more runs, or a folder with runs of several models "
            "on the same steps"
        )
    return pairs


def runs_over(kind: Kind, directories: Sequence[Path], instead: str) -> list[Path]:
    """The runs of a kind, e.g. those over steps for a command that compares actions with references, which tasks do not have.

    Others are named in warnings; :class:`UsageError`, ending with what to use ``instead``, if there are no others.
    """
    kept: list[Path] = []
    left_out: list[Path] = []
    for directory in directories:
        mode = RunFolder(rounds_of(directory)[0]).manifest.mode
        (kept if mode.is_over(kind) else left_out).append(directory)
    if left_out and not kept:
        RunFolder(left_out[0]).expect(kind, instead)
    for directory in left_out:
        _LOG.warning("note: the run %r is left out: it is not over %s", str(directory), kind)
    return kept


def _problem(directory: Path) -> str | None:
    try:
        RunFolder(directory).check()
    except UsageError as error:
        return str(error)
    return None
