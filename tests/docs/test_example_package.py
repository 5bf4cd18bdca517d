"""The notebooks and the example package do what they show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.kernels import executed
from tests.rows import every_row

PACKAGE = REPOSITORY / "examples" / "guieval-kiosk"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which Python finds the package, built from a copy and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("kiosk")
    source = shutil.copytree(PACKAGE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "120"}


def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("benchmarks kiosk", "Kiosk (example of a plug-in)"),
        ("protocols kiosk-strict", "written for: kiosk"),
        ("dev check kiosk kiosk_agent", "no problem found"),
    ],
)
def test_the_commands_know_it(environment: dict[str, str], command: str, shown: str) -> None:
    done = subprocess.run([sys.executable, "-m", "guieval", *command.split()], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and shown in done.stdout, done.stdout + done.stderr


nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
TRAINS = "rewards_in_trl"
"""The notebook that needs TRL."""


def shown(notebook: Any) -> list[Any]:
    """The kinds of what each cell shows: a picture, HTML, text."""
    outputs = [[each for each in cell.get("outputs", ()) if each.output_type != "stream"] for cell in notebook.cells]
    return [[(each.output_type, sorted(each.get("data", ()))) for each in cell] for cell in outputs]


@every_row("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    if path.stem == TRAINS and find_spec("trl") is None:
        pytest.skip("TRL is not installed; `make test-train` runs this notebook")
    notebook = nbformat.read(path, as_version=4)
    stored = shown(notebook)
    executed(notebook, tmp_path)
    assert shown(notebook) == stored, "run the notebook again and store it"
