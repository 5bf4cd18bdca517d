"""How dense a step's clicks are: the reachability plot of OPTICS, next to the radius at which DBSCAN makes decisions of them.

Source: GUIEvalKit paper, appendix C.1.3 (Figures 13 to 16); M. Ankerst, M. Breunig, H.-P. Kriegel, J. Sander, "OPTICS: ordering
points to identify the clustering structure", SIGMOD 1999.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guieval.actions import Click
from guieval.errors import UsageError
from guieval.studies.decisions.clustering import DEFAULTS, ClusterSettings, Decisions
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.points import Floats, Ints


class Reachability(NamedTuple):
    """n clicks of a step in the order of OPTICS: neighbours follow each other, and a peak begins a further cluster.

    ``points`` (n, 2) and ``distances`` (n,) are in thousandths of the screen; the first distance is infinite. ``labels`` (n,):
    the click's decision, an index into the clusters of :class:`Decisions`.
    """

    points: Floats
    distances: Floats
    labels: Ints


def reachability(executions: StepExecutions, decisions: Decisions, settings: ClusterSettings = DEFAULTS) -> Reachability:
    """scikit-learn's OPTICS without a largest radius, each click as often as it was drawn.

    ``min_samples`` and the metric are those of DBSCAN, so that clicks between two distances above ``settings.radius`` are one
    of its clusters, but for points on a cluster's border. Raises :class:`UsageError` for fewer than two clicks.
    """
    from sklearn.cluster import OPTICS

    of_clicks = [place for place, action in enumerate(executions.actions) if isinstance(action, Click)]
    rows = np.repeat(np.array(of_clicks, dtype=np.int64), executions.counts[of_clicks])
    if len(rows) < 2:
        raise UsageError(f"step {executions.task.key} has {len(rows)} click{'s' * (len(rows) != 1)}; reachability needs two")
    points = np.array([action.point for action in executions.actions if isinstance(action, Click)], dtype=np.float64)
    points = np.repeat(points, executions.counts[of_clicks], axis=0)
    least = settings.needed(len(rows))
    metric = "euclidean" if settings.metric == "l2" else "cityblock"
    # The clusters are not used; the other method divides by distances, which are 0 between equal clicks.
    found = OPTICS(min_samples=min(least, len(rows)), metric=metric, cluster_method="dbscan").fit(points)
    order = found.ordering_
    return Reachability(points[order], found.reachability_[order], decisions.labels[rows][order])
