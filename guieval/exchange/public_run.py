"""The copy of a run that others may have: without settings, paths and addresses that say where it was made.

Exports and uploads are made from this copy, so what is shortened here is in none of them. In responses and tasks only the
folders and servers of this run and this process are shortened, in error messages every path, URL and address.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.exchange.exported import Exported
from guieval.journal import SCHEMA, RunFolder, journal_file
from guieval.journal.directory import EPISODES, MANIFEST
from guieval.journal.lines import write_line
from guieval.online.trajectory import TRAJECTORIES, TrajectoryStep, read_trajectories
from guieval.reports.opened import open_run
from guieval.reports.private_places import Shortener, in_strings
from guieval.settings import GROUPS, PLACES, SETTINGS, placed
from guieval.settings.fields import PUBLIC, marks_of
from guieval.steps import Record, Repetition, Sample, StepError

_LOCAL = ("platform", "python", "code")
_PUBLISHED = ("notes", "licence")
"""Fields of a checkpoint that may link to public pages."""


def public_copy(run: Exported, folder: Path) -> Exported:
    """Write the public copy of a run below ``folder``, without screenshots, and open it under the same protocol.

    Damaged lines of the journal are left out, since it is not known what they hold.
    """
    directory = run.run.directory
    target = folder / run.name
    target.mkdir(parents=True)
    manifest = RunFolder(directory).manifest.to_json()
    shortener = _shortener(directory, manifest)
    _write_json(target / MANIFEST, public_manifest(manifest, shortener), indent=2)
    if (directory / EPISODES).is_file():
        plan = json.loads(read_text(directory / EPISODES))
        _write_json(target / EPISODES, in_strings(plan, shortener.known))
    opened = RunFolder(directory)
    compact = journal_file(directory).suffix == ".packed"
    with journal_file(target, opened.manifest.mode, compact=compact).open("wb") as stream:
        for record in opened.records:
            stream.write(write_line(_public_record(record, shortener), compact=compact))
    if (directory / TRAJECTORIES).is_file():
        with (target / TRAJECTORIES).open("wb") as stream:
            for step in read_trajectories(directory):
                stream.write(_public_step(step, shortener).model_dump_json(exclude_none=True).encode() + b"\n")
    return replace(run, run=open_run(target), original=run.original or directory)


def public_manifest(values: dict[str, Any], shortener: Shortener) -> dict[str, Any]:
    """A manifest without paths, servers and what describes the machine."""
    kept = {name: value for name, value in values.items() if name not in _LOCAL}
    kept |= {"schema": SCHEMA, "config": _settings(values, public=True)}  # the form of this version, whatever the run's
    model = {name: value for name, value in values["model"].items() if name not in ("folder", "vllm")}
    linked = {name: in_strings(model.pop(name), shortener.known) for name in _PUBLISHED if name in model}
    kept.pop("model")
    for section, field in (("overlay", "file"), ("fixed_thoughts", "run")):
        if kept.get(section):
            kept[section] = {**kept[section], field: Path(str(kept[section].get(field, ""))).name}
    for setup in (*(kept.get("setups") or ()), *(kept.get("patch_setups") or ())):
        for engine in setup.get("engines", ()):
            engine["url"] = ""
    shortened: dict[str, Any] = in_strings({**kept, "model": model}, shortener.name)
    shortened["model"] |= linked
    return shortened


def _settings(manifest: dict[str, Any], *, public: bool) -> dict[str, dict[str, Any]]:
    """The settings that stay in a public manifest, or those that do not; one that is not known does not."""
    marked = {place: PUBLIC in marks_of(SETTINGS[name]) for name, place in PLACES.items()}
    return {
        group: {field: value for field, value in given.items() if marked.get((group, field), False) is public}
        for group, given in placed(manifest["config"], lenient=True).items()
        if group in GROUPS
    }


def _shortener(directory: Path, manifest: dict[str, Any]) -> Shortener:
    """Knows what the settings that are left out name."""
    private = (
        _settings(manifest, public=False),
        manifest["model"].get("folder"),
        manifest.get("setups"),
        manifest.get("patch_setups"),
    )
    named = [text for values in private for text in _strings(values)]
    folders = [Path(text).expanduser() for text in named if text.startswith(("/", "~"))]
    return Shortener([directory, *folders], [text for text in named if "://" in text])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _public_record(record: Record, shortener: Shortener) -> Record:
    values = in_strings(record.model_dump(mode="json"), shortener.known)
    samples: tuple[Sample | Repetition, ...] = record.samples
    for sample, own in zip(values["samples"], samples, strict=True):
        _shorten_error(sample, own.error, shortener)
        if isinstance(own, Sample) and not own.answered:
            sample["outcome"]["reason"] = shortener.message(own.outcome.reason)
    for sample, wrong in zip(values.get("retried", ()), getattr(record, "retried", ()), strict=True):
        _shorten_error(sample, wrong.error, shortener)
    if record.models:
        values["models"] = [shortener.name(name) for name in record.models]
    if Path(values["task"].get("screenshot", "")).is_absolute():
        values["task"]["screenshot"] = Path(values["task"]["screenshot"]).name
    return type(record).model_validate_json(json.dumps(values))


def _public_step(step: TrajectoryStep, shortener: Shortener) -> TrajectoryStep:
    values = in_strings(step.model_dump(mode="json"), shortener.known)
    _shorten_error(values, step.error, shortener)
    return TrajectoryStep.model_validate_json(json.dumps(values))


def _shorten_error(values: dict[str, Any], error: StepError | None, shortener: Shortener) -> None:
    if error is not None:
        values["error"]["message"] = shortener.message(error.message)


def _write_json(path: Path, values: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(values, indent=indent) + "\n", encoding="utf-8")
