"""Inspect (inspect-ai): tasks, a scorer and metrics, which it finds by the entry point ``guieval`` of its group ``inspect_ai``.

In mode offline a sample is a step. In modes that show the model its own responses a sample is an episode, through which a
solver walks as a run does. :func:`protocol_verdict` scores a sample, and a finished log again under another protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from rich.markup import escape

from guieval.actions import action_to_json
from guieval.errors import EngineError, UsageError
from guieval.models import ImageForm, Request, Response
from guieval.plugins.harness_steps import HarnessSteps, harness_steps, sent
from guieval.steps import Sample, StepRecord, Usage

RECORDS = "records"
"""The name in the metadata of a score of its records as a journal has them, without their steps."""
_SAMPLED = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max_tokens", "seed": "seed"}
_SAMPLED |= {"stop": "stop_seqs", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty"}
"""Sampling parameters by their names in a request and in Inspect."""
_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant, "tool": ChatMessageTool}


@task
def steps(**settings: Any) -> Task:
    """Any benchmark, model, protocol and mode; the settings are those of ``guieval run`` (``checkpoint`` is its ``model``)."""
    return _task(settings)


@task
def screenspot_v2(**settings: Any) -> Task:
    """ScreenSpot-v2."""
    return _task({"bench": "screenspot-v2", **settings})


@task
def screenspot_pro(**settings: Any) -> Task:
    """ScreenSpot-Pro."""
    return _task({"bench": "screenspot-pro", **settings})


@task
def androidcontrol(**settings: Any) -> Task:
    """AndroidControl, with ``sample_set`` for the steps of a paper."""
    return _task({"bench": "androidcontrol", **settings})


@task
def gui_odyssey(**settings: Any) -> Task:
    """GUI-Odyssey."""
    return _task({"bench": "gui-odyssey", **settings})


def _task(settings: dict[str, Any]) -> Task:
    try:
        found = _steps(settings)
    except UsageError as error:  # Inspect prints the sentence of its own error, and a traceback of any other
        note = "in Inspect a setting is -T NAME=VALUE, and the model is -T checkpoint=NAME"
        raise PrerequisiteError(escape(f"{error} ({note})")) from error
    walks = found.run.mode.sequential
    run = found.run
    return Task(
        dataset=MemoryDataset(_samples(found), name=f"{run.benchmark.name}, {run.selection.text or run.selection.title}"),
        solver=episode_walk(**settings) if walks else [step_prompt(**settings), generate()],
        scorer=protocol_verdict(**settings),
        metrics=[accuracy(), stderr(cluster="episode"), protocol_metrics(**settings)],
        config=GenerateConfig(**_sampling(found.body(found.keys[0]))),
        metadata={"protocol": run.protocol.name, "protocol_rules": run.protocol.fingerprint, "mode": run.mode.label},
    )


def _steps(settings: dict[str, Any]) -> HarnessSteps:
    given = {name: value for name, value in settings.items() if name != "model"}  # Inspect's own model, if it passes that on
    if "checkpoint" in given:
        given["model"] = given.pop("checkpoint")
    return harness_steps(given, by_episode=True)


def _samples(found: HarnessSteps) -> Sequence[InspectSample]:
    if found.run.mode.sequential:
        episodes = [(str(key), found.episode(key).steps[0]) for key in found.episodes]
        return [InspectSample(id=key, input=first.instruction, metadata={"episode": key}) for key, first in episodes]
    return [
        InspectSample(
            id=key,
            input=each.instruction,
            target=[action_to_json(action) for action in (each.action, *each.alternatives)],
            metadata={"episode": str(each.episode_key), "step": each.step_index, **each.groups},
        )
        for key, each in ((key, found.task(key)) for key in found.keys)
    ]


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request as Inspect's configuration has them; what it does not know goes into the body of its requests."""
    known = {_SAMPLED[name]: value for name, value in body.items() if name in _SAMPLED and value is not None}
    if isinstance(stop := known.get("stop_seqs"), str):
        known["stop_seqs"] = [stop]
    extra = {name: value for name, value in body.items() if name not in _SAMPLED and name != "messages"}
    return {**known, **({"extra_body": extra} if extra else {})}


def _chat(body: dict[str, Any]) -> list[ChatMessage]:
    return [_message(each["role"], each["content"]) for each in body["messages"]]


def _message(role: str, content: str | list[dict[str, Any]]) -> ChatMessage:
    if isinstance(content, str):
        return _MESSAGES[role](content=content)
    parts: list[Content] = [
        ContentText(text=part["text"]) if part["type"] == "text" else ContentImage(image=part["image_url"]["url"])
        for part in content
    ]
    return _MESSAGES[role](content=parts)


