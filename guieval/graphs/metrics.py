"""The metrics of tasks over what :mod:`guieval.graphs.environment` counts: the way taken, and actions without an edge."""

from __future__ import annotations

from guieval.metrics.tasks import TaskMetric

METRICS = (
    TaskMetric("path progress", "done part of the shortest path", "path progress", "tasks with a way", "walks", spans=True),
    TaskMetric(
        "wasted steps",
        "steps of successes beyond the shortest path",
        "wasted steps",
        "steps of successes",
        "steps of walked successes",
        better="less",
    ),
    TaskMetric("off the graph", "actions that no edge fits", "misses", "actions", "actions", better="less"),
    TaskMetric("recovered", "wrong turns after which the goal was as near again", "recovered", "wrong turns", "wrong turns"),
    TaskMetric("several edges", "actions that several edges fit", "several edges", "actions", "actions", better=None),
    TaskMetric("free waits", "actions without an edge that took a wait", "free waits", "actions", "actions", better=None),
)
