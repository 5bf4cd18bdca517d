"""`guieval score` under several protocols, what it says of unfinished runs, `guieval protocols`, and imported predictions."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Boxes, Click, Point
from guieval.registry import benchmarks, load_benchmark
from guieval.scoring.matrix import protocols_for
from guieval.steps import StepTaskModel
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.exchange.predictions.files import agentcpm_row, atlas_row, guicourse_row, kairos_row, kit_row, sspro_row, write_lines
from tests.made_runs import key, record, step, write_run
from tests.rows import every_row

TARGET = Click(point=Point(500, 500))
NEAR_MISS = Click(point=Point(600, 500))
BOXES = Boxes([[450.0, 450.0, 550.0, 550.0]])
TWO = ("--protocol", "seeclick-official", "--protocol", "guievalkit")


def a_run(folder: Path, *message: Action | None, missing: int = 0, mode: str = "offline") -> Path:
    length = len(message) + missing
    tasks = [step(TARGET, index=index, length=length, targets=BOXES) for index in range(len(message))]
    records = [record(task, action) for task, action in zip(tasks, message, strict=True)]
    return write_run(folder / "run", records, plan={key("a"): range(length)}, mode=mode)


def test_all_protocols_are_one_table_with_the_runs_own_first(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path, TARGET, NEAR_MISS, None)
    done = guieval("score", run, "--protocol", "all")
    assert done.code == 0
    note = "no protocol is written for the data set 'made-up', so all means every protocol of step navigation"
    assert done.err == f"note: {note}\n"
    matrix, glance = done.out.split("At a glance")
    assert all(f"\n{name} " in glance for name in ("seeclick-official", *protocols_for("made-up")))
    names = ["seeclick-official", *protocols_for("made-up")]
    values = json.loads(guieval("score", run, "--protocol", "all", "--json").out)["runs"][0]
    assert [each["name"] for each in values["protocols"]] == names
    assert all(f" {name}" in matrix for name in names)
    assert "IN_UNIFIED exact match" in done.out and "missing ones dropped" in done.out
    assert "data:     all episodes of the run (1)\n" in done.out
    # the target itself is wrong under coat-official alone, which compares with a corner of the screen
    assert "agreement: 2 of 3 steps are exact under some of the" in done.out


def test_a_protocol_that_is_not_written_for_the_data_states_it_beside_its_figure(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path, TARGET, NEAR_MISS)
    one = guieval("score", run, "--protocol", "seeclick-official")
    assert one.out.count("not written for made-up") == 1  # above the metrics
    two = guieval("score", run, *TWO)
    assert "note: seeclick-official is written for screenspot, screenspot-v2, not for made-up\n" in two.err
    assert two.out.count("not written for made-up") == 2  # above the figures, and at a glance; guievalkit is for any data
    fits = [
        each["written_for_this_data"] for each in json.loads(guieval("score", run, *TWO, "--json").out)["runs"][0]["protocols"]
    ]
    assert fits == [False, True]
    assert "not written for" not in guieval("score", run, "--protocol", "guievalkit").out
    board = guieval("leaderboard", run, "--protocol", "seeclick-official", "--protocol", "guievalkit", "--format", "md").out
    assert "seeclick-official (not written for made-up)" in board and "guievalkit (not" not in board
    assert "seeclick-official is written for screenspot, screenspot-v2, not for made-up" in board


def test_several_names_are_one_table_and_one_is_the_report_of_a_run(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path, TARGET, NEAR_MISS)
    several = guieval("score", run, *TWO)
    assert several.code == 0 and "every protocol's own metrics" in several.out and "\nMetrics (with" not in several.out
    one = guieval("score", run, "--protocol", "guievalkit")
    assert one.code == 0 and "Metrics (with" in one.out and "every protocol" not in one.out
    values = json.loads(guieval("score", run, "--protocol", "guievalkit", "--json").out)["runs"][0]
    assert [each["name"] for each in values["protocols"]] == ["guievalkit"]
    assert values["summary"]["metrics"]["exact match"]["n"] == 2
    rows = tmp_path / "rows.jsonl"
    done = guieval("score", run, *TWO, "--disagreements", rows, "--json")
    assert f"disagreements: 1 step in {rows}\n" in done.err
    (line,) = rows.read_text().splitlines()
    assert json.loads(line)["verdicts"] == {"seeclick-official": "wrong", "guievalkit": "right"}
    assert len(json.loads(done.out)["runs"][0]["protocols"]) == 2
    assert "compares protocols: name several" in guieval.sentence("score", run, "--disagreements", rows)
    assert "must end in .csv or .jsonl" in guieval.sentence("score", run, *TWO, "--disagreements", tmp_path / "rows.txt")
    assert "unknown protocol 'al'" in guieval.sentence("score", run, "--protocol", "al")


@pytest.mark.parametrize("protocols", [(), TWO])
def test_an_unfinished_run_fails_with_how_to_resume(guieval: CommandLine, tmp_path: Path, protocols: tuple[str, ...]) -> None:
    run = a_run(tmp_path, TARGET, missing=1)
    done = guieval("score", run, *protocols)
    assert done.code == 1 and done.out.endswith(f"resume:   guieval run --resume {run}\n")
    assert "1 of 2 steps" in done.out and "missing" in " ".join(done.out.split())


def test_early_stops_under_a_looser_protocol_and_measured_parts_are_no_failures(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path, TARGET, NEAR_MISS, missing=2, mode="sop")
    assert guieval("score", run).code == 0
    for protocols in (("--protocol", "guievalkit"), TWO):
        done = guieval("score", run, *protocols)
        assert done.code == 0 and "the steps that were not asked come after a mismatch under seeclick-official" in done.out
        assert "resume:" not in done.out
    run = a_run(tmp_path / "parted", TARGET, missing=1)
    (tmp_path / "part.txt").write_text("a#0\n")
    for more in ((), TWO):
        done = guieval("score", run, *more, "--episodes", tmp_path / "part.txt")
        assert done.code == 0 and "as listed in part.txt, of a run over" in done.out


def test_protocols_are_reported_whole_listed_by_data_set_and_written_as_a_page(guieval: CommandLine) -> None:
    result = guieval("protocols", "guievalkit").out
    for part in ("source: ", "click, long press: ", "failures: ", "metrics:\n", "note: "):
        assert part in result
    listed = guieval("protocols", "--dataset", "screenspot-v2").out
    assert "seeclick-official" in listed and "ui-s1-sop" not in listed and "guievalkit" in listed
    high, low = (guieval("protocols", "--dataset", f"androidcontrol{level}").out for level in ("", "-low"))
    assert high == low
    page = (REPOSITORY / "docs" / "protocols.md").read_text(encoding="utf-8")
    assert page.startswith(guieval("protocols", "--markdown").out.removesuffix("\n"))
    assert "did you mean 'androidcontrol'?" in guieval.sentence("protocols", "--dataset", "android-control")
    assert "one of them" in guieval.sentence("protocols", "guievalkit", "--markdown")


TAP, MISSED = "CLICK <point>[[500,250]]</point>", "CLICK <point>[[10,900]]</point>"
SAID = "actions:\nCLICK <point>[[500,250]]</point>"
POINT: dict[str, Any] = {"POINT": [250, 500]}
FORMATS: list[tuple[str, list[dict[str, Any]], str, str]] = [
    ("kairos", [kairos_row(0, TAP, TAP), kairos_row(1, MISSED, TAP)], "os-kairos", "50.00%"),
    ("os-atlas", [atlas_row(SAID)], "androidcontrol-low", "100.00%"),
    ("agentcpm", [agentcpm_row(POINT), agentcpm_row("none", step_id=3)], "aitz", "50.00%"),
    ("guievalkit", [kit_row(POINT), kit_row(None, step_id=1)], "aitz", "50.00%"),
    ("screenspot-pro", [sspro_row([200, 300], img_size=[1000, 1000], id="a")], "screenspot-pro", "100.00%"),
]


@every_row(("format", "rows", "benchmark", "exact"), FORMATS, ids=[each[0] for each in FORMATS])
def test_files_that_hold_their_steps_become_runs_by_themselves(
    guieval: CommandLine, tmp_path: Path, format: str, rows: list[dict[str, Any]], benchmark: str, exact: str
) -> None:
    file, run = write_lines(tmp_path / "rows.jsonl", rows), tmp_path / "run"
    for number, options in enumerate(((), ("--format", format), ("--bench", benchmark))):
        made = tmp_path / f"run{number}"
        guieval("data", "import", file, "--out", made, *options)
        done = guieval("score", made, "--protocol", "guievalkit-intended")
        assert done.code == 0 and f"note: imported from rows.jsonl, format {format}\n" in done.err
        assert f"data:     the {len(rows)} steps of {benchmark} that rows.jsonl holds" in done.out
        assert re.search(rf"exact match +{exact} ", done.out)
    run = tmp_path / "run0"
    result = tmp_path / "received.jsonl"
    asked = ("score", run, "--protocol", "all")
    matrix = guieval(*asked, "--disagreements", result)
    named = [json.loads(line)["benchmark"] for line in result.read_text().splitlines()]
    assert named == [benchmark] * (format != "screenspot-pro")
    assert matrix.code == 0 and "every protocol's own metrics" in matrix.out
    values = json.loads(guieval(*asked, "--json").out)["runs"][0]
    assert values["benchmark"] == benchmark and len(values["protocols"]) > 3


def screenspot_pro(folder: Path, episodes: int = 3) -> tuple[Path, list[StepTaskModel]]:
    """An example of the benchmark's data, and its steps."""
    benchmarks()["screenspot-pro"].write_example(folder / "pro", episodes=episodes, seed=0)
    return folder / "pro", [task for episode in load_benchmark("screenspot-pro", folder / "pro") for task in episode.steps]


