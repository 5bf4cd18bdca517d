"""Compositions of adapters: a step takes several requests, of which each later one places the click of the one before.

With option ``zoom`` the adapter is queried again on the part of the screen around its click, enlarged; with option
``grounder`` another model is queried for the place, given the first one's words. With both the grounder is zoomed in.
A composition is the adapter itself with :class:`Composition` before it, so prompts, options and action space are the family's.

The responses of all stages are one text, a JSON object with a list of :class:`StageResponse`: it is scored, exported and
replayed like any other, without a model and without a screenshot. If a later stage gives no place, that of the stage before
counts, and ``stage`` of the sample says so. The report with numbers for zoom-in (arXiv 2607.28227) could not be read: which
part is shown, that it is enlarged to the size of the screen, and what follows from a response without a place are our own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from guieval.actions import Click, LongPress, Point
from guieval.data.screenshots import Crop
from guieval.errors import ParseError, one_line
from guieval.frames import Size
from guieval.history import HistoryEntry
from guieval.models.adapter import ABCModel, ParsedResponse
from guieval.models.messages import ImageRef, ModelInput
from guieval.models.response import Response
from guieval.steps import StepTaskModel, Usage

_START = '{"stages": ['


class StageResponse(BaseModel):
    """The response of one stage. ``model`` is the checkpoint's name, ``served`` what the response calls it.

    ``query`` is what a grounder was given, ``crop`` (left, top, right, bottom) the part of the screenshot, in pixels, that the
    model was shown. ``seconds`` is from sending the request to the end of the response, without waiting for other requests if
    the engine knows that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    model: str
    text: str
    reasoning: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    seconds: float | None = None
    served: str | None = None
    query: str | None = None
    crop: Crop | None = None

    @property
    def response(self) -> Response:
        """The response, with its calls as part of the text."""
        return Response(self.text, self.reasoning, finish_reason=self.finish_reason)

    @property
    def about(self) -> tuple[str, ...]:
        """Which stage it is, and how the model was queried, in short parts for people to read."""
        parts = [f"{self.stage}: {self.model}"]
        parts += [] if self.query is None else [f"query {self.query!r}"]
        parts += [] if self.crop is None else ["shown ({}, {}) to ({}, {}) of the screenshot".format(*self.crop)]
        parts += [] if self.seconds is None else [f"{self.seconds:.2f} s"]
        if self.usage is not None and self.usage.whole:
            parts += [f"{self.usage.prompt_tokens:,} tokens in, {self.usage.completion_tokens:,} out"]
        return tuple(parts)

    @property
    def words(self) -> str:
        """Reasoning and response, for people to read."""
        return "\n".join([*([] if self.reasoning is None else [f"(reasoning) {self.reasoning}"]), self.text])


@dataclass(frozen=True)
class NextStage:
    """What is requested next, and of which adapter."""

    name: str
    adapter: ABCModel
    task: StepTaskModel
    input: ModelInput
    query: str | None = None
    crop: Crop | None = None


