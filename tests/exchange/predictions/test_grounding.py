"""Rows of grounding results find the step that they answer, whatever a copy has changed in them, and its label decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point, Stop
from guieval.errors import DataError, UsageError
from guieval.exchange.predictions import read_predictions
from tests.rows import every_row

from .files import TARGET, grounding_step, mai_ui_row, mobilepilot_row, se_gui_row, sspro_row, write_lines

TWINS = [grounding_step("word_macos_4"), grounding_step("word_macos_5")]


def test_rows_are_distinguished_by_their_id_and_more_rows_than_steps_are_answers_given_twice(tmp_path: Path) -> None:
    rows = [sspro_row([200, 300], id="word_macos_5"), sspro_row([900, 900], id="word_macos_4")]
    read = read_predictions(write_lines(tmp_path / "f.jsonl", rows), steps=TWINS)
    assert [(row.episode_id, row.action) for row in read.rows] == [
        ("word_macos_5", Click(point=Point(200.0, 150.0))),
        ("word_macos_4", Click(point=Point(900.0, 450.0))),
    ]
    rows = [sspro_row([200, 300])] * 3
    read = read_predictions(write_lines(tmp_path / "f.jsonl", rows), steps=TWINS)
    assert (len(read.rows), read.repeated) == (2, 1)
    with pytest.raises(DataError, match="word_macos_4#0 is answered twice"):
        read_predictions(write_lines(tmp_path / "g.jsonl", [*rows, sspro_row([1, 1])]), steps=TWINS)


@pytest.mark.parametrize("ids", [({}, {}), ({"id": "a"}, {"id": "b"}), ({"id": 1}, {"id": 2})])
def test_rows_that_share_all_answer_their_steps_in_order(tmp_path: Path, ids: tuple[dict[str, Any], ...]) -> None:
    for second in ([200, 300], [900, 900]):  # the same answer twice is two answers too
        rows = [sspro_row([200, 300], **ids[0]), sspro_row(second, **ids[1])]
        read = read_predictions(write_lines(tmp_path / "f.jsonl", rows), steps=TWINS)
        assert [row.episode_id for row in read.rows] == ["word_macos_4", "word_macos_5"]
        assert read.repeated == 0


@every_row(
    ("row", "screenshot"),
    [
        *[("/root/osworldG_imgs/x.png", "images/x.png"), ("images/x.png", "x.webp"), ("x.png", "benchmark/images/x.png")],
        *[("D:\\data\\x.png", "images/x.png"), ("screenspotv2_image/pc_x.png", "images/desktop/x.png")],
    ],
)
def test_folders_and_suffixes_of_images_do_not_decide(tmp_path: Path, row: str, screenshot: str) -> None:
    file = write_lines(tmp_path / "f.jsonl", [sspro_row([1, 2], img_path=row)])
    assert read_predictions(file, steps=[grounding_step("a", screenshot=screenshot)]).rows[0].episode_id == "a"


def test_folders_boxes_and_instructions_decide_the_step_and_must_be_of_one(tmp_path: Path) -> None:
    steps = [grounding_step("a", screenshot="images/excel_macos/shot.png"), grounding_step("b")]
    assert read_predictions(write_lines(tmp_path / "f.jsonl", [sspro_row([1, 2])]), steps=steps).rows[0].episode_id == "b"
    steps = [grounding_step("a", [0.0, 0.0, 9.0, 9.0]), grounding_step("b")]
    assert read_predictions(write_lines(tmp_path / "f.jsonl", [sspro_row([1, 2])]), steps=steps).rows[0].episode_id == "b"
    file = write_lines(tmp_path / "g.jsonl", [sspro_row([1, 2], bbox=[1, 2, 3, 4])])
    with pytest.raises(DataError, match=r"field bbox: \[1, 2, 3, 4\] is not the box of any step"):
        read_predictions(file, steps=steps)
    file = write_lines(tmp_path / "f.jsonl", [sspro_row([1, 2], id="a", prompt_to_evaluate="make it bold")])
    with pytest.raises(DataError, match="'make it bold' is not the instruction of screenspot-pro's step 'a': 'bold'"):
        read_predictions(file, steps=[grounding_step("a")])


def test_another_box_is_reported_and_the_benchmarks_own_decides(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "f.jsonl", [sspro_row([200, 300], bbox=[1, 2, 3, 4]), sspro_row([200, 300])])
    read = read_predictions(file, steps=TWINS)
    assert [(row.episode_id, row.differs) for row in read.rows] == [("word_macos_4", "bbox [1, 2, 3, 4]"), ("word_macos_5", "")]
    assert [row.episode_id for row in read.differing] == ["word_macos_4"]
    assert read.rows[0].task == TWINS[0]


def test_polygons_and_targets_that_are_not_there_are_read(tmp_path: Path) -> None:
    corners = [[100.0, 100.0], [300.0, 100.0], [200.0, 200.0]]
    steps = [
        grounding_step("polygon", extras={"polygon": corners}),
        grounding_step("nothing", action=Stop(status="impossible"), instruction="fly"),
        grounding_step("other", extras={"polygon": corners}, instruction="jump"),
    ]
    rows = [
        sspro_row([200, 300], bbox=[100, 200, 400, 400, 200, 400]),  # as MAI-UI converts it: the first corner is in the second
        sspro_row([200, 300], bbox=[0, 0, 0, 0], prompt_to_evaluate="fly"),
        sspro_row([200, 300], bbox=[100, 200, 300, 200, 250, 400], prompt_to_evaluate="jump"),
    ]
    read = read_predictions(write_lines(tmp_path / "f.jsonl", rows), steps=steps)
    found = [(row.episode_id, bool(row.differs)) for row in read.rows]
    assert found == [("polygon", False), ("nothing", False), ("other", True)]


@pytest.mark.parametrize("row", [mai_ui_row([200, 300]), se_gui_row([0.2, 0.15]), mobilepilot_row([200, 300])])
def test_other_evaluations_rows_answer_the_same_step(tmp_path: Path, row: dict[str, Any]) -> None:
    form = "f.json" if "question" in row else "f.jsonl"
    file = tmp_path / form
    file.write_text(json.dumps({"accuracy": 100.0, "results": [row]}, indent=2) if form == "f.json" else json.dumps(row))
    (answer,) = read_predictions(file, steps=[grounding_step("word_macos_5")]).rows
    assert (answer.episode_id, answer.action, answer.differs) == ("word_macos_5", TARGET, "")
    with pytest.raises(UsageError, match="add --data, the benchmark's data folder, and --bench"):
        read_predictions(file)


def test_a_point_is_read_in_the_size_that_its_row_states(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "f.jsonl", [mai_ui_row([100, 150], img_size=[500, 1000], bbox=[50, 100, 150, 200])])
    (answer,) = read_predictions(file, steps=[grounding_step("a")]).rows
    assert (answer.action, answer.differs) == (TARGET, "")
