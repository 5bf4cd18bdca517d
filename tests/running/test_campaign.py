"""Campaigns: what a file comes to, what is estimated before it begins, and a real one that is interrupted and goes on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guieval import campaign as campaign_in_python
from guieval.data.sample_sets import get_sample_set
from guieval.data.shipped import config_folder
from guieval.errors import TrainingStopped, UsageError
from guieval.evaluation import get_protocol
from guieval.journal import MANIFEST, STEPS, RunFolder
from guieval.online.find import environments
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import list_benchmarks, load_benchmark, model_config
from guieval.reports.leaderboards.published_results import get_results
from guieval.running.campaign import planned, read_campaign, staged, trainings_of
from guieval.running.estimate import estimates, side_by_side, without_servers
from guieval.settings import RunConfig
from guieval.studies.trained import points, trained_models
from guieval.training.trainings import costs
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.json_values import read_json
from tests.programs import started
from tests.rows import every_row
from tests.waiting import until

SHIPPED = sorted(path.stem for path in (config_folder() / "campaigns").glob("*.yaml"))


def campaign_file(folder: Path, text: str) -> Path:
    file = folder / "c.yaml"
    file.write_text(text)
    return file


def test_every_combination_is_a_run(tmp_path: Path) -> None:
    text = """
models: [ui-tars-7b, {model: ui-tars-7b, name: hot, sampling: {temperature: 1.0}}]
benchmarks: [demo]
modes: [offline, sop]
seeds: [3, 4]
settings: {concurrency: 7, sampling: {temperature: 0.5, top_p: 0.9}}
"""
    runs = planned(read_campaign(campaign_file(tmp_path, text)), tmp_path / "out")
    folder = tmp_path / "out" / "ui-tars-7b-demo-offline"
    assert [(run.directory, run.config.sampling.repeat) for run in runs[:2]] == [(folder / f"repeat-{k}", k) for k in (0, 1)]
    assert len({run.directory for run in runs}) == len(runs) == 8
    assert {run.config.server.concurrency for run in runs} == {7}
    assert runs[0].config.sampling.request == {"temperature": 0.5, "top_p": 0.9, "seed": 3}
    assert runs[-1].config.sampling.request == {"temperature": 1.0, "top_p": 0.9, "seed": 4} and runs[-1].model == "hot"
    only = planned(read_campaign(campaign_file(tmp_path, text)), tmp_path, only=["hot"], settings={"base_url": "http://h:1/v1"})
    assert {run.model for run in only} == {"hot"} and {run.config.server.base_urls for run in only} == {("http://h:1/v1",)}


@every_row(
    ("text", "words"),
    [
        ("models: [a]", "field benchmarks"),
        ("models: []\nbenchmarks: [demo]", "it has no models"),
        ("train: {grid: {limit: [1]}}\nbenchmarks: [demo]", "the training has no recipe"),
        ("train: {recipe: tiny-sf}\nbenchmarks: [demo]", r"\(did you mean 'tiny-sft'\?\)"),
        ("train: {recipe: tiny-sft, grid: {sources: [[1]]}}\nbenchmarks: [demo]", "needs a name"),
        ("train: {recipe: tiny-sft, rows: [{}, {}]}\nbenchmarks: [demo]", "two trainings are 'tiny-sft'"),
        ("train: {recipe: tiny-sft, starts_from: first}\nbenchmarks: [demo]", "starts from 'first', which is not before it"),
        ("models: [a]\nbenchmark: [demo]", r"unknown field 'benchmark' \(did you mean 'benchmarks'\?\)"),
        (
            "models: [ocr-baseline, ocr-baseline]\nbenchmarks: [demo]",
            "two runs of the campaign are 'ocr-baseline-demo-offline'",
        ),
        ("models: [a]\nbenchmarks: [demo]\nsettings: {limt: 2}", r"unknown setting 'limt' \(did you mean 'limit'\?\)"),
        ("models: [{modell: x}]\nbenchmarks: [demo]", "unknown setting 'modell'"),
    ],
)
def test_mistakes_are_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        planned(read_campaign(campaign_file(tmp_path, text)), tmp_path)


def test_an_unknown_model_or_campaign_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no model 'ocr-baselin'"):
        planned(read_campaign(Path("demo")), tmp_path, only=["ocr-baselin"])
    with pytest.raises(UsageError, match="no shipped campaign of that name"):
        read_campaign(Path("dem"))


TRAINED = """
train:
  recipe: tiny-sft
  launch: "{python} trainer.py"
  settings: {{trainer.save_steps: 1}}
  rows: [{{name: base, grid: {{}}, evaluate: false}}, {{name: rl, starts_from: base}}, {{name: hot, gpu_hours: 3}}]
  grid: {{limit: [2, null]}}
