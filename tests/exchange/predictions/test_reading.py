"""Files as such: containers, detection, duplicates, damage, and the command that imports them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import DataError, UsageError
from guieval.exchange.predictions import FORMATS, detect_format, read_predictions
from guieval.journal import RunFolder
from tests.command_line import CommandLine
from tests.rows import every_row

from . import files

EVERY_EVAL_EVER = {
    "schema_version": "0.3.0",
    "evaluation_id": "aitz/m/0",
    "sample_id": "aitz/general/17#2",
    "interaction_type": "single_turn",
    "output": {"raw": ["tap"]},
    "answer_attribution": [{"extraction_method": "guieval adapter m", "extracted_value": '{"type": "WAIT"}'}],
    "metadata": {"benchmark": "aitz", "subset": "general", "episode_id": "17", "step_index": "2"},
}
OWN = {"episode_id": "1", "step_index": 0, "action": None}
FIRST_ROWS = {
    "guieval": OWN,
    "guievalkit": files.kit_row(None),
    "agentcpm": files.agentcpm_row(None),
    "os-atlas": files.atlas_row(""),
    "ui-s1": {"goal": "a", "num_steps": 4, "task_success": False, "final_step_id": 1},
    "screenspot-pro": files.sspro_row(None),
    "mai-ui": files.mai_ui_row(None),
    "se-gui": files.se_gui_row(None),
    "mobilepilot": files.mobilepilot_row(None),
    "kairos": files.kairos_row(0, "WAIT", "WAIT"),
    "lz-dong": {"benchmark": "AITZ (aitz_test)", "ground_truth": files.labelled(), "source_parsed_prediction": None},
    "every-eval-ever": EVERY_EVAL_EVER,
    "inspect": {"id": "aitz/general/17#2", "epoch": 1, "input": [], "messages": [], "metadata": {}},
    "guicourse": files.guicourse_row(""),
    "ui-genie": {"questionID": "13314_0", "type": "wait", "reply": "right"},
    "lmms-eval": files.lmms_row("[0.2, 0.15]"),
    "evalscope": files.scope_row("[0.2, 0.15]"),
    "vlmevalkit": files.kit_table_row("pyautogui.click(x=0.2, y=0.15)"),
}
STEPS = [files.grounding_step("word_macos_5")]


@every_row("name", FORMATS)
def test_every_format_is_recognised_by_its_first_row(name: str, tmp_path: Path) -> None:
    claiming = [each.name for each in FORMATS.values() if each.recognises(FIRST_ROWS[name])]
    assert claiming == [name]
    assert name == detect_format(files.write_lines(tmp_path / "f.jsonl", [FIRST_ROWS[name]])).name


def test_a_file_of_two_formats_of_none_and_an_unknown_format_are_reported(tmp_path: Path) -> None:
    file = files.write_lines(tmp_path / "f.jsonl", [files.agentcpm_row(None) | OWN])
    with pytest.raises(UsageError, match=r"'guieval' and 'agentcpm'; choose one with --format"):
        read_predictions(file)
    with pytest.raises(UsageError, match=r"no known format.*'x'"):
        read_predictions(files.write_lines(tmp_path / "f.jsonl", [{"x": 1}]))
    with pytest.raises(UsageError, match="did you mean 'os-atlas'"):
        read_predictions(tmp_path / "f.jsonl", "osatlas")


@every_row("form", ["lines", "list", "indented list", "details", "indented details", "packed", "marked"])
def test_rows_may_stand_in_lines_in_a_list_or_under_details(form: str, tmp_path: Path) -> None:
    rows = [{**OWN, "step_index": step} for step in range(3)]
    file = tmp_path / ("f.json.gz" if form == "packed" else "f.json")
    lines = "\n\n".join(map(json.dumps, rows)) + "\n\n"
    text = {
        "list": json.dumps(rows),
        "indented list": json.dumps(rows, indent=2),
        "details": json.dumps({"metrics": {}, "details": rows}),
        "indented details": json.dumps({"details": rows}, indent=2),
    }.get(form, lines)
    data = text.encode("utf-8-sig" if form == "marked" else "utf-8")
    file.write_bytes(gzip.compress(data) if form == "packed" else data)
    assert [row.step_index for row in read_predictions(file).rows] == [0, 1, 2]


def test_a_repeated_row_is_counted_and_a_contradiction_or_a_torn_line_is_reported_or_skipped(tmp_path: Path) -> None:
    other = {**OWN, "action": {"type": "WAIT"}}
    assert read_predictions(files.write_lines(tmp_path / "f.jsonl", [OWN, OWN])).repeated == 1
    file = files.write_lines(tmp_path / "g.jsonl", [OWN, other])
    with pytest.raises(DataError, match=r"g\.jsonl, line 2.*/1#0 is answered twice"):
        read_predictions(file)
    assert len(read_predictions(file, skip_damaged=True).skipped) == 1
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(OWN) + '\n{"episode_id": "1", "st', encoding="utf-8")
    with pytest.raises(DataError, match=r"f\.jsonl, line 2: is not JSON"):
        read_predictions(file)
    read = read_predictions(file, skip_damaged=True)
    assert (len(read.rows), len(read.skipped)) == (1, 1)


@every_row(
    ("data", "problem"),
    [(b"", "has no row"), (b"[]", "has no row"), (b"[1, ", "is not JSON"), (b'{\n"a": 1}', "details"), (b"\x1f\x8bxx", "")],
)
def test_a_file_without_rows_is_reported(data: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / ("f.json.gz" if data.startswith(b"\x1f") else "f.json")
    file.write_bytes(data)
    with pytest.raises(DataError, match=problem or "cannot be unpacked"):
        read_predictions(file)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (json.dumps(OWN).encode("utf-16"), "is written in UTF-16; expected UTF-8"),
        (json.dumps({**OWN, "episode_id": "é"}, ensure_ascii=False).encode("latin-1"), "line 1: is not JSON"),
        (b"<html>\n" + json.dumps([OWN]).encode(), "line 1: is not JSON"),
    ],
)
def test_a_file_without_a_readable_row_gives_the_reason(data: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "f.jsonl"
    file.write_bytes(data)
    for name in (None, "guieval"):
        with pytest.raises(DataError, match=problem):
            read_predictions(file, name)


HOSTILE: tuple[Any, ...] = (
    *(None, True, "", "x" * 10_000, "\ud800", "\u202e\0", "[1e999,1]", "[" * 300, "9" * 500),
    *(-1, 10**400, 1e308, float("nan"), float("inf")),
    *([], {}, [[]], [10**400] * 4, [float("nan")] * 2, {"a": {"b": []}}),
    *({"POINT": [10**400, 1]}, {"POINT": [1, 1], "duration": 10**400}, {"STATUS": []}, {"TYPE": "\ud800"}),
    *(f"CLICK <point>[[{'9' * 400},1]]</point>", {"type": "x" * 10_000}, {"type": "CLICK", "point": [10**400, 0]}),
)


@every_row("name", FORMATS)
def test_whatever_stands_in_a_field_is_an_answer_or_a_sentence(name: str, tmp_path: Path) -> None:
    row = FIRST_ROWS[name]
    for field in row:
        rows = [row | {field: value} for value in HOSTILE] + [{key: value for key, value in row.items() if key != field}]
        for each in rows:
            file = tmp_path / "f.jsonl"
            file.write_text(json.dumps(each) + "\n", encoding="utf-8")
            try:
                read = read_predictions(file, name, steps=STEPS if name in ("lmms-eval", "vlmevalkit") else ())
            except (DataError, UsageError) as error:
                assert len(str(error)) < 1000 + len(str(file)) and "\n" not in str(error), field
            else:
                assert len(read.rows) + len(read.tasks) <= 1


def test_the_command_makes_a_run_and_says_what_was_in_the_file(tmp_path: Path, guieval: CommandLine) -> None:
    rows = [
        files.agentcpm_row({"POINT": [1, 2]}),
        files.agentcpm_row("hm", step_id=1),
        files.agentcpm_row({"CLEAR": None}, step_id=0),
    ]
    file = files.write_lines(tmp_path / "all.jsonl", [*rows, files.agentcpm_row(None, category="x")])
    told = guieval("data", "import", file, "--out", tmp_path / "run", "--skip-damaged").out
    parts = ("3 of 3 steps have an answer, format agentcpm", "unparseable: 1", "1: CLEAR", "1 damaged rows", "field category")
    for each in parts:
        assert each in told
    records = RunFolder(tmp_path / "run").steps
    assert [(record.task.step_index, record.sample.action and record.sample.action.type) for record in records] == [
        *((2, "CLICK"), (1, None), (0, "UNSUPPORTED"))
    ]
    assert "exists; give another --out" in guieval.sentence("data", "import", file, "--out", tmp_path / "run")
    assert "all.jsonl' is a file, not a run: `guieval data import" in guieval.sentence("score", file)
