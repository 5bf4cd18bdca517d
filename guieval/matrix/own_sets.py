"""Each protocol on the steps that its published numbers count, where the answers hold all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from guieval.errors import UsageError
from guieval.evaluation import Figure, Protocol
from guieval.matrix.answers import JudgedAnswers, Part
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.figures import FigureValue, figures_of, terms
from guieval.metrics.intervals import Interval, quoted
from guieval.selection import Choice


@dataclass(frozen=True, eq=False)
class Placed:
    """A protocol and the steps it is looked at on.

    ``sample_set`` is its own set for the data set, if it has one, and ``held`` whether these steps are that set; otherwise they
    are what was asked for, or all that was run. ``columns`` hold the protocol, and perhaps others on the same steps.
    """

    protocol: Protocol
    part: Part
    columns: RunColumns
    sample_set: str | None = None
    held: bool = False

    @property
    def judged(self) -> Judged:
        """What the protocol says of the steps."""
        return self.columns.judged[self.protocol.name]

    @cached_property
    def figures(self) -> list[tuple[Figure, FigureValue, Interval | None]]:
        """The protocol's own figures on the steps, each with its interval over episodes."""
        return [
            (figure, value, quoted(*terms(figure, self.protocol.failure, self.columns, self.judged)))
            for figure, value in figures_of(self.protocol, self.columns)
        ]


def on_own_sets(answers: JudgedAnswers, choice: Choice | None = None) -> list[Placed]:
    """Every protocol that judged, in order; a ``choice`` that asks for certain steps holds for all of them."""
    asked = answers.part(choice)
    common = answers.columns_of(asked)
    fixed = choice is not None and choice.narrows
    found: dict[str, tuple[Part, RunColumns] | None] = {}
    placed: list[Placed] = []
    for evaluator in answers.evaluators:
        protocol = evaluator.protocol
        name = None if fixed else protocol.sample_sets.get(answers.dataset)
        if name is not None and name not in found:
            part = _whole(answers, name)
            mine = [each.protocol.name for each in answers.evaluators if each.protocol.sample_sets.get(answers.dataset) == name]
            found[name] = None if part is None else (part, answers.columns_of(part, mine))
        own = found[name] if name is not None else None
        part, columns = (asked, common) if own is None else own
        placed.append(Placed(protocol, part, columns, name, own is not None))
    return placed


def _whole(answers: JudgedAnswers, sample_set: str) -> Part | None:
    try:
        part = answers.part(Choice(sample_set=sample_set))
    except UsageError:  # the set is not all there, or of a form that these answers cannot tell
        return None
    return part if answers.hold(part.plan) else None