benchmarks: [{{bench: episodes, name: short, protocol: ui-s1-sop, data: {pinned}/benchmark, subset: tools}}]
modes: [sop]
settings: {{model: careful, adapter: {pinned}/agents.py, engine: local, sampling: {{temperature: 1}}}}
references: [printed.yaml]
"""
PRINTED = """{name: printed, paper: P, short: P, table: Table 1, caption: of ours, columns: [
  {name: tsr, title: TSR, meaning: "in %", decimals: 1, benchmark: episodes, protocol: ui-s1-sop, metric: TSR, mode: sop},
  {name: short, title: all, meaning: "in %", decimals: 1}],
rows: [{model: a, training: rl-2, values: [12.5, 14.0]}, {model: b, values: [1, 2]}]}
"""
TRAINER = """
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(out / "checkpoints/checkpoint-4").mkdir(parents=True, exist_ok=True)
(out / "checkpoints/checkpoint-4/complete").touch()
(out / "training.yaml").write_text("seed: 7")
with open("calls", "a") as calls:
    calls.write(out.name + " --resume" * ("--resume" in sys.argv) + "\\n")
print("no memory left")
if "FAIL" in os.environ: sys.exit(3)
(out / "hours.jsonl").write_text(json.dumps({"step": 4, "steps": 4, "seconds": 1800, "cards": 2, "card": "a card"}))
(out / "final").mkdir()
(out / "final/complete").touch()
"""


def test_trainings_come_before_their_evaluations_and_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine
) -> None:
    """Those that another starts from first, a failed one is resumed, a finished one skipped; then a table."""
    monkeypatch.chdir(tmp_path)
    Path("trainer.py").write_text(TRAINER)
    Path("printed.yaml").write_text(PRINTED)
    file = campaign_file(tmp_path, TRAINED.format(python=sys.executable, pinned=REPOSITORY / "tests" / "pinned"))
    runs = planned(read_campaign(file, ["train.settings.seed=7"]), Path("out"))
    trainings = trainings_of(runs)
    assert [each.name for each in trainings] == ["base", "rl-2", "rl-null", "hot-2", "hot-null"]
    assert [run.model for run in runs] == ["rl-2", "rl-null", "hot-2", "hot-null"]
    assert runs[1].config.model.model_path == "out/trainings/rl-null/final"
    rl = trainings[2].values
    assert (rl["model_path"], rl["limit"], rl["seed"]) == ("out/trainings/base/final", None, 7)
    assert dict(trainings[3].varied) == {"row": "hot", "limit": 2}
    before = [(cost.left, cost.source) for cost in costs(trainings, {"base": 4}, {"base": 6.0, "rl-2": 9.0})]
    assert before == [(6.0, "computed"), *[(None, "unknown")] * 2, *[(3.0, "published")] * 2], "steps are needed too"
    said: list[str] = []
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(TrainingStopped, match=r"'base' ended with exit code 3.*\n  no memory left"):
        next(staged(runs, said.append))
    monkeypatch.delenv("FAIL")
    steps = {"rl-2": 8, "hot-2": 8}
    groups = staged(runs, said.append)
    assert next(groups) == [(runs[0].config, runs[0].directory)]
    found = {each.name: (cost.left, cost.source) for each, cost in zip(trainings, costs(trainings, steps, {}), strict=True)}
    assert found["base"] == (0.0, "finished") and found["hot-2"] == (2.0, "measured"), "4 steps were one hour of a card"
    assert (found["hot-null"], found["rl-null"]) == ((3.0, "published"), (None, "unknown"))
    assert len(list(groups)) == 3 and len(list(staged(runs, said.append))) == 4
    assert Path("calls").read_text().split("\n")[:-1] == ["base", "base --resume", "rl-2", "rl-null", "hot-2", "hot-null"]
    assert "trained:  rl-2: 1 GPU hours, 4 steps" in said
    done = guieval("campaign", file, "--out", "out", "--set", "train.settings.seed=7")
    rows = [line for line in done.out.splitlines() if line.startswith(("rl-2 ", "hot-2 "))]
    assert done.code == 0 and "(12.5)" in rows[0] and "(14.0)" in rows[0] and rows[0].endswith(" 1"), done
    assert "(" not in rows[1].replace("(3)", "") and rows[1].endswith(" 1 (3)") and Path("calls").read_text().count("rl") == 2
    drawn = points(trained_models(Path("out")), x="limit", y="TSR")
    assert drawn.series["rl"] == drawn.series["hot"] and [size for size, _ in drawn.series["rl"]] == [2, None]


def test_a_training_with_a_wrong_setting_is_named_before_any_begins(tmp_path: Path, guieval: CommandLine) -> None:
    text = "train: {recipe: tiny-sft, grid: {trainer.max_steps: [1], batc.tasks: [2]}}\nbenchmarks: [demo-icons]"
    done = guieval.sentence("campaign", campaign_file(tmp_path, text), "--out", tmp_path / "out")
    assert "training '1-2': unknown setting 'batc' (did you mean 'batch'?)" in done and not (tmp_path / "out").exists()


@every_row("name", SHIPPED)
def test_a_shipped_campaign_names_what_there_is_and_its_dry_run_needs_no_engine_and_no_data(
    name: str, tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = read_campaign(Path(name))
    assert all(map(get_results, campaign.references))
    runs = planned(campaign, tmp_path)
    own = {each["bench"]: set(each.get("modes", campaign.modes)) for each in campaign.benchmarks}
    assert all(run.config.history.mode in own[run.config.data.bench] for run in runs)
    for config in (run.config for run in runs):
        assert model_config(config.model.name, config.model.adapter).name == config.model.name
        assert config.data.bench in (environments() if config.history.mode == "online" else list_benchmarks())
        assert config.data.protocol is None or get_protocol(config.data.protocol)
    done = guieval("campaign", name, "--dry-run", "--pace", "10")
    assert done.code == 0, done
    assert "nothing was sent" in done.out and not list(tmp_path.iterdir())
    assert "GPU hours unknown" not in done.out and "; unknown of" not in done.out  # nor without torch
    found = estimates(without_servers([(run.config, run.directory) for run in runs]), pace=10, disagreement=0.2, icc=0.1)
    for run, estimate in zip(runs, found, strict=True):
        if run.config.data.sample_set is not None and estimate.missing_data:
            chosen = get_sample_set(run.config.data.sample_set)
            assert (estimate.steps, estimate.episodes, estimate.left) == (chosen.steps, chosen.episodes, chosen.steps)
            assert estimate.seconds == chosen.steps / 10 and estimate.forecast is None
    if name == "androidworld-scaffolds":  # without the server the published tasks
        assert len(runs) == 9 and "116 tasks can detect a difference of 14.2 points in success" in " ".join(done.out.split())
    missing = any(each.missing_data and each.config.history.mode != "online" for each in found)
    assert ("tokens and cost are not known" in done.out) == missing


@pytest.mark.parametrize("engine", ["vllm", "vllm-inprocess", "transformers"])
def test_a_dry_run_knows_the_tokens_where_there_are_data(engine: str, tmp_path: Path, guieval: CommandLine) -> None:
    text = f"models: [ui-tars-7b]\nbenchmarks: [demo]\nsettings: {{engine: {engine}, limit: 2}}"
    file = campaign_file(tmp_path, text)
    done = guieval("campaign", file, "--data", tmp_path, "--dry-run")
    row = next(line for line in done.out.splitlines() if line.startswith("ui-tars-7b-demo-offline"))
    assert done.code == 0 and int(row.split()[3].replace(",", "")) > 1000, row
    assert "unknown:  time (--pace)" in done.out


@pytest.mark.parametrize(
    ("setting", "modes", "words"),
    [
        ("protocol: guievalkitt", "[offline]", "unknown protocol 'guievalkitt' (did you mean 'guievalkit'?)"),
        ("sample_set: ac-test-8443", "[offline]", "did you mean 'ac-test-8444'?"),
        ("split: all", "[offlin]", "unknown mode 'offlin'"),
    ],
)
def test_a_dry_run_names_mistakes_first(setting: str, modes: str, words: str, tmp_path: Path, guieval: CommandLine) -> None:
    bench = f"{{bench: androidcontrol, data: {tmp_path / 'none'}, {setting}}}"
    file = campaign_file(tmp_path, f"models: [ui-tars-7b]\nbenchmarks: [{bench}]\nmodes: {modes}")
    assert words in guieval.sentence("campaign", file, "--dry-run")


def test_the_time_is_that_of_models_side_by_side() -> None:
    rows = ("3111", 1, 6), ("3111", 2, 3), ("113", 2, 4), ("222", 2, 4), ("25", 8, 5), ("", 2, 0)
    assert all(side_by_side([float(each) for each in seconds], at_once) == whole for seconds, at_once, whole in rows)


def test_the_time_counts_every_answer(tmp_path: Path) -> None:
    config = {"model": "ui-tars-7b", "bench": "demo", "data": str(tmp_path), "limit": 2}
    settings = (config, {**config, "samples": 3, "sampling": {"temperature": 1.0}}, {**config, "mode": "sop"})
    online = {"model": "ocr-baseline", "bench": "demo", "mode": "online", "max_steps": 5, "limit": 2}
    configs = [(RunConfig.model_validate(each), tmp_path / str(place)) for place, each in enumerate((*settings, online))]
    one, three, sop, acting = estimates(without_servers(configs), pace=2, disagreement=0.2, icc=0.1)
    assert one.steps and one.seconds == one.steps / 2 and three.seconds == 3 * one.seconds == 3 * (sop.seconds or 0)
    assert (acting.steps, acting.seconds, acting.asks) == (2, 2 * 5 / 2, False)
    assert [each.at_most for each in (one, three, sop, acting)] == [False, False, True, True]


def test_a_finished_run_whose_beginning_is_unknown_gives_no_pace(tmp_path: Path) -> None:
    run = shutil.copytree(REPOSITORY / "tests" / "pinned" / "runs" / "careful" / "offline", tmp_path / "run")
    manifest = read_json((run / MANIFEST).read_text())
    (run / MANIFEST).write_text(json.dumps({**manifest, "created": "yesterday"}))
    config = RunConfig.model_validate({"model": "ui-tars-7b", "bench": "demo", "data": str(tmp_path), "limit": 2})
    (estimate,) = estimates(without_servers([(config, run)]), pace=None, disagreement=0.2, icc=0.1)
    assert (estimate.left, estimate.seconds) == (0, 0.0)


TWO = """
models:
  - {{model: ui-tars-7b-sft, base_urls: ["{url}"]}}
  - {{model: ui-tars-7b-dpo, base_urls: ["{url}"]}}
