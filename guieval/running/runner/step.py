"""Asks a model about one step: prompt, screenshots, every sample, and the thought of a patch if the step needs one.

Whatever goes wrong is named by its stage on the sample that it cost; only what no further step could survive is raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from guieval.data.screenshots import FileDigest, Screenshot
from guieval.engines import request_id
from guieval.engines.concurrency import Slots, all_of
from guieval.errors import EngineError, FatalEngineError, ScreenshotError
from guieval.evaluation import ActionEvaluator
from guieval.history import HistoryEntry, acted, select
from guieval.history.modes import Mode, after, tries_again
from guieval.models import ABCModel, Bill, Engine, ImageRef, Request, Response
from guieval.models.faults import fault_of
from guieval.models.patch_thoughts import off_policy_input, on_policy_input, read_thought, unbound
from guieval.models.scored_response import failed_adapter, failed_sample, read_response
from guieval.running.costs import Tokens
from guieval.running.fixed_thoughts import FixedThoughts
from guieval.running.runner.image_cache import ImageLoader
from guieval.running.runner.stages import Stages
from guieval.secrets import Redaction
from guieval.steps import Patch, PatchedBy, Sample, StepRecord, StepTaskModel, Usage


@dataclass
class Asked:
    """Facts learned while a step ran: the names that responses give their model, the screenshot's digest, and what it cost.

    ``bill`` is that of all its requests: the responses that were received so far, answers among them.
    """

    bill: Bill
    models: dict[str, None] = field(default_factory=dict)
    screen: FileDigest | None = None


@dataclass(frozen=True)
class Asker:
    """The model of a run and how it is queried, for all steps.

    ``sampling`` are the request parameters of each sample of a step. ``thoughts`` writes the thoughts of off-policy patches,
    and takes its screenshots from ``thought_images``. ``fixed`` are the thoughts that the model is made to think.

    ``tokens`` are those of every response, counted when it is received. ``halted`` says why a step that was paid for may not be
    requested again. ``lost`` is called with the record of a step that was paid for and is given up, because the run ends,
    ``note`` with the first request of each step before it is sent.
    ``redaction`` removes the keys from messages. ``stages`` queries a composition.
    """

    model: ABCModel
    engine: Engine
    evaluator: ActionEvaluator
    mode: Mode
    sampling: Sequence[Mapping[str, Any]]
    images: ImageLoader
    slots: Slots
    thoughts: Engine | None = None
    thought_images: ImageLoader | None = None
    fixed: FixedThoughts | None = None
    tokens: Tokens = field(default_factory=Tokens)
    halted: Callable[[], str | None] = lambda: None
    lost: Callable[[Any], None] = lambda record: None
    note: Callable[[Request], None] = lambda request: None
    redaction: Redaction = field(default_factory=lambda: Redaction(()))
    stages: Stages | None = None

    async def answer(
        self,
        task: StepTaskModel,
        past: Sequence[HistoryEntry],
        *,
        patched: int,
        last: bool,
        earlier: Mapping[int, Sample] | None = None,
    ) -> StepRecord:
        """The step's record: its samples, and its patch if one is due.

        ``patched`` steps of the episode were patched before; ``last`` says that no step of it comes after this one. ``earlier``
        are samples that an earlier session had answered under the same past, by their index: only the others are requested.
        """
        asked, earlier, origins = Asked(Bill()), earlier or {}, tuple(entry.origin for entry in past)
        try:
            samples = await self._samples(task, past, earlier, asked)
            retried: list[Sample] = []
            while wrong := self._wrong(samples[0], retried):
                retried = wrong
                shown = (*past, *(select("model", task, each) for each in retried if acted(each)))
                samples = await self._samples(task, shown, {}, asked, number=len(retried))
            if len(samples) < len(self.sampling):  # nothing could be asked, and the samples at hand stay where they are
                earlier = {}
            if self.fixed is not None:
                samples = [self.fixed.with_thought(task.key, sample) for sample in samples]
            record = StepRecord(
                task=task,
                history=origins,
                samples=tuple(samples),
                retried=tuple(retried),
                earlier=tuple(sorted(earlier)),
                models=tuple(asked.models),
                screen=asked.screen,
            )
            if self.mode.stop == "never" or not record.finished:
                return record
            if after(record.sample.outcome.exact_match, patched, self.mode.patch) != "patch":
                return record
            return await self._patch(record, past, asked, last=last)
        except (FatalEngineError, asyncio.CancelledError) as ended:
            if asked.bill.others:  # the run is at its end, and what was paid must be on record
                why = f": {ended}" if str(ended) else ""
                others = tuple(asked.bill.others)
                sample = failed_sample("generate", f"the run ended before this step was answered{why}", other_usage=others)
                self.lost(StepRecord(task=task, history=origins, samples=(sample,)))
            raise

    def _wrong(self, sample: Sample, retried: Sequence[Sample]) -> list[Sample]:
        """The wrong responses to a step with its latest one, if the step is to be queried again; else none."""
        wrong = [*retried, sample]
        if not sample.answered or sample.outcome.exact_match:
            return []
        return wrong if tries_again([each.action for each in wrong], self.mode.tries) else []

    async def _patch(self, record: StepRecord, past: Sequence[HistoryEntry], asked: Asked, *, last: bool) -> StepRecord:
        """A mismatched step with its patch; as one without an answer, to be sent again, if the thought cannot be had."""
        method = self.mode.patch.method
        assert method != "none"  # it allows no patch
        task = record.task
        if method == "thought-free" or last:  # whose thought nobody would see
            return record.model_copy(update={"patch": Patch(method=method)})
        bill = self._bill(asked) if method == "on-policy" else Bill()  # tokens of an auxiliary model have another price
        thought = await self._thought(method, task, past, bill)
        if isinstance(thought, Patch):
            if method == "on-policy":
                self._count(asked, thought.usage)
            patch = thought.model_copy(update={"other_usage": tuple(bill.others)})
            return record.model_copy(update={"patch": patch})
        first, others = record.sample, tuple(bill.others) if method == "on-policy" else ()
        paid: dict[str, Any] = {"other_usage": others}
        if 0 not in record.earlier:  # what the answer cost was paid all the same
            paid = {"usage": first.usage or Usage(), "other_usage": (*first.other_usage, *others)}
        samples = (thought.model_copy(update=paid), *record.samples[1:])
        return record.model_copy(update={"samples": samples, "earlier": tuple(filter(None, record.earlier))})

    async def _thought(
        self, method: PatchedBy, task: StepTaskModel, past: Sequence[HistoryEntry], bill: Bill
    ) -> Patch | Sample:
        about = "the thought of its patch: "
        policy = self.model if method == "on-policy" else None
        try:
            prepared = off_policy_input(task) if policy is None else on_policy_input(policy, task, past)
            wanted = prepared.images
        except Exception as error:  # an adapter may be anyone's code
            return failed_adapter(self.model, "prepare_input", error, "prepare", about)
        if policy is not None:
            ask = self._generate if self.stages is None else self.stages.thought
            engine, sampling, images = self.engine, unbound(self.sampling[0]), self.images
        else:
            assert self.thoughts is not None and self.thought_images is not None  # off-policy patches have an engine for them
            engine, ask, sampling, images = self.thoughts, self.thoughts.generate, {}, self.thought_images
        loaded = await _load(wanted, engine, images, about=about)
        if isinstance(loaded, Sample):
            return loaded
        name = request_id(task.key, len(self.sampling))  # after those of the samples
        async with self.slots:
            reply = await self._reply(ask, Request(prepared, loaded, sampling, name, task, bill), about=about)
        if isinstance(reply, Sample):
            return reply
        try:
            thought = read_thought(reply, model=policy, task=task)
        except Exception as error:  # its parser may be anyone's code
            bill.add(reply.usage or Usage())
            return failed_adapter(self.model, "parse_response", error, "parse", about)
        return Patch(method=method, thought=thought, usage=reply.usage)

    async def _samples(
        self, task: StepTaskModel, past: Sequence[HistoryEntry], earlier: Mapping[int, Sample], asked: Asked, number: int = 0
    ) -> Sequence[Sample]:
        """The step's samples; ``number`` is that of the first of them, more than 0 of further tries."""
        try:
            if self.fixed is None:
                prepared = self.model.prepare_input(task, past)
            else:
                prepared = self.model.prepare_fixed_thought(task, past, self.fixed.texts[task.key])
            wanted = prepared.images
        except Exception as error:  # an adapter's bug costs its step, and not yet the run; the record names it
            method = "prepare_input" if self.fixed is None else "prepare_fixed_thought"
            return [failed_adapter(self.model, method, error, "prepare")]
        loaded = await _load(wanted, self.engine, self.images)
        if isinstance(loaded, Sample):
            return [loaded]
        shown = {image.task.screenshot: screenshot for image, screenshot in zip(wanted, loaded, strict=False)}
        asked.screen = shown[task.screenshot].original if task.screenshot in shown else None
        requests = [
            Request(prepared, loaded, _of_try(sampling, number), request_id(task.key, place + number), task, self._bill(asked))
            for place, sampling in enumerate(self.sampling)
            if place not in earlier
        ]
        if requests:
            self.note(requests[0])
        if len(requests) == 1 and not earlier:
            return [await self._sample(requests[0], asked)]
        new = iter(await all_of(self._sample(request, asked) for request in requests))
        return [earlier[place] if place in earlier else next(new) for place in range(len(self.sampling))]

    async def _sample(self, request: Request, asked: Asked) -> Sample:
        left = self.model.config.scaffold.retries.parse
        while True:
            async with self.slots:
                started = time.monotonic()
                reply = await self._reply(self._generate if self.stages is None else self.stages.generate, request)
            others = tuple(request.bill.others)
            if isinstance(reply, Sample):
                return reply.model_copy(update={"other_usage": others})
            if reply.model is not None:
                asked.models[reply.model] = None
            whole = replace(reply, other_usage=(*reply.other_usage, *others))
            seconds = round(time.monotonic() - started if reply.seconds is None else reply.seconds, 4)
            sample = read_response(self.model, self.evaluator, request.task, whole, seconds=seconds)
            if not left or sample.outcome.verdict != "unparseable":
                self._count(asked, reply.usage)
                return sample
            left -= 1
            request.bill.others += reply.other_usage
            request.bill.add(reply.usage or Usage())

    async def _reply(
        self, ask: Callable[[Request], Awaitable[Response]], request: Request, *, about: str = ""
    ) -> Response | Sample:
        """The answer to a request, or the failed sample that says why there is none."""
        try:
            return await ask(request)
        except FatalEngineError:
            raise
        except EngineError as error:
            return failed_sample("generate", self.redaction.message(f"{about}{error}"), attempts=error.attempts)
        except Exception as error:  # an adapter may answer by itself, in any way
            fault = fault_of(self.model, error)
            message = self.redaction.message(fault or f"{about}{type(error).__name__}: {error}")
            return failed_sample("adapter" if fault else "generate", message)

    def _bill(self, asked: Asked) -> Bill:
        """The bill of one of a step's requests."""

        def count(usage: Usage) -> None:
            self.tokens.count_other(usage)
            asked.bill.add(usage)

        return Bill(count, self.halted)

    def _count(self, asked: Asked, usage: Usage | None) -> None:
        self.tokens.count(usage)
        asked.bill.add(usage or Usage())

    async def _generate(self, request: Request) -> Response:
        return await self.model.generate(request, self.engine)


def _of_try(sampling: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The request parameters of a further try: another draw if they have a seed."""
    return {**sampling, "seed": sampling["seed"] + number} if number and sampling.get("seed") is not None else sampling


async def _load(
    wanted: Sequence[ImageRef], engine: Engine, images: ImageLoader, *, about: str = ""
) -> tuple[Screenshot, ...] | Sample:
    """The screenshots of a request, if its engine wants any, or the failed sample that says what became of them."""
    if engine.images == "none":
        return ()
    try:
        return tuple([await images.load(image) for image in wanted])
    except ScreenshotError as error:
        return failed_sample("screenshot", f"{about}{error}")
    except Exception as error:  # an image that cannot be made: an adapter may ask for a size beyond memory
        return failed_sample("prepare", f"{about}{type(error).__name__}: {error}")
