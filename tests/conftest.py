"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from tests.command_line import CommandLine

with contextlib.suppress(ImportError):  # the environment in which vLLM is tried has no hypothesis, and no test that needs it
    from hypothesis import settings

    # how long an example takes is the machine's affair, not the test's
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real annotations and screenshots; tests that use it skip where it is absent."""
    folder = Path(os.environ.get("GUIEVAL_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set GUIEVAL_SHARED_DATA)")
    return folder


@pytest.fixture
def guieval(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The program, on a terminal wide enough for its tables."""
    monkeypatch.setenv("COLUMNS", "200")
    return CommandLine(capsys, monkeypatch)
