"""The cost of a run: the tokens that servers reported, times a table of prices.

A price has a date and a source, and both are shown with every amount. Every response whose tokens were stated is paid, whether
it could be used or not. Unknown costs are not included (some services bill answers that never arrived), and discounts for
cached prompts are not subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError

from guieval.actions import Frozen
from guieval.data.shipped import config_folder
from guieval.errors import UsageError, first_problem
from guieval.steps import Patch, Sample, StepRecord, Usage

if TYPE_CHECKING:
    from guieval.journal import RunFolder
    from guieval.metrics.columns import Judged, RunColumns

UNREPORTED_LIMIT = 10
"""Number of answers without token counts after which a budget cannot be enforced."""
COSTED_STEPS = 1000
"""The number of steps that a cost is given for, since a single step costs a fraction of a cent."""


def _new(record: StepRecord) -> Iterator[Sample | Patch]:
    """What of a record was paid for and is in no earlier record of the step."""
    yield from record.retried
    yield from (sample for number, sample in enumerate(record.samples) if number not in record.earlier)
    if record.patch is not None and record.patch.responses:
        yield record.patch


@dataclass
class Tokens:
    """Tokens as reported by the servers, of every response that has to be paid.

    ``reported`` of ``answers`` responses came with both counts; the sums are over those. ``others`` of them are besides the
    response: looks of computer-use models, and attempts that could not be used.
    """

    answers: int = 0
    reported: int = 0
    prompt: int = 0
    completion: int = 0
    others: int = 0

    def add(self, record: StepRecord) -> None:
        """Add the responses of a record, except those that were counted with an earlier record of the step."""
        for part in _new(record):
            for usage in part.responses:
                self.count(usage)
            self.others += len(part.other_usage)

    def count_other(self, usage: Usage) -> None:
        """Add one response besides the answer."""
        self.others += 1
        self.count(usage)

    def count(self, usage: Usage | None) -> None:
        """Add one response."""
        self.answers += 1
        if usage is not None and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.reported += 1
            self.prompt += usage.prompt_tokens
            self.completion += usage.completion_tokens

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Price(Frozen):
    """The price of the models that match one of ``models``, in ``currency`` per million tokens."""

    models: tuple[str, ...] = Field(min_length=1, description="names as sent to the server; * matches any characters")
    currency: str = Field(min_length=1)
    input: float = Field(ge=0, allow_inf_nan=False, description="per million prompt tokens")
    output: float = Field(ge=0, allow_inf_nan=False, description="per million completion tokens")
    source: str = Field(min_length=1, description="source of the price")
    as_of: str = Field(min_length=1, description="date of the price")
    notes: str = ""

    def cost(self, tokens: Tokens) -> float | None:
        """The cost of ``tokens`` in :attr:`currency`; ``None`` if no server reported any.

        Answers without token counts are assumed to cost the average of the others.
        """
        if not tokens.answers:
            return 0.0
        if not tokens.reported:
            return None
        reported = (tokens.prompt * self.input + tokens.completion * self.output) / 1e6
        return reported * tokens.answers / tokens.reported


def read_prices(file: Path | None = None) -> tuple[Price, ...]:
    """The prices in a YAML file, a list of :class:`Price`; without a file, the shipped ones.

    Raises :class:`UsageError` that names the wrong entry and field.
    """
    return _shipped() if file is None else _read(file)


@cache
def _shipped() -> tuple[Price, ...]:
    return _read(config_folder() / "prices.yaml")


def _read(path: Path) -> tuple[Price, ...]:
    from guieval.data.user_files import read_values

    entries = read_values(path, "the price file", texts=True)  # keeps the spelling of dates
    if not isinstance(entries, list):
        raise UsageError(
            f"the price file {str(path)!r} must hold a list of prices, like configs/prices.yaml (docs/campaigns.md)"
        )
    prices = []
    for number, entry in enumerate(entries, 1):
        try:
            prices.append(Price.model_validate(entry))
        except ValidationError as error:
            problem = first_problem(error, Price)
            field = problem.field or "(whole entry)"
            raise UsageError(f"{str(path)!r}, price {number}, field {field}: {problem.sentence}") from None
    return tuple(prices)


def find_price(prices: Iterable[Price], names: Sequence[str]) -> Price | None:
    """The price of the first of ``names`` that has one, ignoring case."""
    known = list(prices)
    for name in names:
        for price in known:
            if any(fnmatchcase(name.lower(), pattern.lower()) for pattern in price.models):
                return price
    return None


def amount(value: float, currency: str) -> str:
    """An amount as text."""
    return f"{value:,.{digits(value)}f} {currency}"


def digits(value: float) -> int:
    """The decimals of an amount of money: two, or more for small ones."""
    return 2 if value >= 1 or not value else 4 if value >= 0.01 else 6


class RunCost(NamedTuple):
    """What a run spent, and the price of its model, if one is known."""

    tokens: Tokens
    price: Price | None


def bill(tokens: Tokens, price: Price | None) -> dict[str, Any]:
    """A run's tokens and cost as JSON, over all responses in its journal, including those to repeated steps."""
    value = price.cost(tokens) if price is not None else None
    return {
        "answers": tokens.answers,
        "told": tokens.reported,
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "amount": value,
        "estimated": value is not None and tokens.reported < tokens.answers,
        "price": None if price is None else price.model_dump(mode="json", exclude={"models"}),
        **({"others": tokens.others} if tokens.others else {}),
    }


