"""A folder of something else, however much it looks like a benchmark's, is refused with what was expected and how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.registry import load_benchmark
from tests.rows import every_row

HASH = "0cf94392854b6b7224b63b93d7c8871a"


@every_row(
    ("name", "expected", "strays"),
    [
        ("agentnetbench", r"holds no <task>\.json", ["settings.json"]),
        ("aitw", r"holds no aitw_data_test\.json", ["aitw_data.json", "data/aitw_data_test.json"]),
        (
            "aitz",
            "holds no <subset>.*AiTZ comes from",
            ["notes.txt", "test/general/GENERAL-1/x.png", "7/7.json", "train/other/A-1/A-1.json"],
        ),
        ("amex", "holds no instruction_anno", ["instruction_anno/notes.txt", "element_anno/1.json", "7.json"]),
        (
            "androidcontrol",
            r"no AndroidControl data.*<episode>\.json.*android_control_evaluation_std\.jsonl",
            ["notes.txt", "7/8.json", "images/7_0.png"],
        ),
        ("androidcontrol-curated", r"holds no android_control_high_point\.json", []),
        ("cagui", "holds no CAGUI_agent/domestic", ["domestic/notes.txt", "7/7.json", f"domestic/{HASH}/other.json"]),
        ("cagui-grounding", r"holds no .*\.jsonl", []),
        ("mind2web", "holds no cross_", []),
        ("mmbench-gui-l2", r"holds no L2_annotations\.json", []),
        ("mobi-bench", r"holds no <task>/0_answers\.json", []),
        ("onekey", "holds no <case>/ref.json", ["case/0.png"]),
        ("osworld-g-refined", "holds no benchmark/OSWorld-G_refined", ["OSWorld-G.json"]),
        ("screenspot", "holds no screenspot_desktop.*comes from", []),
        ("screenspot-pro", "holds no annotations/<application>", ["word.json"]),
        ("screenspot-v2", "holds no screenspot_desktop.*comes from", []),
        ("ui-i2e-bench", r"holds no annotations\.jsonl", []),
        ("ui-vision", r"holds no element_grounding_<subset>\.json", []),
        ("ui-r1", "", ["ac_test.json"]),
        ("venusbench-gd", r"holds no instruction/<task>\.json", []),
    ],
)
def test_another_folder_is_refused(tmp_path: Path, name: str, expected: str, strays: list[str]) -> None:
    for number, stray in enumerate([None, *strays]):
        root = tmp_path / str(number)
        root.mkdir()
        if stray is not None:
            (root / stray).parent.mkdir(parents=True, exist_ok=True)
            (root / stray).write_text("[]")
        with pytest.raises(UsageError, match=rf"{expected}.*guieval prepare {name}"):
            load_benchmark(name, root).index()
