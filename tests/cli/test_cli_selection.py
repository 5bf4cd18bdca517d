"""Choosing steps at the command line: what a run, a score and their figures say of the steps they are over."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import guieval as package
from guieval.data.sample_sets import get_sample_set, step_digest
from guieval.journal import METRICS, STEPS, RunFolder
from guieval.registry import load_benchmark
from tests.cli.demo_runs import MODEL, OPTIONS, SMALL, reference
from tests.command_line import CommandLine

Words: TypeAlias = tuple[str | Path, ...]


@pytest.fixture(scope="module")
def lengths(demo: Path) -> dict[str, int]:
    return {ref.key.episode_id: ref.length for ref in load_benchmark("demo", demo, **OPTIONS).index()}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> Path:
    """A run over everything, whose journal answers in the others."""
    directory = tmp_path_factory.mktemp("recorded") / "run"
    with reference(demo, accuracy=0.7) as server:
        settings: dict[str, Any] = {"data": demo, "bench_options": OPTIONS, "base_urls": server.base_url}
        package.run(model=MODEL, bench="demo", **settings, out=directory, progress=False)
    return directory


@pytest.fixture
def replayed(demo: Path, recorded: Path) -> Words:
    return ("run", "--model", MODEL, "--bench", "demo", "--data", demo, *SMALL, "--quiet", "--replay", recorded)


def write_set(folder: Path, ids: dict[str, int], **changes: Any) -> Path:
    without = changes.get("without", {})
    counted = {name: [i for i in range(length) if i not in without.get(name, ())] for name, length in ids.items()}
    words = {"name": "demo-part", "title": "A part", "datasets": ["demo"], "used_by": "a test", "source": "a test"}
    counts = {"episodes": len(ids), "steps": sum(map(len, counted.values())), "ids": ids, "sha256": step_digest(counted)}
    file = folder / "demo-part.json"
    file.write_text(json.dumps({**words, **counts, **changes}))
    get_sample_set.cache_clear()
    return file


def test_a_run_names_its_set_everywhere(guieval: CommandLine, replayed: Words, lengths: dict[str, int], tmp_path: Path) -> None:
    name, other = list(lengths)[1:3]
    file = write_set(tmp_path, {name: lengths[name], other: lengths[other]}, without={name: [1]})
    steps = lengths[name] + lengths[other] - 1
    short = json.loads(file.read_text())["sha256"][:12]
    run = tmp_path / "run"
    done = guieval(*replayed, "--sample-set", file, "--out", run)
    assert done.code == 0, done.err
    assert f"data:     all 2 episodes of sample set demo-part (sha256 {short})" in done.out
    assert re.search(r"^\s+demo-part\s*$", done.out, re.MULTILINE), "the head of the table"
    asked = {(record.task.episode_id, record.task.step_index) for record in RunFolder(run).records}
    assert len(asked) == steps and (name, 1) not in asked
    for stored in (RunFolder(run).manifest.to_json()["selection"], json.loads((run / METRICS).read_text())["selection"]):
        assert stored["title"] == "demo-part" and stored["sample_set_sha256"].startswith(short)
    again = guieval("score", run)
    assert f"data:     all 2 episodes of sample set demo-part (sha256 {short})" in again.out
    other_set = write_set(tmp_path, {name: lengths[name]})
    assert "differs in benchmark fingerprint" in guieval.sentence("run", "--resume", run, "--sample-set", other_set)


def test_a_run_is_scored_over_a_set(guieval: CommandLine, recorded: Path, lengths: dict[str, int], tmp_path: Path) -> None:
    name = next(iter(lengths))
    file = write_set(tmp_path, {name: lengths[name]})
    done = guieval("score", recorded, "--sample-set", file)
    assert done.code == 0 and "the only episode of sample set demo-part" in done.out
    assert ", of a run over all 5 episodes of split test" in done.out
    assert re.search(rf"planned steps\s+{lengths[name]}\s", done.out)
    file = write_set(tmp_path, {name: lengths[name], "s4-9999": 3})
    message = guieval.sentence("score", recorded, "--sample-set", file)
    assert "needs 2 named episodes, and the run" in message and "has 1 of them; missing: s4-9999" in message
    foreign = guieval.sentence("score", recorded, "--sample-set", "ac-test-8444")
    assert "is of androidcontrol, but the data set of the run" in foreign
    assert "has no subsets; leave out --subset x" in guieval.sentence("score", recorded, "--subset", "x")


def test_lists_of_episodes_and_mistakes(guieval: CommandLine, replayed: Words, lengths: dict[str, int], tmp_path: Path) -> None:
    name = next(iter(lengths))
    listed = tmp_path / "mine.txt"
    listed.write_text(f"{name}#0\n")
    done = guieval(*replayed, "--episodes", listed, "--out", tmp_path / "run")
    assert done.code == 0 and "data:     the only episode, as listed in mine.txt" in done.out
    assert (tmp_path / "run" / STEPS).read_text().count("\n") == 1
    listed.write_text("s4-00001\n")
    assert "line 1: unknown episode 's4-00001' (did you mean" in guieval.sentence(*replayed, "--episodes", listed)
    assert "no split 'trian'" in guieval.sentence(*replayed, "--split", "trian")
    assert "unknown sample set 'aitz-test'" in guieval.sentence(*replayed, "--sample-set", "aitz-test")
    foreign = guieval.sentence(*replayed, "--sample-set", "aitz-test-4724")
    assert "the data set of benchmark 'demo' is demo; no set of demo" in foreign
    assert "'subset' is" not in guieval(*replayed, "--set", "subset=general", "--out", tmp_path / "x").err
    assert "'split' is ''" in guieval.sentence(*replayed, "--split", "")


def test_an_overlay_belongs_to_the_run(guieval: CommandLine, replayed: Words, recorded: Path, tmp_path: Path) -> None:
    """Whatever the model answered wrongly at one step is accepted there, in the run and when an old run is scored again."""
    wrong = next(each for each in RunFolder(recorded).records if each.sample.outcome.verdict == "wrong" and each.sample.action)
    assert wrong.sample.action is not None
    task = wrong.task
    line = {"episode_id": task.episode_id, "step_index": task.step_index, "alternatives": [wrong.sample.action.model_dump()]}
    overlay = tmp_path / "more.jsonl"
    overlay.write_text(json.dumps(line) + "\n")
    run = tmp_path / "run"
    done = guieval(*replayed, "--overlay", overlay, "--out", run)
    assert done.code == 0, done.err
    exact = {str(each.task.key): each.sample.outcome.exact_match for each in RunFolder(run).records}
    before = {str(each.task.key): each.sample.outcome.exact_match for each in RunFolder(recorded).records}
    assert {key for key in exact if exact[key] != before[key]} == {str(task.key)}
    manifest = RunFolder(run).manifest.to_json()
    assert manifest["overlay"]["steps"] == 1 and len(manifest["overlay"]["sha256"]) == 64
    assert json.loads((run / METRICS).read_text())["overlay"] == manifest["overlay"]
    right = sum(exact.values())
    scored = guieval("score", recorded, "--overlay", overlay)
    assert re.search(rf"right\s+{right}\s", scored.out)
    named = f"overlay:  more.jsonl (sha256 {manifest['overlay']['sha256'][:12]}), further accepted answers at 1 step\n"
    for result in (done, scored, guieval("score", run)):
        assert named in result.out and re.search(r"^ +with overlay *$", result.out, re.MULTILINE), "the head of the table"
    assert "overlay" not in guieval("score", recorded).out
    moved = overlay.rename(tmp_path / "moved.jsonl")
    assert guieval("run", "--resume", run, "--overlay", moved, "--quiet").code == 0
    moved.write_text(json.dumps({**line, "note": "changed"}) + "\n")
    assert "differs in overlay fingerprint" in guieval.sentence("run", "--resume", run, "--overlay", moved)
    moved.write_text(json.dumps({**line, "step_index": 99}) + "\n")
    assert "line 1: episode" in guieval.sentence(*replayed, "--overlay", moved, "--out", tmp_path / "other")


def test_predictions_are_scored_over_a_set_with_options_and_an_overlay(
    guieval: CommandLine, recorded: Path, demo: Path, lengths: dict[str, int], tmp_path: Path
) -> None:
    answers = [(each.task, each.sample.raw_response) for each in RunFolder(recorded).records]
    rows = [{"episode_id": task.episode_id, "step_index": task.step_index, "response": text} for task, text in answers]
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = ("data", "import", predictions, "--bench", "demo", "--data", demo, *SMALL, "--model", MODEL, "--out")
    assert f"{len(rows)} of {len(rows)} steps have an answer" in guieval(*common, tmp_path / "all").out
    name = next(iter(lengths))
    file = write_set(tmp_path, {name: lengths[name]})
    for done in (
        guieval("score", tmp_path / "all", "--sample-set", file),
        guieval(*common, tmp_path / "set", "--sample-set", file) and guieval("score", tmp_path / "set"),
    ):
        assert done.code == 0 and "of sample set demo-part" in done.out
        assert "outside the plan" not in " ".join((done.out + done.err).split()), "the user chose the steps"
    overlay = tmp_path / "more.jsonl"
    overlay.write_text(json.dumps({"episode_id": "none", "step_index": 0, "targets": [[0, 0, 1, 1]]}) + "\n")
    done = guieval("score", tmp_path / "all", "--overlay", overlay)
    assert "0 of the 1 steps that the overlay adds to are recorded in this run" in done.err
    assert "benchmark 'demo' has no option 'model'" in guieval.sentence(*common, tmp_path / "no", "--set", "model=x")


def test_damaged_episodes_are_told_or_left_out(guieval: CommandLine, recorded: Path, tmp_path: Path, shared_data: Path) -> None:
    """UI-S1's own file, with an action that no such file holds in the middle one of three episodes."""
    source = shared_data / "ui_s1" / "android_control_train_example.jsonl"
    lines = source.read_text().splitlines()[:3]
    broken = json.loads(lines[1])
    broken["steps"][0]["action_content"]["action"] = "tap"
    data = tmp_path / "data"
    data.mkdir()
    (data / source.name).write_text("\n".join([lines[0], json.dumps(broken), lines[2]]) + "\n")
    arguments = ("run", "--model", MODEL, "--bench", "androidcontrol", "--data", data, "--quiet", "--replay", recorded)
    assert "line 2, step 0, field action_content" in guieval.sentence(*arguments, "--out", tmp_path / "one")
    done = guieval(*arguments, "--skip-damaged", "--out", tmp_path / "two")
    assert done.code == 1  # the replayed run is of other steps and answers none of these
    assert "data:     all 2 episodes, 1 damaged left out" in done.out
    assert "damaged:  1 left out, first:" in done.out and "line 2" in done.out
    assert RunFolder(tmp_path / "two").manifest.to_json()["selection"]["damaged"]["episodes"] == 1


