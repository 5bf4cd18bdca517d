"""The notebooks run from their first cell to their last, and show what is stored in them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.kernels import executed
from tests.rows import every_row

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
TRAINS = "rewards_in_trl"
"""The notebook that needs TRL."""


@every_row("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    if path.stem == TRAINS and find_spec("trl") is None:
        pytest.skip("TRL is not installed; `make test-train` runs this notebook")
    notebook = nbformat.read(path, as_version=4)
    stored = [[output.output_type for output in cell.get("outputs", ())] for cell in notebook.cells]
    executed(notebook, tmp_path)
    shown = [
        [output.output_type for output in cell.get("outputs", ()) if output.output_type != "stream"] for cell in notebook.cells
    ]
    assert shown == [[kind for kind in kinds if kind != "stream"] for kinds in stored], "run the notebook again and store it"
