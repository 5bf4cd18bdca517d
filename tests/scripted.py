"""A model, an engine and a benchmark whose every answer a test decides: no image, no network, real code everywhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, ActionSpace, Click, Point, Scroll, Stop, Type, action_from_json
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, Listing
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Engine, ImageForm, Message, ModelConfig, ModelInput, ParsedResponse, Request, Response
from guieval.running.engine_choice import GIVE_UP_AFTER, Answering
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import RunProgress
from guieval.running.resolve import resolve
from guieval.running.resolved import GivenParts
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import Episode, StepTaskModel, Usage
from tests.made_runs import step

Policy = Callable[[Request], str]


class ScriptedModel(ABCModel):
    """Writes the past as JSON lines into its prompt and reads ``{"thought": ..., "action": ...}`` back."""

    action_space = ActionSpace()
    fixed_frame = PER_1000

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        past = [
            {"origin": entry.origin, "thought": entry.thought, "action": entry.action.model_dump(mode="json")}
            for entry in history
        ]
        return ModelInput((Message("user", (json.dumps({"goal": task.instruction, "past": past}),)),))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            reply = json.loads(text)
            return ParsedResponse(action_from_json(reply["action"]), reply.get("thought"), reply.get("conclusion"))
        except (ValueError, KeyError, TypeError) as error:
            raise ParseError(f"no action in {text!r:.40}") from error

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        return reply_with(action, thought)


def reply_with(action: Action, thought: str | None = None) -> str:
    return json.dumps({"thought": thought, "action": action.model_dump(mode="json")})


def past_of(request: Request) -> list[dict[str, object]]:
    """The history that a scripted model's prompt shows."""
    past: list[dict[str, object]] = json.loads(request.input.text)["past"]
    return past


class ScriptedEngine:
    """Answers with a policy; keeps every request it was sent.

    ``turns`` is how often the event loop goes round before the answer to a request comes.
    """

    images: ImageForm = "none"

    def __init__(
        self,
        policy: Policy,
        turns: Callable[[Request], int] = lambda request: 1,
        usage: Callable[[Request], Usage | None] | None = None,
    ) -> None:
        self._policy = policy
        self._usage = usage
        self._turns = turns
        self.requests: list[Request] = []
        self.in_flight = self.most_in_flight = 0

    async def generate(self, request: Request) -> Response:
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(self._turns(request)):
                await asyncio.sleep(0)
            return Response(self._policy(request), usage=self._usage(request) if self._usage else None)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        pass


class ListBenchmark(ABCBenchmark):
    """Episodes that are at hand."""

    name = "scripted"
    title = "Scripted"
    source = "made by a test"
    protocol = "guievalkit"

    def __init__(self, episodes: Sequence[Episode]) -> None:
        super().__init__(Path("."))
        self._episodes = {episode.key: episode for episode in episodes}

    def index(self) -> list[EpisodeRef]:
        return [EpisodeRef(key, len(episode)) for key, episode in self._episodes.items()]

    def load(self, ref: EpisodeRef) -> Episode:
        return self._episodes[ref.key]


def make_episode(name: str, actions: Sequence[Action]) -> Episode:
    """An episode of the scripted benchmark with these reference actions."""
    steps = []
    for index, action in enumerate(actions):
        x, y = action.point if isinstance(action, Click) else (0, 0)
        about: dict[str, Any] = {"benchmark": "scripted", "dataset": "scripted", "instruction": f"task {name}"}
        about |= {"low_level_instruction": f"do part {index}", "screenshot": f"{name}_{index}.png"}
        about |= {"targets": [[x - 10, y - 10, x + 10, y + 10]] if isinstance(action, Click) else []}
        steps.append(step(action, episode=name, index=index, length=len(actions), **about))
    return Episode(steps=tuple(steps))


CLICK = Click(point=Point(500.0, 500.0))
ACTIONS: tuple[Action, ...] = (CLICK, Type(text="tea"), Scroll(point=Point(500.0, 500.0), direction="up"), Stop())


def runner_of(
    config: RunConfig,
    directory: Path,
    benchmark: Listing[Any],
    model: ABCModel,
    engine: Engine,
    concurrency: int | AdaptiveConcurrency,
    on_progress: Callable[[RunProgress], None] = lambda progress: None,
    *,
    prepare: Callable[[], Awaitable[object]] | None = None,
    give_up_after: int | None = GIVE_UP_AFTER,
    halt: Callable[[RunProgress], str | None] = lambda progress: None,
    accept_changes: bool = False,
    grounder: Engine | None = None,
    **parts: Any,
) -> Runner:
    """The real runner over a benchmark, a model and an engine that are at hand."""
    answering = Answering(engine, concurrency, prepare, give_up_after, grounder=grounder)
    run = resolve(config, parts=GivenParts(benchmark, model, answering, **parts), accept_changes=accept_changes)
    return Runner(run, directory, on_progress=on_progress, halt=halt)


def opened_run(config: RunConfig, directory: Path, server: Any = None) -> Runner:
    """The real runner for all that a configuration names."""
    return Runner(resolve(config, server), directory)


def run_scripted(
    directory: Path,
    episodes: Sequence[Episode],
    engine: ScriptedEngine,
    /,
    *,
    mode: str = "offline",
    concurrency: int = 8,
    resume: bool = False,
    protocol: str | None = None,
    **settings: Any,
) -> RunOutcome:
    """Run a scripted engine over episodes through the real runner; ``settings`` are further ones of the configuration."""
    config = RunConfig(model="scripted", bench="scripted", mode=mode, protocol=protocol, **settings)
    model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
    return runner_of(config, directory, ListBenchmark(episodes), model, engine, concurrency).execute(resume=resume)
