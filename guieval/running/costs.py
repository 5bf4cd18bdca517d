"""The cost of a run: the tokens that servers reported, times a table of prices.

A price has a date and a source, and both are shown with every amount. Every response whose tokens were stated is paid, whether
it could be used or not. Unknown costs are not included (some services bill answers that never arrived), and discounts for
cached prompts are not subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pydantic import Field, ValidationError

from guieval.actions import Frozen
from guieval.data.shipped import config_folder
from guieval.errors import UsageError, first_problem
from guieval.models.composition import checkpoints
from guieval.registry import model_configs
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
    response: looks of computer-use models, and attempts that could not be used. ``models`` has those of each model of a
    composition, by its name.
    """

    answers: int = 0
    reported: int = 0
    prompt: int = 0
    completion: int = 0
    others: int = 0
    models: dict[str, Tokens] = field(default_factory=dict)

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
        if usage is not None and usage.model is not None:
            self.models.setdefault(usage.model, Tokens()).count(usage.model_copy(update={"model": None}))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.answers + other.answers,
            self.reported + other.reported,
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.others + other.others,
            {**self.models, **{name: self.models.get(name, Tokens()) + own for name, own in other.models.items()}},
        )


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

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"models"})


class PriceByModel(Frozen):
    """The prices of a composition's models by their names, all in one currency."""

    models: dict[str, Price] = Field(min_length=2)

    @property
    def currency(self) -> str:
        return next(iter(self.models.values())).currency

    @property
    def as_of(self) -> str:
        return ", ".join(dict.fromkeys(price.as_of for price in self.models.values()))

    def cost(self, tokens: Tokens) -> float | None:
        """The sum of the models' costs; ``None`` if some tokens are of none of them, as in journals of earlier versions."""
        marked = sum(tokens.models.values(), Tokens())
        unmarked = (marked.prompt, marked.completion) != (tokens.prompt, tokens.completion)
        if unmarked or not tokens.models.keys() <= self.models.keys():
            return None
        costs = [self.models[name].cost(own) for name, own in tokens.models.items()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) and (known or not tokens.answers) else None

    def mean(self, names: Sequence[str]) -> Price:
        """The price of a request when equally many go to each of ``names``, one for each stage."""
        prices = [self.models[name] for name in names]
        sides = {side: sum(getattr(price, side) for price in prices) / len(prices) for side in ("input", "output")}
        return prices[0].model_copy(update={**sides, "as_of": self.as_of})

    def to_json(self) -> dict[str, Any]:
        """The prices as a run records them."""
        models = {name: price.to_json() for name, price in self.models.items()}
        return {"currency": self.currency, "as_of": self.as_of, "models": models}


AnyPrice: TypeAlias = Price | PriceByModel
"""What a run's tokens cost: the price of its model, or those of each model of a composition."""


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


def find_prices(prices: Iterable[Price], names: Mapping[str, Sequence[str]]) -> dict[str, Price | None]:
    """For each model the price of the first of its ``names`` that has one."""
    known = list(prices)
    return {model: find_price(known, of_model) for model, of_model in names.items()}


def price_of_all(found: Mapping[str, Price | None]) -> AnyPrice | None:
    """The price of a run whose models have those ``found``; ``None`` if one has none, or currencies differ."""
    prices = {model: price for model, price in found.items() if price is not None}
    if len(prices) < len(found) or len({price.currency for price in prices.values()}) != 1:
        return None
    return PriceByModel(models=prices) if len(prices) > 1 else next(iter(prices.values()))


def amount(value: float, currency: str) -> str:
    """An amount as text."""
    return f"{value:,.{digits(value)}f} {currency}"


def digits(value: float) -> int:
    """The decimals of an amount of money: two, or more for small ones."""
    return 2 if value >= 1 or not value else 4 if value >= 0.01 else 6


class RunCost(NamedTuple):
    """What a run spent, and the price of its model, if one is known."""

    tokens: Tokens
    price: AnyPrice | None


def bill(tokens: Tokens, price: AnyPrice | None) -> dict[str, Any]:
    """A run's tokens and cost as JSON, over all responses in its journal, including those to repeated steps.

    ``models`` has the same for each model of a composition.
    """
    value = price.cost(tokens) if price is not None else None
    of_models = price.models if isinstance(price, PriceByModel) else {}
    models = {name: bill(own, of_models.get(name)) for name, own in tokens.models.items()} if len(tokens.models) > 1 else {}
    return {
        "answers": tokens.answers,
        "told": tokens.reported,
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "amount": value,
        "estimated": value is not None and tokens.reported < tokens.answers,
        "price": None if price is None else price.to_json(),
        **({"others": tokens.others} if tokens.others else {}),
        **({"models": models} if models else {}),
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
    if price is None or bill["amount"] is None:
        return tokens
    about = "about " * bill["estimated"]
    each = [f"{name} {amount(own['amount'], price['currency'])}" for name, own in bill.get("models", {}).items()]
    of_models = f"; {', '.join(each)}" * bool(each)
    return f"{about}{amount(bill['amount'], price['currency'])} ({tokens}{of_models}; prices as of {price['as_of']})"


class CostLimit:
    """Stops requests before the estimated cost of finished requests and those in flight exceeds ``limit``.

    ``limit`` is in the price's currency and for all runs of one command, including their earlier sessions.
    """

    def __init__(self, limit: float, price: AnyPrice) -> None:
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
        if spent * (1 + in_flight / total.answers if total.answers else 1) < self.limit:
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


def spending(columns: RunColumns, judged: Judged, price: AnyPrice | None) -> Spending | None:
    """The spending over the steps that ``judged`` reaches; ``None`` if no server reported the tokens of any."""
    if columns.prompt_tokens is None or columns.completion_tokens is None:
        return None
    known = judged.reached & (columns.prompt_tokens >= 0) & (columns.completion_tokens >= 0)
    steps = int(known.sum())
    if not steps:
        return None
    prompt, completion = (int(each[known].sum()) for each in (columns.prompt_tokens, columns.completion_tokens))
    sums = {name: tokens[known].sum(axis=0).tolist() for name, tokens in columns.tokens_by_model.items()}
    models = {name: Tokens(steps, steps, *both) for name, both in sums.items()}
    total = None if price is None else price.cost(Tokens(steps, steps, prompt, completion, models=models))
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


def price_of_run(run: RunFolder, prices: Sequence[Price] = ()) -> AnyPrice | None:
    """The price of a run's model, or of each model of a composition: among ``prices``, else the one that the run recorded."""
    manifest = run.manifest
    model, server = manifest.model.model_extra or {}, manifest.config.server
    first, *others = checkpoints(manifest.model_name)
    given = {first: [server.served_model, model.get("served_as"), manifest.model.hf_id, first]}
    for name in others:
        listed = model_configs().get(name)
        given[name] = [server.grounder_served_model, *((listed.served_as, listed.hf_id) if listed else ()), name]
    found = find_prices(prices, {model: [name for name in names if isinstance(name, str)] for model, names in given.items()})
    recorded = _recorded_prices(run)
    return price_of_all({model: price or recorded.get(model) for model, price in found.items()}) or recorded.get(None)


def _recorded_prices(run: RunFolder) -> dict[str | None, Price]:
    """The prices that a run recorded, by the names of a composition's models; ``None`` is the name of any other's model."""
    try:
        recorded = run.stored["cost"]["price"]
        of_models = recorded.get("models", {None: recorded})
        return {name: Price.model_validate({**price, "models": [name or "*"]}) for name, price in of_models.items()}
    except (KeyError, TypeError, ValidationError, AttributeError):
        return {}
