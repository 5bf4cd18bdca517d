"""What the documentation tells a user to run with TRL and accelerate, run with them: lines, a notebook, and commands."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from accelerate.commands.launch import launch_command_parser

from guieval.actions import Click, Point, Wait
from guieval.rewards import open_scorer
from guieval.rewards.adapters.rows import task_of
from perf.reproduce import page
from tests.conftest import REPOSITORY
from tests.model_adapters.steps import step
from tests.perf.test_reproduce import commands

TASK = step(Click(point=Point(500.0, 500.0)))
THOUGHT = "I look at the screen."
"""The reward of the documented lines asks for a thought."""
STEPS = 30


def snippets(page: str = "docs/rewards.md") -> list[str]:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text.partition("<!-- rewards -->")[2] or text, re.DOTALL)


@pytest.fixture
def policy(tmp_path: Path) -> dict[str, Any]:
    """A language model of four answers: each is one token, so that a sampled token is a whole reply of the family's format."""
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig

    model = open_scorer().model
    message = [TASK.action, Click(point=Point(10.0, 10.0)), Wait()]
    words = ["[pad]", "[end]", "[unknown]", *(model.render(TASK, action, THOUGHT) for action in message), "I do not know"]
    words_tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="[unknown]"))
    special = {"pad_token": "[pad]", "eos_token": "[end]", "unk_token": "[unknown]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words_tokenizer, **special)
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    args = GRPOConfig(
        output_dir=str(tmp_path), max_steps=STEPS, per_device_train_batch_size=8, num_generations=8, max_completion_length=1,
        learning_rate=1e-2, logging_steps=1, report_to=[], use_cpu=True, bf16=False, seed=0, save_strategy="no",
    )  # fmt: skip
    row = {"prompt": [{"role": "user", "content": TASK.instruction}], "task": TASK.model_dump_json()}
    dataset = Dataset.from_list([row] * 16)
    return {"model": Qwen2ForCausalLM(config), "tokenizer": tokenizer, "args": args, "dataset": dataset}


def test_the_documented_lines_train_a_policy_and_the_documented_rows_are_a_data_set(policy: dict[str, Any]) -> None:
    """Rewards reach TRL, every part is logged, and the policy learns the answer that the evaluator calls right."""
    from trl import GRPOTrainer

    assert snippets("README.md")[0] == snippets()[0]
    scope = {"GRPOTrainer": GRPOTrainer, **policy}
    exec(snippets()[0], scope)
    trainer = scope["trainer"]
    trainer.train()
    logged = [line for line in trainer.state.log_history if "rewards/hypertrack/mean" in line]
    assert len(logged) == STEPS
    assert {"hypertrack/type", "hypertrack/params", "hypertrack/exact_match"} <= logged[0].keys()
    for line in logged:  # GUIEvalKit paper, eq. 1, of the parts' means
        expected = line["hypertrack/type"] + line["hypertrack/params"]
        assert line["rewards/hypertrack/mean"] == pytest.approx(expected, abs=1e-6)
    means = [line["rewards/hypertrack/mean"] for line in logged]
    assert sum(means[-5:]) / 5 > sum(means[:5]) / 5 + 0.3
    documented: dict[str, Any] = {}
    exec(snippets()[1], documented)
    assert {*documented["rows"][0]} == {"prompt", "task"}
    scorer = open_scorer()
    task = task_of(documented["rows"][0]["task"])
    assert scorer.score(task, scorer.model.render(task, task.action, THOUGHT)).reward.total == 1.0


NOTEBOOK = REPOSITORY / "docs" / "notebooks" / "rewards_in_trl.ipynb"


def test_the_notebook_runs() -> None:
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed = StringIO()
        with redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        stored = "".join(line for output in cell["outputs"] for line in output.get("text", ()))
        assert printed.getvalue() == stored, "run the notebook again and store it"


def test_accelerate_takes_its_part_of_every_command() -> None:
    launched = [shlex.split(command)[2:] for command in commands(page()) if command.startswith("accelerate")]
    assert len(launched) > 50
    for words in launched:
        given = launch_command_parser().parse_args(words)
        assert (given.training_script, given.module) == ("guieval", True)
        assert given.num_processes == 8 * (given.num_machines or 1)
        assert given.training_script_args[0] == "train"
    with pytest.raises(SystemExit):
        launch_command_parser().parse_args(["--num_machine_s", "4", "-m", "guieval", "train"])
