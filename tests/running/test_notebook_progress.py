"""The progress of :func:`guieval.run` in a notebook, with a real kernel."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.kernels import executed

CODE = """
import guieval
from guieval.playground.mock_server import MockServer, MockSettings

with MockServer(MockSettings(model="ui-tars-7b")) as server:
    result = guieval.run(model="ui-tars-7b", bench="demo", base_urls=server.base_url, limit=2, out="run")
print(result.complete)
"""


def test_a_notebook_shows_one_bar_and_no_warning(tmp_path: Path) -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    executed(book, tmp_path, kernel_name="python3")
    outputs = book.cells[0].outputs
    streams = {name: "".join(each.text for each in outputs if each.get("name") == name) for name in ("stdout", "stderr")}
    assert streams["stdout"] == "True\n" and "Warning" not in streams["stderr"], streams
    if find_spec("ipywidgets") is None:
        assert {each.output_type for each in outputs} == {"stream"}
        last = re.split(r"[\r\n]+", streams["stderr"].strip())[-1]
        assert re.match(r"ui-tars-7b on demo, offline: 100%\|.*\| (\d+)/\1 \[.* exact match ", last), last
    else:
        assert any("application/vnd.jupyter.widget-view+json" in each.get("data", {}) for each in outputs)
