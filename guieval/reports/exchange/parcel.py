"""The published parts of a run: a page with its metrics, the exported results, and a public copy of the run.

Screenshots stay here unless they are asked for. A file that contains a key is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from guieval.data.files import open_file
from guieval.errors import UsageError
from guieval.reports.exchange import atif, every_eval_ever
from guieval.reports.exchange.exported import Exported
from guieval.reports.exchange.public_run import public_copy
from guieval.reports.opened import OpenedOnlineRun
from guieval.reports.tables.table import Number, Table, columns
from guieval.reports.tables.writers import markdown

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$")
_SECRETS = re.compile(
    rb"\b(sk-[\w-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|AIza[\w-]{35})\b"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_SHORTEST = 8
"""Shorter values of a variable are placeholders such as EMPTY, which a reply may hold by chance."""


def pack(run: Exported, folder: Path, *, images: bool = False) -> Exported:
    """Write what is published of a run into a folder: the exports, and the run below ``runs/``, which is returned opened.

    ``images`` adds the screenshots of an online run.
    """
    public = public_copy(run, folder / "runs")
    every_eval_ever.write(public, folder)
    if isinstance(public.run, OpenedOnlineRun):
        atif.write(public, folder / "trajectories" / public.name, images=images)
    return public


def write_card(runs: list[Exported], folder: Path) -> None:
    """Write ``README.md``: the metrics of all runs, and how to score them again."""
    tables = []
    for run in runs:
        rows = tuple(
            (each.name, f"{shown.shown} {shown.marks}".strip(), shown.ends, each.measured.n, each.measured.of)
            for each in run.metrics
            for shown in (Number(each.measured),)
        )
        manifest = run.manifest
        title = f"{manifest.model_name} on {manifest.benchmark.name}, {manifest.mode.label}, {run.protocol.name}"
        notes = tuple(f"{name}: {value}" for name, value in run.details.items())
        tables.append(Table(title, columns("metric", "value", "95% interval", "n", "of"), rows, notes))
    head = "---\ntags:\n- gui-agents\n- guieval\n---\n\n# Results of GUI agents\n\n"
    score = f"\nScore a run under another protocol: `guieval score runs/{runs[0].name} --protocol NAME`.\n"
    (folder / "README.md").write_text(head + markdown(tables) + score, encoding="utf-8")


def check_secrets(folder: Path) -> None:
    """Refuse a folder in which a text file holds the value of a secret variable of this process, or what looks like a key."""
    values = {
        name: value.strip().encode()
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST
    }
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for number, problem in _found(path, values):
            raise UsageError(f"{path.relative_to(folder).as_posix()!r}, line {number}, holds {problem}: nothing was uploaded")


def _found(path: Path, values: dict[str, bytes]) -> Iterator[tuple[int, str]]:
    with open_file(path) as stream:
        for number, line in enumerate(stream, 1):
            for name, value in values.items():
                if value in line:
                    yield number, f"the value of the variable {name}"
            if _SECRETS.search(line):
                yield number, "what looks like a key"
