"""The core without its wings: a copy of the repository from which every wing is deleted, and pytest on it.

    python -m tests.alone [PYTEST ARGUMENTS]

Tests of a wing are deleted with it. A test of the core that needs one is skipped with a sentence (``tests/conftest.py``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from guieval.wings import WINGS

REPOSITORY = Path(__file__).resolve().parent.parent
START = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
import pytest
raise SystemExit(pytest.main(sys.argv[1:]))
"""
"""An editable install maps guieval to the repository, and comes before the copy."""


def copied(folder: Path) -> None:
    """Copy what tests read; the plug-ins stand in the package, as in an installed one."""
    for name in ("guieval", "tests", "docs", "perf", "pyproject.toml", "README.md", "configs", "benchmarks", "model_adapters"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for name in ("configs", "benchmarks", "model_adapters"):
        shutil.copytree(folder / name, folder / "guieval" / name)
    for wing in WINGS:
        shutil.rmtree(folder / "guieval" / wing)
        shutil.rmtree(folder / "tests" / wing, ignore_errors=wing == "conformance")


def main(arguments: list[str]) -> int:
    """Run pytest in the copy; its exit code."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "core"
        folder.mkdir()
        copied(folder)
        shared = os.environ.get("GUIEVAL_SHARED_DATA", str(REPOSITORY.parent / "shared" / "data"))
        environment = {**os.environ, "PYTHONPATH": str(folder), "GUIEVAL_SHARED_DATA": shared}
        command = [sys.executable, "-c", START, "-q", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
