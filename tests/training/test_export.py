"""Training data in the formats of other frameworks: the published formats, and the frameworks' own loaders where installed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from guieval.data.shipped import config_folder
from guieval.rewards.adapters.ms_swift import GuievalReward
from guieval.rewards.adapters.rows import task_of
from guieval.training.data.export import write_rows
from tests.command_line import CommandLine
from tests.training.published_formats import DatasetInfo, ShareGPTRow, SwiftRow

TRAINING = "kind: {kind}\nmodel: {model}\nbench: demo\nsplit: all\nlimit: 2\n"


@pytest.fixture
def exported(guieval: CommandLine, tmp_path: Path) -> Any:
    def export(form: str, kind: str = "sft", model: str = "qwen2.5-vl-7b-ui-s1") -> list[dict[str, Any]]:
        (tmp_path / "t.yaml").write_text(TRAINING.format(kind=kind, model=model))
        done = guieval("train", "export", "--config", tmp_path / "t.yaml", "--format", form, "--out", tmp_path / "out")
        assert done.code == 0, done.err
        return [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()]

    return export


def check_images(row: dict[str, Any]) -> None:
    """Absolute paths of readable images."""
    assert row["images"]
    for path in row["images"]:
        assert Path(path).is_absolute()
        with Image.open(path) as image:
            assert image.size[0] > 0


@pytest.mark.parametrize("form", ["ms-swift", "messages"])
def test_messages_of_sft(form: str, exported: Any) -> None:
    for row in exported(form):
        read = SwiftRow.model_validate(row)
        assert row.keys() == {"messages", "images"}
        assert read.messages[-1].role == "assistant" and "<action>" in read.messages[-1].content
        check_images(row)


def test_rows_of_grpo_reach_the_reward_with_their_step(exported: Any) -> None:
    """ms-swift passes all further columns to the reward; a GRPO row ends with the user's turn."""
    rows = exported("ms-swift", "grpo")
    assert all(SwiftRow.model_validate(row).messages[-1].role == "user" for row in rows)
    scorer = GuievalReward()
    model = scorer.scorer.model
    right = [model.render(task_of(row["task"]), task_of(row["task"]).action, "It is there.") for row in rows]
    assert scorer(right, task=[row["task"] for row in rows]) == pytest.approx([1.0] * len(rows))


@pytest.mark.parametrize("form", ["llama-factory", "sharegpt"])
def test_conversations_of_sft(form: str, exported: Any, tmp_path: Path) -> None:
    for row in exported(form):
        read = ShareGPTRow.model_validate(row)
        assert row.keys() == {"system", "conversations", "images"} and read.system
        assert "<action>" in read.conversations[-1].value
        check_images(row)
    described = tmp_path / "out" / "dataset_info.json"
    assert described.exists() == (form == "llama-factory")
    if described.exists():
        ((name, entry),) = json.loads(described.read_text()).items()
        info = DatasetInfo.model_validate(entry)
        assert (name, info.file_name, info.tags) == ("out", "train.jsonl", type(info.tags)())
        assert {info.columns.messages, info.columns.system, info.columns.images} == row.keys()


@pytest.mark.parametrize(("form", "kind"), [("ms-swift", "sft"), ("messages", "sft"), ("ms-swift", "grpo")])
def test_ms_swift_loads_the_rows(form: str, kind: str, exported: Any, tmp_path: Path) -> None:
    dataset = pytest.importorskip("swift.dataset", reason="ms-swift is not installed")
    rows = exported(form, kind)
    loaded, _ = dataset.load_dataset([str(tmp_path / "out" / "train.jsonl")], strict=True, remove_unused_columns=False)
    assert len(loaded) == len(rows)
    for row, found in zip(rows, loaded, strict=True):
        assert [{name: each[name] for name in ("role", "content")} for each in found["messages"]] == row["messages"]
        assert [image["path"] for image in found["images"]] == row["images"]
        assert found.get("task") == row.get("task")


def test_llama_factory_loads_the_rows_and_places_their_images(exported: Any, tmp_path: Path) -> None:
    parser = pytest.importorskip("llamafactory.data.parser", reason="LLaMA-Factory is not installed")
    from llamafactory.data.converter import get_dataset_converter  # type: ignore[import-not-found, unused-ignore]
    from llamafactory.data.template import TEMPLATES  # type: ignore[import-not-found, unused-ignore]
    from transformers import AutoProcessor

    rows = exported("llama-factory")
    (described,) = parser.get_dataset_list(["out"], str(tmp_path / "out"))
    convert = get_dataset_converter(described.formatting, described, SimpleNamespace(media_dir=str(tmp_path / "out")))
    processor = AutoProcessor.from_pretrained(config_folder() / "checkpoints" / "tiny-policy")
    processor.image_max_pixels, processor.image_min_pixels = 768 * 768, 32 * 32
    for row in rows:
        found = convert(row)
        texts = [turn["value"] for turn in row["conversations"]]
        assert [message["content"] for message in (*found["_prompt"], *found["_response"])] == texts
        assert (found["_system"], found["_images"], len(found["_response"])) == (row["system"], row["images"], 1)
        messages = [*found["_prompt"], *found["_response"]]
        placed = TEMPLATES["qwen2_vl"].mm_plugin.process_messages(messages, found["_images"], [], [], processor)
        assert sum(message["content"].count("<|vision_start|>") for message in placed) == len(row["images"])


def test_mistakes_are_one_sentence_and_nothing_is_written_over(exported: Any, guieval: CommandLine, tmp_path: Path) -> None:
    assert exported("messages")
    for kind, form, message in (
        ("sft", "messages", "already has train.jsonl: give another folder"),
        ("sft", "ms-swft", "unknown format 'ms-swft' (did you mean 'ms-swift'?)"),
        ("grpo", "sharegpt", "format 'sharegpt' has an answer for every prompt"),
        ("semi-online", "messages", "semi-online training has no rows"),
    ):
        (tmp_path / "t.yaml").write_text(TRAINING.format(kind=kind, model="qwen2.5-vl-7b-ui-s1"))
        out = tmp_path / ("out" if "already" in message else "other")
        given = ("--config", tmp_path / "t.yaml", "--format", form, "--out", out)
        assert message in guieval.sentence("train", "export", *given)
    # texts that the frameworks replace are left out and counted
    prompt = [{"role": "user", "content": [{"type": "text", "text": "Type <image> here"}]}]
    counts = write_rows([(None, prompt, "yes")], tmp_path, "messages", "x")  # type: ignore[list-item]
    assert counts == {"its text holds <image>, which the frameworks replace": 1}
