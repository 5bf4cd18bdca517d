"""What a request costs besides its response: every response that is received has to be paid, whether it can be used or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from guieval.errors import Halted
from guieval.steps import Usage


def _uncounted(usage: Usage) -> None:
    """Functions of the module, unlike lambdas, go to other processes with their request."""


def _never() -> None:
    """Nothing halts the requests."""


@dataclass
class Bill:
    """The token usage of each response to one request that is not its answer, in the order in which they came.

    An engine adds to it: an attempt that came back and could not be used, a look of a computer-use model. ``count`` is called
    with each at once. ``halted`` says why no more may be sent, in one sentence, and is ``None`` while more may be. ``model`` is
    set for a stage of a composition, and each is marked with it.
    """

    count: Callable[[Usage], None] = _uncounted
    halted: Callable[[], str | None] = _never
    others: list[Usage] = field(default_factory=list)
    model: str | None = None

    def of(self, model: str) -> Bill:
        """The same bill for a stage that ``model`` answers."""
        return replace(self, model=model)

    def marked(self, usage: Usage) -> Usage:
        """The usage with the stage's model, if this is a stage's bill."""
        return usage if self.model is None else usage.model_copy(update={"model": self.model})

    def add(self, usage: Usage) -> None:
        usage = self.marked(usage)
        self.others.append(usage)
        self.count(usage)

    def check(self) -> None:
        """Raise :class:`guieval.errors.Halted` if no more may be sent for a request that was paid for already."""
        if self.others and (reason := self.halted()) is not None:
            raise Halted(f"this step was paid for {len(self.others)} times and not asked again: {reason}")
