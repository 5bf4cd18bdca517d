"""Campaigns: what a file comes to, what is estimated before it begins, and a real one that is interrupted and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.data.sample_sets import get_sample_set
from guieval.errors import UsageError
from guieval.evaluation import get_protocol
from guieval.journal import Records
from guieval.registry import benchmark_class, config_folder, model_config
from guieval.reports.leaderboards.published_results import get_results
from guieval.running.campaign import planned, read_campaign
from guieval.testing.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine

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
    assert [run.directory.name for run in runs[:2]] == ["ui-tars-7b-demo-offline-seed3", "ui-tars-7b-demo-offline-seed4"]
    assert len({run.directory for run in runs}) == len(runs) == 8
    assert {run.config.concurrency for run in runs} == {7}
    assert runs[0].config.sampling == {"temperature": 0.5, "top_p": 0.9, "seed": 3}
    assert runs[-1].config.sampling == {"temperature": 1.0, "top_p": 0.9, "seed": 4} and runs[-1].model == "hot"
    only = planned(read_campaign(campaign_file(tmp_path, text)), tmp_path, only=["hot"], base_urls="http://h:1/v1")
    assert {run.model for run in only} == {"hot"} and {run.config.base_urls for run in only} == {("http://h:1/v1",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: [a]", "field benchmarks"),
        ("models: []\nbenchmarks: [demo]", "field models"),
        ("models: [a]\nbenchmark: [demo]", r"unknown field 'benchmark' \(did you mean 'benchmarks'\?\)"),
        (
            "models: [ocr-baseline, ocr-baseline]\nbenchmarks: [demo]",
            "two runs of the campaign are 'ocr-baseline-demo-offline'",
        ),
        (
            "models: [ocr-baseline]\nbenchmarks: [demo]\nsettings: {limt: 2}",
            r"unknown setting 'limt' \(did you mean 'limit'\?\)",
        ),
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


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_campaigns_name_what_there_is(name: str, tmp_path: Path) -> None:
    campaign = read_campaign(Path(name))
    for run in planned(campaign, tmp_path):
        config = run.config
        assert model_config(config.model, config.adapter).name == config.model
        assert benchmark_class(config.bench).name == config.bench
        if config.protocol is not None:
            get_protocol(config.protocol)
        if config.sample_set is not None:
            get_sample_set(config.sample_set)
    for reference in campaign.references:
        get_results(reference)


TWO = """
models:
  - {{model: ui-tars-7b-sft, base_urls: ["{url}"]}}
  - {{model: ui-tars-7b-dpo, base_urls: ["{url}"]}}
benchmarks: [demo]
modes: [offline, sop]
settings: {{limit: 2, concurrency: 2}}
"""


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_campaign_is_done_once_and_ends_with_one_leaderboard(
    parallel: int, tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with MockServer(MockSettings(model="ui-tars-7b-sft")) as server:
        file = campaign_file(tmp_path, TWO.format(url=server.base_url))
        arguments = ("campaign", file, "--out", tmp_path / "out", "--quiet", "--parallel", str(parallel))
        shown = guieval("campaign", file, "--out", tmp_path / "out", "--dry-run", "--pace", "0.1")
        assert shown.code == 0 and "nothing was sent" in shown.out and not (tmp_path / "out").exists()
        assert "time:     about" in shown.out and "power:    " in shown.out
        first = guieval(*arguments)
        runs = sorted(path for path in (tmp_path / "out").iterdir() if path.is_dir())
        assert len(runs) == 4, first
        assert "Each model against the first" in first.out
        assert (tmp_path / "out" / "leaderboard.html").is_file()
        before = {run: len(list(Records(run))) for run in runs}
        assert all(before.values())
        again = guieval(*arguments)
        assert {run: len(list(Records(run))) for run in runs} == before
        assert "Each model against the first" in again.out
        assert "time:     about 0 min" in again.out  # also of runs that did not reach all of their steps
