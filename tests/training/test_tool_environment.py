"""Environments in TRL's own loop: tools act, screenshots come back, the judge rewards, here and through a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Point
from guieval.errors import EnvironmentFailure
from guieval.playground.environments.icons import IconsEnvironment
from guieval.playground.icons.screens import IconEpisode, generate_icon_episode
from guieval.training.settings import JudgeReward
from guieval.training.tool_environment import ToolEnvironment, tool_environments

EPISODE = next(each for number in range(50) if len(each := generate_icon_episode(0, number, "test")) == 2)
TASK = f"test-s0-{EPISODE.number:05d}"


def place(episode: IconEpisode, index: int) -> tuple[int, int]:
    point: Point = episode.screens[index].find(episode.goal[index]).centre
    return round(point.x), round(point.y)


def test_tools_act_and_the_judge_rewards() -> None:
    environment = tool_environments("demo-icons", reward=JudgeReward(progress=0.5))()
    image, goal = environment.reset(task=TASK, seed=0, prompt="unused")
    assert image["image"].size == (252, 448) and goal["text"].startswith("tap ")
    assert environment.get_reward() == 0
    (second,) = environment.click(*place(EPISODE, 0))
    assert second["image"].tobytes() != image["image"].tobytes()
    assert environment.get_reward() == 0.25
    (same,) = environment.wait()
    assert same["image"].tobytes() == second["image"].tobytes()
    environment.click(*place(EPISODE, 1))
    assert environment.get_reward() == 1.5
    with pytest.raises(RuntimeError, match="the task is over"):
        environment.click(1, 1)
    environment.reset(task=TASK)
    environment.stop("finish")
    with pytest.raises(RuntimeError, match="the task is over"):
        environment.press("BACK")
    assert environment.get_reward() == 0


def test_a_served_environment_is_the_same() -> None:
    pytest.importorskip("aiohttp")
    from guieval.connectors.servers.openenv_server import EnvironmentServer
    from tests.online.in_thread import InThread

    with InThread(EnvironmentServer(IconsEnvironment()).app()) as server:
        there = tool_environments("openenv", url=server.address)()
        here = tool_environments("demo-icons")()
        assert there.reset(task=TASK) == here.reset(task=TASK)
        for index in range(len(EPISODE)):
            assert there.click(*place(EPISODE, index)) == here.click(*place(EPISODE, index))
        assert there.get_reward() == here.get_reward() == 1
        there._close()


def test_an_environment_that_fails_has_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: ToolEnvironment = tool_environments("demo-icons")()

    async def failing(*arguments: Any) -> None:
        raise EnvironmentFailure("the screen is black")

    monkeypatch.setattr(IconsEnvironment, "open", failing)
    assert environment.reset(task=TASK) == [{"type": "text", "text": "the screen is black"}]
    assert environment.get_reward() is None
    with pytest.raises(RuntimeError, match="the environment failed"):
        environment.click(1, 1)
    monkeypatch.undo()
    environment.reset(task=TASK)
    assert environment.get_reward() == 0


def test_trl_trains_in_it(policy: Path, tmp_path: Path) -> None:
    """Two of four rollouts tap what the goal names; the weights cannot call tools, so their tokens are given."""
    trl = pytest.importorskip("trl")
    import torch
    from datasets import Dataset
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(policy)
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3_vl.jinja").read_text(encoding="utf-8")
    processor.chat_template = processor.tokenizer.chat_template = template
    settings = trl.GRPOConfig(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=1500,
        report_to=[], use_cpu=True, bf16=False, save_strategy="no", logging_steps=1, learning_rate=1e-3,
    )  # fmt: skip
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": "Do this: "}], "task": TASK, "seed": 0}] * 4)
    turns: list[list[int]] = []
    model = AutoModelForImageTextToText.from_pretrained(policy)
    before = model.lm_head.weight.detach().clone()
    given = {"processing_class": processor, "train_dataset": rows, "environment_factory": tool_environments("demo-icons")}
    trainer = trl.GRPOTrainer(model=model, args=settings, **given)

    def answers(prompts: Any, images: Any, *others: Any, **named: Any) -> tuple[list[list[int]], None]:
        turn = len(turns)
        turns.append([len(shown) for shown in images])
        texts = [_call(*place(EPISODE, turn)), _call(500, 5)] * 2 if turn < len(EPISODE) else ["done<|im_end|>"] * 4
        return [processor.tokenizer(text)["input_ids"] for text in texts], None

    trainer._generate_single_turn = answers
    trainer.train()
    (line,) = [line for line in trainer.state.log_history if "reward" in line]
    assert turns == [[1] * 4, [2] * 4, [3] * 4]  # one more screenshot a turn
    assert line["rewards/ToolEnvironment/mean"] == 0.5 and line["tools/failure_frequency"] == 0
    assert not torch.equal(model.lm_head.weight, before)


def _call(x: int, y: int) -> str:
    return f'<tool_call>\n{{"name": "click", "arguments": {{"x": {x}, "y": {y}}}}}\n</tool_call><|im_end|>'
