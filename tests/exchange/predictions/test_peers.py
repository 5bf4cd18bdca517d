"""Files of general harnesses and of fields that the user names: the same answers give the same points, whatever the form."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Stop
from guieval.errors import DataError, UsageError
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import Predicted, read_predictions
from guieval.exchange.predictions.mapped import parse_mapping
from guieval.journal import RunFolder
from tests.json_values import read_json
from tests.rows import every_row

from .files import TARGET, grounding_step, kit_table_row, lmms_row, scope_row, write_lines

STEPS = [grounding_step("word_macos_5")]
PREDICTION = {"choices": [{"message": {"role": "assistant", "content": "At 3, 4.\n\nAnswer: [200, 150]"}}]}
REC = {"instruction": "bold", "pred": [0.1, 0.1, 0.3, 0.2], "ann_id": "shot.png", "bbox": [0.1, 0.1, 0.3, 0.2]}


def answered_target(answer: Predicted) -> bool:
    """Whether it is a click on the target of the only step, up to the last digit."""
    assert isinstance(answer.action, Click), answer
    near = answer.action.point == pytest.approx(TARGET.point)
    return near and (answer.episode_id, answer.differs) == ("word_macos_5", "")


@every_row(
    "row",
    [
        lmms_row("[0.2, 0.15]"),
        lmms_row("(200, 300)"),  # pixels of 1000 x 2000
        lmms_row("the box is [0.1, 0.1, 0.3, 0.2]", target="[0.1, 0.1, 0.3, 0.2]", screenspot_IoU=REC),
        lmms_row("[0.2, 0.15]", resps=["<think>hm</think>[0.2, 0.15]"], filtered_resps=["[0.2, 0.15]"]),
        scope_row("[0.2, 0.15]"),
        {**{name: value for name, value in scope_row("").items() if name != "sample_score"}, "model_output": PREDICTION}
        | {"metadata": scope_row("")["sample_score"]["sample_metadata"]},
        kit_table_row("pyautogui.click(x=0.2, y=0.15)"),
        kit_table_row("pyautogui.click(x=200, y=300)"),
    ],
)
def test_the_point_is_read_as_the_harness_reads_it(row: dict[str, Any], tmp_path: Path) -> None:
    (answer,) = read_predictions(write_lines(tmp_path / "f.jsonl", [row]), steps=STEPS).rows
    assert answered_target(answer) and answer.raw


def test_among_steps_with_one_instruction_lmms_evals_doc_id_decides(tmp_path: Path) -> None:
    twins = [grounding_step(name, box) for name, box in (("a", [0.0, 0.0, 9.0, 9.0]), ("b", [10.0, 10.0, 30.0, 30.0]))]
    rows = [lmms_row("[-1, -1]", doc_id=1), lmms_row("nowhere", doc_id=0)]
    one, other = read_predictions(write_lines(tmp_path / "f.jsonl", rows), steps=twins).rows
    assert (one.episode_id, one.action) == ("b", Stop(status="impossible"))
    assert (other.episode_id, other.reason) == ("a", "the response states no place")
    with pytest.raises(DataError, match="2 steps have this instruction, and the row does not say which"):
        read_predictions(write_lines(tmp_path / "g.jsonl", [lmms_row("[0, 0]", doc_id=9)]), steps=twins)
    with pytest.raises(UsageError, match="add --data"):
        read_predictions(tmp_path / "g.jsonl")


def test_a_table_of_excel_and_a_review_by_itself(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    row = kit_table_row("pyautogui.click(x=0.2, y=0.15)")
    book.active.append(list(row))
    book.active.append(list(row.values()))
    book.save(tmp_path / "Qwen_ScreenSpot_Pro_Office.xlsx")
    (answer,) = read_predictions(tmp_path / "Qwen_ScreenSpot_Pro_Office.xlsx", steps=STEPS).rows
    assert answered_target(answer)
    (tmp_path / "torn.xlsx").write_bytes((tmp_path / "Qwen_ScreenSpot_Pro_Office.xlsx").read_bytes()[:900])
    with pytest.raises(DataError, match=r"torn\.xlsx: is a damaged \.xlsx file"):
        read_predictions(tmp_path / "torn.xlsx")
    made = import_predictions(write_lines(tmp_path / "s.jsonl", [scope_row("[0.2, 0.15]")]), tmp_path / "run")
    assert (made.benchmark, RunFolder(tmp_path / "run").protocol) == ("screenspot-pro", "sspro-official")


MAP = "id=sample_id,point=prediction_px,box=gt_bbox,frame=pixels"
ROW = {"sample_id": "word_macos_5", "prediction_px": [200, 300], "gt_bbox": [100, 200, 300, 400], "doc": {"wh": "1000x2000"}}


@every_row(
    ("row", "mapping"),
    [
        (ROW, f"{MAP},size=doc.wh"),
        (ROW, "id=sample_id,point=prediction_px,box=gt_bbox,frame=pixels"),
        ({**ROW, "gt_bbox": [100, 200, 200, 200]}, f"{MAP},box_form=xywh"),
        ({**ROW, "prediction_px": "[200, 300]", "gt_bbox": "100, 200, 300, 400"}, MAP),
        (
            {"u": "word_macos_5", "px": 0.2, "py": "0.15", "b": [100, 100, 300, 200]},
            "id=u,x=px,y=py,box=b,frame=0-1,box_frame=0-1000",
        ),
        ({"i": "shot.png", "q": "bold", "a": {"type": "CLICK", "point": [200, 150]}}, "image=i,instruction=q,action=a"),
        ({"i": "shot.png", "q": "bold", "a": [0.1, 0.1, 0.3, 0.2]}, "image=i,instruction=q,point=a,frame=0-1"),
    ],
)
def test_the_user_names_the_fields(row: dict[str, Any], mapping: str, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "f.jsonl", [row])
    (answer,) = read_predictions(file, mapping=parse_mapping(mapping), steps=STEPS).rows
    assert answered_target(answer)
    if "box=" in mapping:
        (alone,) = read_predictions(file, mapping=parse_mapping(mapping)).rows
        assert alone.task is not None and isinstance(alone.action, Click)
        box = alone.task.targets[0]
        assert box.x1 < alone.action.point.x < box.x2 and box.y1 < alone.action.point.y < box.y2


@every_row(
    ("mapping", "words"),
    [
        (
            "id=sampleid,point=prediction_px,frame=pixels",
            "no such field (did you mean 'sample_id'?); its first row has 'sample_id', ",
        ),
        ("id=sample_id,pont=prediction_px", "--map has no 'pont' (did you mean 'point'?)"),
        ("id=sample_id,point=prediction_px,frame=pixel", "frame=pixel: expected one of pixels, 0-1, 0-999, 0-1000"),
        ("id=sample_id,point=prediction_px", "does not say what the numbers are: add frame="),
        ("id=sample_id,box=gt_bbox,frame=pixels", "does not say which field is the answer"),
        ("id=sample_id,x=prediction_px,frame=pixels", "needs both x and y"),
        ("point=prediction_px,frame=pixels", "does not say which step a row answers"),
        ("id", "--map needs NAME=FIELD, separated by commas, got 'id'"),
        ("id=a,id=b", "--map gives 'id' twice"),
    ],
)
def test_a_wrong_mapping_is_one_sentence(mapping: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read_predictions(write_lines(tmp_path / "f.jsonl", [ROW]), mapping=parse_mapping(mapping), steps=STEPS)
    assert words in str(error.value)


def test_a_step_that_a_mapped_row_does_not_name_well(tmp_path: Path) -> None:
    twins = [grounding_step("a", subset="x"), grounding_step("a", subset="y")]
    for row, words in (
        ({"u": "b", "p": [1, 1]}, "has no step 'b'"),
        ({"u": "a", "p": [1, 1]}, "several subsets .*: map subset="),
    ):
        with pytest.raises(DataError, match=words):
            read_predictions(
                write_lines(tmp_path / "f.jsonl", [row]), mapping=parse_mapping("id=u,point=p,frame=0-1"), steps=twins
            )


def test_published_answers_give_one_count_in_every_form(shared_data: Path, tmp_path: Path) -> None:
    """ScreenSpot-Pro's Qwen2.5-VL results, rewritten with fields of unknown names as CSV: 323 right, as they state."""
    file = shared_data / "result_files" / "woodhalloween+ScreenSpot-Pro-GUI-Grounding__qwen25vl.json.gz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    rows = read_json(gzip.decompress(file.read_bytes()))["details"]
    with (tmp_path / "rows.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["shot", "query", "guess", "truth"])
        for row in rows:
            guess = "" if row["pred"] is None else json.dumps(row["pred"])
            table.writerow([row["img_path"], row["prompt_to_evaluate"], guess, json.dumps(row["bbox"])])
    mapping = parse_mapping("image=shot,instruction=query,point=guess,box=truth,frame=pixels")
    labels: dict[str, Any] = {"bench": "screenspot-pro", "data": shared_data / "screenspot_pro_format_annotations"}
    made = import_predictions(tmp_path / "rows.csv", tmp_path / "run", map=mapping, **labels)
    assert (made.answered, made.units) == (1581, 1581)
    assert sum(record.exact for record in RunFolder(tmp_path / "run").steps) == 323
