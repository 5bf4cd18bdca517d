"""``docs/notebooks/rewards_in_trl.ipynb``: its cells run with TRL, one after the other, and print what is stored in them."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

pytest.importorskip("trl")

from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "notebooks" / "rewards_in_trl.ipynb"


def test_the_notebook_runs() -> None:
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = StringIO()
        with redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        stored = "".join(line for output in cell["outputs"] for line in output.get("text", ()))
        assert printed.getvalue() == stored, "run the notebook again and store it"
