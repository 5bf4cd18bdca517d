"""Queries the stages of a composition one after the other, and keeps each response until its step is on record.

A response that a later stage follows is in a file of the run directory before that stage is requested: a session that is killed
in between leaves it to the next one, which pays for it no second time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from guieval.actions import Frozen
from guieval.data.files import open_descriptor, open_file
from guieval.errors import JournalError
from guieval.models import ABCModel, Engine, Request, Response
from guieval.models.composition import Composition, NextStage, StageResponse, checkpoints, written
from guieval.running.runner.image_cache import ImageLoader
from guieval.steps import Usage

STAGES = "stages.jsonl"


class _Kept(Frozen):
    """A line of the file with a response. ``billed``: its tokens are in the journal already."""

    request: str
    stage: StageResponse
    billed: bool = False


class _Done(Frozen):
    """A line that says that the step of a response is on record."""

    request: str


_LINE: TypeAdapter[_Kept | _Done] = TypeAdapter(_Kept | _Done)


class Stages:
    """Answers the requests of a composition. ``engine`` answers for the first adapter, ``grounder`` for the other one.

    ``images`` makes the loader of an engine's screenshots. Raises what engines, adapters and screenshots do, and
    :class:`JournalError` if ``file`` cannot be written.
    """

    def __init__(
        self,
        model: Composition,
        engine: Engine,
        grounder: Engine | None,
        images: Callable[[Engine, ABCModel], ImageLoader],
        file: Path,
    ) -> None:
        self._model = model
        self._engines: dict[ABCModel, tuple[Engine, ImageLoader]] = {model: (engine, images(engine, model))}
        if model.grounder is not None and grounder is not None:
            self._engines[model.grounder] = (grounder, images(grounder, model.grounder))
        self._file = file
        self._kept: dict[str, _Kept] = {}
        with suppress(FileNotFoundError), open_file(file) as lines:
            for line in lines:
                with suppress(ValidationError):  # torn by a kill
                    self._take(_LINE.validate_json(line))

    async def generate(self, request: Request) -> Response:
        """The responses of all stages as one; the tokens of all but the last are on the request's bill."""
        first = self._model
        following: NextStage | None = NextStage(first.stage_names[0], first, request.task, request.input)
        stages, waiting, removed = list[StageResponse](), list[_Kept](), False
        try:
            while following is not None:
                asked = await self._request(request, following, first=not stages)
                name, bill = _digest(asked), request.bill.of(_checkpoint(following.adapter))
                if (kept := self._kept.pop(name, None)) is not None:
                    stage, billed = kept.stage, kept.billed
                    last = replace(stage.response, usage=None if billed else stage.usage)
                else:
                    started, billed = time.monotonic(), False
                    last = await self._answer(following.adapter, asked)
                    seconds = time.monotonic() - started if last.seconds is None else last.seconds
                    stage = _stage(following, last, round(seconds, 4))
                removed |= last.key_removed
                stages.append(stage)
                following = self._model.following(request.task, stages)
                if following is not None:
                    waiting.append(_Kept(request=name, stage=stage, billed=billed))
                    self._write(waiting[-1])
                    request.bill.others += last.other_usage
                    if not billed:
                        bill.add(stage.usage or Usage())
        except BaseException:  # what was paid for goes into the record of the failed step
            for kept in waiting:
                self._write(kept.model_copy(update={"billed": True}))
            raise
        for kept in waiting:
            self._write(_Done(request=kept.request))
        last = replace(last, calls=(), reasoning=None, logprob=None, model=stages[0].served, key_removed=removed)
        return replace(last, text=written(stages), seconds=sum(stage.seconds or 0.0 for stage in stages))

    async def thought(self, request: Request) -> Response:
        """The first model's response alone, to a request that asks for no place."""
        return await self._answer(self._model, request)

    async def _answer(self, adapter: ABCModel, request: Request) -> Response:
        """A response whose tokens, and those of attempts at it, are marked with the adapter's checkpoint."""
        bill = request.bill.of(_checkpoint(adapter))
        response = await adapter.generate(replace(request, bill=bill), self._engines[adapter][0])
        others = tuple(map(bill.marked, response.other_usage))
        unstated = Usage(prompt_tokens=0, completion_tokens=0) if adapter.config.engine == "local" else Usage()  # costs nothing
        return replace(response, usage=bill.marked(response.usage or unstated), other_usage=others)

    async def _request(self, request: Request, following: NextStage, *, first: bool) -> Request:
        if first:
            return request
        engine, loader = self._engines[following.adapter]
        wanted = () if engine.images == "none" else following.input.images
        sampling = request.sampling
        if following.adapter is not self._model:  # what the run sets goes over the grounder's own, the planner's own does not
            planners = self._model.config.scaffold.sampling
            given = {name: value for name, value in sampling.items() if planners.get(name) != value}
            sampling = {**following.adapter.config.scaffold.sampling, **given}
        return replace(
            request,
            input=following.input,
            images=tuple([await loader.load(image) for image in wanted]),
            sampling=sampling,
            request_id=f"{request.request_id}|{following.name}",
            task=following.task,
        )

    def _write(self, line: _Kept | _Done) -> None:
        """Append a line by one system call, which a kill of the process cannot undo."""
        try:
            file = open_descriptor(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                os.write(file, b"\n" + line.model_dump_json(exclude_defaults=True).encode() + b"\n")
            finally:
                os.close(file)
        except OSError as error:
            raise JournalError(f"cannot add to {str(self._file)!r}: {error.strerror}") from None

    def _take(self, line: _Kept | _Done) -> None:
        if isinstance(line, _Kept):
            self._kept[line.request] = line
        else:
            self._kept.pop(line.request, None)


def _stage(of: NextStage, response: Response, seconds: float) -> StageResponse:
    return StageResponse(
        stage=of.name,
        model=_checkpoint(of.adapter),
        text=response.written,
        reasoning=response.reasoning,
        finish_reason=response.finish_reason,
        usage=response.usage,
        seconds=seconds,
        served=response.model,
        query=of.query,
        crop=of.crop,
    )


def _checkpoint(adapter: ABCModel) -> str:
    return checkpoints(adapter.config.name)[0]


def _digest(request: Request) -> str:
    """What tells a request from all others of a run, with its id first."""
    shown = [
        [image.task.screenshot, image.resize, image.crop, *([image.canvas] if image.canvas else [])]
        for image in request.input.images
    ]
    parts = [request.input.text, shown, dict(request.input.extra), dict(request.sampling)]
    return f"{request.request_id} {sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]}"
