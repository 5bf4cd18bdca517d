"""The decisions of a model at a step over many samples: what they are, how diverse, and how stable.

Executions are clustered into decisions, which are measured, compared between two runs (:mod:`.shifts`) and repeated under other
radii (:mod:`.sensitivity`). Source: GUIEvalKit paper, section 5 and appendices C, D.2, E and F.
"""
