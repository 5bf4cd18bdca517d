"""Every checkpoint, end to end: what a run reports is what the model truly answered, in all modes and thinking states.

A mock server answers the demo in each family's own format, right with a known probability. Which answers are right is a pure
function of seed and step, so the true figures are computed here without the harness: nothing of it (prompt, transport, parser,
history, scoring, metrics) may change them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from guieval.actions import Action, ActionSpace
from guieval.data.benchmark import ABCBenchmark
from guieval.engines import request_id
from guieval.engines.apis.hosted import HostedEngine
from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings
from guieval.metrics import RunSummary
from guieval.models import ABCModel
from guieval.registry import load_benchmark, load_model, model_configs
from guieval.running.config import RunConfig
from guieval.running.engine_choice import native_api
from guieval.steps import StepTaskModel
from guieval.testing.mock_server import MockServer, MockSettings, wrong_action
from guieval.testing.mock_server.app import Answer, Answers, Tag, uniform
from guieval.testing.mock_server.policies import policy_answers
from tests.scripted import runner_of

ACCURACY = 0.75
SEED = 5
MODES = ("offline", "soeval", "sop")
_MODEL = re.compile(rb'"model": ?"([^"]+)"')


class Variant(NamedTuple):
    """A checkpoint in one state of its thinking switch; its name is the one asked of the server."""

    name: str
    model: ABCModel


def variants() -> Iterator[Variant]:
    """One checkpoint for each adapter and options, with thinking on and off where there is a switch."""
    seen: set[str] = set()
    for name, config in model_configs().items():
        if config.engine == "local" or config.folder is not None:  # shipped weights have no words for the demo's actions
            continue
        same = json.dumps([config.adapter, config.options, config.thinking is None], sort_keys=True)
        if same not in seen:
            seen.add(same)
            if load_model(name).thinking_switch:
                yield Variant(f"{name}+thinking", load_model(name, thinking=True))
                yield Variant(f"{name}+no-thinking", load_model(name, thinking=False))
            else:
                yield Variant(name, load_model(name))


VARIANTS = tuple(variants())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ABCBenchmark:
    """Seventeen steps of seven action types, generated once for all."""
    benchmark = load_benchmark("demo", tmp_path_factory.mktemp("demo"), episodes=3, seed=5)
    vars(benchmark).update(index=cache(benchmark.index), load=cache(benchmark.load))
    return benchmark


@pytest.fixture(scope="module")
def server(demo: ABCBenchmark) -> Iterator[MockServer]:
    """One server for all: the model's name in a request says in whose format it is answered."""
    policies: dict[str, Answers] = {}
    for variant in VARIANTS:
        settings = MockSettings(policy="reference", accuracy=ACCURACY, seed=SEED, model=variant.model.config.name)
        policies[variant.name] = policy_answers(settings, model=variant.model, benchmark=demo)

    def answer(tag: Tag, body: bytes) -> Answer:
        found = _MODEL.search(body)
        assert found is not None
        return policies[found[1].decode()](tag, body)

    with MockServer(MockSettings(served_models=tuple(policies)), answers=answer) as running:
        yield running


@dataclass(frozen=True)
class Truth:
    """What the policy answers at a step."""

    right: bool
    type_right: bool


def truth(task: StepTaskModel, space: ActionSpace) -> Truth:
    """By the policy's definition: right when the format can say a reference and the step's draw is below the accuracy."""
    accepted: tuple[Action, ...] = (task.action, *task.alternatives)
    name = request_id(task.key, 0)
    if any(action in space for action in accepted) and uniform(SEED, name, "accuracy") < ACCURACY:
        return Truth(True, True)
    answered = wrong_action(task, space, uniform(SEED, name, "wrong"))
    return Truth(False, answered.type in {action.type for action in accepted})


@dataclass
class Expected:
    """The figures a run has to report."""

    exact: int = 0
    types: int = 0
    reached: int = 0
    whole: int = 0
    prefix: int = 0
    pg: float = 0.0


def expected(demo: ABCBenchmark, space: ActionSpace, *, stops: bool) -> Expected:
    figures = Expected()
    for episode in demo:
        truths = [truth(task, space) for task in episode.steps]
        prefix = next((index for index, each in enumerate(truths) if not each.right), len(truths))
        reached = truths[: prefix + 1] if stops else truths
        figures.exact += sum(each.right for each in reached)
        figures.types += sum(each.type_right for each in reached)
        figures.reached += len(reached)
        figures.whole += prefix == len(truths)
        figures.prefix += prefix
        figures.pg += prefix / len(truths)
    figures.pg /= len(list(demo))
    return figures


def played(variant: Variant, demo: ABCBenchmark, server: MockServer, mode: str, directory: Path) -> RunSummary:
    settings = OpenAISettings(base_urls=(server.base_url,), model=variant.name, max_attempts=1)
    kind = variant.model.config.engine
    engine = OpenAIEngine(settings) if kind == "openai" else HostedEngine(native_api(kind), settings)
    config = RunConfig(model=variant.model.config.name, bench="demo", mode=mode)
    outcome = runner_of(config, directory, demo, variant.model, engine, 8).execute(resume=False)
    assert outcome.failures == {}
    assert outcome.warnings == ()
    return outcome.tally.summary(outcome.plan)


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def variant(request: pytest.FixtureRequest) -> Variant:
    chosen: Variant = request.param
    return chosen


@pytest.fixture
def serving(variant: Variant, demo: ABCBenchmark, server: MockServer) -> Iterator[MockServer]:
    """The common server; Gemini's requests name the model in the path, which policies do not see."""
    if variant.model.config.engine != "gemini":
        yield server
        return
    settings = MockSettings(policy="reference", accuracy=ACCURACY, seed=SEED, model=variant.model.config.name)
    with MockServer(settings, model=variant.model, benchmark=demo) as own:
        yield own


def test_the_figures_are_the_true_ones(variant: Variant, demo: ABCBenchmark, serving: MockServer, tmp_path: Path) -> None:
    server = serving
    for mode in MODES:
        before = server.stats()["served"]
        summary = played(variant, demo, server, mode, tmp_path / mode)
        figures = expected(demo, variant.model.action_space, stops=mode == "sop")
        assert 0 < figures.exact < figures.reached, "the policy has to be right and wrong, or nothing is tested"
        assert server.stats()["served"] - before == figures.reached, mode
        assert summary.complete, mode
        assert summary.verdicts.unparseable == summary.verdicts.unsupported == 0, mode
        assert summary.exact_match.count == figures.exact, mode
        assert summary.type_match.count == figures.types, mode
        assert summary.exact_match.n == summary.type_match.n == figures.reached, mode
        assert summary.success_rate.count == figures.whole, mode
        assert summary.progress_step_weighted.count == figures.prefix, mode
        assert (summary.sop is not None) == (mode == "sop")
        if summary.sop is not None:
            assert summary.sop.tsr.count == figures.whole
            assert summary.sop.pg.value == pytest.approx(figures.pg)
