"""The board of public files: its numbers are the stated ones, and its commands those of a reader who has the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from guieval.board.orders import OrderCount, pair_orders
from guieval.errors import UsageError
from perf.board import write_board
from perf.reproduced import FILES

STATED = {
    ("MAI-UI-8B (local)", "seeclick-official"): (1210, 1272),
    ("MAI-UI-8B (server)", "seeclick-official"): (1207, 1272),
    ("MAI-UI-8B (local)", "mai-ui-grounding"): (344, 564),
    ("MAI-UI-8B (server)", "mmbench-gui-l2"): (3190, 3594),
    ("Qwen2.5-VL", "sspro-official"): (323, 1581),
    ("Qwen2-VL", "sspro-official"): (23, 1581),
    ("SE-GUI", "sspro-official"): (12, 80),
    ("mobilepilot raw__vision_only", "seeclick-official"): (332, 471),
    ("mobilepilot grid_10x10__vision_only", "seeclick-official"): (314, 471),
    ("UI-Genie-7B", "ui-genie"): (7450, 9980),
}


def test_it_has_every_file_with_its_stated_score(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / FILES).is_dir():
        pytest.skip(f"no public result files at {shared_data / FILES}")
    board = write_board(tmp_path, shared_data)
    found = {
        (row.model, column.protocol, cell.measured.count, cell.measured.n)
        for row in board.rows
        for column, cell in zip(board.columns, row.cells, strict=True)
        if cell is not None and column.metric == "exact match"
    }
    assert {(*names, *counts) for names, counts in STATED.items()} <= found
    assert {model for model, *_ in found} == {model for model, _ in STATED}
    assert OrderCount.of(pair_orders(board)) == (3, 0, 0, 1)
    page = (tmp_path / "site" / "screenspot-v2.html").read_text(encoding="utf-8")
    commands = set(re.findall(r"guieval data import (\S+) .*--out (\S+)", page))
    assert ("result_files/Tongyi-MAI+MAI-UI__local_SSV2.json.gz", "runs/local_SSV2") in commands
    assert str(shared_data) not in page.replace(str(tmp_path), "")
    with pytest.raises(UsageError, match="exists"):
        write_board(tmp_path, shared_data)
