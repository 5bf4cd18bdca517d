"""The spending of a run: tokens per step as the servers reported them, and their cost at the price of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from guieval.journal import RunFolder
from guieval.metrics.columns import Judged, RunColumns
from guieval.telemetry.costs import Price, Tokens, find_price

COSTED_STEPS = 1000
"""The number of steps that a cost is given for, since a single step costs a fraction of a cent."""


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
        """Tokens per step, of prompt and reply together."""
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


def price_of_run(run: RunFolder, prices: Sequence[Price] = ()) -> Price | None:
    """The price of a run's model: among ``prices``, else the one that the run recorded."""
    manifest = run.manifest
    model = manifest.model.model_extra or {}
    names = (manifest.config.server.served_model, model.get("served_as"), manifest.model.hf_id, manifest.model_name)
    return find_price(prices, [name for name in names if isinstance(name, str)]) or _recorded_price(run)


def _recorded_price(run: RunFolder) -> Price | None:
    try:
        return Price.model_validate({**run.stored["cost"]["price"], "models": [run.manifest.model_name]})
    except (KeyError, TypeError, ValidationError):
        return None
