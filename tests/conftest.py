"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real annotations and screenshots; tests that use it skip where it is absent."""
    folder = Path(os.environ.get("GUIEVAL_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set GUIEVAL_SHARED_DATA)")
    return folder
