"""The decisions of a model at a step over many samples: what they are, how diverse, and how stable.

Executions (:mod:`guieval.analysis.decisions.executions`) are clustered into decisions
(:mod:`guieval.analysis.decisions.clustering`), which are measured (:mod:`guieval.analysis.decisions.measures`), compared
between two runs (:mod:`guieval.analysis.decisions.shifts`) and repeated under other radii
(:mod:`guieval.analysis.decisions.sensitivity`).

Source: GUIEvalKit paper, section 5 and appendices C, D.2, E and F.
"""

from guieval.analysis.decisions.clustering import UNDECIDED, Cluster, ClusterSettings, Decisions, cluster, decide
from guieval.analysis.decisions.executions import StepExecutions, read_executions
from guieval.analysis.decisions.measures import DecisionColumns, Estimate, measure, pass_at
from guieval.analysis.decisions.sensitivity import Sensitivity, sensitivity
from guieval.analysis.decisions.shifts import Shifts, shift

__all__ = [
    "UNDECIDED",
    "Cluster",
    "ClusterSettings",
    "DecisionColumns",
    "Decisions",
    "Estimate",
    "Sensitivity",
    "Shifts",
    "StepExecutions",
    "cluster",
    "decide",
    "measure",
    "pass_at",
    "read_executions",
    "sensitivity",
    "shift",
]
