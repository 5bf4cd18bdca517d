"""How the tiny policy is made, fast and as the checkpoint computes, and that the shipped one is half-trained."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from guieval.journal import RunFolder
from guieval.playground.icons.screens import COLOURS, SHAPES, draw_screen, split_of
from guieval.playground.phone.dice import Dice
from guieval.playground.tiny_policy import language
from guieval.playground.tiny_policy.building import Policy, build_policy, tokens_of
from guieval.playground.tiny_policy.language import RowWriter, draw_conversation, look_at, token_losses
from guieval.registry import load_model
from tests.command_line import CommandLine

ADAPTER = load_model("tiny-policy")


@pytest.fixture(scope="module")
def untrained() -> Policy:
    return build_policy(0)


def prompt(policy: Policy, question: str) -> str:
    content = [{"type": "image"}, {"type": "text", "text": question}]
    messages = [{"role": "user", "content": content}]
    return str(policy.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def test_words_and_digits_are_tokens_and_the_chat_template_adds_nothing(untrained: Policy) -> None:
    tokenizer = untrained.processor.tokenizer
    assert tokenizer.tokenize("tap red star, black circle") == ["tap", "Ġ", "red", "Ġ", "star", ",Ġ", "black", "Ġ", "circle"]
    assert tokenizer.tokenize("red star click(012,999)") == ["red", "Ġ", "star", "Ġclick(", *"012", ",", *"999", ")"]
    for word in (*COLOURS, *SHAPES):
        assert tokenizer.tokenize(word) == [word]
    for text in ("Tap 'É' — \n now", "click(001,200)", "tap red star, black circle"):
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    image = "<|vision_start|><|image_pad|><|vision_end|>"
    assert prompt(untrained, "tap red star") == f"<|im_start|>user\n{image}tap red star<|im_end|>\n<|im_start|>assistant\n"


def test_icons_lie_on_their_tokens_and_conversations_of_the_training_split_answer_themselves() -> None:
    placed = draw_screen(Dice("tokens")).icons[0]
    x1, y1, x2, y2 = placed.pixels
    for token in tokens_of(placed):
        left, top = token % 9 * 28, token // 9 * 28
        assert min(x2, left + 28) - max(x1, left) > 6 and min(y2, top + 28) - max(y1, top) > 6
    middle = (y1 + y2) // 2 // 28 * 9 + (x1 + x2) // 2 // 28
    assert middle in tokens_of(placed)
    for number in range(40):
        dice = Dice("conversation", number)
        screen = draw_screen(dice)
        question, answer, target = draw_conversation(dice, screen, ADAPTER)
        goal, *past = question.removeprefix("tap ").split("\n")
        names = goal.split(", ")
        icons = {placed.icon.name: placed.icon for placed in screen.icons}
        assert split_of([icons[name] for name in names]) == "train"
        assert names[len(past)] == target.icon.name
        assert answer.startswith(f"{target.icon.name} click(")
        assert all("click(" in line for line in past)


def test_many_conversations_in_a_row_cost_what_each_costs_alone(untrained: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "autocast", nullcontext)  # so that they may be compared to the last digits
    dice = Dice("packed")
    seen = look_at(untrained, screens=2, seed=3)
    counted = list(zip(seen, (3, 1), strict=True))
    result = [[draw_conversation(dice, each.screen, ADAPTER) for _ in range(count)] for each, count in counted]
    writer = RowWriter(untrained)
    with torch.no_grad():
        packed, _ = token_losses(untrained, writer.batch([writer.row(each) for each in result]), seen)
        alone: list[Any] = []
        for each, conversations in zip(seen, result, strict=True):
            for question, answer, _ in conversations:
                text = prompt(untrained, question) + answer + "<|im_end|>"
                inputs = untrained.processor(text=[text], images=[each.screen.render()], return_tensors="pt")
                message = len(untrained.processor.tokenizer(answer).input_ids) + 1
                logits = untrained.model(**inputs).logits[0, -message - 1 : -1]
                alone.append(functional.cross_entropy(logits, inputs["input_ids"][0, -message:], reduction="none"))
    assert torch.allclose(packed, torch.cat(alone), atol=0.1)  # in bfloat16; another position or a seen neighbour costs more


def test_the_program_writes_the_same_checkpoint_for_the_same_seed(tmp_path: Path) -> None:
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        command = [sys.executable, "-m", "guieval.playground.tiny_policy", "--out", str(tmp_path / name), "--seed", str(seed)]
        done = subprocess.run([*command, "--minutes", "0.02"], capture_output=True, text=True, check=True)
        assert f"drawn from seed {seed}" in done.stderr
    load = Qwen3VLForConditionalGeneration.from_pretrained
    one, same, other = (load(tmp_path / name, dtype="auto").state_dict() for name in ("one", "same", "other"))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    assert {tensor.dtype for tensor in one.values()} == {torch.bfloat16}
    assert AutoProcessor.from_pretrained(tmp_path / "one").tokenizer.tokenize("red")


def test_it_answers_in_form_and_is_right_about_half_of_the_time(guieval: CommandLine, tmp_path: Path) -> None:
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
