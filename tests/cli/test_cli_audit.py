"""`guieval audit` of a predictions file: the replies in it are tested under every frame, as a run's are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.scoring.predictions.files import guicourse_row, write_lines


def hits(printed: str) -> dict[str, int]:
    return {fit["name"]: fit["hits"] for fit in json.loads(printed)[0]["fits"]}


def answered(folder: Path, scale: int) -> Path:
    """Sixty taps on small targets, written as ``scale`` parts of the screen."""
    places = [(x, y) for x in range(500, 1000, 50) for y in range(500, 980, 80)]
    shown = {"screenshot": "0.png", "screenshot_size": [1000, 2000]}
    steps = [
        {**shown, "action": {"type": "CLICK", "point": [x, 2 * y]}, "targets": [[x - 0.3, 2 * y - 0.6, x + 0.3, 2 * y + 0.6]]}
        for x, y in places
    ]
    write_lines(folder / "episodes.jsonl", [{"episode_id": "1", "instruction": "tap", "frame": "pixels", "steps": steps}])
    taps = [f"actions:\ntap, <point> {x * scale / 1000:.2f} {y * scale / 1000:.2f}</point>" for x, y in places]
    return write_lines(folder / "replies.jsonl", [guicourse_row(tap, f"uid_episode_1_step_{n}") for n, tap in enumerate(taps)])


@pytest.mark.parametrize(("scale", "best", "other"), [(1000, "0-1000", "0-999"), (999, "0-999", "0-1000")])
def test_replies_of_a_file_show_their_frame(scale: int, best: str, other: str, tmp_path: Path, guieval: CommandLine) -> None:
    command = ("audit", answered(tmp_path, scale), "--bench", "episodes", "--data", tmp_path, "--model", "minicpm-gui")
    done = guieval(*command, "--json")
    assert done.code == (0 if best == "0-1000" else 1)
    found = hits(done.out)
    assert found[best] == 60 and found[other] < 30


def test_mai_uis_grounding_replies_fit_both_scales(shared_data: Path, guieval: CommandLine) -> None:
    file = shared_data / "result_files" / "Tongyi-MAI+MAI-UI__server_SSV2.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    labels = shared_data / "screenspot_pro_format_annotations"
    done = guieval("audit", file, "--bench", "screenspot-v2", "--data", labels, "--model", "mai-ui-8b", "--json")
    found = hits(done.out)
    assert found["0-1000"] == found["0-999"] == 1188 and found["pixels"] == 34


def test_what_reads_the_replies_has_to_be_named(tmp_path: Path, guieval: CommandLine) -> None:
    file = answered(tmp_path, 1000)
    assert "name what reads them" in guieval.sentence("audit", file, "--bench", "episodes", "--data", tmp_path)
    assert "--bench is for a file of predictions" in guieval.sentence("audit", tmp_path, "--bench", "episodes")
