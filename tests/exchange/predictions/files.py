"""Rows of each format, as their authors' code writes them, and how a test puts them into a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, Point
from guieval.exchange.predictions import read_predictions
from guieval.steps import StepTaskModel
from tests import made_runs


def write_lines(file: Path, rows: Iterable[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def labelled(**changes: Any) -> dict[str, Any]:
    """An annotation of AgentCPM-GUI and GUIEvalKit: a tap at x = 0.25, y = 0.5 of a 1000 x 2000 screen."""
    row = {"episode_id": "17", "step_id": 2, "episode_length": 4, "image_width": 1000, "image_height": 2000}
    row |= {"image_path": "general/GENERAL-17/GENERAL-17_2.png", "instruction": "open settings"}
    row |= {"result_action_type": 4, "result_action_text": "", "result_touch_yx": "[0.5, 0.25]"}
    row |= {"result_lift_yx": "[0.5, 0.25]", "duration": None, "ui_positions": "[[0.4, 0.2, 0.2, 0.1]]"}
    return row | changes


def agentcpm_row(pred: Any, **changes: Any) -> dict[str, Any]:
    return labelled(category="general", pred=pred) | changes


def kit_row(prediction: Any, **changes: Any) -> dict[str, Any]:
    own = {"dataset": "aitz", "split": "test", "subset": "general", "target_action": "CLICK", "pred_action": None}
    return labelled(**own, prediction=prediction, response="...") | changes


TYPING = {"result_action_type": 3, "result_action_text": "hello", "result_touch_yx": "[-1.0, -1.0]"}
SWIPING_UP = {"result_touch_yx": "[0.7, 0.5]", "result_lift_yx": "[0.3, 0.5]"}


def atlas_row(pred: Any, image: str = "/data/screenshots/episode_140_screenshot_1.png", **changes: Any) -> dict[str, Any]:
    question = "\nScreenshot: <image>\nTask: read a book You need to: open it\nHistory: \nNone\n"
    answer = "thoughts:\nopen it\nactions:\nCLICK <point>[[500,250]]</point>"
    turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
    return {"id": 1, "image": image, "conversations": turns, "pred": pred} | changes


def kairos_row(step: int, answer: str, label: str, **changes: Any) -> dict[str, Any]:
    shown = {"task": "play a song", "image_path": f"/data3/dataset/cloud_music/images/1736629663.539_{step}.png", "now_step": 0}
    return shown | {"osatlas_action": answer, "teacher_action": label, "score": 5, "success": False} | changes


def sspro_row(pred: Any, **changes: Any) -> dict[str, Any]:
    row = {"img_path": "./images/word_macos/shot.png", "group": "Office", "platform": "macos", "application": "word"}
    row |= {"lang": "en", "instruction_style": "instruction", "prompt_to_evaluate": "bold"}
    row |= {"gt_type": "positive", "ui_type": "icon"}
    answer = {"pred": pred, "raw_response": "", "bbox": [100, 200, 300, 400], "correctness": "correct"}
    return {**row, "task_filename": "word_macos", **answer} | changes


def mai_ui_row(pred: Any, **changes: Any) -> dict[str, Any]:
    row = {"img_filename": "word_macos/shot.png", "bbox": [100, 200, 300, 400], "instruction": "bold", "instruction_cn": ""}
    row |= {"id": "word_macos_5", "img_size": [1000, 2000], "ui_type": "icon"}
    return {**row, "raw_response": "", "pred": pred, "correctness": "correct"} | changes


def se_gui_row(pred: Any, **changes: Any) -> dict[str, Any]:
    row = {"image": "word_macos/shot.png", "question": "bold", "ground_truth": [0.1, 0.1, 0.3, 0.2]}
    return {**row, "model_output": "", "extracted_answer": pred, "correct": 1} | changes


def mobilepilot_row(pred: Any, **changes: Any) -> dict[str, Any]:
    row = {"img_filename": "shot.png", "instruction": "bold", "image_width": 1000, "image_height": 2000}
    row |= {"target_bbox_xyxy": [100, 200, 300, 400], "prediction_point": pred, "config": "raw", "correct": True}
    return row | changes


BOX = [100.0, 100.0, 300.0, 200.0]
"""Of the rows here, in thousandths of their image of 1000 x 2000 pixels."""
TARGET = Click(point=Point(200.0, 150.0))


def grounding_step(name: str, box: list[float] = BOX, action: Action = TARGET, **changes: Any) -> StepTaskModel:
    """A step of ScreenSpot-Pro that those rows answer."""
    about = {"benchmark": "screenspot-pro", "dataset": "screenspot-pro", "setting": "grounding", "instruction": "bold"}
    shown = {"screenshot": "images/word_macos/shot.png", "screenshot_size": (1000, 2000)}
    targets = [] if action.type == "STOP" else [box]
    return made_runs.step(action, episode=name, **{**about, **shown, "targets": targets, **changes})


def answered_steps(file: Path, steps: Iterable[StepTaskModel] = ()) -> list[tuple[StepTaskModel, Action | None]]:
    """The steps of a file that holds them, with the answer to each."""
    rows = read_predictions(file, steps=steps).rows
    return [(row.task, row.action) for row in rows if row.task is not None]


def judged_row(task: int = 108, status: str = "success", **changes: Any) -> dict[str, Any]:
    """A task that WebArena-Verified's evaluator has judged."""
    score, reason = (1.0, "") if status == "success" else (0.0, "agent_response_invalid_format")
    row = {"task_id": task, "intent": "Count the orders by month", "sites": ["shopping_admin"], "task_type": "retrieve"}
    row |= {"hard": True, "status": status, "score": score, "object": True, "reason": reason}
    return row | {"webarena_verified": "1.2.3", "data": "d652", "evaluator": "35c3"} | changes


