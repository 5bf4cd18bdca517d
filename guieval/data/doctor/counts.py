"""Compares a benchmark's published counts with the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from guieval.actions import ActionType
from guieval.data.benchmark import PublishedCount

Verdict: TypeAlias = Literal["agrees", "part", "differs", "absent"]


@dataclass
class Counts:
    """Steps and episodes of the data, by all properties that a published count may select."""

    steps: Counter[tuple[str, str, frozenset[tuple[str, str]], str]] = field(default_factory=Counter)
    episodes: Counter[tuple[str, str, frozenset[frozenset[tuple[str, str]]]]] = field(default_factory=Counter)

    def add(self, split: str, subset: str, steps: Iterable[tuple[Mapping[str, str], str]]) -> None:
        """Count an episode, given by the groups and the action types of its steps."""
        kinds = [(frozenset(groups.items()), action_type) for groups, action_type in steps]
        self.episodes[split, subset, frozenset(groups for groups, _ in kinds)] += 1
        for groups, action_type in kinds:
            self.steps[split, subset, groups, action_type] += 1


@dataclass(frozen=True)
class CountComparison:
    """A published count and the data's; ``types`` has the action types whose numbers differ: (in the data, published)."""

    published: PublishedCount
    episodes: int
    steps: int
    types: Mapping[ActionType, tuple[int, int]]

    @property
    def verdict(self) -> Verdict:
        """``part`` if the data has fewer steps than published (fewer episodes, if only these are), ``differs`` if it has as
        many or more but other counts."""
        published = self.published
        pairs = [(self.steps, published.steps), (self.episodes, published.episodes)]
        known = [(found, expected) for found, expected in pairs if expected is not None]
        if all(found == expected for found, expected in known) and not self.types:
            return "agrees"
        if not self.steps:
            return "absent"
        if all(found <= expected for found, expected in known) and known[0][0] < known[0][1]:
            return "part"
        return "differs"

    @property
    def numbers(self) -> str:
        """The data's counts of the part, and the differences from the published ones."""
        published = self.published
        parts: list[str] = []
        if published.episodes is not None:
            parts.append(_of(self.episodes, published.episodes, "episode"))
        parts.append(counted(self.steps, "step") if published.steps is None else _of(self.steps, published.steps, "step"))
        if self.verdict == "differs":
            parts += [f"{number:,} {name} instead of {expected:,}" for name, (number, expected) in self.types.items()]
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.published.name}: {self.numbers} ({self.published.source})"


def counted(number: int, noun: str) -> str:
    """A number with its noun, e.g. ``1 step`` or ``1,272 steps``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size_of(published: PublishedCount) -> str:
    """The published size of a part: its episodes and steps, in words."""
    sizes = ((published.episodes, "episode"), (published.steps, "step"))
    return ", ".join(counted(number, noun) for number, noun in sizes if number is not None)


def _of(number: int, published: int, noun: str) -> str:
    if number == published:
        return counted(number, noun)
    if number < published:
        return f"{number:,} of {counted(published, noun)}"
    return f"{counted(number, noun)} instead of {published:,}"


def compare(published: Iterable[PublishedCount], counts: Counts) -> tuple[CountComparison, ...]:
    """Compare every published part with the data; if several counts are published for a part, the nearest is used.

    Layouts of one data set can differ, e.g. with or without AndroidControl's finish steps.
    """
    by_part: dict[tuple[str | None, str | None, frozenset[tuple[str, str]]], list[CountComparison]] = {}
    for count in published:
        part = (count.split, count.subset, frozenset(count.groups.items()))
        by_part.setdefault(part, []).append(_comparison(count, counts))
    return tuple(min(same, key=_distance) for same in by_part.values())


def _distance(comparison: CountComparison) -> tuple[int, int, int]:
    published = comparison.published
    steps = 0 if published.steps is None else abs(comparison.steps - published.steps)
    episodes = 0 if published.episodes is None else abs(comparison.episodes - published.episodes)
    return steps, episodes, len(comparison.types)


def _comparison(published: PublishedCount, counts: Counts) -> CountComparison:
    wanted = set(published.groups.items())
    types: Counter[str] = Counter()
    for (split, subset, groups, action_type), number in counts.steps.items():
        if published.split in (None, split) and published.subset in (None, subset) and wanted <= groups:
            types[action_type] += number
    episodes = sum(
        number
        for (split, subset, kinds), number in counts.episodes.items()
        if published.split in (None, split) and published.subset in (None, subset) and any(wanted <= groups for groups in kinds)
    )
    differing = {name: (types[name], count) for name, count in published.types.items() if types[name] != count}
    return CountComparison(published, episodes, sum(types.values()), differing)
