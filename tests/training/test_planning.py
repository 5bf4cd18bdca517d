"""Plans of trainings: parameters, memory and steps against real models, real trainings and hand-computed sums."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from trl import GRPOConfig, SFTConfig

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.training import planning
from guieval.training.arguments import DEFAULTS
from guieval.training.building import TrainerParts
from guieval.training.config import TrainingConfig, read_config
from guieval.training.launch import Launch, launched_sharding, read_launch
from guieval.training.memory import GIB, PHASES, Layer, Method, ModelSize, Rows, items, peak
from guieval.training.model_size import model_size, shipped_configurations, summed_size
from guieval.training.planning import make_plan
from guieval.training.session import train
from guieval.training.weights import checkpoint_of
from guieval.training.work import Work, forward, of_a_row
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.rows import every_row

from .conftest import Configured, log

SHIPPED = config_folder() / "training"
ONE = Launch(1, "ddp")
COUNTS = {"2.5-VL-3B": 3_754_622_976, "2.5-VL-7B": 8_292_166_656, "2.5-VL-32B": 33_452_718_336}
COUNTS |= {"3-VL-4B": 4_437_815_808, "3-VL-8B": 8_767_123_696}
PUBLISHED = {f"Qwen/Qwen{size}-Instruct": count for size, count in COUNTS.items()}
"""Parameters of the published checkpoints: half the total_size of each one's model.safetensors.index.json."""


def size_of(config: TrainingConfig) -> ModelSize:
    return model_size(config, checkpoint_of(config, config.open_adapter()))


def shipped(name: str, *settings: str) -> TrainingConfig:
    return read_config(SHIPPED / f"{name}.yaml", settings)


