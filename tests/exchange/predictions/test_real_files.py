"""Real rows of public result files: each gives an action, a reason or an error, and their own verdicts are ours."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import read_predictions
from guieval.registry import load_benchmark
from guieval.scoring.score import evaluate_run
from tests.rows import every_row

from .files import answered_steps

_NOTE = re.compile(
    r"instruction=(?P<quote>['\"])(?P<prompt>.*)(?P=quote); (?:img=(?P<image>\S+)|img_size=(?P<size>\[[\d, ]+\]))"
    r"; target bbox xyxy px=(?P<box>\[[^]]*\]); source verdict=(?P<verdict>\w+)"
)


def detail(row: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """A row of ``details`` as its repository holds it, and the verdict there; ``None`` for a reply to something else."""
    note = _NOTE.search(row["notes"] or "")
    if note is None:
        return None
    expected = row["expected_action_if_the_source_states_it"] or {}
    values = {"img_path": f"./data/images/{note['image']}", "prompt_to_evaluate": note["prompt"], "gt_type": "positive"}
    values |= {"task_filename": row["source_path"], "pred": expected.get("point_px"), "bbox": json.loads(note["box"])}
    return values | ({"img_size": json.loads(note["size"])} if note["size"] else {}), note["verdict"]


def collected(shared_data: Path, *, sized: bool) -> dict[str, list[tuple[dict[str, Any], str]]]:
    """The rows by the file that they come from, with their images' size or without."""
    files: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for file in sorted((shared_data / "model_outputs").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found = detail(row)
            if found is not None and ("img_size" in found[0]) == sized:
                files.setdefault(f"{row['source_repo']}/{row['source_path']}", []).append(found)
    return files


def agreement(rows: list[tuple[dict[str, Any], str]], file: Path, steps: Any = ()) -> Counter[tuple[str, str]]:
    """How often which verdict of the file meets which of ours, under ScreenSpot-Pro's protocol."""
    evaluator = ActionEvaluator("sspro-official")
    counts: Counter[tuple[str, str]] = Counter()
    remaining = rows
    while remaining:  # different prompts of one step would be answers to it twice, so each image stands once in a file
        once = {each[0]["img_path"]: each for each in reversed(remaining)}
        remaining = [each for each in remaining if once[each[0]["img_path"]] is not each]
        file.write_text(json.dumps({"details": [row for row, _ in once.values()], "metrics": {}}), encoding="utf-8")
        for (task, action), (_, verdict) in zip(answered_steps(file, steps), once.values(), strict=True):
            counts[verdict, evaluator.evaluate(task, action).verdict] += 1
    return counts


@every_row(
    ("sized", "left_out", "expected"),
    [
        # ScreenSpot-v2's images
        (False, "Han1018", {("wrong", "wrong"): 388, ("correct", "right"): 90, ("wrong_format", "unparseable"): 50}),
        # OSWorld-G is judged by polygons, which these rows do not hold
        (True, "OS_G", {("correct", "right"): 268, ("incorrect", "wrong"): 52}),
    ],
)
def test_verdicts_of_published_files_are_ours(
    shared_data: Path, tmp_path: Path, sized: bool, left_out: str, expected: dict[tuple[str, str], int]
) -> None:
    benchmark = load_benchmark("screenspot-pro", shared_data / "screenspot_pro_format_annotations")
    steps = () if sized else [step for ref in benchmark.index() for step in benchmark.load(ref).steps]
    files = [rows for name, rows in collected(shared_data, sized=sized).items() if left_out not in name]
    assert sum((agreement(rows, tmp_path / "results.json", steps) for rows in files), Counter()) == expected


def test_every_kairos_row_is_an_answer_and_the_critic_agrees_with_the_label(shared_data: Path) -> None:
    read = read_predictions(shared_data / "kairos_test" / "Kairos_test_inputscore.json.gz")
    assert (len(read.rows), read.repeated, read.episodes, read.unparseable.total()) == (599, 6, 194, 0)
    assert all(row.task is not None for row in read.rows)
    evaluator = ActionEvaluator("osatlas")
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for row in read.rows:
        assert row.task is not None
        score = row.task.groups["critic_score"]
        every[score] += 1
        right[score] += evaluator.evaluate(row.task, row.action).verdict == "right"
    assert right["5"] / every["5"] > 0.95
    assert right["1"] / every["1"] < 0.25


@pytest.mark.parametrize("protocol", ["agentcpm", "guievalkit"])
def test_every_lz_dong_row_is_an_answer_or_kept_without_one(protocol: str, shared_data: Path) -> None:
    read = read_predictions(shared_data / "lz_dong_steps" / "steps.jsonl")
    assert (len(read.rows), read.unanswered, read.unparseable.total()) == (19, 8, 0)
    evaluator = ActionEvaluator(protocol)
    verdicts = Counter(evaluator.evaluate(row.task, row.action).verdict for row in read.rows if row.task is not None)
    assert verdicts == {"right": 14, "wrong": 5}


@pytest.mark.parametrize("name", ["ac_test", "ac_low_test", "gui_odyssey_test"])
def test_the_labels_of_os_atlas_are_right_answers(name: str, shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "os_atlas_eval" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    file = tmp_path / "predictions.jsonl"
    file.write_text("\n".join(json.dumps(row | {"pred": row["conversations"][1]["value"]}) for row in rows), encoding="utf-8")
    evaluator = ActionEvaluator("osatlas")
    assert [evaluator.evaluate(task, action).verdict for task, action in answered_steps(file)] == ["right"] * 3


@every_row("name", ["ac_test", "gui_act_mobile_test", "gui_act_web_test", "omniact_test"])
def test_os_atlas_data_without_answers_is_an_error_a_row(name: str, shared_data: Path) -> None:
    file = shared_data / "os_atlas_eval" / f"{name}.jsonl"
    with pytest.raises(DataError, match=r"line 1, field (pred|image)"):
        read_predictions(file)
    assert len(read_predictions(file, skip_damaged=True).skipped) == 3


def check_score(
    shared_data: Path, made: Path, file: str, bench: str, adapter: str, points: int, replies: int, **options: Any
) -> None:
    """By the points that the authors read, or read by the family's adapter: the score that they or docs/predictions state."""
    labels: dict[str, Any] = {"bench": bench, "data": shared_data / "screenspot_pro_format_annotations"}
    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, points), ({"adapter": adapter, "options": options}, replies))
    for how, right in cases:
        run = made / f"{adapter}-{len(how)}"
        import_predictions(shared_data / "result_files" / file, run, **labels, **how)
        assert evaluate_run(run)["exact match"].count == right