@solver
def step_prompt(**settings: Any) -> Solver:
    """Puts the step's request in place of the sample's input: the family's prompt, its past and its screenshots."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        body = await asyncio.to_thread(_steps(settings).body, str(state.sample_id))
        state.messages = _chat(body)
        return state

    return solve


@solver
def episode_walk(**settings: Any) -> Solver:
    """Queries the steps of an episode one after the other, as the mode shows the past and ends the episode."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        found, engine = _steps(settings), _InspectEngine(get_model())
        key = next(each for each in found.episodes if str(each) == state.sample_id)
        episode, records = found.episode(key), list[StepRecord]()
        with found.walk(engine) as asking:
            for index in found.run.plan[key]:
                records.append(await asking.answer(episode, index, {}))
                if not asking.goes_on(episode, records[-1]):
                    break
        state.messages, state.output = engine.messages, engine.output
        state.metadata[RECORDS] = [_stored(record) for record in records]
        return state

    return solve


class _InspectEngine:
    """Answers a run's requests with Inspect's model."""

    images: ImageForm = "base64"

    def __init__(self, model: Model) -> None:
        self._model = model
        self.messages: list[ChatMessage] = []
        self.output = ModelOutput()

    async def generate(self, request: Request) -> Response:
        asked = _chat(sent(request))
        try:
            self.output = await self._model.generate(asked)
        except Exception as error:  # of any provider
            raise EngineError(f"{type(error).__name__}: {error}") from error
        self.messages = [*self.messages, *asked, self.output.message]
        return _response(self.output)

    async def close(self) -> None:
        """Inspect closes its model."""


def _response(output: ModelOutput) -> Response:
    ended = "length" if output.stop_reason == "model_length" else output.stop_reason
    read, used = Response.of(output.message), output.usage
    usage = Usage(prompt_tokens=used.input_tokens, completion_tokens=used.output_tokens) if used is not None else None
    return Response(read.text, read.reasoning, usage, None if ended == "unknown" else ended, calls=read.calls)


def _stored(record: StepRecord) -> dict[str, Any]:
    return {"step": record.task.step_index, **record.model_dump(mode="json", exclude={"task"})}


@scorer(metrics=[accuracy(), stderr(cluster="episode")])
def protocol_verdict(**settings: Any) -> Scorer:
    """The protocol's verdict of a step; of an episode, whether every step of it is right.

    A step that could not be measured (a request that failed, a fault of the adapter) is an error of its sample, no score.
    """

    async def score(state: TaskState, target: Target) -> Score:
        found = _steps(settings)
        if not found.run.mode.sequential:
            key = str(state.sample_id)
            return _score([StepRecord(task=found.task(key), samples=(found.scored(key, _response(state.output)),))])
        episode = next(each for each in found.episodes if str(each) == state.sample_id)
        records = [_again(found, str(state.sample_id), stored) for stored in state.metadata[RECORDS]]
        return _score(records, whole=len(found.run.plan[episode]))

    return score


def _again(found: HarnessSteps, episode: str, stored: dict[str, Any]) -> StepRecord:
    """A stored record, scored under the protocol of now."""
    task = found.task(f"{episode}#{stored['step']}")
    fields = {name: value for name, value in stored.items() if name != "step"}
    record = StepRecord.model_validate({**fields, "task": task})
    first = record.sample
    judged = first.model_copy(update={"outcome": found.run.evaluator.evaluate(task, first.action)}) if first.answered else first
    return record.model_copy(update={"samples": (judged, *record.samples[1:])})


def _score(records: Sequence[StepRecord], whole: int = 1) -> Score:
    if failed := next((record.sample for record in records if not record.sample.answered), None):
        raise RuntimeError(failed.outcome.reason)
    right, last = sum(record.exact for record in records), records[-1].sample
    about = last.outcome.reason if whole == 1 else f"{right} of {whole} steps are right"
    return Score(
        value=CORRECT if right == whole else INCORRECT,
        answer=_answer(last),
        explanation=about or last.outcome.verdict,
        metadata={
            "verdict": last.outcome.verdict,
            "verdicts": [record.verdict for record in records],
            "type_match": last.outcome.type_match,
            RECORDS: [_stored(record) for record in records],
        },
    )


def _answer(sample: Sample) -> str | None:
    return None if sample.action is None else action_to_json(sample.action)


@metric
def protocol_metrics(**settings: Any) -> Metric:
    """The metrics of ``guieval score`` over the samples with a score; of several epochs over the first."""

    def measure(scores: list[SampleScore]) -> dict[str, float]:
        found, records = _steps(settings), list[StepRecord]()
        for each in scores:
            episode = str(each.sample_metadata["episode"]) if each.sample_metadata else ""
            records += (_again(found, episode, stored) for stored in (each.score.metadata or {}).get(RECORDS, ()))
        return found.metrics(records)

    return measure
