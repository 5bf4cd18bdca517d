"""Where the recorded verdicts are: ``conformance`` in the shared data folder, or the folder in ``GUIEVAL_CONFORMANCE_DIR``."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Vectors:
    """A folder of recorded verdicts; ``named`` says that the user chose it, so that it may hold any number of lines."""

    folder: Path
    named: bool

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Every line of ``<name>.jsonl.gz``; the test is skipped where there is no such file."""
        file = self.folder / f"{name}.jsonl.gz"
        if not file.is_file():
            pytest.skip(f"no recorded verdicts at {file} (set GUIEVAL_CONFORMANCE_DIR)")
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            lines = [json.loads(line) for line in stream if line.strip()]
        assert lines, f"{file} has no line"
        assert self.named or len(lines) == 600
        return lines


@pytest.fixture(scope="session")
def vectors(request: pytest.FixtureRequest) -> Vectors:
    """The recorded verdicts."""
    named = os.environ.get("GUIEVAL_CONFORMANCE_DIR")
    if named:
        return Vectors(Path(named), named=True)
    return Vectors(request.getfixturevalue("shared_data") / "conformance", named=False)
