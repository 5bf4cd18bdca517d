"""The settings shipped in ``configs/runs``: they parse, and every name in them exists and fits the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from guieval.data.sample_sets import get_sample_set
from guieval.data.shipped import config_folder
from guieval.evaluation import get_protocol
from guieval.history.modes import get_mode
from guieval.registry import benchmarks, load_model
from guieval.running.config import merge, run_file
from guieval.running.resolve import patch_policy, sample_parameters
from guieval.settings import RunConfig
from guieval.studies.rollouts import plan_rounds
from tests.command_line import CommandLine
from tests.rows import every_row

SHIPPED = sorted(file.stem for file in (config_folder() / "runs").glob("*.yaml"))


def settings(name: str) -> RunConfig:
    return merge(run_file(Path(name)), [], {})


def test_there_is_one_of_each_kind_and_decisions_is_one_of_a_rollout_too() -> None:
    assert {"demo", "androidcontrol-soeval", "ui-s1-sop", "decisions", "screenspot-grounding"} <= set(SHIPPED)
    assert [each.config.sampling.samples for each in plan_rounds(settings("decisions"), 2)] == [64, 64]


@every_row("name", SHIPPED)
def test_every_name_exists_and_fits_the_others(name: str) -> None:
    config = settings(name)
    bench = benchmarks()[config.data.bench]
    model = load_model(config.model.name, adapter=config.model.adapter, thinking=config.model.thinking)
    assert get_protocol(config.data.protocol or bench.protocol).applies_to(bench.dataset)
    assert len(sample_parameters(config, model.config)) == config.sampling.samples
    get_mode(config.history.mode).patched(patch_policy(config))
    if config.data.sample_set is not None:
        assert bench.dataset in get_sample_set(config.data.sample_set).datasets
    assert config.data.folder is None and not config.server.base_urls, "where data and servers are is the user's to say"
    text = (config_folder() / "runs" / f"{name}.yaml").read_text(encoding="utf-8")
    assert f"guieval run --config {name}" in text, "its comment names it as it is given"


@pytest.mark.ci
def test_flags_and_settings_go_over_a_preset_and_a_path_serves_as_well(guieval: CommandLine, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    shutil.copy(config_folder() / "runs" / "demo.yaml", mine)
    for number, given in enumerate((Path("demo"), mine)):
        done = guieval(
            *("run", "--config", given, "--mode", "offline", "--set", "bench_options.episodes=1", "--quiet"),
            *("--data", tmp_path / "data", "--out", tmp_path / f"run-{number}"),
        )
        assert done.code == 0 and "offline" in done.out


def test_an_unknown_preset_answers_with_the_nearest(guieval: CommandLine) -> None:
    for command in ("run", "study rollout", "study mix"):
        message = guieval.sentence(*command.split(), "--config", "ui-s1-so")
        assert "no file 'ui-s1-so'" in message and "did you mean 'ui-s1-sop'?" in message and "shipped: " in message
