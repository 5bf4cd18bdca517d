"""One run under every protocol: a journal becomes columns of scored steps.

Answers are read once; no model is queried. :mod:`guieval.metrics` computes metrics from the columns, and
:mod:`guieval.reports` shows them.
"""

from guieval.scoring.matrix.answers import ALL, JudgedAnswers, judge_answers, judge_run, protocols_for
from guieval.scoring.matrix.disagreements import Disagreement, agreeing, disagreements, disputed
from guieval.scoring.matrix.own_sets import Placed, on_own_sets

__all__ = [
    "ALL",
    "Disagreement",
    "JudgedAnswers",
    "Placed",
    "agreeing",
    "disagreements",
    "disputed",
    "judge_answers",
    "judge_run",
    "on_own_sets",
    "protocols_for",
]