class Composition(ABCModel):
    """What a composition adds to its first adapter's class; :func:`composed` makes the whole."""

    grounder: ABCModel | None = None

    @cached_property
    def stage_names(self) -> tuple[str, ...]:
        zoom = ("zoom",) * (self.options.zoom is not None)
        return ("planner", "grounder", *zoom) if self.grounder is not None else ("whole screen", *zoom)

    @property
    def stage_models(self) -> tuple[str, ...]:
        return tuple(checkpoints(self._of(name).config.name)[0] for name in self.stage_names)

    @property
    def reply_rules(self) -> Mapping[str, str]:
        rules = dict(super().reply_rules)
        if self.grounder is not None:
            scaffold = self.grounder.config.scaffold
            rules["grounder"] = f"{self.grounder.config.name}, scaffold {scaffold.name} ({scaffold.sha256})"
        return rules if self.options.zoom is None else {**rules, "zoom": f"{self.options.zoom:g}"}

    def own_past(self, history: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
        return [
            replace(entry, raw_response=stages[0].text) if (stages := stages_in(entry.raw_response or "")) else entry
            for entry in history
        ]

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        stages = stages_in(text)
        if not stages:
            return super().parse_response(task, text)  # type: ignore[safe-super]  # a family's
        placed = self._placed(task, stages)
        if (
            len(stages) == 1
            and self.grounder is not None
            and isinstance(placed.action, Click | LongPress)
            and not _words(placed)
        ):
            return replace(placed, stage=f"{placed.stage}, because it has no words for the grounder")
        return placed

    def following(self, task: StepTaskModel, stages: Sequence[StageResponse]) -> NextStage | None:
        """What is requested after ``stages``; ``None`` if nothing is left to place. May raise what an adapter does."""
        names = self.stage_names[len(stages) :]
        if not names or stages[-1].response.broken_off:
            return None
        try:
            placed = self._placed(task, stages)
        except ParseError:
            return None
        if not isinstance(placed.action, Click | LongPress) or placed.stage != stages[-1].stage:
            return None
        name, adapter = names[0], self._of(names[0])
        query = _words(placed) if name == "grounder" else stages[-1].query
        if name == "grounder" and query is None:
            return None
        shown = grounding_step(task, query) if query is not None else task
        if name != "zoom":
            return NextStage(name, adapter, shown, adapter.prepare_input(shown, ()), query)
        crop = zoomed_part(task.screenshot_size, placed.action.point, self.options.zoom or 1)
        return NextStage(name, adapter, shown, _cropped(adapter.prepare_input(shown, ()), crop), query, crop)

    def _of(self, name: str) -> ABCModel:
        return self if self.grounder is None or name == "planner" else self.grounder

    def _placed(self, task: StepTaskModel, stages: Sequence[StageResponse]) -> ParsedResponse:
        """The first stage's action at the place that the last usable stage gives. Raises :class:`ParseError`."""
        first = stages[0].response
        found = super().parse_response(task, first.readable)  # type: ignore[safe-super]  # a family's
        found = replace(
            found, thought=found.thought or (None if first.in_reasoning else first.reasoning), stage=stages[0].stage
        )
        for stage in stages[1:]:
            step = task if stage.query is None else grounding_step(task, stage.query)
            adapter = self._of(stage.stage)
            read = super().parse_response if adapter is self else adapter.parse_response  # type: ignore[safe-super]
            problem = f"{found.stage}, because the response of {stage.stage} has no"
            try:
                place = read(step, stage.response.readable).action
            except ParseError as error:
                return replace(found, stage=f"{problem} action: {one_line(str(error))}")
            if not isinstance(place, Click | LongPress):
                return replace(found, stage=f"{problem} place, but {place.type}")
            point = place.point if stage.crop is None else on_the_screen(task.screenshot_size, stage.crop, place.point)
            found = replace(_moved(found, point), stage=stage.stage)
        return found


def checkpoints(name: str) -> tuple[str, ...]:
    """The names of the checkpoints of a model: of ``planner=A,grounder=B`` both, of any other its own."""
    planner, pair, grounder = name.removeprefix("planner=").partition(",grounder=")
    return (planner, grounder) if pair else (name,)


def composed(kind: type[ABCModel]) -> type[Composition]:
    """The class of an adapter whose steps are a composition."""
    return type(f"Composed{kind.__name__}", (Composition, kind), {"__module__": kind.__module__})


def written(stages: Sequence[StageResponse]) -> str:
    """The responses of all stages as one text."""
    rows = (json.dumps(stage.model_dump(mode="json", exclude_none=True), ensure_ascii=False) for stage in stages)
    return f"{_START}{', '.join(rows)}]}}"


def stages_in(text: str) -> tuple[StageResponse, ...]:
    """The stages of a :func:`written` text; none of any other."""
    if not text.startswith(_START):
        return ()
    try:
        return tuple(map(StageResponse.model_validate, json.loads(text)["stages"]))
    except (ValueError, RecursionError, TypeError, KeyError, ValidationError):
        return ()


def in_words(text: str) -> str:
    """A response for people to read: of a composition, each stage's under a line that says which it is."""
    stages = enumerate(stages_in(text), 1)
    return "\n\n".join(f"[{number}] {', '.join(stage.about)}\n{stage.words}" for number, stage in stages) or text


def zoomed_part(size: Size, point: Point, factor: float) -> Crop:
    """The part of a screenshot of ``size`` that is ``factor`` times smaller on each side, around ``point`` and within it."""
    spans = []
    for side, place in zip(size, point, strict=True):
        length = max(1, round(side / factor))
        start = min(max(0, round(place * side / 1000 - length / 2)), side - length)
        spans.append((start, start + length))
    (left, right), (top, bottom) = spans
    return left, top, right, bottom


def on_the_screen(size: Size, crop: Crop, point: Point) -> Point:
    """A point of the part ``crop``, in [0, 1000] of it, as a point of the whole screenshot of ``size`` (width, height)."""
    left, top, right, bottom = crop
    return Point((left * 1000 + point.x * (right - left)) / size[0], (top * 1000 + point.y * (bottom - top)) / size[1])


def on_the_part(size: Size, crop: Crop, point: Point) -> Point:
    """The inverse of :func:`on_the_screen`, for a point of the part."""
    left, top, right, bottom = crop
    return Point((point.x * size[0] - left * 1000) / (right - left), (point.y * size[1] - top * 1000) / (bottom - top))


def grounding_step(task: StepTaskModel, query: str) -> StepTaskModel:
    """The step as a grounder is given it: its screen, and ``query`` for what to find on it."""
    return task.model_copy(update={"setting": "grounding", "instruction": query, "low_level_instruction": None})


def _words(parsed: ParsedResponse) -> str | None:
    """What a planner says of its click; ``None`` if it says nothing."""
    text = parsed.conclusion or parsed.thought
    return one_line(text, 2_000) if text and text.strip() else None


def _moved(parsed: ParsedResponse, point: Point) -> ParsedResponse:
    action = parsed.action.model_copy(update={"point": point})
    return replace(parsed, action=action, batch=(action, *parsed.batch[1:]) if parsed.batch else ())


def _cropped(prepared: ModelInput, crop: Crop) -> ModelInput:
    def part(each: Any) -> Any:
        return replace(each, crop=crop) if isinstance(each, ImageRef) else each

    messages = (replace(message, parts=tuple(map(part, message.parts))) for message in prepared.messages)
    return replace(prepared, messages=tuple(messages))
