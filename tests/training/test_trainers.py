"""The three trainers with real TRL and the tiny policy: what they return, learn, write down, watch and go on from."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from trl.rewards import get_soft_overlong_punishment

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.rewards import Overlong
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.training.building import TrainerParts
from guieval.training.checkpoints import mark
from guieval.training.config import TrainingConfig, read_config
from guieval.training.evaluation import metrics_of
from guieval.training.session import train
from guieval.training.trainers.correction import importance_ratio
from guieval.training.trainers.groups import Batch
from guieval.training.trainers.rows import CompletedPrompt
from tests.json_values import read_json
from tests.rows import every_row
from tests.scripted import opened_run

from .conftest import EPISODES, Configured, evaluations, in_training, launched, log

RL = ("grpo", "semi-online")


def logged(config: TrainingConfig, name: str) -> list[float]:
    return [line[name] for line in log(config) if name in line]


def generated(trainer: Any, tasks: list[int]) -> Batch:
    return trainer._generate_batch([{"index": task} for task in tasks for _ in range(trainer.num_generations)])  # type: ignore[no-any-return]


def rows_of(batch: Batch) -> list[CompletedPrompt]:
    return [row for chunk in batch.chunks for row in chunk]


def gradients(trainer: Any, batch: Batch) -> Any:
    trainer.model.zero_grad()
    for chunk in batch.chunks:
        trainer._passes(trainer.model, batch, chunk)
    return torch.cat([weight.grad.flatten() for weight in trainer.model.parameters() if weight.grad is not None])


def tiny_run(directory: Path, weights: Path, screens: Path, split: str, **settings: Any) -> Runner:
    """A run over eight episodes with these weights, not yet begun."""
    bench = {"bench": "demo-icons", "bench_options": {"split": split, "episodes": EPISODES}, "data": str(screens), "limit": 8}
    how = {"model": "tiny-policy", "engine": "transformers", "model_path": str(weights)}
    return opened_run(RunConfig(**{**how, **bench, **settings}), directory)


@pytest.mark.parametrize("kind", RL)
def test_a_batch_is_what_trl_trains_on(kind: str, configured: Configured) -> None:
    trainer = in_training(configured(kind, dynamic_sampling=None, trainer={"steps_per_generation": 3}))
    batch = generated(trainer, [0, 1])
    rows, metrics = rows_of(batch), trainer._metrics["train"]
    assert batch.trained == len(rows) == metrics["rows/trained"][0] and metrics["rows/useful_share"] == [1.0]
    assert max(map(len, batch.chunks)) - min(map(len, batch.chunks)) <= 1
    assert batch.tokens == sum(len(row.completion) for row in rows)
    if kind == "semi-online":  # a row a step
        assert len(rows) == 8 * metrics["semi_online/steps"][0] > 8
    assert {name for row in rows for name in row.tokens} == {"old_per_token_logps"}  # three steps on one batch need the first's
    inputs = trainer._packed(batch, rows[:2], 1)
    assert inputs["num_images"] == [1, 1]
    assert len(inputs["pixel_values"]) == inputs["image_grid_thw"].prod(-1).sum()
    width = inputs["prompt_ids"].shape[1] + inputs["completion_ids"].shape[1]
    assert inputs["mm_token_type_ids"].shape == (2, width)
    assert inputs["old_per_token_logps"].shape == inputs["completion_mask"].shape


@pytest.mark.parametrize("kind", RL)
def test_prompts_are_those_of_the_evaluation(kind: str, configured: Configured, policy: Path, screens: Path) -> None:
    """Token for token: what the trainer generates from is what the engine is sent for a first step."""
    from guieval.data.screenshots import read_screenshot
    from guieval.engines.in_process.chat_prompts import chat_options, pictures, prompt_text
    from guieval.models import Request

    parts = TrainerParts(configured(kind, dynamic_sampling=None))
    trainer = parts.trainer()
    trainer.model.train()
    task = parts.data.episode(parts.data.episodes[0])[0].steps[0]
    batch = generated(trainer, [0, 1])
    row = next(row for row in rows_of(batch) if row.pictures[0].file == task.screenshot)
    prepared = parts.model.prepare_input(task, ())
    (image,) = prepared.images
    shot = read_screenshot(screens, task.screenshot, task.screenshot_size, image.resize)
    request = Request(prepared, (shot,), {}, "x", task)
    processor = parts.weights.processor
    text = prompt_text(processor.tokenizer, processor.chat_template, request, chat_options(request).template)
    sent = processor(text=[text], images=pictures(request), return_tensors="pt", add_special_tokens=False)
    assert row.prompt.tolist() == sent["input_ids"][0].tolist()
    pixels, grid = trainer._pictures.patches(row.pictures[0])
    assert pixels.dtype == sent["pixel_values"].dtype and torch.equal(pixels, sent["pixel_values"])
    assert torch.equal(grid, sent["image_grid_thw"])


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo"])
def test_micro_batches_and_fillers_change_no_gradient(loss: str, configured: Configured) -> None:
    """However many rows a pass has, and however a batch is filled up, each row that counts weighs the same."""
    given = {"rollout": {"budget": None}, "trainer": {"loss_type": loss}}
    trainer = in_training(configured("semi-online", dynamic_sampling=None, limit=2, **given))
    batch = generated(trainer, [0, 1])
    (rows,) = batch.chunks
    assert len(rows) > 7 and any(row.advantage for row in rows)
    fillers = [trainer._answers.filler()] * 3
    assert len(fillers[0].prompt) < min(len(row.prompt) for row in rows)
    trainer.args.per_device_train_batch_size = 1000
    expected = gradients(trainer, batch)
    assert expected.abs().max() > 0
    for most, filled in ((1000, [*rows, *fillers]), (3, rows), (1, [*rows, *fillers])):
        trainer.args.per_device_train_batch_size = most
        got = gradients(trainer, Batch([filled], batch.trained, batch.tokens))
        assert torch.allclose(got, expected, atol=1e-6)
    assert not gradients(trainer, Batch([fillers], 0, 0)).any()


@every_row(
    ("given", "expected"),
    [
        ({}, (10 * 2 + 1.6 * 0.5 - 1.2 - 0.9) / 4),
        ({"delta": 3.0}, (6 * 2 + 1.6 * 0.5 - 1.2 - 0.9) / 4),
        ({"delta": 3.0, "vllm_importance_sampling_correction": False}, (6 + 1.6 - 1.2 - 0.9) / 4),
        ({"vllm_importance_sampling_mode": "token_mask"}, (1.6 * 0.5 - 1.2 - 0.9) / 4),
    ],
)
def test_dual_clip_and_truncated_importance_sampling_by_hand(
    given: dict[str, Any], expected: float, configured: Configured
) -> None:
    """Ratios 5 and 0.5 at an advantage of -2, 5 and 0.9 at 1, clipped to [0.8, 1.2]; the sampler's 4, 0.5, 1 and unknown."""
    trainer = in_training(configured("grpo", dynamic_sampling=None, trainer={"loss_type": "bnpo", **given}))
    trainer.use_vllm = True
    old, mask = torch.full((2, 2), -3.0), torch.ones(2, 2)
    sampled = old - torch.tensor([[4.0, 0.5], [1.0, math.nan]]).log()
    most, mode = trainer.vllm_importance_sampling_clip_max, trainer.vllm_importance_sampling_mode
    new = old + torch.tensor([[5.0, 0.5], [5.0, 0.9]]).log()
    trainer._get_per_token_logps_and_entropies = lambda *arguments, **named: (new, torch.zeros(2, 2), None)
    ids = {f"{part}_{what}": mask.long() for part in ("prompt", "completion") for what in ("ids", "mask")}
    ratio = {"importance_sampling_ratio": importance_ratio(old, sampled, mask, mode=mode, most=most)}
    inputs = {**ids, "advantages": torch.tensor([-2.0, 1.0]), "old_per_token_logps": old, **ratio}
    assert trainer._compute_loss(trainer.model, inputs).item() == pytest.approx(expected)