def test_the_sets_are_listed_shown_and_checked(guieval: CommandLine, shared_data: Path, demo: Path) -> None:
    listed = guieval("data", "sample-sets")
    assert "ac-osatlas-7708" in listed.out and "7,708" in listed.out and "hypertrack-idd-2843" in listed.out
    only = guieval("data", "sample-sets", "--bench", "aitz").out
    assert "aitz-general-1202" in only and "ac-test-8444" not in only
    shown = guieval("data", "sample-sets", "ac-valtest-finish-10814").out
    assert "137 validation episodes" in shown and "finish step" in shown
    checked = guieval("data", "sample-sets", "ac-test-8444", "--bench", "androidcontrol", "--data", shared_data / "ui_s1")
    assert checked.code == 0 and "fills it: 1,543 episodes, 8,444 steps" in checked.out
    assert "CLICK 5,074" in checked.out
    assert "did you mean 'screenspot'" in guieval.sentence("data", "sample-sets", "--bench", "screensport")
    assert "add --bench" in guieval.sentence("data", "sample-sets", "ac-test-8444", "--data", demo)
    assert "the name of the set" in guieval.sentence("data", "sample-sets", "--bench", "androidcontrol", "--data", demo)
    assert "add --bench" in guieval.sentence("data", "sample-sets", "ac-test-8444", "--set", "screen_size=1")
