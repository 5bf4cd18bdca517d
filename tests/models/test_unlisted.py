"""Checkpoints that are not listed: public configurations give the family that their makers state, or are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.data.checkpoint import CheckpointFiles
from guieval.errors import UsageError
from guieval.models import ModelConfig
from guieval.models.unlisted import like_listed
from guieval.registry import model_config, model_configs
from tests.command_line import CommandLine
from tests.rows import every_row

QWEN25 = {"model_type": "qwen2_5_vl", "max_position_embeddings": 128000}
QWEN3 = {"model_type": "qwen3_vl", "text_config": {"max_position_embeddings": 262144}}
BASE = {"min_pixels": 3136, "max_pixels": 12845056}
THINKS = "{{- '<|im_start|>assistant\\n<think>\\n' }}"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "mlx-community/UI-TARS-1.5-7B-6bit": (QWEN25, BASE, "", "ui-tars-1.5-7b"),
    "mlx-community/GLM-4.1V-9B-Thinking-5bit": ({"model_type": "glm4v"}, {}, "", "glm-4.1v-9b-thinking"),
    "Qwen/Qwen3-VL-4B-Instruct-FP8": (QWEN3, {}, "", "qwen3-vl-8b-instruct"),
    "moonshotai/Kimi-K2.5": ({"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2"}}, {}, "", "kimi-k2.5"),
    "GUI-Libra/GUI-Libra-4B": (QWEN3, {}, "", "its name fits no family; .* qwen3_vl, step_gui"),
    "DiffSynth-Studio/Nexus-GenV2": ({**QWEN25, "_name_or_path": "DiffSynth-Studio/Nexus-GenV2"}, BASE, "", "fits no family"),
    # of nobody's
    "me/qwen3-vl-8b": (QWEN3, {}, THINKS, "qwen3-vl-8b-thinking"),
    "me/checkpoint-300": ({"model_type": "opencua"}, {}, "", "opencua-7b"),
    "me/step_120": ({**QWEN25, "_name_or_path": "out/UI_S1-7B"}, BASE, "", "ui-s1-7b"),
    "me/of-a-base": ({**QWEN25, "_name_or_path": "Qwen/Qwen2.5-VL-7B-Instruct"}, BASE, "", "ui_r1, ui_s1, ui_tars_1_5"),
    "me/ui-s1-and-ui-r1": (QWEN25, BASE, "", "fits several .* ui_r1, ui_s1$"),
    "me/ui-tars-1.5": ({"model_type": "qwen2_vl"}, {}, "", r"is ui-tars-1.5 \(model_type qwen2_5_vl\), but"),
    "me/llava-gui": ({"model_type": "llava", "text_config": []}, {}, "", "no family is known"),
    "me/lora": ({}, {}, "", "no config.json"),
}
"""Of each checkpoint config.json, image processor, chat template, and the listed one that it is like, or the refusal."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only copy of the hub: there is no network."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def write(cache: Path, name: str, config: dict[str, Any], processor: dict[str, Any], template: str) -> Path:
    folder = cache / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / ("5efbb1f0" * 5)
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(snapshot.name)
    snapshot.mkdir(parents=True)
    texts = {"config.json": config, "preprocessor_config.json": processor, "chat_template.json": {"chat_template": template}}
    for file, values in texts.items():
        (snapshot / file).write_text(json.dumps(values))
    return snapshot


@every_row("name", list(CASES))
def test_a_configuration_gives_its_family_or_is_refused(cache: Path, name: str) -> None:
    config, processor, template, expected = CASES[name]
    snapshot = write(cache, name, config, processor, template)
    for given in (name, str(snapshot)):
        if expected not in model_configs():
            with pytest.raises(UsageError, match=expected) as refused:
                model_config(given)
            assert repr(name) in str(refused.value)
            continue
        like, found = model_config(expected), model_config(given)
        assert (found.name, found.hf_id) == (name, given)
        same = ("adapter", "scaffold", "options", "frame", "vllm")
        assert [getattr(found, field) for field in same] == [getattr(like, field) for field in same]
        assert expected in found.resolved["family"] and like.scaffold.name in found.resolved["scaffold"]
        assert ModelConfig.model_validate(found.model_dump()).resolved == found.resolved, "a run's manifest keeps the reasons"


def test_own_limits_are_kept_and_those_of_a_base_model_are_not(cache: Path, guieval: CommandLine) -> None:
    for name, limit, options in (("me/gui-g2", 2007040, {**BASE, "max_pixels": 2007040}), ("me/gui-g2-b", 12845056, {})):
        write(cache, name, QWEN25, {**BASE, "max_pixels": limit}, "")
        assert model_config(name).options == options
    done = guieval("run", "--model", "me/gui-g2", "--bench", "demo", "--base-url", "http://127.0.0.1:1/v1", "--dry-run")
    assert done.code == 0 and "at most 2,007,040 pixels, its processor's" in " ".join(done.err.split())
    for given, said in (
        ("me/none", "cache (HF_HOME) has no copy; --adapter FAMILY"),
        ("ritzzai/GUI-R1", "gui-r1-3b or gui-r1-7b"),
        ("./checkpoints", "(there is no such folder)"),
    ):
        refused = guieval("dev", "prompt", "--model", given, "--bench", "demo", "--episode", "s0-0000", "--step", "0")
        assert refused.code == 2 and said in refused.err and refused.err.count("\n") == 1


def test_the_marks_of_every_family_fit_its_own_checkpoints_and_no_others() -> None:
    known, wrong = model_configs(), []
    for config in known.values():
        own = [other.marks for other in known.values() if other.marks and other.adapter == config.adapter]
        for kind in {kind for marks in own for kind in marks.model_type} if config.hf_id else ():
            files = CheckpointFiles({"model_type": kind}, {}, None)
            try:
                like = like_listed(config.hf_id or "", files, known.values()).config.adapter
            except UsageError as error:
                like = str(error)
            several = "but its config.json" in like  # architectures, of which the name says one
            if like != config.adapter and not several and "asked with" not in config.notes:
                wrong.append(f"{config.name} ({kind}): {like}")
    assert wrong == []
