"""The steps of a run for a harness that queries the model itself: what a step's request is, and what a response to it is worth.

The settings are those of ``guieval run``, and the same functions resolve them, write the request, read the response and score
it. What the harness decides is left to it: the server, retries, concurrency, limits, and the file of results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

from guieval.engines import request_id
from guieval.engines.concurrency import Slots
from guieval.engines.http.chat_body import chat_body
from guieval.errors import UsageError, nearest
from guieval.evaluation.protocol import SHARED
from guieval.history import reference_history
from guieval.metrics import Ledger, summarise
from guieval.models import Engine, ModelInput, Request, Response
from guieval.models.composition import Composition
from guieval.models.faults import named_faults
from guieval.models.scored_response import read_response
from guieval.registry import model_config
from guieval.running.defaults import new_config
from guieval.running.engine_choice import asks_a_model, never_asked
from guieval.running.resolve import resolve, run_mode
from guieval.running.resolved import load_episode
from guieval.running.runner.episodes import EpisodeAsking
from guieval.running.runner.image_cache import ImageLoader, read_image
from guieval.running.runner.step import Asker
from guieval.steps import Episode, EpisodeKey, Sample, StepKey, StepRecord, StepTaskModel

_LOADED = 64
"""Episodes that are kept in memory."""
_SAMPLING = {
    *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "max_completion_tokens"),
    *("repetition_penalty", "presence_penalty", "frequency_penalty"),
}
"""The fields of a request that every harness sets by itself."""


class HarnessSteps:
    """The steps of a run with these ``settings``, each known by its key as text, e.g. ``demo/s0-0000#2``.

    ``by_episode`` says whether the harness can walk through an episode, in which a request depends on the responses before it.
    Raises :class:`UsageError` for whatever ``guieval run`` refuses, and for settings that need more than one request a step.
    """

    def __init__(self, settings: Mapping[str, Any], *, by_episode: bool = False) -> None:
        config = never_asked(new_config(None, [], settings))
        name, mode = config.model.name, run_mode(config)
        if not asks_a_model(config, model_config(name, config.model.adapter)):
            raise UsageError(f"model {name!r} answers by itself, so another harness cannot query it: use `guieval run`")
        if not mode.is_over("steps"):
            raise UsageError(f"mode {mode.name!r} acts in an environment, which a harness does not have: use `guieval run`")
        if mode.sequential and not by_episode:
            raise UsageError(f"mode {mode.name!r} shows the model its own responses, and here each step is a request by itself")
        self.run = run = resolve(config)
        for what, is_set in {
            "a composition of models, or a zoom": isinstance(run.model, Composition),
            "several samples": len(run.sampling) > 1,
            "given thoughts": run.fixed is not None,
            "patches with a thought": mode.patch.method in ("off-policy", "on-policy"),
        }.items():
            if is_set:
                raise UsageError(f"{what} need further requests for a step, which a harness does not make: use `guieval run`")
        run.screenshots.look(run, resume=False)
        self._said = False
        self._refs = {ref.key: ref for ref in run.selection.refs}
        self._places = {str(StepKey(*key, index)): (key, index) for key, steps in run.plan.items() for index in steps}
        self._loaded = lru_cache(_LOADED)(lambda key: load_episode(run.benchmark, self._refs[key]))

    @property
    def keys(self) -> Sequence[str]:
        """The keys of all steps, in the benchmark's order."""
        return list(self._places)

    @property
    def episodes(self) -> Sequence[EpisodeKey]:
        return list(self._refs)

    def episode(self, key: EpisodeKey) -> Episode:
        episode: Episode = self._loaded(key)
        return episode

    def task(self, key: str) -> StepTaskModel:
        """The step; :class:`UsageError` with the nearest key if these settings have none of that name."""
        if key not in self._places:
            raise UsageError(f"no step {key!r} with these settings{nearest(key, self._places)}")
        episode, index = self._places[key]
        return self.episode(episode).steps[index]

    def prepared(self, key: str) -> ModelInput:
        """The step's prompt, with its past as the run shows it; screenshots are named and not read."""
        task = self.task(key)
        before = self.episode(task.episode_key).steps[: task.step_index]
        past = reference_history(before) if self.run.mixture is None else self.run.mixture.history(before)
        with named_faults(self.run.model):
            return self.run.model.prepare_input(task, past)

    def body(self, key: str) -> dict[str, Any]:
        """The body of a chat completion as ``guieval run`` sends it, with the screenshots as data URLs.

        ``messages`` are in OpenAI's form; the other fields are the sampling parameters and what the family's template takes.
        Raises :class:`guieval.errors.ScreenshotError`.
        """
        run, task, prepared = self.run, self.task(key), self.prepared(key)
        encoding, check = run.model.config.scaffold.encoding, run.config.data.decode_check
        images = tuple(read_image(run.benchmark.root, each, encoding, check=check) for each in prepared.images)
        return sent(Request(prepared, images, run.sampling[0], request_id(task.key, 0), task))

    def messages(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages of a :meth:`body`, for a harness that sends nothing but these and sampling parameters of its own.

        Says once on standard error if the family sends more, e.g. that the model is to go on with a response that was begun.
        """
        if (more := sorted(body.keys() - {"messages"} - _SAMPLING)) and not self._said:
            self._said = True  # not as a warning, since lmms-eval shows none
            model = self.run.model.config.name
            print(
                f"note: this harness does not send {' and '.join(more)}, as `guieval run` does for {model}: the model may "
                "respond differently",
                file=sys.stderr,
            )
        found: list[dict[str, Any]] = body["messages"]
        return found

    def scored(self, key: str, response: object) -> Sample:
        """The response to a step, read and scored; ``response`` is anything that :meth:`guieval.models.Response.of` reads."""
        return read_response(self.run.model, self.run.evaluator, self.task(key), Response.of(response))

    @contextmanager
    def walk(self, engine: Engine) -> Iterator[EpisodeAsking]:
        """What asks for the steps of an episode one after the other, as a run does; ``engine`` queries the harness's model."""
        run = self.run
        with ThreadPoolExecutor(1) as threads:
            encoding, check = run.model.config.scaffold.encoding, run.config.data.decode_check
            images = ImageLoader(run.benchmark.root, threads, form=engine.images, check=check, encoding=encoding)
            asker = Asker(run.model, engine, run.evaluator, run.mode, run.sampling, images, Slots(1))
            yield EpisodeAsking(run, asker, lambda record: None)

    def metrics(self, records: Iterable[StepRecord]) -> dict[str, float]:
        """The metrics of a run with exactly these records, in shares: the shared ones, and those of the protocol and the mode.

        In modes that walk, the episodes of the records count as a whole: what was not reached is not missing.
        """
        run, kept = self.run, {record.task.key: record for record in records}
        begun = {record.task.episode_key for record in kept.values()}
        plan: dict[EpisodeKey, list[int]] = {}
        for episode, index in self._places.values():
            if episode in begun if run.mode.sequential else StepKey(*episode, index) in kept:
                plan.setdefault(episode, []).append(index)
        lengths = {key: self._refs[key].length for key in plan}
        ledger = Ledger(plan, [run.evaluator], [run.model.action_space, run.benchmark.action_space], run.mode, lengths)
        for record in kept.values():
            ledger.take(record)
        found = summarise(ledger.columns(), run.protocol, intervals=False).all_metrics
        names = dict.fromkeys((*(metric.name for metric in (*SHARED, *run.protocol.metrics)), "PG", "TSR", "score"))
        return {name: found[name].value or 0.0 for name in names if name in found and found[name].value is not None}


def sent(request: Request) -> dict[str, Any]:
    """The body of a request as a chat-completions server gets it, with the images as data URLs."""
    body: dict[str, Any] = json.loads(chat_body(request, request.task.benchmark))
    del body["model"]  # the harness names it
    return body


@cache
def _opened(settings: str, by_episode: bool) -> HarnessSteps:
    return HarnessSteps(json.loads(settings), by_episode=by_episode)


def harness_steps(settings: Mapping[str, Any], *, by_episode: bool = False) -> HarnessSteps:
    """:class:`HarnessSteps`, once for the same settings: harnesses hand the settings to each of their parts."""
    return _opened(json.dumps(dict(settings), sort_keys=True, default=str), by_episode)