def describe(bill: Mapping[str, Any]) -> str | None:
    """A bill in one sentence; ``None`` for a run without answers."""
    answers, reported, price = bill["answers"], bill["told"], bill["price"]
    if not answers:
        return None
    if not reported:
        return f"counts not reported (0 of {answers:,} answers)"
    among = "" if reported == answers else f", reported for {reported:,} of {answers:,} answers"
    if others := bill.get("others"):  # absent from the records of earlier versions
        among += f", {others:,} of {answers:,} responses beside the answers"
    tokens = f"{bill['prompt_tokens']:,} tokens in, {bill['completion_tokens']:,} out{among}"
    if price is None:
        return tokens
    about = "about " * bill["estimated"]
    return f"{about}{amount(bill['amount'], price['currency'])} ({tokens}; prices as of {price['as_of']})"


class CostLimit:
    """Stops requests before the estimated cost of finished requests and those in flight exceeds ``limit``.

    ``limit`` is in the price's currency and for all runs of one command, including their earlier sessions.
    """

    def __init__(self, limit: float, price: Price) -> None:
        self.limit = limit
        self.price = price
        self._before = Tokens()

    def close(self, tokens: Tokens) -> None:
        """Add a finished run."""
        self._before = self._before + tokens

    def spent(self, tokens: Tokens) -> float | None:
        """The cost of all runs so far, including the current one's ``tokens``; ``None`` if no server reports tokens."""
        return self.price.cost(self._before + tokens)

    def reached(self, tokens: Tokens, in_flight: int) -> str | None:
        """Why no more requests may be sent, in one sentence; ``None`` while the budget allows more.

        ``in_flight`` counts the requests whose answers are still to come. Each is assumed to cost the average of the answers,
        so before the first answer it costs nothing.
        """
        total = self._before + tokens
        spent = self.price.cost(total)
        if spent is None:
            if total.answers < UNREPORTED_LIMIT:
                return None
            return f"the server reports no token counts, so the budget of {self._amount(self.limit)} cannot be kept"
        ahead = replace(total, answers=total.answers + in_flight) if total.reported else total
        if (self.price.cost(ahead) or 0.0) < self.limit:
            return None
        return (
            f"the budget of {self._amount(self.limit)} is used up "
            f"({self._amount(spent)} spent, {in_flight:,} requests in flight)"
        )

    def _amount(self, value: float) -> str:
        return amount(value, self.price.currency)


@dataclass(frozen=True)
class Spending:
    """Mean tokens per step over the ``steps`` steps with known tokens, of the ``reached`` ones that the mode reaches.

    Tokens are of all samples of a step. ``cost`` is that of :data:`COSTED_STEPS` steps in ``currency``, at prices of ``as_of``;
    ``None`` without a price. Of an online run, a step is a whole task.
    """

    prompt_tokens: float
    completion_tokens: float
    steps: int
    reached: int
    cost: float | None = None
    currency: str | None = None
    as_of: str | None = None

    @property
    def tokens(self) -> float:
        """Tokens per step, of prompt and response together."""
        return self.prompt_tokens + self.completion_tokens


def spending(columns: RunColumns, judged: Judged, price: Price | None) -> Spending | None:
    """The spending over the steps that ``judged`` reaches; ``None`` if no server reported the tokens of any."""
    if columns.prompt_tokens is None or columns.completion_tokens is None:
        return None
    known = judged.reached & (columns.prompt_tokens >= 0) & (columns.completion_tokens >= 0)
    steps = int(known.sum())
    if not steps:
        return None
    prompt, completion = (int(each[known].sum()) for each in (columns.prompt_tokens, columns.completion_tokens))
    total = None if price is None else price.cost(Tokens(steps, steps, prompt, completion))
    return Spending(
        prompt_tokens=prompt / steps,
        completion_tokens=completion / steps,
        steps=steps,
        reached=int(judged.reached.sum()),
        cost=None if total is None else COSTED_STEPS * total / steps,
        currency=None if price is None else price.currency,
        as_of=None if price is None else price.as_of,
    )


def mean_spending(of: Sequence[Spending]) -> Spending | None:
    """The mean over repeats, whose steps are counted together; ``None`` without any."""
    if not of:
        return None
    steps, costs = sum(each.steps for each in of), [each.cost for each in of if each.cost is not None]
    return replace(
        of[0],
        prompt_tokens=sum(each.prompt_tokens * each.steps for each in of) / steps,
        completion_tokens=sum(each.completion_tokens * each.steps for each in of) / steps,
        steps=steps,
        reached=sum(each.reached for each in of),
        cost=sum(costs) / len(costs) if costs else None,
    )


def price_of_run(run: RunFolder, prices: Sequence[Price] = ()) -> Price | None:
    """The price of a run's model: among ``prices``, else the one that the run recorded."""
    manifest = run.manifest
    model = manifest.model.model_extra or {}
    names = [manifest.config.server.served_model, model.get("served_as"), manifest.model.hf_id, manifest.model_name]
    if "grounder" in (manifest.options or {}):  # two models, of which the planner's price is not that of both
        names = names[-1:]
    return find_price(prices, [name for name in names if isinstance(name, str)]) or _recorded_price(run)


def _recorded_price(run: RunFolder) -> Price | None:
    try:
        return Price.model_validate({**run.stored["cost"]["price"], "models": [run.manifest.model_name]})
    except (KeyError, TypeError, ValidationError):
        return None
