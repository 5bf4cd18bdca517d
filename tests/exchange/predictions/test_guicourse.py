"""GUICourse's results: raw replies whose labels a benchmark has, and what is said where none is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import read_predictions
from guieval.scoring.score import evaluate_run
from tests.rows import every_row

from .files import guicourse_row, write_lines

TAP = "actions:\ntap, <point> 500 970</point>"
LABELLED = ({"type": "CLICK", "point": [500, 1940]}, {"type": "STOP"}, {"type": "PRESS", "button": "BACK"})
STEPS = [{"screenshot": f"{n}.png", "screenshot_size": [1000, 2000], "action": each} for n, each in enumerate(LABELLED)]
LABELS = {"episode_id": "10270", "instruction": "What is the capital of Brazil?", "frame": "pixels", "steps": STEPS}


def files(folder: Path, *replies: str) -> Path:
    """A file of replies to the steps of an episode, in the format that GUICourse publishes, beside the labels."""
    write_lines(folder / "episodes.jsonl", [LABELS])
    rows = [guicourse_row(reply, f"uid_episode_10270_step_{index:02}") for index, reply in enumerate(replies)]
    file = folder / "minicpm_guiagent_smartphone.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file


@every_row(
    ("uid", "episode", "step"),
    [
        ("uid_episode_10270193012375700035_step_01", "10270193012375700035", 1),
        ("uid_record_03567_step_00", "03567", 0),
        ("uid_image_950c428d-6548-4b06-80bd-665ddc069ebe_qa_01", "image_950c428d-6548-4b06-80bd-665ddc069ebe_qa_01", 0),
        ("uid_img_C4web50k-3_275496228-split-4_text2bbox_00", "img_C4web50k-3_275496228-split-4_text2bbox_00", 0),
    ],
)
def test_a_uid_names_the_step(uid: str, episode: str, step: int, tmp_path: Path) -> None:
    (row,) = read_predictions(write_lines(tmp_path / "f.jsonl", [guicourse_row(TAP, uid)])).rows
    assert (row.episode_id, row.step_index, row.response, row.task, row.benchmark) == (episode, step, TAP, None, "")


def test_replies_are_read_by_the_models_adapter_and_judged_by_the_benchmarks_labels(tmp_path: Path) -> None:
    file = files(tmp_path, TAP, "actions:\nanswer, task complete", "actions:\ntap, <point> 1 1</point>")
    run = import_predictions(file, tmp_path / "run", bench="episodes", data=tmp_path, model="minicpm-gui").directory
    assert evaluate_run(run).summary.exact_match.count == evaluate_run(run, reparse=True).summary.exact_match.count == 2


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    file = files(tmp_path, TAP)
    with pytest.raises(UsageError, match="names no benchmark and has no labels: add --bench and --data"):
        import_predictions(file, tmp_path / "run")
    with pytest.raises(UsageError, match="has raw responses; add --model"):
        import_predictions(file, tmp_path / "run", bench="episodes", data=tmp_path)