def test_only_what_is_missing_is_drawn_again_and_long_prompts_teach_nothing(configured: Configured) -> None:
    everything = {"eta": 1e6, "most_draws": 3}
    trainer = in_training(configured("semi-online", dynamic_sampling=everything))
    batch = generated(trainer, [0, 1])
    assert trainer._metrics["train"]["dynamic_sampling/groups_drawn"] == [6.0]  # three batches of two
    assert batch.trained == 0 and not any(row.counts for row in rows_of(batch))
    assert not gradients(trainer, batch).any()
    trainer = in_training(configured("grpo", dynamic_sampling={"eta": 0.0, "most_draws": 5}))
    drawn: list[list[int]] = []
    groups = trainer._groups

    def seen(indices: list[int], first: int) -> Any:
        drawn.append(list(indices))
        return groups(indices, first)

    trainer._groups = seen
    batch = generated(trainer, [0, 1])
    rows = [row for row in rows_of(batch) if row.counts]
    assert len(rows) in (0, 4, 8)  # whole groups
    for indices in drawn[1:]:  # as many rollouts as are missing
        assert len(indices) in (4, 8)
    tasks = [index for indices in drawn for index in indices[::4]]
    assert len(set(tasks)) == len(tasks)
    trainer = in_training(configured("semi-online", dynamic_sampling=None, max_prompt_length=20))
    batch = generated(trainer, [0, 1])
    assert batch.trained == 0 and trainer._metrics["train"]["rows/trained"] == [0.0]


