"""Training data in the formats of other frameworks: what their documentation asks of a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.rewards.adapters.ms_swift import GuievalReward
from guieval.rewards.adapters.rows import task_of
from guieval.training.data.export import write_rows
from tests.command_line import CommandLine

TRAINING = """
kind: {kind}
model: {model}
bench: demo
split: all
limit: 2
"""


@pytest.fixture
def exported(guieval: CommandLine, tmp_path: Path) -> Any:
    def export(form: str, kind: str = "sft", model: str = "qwen2.5-vl-7b-ui-s1") -> list[dict[str, Any]]:
        (tmp_path / "t.yaml").write_text(TRAINING.format(kind=kind, model=model))
        done = guieval("export-training", "--config", tmp_path / "t.yaml", "--format", form, "--out", tmp_path / "out")
        assert done.code == 0, done.err
        return [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()]

    return export


def check_images(row: dict[str, Any], texts: list[str]) -> None:
    """One path for each placeholder, absolute and readable."""
    assert sum(text.count("<image>") for text in texts) == len(row["images"]) > 0
    for path in row["images"]:
        assert Path(path).is_absolute()
        with Image.open(path) as image:
            assert image.size[0] > 0


@pytest.mark.parametrize("form", ["ms-swift", "messages"])
def test_messages_of_sft(form: str, exported: Any) -> None:
    """ms-swift, Custom-dataset: optional system first, then user and assistant, the answer last."""
    for row in exported(form):
        assert row.keys() == {"messages", "images"}
        assert all(message.keys() == {"role", "content"} for message in row["messages"])
        roles = [message["role"] for message in row["messages"]]
        assert set(roles) <= {"system", "user", "assistant"} and "system" not in roles[1:] and roles[-1] == "assistant"
        assert "<action>" in row["messages"][-1]["content"]
        check_images(row, [message["content"] for message in row["messages"]])


def test_rows_of_grpo_reach_the_reward_with_their_step(exported: Any) -> None:
    """ms-swift passes all further columns to the reward; a GRPO row ends with the user's turn."""
    rows = exported("ms-swift", "grpo")
    assert all(row["messages"][-1]["role"] == "user" for row in rows)
    scorer = GuievalReward()
    model = scorer.scorer.model
    right = [model.render(task_of(row["task"]), task_of(row["task"]).action, "It is there.") for row in rows]
    assert scorer(right, task=[row["task"] for row in rows]) == pytest.approx([1.0] * len(rows))


@pytest.mark.parametrize("form", ["llama-factory", "sharegpt"])
def test_conversations_of_sft(form: str, exported: Any, tmp_path: Path) -> None:
    """LLaMA-Factory, data/README.md: human in odd positions, gpt in even ones, an even number of turns, the system apart."""
    for row in exported(form):
        assert row.keys() == {"system", "conversations", "images"}
        turns = row["conversations"]
        assert [turn["from"] for turn in turns] == ["human", "gpt"] * (len(turns) // 2)
        check_images(row, [row["system"], *(turn["value"] for turn in turns)])
    described = tmp_path / "out" / "dataset_info.json"
    assert described.exists() == (form == "llama-factory")
    if described.exists():
        info = json.loads(described.read_text())["out"]
        assert (info["file_name"], info["formatting"]) == ("train.jsonl", "sharegpt")
        assert set(info["columns"].values()) == row.keys()
        assert info["tags"] == {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"}


def test_texts_that_the_frameworks_replace_are_left_out_and_counted(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": [{"type": "text", "text": "Type <image> here"}]}]
    counts = write_rows([(None, prompt, "yes")], tmp_path, "messages", "x")  # type: ignore[list-item]
    assert counts == {"its text holds <image>, which the frameworks replace": 1}


@pytest.mark.parametrize(
    ("kind", "form", "message"),
    [
        ("sft", "ms-swft", "unknown format 'ms-swft' (did you mean 'ms-swift'?)"),
        ("grpo", "sharegpt", "format 'sharegpt' holds an answer for every prompt"),
        ("semi-online", "messages", "semi-online training has no rows"),
    ],
)
def test_a_mistake_is_one_sentence(kind: str, form: str, message: str, guieval: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(TRAINING.format(kind=kind, model="qwen2.5-vl-7b-ui-s1"))
    given: list[str | Path] = ["--config", tmp_path / "t.yaml", "--format", form, "--out", tmp_path / "out"]
    assert message in guieval.sentence("export-training", *given)


def test_a_folder_is_not_written_over(exported: Any, guieval: CommandLine, tmp_path: Path) -> None:
    assert exported("messages")
    again = guieval.sentence(
        "export-training", "--config", tmp_path / "t.yaml", "--format", "messages", "--out", tmp_path / "out"
    )
    assert "already holds train.jsonl: give another folder" in again