def nbytes(tensors: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def test_published_models_and_recipes_can_be_planned_offline() -> None:
    known = shipped_configurations()
    for file in SHIPPED.glob("*.yaml"):
        config = read_config(file)
        checkpoint = checkpoint_of(config, config.open_adapter()) if not file.stem.startswith("tiny-phone") else None
        assert checkpoint is None or file.stem.startswith("tiny") or checkpoint.path in known
    found = {name: size_of(shipped("ui-s1", f"model_path={name}")).parameters for name in PUBLISHED}
    assert found == PUBLISHED
    for name in known:  # the sums of a machine without torch
        for given in ([], ["lora.r=64"]):
            config = shipped("ui-s1", f"model_path={name}", *given)
            assert summed_size(config, name) == size_of(config)
    kinds = [GRPOConfig, SFTConfig]
    assert not {name for name, value in DEFAULTS.items() for kind in kinds if getattr(kind, name, value) != value}


@pytest.mark.parametrize("given", [{}, {"freeze": r".*\.visual\..*"}, {"lora": {"r": 4}}], ids=["all", "freeze", "lora"])
def test_parameters_and_counted_bytes_are_those_of_a_training(given: dict[str, Any], configured: Configured) -> None:
    trainer_settings = {"max_steps": 1, "beta": 0.1, "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    config = configured("grpo", dynamic_sampling=None, trainer=trainer_settings, **given)
    size, parts = size_of(config), TrainerParts(config)
    found = {item.name: item for item in make_plan(parts, ONE).parts if item.exact}
    trainer = parts.trainer()
    adapters = {name for name, _ in trainer.model.named_parameters() if "lora_" in name}
    assert size.parameters == sum(weight.numel() for name, weight in trainer.model.named_parameters() if name not in adapters)
    assert size.trained == sum(weight.numel() for weight in trainer.model.parameters() if weight.requires_grad)
    named = list(trainer.model.named_parameters())
    assert size.vision_trained == any("visual" in name and weight.requires_grad for name, weight in named)
    # bytes of weights, reference, and after a step gradients and the optimiser's states
    gradients: list[int] = []
    step = trainer.training_step

    def seen(*arguments: Any, **named: Any) -> Any:
        loss = step(*arguments, **named)
        gradients.append(nbytes(weight.grad for weight in trainer.model.parameters() if weight.grad is not None))
        return loss

    trainer.training_step = seen
    trainer.train()
    states = [value for state in trainer.optimizer.optimizer.state.values() for value in state.values()]
    assert found["weights"].bytes == nbytes(trainer.model.parameters())
    assert found["gradients"].bytes == gradients[-1]
    assert found["optimiser (two AdamW states)"].bytes == nbytes(state for state in states if state.dim())
    if "lora" in given:
        assert "reference model" not in found and trainer.ref_model is None
    else:
        assert found["reference model"].bytes == nbytes(trainer.ref_model.parameters())


@pytest.mark.parametrize(("dtype", "compute"), [(torch.float32, 4), (torch.bfloat16, 2)])
def test_activations_are_the_saved_tensors_of_a_layer(dtype: torch.dtype, compute: int) -> None:
    """Measured on a small Qwen2.5-VL: what one more layer, or one more vision block, saves for the backward pass."""
    text, vision = Layer(256, 256, 128, 1344, 4), Layer(160, 160, 160, 428, 4)
    base = _saved(dtype, layers=1, blocks=1)
    assert _saved(dtype, layers=2, blocks=1) - base == 600 * text.saved(compute, compute, vision=False)
    assert _saved(dtype, layers=1, blocks=2) - base == 1024 * vision.saved(compute, compute, vision=True)


def _saved(dtype: torch.dtype, *, layers: int, blocks: int) -> int:
    """Bytes saved by a forward pass over 600 tokens, of which 256 are those of a picture of 1024 patches."""
    from transformers import AutoModelForImageTextToText, Qwen2_5_VLConfig

    torch.manual_seed(0)
    text = {"hidden_size": 256, "intermediate_size": 1344, "num_hidden_layers": layers, "num_attention_heads": 4}
    text |= {"num_key_value_heads": 2, "vocab_size": 100, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}
    tokens = {"image_token_id": 10, "vision_start_token_id": 11, "vision_end_token_id": 12, "video_token_id": 13}
    vision = {"depth": blocks, "hidden_size": 160, "intermediate_size": 428, "num_heads": 4, "out_hidden_size": 256}
    config = Qwen2_5_VLConfig(
        vision_config={**vision, "patch_size": 14, "window_size": 112, "fullatt_block_indexes": list(range(blocks))},
        rope_scaling={"type": "mrope", "mrope_section": [8, 12, 12]},
        **text,
        **tokens,
    )
    model = AutoModelForImageTextToText.from_config(config).to(dtype)
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    storages: dict[int, Any] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            storages[storage.data_ptr()] = storage  # held, so that its place is not used again
        return tensor

    ids = torch.full((1, 600), 5)
    ids[0, 0], ids[0, 1:257], ids[0, 257] = 11, 10, 12
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        shown = {"pixel_values": torch.randn(1024, 1176), "image_grid_thw": torch.tensor([[1, 32, 32]])}
        model.model(input_ids=ids, mm_token_type_ids=(ids == 10).int(), use_cache=False, **shown)
    return sum(storage.nbytes() for storage in storages.values())


WEIGHTS: dict[str, Any] = {"parameters": 1000, "trained": 800, "adapters": 0, "unit": 100, "head": 50, "vocabulary": 10}
TOWER: dict[str, Any] = {"blocks": 1, "vision": Layer(8, 8, 8, 16, 2), "vision_trained": False, "patch": 6, "patches": 4}
SMALL = ModelSize(**WEIGHTS, layers=2, text=Layer(8, 8, 4, 16, 2), **TOWER)
ROWS = Rows(rows=1, tokens=10, image=5, completion=2)


@pytest.mark.parametrize(
    ("sharding", "dtype", "expected"),  # weights, gradients, states, reference, buckets
    [
        # float32: 4 bytes of each of 1,000 weights, 4 and 8 of each of the 800 trained ones, on every process
        ("ddp", "float32", (4000, 3200, 6400, 4000, 3200)),
        ("ddp", "bfloat16", (2000, 1600, 3200, 2000, 1600)),
        # 4 processes: weights in bfloat16; gradients, weights and two states of the trained ones in float32
        ("zero3", "float32", (500, 800, 2400, 500, 0)),
        # 4 processes: trained weights in float32 and frozen ones as they are
        ("fsdp2", "float32", (1000, 800, 1600, 1000, 0)),
        ("fsdp2", "bfloat16", (900, 800, 1600, 500, 0)),
    ],
)
def test_states_by_hand(sharding: Any, dtype: str, expected: tuple[int, ...]) -> None:
    method = Method(dtype=dtype, mixed=True, checkpointing=True, reference=True)
    found = {item.name: item.bytes for item in items(SMALL, method, ROWS, sharding=sharding, processes=4) if item.exact}
    names = ("weights", "gradients", "optimiser (two AdamW states)", "reference model", "buckets of DDP's gradients")
    assert found == {name: value for name, value in zip(names, expected, strict=True) if value}


def test_vllm_takes_its_share_always_or_while_it_generates_and_has_to_fit_in_it() -> None:
    def parts(*, sleeps: bool) -> Any:
        method = Method("float32", mixed=True, checkpointing=True, reference=False, vllm=0.5, sleeps=sleeps)
        return items(SMALL, method, ROWS, sharding="zero3", processes=4, gpu=8 * GIB)

    awake, asleep = parts(sleeps=False), parts(sleeps=True)
    assert peak(awake, "training") - peak(asleep, "training") == 4 * GIB
    assert peak(awake, "generation") == peak(asleep, "generation")
    config = shipped("ui-s1", "trainer.vllm_gpu_memory_utilization=0.1")
    problem = make_plan(TrainerParts(config), Launch(8, "zero3", 80 * GIB)).problem(certain=True)
    told = "setting 'trainer.vllm_gpu_memory_utilization' is 0.1, which gives vLLM 8.0"
    assert problem is not None and problem.startswith(told)


def test_seven_billion_weights_fit_as_the_recipes_say() -> None:
    """DDP needs 20 bytes of each weight and a reference of 4, more than two GPUs of 80 GB have; sharding and LoRA less."""
    gpu = 79.6 * GIB
    ddp = make_plan(TrainerParts(shipped("ui-s1")), Launch(8, "ddp", gpu))
    states = sum(item.bytes for item in ddp.parts if item.exact and not item.name.startswith("vLLM"))
    assert states == 24 * PUBLISHED["Qwen/Qwen2.5-VL-7B-Instruct"]
    problem = ddp.problem(certain=True)
    assert problem is not None and "use an accelerate configuration that shards (zero3, fsdp2), or lora" in problem
    for name in ("zero3", "fsdp2"):
        launch = read_launch(SHIPPED / "accelerate" / f"{name}.yaml", gpu=gpu)
        assert launch == Launch(8, name, gpu)
        for recipe in ("ui-s1", "ui-s1-offline"):
            assert make_plan(TrainerParts(shipped(recipe)), launch).problem() is None
    launch = read_launch(SHIPPED / "accelerate" / "ddp.yaml", gpu=gpu)
    assert make_plan(TrainerParts(shipped("ui-s1-lora")), launch).problem() is None


def test_the_trainings_measured_on_an_h100_are_planned_within_a_tenth() -> None:
    """LoRA r 64 of a 7B whose tower was trained along, segments not expandable (docs/gpu.md): 27.8 and 33.7 GiB in use."""
    size = replace(size_of(shipped("ui-s1-lora", "lora.r=64")), vision_trained=True)
    found = []
    for rows, generated in ((Rows(1, 7492, 6800, 100), 0), (Rows(1, 7500, 6800, 100), 4)):
        method = Method("bfloat16", True, True, generated > 0, generated=generated, expandable=False)
        parts = items(size, method, rows, sharding="ddp", processes=1)
        found.append(max(peak(parts, phase) for phase in PHASES) / GIB)
    assert found == [pytest.approx(27.8, rel=0.1), pytest.approx(33.7, rel=0.1)]


def test_the_recipe_fits_at_its_longest_prompts_because_vllm_sleeps_and_answers_its_evaluations() -> None:
    """8 x 80 GB with 12,800 tokens a row. The weights in training would be whole on each GPU to answer by themselves."""
    launch = Launch(8, "zero3", 79.1 * GIB)
    asleep, awake, alone, narrow = (
        make_plan(TrainerParts(shipped(name, *settings)), replace(launch, gpu=gpu * GIB))
        for name, gpu, settings in (
            ("ui-s1", 79.1, ()),
            ("ui-s1", 40, ("trainer.vllm_enable_sleep_mode=false", "trainer.vllm_gpu_memory_utilization=0.8")),
            ("ui-s1", 79.1, ("trainer.use_vllm=false",)),
            ("ui-s1-sft", 40, ("stated.prompt=12288",)),
        )
    )
    assert asleep.rows.tokens == 12_800 and asleep.problem() is None
    assert asleep.peaks["evaluation"] == asleep.peaks["generation"] < 0.7 * 79.1 * GIB
    assert alone.peaks["evaluation"] > asleep.peaks["evaluation"] and alone.problem() is not None
    assert "trainer.vllm_enable_sleep_mode=true" in str(awake.problem())
    assert "evaluation.sidecar=true" in str(narrow.problem())
    beside = make_plan(TrainerParts(shipped("ui-s1", "evaluation.sidecar=true")), launch)
    assert "evaluation" not in beside.peaks
    # 16.6 GB of weights, 99.5 of their copies in float32 with two states, and 16.6 of the whole model, three at a time
    assert asleep.disk.checkpoint == pytest.approx(132.7e9, rel=1e-3) and asleep.disk.kept == 3
    assert asleep.disk.final == pytest.approx(16.58e9, rel=1e-3)


def test_operations_and_hours_by_hand() -> None:
    """SMALL's tower has 4 * 8**2 + 3 * 8 * 16 = 640 weights, and 20 patches of a row of 10 tokens."""
    assert forward(SMALL, 10, 5) == (2 * 360 * 10 + 2 * 2 * 8 * 10**2, 2 * 640 * 20)
    method = Method("bfloat16", mixed=True, checkpointing=True, reference=True)
    # forward, again for the gradients, and two backward; the reference, the prompt's reading and the old log-probabilities
    assert of_a_row(SMALL, method, ROWS, 10, "ddp", answered=True) == (4 + 3) * 10_400 + 25_600
    assert of_a_row(SMALL, method, ROWS, 10, "zero3", answered=True) == (4 + 3) * 10_400 + (1 + 3) * 25_600
    trained = replace(SMALL, vision_trained=True)
    assert of_a_row(trained, replace(method, reference=False), ROWS, 5, "ddp", answered=False) == 4 * (4_400 + 12_800)
    work = Work(350e12 * 3600, steps=12, processes=4)
    assert (work.gpu_hours(), work.hours(), work.hours(700)) == (12, 3, 1.5)


def test_the_recipe_is_planned_without_its_data_in_hours() -> None:
    """By an independent sum: 25 hours on 8 x H100 at 35 % of their rate, rollouts included, so 200 GPU hours."""
    plan = make_plan(TrainerParts(shipped("ui-s1")), Launch(8, "zero3"))
    assert plan.work is not None and plan.work.gpu_hours() == pytest.approx(200, rel=0.05)
    for recipe in ("ui-s1-sft", "ui-r1", "ui-r1-box", "ui-r1-sft"):
        assert make_plan(TrainerParts(shipped(recipe)), Launch(8, "zero3")).work is not None


def test_what_a_plan_needs_is_said_plainly(configured: Configured, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the length of a prompt is not known: give --data"):
        make_plan(TrainerParts(shipped("hypertrack-rl", "stated=null")), Launch(8, "zero3"))
    plan = make_plan(TrainerParts(shipped("hypertrack-rl", "stated=null", "max_prompt_length=1000")), Launch(8, "zero3"))
    assert plan.rows == Rows(rows=1, tokens=1512, image=1000, completion=512)
    assert (plan.batch.epoch, plan.batch.steps) == (None, None)
    config = shipped("ui-s1", f"model_path=nobody/{tmp_path.name}")
    with pytest.raises(UsageError, match=r"the config\.json of 'nobody/.*' cannot be read, and a plan needs nothing else"):
        make_plan(TrainerParts(config), Launch(8, "zero3"))
    with pytest.raises(UsageError, match=r"vLLM is not installed: pip install 'guieval\[train-vllm\]'"):
        TrainerParts(configured("grpo", dynamic_sampling=None, trainer={"use_vllm": True})).trainer()


def test_measured_prompts_are_as_long_as_tokenised_ones(configured: Configured) -> None:
    """Image tokens exactly, text tokens at least: 144 of a picture and two around it."""
    parts = TrainerParts(configured("grpo", dynamic_sampling=None))
    plan = make_plan(parts, ONE)
    trainer = parts.trainer()
    examples = [trainer._example(number) for number in range(20)]
    asked = [parts.prompts.messages(each.task, each.history) for each in examples]
    tokens = trainer._tokenize_prompts(asked)[0]
    image = trainer.processing_class.image_token_id
    assert plan.rows.image == max(each.count(image) for each in tokens) + 2 == 146
    assert plan.rows.tokens - plan.rows.completion >= max(map(len, tokens))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("sft", {"limit": 3, "trainer": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}}),
        ("grpo", {"limit": 3, "trainer": {"num_iterations": 2}}),
        ("semi-online", {"limit": 5, "batch": {"tasks": 2, "updates": 2}, "trainer": {"gradient_accumulation_steps": None}}),
    ],
)
def test_steps_are_those_of_the_training(kind: str, given: dict[str, Any], configured: Configured) -> None:
    trainer = {"max_steps": -1, "num_train_epochs": 1, "save_strategy": "no", "per_device_train_batch_size": 4}
    given = {**given, "trainer": {**trainer, **given["trainer"]}}
    if kind != "sft":
        given |= {"dynamic_sampling": None}
    config = configured(kind, **given)
    plan = make_plan(TrainerParts(config), ONE)
    train(config)
    assert plan.batch.total == plan.batch.steps == max(line["step"] for line in log(config))


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "zero3"])
def test_accelerate_reads_its_configurations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a process that it starts so is recognised by its environment."""
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    file = str(SHIPPED / "accelerate" / f"{name}.yaml")
    assert load_config_from_file(file).num_processes == 8
    given = ["--config_file", file, "--num_machines", "4", "--num_processes", "32", "--machine_rank", "0"]
    given += ["--main_process_ip", "localhost", "--main_process_port", "29500", "-m", "guieval", "train"]
    arguments, _, _ = _validate_launch_command(launch_command_parser().parse_args(given))
    assert (arguments.num_processes, arguments.num_machines) == (32, 4)
    arguments.deepspeed_fields_from_accelerate_config = ""  # the launcher's own list, which it sets before it starts DeepSpeed
    environment = prepare_deepspeed_cmd_env(arguments)[1] if name == "zero3" else prepare_multi_gpu_env(arguments)
    for variable, value in environment.items():
        if variable.startswith(("ACCELERATE_", "FSDP_")):
            monkeypatch.setenv(variable, value)
    assert launched_sharding() == name


@every_row(
    ("text", "sentence"),
    [
        ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\n", "the model in a way that cannot be planned"),
        ("distributed_type: FSDP\nfsdp_config: {fsdp_version: 1}\n", "expected DDP, DeepSpeed's ZeRO-3 or FSDP2"),
        ("kind: grpo\n", "is not a configuration of accelerate: it has no distributed_type"),
        ("[", "is not YAML"),
    ],
)
def test_other_launches_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "accelerate.yaml").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read_launch(tmp_path / "accelerate.yaml")


def test_one_that_cannot_fit(configured: Configured, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    config = configured("grpo", dynamic_sampling=None)
    needed = make_plan(TrainerParts(config), ONE)
    monkeypatch.setattr(planning, "gpu_memory", lambda: 1e6)
    monkeypatch.setattr("guieval.training.building.load_weights", lambda *given: pytest.fail("weights are loaded"))
    with pytest.raises(UsageError, match=r"with ddp on 1 processes needs at least .* GiB in each"):
        train(config)
    assert not Path(config.out).exists()
    assert needed.peaks["training"] > GIB  # with the context
    monkeypatch.setattr(planning, "gpu_memory", lambda: float(GIB))
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)  # the test of a notebook leaves warnings disabled
    planning.check_memory(TrainerParts(configured("grpo", dynamic_sampling=None)))
    assert "needs about 1.5" in caplog.text


def test_the_command(guieval: CommandLine) -> None:
    words = ["train", "plan", "--config", "ui-s1", "--gpu-memory", "80", "--accelerate"]
    done = guieval(*words, "zero3", "--processes", "32", "--json")
    plan = read_json(done.out)
    assert done.code == 0 and plan["fits"] and plan["launch"]["processes"] == 32
    assert plan["model"]["parameters"] == PUBLISHED["Qwen/Qwen2.5-VL-7B-Instruct"]
    assert plan["batch"] == {"tasks": 32, "responses": 8, "updates": 4, "epoch": 1000, "steps": 124, "total": 620}
    shown = guieval(*words, "zero3")
    assert "1,000 episodes, 124 optimiser steps; 620 in all" in shown.out
    refused = guieval(*words, "ddp")
    assert refused.code == 2 and refused.err.count("GiB in each") == 1
    assert guieval(*words, "zero4").code == 2
    assert not os.path.exists("training/ui-s1")