def test_patches_are_thoughts_of_the_policy_or_those_that_are_given(configured: Configured, tmp_path: Path) -> None:
    """After a patch the prompt holds a thought where the policy gave one, and the reference's action in any case."""
    trainer = in_training(configured("semi-online", dynamic_sampling=None, rollout={"patch": "on-policy", "budget": None}))
    seen: list[Any] = []
    trainer._log = seen.extend
    generated(trainer, [0, 1])
    assert all(rollout.state == "over" and len(rollout.steps) == len(rollout.episode) for rollout in seen)
    patched = [step for rollout in seen for step in rollout.steps[:-1] if step.patched]
    assert patched and any(step.thought for step in patched)
    data = TrainerParts(configured("semi-online")).data
    lines = [json.dumps({"step": str(data.step(place).key), "thought": "It is the next icon."}) for place in data.steps]
    (tmp_path / "thoughts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    given = {"patch": "off-policy", "budget": 2, "thoughts": str(tmp_path / "thoughts.jsonl")}
    trainer = in_training(configured("semi-online", dynamic_sampling=None, rollout=given))
    rollouts = [SemiOnlineRollout(data.episode(place)[0], trainer._policy) for place in data.episodes[:8]]
    trainer._roll_out(rollouts)
    thoughts = {step.thought for rollout in rollouts for step in rollout.steps[:-1] if step.patched}
    assert "It is the next icon." in thoughts


@pytest.mark.parametrize("kind", ("sft", *RL))
def test_training_goes_on_where_it_was(kind: str, configured: Configured) -> None:
    evaluation = {"every": 2, "bench_options": {"split": "test"}, "limit": 3}
    config = configured(kind, evaluation=evaluation)
    final = train(config)
    assert (final / "model.safetensors").is_file()
    assert [line["step"] for line in evaluations(config)] == [0, 2]
    with pytest.raises(UsageError, match="already has a training: add --resume"):
        train(config)
    with pytest.raises(UsageError, match="cannot be resumed, because setting 'seed' differs: it was 0, now 1"):
        train(config.model_copy(update={"seed": 1}), resume=True)
    further = config.model_copy(update={"trainer": {**config.trainer, "max_steps": 4}})
    train(further, resume=True)
    assert [line["step"] for line in log(config) if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in evaluations(config)] == [0, 2, 4]
    assert {"type_match", "exact_match", "pg", "tsr", "steps", "episodes"} <= evaluations(config)[-1].keys()
    assert logged(config, "eval/pg") == [line["pg"] for line in evaluations(config)]


def test_evaluations_are_those_of_saved_weights(configured: Configured, policy: Path, screens: Path, tmp_path: Path) -> None:
    """By `guieval run` with the final weights; the checkpoint brings a generation setting of its own, as published ones do."""
    shutil.copytree(policy, tmp_path / "policy")
    settings = tmp_path / "policy" / "generation_config.json"
    settings.write_text(json.dumps({**read_json(settings.read_text()), "repetition_penalty": 3.0}), encoding="utf-8")
    evaluation = {"every": 2, "bench_options": {"split": "test"}, "limit": 8, "at_start": False}
    trainer = {"learning_rate": 1e-4}
    config = configured("sft", model_path=str(tmp_path / "policy"), evaluation=evaluation, trainer=trainer)
    final = train(config)
    run = tiny_run(tmp_path / "run", final, screens, "test", mode="sop", sampling={"temperature": 0.0})
    outcome = run.execute(resume=False)

    def answers(folder: Path) -> dict[str, str | None]:
        return {str(record.task.key): record.sample.raw_response for record in RunFolder(folder).records}

    assert answers(tmp_path / "run") == answers(Path(config.out) / "evaluations" / "step-2")
    (line,) = evaluations(config)
    assert line == {"step": 2, **metrics_of(outcome.summary())}


def test_an_evaluation_changes_nothing_in_the_training(configured: Configured, tmp_path: Path) -> None:
    losses = []
    for name, evaluation in (("without", None), ("with", {"every": 1, "bench_options": {"split": "test"}, "limit": 3})):
        config = configured("semi-online", out=str(tmp_path / name), **({"evaluation": evaluation} if evaluation else {}))
        train(config)
        losses.append(logged(config, "loss") + logged(config, "reward"))
    assert losses[0] == losses[1]


def test_supervised_loss_falls(configured: Configured) -> None:
    config = configured("sft", trainer={"max_steps": 12, "learning_rate": 3e-4, "adam_beta2": 0.95})
    train(config)
    losses = logged(config, "loss")
    assert sum(losses[-4:]) < 0.9 * sum(losses[:4])
    assert logged(config, "thought_share") == [0.0] and "thought_share" in log(config)[0]  # of references with a thought


def test_a_model_learns_from_its_own_right_replies(configured: Configured, screens: Path, policy: Path, tmp_path: Path) -> None:
    """Distillation: exactly the exact replies of a run, thoughts kept, each under the prompt it was given."""
    run = tiny_run(tmp_path / "run", policy, screens, "train", mode="soeval")
    run.execute(resume=False)
    exact = {str(each.task.key): each for each in RunFolder(tmp_path / "run").records if each.sample.outcome.exact_match}
    config = configured("sft", journal=str(tmp_path / "run"))
    trainer = TrainerParts(config).trainer()
    rows = [trainer.train_dataset[number] for number in range(len(trainer.train_dataset))]
    message = [row["completion"][0]["content"][0]["text"] for row in rows]
    assert sorted(message) == sorted(str(each.sample.raw_response) for each in exact.values()) and message
    thoughts = [each.sample.thought for each in exact.values() if "model" in each.history]
    assert thoughts  # some step was shown the model's own past
    own = [row for row in rows if any(thought in str(row["prompt"]) for thought in thoughts if thought)]
    assert own
    train(config)
    assert len(logged(config, "loss")) == 2


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_groups_and_agree(processes: int, configured: Configured) -> None:
    """Three groups of four over two or four processes: some groups lie on several, and all compute equally many rows."""
    rollout = {"patch": "on-policy", "budget": 1}
    trainer = {"max_steps": 1, "per_device_train_batch_size": 12 // processes, "beta": 0.01, "save_strategy": "no"}
    config = configured("semi-online", rollout=rollout, trainer=trainer)
    done = launched(config, processes=processes)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in log(config) if "loss" in line]
    assert line["dynamic_sampling/groups_drawn"] >= 3
    assert line["rows/trained"] > 0 and line["grad_norm"] > 0
    computed = line["rows/trained"] / line["rows/useful_share"]
    assert computed - line["rows/trained"] < processes and round(computed, 6) % processes == 0
    assert (Path(config.out) / "final" / "model.safetensors").is_file()


def test_a_folder_that_cannot_be_used_is_a_sentence(configured: Configured, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is nothing to resume"):
        train(configured("sft"), resume=True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="which is a file: expected a folder"):
        train(configured("sft", out=str(tmp_path / "file")))
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "training.yaml").write_text("[", encoding="utf-8")
    begun = configured("sft", out=str(tmp_path / "begun"))
    with pytest.raises(UsageError, match="without a complete checkpoint to resume from: give another --out, or remove it"):
        train(begun)
    (tmp_path / "begun" / "checkpoints" / "checkpoint-1").mkdir(parents=True)
    mark(tmp_path / "begun" / "checkpoints" / "checkpoint-1")
    with pytest.raises(UsageError, match=r"its training\.yaml is not what a training wrote"):
        train(begun, resume=True)


def test_low_rank_adapters_are_saved_alone(configured: Configured) -> None:
    evaluation = {"every": 2, "bench_options": {"split": "test"}, "limit": 3}
    trainer = {"beta": 0.1, "learning_rate": 1e-3, "lr_scheduler_type": "constant"}
    rollout = {"budget": None}
    config = configured("semi-online", lora={"r": 4}, evaluation=evaluation, trainer=trainer, rollout=rollout)
    final = train(config)
    assert [line["step"] for line in evaluations(config)] == [0, 2]
    first, second = logged(config, "kl")  # from the weights without the adapter, which begins as nothing
    assert abs(first) < 1e-6 < second
    adapter = final.parent / "adapter"
    assert (adapter / "adapter_config.json").is_file() and not (adapter / "model.safetensors").exists()
    names = list(load_file(adapter / "adapter_model.safetensors"))
    assert names and not any("visual" in name for name in names)


def test_frozen_weights_stay_and_the_others_move(configured: Configured, policy: Path) -> None:
    config = configured("grpo", freeze=r".*\.visual\..*", trainer={"learning_rate": 1e-3, "lr_scheduler_type": "constant"})
    before, after = (load_file(folder / "model.safetensors") for folder in (policy, train(config)))
    moved = {name for name, value in before.items() if not bool((value.float() == after[name].float()).all())}
    assert moved and moved.isdisjoint(name for name in before if ".visual." in name)


@pytest.mark.parametrize("kind", ["sft", *RL])
def test_several_benchmarks_are_trained_on_in_one_batch(kind: str, configured: Configured) -> None:
    icons = {"bench": "demo-icons", "bench_options": {"split": "train", "episodes": 2}}
    several = [{**icons, "weight": 2.0}, {"bench": "demo", "split": "all", "limit": 2}]
    base = {"bench": None, "bench_options": None, "data": None, "sources": several, "batch": {"tasks": 2, "updates": 1}}
    counts = {"gradient_accumulation_steps": None, "per_device_train_batch_size": 2, "max_steps": 2}
    config = configured(kind, **base, trainer=counts)
    parts = TrainerParts(config)
    whole = (parts.data.episodes, parts.data.episode_keys)
    places = parts.drawn(*(whole if kind == "semi-online" else (parts.data.steps, parts.data.step_keys)))
    assert {place.source for place in places} == {0, 1}
    trainer = parts.trainer()
    assert trainer.args.gradient_accumulation_steps == (1 if kind == "sft" else 2 * 4 // 2)  # tasks x replies / rows
    assert kind == "sft" or len(trainer.train_dataset) == len(places)  # sft leaves out what the model cannot write
    if kind == "semi-online":
        assert (train(config) / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trainer": {"learning_rat": 1.0}}, "'trainer.learning_rat' is unknown to TRL's GRPOConfig (did you mean 'learning_"),
        ({"trainer": {"num_generations": 3}}, "TRL refuses the settings in 'trainer'"),
        ({"trainer": {"learning_rate": "fast"}}, "'trainer.learning_rate' is 'fast': expected a number"),
        ({"trainer": {"max_steps": 2.5}}, "'trainer.max_steps' is 2.5: expected a whole number"),
        ({"limit": 1}, "there is 1 task to train on, and a generation batch needs 2"),
        ({"trainer": {"use_vllm": True}}, "'trainer.use_vllm' is true, and vLLM is not installed: pip install"),
        ({"report_to": ["wandbb"]}, "did you mean 'wandb'"),
        ({"reward": {"name": "ui-s2"}}, "did you mean 'ui-s1'"),
        ({"freeze": "visual"}, "expected to match whole names of some weights, and it matches none, e.g. not 'model."),
        ({"freeze": ".*"}, "and it matches all weights"),
        ({"model_path": "/nowhere"}, "the model folder '/nowhere' does not exist"),
        ({"rollout": {"patch": "off-policy"}}, "needs either 'rollout.thoughts'"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(given: dict[str, Any], message: str, configured: Configured) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        train(configured("semi-online", **given))


def test_the_punishment_is_trls() -> None:
    theirs, ours = get_soft_overlong_punishment(max_completion_len=20, soft_punish_cache=7), Overlong(20, 7)
    lengths = range(25)
    assert [ours.of(length) for length in lengths] == pytest.approx(theirs(completion_ids=[[0] * length for length in lengths]))


@pytest.mark.parametrize("kind", ["grpo", "semi-online"])
def test_the_log_has_reward_beside_exact_match_and_warns(kind: str, configured: Configured) -> None:
    """The reward's only part is the format, which the tiny policy masters: an exact match earns nothing more."""
    settings = {"name": "ui-s1-lenient", "weights": {"format_weight": 1.0, "type_weight": 0.0, "exact_weight": 0.0}}
    overlong = {"cache": 32, "penalty": 0.5}  # every reply is within 32 tokens of the longest
    reward = {**settings, "overlong": overlong}
    config = configured(kind, reward=reward, reward_watch={"every": 1, "window": 1}, dynamic_sampling=None)
    train(config)
    lines = log(config)
    steps = [line for line in lines if "watch/reward" in line]
    assert [line["step"] for line in steps] == [1, 2] and all("loss" in line for line in steps)
    for line in steps:
        punished = 0.5 * line["completions/mean_length"] / 32
        assert line["watch/reward"] == pytest.approx(1.0 - line["watch/malformed"] - punished, abs=1e-3)
        assert line["watch/reward"] == pytest.approx(line["reward"], abs=0.01)  # that is a mean of batches' means
        assert 0.0 < line["watch/exact_match"] < 1.0 and line["watch/words"] > 1
    warnings = [line["warning"] for line in lines if "warning" in line]
    assert sum("which ignores the screen" in each for each in warnings) == 1  # it holds at both checks


@pytest.mark.full
def test_semi_online_training_raises_the_reward(policy: Path, screens: Path, tmp_path: Path) -> None:
    """The long one, within some CPU minutes: four tasks, each rolled out eight times a step, at a bolder rate than shipped."""
    settings = [f"model_path={policy}", f"data={screens}", "bench_options.episodes=40", "limit=4"]
    settings += ["evaluation=null", "dynamic_sampling=null", "trainer.num_generations=8", "trainer.max_steps=20"]
    settings += ["trainer.lr_scheduler_type=constant_with_warmup", "trainer.learning_rate=1e-4"]
    config = read_config(config_folder() / "training" / "tiny-semi-online.yaml", settings, out=str(tmp_path / "out"))
    train(config)
    lines = log(config)
    for name, margin in (("reward", 0.06), ("semi_online/exact_match", 0.1)):  # 0.11 and 0.22 when this was written
        values = [line[name] for line in lines if name in line]
        assert len(values) == 20
        assert fmean(values[-6:]) > fmean(values[:6]) + margin