def test_a_file_that_answers_a_part_prints_bounds_or_the_answered_part_alone(guieval: CommandLine, tmp_path: Path) -> None:
    data, steps = screenspot_pro(tmp_path)
    rows = []
    for task in steps[:2]:
        (box,), (width, height) = list(task.targets)[:1], task.screenshot_size
        corners = [box.x1 * width / 1000, box.y1 * height / 1000, box.x2 * width / 1000, box.y2 * height / 1000]
        middle = [(corners[0] + corners[2]) / 2, (corners[1] + corners[3]) / 2]
        rows.append(sspro_row(middle, img_path=task.screenshot, prompt_to_evaluate=task.instruction, bbox=corners))
    file, whole, part = tmp_path / "results.json", tmp_path / "whole", tmp_path / "part"
    file.write_text(json.dumps({"details": rows, "metrics": {}}))
    assert "add --data, the benchmark's data folder" in guieval.sentence("data", "import", file, "--out", whole)
    made = guieval("data", "import", file, "--data", data, "--out", whole, "--name", "clicker").out
    assert f"2 of {len(steps)} steps have an answer" in made and f"missing: {len(steps) - 2}" in made
    done = guieval("score", whole)
    least, told = f"{200 / len(steps):.2f}%", " ".join(done.out.split())
    assert done.code == 0 and "resume" not in done.out  # nothing of it can be sent again
    assert f"exact match {least} of {len(steps)} ({len(steps) - 2} missing)" in told
    assert f"They count as wrong: exact match is at least {least} and at most 100.00%" in told
    assert "over the 2 answered steps it is 100.00%." in told
    guieval("data", "import", file, "--data", data, "--answered-only", "--out", part, "--name", "clicker")
    for command in (("score", part), ("score", part, "--protocol", "all"), ("leaderboard", part, "--format", "md")):
        shown = " ".join(guieval(*command).out.split())
        assert "answered only" in shown and "missing)" not in shown, command
    assert "the steps differ" in guieval.sentence("compare", whole, part)
    assert "+0.00" in guieval("compare", whole, part, "--anyway").out
    listed = json.loads(guieval("runs", tmp_path, "--json").out)["runs"]
    assert {(each["model"], each["state"]) for each in listed} == {("clicker", "stopped"), ("clicker", "finished")}
    assert "so there is nothing to resume: import it again" in guieval.sentence("run", "--resume", part)
    assert guieval("report", whole, "--out", tmp_path / "page").code == 0


