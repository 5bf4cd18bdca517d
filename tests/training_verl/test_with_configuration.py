"""What the plug-in relies on in verl, its shipped configurations, its entry point, and its reward function in verl."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from typer.testing import CliRunner
from verl import DataProto
from verl.trainer.ppo.reward import get_custom_reward_fn, resolve_reward_manager_cls
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1 import PPOTrainerColocateAsync, PPOTrainerSeparateAsync, get_trainer_cls
from verl.utils.config import validate_config
from verl.utils.tokenizer import hf_tokenizer

from guieval.errors import UsageError
from guieval.registry import load_model
from guieval.rewards import open_scorer
from guieval.training.data.examples import TrainingData
from guieval.training.guard import require_verl
from guieval.training.verl.__main__ import app, config_folder
from guieval.training.verl.sampler import AsyncSpreadReplayBuffer
from guieval.training.verl.settings import read_settings
from guieval.training.verl.trainer import GuiColocateAsyncTrainer, GuiSemiOnlineTrainer, GuiSeparateAsyncTrainer
from tests.training_verl.conftest import Compose

CONFIGURATIONS = sorted(file.stem for file in config_folder().glob("*.yaml"))


@pytest.mark.filterwarnings("ignore:Disabled critic")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_verl_accepts_it(compose: Compose, name: str) -> None:
    config = compose(name)
    validate_config(config, need_reference_policy(config), need_critic(config))
    read_settings(config).open_adapter()
    rollout = config.actor_rollout_ref.rollout
    gpus = config.trainer.nnodes * config.trainer.n_gpus_per_node + rollout.nnodes * rollout.n_gpus_per_node
    assert gpus == {"1x8": 8, "4x8": 32}[name.removesuffix("-async").rsplit("-", 1)[1]]
    corrected = config.algorithm.rollout_correction
    assert (corrected.rollout_is, corrected.rollout_is_threshold) == ("token", 2.0) and rollout.calculate_log_probs


def test_table_9_and_hypertracks_numbers(compose: Compose) -> None:
    config = compose("ui-s1-4x8")
    ours = read_settings(config)
    actor = config.actor_rollout_ref.actor
    assert CONFIGURATIONS == ["hypertrack-1x8", "hypertrack-4x8", "online-1x8", "ui-s1-1x8", "ui-s1-4x8", "ui-s1-4x8-async"]
    assert (config.data.train_batch_size, config.data.max_prompt_length, config.trainer.total_epochs) == (32, 12288, 5)
    assert (ours.advantages.gamma, ours.advantages.omega, ours.rollout.budget) == (0.5, 1.0, 1)
    assert ours.dynamic_sampling is not None and ours.dynamic_sampling.eta == 0.3
    assert (ours.model_options["max_images"], ours.mini_batches) == (2, 4)
    assert (actor.optim.lr, actor.ppo_mini_batch_size, actor.ppo_micro_batch_size_per_gpu) == (1e-6, 32, 1)
    assert actor.use_kl_loss and actor.kl_loss_coef == 1e-4
    assert (config.trainer.n_gpus_per_node, config.trainer.nnodes) == (8, 4)
    config = compose("hypertrack-1x8")
    actor = config.actor_rollout_ref.actor
    assert config.actor_rollout_ref.rollout.n == 16 and (actor.clip_ratio_low, actor.clip_ratio_high) == (0.2, 0.3)
    assert not actor.use_kl_loss and not need_reference_policy(config) and actor.loss_agg_mode == "token-mean"
    assert config.algorithm.filter_groups.enable and config.trainer.v1.trainer_mode == "sync"


@pytest.mark.parametrize(
    ("name", "mode", "kind", "overrides"),
    [
        ("ui-s1-1x8", "colocate_async", GuiColocateAsyncTrainer, ["trainer.v1.trainer_mode=guieval_colocate_async"]),
        ("ui-s1-4x8-async", "separate_async", GuiSeparateAsyncTrainer, []),
    ],
)
def test_rollouts_can_be_asynchronous(compose: Compose, name: str, mode: str, kind: Any, overrides: list[str]) -> None:
    """The same updates of as many tasks as Table 9's, by verl's own asynchronous trainers."""
    config = compose(name, *overrides)
    assert get_trainer_cls(config.trainer.v1.trainer_mode) is kind
    trainer = kind(config)
    assert trainer.trainer_mode == mode and isinstance(trainer.replay_buffer, AsyncSpreadReplayBuffer)
    tasks = config.data.train_batch_size // trainer.parameter_sync_step
    updates = read_settings(config).mini_batches
    assert updates is not None and trainer.parameter_sync_step * updates == 4 and tasks * trainer.parameter_sync_step == 32
    theirs = {"colocate_async": PPOTrainerColocateAsync, "separate_async": PPOTrainerSeparateAsync}[mode]
    assert trainer.on_step_end.__func__ is theirs.on_step_end


def test_settings_of_verl_that_contradict_are_named(compose: Compose) -> None:
    overrides = ["algorithm.adv_estimator=gae", "algorithm.use_kl_in_reward=true", "algorithm.filter_groups.enable=true"]
    for override in (*overrides, "trainer.v1.sampler.custom_sampler.path=x"):
        with pytest.raises(UsageError, match=override.split("=")[0].rsplit(".", 1)[0]):
            GuiSemiOnlineTrainer(compose("ui-s1-1x8", override))


def test_verl_finds_the_plug_in_and_its_entry_point_is_reached_with_a_shipped_configuration(tmp_path: Path) -> None:
    code = (
        "import verl\n"
        "from verl.experimental.agent_loop.agent_loop import _agent_loop_registry as loops\n"
        "from verl.trainer.ppo.v1.trainer_base import get_trainer_cls\n"
        "print(loops['guieval']['_target_'], get_trainer_cls('guieval').__name__)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["guieval.training.verl.loop.GuiLoop", "GuiSemiOnlineTrainer"]
    given = ["data.train_files=a", "data.val_files=b", "actor_rollout_ref.model.path=/weights"]
    given += ["guieval.rollout.budget=2", "guieval.judge.success=3"]  # the second is not in the file
    command = [sys.executable, "-m", "guieval.training.verl", "train", "ui-s1-4x8", *given, "--cfg", "job"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "trainer_mode: guieval" in found.stdout and "nnodes: 4" in found.stdout
    assert "budget: 2" in found.stdout and "success: 3" in found.stdout


MISTAKES = [
    ("+guieval.reward.nmae=x", "unknown setting 'guieval.reward.nmae' (did you mean 'name'?)"),
    ("guieval.judge.sucess=2", "unknown setting 'guieval.judge.sucess' (did you mean 'success'?)"),
    ("guieval.reward.name=ui-s2", "did you mean 'ui-s1'?"),
    ("algorithm.adv_estimator=gae", "has no critic, use grpo"),
]


def test_a_mistake_is_reported_before_verl_begins_and_ends_the_command_with_one_sentence(tmp_path: Path) -> None:
    for override, message in reversed(MISTAKES):
        refused = CliRunner().invoke(app, ["train", "ui-s1-1x8", override])
        assert isinstance(refused.exception, UsageError) and message in str(refused.exception)
    command = [sys.executable, "-m", "guieval.training.verl", "train", "ui-s1-1x8", override]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 2 and found.stderr.splitlines()[-1].startswith("error: ") and message in found.stderr


def test_rows_are_written_from_the_command_line(tmp_path: Path) -> None:
    what = ["--bench", "demo-icons", "--data", str(tmp_path / "icons"), "--option", "episodes=2", "--steps"]
    command = [sys.executable, "-m", "guieval.training.verl", "rows", str(tmp_path / "rows"), *what]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    count = int(found.stdout.split()[0])
    assert count == len((tmp_path / "rows" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) > 2
    wrong = subprocess.run([*command[:4], "x", "--bench", "demo-icon"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "demo-icons" in wrong.stderr


def test_a_missing_package_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    require_verl()
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transfer_queue" else real(name))
    with pytest.raises(UsageError, match=r"'transfer_queue': pip install 'guieval\[verl\]'"):
        require_verl()


@pytest.mark.parametrize("right", [True, False])
def test_verls_reward_manager_scores_as_the_scorer(compose: Compose, policy: Path, data: TrainingData, right: bool) -> None:
    config = compose("hypertrack-1x8", "guieval.model=tiny-policy", "guieval.reward.protocol=ac-curated-bbox")
    tokenizer = hf_tokenizer(str(policy))
    task = data.episode(0).steps[0]
    text = load_model("tiny-policy").render(task, task.action, "red star") if right else "click(000,000)"
    response = torch.tensor([[*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]])
    prompt = torch.ones(1, 5, dtype=torch.long)
    batch = {"prompts": prompt, "responses": response, "attention_mask": torch.ones(1, 5 + response.shape[1], dtype=torch.long)}
    row = {"data_source": "guieval/demo-icons", "reward_model": {"ground_truth": task.model_dump_json()}}
    columns = {name: np.array([value], dtype=object) for name, value in {**row, "extra_info": {"index": 0}}.items()}

    async def scored() -> dict[str, Any]:
        manager = resolve_reward_manager_cls(config)(config, tokenizer, get_custom_reward_fn(config))
        manager.loop = asyncio.get_running_loop()
        found: dict[str, Any] = await manager.run_single(DataProto(TensorDict(batch, batch_size=1), columns))
        return found

    found = asyncio.run(scored())
    expected = open_scorer("tiny-policy", "hypertrack", protocol="ac-curated-bbox").score(task, text).reward
    assert found["reward_score"] == pytest.approx(expected.total)
    assert expected.outcome.exact_match is right
    assert found["reward_extra_info"]["exact_match"] == float(right)
