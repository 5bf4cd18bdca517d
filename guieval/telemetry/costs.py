"""What a run costs: the tokens that servers told, times a table of prices.

A price is as of a day and from a source, and both are shown with every amount. What cannot be known stays out: answers that
were cut off or thrown away are billed by some services, and discounts for cached prompts are not taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.errors import UsageError, first_problem
from guieval.steps import StepRecord

UNTOLD_LIMIT = 10
"""Answers without token counts after which a budget cannot be kept."""


@dataclass
class Tokens:
    """Tokens as the servers told them. ``told`` of ``answers`` replies came with both counts; the sums are over those."""

    answers: int = 0
    told: int = 0
    prompt: int = 0
    completion: int = 0

    def add(self, record: StepRecord) -> None:
        """Take in every answer of a record."""
        usages = [sample.usage for sample in record.samples if sample.raw_response is not None]
        if record.patch is not None and record.patch.method == "on-policy" and record.patch.usage is not None:
            usages.append(record.patch.usage)  # an auxiliary model's tokens have another price
        for usage in usages:
            self.answers += 1
            if usage is not None and usage.prompt_tokens is not None and usage.completion_tokens is not None:
                self.told += 1
                self.prompt += usage.prompt_tokens
                self.completion += usage.completion_tokens

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.answers + other.answers, self.told + other.told, self.prompt + other.prompt, self.completion + other.completion
        )


class Price(BaseModel):
    """What the models that fit one of ``models`` cost, in ``currency`` per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[str, ...] = Field(min_length=1, description="names as asked of the server; * stands for any characters")
    currency: str = Field(min_length=1)
    input: float = Field(ge=0, allow_inf_nan=False, description="per million prompt tokens")
    output: float = Field(ge=0, allow_inf_nan=False, description="per million completion tokens")
    source: str = Field(min_length=1, description="where the price is from")
    as_of: str = Field(min_length=1, description="when it held")
    notes: str = ""

    def cost(self, tokens: Tokens) -> float | None:
        """What ``tokens`` cost in :attr:`currency`; ``None`` when no server told any.

        Answers without token counts are taken to cost as much as the others do on average.
        """
        if not tokens.answers:
            return 0.0
        if not tokens.told:
            return None
        told = (tokens.prompt * self.input + tokens.completion * self.output) / 1e6
        return told * tokens.answers / tokens.told


def read_prices(file: Path | None = None) -> tuple[Price, ...]:
    """The prices in a YAML file, a list of :class:`Price`; without a file those shipped.

    Raises :class:`UsageError` naming the entry and field that is wrong.
    """
    import yaml

    path = file or Path(next(iter(import_module("guieval.configs").__path__))) / "prices.yaml"
    try:
        entries = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)  # all text: a date stays as it is written
    except OSError as error:
        raise UsageError(f"the price file {str(path)!r} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"the price file {str(path)!r} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(entries, list):
        raise UsageError(f"the price file {str(path)!r} must hold a list of prices")
    prices = []
    for number, entry in enumerate(entries, 1):
        try:
            prices.append(Price.model_validate(entry))
        except ValidationError as error:
            problem = first_problem(error)
            field = problem.field or "(whole entry)"
            raise UsageError(
                f"{str(path)!r}, price {number}, field {field}: {problem.said} (got {problem.value!r:.80})"
            ) from None
    return tuple(prices)


def find_price(prices: Iterable[Price], names: Sequence[str]) -> Price | None:
    """The first price that fits the first of ``names`` that has one, whatever its case."""
    known = list(prices)
    for name in names:
        for price in known:
            if any(fnmatchcase(name.lower(), pattern.lower()) for pattern in price.models):
                return price
    return None


def amount(value: float, currency: str) -> str:
    """An amount as text, with two digits after the point, or as many as show two of its own."""
    digits = 2 if value >= 1 or not value else 4 if value >= 0.01 else 6
    return f"{value:,.{digits}f} {currency}"


def bill(tokens: Tokens, price: Price | None) -> dict[str, Any]:
    """A run's tokens and cost as JSON: over every answer in its journal, also those to steps that were asked again."""
    value = price.cost(tokens) if price is not None else None
    return {
        "answers": tokens.answers,
        "told": tokens.told,
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "amount": value,
        "estimated": value is not None and tokens.told < tokens.answers,
        "price": None if price is None else price.model_dump(mode="json", exclude={"models"}),
    }


def describe(bill: Mapping[str, Any]) -> str | None:
    """A bill in one sentence; ``None`` for a run that nobody answered."""
    answers, told, price = bill["answers"], bill["told"], bill["price"]
    if not answers:
        return None
    if not told:
        return f"not known: the server told no token counts (0 of {answers:,} answers)"
    among = "" if told == answers else f", told with {told:,} of {answers:,} answers"
    tokens = f"{bill['prompt_tokens']:,} tokens in, {bill['completion_tokens']:,} out{among}"
    if price is None:
        return tokens
    about = "about " * bill["estimated"]
    return f"{about}{amount(bill['amount'], price['currency'])} ({tokens}; prices as of {price['as_of']})"


class Budget:
    """Says when no more may be asked: before the estimated cost of what is done and in flight goes over ``limit``.

    ``limit`` is in the price's currency and over all runs of one command, earlier sessions of them included.
    """

    def __init__(self, limit: float, price: Price) -> None:
        self.limit = limit
        self.price = price
        self._before = Tokens()

    def close(self, tokens: Tokens) -> None:
        """Add a run that has ended."""
        self._before = self._before + tokens

    def spent(self, tokens: Tokens) -> float | None:
        """What all runs cost so far, the going one's ``tokens`` included; ``None`` when no server tells."""
        return self.price.cost(self._before + tokens)

    def reached(self, tokens: Tokens, in_flight: int) -> str | None:
        """Why nothing more may be asked, in one sentence; ``None`` while there is room.

        A request in flight is taken to cost what an answer did on average, so the first ones, before any answer, go unseen.
        """
        total = self._before + tokens
        spent = self.price.cost(total)
        if spent is None:
            if total.answers < UNTOLD_LIMIT:
                return None
            return f"the server tells no token counts, so the budget of {self._said(self.limit)} cannot be kept"
        ahead = replace(total, answers=total.answers + in_flight) if total.told else total
        if (self.price.cost(ahead) or 0.0) < self.limit:
            return None
        return (
            f"the budget of {self._said(self.limit)} is used up ({self._said(spent)} spent, {in_flight:,} requests in flight)"
        )

    def _said(self, value: float) -> str:
        return amount(value, self.price.currency)
