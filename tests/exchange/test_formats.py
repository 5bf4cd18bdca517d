"""What is exported, read back with the formats' own schemas and libraries."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from guieval.errors import DataError, EngineError, UsageError
from guieval.exchange.atif import Document
from guieval.exchange.exported import Exported, exported
from guieval.exchange.formats import format_named
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import detect_format, read_predictions
from guieval.journal.directory import TASKS
from guieval.models import ABCModel, Request
from guieval.online.trajectory import SCREENS, TRAJECTORIES
from guieval.registry import benchmark_class, load_benchmark, load_model
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, open_run
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.reports.scripted_runs import edited, made_run
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted, runner_of

MISSED = {("e00", 1), ("e01", 0), ("e01", 2)}


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("offline") / "run", MISSED)


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return online_run(tmp_path_factory.mktemp("online"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ever(run: Exported, folder: Path, **options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    whole, samples = format_named("every-eval-ever").write(run, folder, **options)
    return json.loads(whole.read_text(encoding="utf-8")), lines(samples)


@pytest.fixture(params=["offline", "online", "sop"])
def a_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "sop":
        return made_run(tmp_path / "sop", MISSED, mode="sop")
    run: Path = request.getfixturevalue(request.param)
    return run


def schemas(shared_data: Path) -> Iterator[Any]:
    jsonschema = pytest.importorskip("jsonschema")
    folder = shared_data.parent / "reference" / "every_eval_ever"
    if not folder.is_dir():
        pytest.skip(f"no schemas at {folder}")
    for name in ("every_eval_ever_0.3.0", "every_eval_ever_instance_0.3.0"):
        yield jsonschema.Draft7Validator(json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8")))


def test_every_eval_ever_fits_its_schemas(a_run: Path, tmp_path: Path, shared_data: Path) -> None:
    whole, samples = ever(exported(a_run, dataset="org/data"), tmp_path, organization="Lab", relationship="third_party")
    of_whole, of_sample = schemas(shared_data)
    of_whole.validate(whole)
    for sample in samples:
        of_sample.validate(sample)
    assert samples


def test_every_eval_ever_holds_what_score_prints(offline: Path, tmp_path: Path) -> None:
    run = exported(offline)
    whole, samples = ever(run, tmp_path)
    results = {each["metric_config"]["metric_name"]: each for each in whole["evaluation_results"]}
    details = results["exact match"]["score_details"]
    assert details["score"] == 45 / 48 and details["details"] == {"n": "48", "n_of": "steps", "steps_not_measured": "0"}
    assert isinstance(run.run, OpenedRun)
    printed = run.run.metrics()["exact match"]
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (printed.low, printed.high)
    assert sum(sample["evaluation"]["is_correct"] for sample in samples) == 45 and len(samples) == 48
    assert {sample["evaluation_result_id"] for sample in samples} == {results["exact match"]["evaluation_result_id"]}
    steps = results["exact match"]["source_data"]["additional_details"]
    assert steps["protocol"] == run.protocol.name and len(steps["planned_steps_sha256"]) == 64
    written = next(tmp_path.rglob("*_samples.jsonl"))
    assert whole["detailed_evaluation_results"]["checksum"] == sha256(written.read_bytes()).hexdigest()
    assert whole["detailed_evaluation_results"]["file_path"] == written.relative_to(tmp_path).as_posix()


def test_a_second_export_writes_the_same_files(offline: Path, tmp_path: Path) -> None:
    assert ever(exported(offline), tmp_path) == ever(exported(offline), tmp_path)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


def test_steps_that_were_not_reached_have_no_row(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", {("e00", 1)}, episodes=["e00", "e01"], mode="sop")
    _, samples = ever(exported(run), tmp_path / "out")
    assert [sample["sample_id"][-4:] for sample in samples] == ["00#0", "00#1", "01#0", "01#1", "01#2", "01#3"]


def test_exported_answers_are_read_back(offline: Path, tmp_path: Path) -> None:
    _, samples = format_named("every-eval-ever").write(exported(offline), tmp_path)
    read = read_predictions(samples)
    assert detect_format(samples).name == "every-eval-ever"
    run = exported(offline).run
    assert isinstance(run, OpenedRun)
    answers = {tuple(step.task.key): step.record.sample for step in run.walk() if step.record is not None}
    found = {key: (sample.action, sample.raw_response) for key, sample in answers.items()}
    assert {row.key: (row.action, row.raw) for row in read.rows} == found


def test_a_log_of_inspect_is_read_back(offline: Path, tmp_path: Path) -> None:
    run = exported(offline)
    (log,) = format_named("inspect").write(run, tmp_path)
    read = read_predictions(log)
    assert detect_format(log).name == "inspect"
    _, samples = format_named("every-eval-ever").write(run, tmp_path / "other")
    assert read.rows == read_predictions(samples).rows and read.unanswered == read_predictions(samples).unanswered


def test_damaged_logs_are_named(offline: Path, online: Path, tmp_path: Path) -> None:
    (log,) = format_named("inspect").write(exported(offline), tmp_path)
    with ZipFile(log) as archive:
        name = next(each for each in archive.namelist() if each.startswith("samples/"))
        sample = json.loads(archive.read(name))
    for changed, words in (
        ({"epoch": 2}, "field epoch: expected one answer to each step, got answer 2"),
        ({"output": {"choices": []}}, "field output: expected a choice, got none"),
        ({"metadata": {"benchmark": "demo"}}, "field metadata, field step_index: is missing"),
        ({"scores": {"exact match": {"answer": "click"}}}, "field answer"),
    ):
        with ZipFile(tmp_path / "changed.eval", "w") as archive:
            archive.writestr(name, json.dumps({**sample, **changed}))
        with pytest.raises(DataError, match=re.escape(words)):
            read_predictions(tmp_path / "changed.eval")
    whole = log.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4], whole.replace(b"samples/", b"sampels/")):
        (tmp_path / "changed.eval").write_bytes(damaged)
        with pytest.raises((DataError, UsageError)):
            read_predictions(tmp_path / "changed.eval")
    (log,) = format_named("inspect").write(exported(online), tmp_path / "online")
    with pytest.raises(DataError, match="`guieval data import` reads online runs"):
        read_predictions(log)


def test_exported_outcomes_are_a_run_of_tasks_with_the_same_metrics(online: Path, tmp_path: Path) -> None:
    run = exported(online)
    _, rows = format_named("every-eval-ever").write(run, tmp_path)
    made = open_run(import_predictions(rows, tmp_path / "made").directory)
    assert isinstance(made, OpenedOnlineRun) and isinstance(run.run, OpenedOnlineRun)
    ours, theirs = made.metrics(), run.run.metrics()
    assert (theirs["success rate"].count, theirs["success rate"].n) == (3, 8)
    for name in ("success rate", "progress", "false completion", "mean steps"):
        assert ours[name] == theirs[name], name


def test_damaged_outcomes_are_named(online: Path, tmp_path: Path) -> None:
    _, path = format_named("every-eval-ever").write(exported(online), tmp_path)
    first = lines(path)[0]
    for part, changed, words in (
        ("evaluation", {"is_correct": 1}, "field evaluation, field is_correct: expected true or false, got 1"),
        ("metadata", {"repetition": "-1"}, "field metadata, field repetition: expected a whole number as text, got '-1'"),
        ("metadata", {"ended": "somehow"}, "field metadata, field ended: expected one of success"),
        ("metadata", {"benchmark": None}, "field metadata, field benchmark"),
    ):
        path.write_text(json.dumps(first | {part: first[part] | changed}) + "\n", encoding="utf-8")
        with pytest.raises(DataError, match=re.escape(words)):
            read_predictions(path)
    path.write_text(json.dumps(first | {"interaction_type": "multi_turn"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected single_turn or agentic"):
        read_predictions(path)


def test_an_evaluation_result_of_the_hub(offline: Path, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    (path,) = format_named("hf-eval-results").write(exported(offline, dataset="org/data"), tmp_path, task="phones")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert path.parent.name == ".eval_results"
    assert (entry.dataset_id, entry.task_id, entry.value) == ("org/data", "phones", 93.75)
    assert "n = 48 steps, 95% interval" in entry.notes
    with pytest.raises(UsageError, match="has none: add --dataset"):
        format_named("hf-eval-results").write(exported(offline), tmp_path)
    with pytest.raises(UsageError, match=r"no metric 'exact macth' \(did you mean 'exact match'\?\)"):
        format_named("hf-eval-results").write(exported(offline, dataset="org/data"), tmp_path, metric="exact macth")


@every_row("name", ("androidcontrol", "screenspot-v2", "screenspot-pro"))
def test_a_data_set_is_made_a_benchmark_of_the_hub(name: str, tmp_path: Path) -> None:
    """The fields of hub-docs' example; the task is the one that results of models name."""
    hub = pytest.importorskip("huggingface_hub")
    kind = benchmark_class(name)
    kind.write_example(tmp_path / "data")
    model, benchmark = load_model("ui-tars-7b-sft"), load_benchmark(name, tmp_path / "data")
    engine = ScriptedEngine(lambda request: _reference(model, request))
    config = RunConfig.model_validate({"model": {"name": "ui-tars-7b-sft"}, "data": {"bench": name, "folder": str(tmp_path)}})
    runner_of(config, tmp_path / "run", benchmark, model, engine, 4).execute(resume=False)
    run = exported(tmp_path / "run", dataset="org/data")
    (path,) = format_named("hf-eval-yaml").write(run, tmp_path / "out", task="steps")
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert path.name == "eval.yaml" and written["evaluation_framework"] == "inspect-ai" and written["name"] == kind.title
    assert run.protocol.name in written["description"] and f"bench={name}" in written["description"]
    (task,) = written["tasks"]
    (of_model,) = format_named("hf-eval-results").write(run, tmp_path / "out", task="steps")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(of_model.read_text(encoding="utf-8")))
    assert (entry.task_id, task["config"], task["split"]) == (task["id"], "default", "test")
    for part in (run.protocol.name, run.manifest.scaffold_line, "set-up: ", run.manifest.benchmark.edition_line):
        assert part in entry.notes


