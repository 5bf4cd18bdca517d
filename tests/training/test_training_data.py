"""What a training is made on: the same choices of episodes and steps as a run's."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.training.config import parse_config
from guieval.training.data.examples import PromptBuilder, images_of
from guieval.training.data.mixture import drawn, open_data
from guieval.training.evaluation import Evaluator
from guieval.training.lockstep import LockstepEngine
from tests.command_line import CommandLine
from tests.rows import every_row

DEMO = {"kind": "sft", "model": "qwen2.5-vl-7b", "bench": "demo"}


@pytest.fixture
def pair(guieval: CommandLine, tmp_path: Path) -> dict[str, Any]:
    """A sample set of two episodes of the demo, the first counts with its first step alone."""
    nested = guieval("select", "--bench", "demo", "--split", "all", "--nested", "2", "--out", tmp_path / "pair.txt")
    assert nested.code == 0
    lines = (tmp_path / "pair-2.txt").read_text().split()
    episodes = list(dict.fromkeys(line.partition("#")[0] for line in lines))
    kept = [line for line in lines if not line.startswith(f"{episodes[0]}#") or line.endswith("#0")]
    (tmp_path / "steps.txt").write_text("\n".join(kept))
    assert guieval("select", "--bench", "demo", "--split", "all", "--nested", "2", "--out", tmp_path / "pair.json").code == 0
    return {"file": tmp_path / "pair-2.json", "episodes": episodes, "steps": len(lines), "list": tmp_path / "steps.txt"}


def test_a_sample_set_is_what_is_trained_on(pair: dict[str, Any]) -> None:
    data = open_data(parse_config({**DEMO, "sample_set": str(pair["file"])}))
    assert {data.episode(place)[0].key.episode_id for place in data.episodes} == {
        name.rpartition("/")[2] for name in pair["episodes"]
    }
    assert len(data.steps) == pair["steps"] == json.loads(pair["file"].read_text())["steps"]
    narrowed = open_data(parse_config({**DEMO, "sample_set": str(pair["file"]), "episodes": str(pair["list"])}))
    assert len(narrowed.steps) == len(pair["list"].read_text().split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("androidcontrol-curatd", "unknown sample set 'androidcontrol-curatd'"),
        ("none.json", "the sample set 'none.json' cannot be read"),
        ("", "setting 'sample_set' is ''"),
    ],
)
def test_a_wrong_sample_set_is_one_sentence(given: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_data(parse_config({**DEMO, "sample_set": given}))
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", [False, True])
def test_an_evaluation_has_a_set_of_its_own(pair: dict[str, Any], tmp_path: Path, missing: bool) -> None:
    held_out = {"every": 10, "sample_set": "none.json" if missing else str(pair["file"])}
    config = parse_config({**DEMO, "evaluation": held_out, "out": str(tmp_path / "out")})
    assert config.evaluation is not None and config.sample_set is None
    model = config.open_adapter()
    refused = pytest.raises(UsageError, match=r"the sample set 'none.json' cannot be read") if missing else nullcontext()
    with refused:  # before an hour of training
        Evaluator(config, config.evaluation, model, LockstepEngine(Checkpoint(model.config)))


def several(**second: Any) -> dict[str, Any]:
    icons = {"bench": "demo-icons", "bench_options": {"episodes": 4}, **second}
    return {"kind": "sft", "model": "qwen2.5-vl-7b", "sources": [{"bench": "demo"}, icons]}


def test_several_benchmarks_are_mixed_by_their_weights() -> None:
    data = open_data(parse_config(several(weight=2.5)))
    first, second = (len(each.steps) for each in data.data)
    tasks = [data.steps[number] for number in drawn([data.weight(place) for place in data.steps], 0)]
    assert len(tasks) == round(first + 2.5 * second)
    times = Counter(tasks)
    assert {times[place] for place in data.steps if place.source == 0} == {1}
    assert {times[place] for place in data.steps if place.source == 1} == {2, 3}
    assert {data.step(place).benchmark for place in tasks} == {"demo", "demo-icons"}
    prompts = PromptBuilder(parse_config(several()).open_adapter(), data.roots)
    for place in (data.steps[0], data.steps[-1]):  # each screenshot is read from its benchmark's folder
        example = data.example(place)
        assert images_of(prompts.messages(example.task, example.history))


@every_row("seed", range(50))
def test_each_task_is_drawn_as_often_as_its_weight_says(seed: int) -> None:
    dice = random.Random(seed)
    weights = [dice.choice((0.0, 1.0, 2.0, dice.uniform(0, 5))) for _ in range(seed)]
    numbers = drawn(weights, seed)
    assert numbers == sorted(numbers) == drawn(weights, seed)
    assert abs(len(numbers) - sum(weights)) < 1 + 1e-6
    for number, weight in enumerate(weights):
        assert math.floor(weight - 1e-6) <= numbers.count(number) <= math.ceil(weight + 1e-6)


def test_a_recipe_that_the_data_cannot_fill_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"9,000 episodes of demo-icons are to be trained on, and .* has 4 of them: lower"):
        open_data(parse_config(several(limit=9000)))
