"""Predictions files of every format: answers that can be scored and journalled, or one sentence about what is wrong."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from guieval.actions import Click, Point
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.exchange.predictions import FORMATS, read_predictions
from guieval.exchange.predictions.rows import KEYS, Row, open_rows
from guieval.journal.lines import read_line, write_line
from guieval.steps import Sample, StepRecord, StepTaskModel
from tests.exchange.predictions import files as rows

from . import mutations
from .engine import Target, Wrong, sentence

_KIT = {"ACTION": {"action_type": "CLICK", "x": 0.25, "y": 0.5}}
_MADE: tuple[list[dict[str, Any]], ...] = (
    [rows.agentcpm_row({"POINT": [250, 500]}), rows.agentcpm_row({"TYPE": "hello"}, step_id=3, **rows.TYPING)],
    [rows.agentcpm_row({"POINT": [500, 700], "to": "up"}, **rows.SWIPING_UP)],
    [rows.kit_row(_KIT), rows.kit_row({"POINT": [250, 500]}, step_id=3)],
    [rows.atlas_row("actions:\nCLICK <point>[[500,250]]</point>"), rows.atlas_row("TYPE [a]", "/d/episode_1_screenshot_2.png")],
    [rows.kairos_row(0, *["CLICK <point>[[1,2]]</point>"] * 2), rows.kairos_row(1, "WAIT", "COMPLETE")],
    [rows.sspro_row([200, 300], img_size=[1000, 2000])],
    [rows.mai_ui_row([0.2, 0.15])],
    [rows.se_gui_row([0.2, 0.15])],
    [rows.mobilepilot_row([200, 300])],
    [rows.guicourse_row("actions:\ntap, <point> 500 970</point>")],
    [
        {"subset": "", "episode_id": "1", "step_index": 0, "response": "click(start_box='(1,2)')"},
        {"subset": "", "episode_id": "1", "step_index": 1, "action": Click(point=Point(1.0, 2.0)).model_dump(mode="json")},
    ],
)


class PredictionFiles(Target):
    name: ClassVar[str] = "prediction-files"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._folder = folder
        self._material: list[list[Any]] = list(_MADE)
        self._judge = ActionEvaluator("guievalkit")
        found = [] if real is None else [real / "kairos_test" / "Kairos_test_inputscore.json.gz", *real.glob("*/*.json*")]
        for file in sorted(found):
            if file.parent.name in ("kairos_test", "lz_dong_steps", "result_files", "os_atlas_eval") and file.is_file():
                self._material += _first_rows(file)

    def check(self, dice: Random) -> None:
        material: Any = dice.choice(self._material)
        name = dice.choice(("p.jsonl", "p.json", "p.jsonl.gz", "p.json.gz"))
        if "jsonl" not in name and dice.random() < 0.5:
            material = {dice.choice(KEYS): material}
        whole = mutations.written(dice, material, lines="jsonl" in name)
        file = self._folder / name
        file.write_bytes(mutations.file(dice, gzip.compress(whole, 1) if name.endswith(".gz") else whole, name))
        format = dice.choice((None, None, *FORMATS))
        try:
            read = read_predictions(file, format, skip_damaged=dice.random() < 0.3)
        except (DataError, UsageError) as error:
            sentence(error)
            return
        for left_out in read.skipped:
            sentence(left_out)
        for row in read.rows:
            if isinstance(row.task, StepTaskModel):
                outcome = self._judge.evaluate(row.task, row.action)
                sample = Sample(raw_response=row.raw, action=row.action, outcome=outcome)
                if read_line(write_line(StepRecord(task=row.task, samples=(sample,)), compact=False)).sample != sample:
                    raise Wrong(f"{read.format}: an answer is another one in the journal")


def _first_rows(file: Path) -> list[list[Any]]:
    try:
        found = [dict(row.values) for row in islice(open_rows(file), 5) if isinstance(row, Row)]
    except DataError:
        return []
    return [found] if found else []
