"""UI-Genie's results: wrong replies are judged, right ones count under its own protocol alone, its stated scores come out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point, Scroll, Unsupported
from guieval.errors import DataError
from guieval.evaluation import get_protocol
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import read_predictions
from guieval.frames import smart_resize
from guieval.journal import RunFolder
from guieval.metrics import summarise
from guieval.metrics.columns import ENDS
from guieval.metrics.kinds import of_steps
from guieval.registry import load_benchmark
from guieval.reports.opened import OpenedRun, open_run
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import evaluate_run
from guieval.steps import StepTaskModel
from tests.rows import every_row

REAL = "Euphoria16+UI-Genie__details.json.gz"


def call(**arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'mobile_use', 'arguments': arguments})}\n</tool_call>"


def case(step: str, label: dict[str, Any], answer: dict[str, Any]) -> dict[str, str]:
    return {"questionID": step, "gt": call(**label), "answer": json.dumps(answer)}


def badcases(count: int, *cases: dict[str, str]) -> dict[str, Any]:
    of_type = {"actiontype_match_details": [], "actiontype_match_numbers": 0}
    other = {"actiontype_notmatch_details": list(cases), "actiontype_notmatch_numbers": len(cases)}
    counts = dict.fromkeys(("all_click", "all_swipe", "all_wait"), count)
    return {**counts, "actiontype_notmatch_gt": other, "actiontype_match_gt": of_type}


DETAILS = {"click_success_action": ["7_0"], "click_error_action": ["7_2", "8_0"], "swipe_success_action": []}
DETAILS |= {"swipe_error_action": ["8_1"], "wait_success_action": ["7_3", "9_0"], "scroll_success_action": []}
CLICKS = badcases(
    4,
    case("7_2", {"action": "click", "coordinate": [252, 574]}, {"action": "click", "coordinate": [252, 0]}),
    case("8_0", {"action": "click", "coordinate": [0, 0]}, {"action": "key", "text": "ENTER"}),
)
FLY = {"fly": {**badcases(1), "all_fly": 1}}
SWIPES = badcases(1, case("8_1", {"action": "swipe", "direction": "up"}, {"action": "wait", "time": 2}))


def written(folder: Path, details: Any = DETAILS, **files: Any) -> Path:
    """The files of a made-up evaluation; one that is ``None`` is left out."""
    contents = {"click": CLICKS, "swipe": SWIPES, "wait": badcases(2)} | files
    for name, content in contents.items():
        if content is not None:
            (folder / f"{name}_badcase.json").write_text(json.dumps(content), encoding="utf-8")
    file = folder / "details.json"
    file.write_text(json.dumps(details, indent=4), encoding="utf-8")
    return file


def test_a_step_is_right_by_verdict_wrong_by_its_reply_or_unreadable(tmp_path: Path) -> None:
    read = read_predictions(written(tmp_path))
    rows = {f"{row.episode_id}_{row.step_index}": row for row in read.rows}
    assert {name: row.right_under for name, row in rows.items() if row.right_under} == dict.fromkeys(
        ["7_0", "7_3", "9_0"], "ui-genie"
    )
    # 7_1 is in no list: of the four clicks one is left, and of the episode's steps that one
    assert rows["7_1"].reason == "the response is not JSON" and rows["7_1"].task is not None
    assert rows["7_1"].task.action.type == "CLICK"
    # 252 of 504 pixels, and 574 of 1,148, to which 1080 x 2400 is resized
    task = rows["7_2"].task
    assert task is not None and task.action == Click(point=Point(500.0, 500.0))
    assert (rows["7_2"].action, task.episode_length) == (Click(point=Point(500.0, 0.0)), 4)
    assert rows["8_0"].action == Unsupported(name="key", arguments={"action": "key", "text": "ENTER"})
    assert rows["8_1"].task is not None and isinstance(rows["8_1"].task.action, Scroll)
    assert (read.format, len(rows), read.episodes) == ("ui-genie", 7, 3)


def test_a_right_reply_counts_under_its_own_protocol_alone(tmp_path: Path) -> None:
    run = import_predictions(written(tmp_path), tmp_path / "run").directory
    assert RunFolder(run).protocol == "ui-genie"
    for name, right, missing in (("ui-genie", 3, 0), ("guievalkit", 0, 3)):
        scored = evaluate_run(run, name)
        verdicts = scored.summary.verdicts
        assert (verdicts.right, verdicts.unmeasured, verdicts.unparseable) == (right, missing, 1)
        assert any("3 steps as right under ui-genie" in warning for warning in scored.notes)
        assert scored.summary.metrics["median click distance"].n == 1  # the placeholders have no distance
    opened = open_run(run)
    assert isinstance(opened, OpenedRun)
    assert [step.verdict for step in opened.walk("guievalkit")].count("infrastructure_failure") == 3
    columns = judge_run(run, ["guievalkit", "ui-genie"]).columns()
    ends = {name: [ENDS[end] for end in judged.end] for name, judged in columns.judged.items()}
    assert ends["ui-genie"].count("right") == 3 and "infrastructure_failure" not in ends["ui-genie"]
    assert ends["guievalkit"].count("infrastructure_failure") == 3 and "right" not in ends["guievalkit"]
    first = columns.judged["ui-genie"]
    assert first.measured.all() and first.type_match.sum() == 4 and first.exact_samples.sum() == first.vote.sum() == 3


def test_a_torn_list_of_wrong_replies_is_reported(tmp_path: Path) -> None:
    file = written(tmp_path)
    (tmp_path / "click_badcase.json").write_text('{"all_click": 4, ')
    with pytest.raises(DataError, match=r"click_badcase\.json: is not JSON"):
        read_predictions(file, "ui-genie")


def test_replies_that_were_not_json_and_cannot_be_told_apart_are_no_answers(tmp_path: Path) -> None:
    read = read_predictions(written(tmp_path, wait=badcases(3)))
    assert read.unanswered == 1 and not read.unparseable


@every_row(
    ("details", "files", "problem"),
    [
        (DETAILS, {"click": None}, r"there is no click_badcase\.json beside it"),
        (
            DETAILS,
            {"swipe": badcases(1)},
            r"swipe_badcase\.json: has no response to the step 8_1, which details\.json lists as",
        ),
        (DETAILS, {"click": {"all_click": 4}}, "field actiontype_notmatch_gt: is missing"),
        (DETAILS, {"wait": badcases(2) | {"all_wait": "2"}}, "field all_wait: expected a whole number"),
        ({"click_success_action": ["7-0"]}, {}, "field questionID: expected <episode>_<step>, got '7-0'"),
        ({"click_success_action": [7]}, {}, "field questionID: expected a string, got 7"),
        ({"click_success_action": 7}, {}, "field click_success_action: expected a list"),
        ({"fly_success_action": ["7_0"], "click_success_action": []}, FLY, "'fly' is none of"),
    ],
)
def test_damaged_files_are_reported(details: Any, files: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem):
        read_predictions(written(tmp_path, details, **files), "ui-genie")


@pytest.mark.parametrize("other", ["acc.json", "click_badcase.json", "summary.json"])
def test_the_other_files_are_refused_with_the_one_to_name(other: str, tmp_path: Path) -> None:
    content = {"acc.json": {"action_acc": 0.7}, "summary.json": DETAILS}.get(other, CLICKS)
    (tmp_path / other).write_text(json.dumps(content, indent=4), encoding="utf-8")
    with pytest.raises(DataError, match=r"UI-Genie's results are read from details\.json"):
        read_predictions(tmp_path / other)


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Path:
    file = shared_data / "result_files" / REAL
    if not file.is_file():
        pytest.skip(f"no {file}")
    return file


@pytest.fixture(scope="module")
def run(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_predictions(real, tmp_path_factory.mktemp("ui-genie") / "run").directory


def stated(real: Path) -> dict[str, float]:
    values: dict[str, float] = json.loads(gzip.decompress(real.with_name(real.name.replace("details", "acc")).read_bytes()))
    return values


def test_the_stated_scores_come_out_to_the_digit(real: Path, run: Path) -> None:
    columns = judge_run(run).columns()
    found = summarise(columns, get_protocol("ui-genie"), intervals=False).own
    acc = stated(real)
    assert set(found) == {"action_acc", "type_match_acc", "grounding_acc", "ep_acc"}
    for name, value in found.items():
        assert value.value == acc[name], name
    assert (found["action_acc"].count, found["action_acc"].n, found["ep_acc"].n) == (7450, 9979, 1542)
    assert found["grounding_acc"].count == 3804 and found["grounding_acc"].n == 4556


def test_the_stated_scores_by_type_come_out(real: Path, run: Path) -> None:
    """Those of clicks are over the 5,071 whose reply was JSON; the one that was not is wrong in a run's own figures."""
    by_type = of_steps(evaluate_run(run).summary).by_action_type
    acc = stated(real)
    names = {"SCROLL": "swipe", "TYPE": "type", "OPEN": "open", "STOP": "terminate", "PRESS": "system_button", "WAIT": "wait"}
    for type_, name in (names | {"LONG_PRESS": "long_press"}).items():
        exact = by_type[type_].exact_match
        assert (exact.count / exact.n, exact.n) == (acc[f"{name}_acc"], acc[f"all_{name}"]), name
    clicks = by_type["CLICK"].exact_match
    assert (clicks.count / (clicks.n - 1), clicks.n - 1) == (acc["click_acc"], acc["all_click"])


