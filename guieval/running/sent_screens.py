"""Sends the screens of single steps to an engine, each as its file is: what ``guieval dev audit-engine`` measures.

A run turns and decodes a screenshot before it is sent. Here a file that is turned by its EXIF orientation is sent as such, so
that the server has to turn it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import prod
from typing import Any

from guieval.data.benchmark import ABCBenchmark
from guieval.data.orientations import stored
from guieval.data.screenshots import Screenshot, read_picture, read_screenshot
from guieval.engines import ReportsSetup, request_id
from guieval.engines.concurrency import Slots, all_of
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal.setup import Setup
from guieval.models import ABCModel, ModelInput, Request
from guieval.models.engine_audit.screen import SentScreen, orientation_of
from guieval.models.scored_response import failed_sample, read_response
from guieval.running.engine_choice import Answering
from guieval.steps import Sample, StepTaskModel

_COMMON = 400_000
"""Pixels about which no processor changes an image beyond rounding."""


class _Prepared:
    """A screen's prompt and picture."""

    def __init__(self, model: ABCModel, benchmark: ABCBenchmark, task: StepTaskModel, sampling: Mapping[str, Any]) -> None:
        self.task = task
        self.input: ModelInput = model.prepare_input(task, ())
        if len(self.input.images) != 1:
            raise UsageError(f"model {model.config.name!r} is shown {len(self.input.images)} images of a screen, not one")
        file = benchmark.root, task.screenshot, task.screenshot_size
        sent, orientation = self.input.images[0], orientation_of(task)
        pixels = read_picture(*file, sent.resize, canvas=sent.canvas)
        if orientation == 1:
            self.picture = read_screenshot(*file, sent.resize, canvas=sent.canvas)
        else:
            self.picture = Screenshot(stored(pixels, orientation), "png", pixels.size)
        self.prompt = json.dumps([self.input.text, dict(self.input.extra)], sort_keys=True, default=str)
        digest = sha256(json.dumps([self.prompt, sampling, pixels.size, orientation], sort_keys=True).encode())
        digest.update(pixels.tobytes())
        self.request = digest.hexdigest()[:16]


async def send_screens(
    model: ABCModel, answering: Answering, benchmark: ABCBenchmark, sampling: Mapping[str, Any], *, twice: bool
) -> tuple[list[SentScreen], Setup | None]:
    """Send every screen, and the prompt of each with one common picture, of which only the count of tokens is used.

    Also returns who answered. ``twice``: every screen is sent a second time, in another order. A request that fails is a failed
    sample. Raises :class:`FatalEngineError` when none can succeed, :class:`UsageError` for a model that is not shown one image.
    """
    engine, slots = answering.engine, Slots(answering.concurrency)
    evaluator = ActionEvaluator(benchmark.protocol)

    async def ask(screen: _Prepared, picture: Screenshot, number: int, parameters: Mapping[str, Any]) -> Sample:
        name = request_id(screen.task.key, number)
        async with slots:
            try:
                response = await model.generate(Request(screen.input, (picture,), parameters, name, screen.task), engine)
            except FatalEngineError:
                raise
            except EngineError as error:
                return failed_sample("generate", str(error))
        return read_response(model, evaluator, screen.task, response)

    try:
        if answering.prepare is not None:
            await answering.prepare()
        tasks = [step for ref in benchmark.index() for step in benchmark.load(ref).steps]
        screens = [await asyncio.to_thread(_Prepared, model, benchmark, task, sampling) for task in tasks]
        common = min((screen.picture for screen in screens), key=lambda shown: abs(prod(shown.size) - _COMMON))
        prompts = {screen.prompt: screen for screen in screens}
        limit = "max_completion_tokens" if "max_completion_tokens" in sampling else "max_tokens"
        setup = engine.setup() if isinstance(engine, ReportsSetup) else None
        asked = [ask(screen, screen.picture, 0, sampling) for screen in screens]
        asked += [ask(screen, common, 1, {**sampling, limit: 1}) for screen in prompts.values()]
        if twice:  # not from the cache of prefixes, or the second answer would be the first one's echo
            salt = {"cache_salt": "again"} if setup is not None and {each.name for each in setup.engines} == {"vLLM"} else {}
            asked += [ask(screen, screen.picture, 2, {**sampling, **salt}) for screen in reversed(screens)]
        samples = await all_of(asked)
        setup = engine.setup() if isinstance(engine, ReportsSetup) else None
    finally:
        await engine.close()
    first, rest = samples[: len(screens)], samples[len(screens) :]
    with_common = dict(zip(prompts, rest, strict=False))
    again: Sequence[Sample | None] = rest[len(prompts) :][::-1] or [None] * len(screens)
    sent = [
        SentScreen(each.task, each.picture.size, common.size, each.request, sample, with_common[each.prompt], second)
        for each, sample, second in zip(screens, first, again, strict=True)
    ]
    return sent, setup