benchmarks: [demo]
modes: [offline, sop]
settings: {{limit: 2, concurrency: 2}}
"""


@pytest.mark.parametrize("parallel", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_a_campaign_is_done_once_and_ends_with_one_leaderboard(
    parallel: int, tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with MockServer(MockSettings(model="ui-tars-7b-sft")) as server:
        file = campaign_file(tmp_path, TWO.format(url=server.base_url))
        arguments = ("campaign", file, "--out", tmp_path / "out", "--quiet", "--parallel", str(parallel))
        shown = guieval("campaign", file, "--out", tmp_path / "out", "--dry-run", "--pace", "0.1")
        assert shown.code == 0 and "nothing was sent" in shown.out and not (tmp_path / "out").exists()
        assert "time:     at most" in shown.out and "power:    " in shown.out
        first = guieval(*arguments)
        runs = sorted(path for path in (tmp_path / "out").iterdir() if path.is_dir())
        assert len(runs) == 4, first
        assert "Each model minus ui-tars-7b" in first.out
        assert (tmp_path / "out" / "leaderboard.html").is_file()
        before = {run: len(list(RunFolder(run).records)) for run in runs}
        assert all(before.values())
        again = guieval(*arguments)
        done = campaign_in_python(file, out=tmp_path / "out", concurrency=1)
        assert len(done.runs) == 4 and done.complete and done.board is not None and done.against_first is not None
        assert {run: len(list(RunFolder(run).records)) for run in runs} == before
        assert "Each model minus ui-tars-7b" in again.out
        assert "4 runs, nothing is left to run" in again.out  # also of runs that did not reach all of their steps


def answered(folder: Path) -> dict[str, int]:
    """The number of records of each run."""
    return {path.name: len(list(RunFolder(path).records)) for path in sorted(folder.iterdir()) if path.is_dir()}


@pytest.mark.ci
def test_a_campaign_that_is_killed_goes_on_where_it_stopped(tmp_path: Path, guieval: CommandLine) -> None:
    slots = 2
    settings = MockSettings(model="ui-tars-7b-sft", policy="reference", accuracy=0.7)
    with MockServer(settings, benchmark=load_benchmark("demo")) as server:
        file = campaign_file(tmp_path, TWO.format(url=server.base_url))
        command = [sys.executable, "-m", "guieval", "campaign", str(file), "--out", str(tmp_path / "killed"), "--quiet"]

        def third() -> bool:
            return sum(journal.stat().st_size > 0 for journal in (tmp_path / "killed").glob(f"*/{STEPS}")) == 3

        server.app.held = lambda tag: third()  # however late that is noticed here, the campaign goes on no further
        with started(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            until(third, "the third of the four runs", running=process)
        assert process.returncode == -signal.SIGKILL, "it was killed in the middle"
        server.app.held = lambda tag: False
        before = answered(tmp_path / "killed")
        assert sum(map(bool, before.values())) == 3
        resumed = guieval("campaign", file, "--out", tmp_path / "killed", "--quiet")
        asked = server.stats()["requests"]
        whole = answered(tmp_path / "killed")
        assert resumed.code == 0 and len(whole) == 4, resumed
        assert all(whole[name] >= count for name, count in before.items())
        assert sum(whole.values()) <= asked <= sum(whole.values()) + slots, "only what was in flight is asked again"

        clean = guieval("campaign", file, "--out", tmp_path / "clean", "--quiet")
        assert clean.code == 0 and answered(tmp_path / "clean") == whole
    boards = [(tmp_path / name / "leaderboard.md").read_text() for name in ("killed", "clean")]
    assert boards[0] == boards[1].replace("clean", "killed")