def guicourse_row(pred: str, uid: str = "uid_episode_10270_step_00", **changes: Any) -> dict[str, Any]:
    prompt = "Your Task\nWhat is the capital of Brazil?\nGenerate next actions to do this task."
    row = {"uid": uid, "image_id": uid, "image_size": "", "prompt": prompt, "pred": pred, "task_name": "task2action"}
    return row | {"string_format": "CSV_String", "position_format": "related_version1"} | changes


def lmms_row(answer: str, **changes: Any) -> dict[str, Any]:
    """A line of lmms-eval's samples of screenspot_pro, as ``evaluation_tracker.py`` of 75571cf leaves it."""
    record = {"correct": True, "ui_type": "icon"}
    row = {"doc_id": 0, "target": "bold", "filtered_resps": answer, "token_counts": [None], "doc_hash": "4f1c"}
    return row | {"screenspot_pro_action_acc": record, "input": "Identify the UI element\nInstruction: bold"} | changes


def scope_row(point: str, **changes: Any) -> dict[str, Any]:
    """A line of EvalScope's reviews of screenspot_pro, as ``ReviewResult`` of fde259d writes it."""
    about = {"id": "word_macos_5", "sent_size": [1000, 2000], "bbox_norm": [0.1, 0.1, 0.3, 0.2], "ui_type": "icon"}
    said = [{"role": "user", "content": [{"type": "image", "image": "data:"}, {"type": "text", "text": "Identify"}]}]
    score = {"value": {"acc": 1.0}, "extracted_prediction": point, "prediction": f"Answer: {point}"}
    row = {"index": 0, "target": "[0.1, 0.1, 0.3, 0.2]", "messages": said}
    return row | {"sample_score": {"score": score, "sample_id": 0, "sample_metadata": about}} | changes


def kit_table_row(prediction: str, **changes: Any) -> dict[str, Any]:
    """A row of VLMEvalKit's table of ScreenSpot_Pro (e8e78f0): the data set's columns and the prediction."""
    row = {"index": 1, "image_path": "word_macos/shot.png", "question": "bold", "bbox": "[100, 200, 300, 400]"}
    return row | {"ui_type": "icon", "category": "Office", "application": "word", "prediction": prediction} | changes
