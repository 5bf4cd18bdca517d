"""The forecast of a run: requests, tokens and cost, estimated without sending anything (``guieval run --dry-run``)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from guieval.frames import Size
from guieval.models import ModelInput
from guieval.models.composition import Composition
from guieval.running.costs import Price, PriceByModel, amount
from guieval.running.engine_choice import HOSTED, engine_kind, native_api
from guieval.running.kinds import kind_of
from guieval.running.resolved import ResolvedRun
from guieval.running.telemetry import price_of
from guieval.settings.sampling import request_parameters

CHARACTERS, PATCH = 4, 28
"""What one token is taken for: so many characters of text, and a square of so many pixels of an image (as Qwen2.5-VL and Claude
count; other services differ)."""
EXAMPLES = 20
"""Steps, spread over the run, whose prompts are measured."""


@dataclass(frozen=True)
class Forecast:
    """An estimate of a whole run.

    ``requests`` is an upper bound if a mode may stop early. ``prompt_tokens`` is the mean of a request's, ``None`` online,
    because screens are not known. ``response_tokens`` is the most that a response may have, if it is limited.
    """

    mode: str
    requests: int
    at_most: bool
    prompt_tokens: float | None
    response_tokens: int | None
    price: Price | None
    tool_tokens: int = 0
    """The part of ``prompt_tokens`` that the service adds for a tool of its own."""
    steps: int = 0
    """Steps (online: of all tasks), so that ``requests`` are those of each one's samples."""
    attempts: int = 1
    """How often a request may be sent, each time to be paid."""
    looks: int = 0
    """How often a model may look again before it answers, each time with a screenshot of ``screen_tokens`` more."""
    screen_tokens: float = 0.0
    thoughts: int = 0
    """Further requests of each step at most, for the thought of its patch."""

    @property
    def worst_requests(self) -> int:
        """The most requests that a step can take, when each attempt but the last fails after it was paid."""
        return self.attempts * (self._samples * (self.looks + 1) + self.thoughts)

    def worst_cost(self, steps: int = 1) -> float | None:
        """The most that so many steps can cost, in the currency of :attr:`price`, as far as the prompts are estimated well.

        ``None`` if the price, the prompts or a limit of the responses is not known.
        """
        if self.price is None or self.prompt_tokens is None or self.response_tokens is None:
            return None
        grown = self.screen_tokens + self.response_tokens  # by each look, whose call and answer are sent with the next request
        prompts = sum(self.prompt_tokens + look * grown for look in range(self.looks + 1)) * self._samples
        prompts += self.thoughts * self.prompt_tokens
        tokens = self.attempts * prompts * self.price.input + self.worst_requests * self.response_tokens * self.price.output
        return steps * tokens / 1e6

    @property
    def _samples(self) -> int:
        return self.requests // self.steps if self.steps else 1

    def lines(self) -> Iterator[tuple[str, str]]:
        """Label and sentence of each estimate."""
        yield from self._expected()
        yield "at worst", self._worst()

    def _expected(self) -> Iterator[tuple[str, str]]:
        yield "requests", f"{'at most ' * self.at_most}{self.requests:,} in mode {self.mode}"
        if self.prompt_tokens is None:
            yield "tokens", "not known, since they depend on the screens"
            return
        prompts, replies = self.requests * self.prompt_tokens, self.requests * (self.response_tokens or 0)
        about = f"about {_rounded(prompts):,.0f} in, {_rounded(self.prompt_tokens):,.0f} a request"
        tool = f", plus {self.tool_tokens:,} for the service's own tool" * bool(self.tool_tokens)
        yield "tokens", f"{about} (estimated at one token per {CHARACTERS} characters or per {PATCH} x {PATCH} pixels{tool})"
        if replies:
            yield "output", f"at most {replies:,} tokens, {self.response_tokens:,} each"
        if self.price is None:
            yield "cost", "not known: no price of this model (--prices FILE)"
            return
        of_prompts = amount(_rounded(prompts * self.price.input / 1e6), self.price.currency)
        of_replies = f", at most {amount(replies * self.price.output / 1e6, self.price.currency)} for the responses"
        yield "cost", f"about {of_prompts} for the prompts{of_replies * bool(replies)} (prices as of {self.price.as_of})"

    def _worst(self) -> str:
        each = [f"{self._samples} samples"] * (self._samples > 1) + [f"{self.attempts} attempts"]
        each += [f"{self.looks + 1} responses"] * bool(self.looks)
        made = " x ".join(each) + f", and {self.attempts} for its patch" * bool(self.thoughts)
        asked = f"{self.worst_requests:,} requests a step ({made})" if self.worst_requests > 1 else "1 request a step"
        if (one := self.worst_cost()) is not None and self.price is not None and self.steps:
            everything = amount(_rounded(self.worst_cost(self.steps) or 0.0), self.price.currency)
            return f"{asked}, {amount(_rounded(one), self.price.currency)} each, {everything} in all"
        if self.price is not None and self.prompt_tokens is not None:
            return f"{asked}; the cost has no limit, since the responses have none (--set sampling.max_tokens=N)"
        return asked


def forecast(run: ResolvedRun) -> Forecast:
    """The estimate of a whole run, from its beginning. Raises what preparing a prompt raises."""
    requests, at_most = kind_of(run.config).requests(run)
    limits = request_parameters(run.sampling[0])
    limit = limits.get("max_tokens") or limits.get("max_completion_tokens")
    kind = engine_kind(run.config, run.model.config)
    response_tokens = limit if isinstance(limit, int) else native_api(kind).most_tokens if kind in HOSTED else None
    worst: dict[str, Any] = {
        "steps": requests // len(run.sampling),
        "attempts": run.config.server.max_attempts,
        "looks": run.model.looks,
        "thoughts": run.config.history.patch == "on-policy",
    }
    prompts, added = None, 0
    if (examples := kind_of(run.config).examples(run, EXAMPLES)) is not None:
        added = run.model.tool_tokens
        prompts = _mean([_tokens(prepared) + added for prepared in examples])
        screens = [_image_tokens(image.size) for prepared in examples for image in prepared.images[-1:]]
        worst["screen_tokens"] = _mean(screens)
    return Forecast(run.mode.label, requests, at_most, prompts, response_tokens, _price(run), added, **worst)


def _price(run: ResolvedRun) -> Price | None:
    """The price of a request; of a composition with two models the mean over its stages."""
    price = price_of(run)
    if isinstance(price, PriceByModel):
        return price.mean(run.model.stage_models if isinstance(run.model, Composition) else list(price.models))
    return price


def _tokens(prepared: ModelInput) -> float:
    extra = json.dumps(prepared.extra, default=str) if prepared.extra else ""
    images = sum(_image_tokens(image.size) for image in prepared.images)
    return (len(prepared.text) + len(extra)) / CHARACTERS + images


def _image_tokens(size: Size) -> int:
    return math.ceil(size[0] / PATCH) * math.ceil(size[1] / PATCH)


def _mean(sizes: Sequence[float]) -> float:
    return sum(sizes) / len(sizes) if sizes else 0.0


def _rounded(number: float) -> float:
    """The number with two significant digits, since it is an estimate."""
    return float(f"{number:.2g}")