def test_raw_replies_give_the_stated_score(shared_data: Path, tmp_path: Path) -> None:
    file = "YXB-NKU+SE-GUI__rec_results_android_studio_macos_8k_SFT_0.json.gz"
    check_score(shared_data, tmp_path, file, "screenspot-pro", "se_gui", 12, 12, max_pixels=3_512_320)
    check_score(shared_data, tmp_path, "Tongyi-MAI+MAI-UI__server_SSV2.jsonl.gz", "screenspot-v2", "mai_ui", 1207, 1207)


@pytest.mark.ci
@every_row(
    ("file", "bench", "adapter", "points", "replies"),
    [
        ("Tongyi-MAI+MAI-UI__server_MMBench.jsonl.gz", "mmbench-gui-l2", "mai_ui", 3190, 3190),
        ("woodhalloween+ScreenSpot-Pro-GUI-Grounding__qwen25vl.json.gz", "screenspot-pro", "qwen2_5_vl", 323, 326),
        ("woodhalloween+ScreenSpot-Pro-GUI-Grounding__qwen2vl.json.gz", "screenspot-pro", "qwen2_vl", 23, 23),
        ("Tongyi-MAI+MAI-UI__local_SSV2.json.gz", "screenspot-v2", "mai_ui", 1210, 1210),
    ],
)
def test_raw_replies_of_large_files_give_the_stated_score(
    shared_data: Path, tmp_path: Path, file: str, bench: str, adapter: str, points: int, replies: int
) -> None:
    check_score(shared_data, tmp_path, file, bench, adapter, points, replies)


def test_a_file_without_replies_refuses_a_reader(tmp_path: Path) -> None:
    row = {"img_path": "a.png", "prompt_to_evaluate": "x", "bbox": [0, 0, 9, 9], "pred": [1, 2], "img_size": [100, 100]}
    (tmp_path / "f.json").write_text(json.dumps({"details": [row], "metrics": {}}))
    with pytest.raises(UsageError, match="has none; leave them out"):
        import_predictions(tmp_path / "f.json", tmp_path / "run", model="mai-ui-8b")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Euphoria16+UI-Genie__acc.json.gz", "are read from details.json"),
        ("Euphoria16+UI-Genie__click_badcase.json.gz", "are read from details.json"),
        ("qizhanggu+mobilepilot-runtime__runs.jsonl.gz", "2 values of 'config' .*: keep the rows of one"),
    ],
)
def test_files_that_cannot_be_scored_are_refused_with_the_reason(
    shared_data: Path, tmp_path: Path, name: str, reason: str
) -> None:
    data = shared_data / "screenspot_pro_format_annotations"
    with pytest.raises((DataError, UsageError), match=reason):
        import_predictions(shared_data / "result_files" / name, tmp_path / "run", bench="screenspot-v2", data=data)


@every_row(("protocol", "right"), [("osworld-g", 356), ("mai-ui-grounding", 344)])
@every_row("read", ["points", "replies"])
def test_mai_uis_score_on_osworld_g_comes_out_under_its_own_rule(
    shared_data: Path, tmp_path: Path, protocol: str, right: int, read: str
) -> None:
    file = shared_data / "result_files" / "Tongyi-MAI+MAI-UI__local_OS_G.json.gz"
    adapter = "mai_ui" if read == "replies" else None
    labels = shared_data / "screenspot_pro_format_annotations"
    run = import_predictions(file, tmp_path / "run", bench="osworld-g", data=labels, adapter=adapter).directory
    assert evaluate_run(run, protocol)["exact match"].count == right
