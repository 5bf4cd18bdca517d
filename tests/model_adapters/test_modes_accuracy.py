"""Every checkpoint, end to end: what a run reports is what the model truly answered, in all modes and thinking states.

A mock server answers the demo in each family's own format, right with a known probability. Which answers are right is a pure
function of seed and step, so the true figures are computed here without the harness: nothing of it (prompt, transport, parser,
history, scoring, metrics) may change them. Online a script acts on the simulated phone, and the same actions on a phone of this
test's own say what is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from guieval.actions import Action, ActionSpace, Click, Point, Stop
from guieval.conformance import every_model
from guieval.data.benchmark import ABCBenchmark
from guieval.engines import request_id
from guieval.engines.apis.hosted import HostedEngine
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.metrics import RunSummary
from guieval.metrics.kinds import of_steps, of_tasks
from guieval.models import ABCModel, Engine
from guieval.online.tasks import EnvironmentTasks
from guieval.playground.environments.phone import PhoneEnvironment
from guieval.playground.mock_server import MockServer, MockSettings, wrong_action
from guieval.playground.mock_server.answers import PolicyResponse
from guieval.playground.mock_server.app import Answers, Tag, uniform
from guieval.playground.mock_server.policies import policy_answers
from guieval.playground.phone import PhoneEpisode, generate_episode
from guieval.registry import load_benchmark
from guieval.running.engine_choice import native_api
from guieval.settings import RunConfig, Server
from guieval.steps import StepTaskModel
from tests.checkpoints import of_each_kind
from tests.rows import every_row
from tests.scripted import runner_of

ACCURACY = 0.75
SEED = 5
MODES = ("offline", "soeval", "sop")
_MODEL = re.compile(rb'"model": ?"([^"]+)"')


class Variant(NamedTuple):
    """A checkpoint in one state of its thinking switch; its name is the one asked of the server."""

    name: str
    model: ABCModel


NOT_ASKED = {"ocr-baseline", "ocr-errant", "tiny-policy"}
"""Agents without a server, which have no words for all of the demo's actions."""
PARTS = 8
IN_PARTS = pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.ci) for part in range(1, PARTS))])
"""Every eighth is in the core tier."""


@cache
def variants() -> tuple[Variant, ...]:
    """A checkpoint of each kind, with thinking on and off where there is a switch."""
    return tuple(Variant(*each) for each in every_model([name for name in of_each_kind() if name not in NOT_ASKED]))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ABCBenchmark:
    """Seventeen steps of seven action types, generated once for all."""
    benchmark = load_benchmark("demo", tmp_path_factory.mktemp("demo"), episodes=3, seed=5)
    vars(benchmark).update(index=cache(benchmark.index), load=cache(benchmark.load))
    return benchmark


@pytest.fixture(scope="module")
def server(demo: ABCBenchmark) -> Iterator[MockServer]:
    """One server for all: the model's name in a request says in whose format it is answered."""
    with serving_all(lambda variant: policy_answers(policy(variant), model=variant.model, benchmark=demo)) as running:
        yield running


def policy(variant: Variant) -> MockSettings:
    return MockSettings(policy="reference", accuracy=ACCURACY, seed=SEED, model=variant.model.config.name)


@contextmanager
def serving_all(answers: Callable[[Variant], Answers]) -> Iterator[MockServer]:
    of_name = {variant.name: variant for variant in variants()}
    made = cache(lambda name: answers(of_name[name]))

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        found = _MODEL.search(body)
        assert found is not None
        return made(found[1].decode())(tag, body)

    with MockServer(MockSettings(served_models=tuple(of_name)), answers=answer) as running:
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


def engine_of(variant: Variant, server: MockServer) -> Engine:
    settings = Server(base_urls=(server.base_url,), served_model=variant.name, max_attempts=1)
    kind = variant.model.config.engine
    return OpenAIEngine(settings) if kind == "openai" else HostedEngine(native_api(kind), settings)


def played(variant: Variant, demo: ABCBenchmark, server: MockServer, mode: str, directory: Path) -> RunSummary:
    engine = engine_of(variant, server)
    config = RunConfig(model=variant.model.config.name, bench="demo", mode=mode)
    outcome = runner_of(config, directory, demo, variant.model, engine, 8).execute(resume=False)
    assert outcome.progress.by_stage == {}
    assert outcome.progress.warnings == []
    summary = of_steps(outcome.summary())
    return summary


@IN_PARTS
def test_the_figures_are_the_true_ones(part: int, demo: ABCBenchmark, server: MockServer, tmp_path: Path) -> None:
    def own(variant: Variant) -> MockServer:
        return MockServer(policy(variant), model=variant.model, benchmark=demo)

    each_of(part, server, own, lambda variant, server: compare_figures(variant, demo, server, tmp_path / variant.name))


def each_of(
    part: int, server: MockServer, own: Callable[[Variant], MockServer], compare: Callable[[Variant, MockServer], None]
) -> None:
    @every_row("variant", variants()[part::PARTS], ids=lambda variant: variant.name)
    def check(variant: Variant) -> None:
        gemini = variant.model.config.engine == "gemini"  # its requests name the model in the path, which policies do not see
        with own(variant) if gemini else nullcontext(server) as used:
            compare(variant, used)

    check()