def test_damaged_rows_of_a_file_with_its_own_steps_are_missing(guieval: CommandLine, tmp_path: Path) -> None:
    size = {"img_size": [1000, 1000]}
    rows = [sspro_row([200, 300], id="a", **size), sspro_row([200], id="b", **size), sspro_row([9, 9], id="c", **size)]
    run = tmp_path / "run"
    guieval("data", "import", write_lines(tmp_path / "rows.jsonl", rows), "--skip-damaged", "--out", run)
    alone = guieval("score", run)
    assert alone.code == 0 and "1 damaged rows are left out" in alone.err
    assert re.search(r"\nexact match +50\.00% of 2 \(1 missing\) ", alone.out)
    assert re.search(r"\naction_acc +50\.00% \(1 missing\) ", alone.out)
    assert "success rate" not in alone.out  # every episode is one step
    matrix = guieval("score", run, "--protocol", "all")
    assert re.search(r"\naction_acc +50\.00% of 2 \(1 missing\) ", matrix.out)


def test_our_own_file_may_be_packed(guieval: CommandLine, tmp_path: Path) -> None:
    data, (task,) = screenspot_pro(tmp_path, episodes=1)
    own = {"subset": "", "episode_id": task.episode_id, "step_index": 0, "action": None}
    file = tmp_path / "own.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(own).encode() + b"\n"))
    command = ("data", "import", file, "--bench", "screenspot-pro", "--data", data, "--out", tmp_path / "run")
    assert "unparseable: 1" in guieval(*command).out
    file.write_bytes(file.read_bytes()[:-9])
    assert "cannot be unpacked as gzip" in guieval.sentence(*command[:-1], tmp_path / "other")


