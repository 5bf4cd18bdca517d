"""Repeats: runs of one model on the same steps that differ in their seeds alone, as one thing that every table reads.

``guieval run --repeats N`` and the ``seeds`` of a campaign write them below one folder, ``repeat-0`` to ``repeat-(N-1)``. Runs
that were made one by one with ``--sampling-seed``, and those of campaigns of earlier versions, are recognised too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from guieval.journal.reading import RunFolder
from guieval.journal.run_files import Manifest
from guieval.journal.setup import OF_RESPONSES, differences
from guieval.settings import SETTINGS, placed
from guieval.settings.fields import RUNTIME, marks_of

FOLDER = re.compile(r"repeat-(\d+)")
"""The name of a repeat's directory, with its number."""
_APART = frozenset({"server", "tracking", "cluster"})
"""Groups of settings that say where and how a run was done; who answered is in its set-up."""


class Seeds(NamedTuple):
    """What repeats differ in: the seed of sampling, and that of the draws of a mixed history."""

    sampling: int | None
    history: int | None

    def __str__(self) -> str:
        named = {"sampling": self.sampling, "history": self.history}
        return ", ".join(f"{name} seed {seed}" for name, seed in named.items() if seed is not None) or "no seed"


class _Repeated(NamedTuple):
    planned: int
    number: int
    seeds: Seeds
    run: RunFolder

    def fits(self, other: _Repeated) -> bool:
        """Whether another run, with the same settings but for seeds, is a repeat: of other seeds, and of a like set-up."""
        changed = differences(self.run.manifest.setups, other.run.manifest.setups)
        return self.seeds != other.seeds and {each.fact for each in changed} <= set(OF_RESPONSES)


@dataclass(frozen=True)
class Repeats:
    """The runs in ``directories`` are repeats of one another, with these ``seeds``; a run by itself is one of itself.

    ``planned``: how many they should be, by their settings.
    """

    directories: tuple[Path, ...]
    seeds: tuple[Seeds, ...]
    planned: int

    @classmethod
    def of(cls, directory: Path) -> Repeats:
        """A run by itself, whether or not it is one of several repeats."""
        return cls((directory,), (_seeds(RunFolder(directory).manifest),), 1)

    @property
    def first(self) -> Path:
        """The first of the runs, for what all of them share."""
        return self.directories[0]

    @property
    def several(self) -> bool:
        """Whether these are repeats, though all but one may be absent."""
        return self.planned > 1

    @property
    def folder(self) -> Path:
        """The folder of exactly these, or else the directory of the first."""
        together = self.several and all(FOLDER.fullmatch(each.name) for each in self.directories)
        return self.first.parent if together and len({each.parent for each in self.directories}) == 1 else self.first

    @property
    def name(self) -> str:
        """The folder of exactly these, or else the directories."""
        return ", ".join(map(str, self.directories)) if self.folder == self.first else str(self.folder)

    @property
    def line(self) -> str:
        """Which repeats these are, and which are absent, in words; empty of a run by itself."""
        if not self.several:
            return ""
        seeds = "; ".join(map(str, self.seeds))
        if all(each.sampling is not None and each.history is None for each in self.seeds):
            seeds = f"sampling seed{'s' * (len(self.seeds) > 1)} {', '.join(str(each.sampling) for each in self.seeds)}"
        if len(self.directories) == self.planned:
            return f"mean of {self.planned} repeats ({seeds})"
        there, verb, of = len(self.directories), *(("is", "it") if len(self.directories) == 1 else ("are", "these"))
        return f"only {there} of {self.planned} repeats {verb} there ({seeds}), so the numbers are of {of} alone"

    def only(self, directories: Collection[Path]) -> Repeats:
        """Those of them that are among ``directories``, of as many as were planned."""
        kept = [place for place, each in enumerate(self.directories) if each in directories]
        return Repeats(
            tuple(self.directories[place] for place in kept), tuple(self.seeds[place] for place in kept), self.planned
        )


def grouped(directories: Iterable[Path]) -> list[Repeats]:
    """The runs in groups of repeats, in the order of their first ones.

    Raises :class:`guieval.errors.UsageError` for a run whose manifest or plan cannot be read.
    """
    groups: dict[str, list[list[_Repeated]]] = {}
    order: list[list[_Repeated]] = []
    for directory in directories:
        run = RunFolder(directory)
        own = _Repeated(*_numbers(run.manifest), _seeds(run.manifest), run)
        same = groups.setdefault(_alike(run), [])
        group = next((each for each in same if all(own.fits(other) for other in each)), None)
        if group is None:
            same.append(group := [])
            order.append(group)
        group.append(own)
    found = []
    for group in order:
        group.sort(key=lambda each: each.number)
        planned = max(len(group), *(each.planned for each in group))
        found.append(Repeats(tuple(each.run.directory for each in group), tuple(each.seeds for each in group), planned))
    return found


def repeats_in(folder: Path) -> list[Path]:
    """The directories ``repeat-N`` directly below a folder, by their numbers."""
    named = [(int(found[1]), path) for path in folder.iterdir() if (found := FOLDER.fullmatch(path.name)) and path.is_dir()]
    return [path for _, path in sorted(named)]


def _config(manifest: Manifest) -> dict[str, Any]:
    return placed(manifest.config.to_json(), lenient=True)


def _seeds(manifest: Manifest) -> Seeds:
    config = _config(manifest)
    mix = config.get("history", {}).get("mix") or {}
    return Seeds(manifest.sampling.get("seed"), mix.get("seed", 0) if mix else None)


def _numbers(manifest: Manifest) -> tuple[int, int]:
    """How many repeats were planned, and the number of this one."""
    sampling = _config(manifest).get("sampling", {})
    number = sampling.get("repeat")
    return (1, 0) if number is None else (sampling.get("repeats", 1), number)


def _alike(run: RunFolder) -> str:
    """A text that is the same for runs that are repeats of one another."""
    manifest, config = run.manifest, _config(run.manifest)
    differing = {name for name, field in SETTINGS.items() if RUNTIME in marks_of(field)}
    kept: dict[str, Any] = {}
    for group, values in config.items():
        if group in _APART or not isinstance(values, dict):
            continue
        kept[group] = {name: value for name, value in values.items() if name not in differing}
    for group, field in (("sampling", "request"), ("history", "mix")):
        kept.setdefault(group, {})[field] = _without_seed(config.get(group, {}).get(field))
    together = config.get("sampling", {}).get("repeat") is not None
    return json.dumps(
        {
            "config": kept,
            "sampling": _without_seed(manifest.sampling),
            "steps": run.planned_digest,
            "data": (manifest.benchmark.name, manifest.benchmark.content),
            "overlay": manifest.overlay and manifest.overlay.sha256,
            "mode": manifest.mode.label,
            "model": (run.label, manifest.thinking, manifest.scaffold and manifest.scaffold.to_json()),
            "options": manifest.options,
            "folder": str(run.directory.parent.resolve()) if together else None,
        },
        sort_keys=True,
        default=str,
    )


def _without_seed(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if name != "seed"}
