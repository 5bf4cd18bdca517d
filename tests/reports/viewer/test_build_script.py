"""Numbers in the pages' script, which are as Python shows them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from guieval.data.doctor.counts import counted
from guieval.metrics.rounding import percentage

BUILD = Path(__file__).parents[3] / "guieval" / "reports" / "pages" / "build.js"


def value_of(expression: str) -> Any:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    code = f"{BUILD.read_text(encoding='utf-8')}\nconsole.log(JSON.stringify({expression}));"
    return json.loads(subprocess.run([node, "-e", code], capture_output=True, text=True, check=True).stdout)


def test_only_none_is_0_percent_and_only_all_is_100() -> None:
    parts = [0, 1, 14, 15, 16, 100, 15_000, 29_984, 29_985, 29_986, 29_999, 30_000]
    shown = value_of(f"{parts}.map((part) => percent(part, 30000))")
    assert shown == [f"{percentage(part / 30_000, '.1f')} %" for part in parts]
    assert shown[:2] == ["0.0 %", "< 0.1 %"] and shown[-2:] == ["> 99.9 %", "100.0 %"]


def test_a_number_with_its_noun() -> None:
    numbers = [0, 1, 2, 30_000]
    assert value_of(f"{numbers}.map((count) => counted(count, 'run'))") == [counted(number, "run") for number in numbers]
    assert value_of("[1, 2].map((count) => counted(count, 'more step'))") == ["1 more step", "2 more steps"]
