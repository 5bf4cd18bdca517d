"""Thoughts that lead to reference actions: reading files of them, requesting them from a server, and checking their form.

Benchmarks publish no thoughts. Supervised training on bare actions teaches a model to stop thinking, and an off-policy patch
(UI-S1 paper, Table 5) needs the thought of an auxiliary model. The prompts are those of :mod:`guieval.models.patch_thoughts`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from guieval.data.files import read_text
from guieval.data.screenshots import Screenshot, read_screenshot
from guieval.engines.concurrency import START, AdaptiveConcurrency, Slots, as_they_end
from guieval.errors import FatalEngineError, GuievalError, UsageError
from guieval.history import HistoryEntry, reference_entry, reference_history
from guieval.journal import RunFolder
from guieval.models import ABCModel, Engine, ModelInput, Request
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought, unbound
from guieval.rewards.response import ResponseScorer
from guieval.settings import Server
from guieval.settings.sampling import is_greedy
from guieval.steps import StepKey, StepTaskModel
from guieval.training.settings import ThoughtServer

if TYPE_CHECKING:
    from guieval.engines.http.chat_completions import OpenAIEngine

Writer: TypeAlias = Literal["self", "auxiliary"]
"""Which model is asked: the policy in its own format and with the reference history, or another model in plain words."""

KEPT = "kept"


class ThoughtResult(NamedTuple):
    """The result for one step: ``outcome`` is :data:`KEPT`, or the reason why there is no thought."""

    key: StepKey
    thought: str | None
    outcome: str


def read_thoughts_file(file: Path) -> dict[str, str]:
    """The thoughts in a file of ``{"step": ..., "thought": ...}`` lines by the step's name; :class:`UsageError` for another."""
    thoughts: dict[str, str] = {}
    try:
        for line in filter(str.strip, read_text(file).splitlines()):
            row = json.loads(line)
            thoughts[row["step"]] = row["thought"].strip()
    except OSError as error:
        raise UsageError(f"the file of thoughts {str(file)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f'{str(file)!r}: expected {{"step": ..., "thought": ...}} on each line, got {line!r:.80}') from None
    return thoughts


def with_thought(entry: HistoryEntry, thoughts: Mapping[str, str]) -> HistoryEntry:
    """A reference's entry with its thought, if there is one."""
    thought = thoughts.get(str(entry.task.key))
    return replace(entry, thought=thought) if thought else entry


def writes_thoughts(model: ABCModel, task: StepTaskModel) -> bool:
    """Whether the family's responses hold a thought: those with one differ from those without."""
    entry = reference_entry(task)
    try:
        with_one = model.render(task, entry.action, "because", entry.conclusion)
        return with_one != model.render(task, entry.action, None, entry.conclusion)
    except ValueError:
        return False


def judged(scorer: ResponseScorer, task: StepTaskModel, thought: str | None) -> ThoughtResult:
    """The thought, if the reference's action with it has the form that the reward requires and is still read as that action."""
    if not thought:
        return ThoughtResult(task.key, None, "no thought in the answer")
    entry = reference_entry(task)
    try:
        reply = scorer.model.render(task, entry.action, thought, entry.conclusion)
    except ValueError:
        return ThoughtResult(task.key, None, "the model cannot write the reference's action")
    scored = scorer.score(task, reply)
    if not scored.sample.outcome.exact_match:
        return ThoughtResult(task.key, None, "with the thought, the response is read as another action")
    if not scored.reward.parts["format"]:
        return ThoughtResult(task.key, None, "with the thought, the response does not have the form that the reward requires")
    return ThoughtResult(task.key, thought, KEPT)


def thoughts_of_runs(runs: Sequence[Path], scorer: ResponseScorer) -> list[ThoughtResult]:
    """The model's own thoughts: those of the exact responses in ``runs``, the first for each step."""
    found: dict[StepKey, ThoughtResult] = {}
    for run in runs:
        for record in RunFolder(run).steps:
            before = found.get(record.task.key)
            if before is not None and before.outcome == KEPT:
                continue
            exact = [sample for sample in record.samples if sample.outcome.exact_match]
            thought = next((sample.thought or sample.reasoning for sample in exact if sample.thought or sample.reasoning), None)
            found[record.task.key] = (
                judged(scorer, record.task, thought)
                if exact
                else ThoughtResult(record.task.key, None, "no exact response in the runs")
            )
    return list(found.values())


@dataclass
class ThoughtRequests:
    """Asks a model for thoughts. ``root`` is the folder of the screenshots, ``sampling`` the request parameters."""

    engine: Engine
    root: Path
    sampling: Mapping[str, Any] = field(default_factory=dict)

    async def off_policy(self, task: StepTaskModel, number: int = 0) -> str | None:
        """The thought of an auxiliary model, which sees the goal, the screenshot and the reference's action."""
        return await self._ask(task, off_policy_input(task), None, number)

    async def on_policy(
        self, model: ABCModel, task: StepTaskModel, past: Sequence[HistoryEntry], number: int = 0
    ) -> str | None:
        """The policy's own thought, given its past and the reference's action."""
        return await self._ask(task, on_policy_input(model, task, past), model, number)

    async def _ask(self, task: StepTaskModel, prepared: ModelInput, model: ABCModel | None, number: int) -> str | None:
        loop = asyncio.get_running_loop()
        shots = await loop.run_in_executor(None, self._screenshots, prepared)
        sampling = unbound(self.sampling)
        if number and sampling.get("seed") is not None:
            sampling["seed"] += number  # else a repeated request would get the same answer
        request = Request(prepared, shots, sampling, f"{task.key}/thought-{number}", task)
        return read_thought(await self.engine.generate(request), model=model, task=task)

    def _screenshots(self, prepared: ModelInput) -> tuple[Screenshot, ...]:
        if self.engine.images == "none":
            return ()
        return tuple(
            read_screenshot(self.root, image.task.screenshot, image.task.screenshot_size, image.resize, canvas=image.canvas)
            for image in prepared.images
        )


async def write_thoughts(
    steps: Sequence[tuple[Sequence[StepTaskModel], int]],
    asking: ThoughtRequests,
    scorer: ResponseScorer,
    *,
    by: Writer,
    tries: int = 3,
    concurrency: int | AdaptiveConcurrency = 16,
) -> AsyncIterator[ThoughtResult]:
    """A thought for each step, an episode's steps with the index of one, in the order of the answers.

    A thought whose form the reward refuses is asked for again, up to ``tries`` times. Raises
    :class:`guieval.errors.FatalEngineError` if the server stops answering.
    """
    slots = Slots(concurrency)

    async def one(episode: Sequence[StepTaskModel], index: int) -> ThoughtResult:
        task = episode[index]
        ask: Callable[[int], Awaitable[str | None]]
        if by == "self":
            past = reference_history(episode[:index])
            ask = lambda number: asking.on_policy(scorer.model, task, past, number)  # noqa: E731
        else:
            ask = lambda number: asking.off_policy(task, number)  # noqa: E731
        async with slots:
            for number in range(1 if is_greedy(asking.sampling) else tries):
                try:
                    written = judged(scorer, task, await ask(number))
                except FatalEngineError:
                    raise
                except GuievalError as error:
                    written = ThoughtResult(task.key, None, str(error))
                if written.outcome == KEPT:
                    break
            return written

    async for written in as_they_end(one(episode, index) for episode, index in steps):
        yield written


class ServedThoughts:
    """Thoughts of a server for off-policy patches during a training; each step is asked once."""

    def __init__(self, settings: ThoughtServer, roots: Mapping[str, Path]) -> None:
        self._settings = settings
        self._roots = roots
        self._known: dict[StepKey, str | None] = {}
        self._kept: OpenAIEngine | None = None
        self._asked: dict[StepKey, asyncio.Task[None]] = {}
        self._slots = Slots(START)

    def __call__(self, tasks: Sequence[StepTaskModel]) -> list[str | None]:
        """A thought for each step, ``None`` if the answer has none.

        Raises :class:`guieval.errors.EngineError` if the server does not answer.
        """
        asyncio.run(self._ask_all({task.key: task for task in tasks if task.key not in self._known}))
        return [self._known[task.key] for task in tasks]

    async def _ask_all(self, tasks: Mapping[StepKey, StepTaskModel]) -> None:
        engine = self._opened()
        try:
            await asyncio.gather(*(self._ask(engine, task, self._roots[task.benchmark]) for task in tasks.values()))
        finally:
            await engine.close()

    async def thought(self, task: StepTaskModel, root: Path) -> str | None:
        """The thought of one step, whose screenshot is in ``root``, for callers with an event loop of their own.

        Callers that ask for the same step at the same time wait for one request.
        """
        key = task.key
        if key not in self._known:
            if key not in self._asked:
                self._kept = self._kept or self._opened()
                self._asked[key] = asyncio.create_task(self._ask(self._kept, task, root))
                self._asked[key].add_done_callback(lambda done: self._asked.pop(key))
            await asyncio.shield(self._asked[key])
        return self._known[key]

    async def _ask(self, engine: Engine, task: StepTaskModel, root: Path) -> None:
        async with self._slots:
            self._known[task.key] = await ThoughtRequests(engine, root, self._settings.sampling).off_policy(task)

    def _opened(self) -> OpenAIEngine:
        from guieval.engines.http.chat_completions import OpenAIEngine

        given = self._settings.model_dump(exclude={"sampling", "model"})
        return OpenAIEngine(Server(**given, served_model=self._settings.model))
