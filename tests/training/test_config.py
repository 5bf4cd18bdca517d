"""Configurations of training: mistakes are one sentence, and the shipped files hold the papers' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.registry import config_folder, list_benchmarks, list_models
from guieval.rewards.advantages import AdvantageSettings
from guieval.rewards.shapes import get_reward
from guieval.training.config import (
    GRPOTraining,
    SemiOnlineTraining,
    SFTTraining,
    TrainingConfig,
    parse_config,
    read_config,
)
from guieval.training.guard import PACKAGES, PRIVATE, check_trainer
from tests.command_line import CommandLine

SHIPPED = sorted((config_folder() / "training").glob("*.yaml"))
SMALL = {"kind": "grpo", "model": "tiny-policy", "bench": "demo-icons"}


def shipped(name: str) -> TrainingConfig:
    return read_config(config_folder() / "training" / f"{name}.yaml")


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_every_shipped_file_names_what_there_is(file: Path) -> None:
    config = read_config(file)
    assert config.model in list_models()
    assert config.bench in list_benchmarks()
    assert config.open_adapter().config.name == config.model  # the adapter takes the options
    if isinstance(config, GRPOTraining | SemiOnlineTraining):
        assert get_reward(config.reward.name, protocol=config.reward.protocol, **config.reward.weights)
    assert config.out == f"training/{file.stem}"


def test_ui_s1_is_its_table_9() -> None:
    config = shipped("ui-s1")
    assert isinstance(config, SemiOnlineTraining)
    given, processes = config.trainer, 4 * 8  # nnodes, n_gpus_per_node
    rollouts = processes * given["per_device_train_batch_size"] * given["steps_per_generation"]
    assert rollouts // given["num_generations"] == 32  # train_batch_size
    assert given["steps_per_generation"] // given["gradient_accumulation_steps"] == 4  # fixed_num_mini_batches
    assert given["per_device_train_batch_size"] == 1  # ppo_micro_batch_size_per_gpu
    assert given["learning_rate"] == 1e-6
    assert given["beta"] == 1e-4  # kl_loss_coef
    assert given["num_train_epochs"] == 5
    assert config.max_prompt_length == 12288
    assert (config.advantages.gamma, config.advantages.omega) == (0.5, 1.0)
    assert config.advantages == AdvantageSettings.paper()
    assert config.rollout.policy().method == "thought-free" and config.rollout.budget == 1
    assert config.dynamic_sampling is not None and config.dynamic_sampling.eta == 0.3
    assert config.model_options == {"max_images": 2}  # historical images
    reward = get_reward(config.reward.name)
    assert (reward.name, reward.evaluator.protocol.name) == ("ui-s1", "ui-s1-reward")


def test_ui_r1_is_its_table_4() -> None:
    config = shipped("ui-r1")
    assert isinstance(config, GRPOTraining)
    given = config.trainer
    assert (given["learning_rate"], given["lr_scheduler_type"]) == (9.98e-7, "linear")
    assert config.model_options == {"max_pixels": 12845056}
    assert given["num_generations"] == 8
    assert given["num_train_epochs"] == 8
    assert given["per_device_train_batch_size"] // given["num_generations"] == 1  # the table counts tasks, TRL replies
    assert given["gradient_accumulation_steps"] == 2
    assert config.max_prompt_length is None  # 1024 in the table, which no prompt with a screenshot keeps to
    assert config.reward.name == "ui-r1" and config.dynamic_sampling is None


def test_hypertrack_rl_is_section_2_2() -> None:
    config = shipped("hypertrack-rl")
    assert isinstance(config, GRPOTraining)
    given = config.trainer
    assert given["num_generations"] == 16
    assert (given["epsilon"], given["epsilon_high"], given["beta"]) == (0.2, 0.3, 0.0)
    assert given["loss_type"] == "dapo"  # the sum over all tokens of a group, divided by their number
    assert config.dynamic_sampling is not None and config.dynamic_sampling.eta == 0.0
    assert (config.model, config.reward.name) == ("ui-tars-1.5-7b", "hypertrack")
    sft = shipped("hypertrack-sft")
    assert isinstance(sft, SFTTraining)
    assert (sft.model, sft.bench, sft.split, sft.journal) == (config.model, config.bench, config.split, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "grop"}, "did you mean 'grpo'"),
        ({"rewrad": {}}, "unknown setting 'rewrad' (did you mean 'reward'?) in a training of kind grpo"),
        ({"reward": {"nam": "ui-s1"}}, "unknown setting 'reward.nam' (did you mean 'name'?) in reward"),
        ({"lora": {"rr": 3}}, "unknown setting 'lora.rr' (did you mean 'r'?) in lora"),
        ({"evaluation": {"evry": 3}}, "unknown setting 'evaluation.evry' (did you mean 'every'?)"),
        ({"evaluation": {}}, "setting 'evaluation.every' is required"),
        ({"dynamic_sampling": {"eta": -1}}, "setting 'dynamic_sampling.eta' is -1: "),
        ({"trainer": {"output_dir": "x"}}, "trainer.output_dir is given as out"),
        ({"dtype": "float16"}, "setting dtype is 'float16', with which only adapters (lora) can be trained"),
        ({"lora": {}, "freeze": ".*"}, "setting freeze is given together with lora, which trains only its adapters"),
        ({"freeze": "("}, "setting 'freeze' is '(': '(' is not a regular expression: missing )"),
        ({"freeze": "a{99999999999999}"}, "is not a regular expression"),
        ({"trainer": {"eval_strategy": "steps"}}, "trainer.eval_strategy is not to be set: set evaluation.every"),
        ({"trainer": {"max_length": 512}}, "it would cut image tokens"),
        ({"rollout": {}}, "unknown setting 'rollout'"),  # of semi-online training
    ],
)
def test_a_mistake_is_one_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_config({**SMALL, **values})
    assert message in str(caught.value)


def test_overrides_lie_over_the_file(tmp_path: Path) -> None:
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


def test_another_trl_is_refused_in_one_sentence() -> None:
    as_known = type("T", (), {name: _method(parameters) for name, parameters in PRIVATE.items()})
    check_trainer(as_known)
    gone = type("T", (), {name: _method(parameters) for name, parameters in list(PRIVATE.items())[1:]})
    with pytest.raises(UsageError, match=r"_generate_and_score_completions does not exist .*pip install 'trl>=1.16,<1.17'"):
        check_trainer(gone)
    changed = type("T", (as_known,), {"_tokenize_prompts": _method(("self", "prompts", "tools"))})
    with pytest.raises(UsageError, match=r"_tokenize_prompts takes \(self, prompts, tools\)"):
        check_trainer(changed)


def _method(parameters: tuple[str, ...]) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def method({', '.join(parameters)}): pass", namespace)
    return namespace["method"]


def test_the_command_states_what_is_wrong(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean 'semi-online'" in guieval.sentence("train", "semi-onlin", "--config", "ui-s1")
    assert "did you mean 'ui-s1'" in guieval.sentence("train", "semi-online", "--config", "ui-s")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = guieval.sentence("train", "grpo", "--config", "tiny-grpo")
    assert "pip install 'guieval[train]'" in message and PACKAGES[0] in message
