"""What the page is told of a step's many samples: the decisions they come to, with every different point and text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guieval.actions import Action, Click, LongPress
from guieval.decisions.clustering import DEFAULTS, Cluster, decide
from guieval.decisions.executions import pooled
from guieval.evaluation import ActionEvaluator
from guieval.reports.viewer.step import action_values, clipped
from guieval.steps import StepRecord

MOST_TEXTS = 20
"""Different texts of one decision that the page gets, those drawn most often first."""
TEXT_SHOWN = 200
"""Characters of one of them."""


def decision_values(record: StepRecord, evaluators: Sequence[ActionEvaluator]) -> dict[str, Any] | None:
    """The decisions of a step, most frequent first, under the published settings; ``None`` for a single sample.

    Of each: ``type``, its ``prototype``, ``count``, ``right`` (under each evaluator), whether it is ``alone`` (noise of
    DBSCAN), and its ``points`` ([x, y, count], thousandths of the screen) or ``texts`` ([text, count]), if it has any;
    ``different`` says how many texts there are in all.
    """
    if len(record.samples) < 2:
        return None
    executions = pooled([record], evaluators[0])
    found = decide(executions)
    exact = [
        [bool(each)] + [one.evaluate(record.task, action).exact_match for one in evaluators[1:]]
        for action, each in zip(executions.actions, executions.exact.tolist(), strict=True)
    ]
    counts = executions.counts.tolist()
    return {
        "n": found.n,
        "failed": found.failed,
        "unparseable": found.unparseable,
        "unsupported": found.unsupported,
        "diversity": None if found.diversity is None else round(found.diversity, 4),
        "support": None if found.support_size is None else round(found.support_size, 3),
        "settings": DEFAULTS.describe(),
        "clusters": [_cluster_values(each, executions.actions, counts, exact) for each in found.clusters],
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
    often = sorted(texts.items(), key=lambda each: -each[1])
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
