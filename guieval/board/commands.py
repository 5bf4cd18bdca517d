"""The commands that repeat a number of a board: those that make its run again, and the one that scores it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from guieval.journal.run_files import Manifest
from guieval.reports.leaderboards.published_results import PublishedModel, ResultColumn
from guieval.settings import PLACES, SETTINGS, placed
from guieval.settings.fields import FLAG, RUNTIME, marks_of

_KEPT = frozenset(
    {"folder", "episodes", "overlay", "fixed_thoughts", "mix_artifacts", "mix_decisions", "repeats", "model_path"}
)
"""Settings that differ between machines, and that decide what a run is over or who answers."""


def commands_of(manifests: Sequence[Manifest], directories: Sequence[Path], folder: Path, protocol: str) -> tuple[str, str]:
    """What makes a run, or all its repeats, again, and what scores it. ``folder`` is that of all ``directories``.

    The first one is empty for an import that did not record its arguments. It needs the servers that the set-up names.
    """
    first, out = manifests[0], shlex.quote(str(folder))
    scored = f"guieval score {out} --protocol {shlex.quote(protocol)}"
    if len(directories) > 1 and folder == directories[0]:  # repeats that were made one by one
        scored = f"guieval leaderboard {shlex.join(map(str, directories))} --protocol {shlex.quote(protocol)}"
    if first.imported is None:
        return f"guieval run {shlex.join(_settings(first))} --out {out}", scored
    words = first.imported.words
    return f"guieval data import {shlex.join(words)} --out {out}" if words else "", scored


def published_command(row: PublishedModel, column: ResultColumn) -> str:
    """What runs the checkpoint of a published row on its benchmark; empty if guieval does not have it."""
    if row.checkpoint is None or column.benchmark is None or column.mode is None or column.protocol is None:
        return ""
    words = ["--model", row.checkpoint, "--bench", column.benchmark, "--mode", column.mode, "--protocol", column.protocol]
    thinking = {True: ["--thinking"], False: ["--no-thinking"], None: []}[row.thinking]
    return f"guieval run {shlex.join([*words, *thinking])}"


def _settings(manifest: Manifest) -> Iterator[str]:
    """The words that give a run the settings that decide its answers."""
    recorded = placed(manifest.config.to_json(), lenient=True)
    for name, (group, field) in PLACES.items():
        value, marks = recorded.get(group, {}).get(field), marks_of(SETTINGS[name])
        unneeded = (RUNTIME in marks and name not in _KEPT) or name == "repeat" or group == "tracking"
        if unneeded or value in (None, [], {}) or value == SETTINGS[name].default:
            continue
        yield from _option(name, value, flag=FLAG in marks)


def _option(name: str, value: Any, *, flag: bool) -> Iterator[str]:
    option = "data" if name == "folder" else name.replace("_", "-")
    if not flag:
        yield from ("--set", f"{name}={json.dumps(value)}")
    elif isinstance(value, bool):
        yield f"--{'' if value else 'no-'}{option}"
    else:
        for each in value if isinstance(value, list) else [value]:
            yield from (f"--{option.removesuffix('s') if isinstance(value, list) else option}", str(each))
