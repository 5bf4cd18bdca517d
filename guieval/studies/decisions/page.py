"""The decisions of a rollout and of each of its steps, as the viewer's pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress
from guieval.evaluation import ActionEvaluator
from guieval.reports.server.shown_tables import clean, shown
from guieval.reports.viewer.step import action_values, clipped
from guieval.steps import StepKey, StepRecord
from guieval.studies.decisions.clustering import DEFAULTS, Cluster, ClusterSettings, decide
from guieval.studies.decisions.executions import gaps, pooled, read_executions
from guieval.studies.decisions.measures import measure
from guieval.studies.decisions.tables import run_tables

MOST_TEXTS = 20
"""Number of distinct texts per decision in the page, most frequent first."""
TEXT_SHOWN = 200
"""Limit of such a text in characters."""


def decisions_section(directory: Path) -> dict[str, Any]:
    """Diversity, stability and PASS@n of a rollout."""
    unasked: list[StepKey] = []
    found = measure(read_executions(directory, unasked=unasked), ClusterSettings(), directory.resolve().name, unasked)
    if not found.measured.any():
        return {"tables": [], "notes": ["No step of this rollout was answered yet."]}
    return {"tables": shown(*run_tables([found])), "notes": [clean(note) for note in gaps(directory)]}


def decision_values(record: StepRecord, evaluators: Sequence[ActionEvaluator]) -> dict[str, Any]:
    """The decisions of a step of several samples, most frequent first, under the published settings.

    A decision has: ``type``, its ``prototype``, ``count``, ``right`` (under each evaluator), whether it is ``alone`` (noise of
    DBSCAN), and its ``points`` ([x, y, count], thousandths of the screen) or ``texts`` ([text, count]), if it has any;
    ``different`` is the number of all distinct texts.
    """
    executions = pooled([record])
    decisions = decide(executions)
    exact = [[each.evaluate(record.task, action).exact_match for each in evaluators] for action in executions.actions]
    counts = executions.counts.tolist()
    return {
        "n": decisions.n,
        "failed": decisions.failed,
        "unparseable": decisions.unparseable,
        "unsupported": decisions.unsupported,
        "diversity": None if decisions.diversity is None else round(decisions.diversity, 4),
        "support": None if decisions.support_size is None else round(decisions.support_size, 3),
        "settings": DEFAULTS.describe(),
        "clusters": [_cluster_values(cluster, executions.actions, counts, exact) for cluster in decisions.clusters],
    }


def _cluster_values(
    cluster: Cluster, actions: Sequence[Action | None], counts: Sequence[int], exact: Sequence[Sequence[bool]]
) -> dict[str, Any]:
    members = cluster.members.tolist()
    points: list[list[float]] = []
    texts: dict[str, int] = {}
    for place in members:
        action = actions[place]
        if isinstance(action, Click | LongPress):
            points.append([round(action.point.x, 1), round(action.point.y, 1), counts[place]])
        elif (text := getattr(action, "text", None) or getattr(action, "app", None)) is not None:
            texts[text] = texts.get(text, 0) + counts[place]
    often = sorted(texts.items(), key=lambda item: -item[1])
    return {
        "type": cluster.type,
        "prototype": action_values(cluster.prototype),
        "count": cluster.count,
        "right": [sum(counts[place] for place in members if exact[place][at]) for at in range(len(exact[0]))],
        "alone": cluster.isolated,
        "points": points,
        "texts": [[clipped(text, TEXT_SHOWN), count] for text, count in often[:MOST_TEXTS]],
        "different": len(often),
    }
