"""Each protocol on the steps that its published numbers count, if the responses have all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from guieval.data.selection import Choice, Selection
from guieval.errors import UsageError
from guieval.evaluation import Protocol
from guieval.metrics import Measured
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.leading import leading
from guieval.scoring.matrix.answers import JudgedAnswers


@dataclass(frozen=True, eq=False)
class Placed:
    """A protocol and the steps it is looked at on.

    ``sample_set`` is its own set for the data set, if it has one, and ``held`` whether these steps are that set; otherwise they
    are the chosen steps, or all that were run. ``columns`` hold the protocol, and perhaps others on the same steps.
    """

    protocol: Protocol
    part: Selection
    columns: RunColumns
    sample_set: str | None = None
    held: bool = False

    @property
    def judged(self) -> Judged:
        return self.columns.judged[self.protocol.name]

    @cached_property
    def metrics(self) -> dict[str, Measured]:
        """Exact match over all of the steps, then the protocol's own metrics and the user's, with intervals over episodes."""
        return {each.name: each.measure(self.columns, self.judged) for each in leading(self.protocol)}


def on_own_sets(answers: JudgedAnswers, choice: Choice | None = None) -> list[Placed]:
    """Every protocol that judged, in order; a ``choice`` that asks for certain steps applies to all of them."""
    chosen = answers.part(choice)
    common = answers.columns_of(chosen)
    sets = {} if choice is not None and choice.narrows else _sets(answers)
    held: dict[str, tuple[Selection, RunColumns]] = {}
    for name in dict.fromkeys(sets.values()):
        if (part := _whole(answers, name)) is not None:
            mine = [protocol for protocol, own in sets.items() if own == name]
            held[name] = (part, answers.columns_of(part, mine))
    placed: list[Placed] = []
    for evaluator in answers.evaluators:
        own = sets.get(evaluator.protocol.name)
        part, columns = held.get(own or "", (chosen, common))
        placed.append(Placed(evaluator.protocol, part, columns, own, own in held))
    return placed


def _sets(answers: JudgedAnswers) -> dict[str, str]:
    """The sample set that a protocol's published numbers count, of those that have one for the data."""
    protocols = [evaluator.protocol for evaluator in answers.evaluators]
    named = {protocol.name: protocol.sample_sets.get(answers.answered.dataset) for protocol in protocols}
    return {protocol: sample_set for protocol, sample_set in named.items() if sample_set is not None}


def _whole(answers: JudgedAnswers, sample_set: str) -> Selection | None:
    try:
        part = answers.part(Choice(sample_set=sample_set))
    except UsageError:  # steps of the set are missing, or the answers lack the labels that define it
        return None
    return part if answers.hold(part.plan) else None
