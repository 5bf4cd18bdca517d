"""The published JSON Schemas: what is written today agrees with them, and no published field is given up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from guieval.exchange.exported import exported
from guieval.exchange.public_run import public_copy
from guieval.journal.schemas import FILES, schema, write
from tests.conftest import REPOSITORY
from tests.pinned.place import RUNS

SCHEMAS = REPOSITORY / "docs" / "schemas"


def test_the_published_schemas_are_those_of_the_code(tmp_path: Path) -> None:
    write(tmp_path)
    differing = [path.name for path in tmp_path.iterdir() if path.read_text() != (SCHEMAS / path.name).read_text()]
    assert differing == [], "write them again: python -m guieval.journal.schemas docs/schemas"
    assert len(list(SCHEMAS.iterdir())) == len(FILES)


def test_a_published_field_cannot_be_dropped(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "steps.json"
    more = json.loads(path.read_text())
    more["$defs"]["Sample"]["properties"]["mood"] = {"type": "string"}
    path.write_text(json.dumps(more))
    with pytest.raises(ValueError, match=r"steps.json was published with \.\$defs\.Sample\.mood; fields may only be added"):
        write(tmp_path)


def test_what_runs_write_agrees_with_the_schemas(tmp_path: Path) -> None:
    """A run over steps, one with patches, one with samples, and an online run, written anew by this version."""
    problems, seen = [], set()
    for name in ("hasty/sop", "off-policy", "samples", "phone-hasty"):
        folder = public_copy(exported(RUNS / name), tmp_path / name).run.directory
        for path in (folder / file for file in FILES):
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" and path.exists() else ():
                seen.add(path.name)
                problems += differing(path.name, line)
        problems += differing("manifest.json", (folder / "manifest.json").read_text())
    assert problems == [] and seen == {"steps.jsonl", "tasks.jsonl"}


def differing(file: str, text: str) -> list[str]:
    return [f"{file}: {each.message}" for each in Draft202012Validator(schema(file)).iter_errors(json.loads(text))]