def compare_figures(variant: Variant, demo: ABCBenchmark, server: MockServer, directory: Path) -> None:
    for mode in MODES:
        before = server.stats()["served"]
        summary = played(variant, demo, server, mode, directory / mode)
        figures = expected(demo, variant.model.action_space, stops=mode == "sop")
        assert 0 < figures.exact < figures.reached, "the policy has to be right and wrong, or nothing is tested"
        assert server.stats()["served"] - before == figures.reached, mode
        assert summary.complete, mode
        assert summary.verdicts.unparseable == summary.verdicts.unsupported == 0, mode
        assert summary.exact_match.count == figures.exact, mode
        assert summary.type_match.count == figures.types, mode
        assert summary.exact_match.n == summary.type_match.n == figures.reached, mode
        assert summary.success_rate.count == figures.whole, mode
        assert summary.metrics["step-weighted progress"].count == figures.prefix, mode
        assert ("PG" in summary.metrics) == (mode == "sop")
        if mode == "sop":
            assert summary.metrics["TSR"].count == figures.whole
            assert summary.metrics["PG"].value == pytest.approx(figures.pg)


# --- online -----------------------------------------------------------------------------------------------------------

SCREEN = (360, 800)
EPISODES = [generate_episode(SEED, number, SCREEN) for number in range(3)]
CORNER = Click(point=Point(1.0, 1.0))
"""Touches nothing of the simulated phone."""


def scripts(space: ActionSpace) -> dict[str, list[Action]]:
    """What is done at each task: the reference as far as the format can say it; in the second, a step in the middle is missed.

    After it the task is stopped as finished, and where the format has no word for that, the corner is touched.
    """
    found: dict[str, list[Action]] = {}
    for number, played in enumerate(EPISODES):
        steps = [next((each for each in (step.action, *step.alternatives) if each in space), CORNER) for step in played.steps]
        if number == 1:
            steps[len(steps) // 2] = CORNER
        found[f"s{SEED}-{number:04d}"] = steps
    return found


def scripted(script: Sequence[Action], index: int, space: ActionSpace) -> Action:
    after = Stop() if Stop() in space else CORNER
    return script[index] if index < len(script) else after


@dataclass(frozen=True)
class Ended:
    """What a task came to: its success, its steps, and how it was stopped, if it was."""

    success: bool
    steps: int
    stopped: str | None


def done(played: PhoneEpisode, script: Sequence[Action], space: ActionSpace) -> Ended:
    """The same actions on a phone of the test's own, as many as the task allows."""
    phone, most = played.start, 2 * len(played) + 5
    for index in range(most):
        phone = phone.apply(scripted(script, index, space))
        if phone.state.stopped:
            return Ended(played.task.achieved(phone.state), index + 1, phone.state.stopped)
    return Ended(played.task.achieved(phone.state), most, None)


@pytest.fixture(scope="module")
def acting(demo: ABCBenchmark) -> Iterator[MockServer]:
    """One server for all; it answers each step of a task with the script's action."""
    with serving_all(lambda variant: acted(variant, demo)) as running:
        yield running


def acted(variant: Variant, demo: ABCBenchmark) -> Answers:
    space = variant.model.action_space
    of_task = scripts(space)
    shown = demo.load(demo.index()[0]).steps[0].model_copy(update={"screenshot_size": SCREEN})

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        assert tag.key is not None
        action = scripted(of_task[tag.key.episode_id], tag.key.step_index, space)
        return PolicyResponse(variant.model.render(shown, action, "I act on what is on this screen."))

    return answer


@IN_PARTS
def test_online_metrics_are_the_true_ones(part: int, demo: ABCBenchmark, acting: MockServer, tmp_path: Path) -> None:
    def own(variant: Variant) -> MockServer:
        return MockServer(MockSettings(), answers=acted(variant, demo))

    each_of(part, acting, own, lambda variant, server: compare_online_metrics(variant, server, tmp_path / variant.name))


def compare_online_metrics(variant: Variant, server: MockServer, directory: Path) -> None:
    tasks = EnvironmentTasks(directory, PhoneEnvironment(episodes=len(EPISODES), seed=SEED, width=SCREEN[0], height=SCREEN[1]))
    config = RunConfig(model=variant.model.config.name, bench="demo", mode="online")
    outcome = runner_of(config, directory / "run", tasks, variant.model, engine_of(variant, server), 8).execute(resume=False)
    assert outcome.progress.by_stage == {}
    figures = of_tasks(outcome.summary())
    space = variant.model.action_space
    true = [done(played, script, space) for played, script in zip(EPISODES, scripts(space).values(), strict=True)]
    won = [each.steps for each in true if each.success]
    whole = all(any(action in space for action in (step.action, *step.alternatives)) for step in EPISODES[0].steps)
    assert true[0].success == whole and not true[1].success, "the script has to do a task and to miss one"
    assert (figures.tasks, figures.judged, figures.failed) == (len(true), len(true), 0)
    assert (figures.success.count, figures.success.n) == (len(won), len(true))
    found = figures.metrics
    assert (found["mean steps"].count, found["mean steps of successes"].count) == (sum(each.steps for each in true), sum(won))
    stopped = [each for each in true if each.stopped == "finish"]
    assert (found["false completion"].n, found["false completion"].count) == (
        len(stopped),
        sum(not each.success for each in stopped),
    )
    assert figures.ended["step limit"] == sum(each.stopped is None for each in true)
    assert found["unparseable responses"].count == found["unsupported actions"].count == 0