def test_rows_with_another_box_are_refused_and_anyway_scored_by_the_benchmarks(guieval: CommandLine, tmp_path: Path) -> None:
    data, (task, *_) = screenspot_pro(tmp_path)
    assert isinstance(task.action, Click)
    x, y = (part * side / 1000 for part, side in zip(task.action.point, task.screenshot_size, strict=True))
    changed = {"img_path": task.screenshot, "prompt_to_evaluate": task.instruction, "bbox": [0, 0, 1, 1]}
    file, run = write_lines(tmp_path / "rows.jsonl", [sspro_row([x, y], **changed)]), tmp_path / "run"
    told = guieval.sentence("data", "import", file, "--data", data, "--out", run)
    assert f"1 of 1 rows state another target than the benchmark: {task.episode_id} (bbox [0, 0, 1, 1])" in told
    guieval("data", "import", file, "--data", data, "--anyway", "--out", run)
    done = guieval("score", run)
    named = f"{task.episode_id} (bbox [0, 0, 1, 1])"
    assert f"1 rows state another box than the benchmark, whose own label decides: {named}" in done.err
    assert "right 1" in " ".join(done.out.split())


def test_what_cannot_be_scored_is_one_sentence(guieval: CommandLine, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "rows.jsonl", [kairos_row(0, TAP, TAP)])
    mixed = write_lines(tmp_path / "mixed.jsonl", [agentcpm_row(POINT), agentcpm_row(POINT, category="domestic")])
    bare = write_lines(tmp_path / "bare.jsonl", [{"image": "/data/episode_1_screenshot_0.png", "pred": SAID}])
    own = write_lines(tmp_path / "own.jsonl", [{"episode_id": "1", "step_index": 0, "action": None}])
    other = write_lines(tmp_path / "other.jsonl", [{"x": 1}])
    cases: list[tuple[tuple[str | Path, ...], str]] = [
        ((file, "--format", "kairo"), "unknown format 'kairo' (did you mean 'kairos'?)"),
        ((file, "--bench", "os-kairo"), "holds answers to steps of os-kairos, not of 'os-kairo' (did you mean 'os-kairos'?)"),
        ((file, "--model", "ui-tars-7b"), "--model and --adapter read raw responses"),
        ((file, "--set", "model.max_pixels=9"), "add --model or --adapter"),
        ((file, "--adapter", "ui_tras"), "unknown adapter"),
        ((file, "--set", "a=1"), "add --data"),
        ((file, "--format", "agentcpm"), "line 1, field"),
        ((file, "--subset", "x"), "the file has its own steps: --split, --subset"),
        ((mixed,), "answers to steps of aitz, cagui; choose one of them by --bench"),
        ((bare,), "add --data, the data folder of androidcontrol"),
        ((own,), "names no benchmark: add --bench"),
        ((other,), "is of no known format"),
        ((tmp_path,), "is a folder of no known format: expected trajectories"),
        ((tmp_path / "none",), "does not exist"),
    ]
    for number, (arguments, message) in enumerate(cases):
        assert message in guieval.sentence("data", "import", *arguments, "--out", tmp_path / f"run{number}"), arguments
    damaged = write_lines(tmp_path / "damaged.jsonl", [kairos_row(0, TAP, TAP), kairos_row(1, TAP, "nothing")])
    assert "line 2, field teacher_action" in guieval.sentence("data", "import", damaged, "--out", tmp_path / "d")
    assert guieval("data", "import", mixed, "--bench", "cagui", "--out", tmp_path / "cagui").code == 0
    guieval("data", "import", mixed, "--bench", "aitz", "--out", tmp_path / "aitz")
    assert "data:     the only episode of subset general" in guieval("score", tmp_path / "aitz", "--subset", "general").out
    run = tmp_path / "kairos"
    guieval("data", "import", file, "--out", run)
    assert "note: screens are taken to be 1080 x 2400 pixels" in guieval("score", run).err
    overlay = write_lines(tmp_path / "overlay.jsonl", [{"episode_id": "x", "step_index": 0, "targets": [[0, 0, 1, 1]]}])
    assert "0 of the 1 steps that the overlay adds to are recorded" in guieval("score", run, "--overlay", overlay).err
    for arguments, message in (
        (("--by", "apps"), "cannot be broken down by 'apps' (did you mean 'app'?)"),
        (("--sample-set", "aitz-test-4724"), "but the data set of the run"),
    ):
        assert message in guieval.sentence("score", run, *arguments), arguments


