"""``guieval study graphs``: what a run in a graph of recorded screens says beyond the metrics of all runs of tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, print_json, show
from guieval.errors import UsageError
from guieval.graphs.environment import LEFT_OUT
from guieval.journal import RunFolder
from guieval.metrics.measured import Measured, share_of
from guieval.reports.tables.table import Number, Table, columns
from guieval.steps import Outcome


def graphs(
    directory: Annotated[Path, path_argument("RUN", "A run in mode graph.")],
    json: JSON = False,
) -> None:
    """Count a graph run's misses by type of action, and the abilities that its milestones test, as ColorBench's scorer does."""
    found = dict(_shares(RunFolder(directory)))
    if json:
        print_json({"directory": directory, "shares": {name: [each.count, each.n] for name, each in found.items()}})
        return
    rows = tuple((name, Number(each, show_n=True)) for name, each in found.items())
    show(Table("Of a graph run", columns("", "share"), rows))


def _shares(run: RunFolder) -> Iterator[tuple[str, Measured]]:
    found: dict[str, Outcome] = {}
    for record in run.tasks:  # of several records of a task the last one
        if (outcome := record.samples[0].outcome) is not None:
            found[record.task.episode_id] = outcome
    if not any("actions" in outcome.score.counts for outcome in found.values()):
        raise UsageError(f"{str(run.directory)!r} has no finished task in a graph of recorded screens; --mode graph makes some")
    scores = [outcome.score for outcome in found.values()]
    in_means = [score for score in scores if LEFT_OUT not in score.counts]
    yield "successes of all planned tasks", share_of(sum(score.success for score in scores), len(run.plan), "tasks")
    if in_means:
        mean = sum(score.progress for score in in_means) / len(in_means)
        yield "mean progress of finished tasks", Measured(mean, len(in_means), "tasks", count=mean * len(in_means))
    sums: Counter[str] = Counter()
    for score in scores:
        sums.update(score.counts)
    for kind in sorted(name.removesuffix(": actions") for name in sums if name.endswith(": actions")):
        yield f"misses of {kind}", share_of(round(sums[f"{kind}: misses"]), round(sums[f"{kind}: actions"]), "actions")
    for name in sorted(name.removesuffix(": of") for name in sums if name.startswith("ability ") and name.endswith(": of")):
        yield name, share_of(round(sums[f"{name}: reached"]), round(sums[f"{name}: of"]), "milestones")
