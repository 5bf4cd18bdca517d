"""What a training is made on: episodes and steps chosen as a run's, weights by what was measured, and a run's exact replies."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder
from guieval.models import ModelConfig
from guieval.steps import StepKey
from guieval.training.building import TrainerParts
from guieval.training.config import parse_config
from guieval.training.data.curriculum import StepMeasures, factors, read_measured
from guieval.training.data.examples import PromptBuilder, images_of, journal_examples
from guieval.training.data.mixture import drawn, open_data
from guieval.training.evaluation import Evaluator
from guieval.training.lockstep import LockstepEngine
from guieval.training.settings import Curriculum
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.rows import every_row
from tests.running.runner.test_patched_runs import MISSED, PATCHES, asked, ran
from tests.scripted import ScriptedEngine, ScriptedModel, make_episode, reply_with, run_scripted

DEMO = {"kind": "sft", "model": "qwen2.5-vl-7b", "bench": "demo"}


@pytest.fixture
def pair(guieval: CommandLine, tmp_path: Path) -> dict[str, Any]:
    """A sample set of two episodes of the demo, the first counts with its first step alone."""
    nesting = ("study", "select", "--bench", "demo", "--split", "all", "--nested", "2")
    assert guieval(*nesting, "--out", tmp_path / "pair.txt").code == 0
    lines = (tmp_path / "pair-2.txt").read_text().split()
    episodes = list(dict.fromkeys(line.partition("#")[0] for line in lines))
    kept = [line for line in lines if not line.startswith(f"{episodes[0]}#") or line.endswith("#0")]
    (tmp_path / "steps.txt").write_text("\n".join(kept))
    assert guieval(*nesting, "--out", tmp_path / "pair.json").code == 0
    return {"file": tmp_path / "pair-2.json", "episodes": episodes, "steps": len(lines), "list": tmp_path / "steps.txt"}


def test_a_sample_set_is_what_is_trained_on(pair: dict[str, Any]) -> None:
    data = open_data(parse_config({**DEMO, "sample_set": str(pair["file"])}))
    found = {data.episode(place)[0].key.episode_id for place in data.episodes}
    assert found == {name.rpartition("/")[2] for name in pair["episodes"]}
    assert len(data.steps) == pair["steps"] == read_json(pair["file"].read_text())["steps"]
    narrowed = open_data(parse_config({**DEMO, "sample_set": str(pair["file"]), "episodes": str(pair["list"])}))
    assert len(narrowed.steps) == len(pair["list"].read_text().split())


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


def test_recipes_and_curricula_that_leave_too_little_are_one_sentence(tmp_path: Path) -> None:
    for given, message in (
        ("androidcontrol-curatd", "unknown sample set 'androidcontrol-curatd'"),
        ("none.json", "the sample set 'none.json' cannot be read"),
        ("", "setting 'sample_set' is ''"),
    ):
        with pytest.raises(UsageError, match=message):
            open_data(parse_config({**DEMO, "sample_set": given}))
    with pytest.raises(UsageError, match=r"9,000 episodes of demo-icons are to be trained on, and .* has 4 of them: lower"):
        open_data(parse_config(several(limit=9000)))
    with pytest.raises(UsageError, match=r"leaves none of 5 tasks: none has a measured pass rate from 0.1 to 0.2"):
        weights(pass_rate=(0.1, 0.2))
    with pytest.raises(UsageError, match=r"none of the steps to train on was measured in 'r', e.g. not 'demo/a#0'"):
        factors([[KEYS[0]]], Curriculum(runs=("r",)), {KEYS[1]: StepMeasures(0.5, 0.0)})
    values = {"kind": "grpo", "model": "tiny-policy", "bench": "demo", "curriculum": {"runs": str(tmp_path)}}
    parts = TrainerParts(parse_config(values))
    with pytest.raises(UsageError, match=str(tmp_path)):
        parts.examples()


KEYS = [StepKey("demo", "", "a", index) for index in range(5)]
RATES = dict(zip(KEYS[:4], (0.0, 0.5, 0.75, 1.0), strict=True))
MEASURED = {key: StepMeasures(rate, 0.2 + rate) for key, rate in RATES.items()}


def weights(**given: Any) -> list[float]:
    return factors([[key] for key in KEYS], Curriculum(runs=("r",), **given), MEASURED)


def test_weights_are_those_of_the_pass_rates_with_a_mean_of_one() -> None:
    """Pass rates 0, 0.5, 0.75 and 1, the fifth step not measured."""
    assert weights() == [1, 1, 1, 1, 0]
    # 4 p (1 - p): 0, 1, 0.75, 0, so a mean of 0.875 over the two that are left
    assert weights(weight="learnable") == pytest.approx([0, 1 / 0.875, 0.75 / 0.875, 0, 0])
    # 1 - p: 1, 0.5, 0.25, 0, a mean of 7/12
    assert weights(weight="hard") == pytest.approx([12 / 7, 6 / 7, 3 / 7, 0, 0])
    assert weights(pass_rate=(0.5, 0.75)) == [0, 1, 1, 0, 0]
    assert weights(pass_rate=(0.5, 1.0), unmeasured="keep") == [0, 1, 1, 1, 1]
    assert weights(diversity=(0.0, 0.8)) == [1, 1, 0, 0, 0]  # diversities 0.2, 0.7, 0.95 and 1.2
    # an episode has the mean weight of its steps
    settings = Curriculum(runs=("r",), weight="learnable")
    # episodes of (0, 1) and of (0.75, 0): means 0.5 and 0.375, of which the mean is 0.4375
    assert factors([KEYS[:2], KEYS[2:4]], settings, MEASURED) == pytest.approx([0.5 / 0.4375, 0.375 / 0.4375])


def test_figures_are_read_from_a_run_of_several_samples(tmp_path: Path) -> None:
    """At the first step two of four samples tap the target, at the second none."""
    right, wrong = Click(point=Point(x=100, y=100)), Click(point=Point(x=900, y=900))
    hits = iter([True, True, False, False])

    def policy(request: Any) -> str:
        return reply_with(right if request.task.step_index == 0 and next(hits) else wrong)

    run_scripted(tmp_path / "run", [make_episode("a", [right, right])], ScriptedEngine(policy), samples=4)
    found = read_measured([str(tmp_path / "run")])
    assert {key.step_index: measured.pass_rate for key, measured in found.items()} == {0: 0.5, 1: 0.0}


SCRIPTED = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))


@pytest.mark.parametrize("method", PATCHES)
def test_prompts_are_those_of_the_run_patches_and_their_thoughts_included(tmp_path: Path, method: str) -> None:
    engine = ran(tmp_path / "run", patch=method, patch_budget="unlimited")
    sent = asked(engine)
    examples = {(each.task.episode_id, each.task.step_index): each for each in journal_examples(tmp_path / "run", SCRIPTED)}
    assert examples.keys() == sent.keys() - MISSED
    for key, example in examples.items():
        assert SCRIPTED.prepare_input(example.task, example.history) == sent[key].input
        assert example.completion is not None and f"own {key[1]}" in example.completion
    assert ("a", 2) in examples  # after a patch


def test_a_run_whose_prompts_cannot_be_written_again_is_refused(tmp_path: Path) -> None:
    ran(tmp_path / "run", mode="offline")
    manifest = RunFolder(tmp_path / "run").manifest.to_json()
    for name, given in {"mix": {"start": 0.0, "end": 1.0}, "mix_artifacts": "runs/a", "fixed_thoughts": "runs/a"}.items():
        changed = {**manifest, "config": {**manifest["config"], "history": {name: given}}}
        (tmp_path / "run" / MANIFEST).write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(UsageError, match=rf"cannot be used for training: its prompts hold .* of another run \({name}\)"):
            list(journal_examples(tmp_path / "run", SCRIPTED))
