"""One prediction under every protocol: a journal, or a file of predictions, becomes columns of judged steps.

Answers are read once; no model is asked. Figures of the columns are :mod:`guieval.metrics`' business, how they are shown
:mod:`guieval.reports`'.
"""

from guieval.matrix.answered_files import answered_file
from guieval.matrix.answers import (
    ALL,
    JudgedAnswers,
    Part,
    judge_answers,
    judge_predictions,
    judge_run,
    protocols_for,
    score_predictions,
    score_run,
)
from guieval.matrix.disagreements import Disagreement, agreeing, disagreements, disputed
from guieval.matrix.own_sets import Placed, on_own_sets
from guieval.matrix.voting import voted

__all__ = [
    "ALL",
    "Disagreement",
    "JudgedAnswers",
    "Part",
    "Placed",
    "agreeing",
    "answered_file",
    "disagreements",
    "disputed",
    "judge_answers",
    "judge_predictions",
    "judge_run",
    "on_own_sets",
    "protocols_for",
    "score_predictions",
    "score_run",
    "voted",
]
