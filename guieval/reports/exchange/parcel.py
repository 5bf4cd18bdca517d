"""What of a run is published: a page with its figures, the exported results, and the run itself.

Screenshots stay here unless they are asked for, and so do settings that say where the run was made: folders, servers, proxies,
trackers. A file in which a key stands is refused.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.journal.directory import EPISODES, MANIFEST, PACKED_STEPS, STEPS
from guieval.online.trajectory import TRAJECTORIES
from guieval.reports.exchange import atif, every_eval_ever
from guieval.reports.exchange.exported import Exported
from guieval.reports.tables.table import Table, bracketed, columns, per_cent
from guieval.reports.tables.writers import markdown

PUBLIC_SETTINGS = frozenset(
    {
        *("model", "bench", "mode", "protocol", "split", "subset", "sample_set", "limit", "seed", "skip_damaged"),
        *("decode_check", "thinking", "sampling", "samples", "resampling", "engine", "patch", "patch_budget"),
        *("max_steps", "environment_timeout", "compact"),
    }
)
"""The settings of a run that stay in its published manifest."""
_LOCAL = ("platform", "python", "code")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)S?$")
_SECRETS = re.compile(
    rb"\b(sk-[\w-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|AIza[\w-]{35})\b"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_SHORTEST = 8
"""Shorter values of a variable are placeholders such as EMPTY, which a reply may hold by chance."""


def pack(run: Exported, folder: Path, *, images: bool = False) -> None:
    """Write what is published of a run into a folder: the exports, and the run below ``runs/``.

    ``images`` adds the screenshots of an online run. Raises :class:`UsageError` naming file and line for a key in any of them.
    """
    every_eval_ever.write(run, folder)
    target = folder / "runs" / run.name
    target.mkdir(parents=True)
    directory = run.run.directory
    for name in (EPISODES, STEPS, PACKED_STEPS, TRAJECTORIES):
        if (directory / name).is_file():
            shutil.copyfile(directory / name, target / name)
    manifest = public_manifest(json.loads((directory / MANIFEST).read_text(encoding="utf-8")))
    (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    if run.online:
        atif.write(run, folder / "trajectories" / run.name, images=images)


def write_card(runs: list[Exported], folder: Path) -> None:
    """Write ``README.md``: the figures of all runs, and how to score them again."""
    tables = []
    for run in runs:
        rows = tuple(
            (each.name, per_cent(each.value, missing=each.missing), bracketed(each.interval), each.n, each.of)
            for each in run.figures
        )
        manifest = run.manifest
        title = f"{manifest.model_name} on {manifest.benchmark.name}, {manifest.mode.label}, {run.protocol.name}"
        notes = tuple(f"{name}: {value}" for name, value in run.details.items())
        tables.append(Table(title, columns("figure", "value", "95% interval", "n", "of"), rows, notes))
    head = "---\ntags:\n- gui-agents\n- guieval\n---\n\n# Results of GUI agents\n\n"
    score = f"\nScore a run under another protocol: `guieval score runs/{runs[0].name} --protocol NAME`.\n"
    (folder / "README.md").write_text(head + markdown(tables) + score, encoding="utf-8")


def public_manifest(values: dict[str, Any]) -> dict[str, Any]:
    """A manifest without paths, servers and what describes the machine."""
    kept = {name: value for name, value in values.items() if name not in _LOCAL}
    kept["config"] = {name: value for name, value in values["config"].items() if name in PUBLIC_SETTINGS}
    kept["model"] = {name: value for name, value in values["model"].items() if name not in ("folder", "vllm")}
    for section, field in (("overlay", "file"), ("fixed_thoughts", "run")):
        if kept.get(section):
            kept[section] = {**kept[section], field: Path(str(kept[section].get(field, ""))).name}
    for entry in kept.get("served") or ():
        for server in entry.get("servers", ()):
            server.update(url="", root=None if server.get("root") is None else Path(server["root"]).name)
    return kept


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
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            for name, value in values.items():
                if value in line:
                    yield number, f"the value of the variable {name}"
            if _SECRETS.search(line):
                yield number, "what looks like a key"