@pytest.mark.ci
def test_the_data_gives_the_screens_and_the_labels_stay_the_files(real: Path, shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "ui_s1").is_dir():
        pytest.skip("no labels of AndroidControl")
    assumed, known = (
        {row.key: row for row in read.rows}
        for read in (read_predictions(real), read_predictions(real, steps=_steps(shared_data / "ui_s1")))
    )
    other = {key for key, row in known.items() if row.task is not None and row.task.screenshot_size != (1080, 2400)}
    assert len({key[2] for key in other}) == 29
    for key in assumed.keys() - other:
        one, two = assumed[key].task, known[key].task
        assert one is not None and two is not None and one.action == two.action
    short = known["androidcontrol", "", "16608", 6].task
    assert short is not None and short.screenshot_size == (1080, 2160) and isinstance(short.action, Click)
    assert smart_resize((1080, 2160), max_pixels=602_112) == (532, 1092)
    assert round(short.action.point.x * 532 / 1000) == 489
    import_predictions(real, tmp_path / "run", bench="androidcontrol", data=shared_data / "ui_s1")
    own = summarise(judge_run(tmp_path / "run").columns(), get_protocol("ui-genie"), intervals=False).own
    assert {name: each.value for name, each in own.items()} == {name: stated(real)[name] for name in own}


def _steps(folder: Path) -> list[StepTaskModel]:
    benchmark = load_benchmark("androidcontrol", folder)
    return [step for ref in benchmark.index() for step in benchmark.load(ref).steps]
