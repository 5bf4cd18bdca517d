"""Configurations of training: mistakes are one sentence, and the shipped files hold the papers' numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.registry import list_benchmarks, list_models, model_config
from guieval.rewards.shapes import get_reward
from guieval.training.arguments import batch_counts
from guieval.training.config import GRPOTraining, SemiOnlineTraining, parse_config, read_config
from guieval.training.guard import PACKAGES, require_trl, require_verl
from guieval.training.settings import BatchSettings
from tests.command_line import CommandLine
from tests.rows import every_row

SHIPPED = sorted((config_folder() / "training").glob("*.yaml"))
SMALL = {"kind": "grpo", "model": "tiny-policy", "bench": "demo-icons"}


def shipped(name: str) -> Any:
    return read_config(config_folder() / "training" / f"{name}.yaml")


@every_row("file", SHIPPED, ids=lambda file: file.stem)
def test_every_shipped_file_names_what_there_is(file: Path) -> None:
    config = read_config(file)
    assert config.model in list_models()
    assert all(source.bench in list_benchmarks() for source in config.all_sources)
    assert config.open_adapter().config.name == config.model  # the adapter takes the options
    if isinstance(config, GRPOTraining | SemiOnlineTraining):
        assert get_reward(config.reward.name, protocol=config.reward.protocol, **config.reward.weights)
    assert config.out == f"training/{file.stem}"


@every_row(
    ("name", "options", "left_out"),
    [("planner=ui-tars-1.5-7b,grounder=uground-v1-7b", {}, "the grounder"), ("ui-tars-1.5-7b", {"zoom": 2.0}, "the zoom")],
)
def test_a_composition_cannot_be_trained(name: str, options: dict[str, Any], left_out: str) -> None:
    config = shipped("hypertrack-rl").model_copy(update={"model": name, "model_options": options})
    with pytest.raises(UsageError, match=f"a training is of one model with one response to a step: leave out {left_out}$"):
        config.open_adapter()


def at(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = config[int(name)] if name.isdecimal() else config[name] if isinstance(config, dict) else getattr(config, name)
    return config


@every_row(
    ("name", "expected"),
    [
        ("ui-s1", "limit 1000, rollout.patch thought-free, rollout.budget 1"),  # a row of Table 3; the others are Table 9's
        ("ui-s1", "batch.tasks 32, batch.updates 4, trainer.per_device_train_batch_size 1, trainer.learning_rate 1e-6"),
        ("ui-s1", "trainer.beta 1e-4, trainer.num_train_epochs 5, max_prompt_length 12288, dynamic_sampling.eta 0.3"),
        ("ui-s1", "advantages.gamma 0.5, advantages.omega 1, model_options.max_images 2, reward.name ui-s1"),
        (
            "ui-s1",
            "trainer.num_generations 8, trainer.max_completion_length 512, advantages.spread_of first-returns",
        ),  # released
        ("ui-s1-sft", "sources.0.bench androidcontrol, sources.0.limit 500, sources.1.bench amex, sources.1.limit 500"),
        ("ui-r1", "trainer.learning_rate 9.98e-7, trainer.lr_scheduler_type linear, trainer.num_train_epochs 8"),  # Table 4
        ("ui-r1", "trainer.num_generations 8, model_options.max_pixels 12845056, batch.tasks 16, max_prompt_length None"),
        ("ui-r1", "sources.0.bench screenspot, sources.1.bench androidcontrol-low, reward.name ui-r1, dynamic_sampling None"),
        ("hypertrack-rl", "trainer.num_generations 16, trainer.epsilon 0.2, trainer.epsilon_high 0.3, trainer.beta 0"),  # 2.2
        ("hypertrack-rl", "trainer.loss_type dapo, dynamic_sampling.eta 0, reward.name hypertrack, model ui-tars-1.5-7b"),
        ("hypertrack-sft", "model ui-tars-1.5-7b, bench hypertrack, split train, journal None"),
    ],
)
def test_recipes_have_the_papers_numbers(name: str, expected: str) -> None:
    for path, value in (each.split(" ") for each in expected.split(", ")):
        found = at(shipped(name), path)
        assert found == (float(value) if isinstance(found, int | float) else value) or str(found) == value, path


@every_row(
    ("values", "message"),
    [
        ({"kind": "grop"}, "did you mean 'grpo'"),
        ({"rewrad": {}}, "unknown setting 'rewrad' (did you mean 'reward'?) in a training of kind grpo"),
        ({"reward": {"nam": "ui-s1"}}, "unknown setting 'reward.nam' (did you mean 'name'?) in reward"),
        ({"lora": {"rr": 3}}, "unknown setting 'lora.rr' (did you mean 'r'?) in lora"),
        ({"evaluation": {"evry": 3}}, "unknown setting 'evaluation.evry' (did you mean 'every'?)"),
        ({"evaluation": {}}, "evaluation.every is not given: set the optimiser steps between two evaluations"),
        ({"dynamic_sampling": {"eta": -1}}, "setting 'dynamic_sampling.eta' is -1: "),
        ({"trainer": {"output_dir": "x"}}, "trainer.output_dir is given as out"),
        ({"dtype": "float16"}, "setting dtype is 'float16', with which only adapters (lora) can be trained"),
        ({"lora": {}, "freeze": ".*"}, "setting freeze is given together with lora, which trains only its adapters"),
        ({"freeze": "("}, "setting 'freeze' is '(': '(' is not a regular expression: missing )"),
        ({"freeze": "a{99999999999999}"}, "is not a regular expression"),
        ({"trainer": {"eval_strategy": "steps"}}, "trainer.eval_strategy is not to be set: set evaluation.every"),
        ({"trainer": {"max_length": 512}}, "it would cut image tokens"),
        ({"rollout": {}}, "unknown setting 'rollout'"),  # of semi-online training
        ({"bench": None}, "bench is not given: name a benchmark, or several in sources"),
        ({"sources": [{"bench": "demo"}]}, "bench is given together with sources: give it in each source"),
        ({"bench": None, "sources": [{"bench": "demo", "wieght": 2}]}, "setting 'sources.0.wieght' (did you mean 'weight'?)"),
        ({"bench": None, "sources": [{"bench": "demo", "weight": 0}]}, "setting 'sources.0.weight' is 0: "),
        ({"bench": None, "sources": [{"weight": 2}]}, "the setting 'sources.0.bench' is required"),
        *[
            ({"bench": None, **given}, message)
            for given, message in (
                ({"sources": [{"bench": "demo", "data": each} for each in "ab"]}, "with two data folders, 'a' and 'b'"),
                ({"sources": [{"bench": "demo"}], "evaluation": {"every": 5}}, "evaluation.bench is not given: a training on"),
            )
        ],
        ({"batch": {"tasks": 0}}, "setting 'batch.tasks' is 0: "),
        ({"kind": "online", "data": "x"}, "data is for recorded episodes, and kind online acts in an environment: remove it"),
        ({"kind": "online", "bench": None, "sources": [{"bench": "demo", "sample_set": "x"}]}, "sample_set is for recorded"),
        ({"kind": "online", "reward": {"success": float("nan")}}, "setting 'reward.success' is nan: "),
        *[
            ({"curriculum": given}, message)
            for given, message in (
                ({"runs": []}, "setting 'curriculum.runs' is []: "),
                ({"runs": "r", "pass_rate": [0.9, 0.1]}, "pass_rate is [0.9, 0.1]: expected the lower bound first"),
                ({"runs": "r", "pass_rate": [0, 2]}, "setting 'curriculum.pass_rate.1' is 2: "),
                ({"runs": "r", "weight": "learnble"}, "setting 'curriculum.weight' is 'learnble': "),
                ({"rums": "r"}, "unknown setting 'curriculum.rums' (did you mean 'runs'?)"),
            )
        ],
        *[
            ({"kind": "semi-online", "rollout": given}, message)
            for given, message in (
                ({"patch": "off-policy"}, "patch off-policy needs either 'rollout.thoughts'"),
                ({"patch": "off-policy", "thoughts": "t", "server": {"base_urls": "u", "model": "m"}}, "and both are given"),
                ({"thoughts": "t"}, "thoughts is for patch off-policy, and patch is 'thought-free'"),
                ({"server": {"base_url": "u"}}, "unknown setting 'rollout.server.base_url' (did you mean 'base_urls'?)"),
            )
        ],
        ({"batch": {"tasks": 8}, "trainer": {"gradient_accumulation_steps": 2}}, "accumulation_steps is given together with"),
    ],
)
def test_a_mistake_is_one_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_config({**SMALL, **values})


def test_overrides_and_data_folders_lie_over_the_file(tmp_path: Path) -> None:
    config = read_config(config_folder() / "training" / "tiny-grpo.yaml", ["trainer.learning_rate=1e-4", "reward.name=ui-s1"])
    assert isinstance(config, GRPOTraining)
    assert config.trainer["learning_rate"] == 1e-4 and config.trainer["num_generations"] == 8
    assert config.reward.name == "ui-s1"
    elsewhere = read_config(config_folder() / "training" / "tiny-grpo.yaml", data="screens", out="here")
    assert (elsewhere.data, elsewhere.out) == ("screens", "here")
    with pytest.raises(UsageError, match="is of kind 'grpo', not 'sft': use `guieval train grpo`"):
        read_config(config_folder() / "training" / "tiny-grpo.yaml", kind="sft")
    with pytest.raises(UsageError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")
    file, one = (config_folder() / "training" / f"{name}.yaml" for name in ("ui-r1", "tiny-grpo"))
    config = read_config(file, ["sources.1.limit=30"], data=["screenspot=a", "androidcontrol-low=b"])
    assert [(source.data, source.limit) for source in config.sources] == [("a", None), ("b", 30)]
    with pytest.raises(UsageError, match=r"--data is 'screnspot=a' .did you mean 'screenspot'.*: this training has several"):
        read_config(file, data=["screnspot=a"])
    with pytest.raises(UsageError, match=r"--data screenspot=DIR --data androidcontrol-low=DIR"):
        read_config(file, data="folder")
    with pytest.raises(UsageError, match="'9' is not a place in a list of 2, counted from 0"):
        read_config(file, ["sources.9.limit=30"])
    with pytest.raises(UsageError, match="--data is given 2 times: this training has one benchmark"):
        read_config(one, data=["a", "b"])
    with pytest.raises(UsageError, match="--data is empty"):
        read_config(one, data=" ")


@every_row("processes", [1, 2, 4, 8, 16, 32, 64])
def test_a_batch_is_the_same_on_any_number_of_processes(processes: int) -> None:
    counts = batch_counts(BatchSettings(tasks=32, updates=4), processes=processes, rows=1, replies=8, kind="semi-online")
    assert counts["steps_per_generation"] * processes == 32 * 8  # all rollouts of a batch
    assert counts["gradient_accumulation_steps"] * 4 == counts["steps_per_generation"]


def test_a_batch_that_cannot_be_divided_is_one_sentence() -> None:
    with pytest.raises(
        UsageError, match=r"32 tasks x 8 responses in 4 updates .* 3 processes x 1 row.* 16, 32 or 64 processes"
    ):
        batch_counts(BatchSettings(tasks=32, updates=4), processes=3, rows=1, replies=8, kind="semi-online")
    with pytest.raises(UsageError, match=r"use a smaller trainer.per_device_train_batch_size"):
        batch_counts(BatchSettings(tasks=2), processes=1, rows=7, replies=2, kind="grpo")
    with pytest.raises(UsageError, match=r"'batch.updates' is 2: expected 1"):
        batch_counts(BatchSettings(tasks=2, updates=2), processes=1, rows=1, replies=1, kind="sft")
    found = batch_counts(BatchSettings(tasks=32), processes=8, rows=2, replies=1, kind="sft")
    assert found == {"gradient_accumulation_steps": 2}


def test_another_version_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    for require, right, others in (
        (require_trl, "1.16.4", ("1.15.9", "1.17.0.dev0", "2.0")),
        (require_verl, "0.9.2", ("0.9.0", "0.10")),
    ):
        monkeypatch.setattr("guieval.training.guard.version", lambda name, found=right: found)
        require()
        for other in others:
            monkeypatch.setattr("guieval.training.guard.version", lambda name, found=other: found)
            with pytest.raises(UsageError, match=rf"is {other}, and guieval relies .* pip install '(trl|verl)>="):
                require()


def test_the_command_states_what_is_wrong(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean `guieval train semi-online`?" in guieval.sentence("train", "semi-onlin", "--config", "ui-s1")
    assert "did you mean 'ui-s1'" in guieval.sentence("train", "semi-online", "--config", "ui-s")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = guieval.sentence("train", "grpo", "--config", "tiny-grpo")
    assert "pip install 'guieval[train]'" in message and PACKAGES[0] in message


def test_the_tiny_policy_is_shipped_whole_and_small_and_nothing_else() -> None:
    name = model_config("tiny-policy").folder
    assert name is not None and [each.name for each in (config_folder() / "checkpoints").iterdir()] == [name]
    files = {file.name: file.stat().st_size for file in (config_folder() / "checkpoints" / name).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "processor_config.json", "chat_template.jinja"} <= set(files)
    assert sum(files.values()) < 8_000_000
