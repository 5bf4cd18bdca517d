"""The notebooks run from their first cell to their last, and show what is stored in them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.kernels import executed
from tests.rows import every_row

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