def hits(printed: str) -> dict[str, int]:
    return {fit["name"]: fit["hits"] for fit in json.loads(printed)["runs"][0]["fits"]}


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
def test_responses_of_a_file_show_their_frame(scale: int, best: str, other: str, tmp_path: Path, guieval: CommandLine) -> None:
    file, run = answered(tmp_path, scale), tmp_path / "run"
    guieval("data", "import", file, "--bench", "episodes", "--data", tmp_path, "--model", "minicpm-gui", "--out", run)
    done = guieval("dev", "audit", run, "--json")
    assert done.code == (0 if best == "0-1000" else 1)
    found = hits(done.out)
    assert found[best] == 60 and found[other] < 30


def test_mai_uis_grounding_responses_fit_both_scales(shared_data: Path, tmp_path: Path, guieval: CommandLine) -> None:
    file = shared_data / "result_files" / "Tongyi-MAI+MAI-UI__server_SSV2.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    labels, run = shared_data / "screenspot_pro_format_annotations", tmp_path / "run"
    guieval("data", "import", file, "--bench", "screenspot-v2", "--data", labels, "--out", run)
    assert "was imported without an adapter that reads its responses: add --adapter" in guieval.sentence("dev", "audit", run)
    found = hits(guieval("dev", "audit", run, "--adapter", "mai_ui", "--json").out)
    assert found["0-1000"] == found["0-999"] == 1188 and found["pixels"] == 34
