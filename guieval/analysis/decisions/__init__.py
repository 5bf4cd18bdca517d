"""The decisions of a model at a step over many samples: what they are, how diverse, and how stable.

Executions (:mod:`guieval.analysis.decisions.executions`) are clustered into decisions
(:mod:`guieval.analysis.decisions.clustering`), which are measured (:mod:`guieval.analysis.decisions.measures`), compared
between two runs (:mod:`guieval.analysis.decisions.shifts`) and repeated under other radii
(:mod:`guieval.analysis.decisions.sensitivity`).

Source: GUIEvalKit paper, section 5 and appendices C, D.2, E and F.
"""
