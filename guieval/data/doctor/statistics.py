"""What a data set consists of: the columns of HyperTrack's Table 1 and the distributions of its Figures 9 and 10.

Source: GUIEvalKit / HyperTrack paper (arXiv 2605.27134), Table 1 and appendix A.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from guieval.actions import Open
from guieval.data.benchmark import ABCBenchmark
from guieval.data.selection import Choice, select
from guieval.errors import DataError, UsageError
from guieval.steps import StepTaskModel

_CHINESE = re.compile(r"[㐀-鿿]")


def statistics(benchmark: ABCBenchmark, sample_set: str | None = None) -> Statistics:
    """The statistics of all data, or of the steps of a sample set; no screenshot is opened, and damaged episodes are left out.

    Raises :class:`UsageError` if the folder does not have the benchmark's format or has no episode that can be read.
    """
    benchmark = benchmark.skipping_damaged()
    plan = None if sample_set is None else select(benchmark, Choice(sample_set=sample_set)).plan
    found = Statistics()
    for ref in benchmark.index():
        if plan is not None and ref.key not in plan:
            continue
        try:
            steps = benchmark.load(ref).steps
        except DataError:
            found.damaged += 1
            continue
        found.add(steps if plan is None else [steps[index] for index in plan[ref.key]])
    if not found.episodes:
        raise UsageError(f"the folder {str(benchmark.root)!r} has no episode of {benchmark.name!r} that can be read")
    return found


@dataclass
class Statistics:
    """Counts of a data set; shares are made of them when they are shown. Fill it with :meth:`add`, episode by episode."""

    episodes: int = 0
    steps: int = 0
    types: Counter[str] = field(default_factory=Counter)
    """Steps by the type of their reference action."""
    lengths: Counter[int] = field(default_factory=Counter)
    """Episodes by their number of steps."""
    apps: Counter[str] = field(default_factory=Counter)
    """Episodes by the app that the data name, else by the apps that are opened in them."""
    categories: dict[str, set[str]] = field(default_factory=dict)
    """The apps of each category that the data name."""
    category_episodes: Counter[str] = field(default_factory=Counter)
    """Episodes by category."""
    clicks: int = 0
    boxed: int = 0
    """Clicks, and those with a target's box."""
    documented: int = 0
    """Steps with the elements of their screen, as boxes or as a tree."""
    described: int = 0
    """Steps with an instruction of their own."""
    chinese: int = 0
    """Episodes whose instruction has Chinese characters."""
    damaged: int = 0
    """Episodes that could not be read, which nothing else counts."""
    extras: Counter[str] = field(default_factory=Counter)
    """Steps by the further data that they have, such as observation and tree."""

    def add(self, steps: Iterable[StepTaskModel]) -> None:
        """Count an episode, or those of its steps that are looked at."""
        steps = list(steps)
        self.episodes += 1
        self.steps += len(steps)
        self.lengths[len(steps)] += 1
        self.chinese += bool(_CHINESE.search(steps[0].instruction))
        named = {step.groups["app"] for step in steps if "app" in step.groups}
        self.apps.update(named or {step.action.app for step in steps if isinstance(step.action, Open)})
        of_category: set[str] = set()
        for step in steps:
            self.types[step.action.type] += 1
            self.clicks += step.action.type == "CLICK"
            self.boxed += step.action.type == "CLICK" and len(step.targets) > 0
            self.documented += len(step.elements) > 0 or bool(step.extras.get("tree"))
            self.described += step.low_level_instruction is not None
            self.extras.update(name for name, value in step.extras.items() if value)
            if category := step.groups.get("category"):
                of_category.add(category)
                self.categories.setdefault(category, set()).update({step.groups["app"]} if "app" in step.groups else ())
        self.category_episodes.update(of_category)

    @property
    def mean_steps(self) -> float:
        return self.steps / self.episodes

    @property
    def level(self) -> str:
        """High-level instructions alone, or low-level ones too on all or some of the steps."""
        if not self.described:
            return "high"
        return "high, low" if self.described == self.steps else "high, some low"

    def to_json(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes,
            "damaged": self.damaged,
            "steps": self.steps,
            "mean_steps": self.mean_steps,
            "apps": dict(self.apps.most_common()),
            "clicks": self.clicks,
            "clicks_with_box": self.boxed,
            "level": self.level,
            "steps_with_instruction": self.described,
            "chinese_episodes": self.chinese,
            "steps_with_elements": self.documented,
            "further_data": dict(self.extras.most_common()),
            "types": dict(self.types.most_common()),
            "lengths": {str(length): self.lengths[length] for length in sorted(self.lengths)},
            "categories": {
                name: {"episodes": count, "apps": len(self.categories[name])}
                for name, count in self.category_episodes.most_common()
            },
        }