def _reference(model: ABCModel, request: Request) -> str:
    return model.render(request.task, request.task.action) if request.task.action in model.action_space else "no action"


def test_a_section_of_a_model_card(offline: Path, tmp_path: Path) -> None:
    """Else a number of a card could not be traced to its rules and steps."""
    run = exported(offline)
    (path,) = format_named("model-card").write(run, tmp_path)
    text = path.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| exact match"))
    assert "93.75%" in row and "| 48 | steps |" in row
    for part in (f"protocol: {run.protocol.name}", "scaffold: ", "set-up: ", run.details["protocol_sha256"]):
        assert part in text


def test_a_model_index(a_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub.repocard_data import model_index_to_eval_results

    run = exported(a_run)
    (path,) = format_named("model-index").write(run, tmp_path)
    _, results = model_index_to_eval_results(yaml.safe_load(path.read_text(encoding="utf-8"))["model-index"])
    assert [result.metric_value for result in results] == [round(100 * figure.value, 2) for figure in run.metrics]


@pytest.mark.parametrize("images", [False, True])
def test_trajectories(online: Path, tmp_path: Path, images: bool) -> None:
    written = format_named("atif").write(exported(online), tmp_path, images=images)
    files = [path for path in written if path.suffix == ".json"]
    documents = [Document.model_validate_json(path.read_text(encoding="utf-8")) for path in files]
    assert len({document.trajectory_id for document in documents}) == len(documents) > 1
    for document in documents:
        assert [step.step_id for step in document.steps] == list(range(1, len(document.steps) + 1))
        assert [step.source for step in document.steps] == ["user"] + ["agent"] * (len(document.steps) - 1)
        for step in document.steps[1:]:
            assert step.observation is not None
            known = {None, *(call.tool_call_id for call in step.tool_calls or ())}
            assert {result.source_call_id for result in step.observation.results} <= known
    named = {
        part.source.path
        for document in documents
        for step in document.steps
        for content in (step.message, *(result.content for result in (step.observation.results if step.observation else ())))
        if not isinstance(content, str)
        for part in content
        if part.source is not None
    }
    assert bool(named) == images and all((tmp_path / name).is_file() for name in named)


def test_trajectories_name_the_type_of_a_screenshot(online: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(online, tmp_path / "run"))
    first = min((run / SCREENS).iterdir())
    first.rename(first.with_suffix(".jpg"))
    for name in (TRAJECTORIES, TASKS):
        with edited(run / name) as lines:
            lines[:] = json.loads(json.dumps(lines).replace(first.name, f"{first.stem}.jpg"))
    format_named("atif").write(exported(run), tmp_path / "out", images=True)
    texts = "".join(path.read_text() for path in (tmp_path / "out").glob("*.json"))
    sources = re.findall(r'"media_type": "image/(\w+)",\s*"path": "images/\w+\.(\w+)"', texts)
    assert set(sources) == {("png", "png"), ("jpeg", "jpg")}


def test_trajectories_are_of_online_runs(offline: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ATIF has trajectories of online runs"):
        format_named("atif").write(exported(offline), tmp_path)


def unpacked(path: Path) -> dict[str, Any]:
    with ZipFile(path) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_a_log_of_inspect(a_run: Path, tmp_path: Path) -> None:
    run = exported(a_run)
    (path,) = format_named("inspect").write(run, tmp_path / "one")
    log = unpacked(path)
    (scored,) = log["header.json"]["results"]["scores"]
    figures = {figure.name: figure.value for figure in run.metrics}
    assert {name: metric["value"] for name, metric in scored["metrics"].items()} == figures
    samples = [values for name, values in log.items() if name.startswith("samples/")]
    headline = "success" if run.protocol.judges_outcomes else "exact match"
    both = (log["summaries.json"], samples)
    listed, found = ([(each["id"], each["scores"][headline]["value"]) for each in of] for of in both)
    assert listed == found
    assert sum(value for _, value in found) == pytest.approx(run.headline.value * run.headline.measured.n)
    assert not any(sample["attachments"] for sample in samples)
    (again,) = format_named("inspect").write(exported(a_run), tmp_path / "two")
    assert again.read_bytes() == path.read_bytes()
    times = log["header.json"]["stats"]
    assert run.manifest.created == times["started_at"] <= times["completed_at"]


def test_a_log_of_inspect_holds_the_screenshots_of_steps(tmp_path: Path) -> None:
    run = exported(online_run(tmp_path, mode="offline", limit=1))
    (path,) = format_named("inspect").write(run, tmp_path, images=True)
    assert isinstance(run.run, OpenedRun)
    for step in run.run.walk():
        sample = unpacked(path)[f"samples/{step.task.key}_epoch_1.json"]
        _, shown = sample["input"][0]["content"]
        attached = sample["attachments"][shown["image"].removeprefix("attachment://")].removeprefix("data:image/png;base64,")
        assert base64.b64decode(attached) == (run.run.screenshots / step.task.screenshot).read_bytes()


def test_a_log_of_inspect_names_steps_that_failed(tmp_path: Path) -> None:
    def failed(request: Request) -> str:
        if request.task.step_index == 1:
            raise EngineError("the server is gone")
        return reply_with(request.task.action)

    run_scripted(tmp_path / "run", [make_episode("e0", ACTIONS)], ScriptedEngine(failed))
    run = exported(tmp_path / "run")
    log = unpacked(*format_named("inspect").write(run, tmp_path))
    assert log["header.json"]["status"] == "cancelled"
    results = log["header.json"]["results"]
    assert (results["total_samples"], results["completed_samples"]) == (len(ACTIONS), len(ACTIONS) - 1)
    errors = {each["id"]: each["error"] for each in log["summaries.json"] if each["error"]}
    assert list(errors) == ["scripted/e0#1"] and "the server is gone" in errors["scripted/e0#1"]


def test_a_log_of_inspect_names_no_folder(online: Path, tmp_path: Path, guieval: CommandLine) -> None:
    run = Path(shutil.copytree(online, tmp_path / "run"))
    for screen in sorted((run / SCREENS).iterdir())[:3]:
        screen.unlink()
    assert guieval("data", "export-results", run, "--format", "inspect", "--images", "--out", tmp_path / "out").code == 0
    written = json.dumps(unpacked(next((tmp_path / "out").glob("*.eval"))))
    assert written.count("cannot be read]") >= 3 and written.count("data:image/png;base64") >= 1
    assert str(tmp_path) not in written and str(online) not in written


def test_the_command_writes_and_refuses(offline: Path, tmp_path: Path, guieval: CommandLine) -> None:
    done = guieval("data", "export-results", offline, "--format", "every-eval-ever", "--out", tmp_path / "out")
    assert done.code == 0 and len(done.out.splitlines()) == 2 and (tmp_path / "out" / "data").is_dir()
    assert "did you mean 'atif'" in guieval.sentence("data", "export-results", offline, "--format", "atiff")
    wrong = guieval.sentence("data", "export-results", offline, "--format", "model-index", "--metric", "exact match")
    assert "--metric is not for the format model-index" in wrong
