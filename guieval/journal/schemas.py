"""JSON Schemas of the files of a run folder, for readers in other languages; ``docs/schemas`` has them.

    python -m guieval.journal.schemas docs/schemas      # writes them again after a field was added

From version 3 on, later versions of these files only gain fields, so whoever ignores fields that are new to them can read on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from guieval.data.files import read_text
from guieval.journal.directory import MANIFEST, SCHEMA, STEPS, TASKS
from guieval.journal.run_files import Manifest
from guieval.steps import StepRecord, TaskRecord

FILES: Mapping[str, type[BaseModel]] = {MANIFEST: Manifest, STEPS: StepRecord, TASKS: TaskRecord}
"""The published files and their contents; lines of .jsonl files have a checksum too (:mod:`guieval.journal.lines`)."""


def schema(file: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file in :data:`FILES`, or of one of its lines."""
    made = FILES[file].model_json_schema(mode="validation")
    for named in (made, *made["$defs"].values()):
        named.pop("additionalProperties", None)  # a later version may have added fields
    made["title"] = file
    if file != MANIFEST:
        made["properties"]["crc32"] = {"type": "string", "description": "checksum of the line, its last member"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "version": SCHEMA, **made}


def fields(value: Any, place: str = "") -> Iterator[str]:
    """The places of all fields that a schema describes, e.g. ``$defs.Sample.error``."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "properties" and isinstance(inner, dict):
                yield from (f"{place}.{field}" for field in inner)
            yield from fields(inner, place if name == "properties" else f"{place}.{name}")


def write(folder: Path) -> None:
    """Write the schemas; raises :class:`ValueError`, and writes nothing, if a published field is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {folder / f"{Path(file).stem}.json": schema(file) for file in FILES}
    for path, now in made.items():
        before = json.loads(read_text(path)) if path.exists() else {}
        if gone := sorted({*fields(before)} - {*fields(now)}):
            raise ValueError(f"{path.name} was published with {', '.join(gone)}; fields may only be added")
    for path, now in made.items():
        path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
