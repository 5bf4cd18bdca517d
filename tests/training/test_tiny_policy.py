"""The shipped tiny policy: a half-trained one that the evaluation runs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.journal import RunFolder
from guieval.registry import config_folder, model_config
from tests.command_line import CommandLine


def folder() -> Path:
    name = model_config("tiny-policy").folder
    assert name is not None
    return config_folder() / "checkpoints" / name


def test_it_is_shipped_whole_and_small() -> None:
    files = {file.name: file.stat().st_size for file in folder().iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "processor_config.json", "chat_template.jinja"} <= set(files)
    assert sum(files.values()) < 8_000_000


def test_every_folder_of_weights_is_some_checkpoints() -> None:
    assert [each.name for each in (config_folder() / "checkpoints").iterdir()] == [folder().name]


def test_it_answers_in_form_and_is_right_about_half_of_the_time(guieval: CommandLine, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    run = tmp_path / "run"
    small = ("--set", "bench_options.episodes=24", "--set", "bench_options.seed=9")
    where = ("--engine", "transformers", "--data", tmp_path / "data", "--out", run)
    done = guieval("run", "--model", "tiny-policy", "--bench", "demo-icons", "--mode", "offline", *small, *where)
    assert done.code == 0, done.err
    outcomes = [record.sample.outcome for record in RunFolder(run).records]
    assert len(outcomes) > 60
    assert sum(outcome.type_match for outcome in outcomes) >= 0.9 * len(outcomes)
    # room to improve, and enough that is right for rewards to differ
    assert 0.3 < sum(outcome.exact_match for outcome in outcomes) / len(outcomes) < 0.8
