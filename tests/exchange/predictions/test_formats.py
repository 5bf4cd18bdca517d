"""Each format: whose step a row is, what its answer means, and what is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Boxes, Click, LongPress, Point, Scroll, Stop, Type, Unsupported
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.exchange.predictions import Predicted, read_predictions
from guieval.steps import StepTaskModel
from tests.rows import every_row

from . import files


def read_one(tmp_path: Path, row: dict[str, Any], **options: Any) -> Predicted:
    """The only answer of a file with one row, whose format its looks must tell."""
    (answer,) = read_predictions(files.write_lines(tmp_path / "one.jsonl", [row]), **options).rows
    return answer


def the_task(answer: Predicted) -> StepTaskModel:
    assert answer.task is not None
    return answer.task


# --- AgentCPM-GUI and GUIEvalKit --------------------------------------------------------------------------------------


def test_an_agentcpm_row_names_our_step_and_holds_its_label(tmp_path: Path) -> None:
    answer = read_one(tmp_path, files.agentcpm_row({"POINT": [260, 480], "thought": "."}))
    assert answer.key == ("aitz", "general", "17", 2)
    assert answer.action == Click(point=Point(260.0, 480.0))
    task = the_task(answer)
    assert task.action == Click(point=Point(250.0, 500.0))  # fractions, y first
    assert task.screenshot_size == (1000, 2000)
    assert task.elements.array.tolist() == [pytest.approx([200.0, 400.0, 300.0, 600.0])]  # [y, x, height, width] fractions
    assert (task.episode_length, task.dataset) == (4, "aitz")


def test_agentcpm_swipes_are_the_fingers_odysseys_steps_the_images_and_kept_text_is_unparseable(tmp_path: Path) -> None:
    task = the_task(read_one(tmp_path, files.agentcpm_row(None, **files.SWIPING_UP)))
    assert task.action == Scroll(point=Point(500.0, 700.0), direction="up")
    assert task.extras["path"] == [[500.0, 700.0], [500.0, 300.0]]
    row = files.agentcpm_row({"PRESS": "BACK"}, category="odyssey", step_id=0, image_path="data/screenshots/0012_7.png")
    answer = read_one(tmp_path, row)
    assert answer.key == ("gui-odyssey", "", "17", 7)
    assert the_task(answer).episode_length == 8
    answer = read_one(tmp_path, files.agentcpm_row('{"POINT":[1,'))
    assert answer.action is None
    assert "not a JSON object" in answer.reason


@pytest.mark.parametrize(("lift", "type_"), [(0.04, "CLICK"), (0.0401, "SCROLL")])
def test_touch_and_lift_within_a_twenty_fifth_are_a_tap(tmp_path: Path, lift: float, type_: str) -> None:
    row = files.agentcpm_row(None, result_touch_yx="[0.0, 0.5]", result_lift_yx=f"[{lift}, 0.5]")
    assert the_task(read_one(tmp_path, row)).action.type == type_


@pytest.mark.parametrize(
    ("category", "benchmark", "subset"),
    [("web_shopping", "aitz", "web_shopping"), ("domestic", "cagui", "domestic"), ("android_control", "androidcontrol", "")],
)
def test_the_benchmark_follows_from_the_folder(tmp_path: Path, category: str, benchmark: str, subset: str) -> None:
    answer = read_one(tmp_path, files.agentcpm_row({"POINT": [1, 2]}, category=category, episode_id=17))
    assert answer.key == (benchmark, subset, "17", 2)


def test_a_guievalkit_row_may_open_or_input_and_the_low_setting_is_a_benchmark_of_its_own(tmp_path: Path) -> None:
    joint = {"INPUT": {"point": [260, 480], "text": "hello"}}
    assert read_one(tmp_path, files.kit_row(joint)).action == Click(point=Point(260.0, 480.0))
    assert read_one(tmp_path, files.kit_row(joint, **files.TYPING)).action == Type(text="hello")
    assert read_one(tmp_path, files.kit_row(None)).action is None
    row = files.kit_row({"STATUS": "finish"}, dataset="androidcontrol_low", subset="android_control", low_instruction="tap it")
    answer = read_one(tmp_path, row)
    assert answer.key == ("androidcontrol-low", "", "17", 2)
    assert (the_task(answer).setting, the_task(answer).low_level_instruction) == ("low", "tap it")
    assert answer.action == Stop(status="finish")


@every_row(
    ("change", "field"),
    [
        *[({"category": "domestc"}, "category.*'domestic'"), ({"step_id": "2"}, "step_id")],
        *[({"result_action_type": 9}, "result_action_type"), ({"result_touch_yx": "[1.5, 0.2]"}, "result_touch_yx")],
        *[({"ui_positions": "[[1, 2]]"}, "ui_positions"), ({"image_width": 0}, "image_width")],
        *[({"instruction": None}, "instruction"), ({"steps": []}, "steps")],
    ],
)
def test_a_damaged_row_is_reported_by_line_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    file = files.write_lines(
        tmp_path / "all.jsonl", [files.agentcpm_row({"POINT": [1, 2]}, step_id=0), files.agentcpm_row(None, **change)]
    )
    with pytest.raises(DataError, match=f"all.jsonl, line 2, field {field}"):
        read_predictions(file)
    read = read_predictions(file, skip_damaged=True)
    assert (len(read.rows), len(read.skipped)) == (1, 1)


def test_the_rows_kept_of_lz_dong(tmp_path: Path) -> None:
    row = {"benchmark": "CAGUI (chinese_app_test)", "model": "m", "raw_response": None}
    rows = [
        row | {"ground_truth": files.labelled(), "source_parsed_prediction": {"POINT": [260, 480]}},
        row | {"ground_truth": files.labelled(step_id=3), "source_parsed_prediction": None},
    ]
    read = read_predictions(files.write_lines(tmp_path / "steps.jsonl", rows))
    assert (read.format, read.unanswered) == ("lz-dong", 1)  # an answer that was not kept is not a wrong answer
    assert read.rows[0].key == ("cagui", "domestic", "17", 2)


# --- OS-Atlas and OS-Kairos -------------------------------------------------------------------------------------------


def test_an_os_atlas_row_is_named_by_its_image(tmp_path: Path) -> None:
    answer = read_one(tmp_path, files.atlas_row("thoughts:\n.\nactions:\nSCROLL [DOWN]<|im_end|>"))
    assert answer.key == ("androidcontrol-low", "", "140", 1)
    assert answer.action == Scroll(point=Point(500.0, 500.0), direction="up")
    task = the_task(answer)
    assert task.action == Click(point=Point(500.0, 250.0))
    assert (task.instruction, task.low_level_instruction, task.setting) == ("read a book", "open it", "low")
    assert (task.extras["screen_size_from"], task.episode_length) == ("assumed", 2)


def test_os_atlas_scrolls_are_the_fingers_calls_need_a_label_and_steps_need_the_conversation(tmp_path: Path) -> None:
    row = files.atlas_row("actions:\nSCROLL [DOWN]", image="/data/gui_odyssey/screenshots/9187_0.png")
    answer = read_one(tmp_path, row)
    assert (answer.episode_id, answer.step_index) == ("9187", 0)
    assert answer.action == Scroll(point=Point(500.0, 500.0), direction="down")
    assert "actions:" in read_one(tmp_path, files.atlas_row("CLICK <point>[[1,2]]</point>")).reason
    assert read_one(tmp_path, files.atlas_row(None)).action is None
    row = files.atlas_row("actions:\nWAIT")
    del row["conversations"]
    answer = read_one(tmp_path, row)
    assert (answer.benchmark, answer.task) == ("androidcontrol", None)


def test_kairos_steps_are_the_images(tmp_path: Path) -> None:
    call = "CLICK <point>[[384,362]]</point>"
    rows = [
        files.kairos_row(0, call, call),
        files.kairos_row(3, "hm", "LONG_PRESS <point>[[1,2]]</point>"),
        files.kairos_row(0, call, call),
    ]
    file = tmp_path / "kairos.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    read = read_predictions(file)
    assert (read.format, len(read.rows), read.repeated) == ("kairos", 2, 1)
    assert [row.key for row in read.rows] == [("os-kairos", "", "1736629663.539", step) for step in (0, 3)]
    assert [the_task(row).episode_length for row in read.rows] == [4, 4]
    assert read.rows[1].action is None
    assert the_task(read.rows[1]).action == LongPress(point=Point(1.0, 2.0))
    assert the_task(read.rows[0]).groups == {"app": "cloud_music", "critic_score": "5"}


# --- ScreenSpot-Pro ---------------------------------------------------------------------------------------------------


def details(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"details": rows, "metrics": {}}, indent=4), encoding="utf-8")
    return file


def test_screenspot_pro_rows_with_their_images_size_are_steps(tmp_path: Path) -> None:
    size = {"img_size": [1000, 2000]}
    file = details(
        tmp_path, files.sspro_row([100, 400], **size), files.sspro_row([99.9, 300], **size), files.sspro_row(None, **size)
    )
    read = read_predictions(file)
    assert [row.episode_id for row in read.rows] == ["word_macos#0", "word_macos#1", "word_macos#2"]
    assert read.rows[0].action == Click(point=Point(100.0, 200.0))
    assert the_task(read.rows[0]).targets == Boxes([[100.0, 100.0, 300.0, 200.0]])
    evaluator = ActionEvaluator("sspro-official")
    verdicts = [evaluator.evaluate(task, action).verdict for task, action in files.answered_steps(file)]
    assert verdicts == ["right", "wrong", "unparseable"]


BOXES = {"word_macos_4": [0.0, 0.0, 9.0, 9.0], "word_macos_5": [100.0, 100.0, 300.0, 200.0]}


def test_screenspot_pros_own_rows_are_found_among_the_benchmarks_steps(tmp_path: Path) -> None:
    steps = [files.grounding_step(name, box, extras={"instruction_cn": "加粗"}) for name, box in BOXES.items()]
    answer = read_predictions(details(tmp_path, files.sspro_row([500, 500])), steps=steps).rows[0]
    assert (answer.episode_id, answer.action) == ("word_macos_5", Click(point=Point(500.0, 250.0)))
    chinese = details(tmp_path, files.sspro_row([500, 500], prompt_to_evaluate="加粗"))
    assert read_predictions(chinese, steps=steps).rows[0].episode_id == "word_macos_5"


@every_row(
    ("change", "field"),
    [
        ({"bbox": [1, 2, 3]}, "bbox"),
        ({"prompt_to_evaluate": "italic"}, "prompt_to_evaluate: 'italic' is not the instruction of any step"),
        ({"img_path": "other.png"}, "img_path"),
        ({"pred": [1]}, "pred"),
        ({"gt_type": "negative"}, "gt_type"),
    ],
)
def test_a_row_of_no_step_is_damaged(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError, match=f"row details.0, field {field}"):
        read_predictions(details(tmp_path, files.sspro_row([1, 2]) | change), steps=[files.grounding_step("a")])


def test_pixels_need_a_size_and_a_point_off_the_image_is_a_click_without_a_known_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data"):
        read_predictions(details(tmp_path, files.sspro_row([1, 2])))
    answer = read_predictions(details(tmp_path, files.sspro_row([1001, 2], img_size=[1000, 2000]))).rows[0]
    assert isinstance(answer.action, Unsupported)
    assert answer.action.known == "CLICK" and "outside" in (answer.action.problem or "")


# --- UI-S1 and our own ------------------------------------------------------------------------------------------------


def test_ui_s1_results_are_refused_with_their_own_figures(tmp_path: Path) -> None:
    rows = [
        {"goal": "a", "num_steps": 4, "task_success": False, "final_step_id": 1},
        {"goal": "b", "num_steps": 2, "task_success": True, "final_step_id": 2},
    ]
    with pytest.raises(UsageError, match=r"no answers.*progress is 0\.6250 and success 0\.5000 over 2 episodes"):
        read_predictions(files.write_lines(tmp_path / "model.jsonl", rows))


def test_our_own_lines_are_read(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"subset": "general", "episode_id": "1", "step_index": 0, "action": {"type": "CLICK", "point": [500, 250]}},
        {"episode_id": "1", "step_index": 1, "action": None},
        {"episode_id": "1", "step_index": 2, "response": "Action: wait()"},
    ]
    read = read_predictions(files.write_lines(tmp_path / "own.jsonl", rows))
    assert [row.key for row in read.rows] == [("", "general", "1", 0), ("", "", "1", 1), ("", "", "1", 2)]
    assert (read.rows[2].response, read.unparseable.total()) == ("Action: wait()", 1)


OWN = {"episode_id": "1", "step_index": 0, "action": None}
TAP = files.guicourse_row("actions:\ntap, <point> 500 970</point>")
BARE = {name: value for name, value in files.atlas_row("").items() if name != "pred"}


@every_row(
    ("row", "field"),
    [
        *[(OWN | {"response": ""}, "action"), (OWN | {"step_index": -1}, "step_index")],
        *[(OWN | {"action": {"type": "CLICK", "point": [1, 1001]}}, "action"), (OWN | {"not": 1}, "not")],
        (files.kairos_row(0, "WAIT", "hm"), "teacher_action"),  # a damaged label is no unparseable answer
        (BARE, "pred: is missing"),  # test data without answers
        (TAP | {"position_format": "absolute"}, "position_format: expected related_version1, got 'absolute'"),
        *[(TAP | {"uid": "uid_"}, "uid: is empty"), (TAP | {"uid": 3}, "uid: expected a string")],
        (TAP | {"pred": None}, "pred: expected a string"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, row: dict[str, Any], field: str) -> None:
    with pytest.raises(DataError, match=rf"one\.jsonl, line 1, field {field}"):
        read_one(tmp_path, row)
