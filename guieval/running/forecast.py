"""The forecast of a run: requests, tokens and cost, estimated without sending anything (``guieval run --dry-run``)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from guieval.history import reference_entry
from guieval.history.modes import ONLINE
from guieval.models import ModelInput
from guieval.models.sampling import request_parameters
from guieval.online.tasks import EnvironmentTasks
from guieval.running.resolve import ResolvedRun
from guieval.running.telemetry import price_of
from guieval.steps import StepTaskModel
from guieval.telemetry.costs import Price, amount

CHARACTERS, PATCH = 4, 28
"""What one token is taken for: so many characters of text, and a square of so many pixels of an image (as Qwen2.5-VL and Claude
count; other services differ)."""
EXAMPLES = 20
"""Steps, spread over the run, whose prompts are measured."""


@dataclass(frozen=True)
class Forecast:
    """An estimate of a whole run.

    ``requests`` is an upper bound where a mode may stop early. ``prompt_tokens`` is the mean of a request's, ``None`` online,
    where screens are not known. ``reply_tokens`` is the most that a reply may have, if it is limited.
    """

    mode: str
    requests: int
    at_most: bool
    prompt_tokens: float | None
    reply_tokens: int | None
    price: Price | None
    tool_tokens: int = 0
    """The part of ``prompt_tokens`` that the service adds for a tool of its own."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Label and sentence of each estimate."""
        yield "requests", f"{'at most ' * self.at_most}{self.requests:,} in mode {self.mode}"
        if self.prompt_tokens is None:
            yield "tokens", "not known, since they depend on the screens"
            return
        prompts, replies = self.requests * self.prompt_tokens, self.requests * (self.reply_tokens or 0)
        about = f"about {_rounded(prompts):,.0f} in, {_rounded(self.prompt_tokens):,.0f} a request"
        tool = f", plus {self.tool_tokens:,} for the service's own tool" * bool(self.tool_tokens)
        yield "tokens", f"{about} (estimated at one token per {CHARACTERS} characters or per {PATCH} x {PATCH} pixels{tool})"
        if replies:
            yield "replies", f"at most {replies:,} tokens, {self.reply_tokens:,} each"
        if self.price is None:
            yield "cost", "not known: no price of this model (--prices FILE)"
            return
        of_prompts = amount(_rounded(prompts * self.price.input / 1e6), self.price.currency)
        of_replies = f", at most {amount(replies * self.price.output / 1e6, self.price.currency)} for the replies"
        yield "cost", f"about {of_prompts} for the prompts{of_replies * bool(replies)} (prices as of {self.price.as_of})"


def forecast(run: ResolvedRun) -> Forecast:
    """The estimate of a whole run, from its beginning. Raises what preparing a prompt raises."""
    requests, at_most = answers(run)
    limits = request_parameters(run.sampling[0])
    limit = limits.get("max_tokens") or limits.get("max_completion_tokens")
    reply_tokens = limit if isinstance(limit, int) else None
    if isinstance(run.benchmark, EnvironmentTasks):
        return Forecast(ONLINE, requests, at_most, None, reply_tokens, price_of(run))
    added = run.model.tool_tokens
    sizes = [_tokens(prepared) + added for prepared in _examples(run)]
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return Forecast(run.mode.label, requests, at_most, mean, reply_tokens, price_of(run), added)


def answers(run: ResolvedRun) -> tuple[int, bool]:
    """The number of answers that a whole run takes, and whether it may take fewer."""
    samples = len(run.sampling)
    if isinstance(run.benchmark, EnvironmentTasks):
        tasks = map(run.benchmark.task, run.selection.refs)
        return samples * sum(map(run.benchmark.steps, tasks)), True
    return samples * sum(map(len, run.plan.values())), run.mode.stop != "never"


def _examples(run: ResolvedRun) -> Iterator[ModelInput]:
    """Prompts of steps spread evenly over the run, with the reference as their past."""
    places = [(ref, index) for ref in run.selection.refs for index in run.plan[ref.key]]
    stride = max(1, len(places) // EXAMPLES)
    for ref, index in places[stride // 2 :: stride][:EXAMPLES]:
        steps = run.benchmark.load(ref).steps
        yield run.model.prepare_input(steps[index], tuple(map(reference_entry, steps[:index])))


def _tokens(prepared: ModelInput) -> float:
    extra = json.dumps(prepared.extra, default=str) if prepared.extra else ""
    images = sum(_image_tokens(image.task, image.resize) for image in prepared.images)
    return (len(prepared.text) + len(extra)) / CHARACTERS + images


def _image_tokens(task: StepTaskModel, resize: tuple[int, int] | None) -> int:
    width, height = resize or task.screenshot_size
    return math.ceil(width / PATCH) * math.ceil(height / PATCH)


def _rounded(number: float) -> float:
    """The number with two significant digits, since it is an estimate."""
    return float(f"{number:.2g}")
