"""GUICourse's results: responses alone, to be read by the adapter of the model.

Source: RUCBM/GUICourse@a6dd4c3 ``results/minicpm_guiagent_*.json``, ``evaluation/process_results.py``. A row has ``uid``, a
prompt and the response ``pred``. Labels are in the data set's own files, which no loader of guieval reads; ``--bench episodes``
takes them from a file of one's own. ``uid_episode_<id>_step_<n>`` and ``uid_record_<id>_step_<n>`` name an episode and its
step; every other uid is an episode of one step, by its text after ``uid_``.

Places are in thousandths in all published files (``position_format`` ``related_version1``). The evaluation knows other formats,
in which a response means another place, so their rows are refused.
"""

from __future__ import annotations

import re

from guieval.exchange.predictions.predicted import Format, Predicted
from guieval.exchange.predictions.rows import PredictionRow

THOUSANDTHS = "related_version1"
_STEP = re.compile(r"(?:episode|record)_(.+)_step_([0-9]{1,6})")


def _read(row: PredictionRow) -> Predicted:
    if row.text("position_format") != THOUSANDTHS:
        raise row.error("position_format", f"expected {THOUSANDTHS}, got {row.text('position_format')!r:.80}")
    uid = row.text("uid").removeprefix("uid_")
    step = _STEP.fullmatch(uid)
    if not uid:
        raise row.error("uid", "is empty")
    episode, index = (uid, 0) if step is None else (step[1], int(step[2]))
    return Predicted("", "", episode, index, response=row.text("pred"))


GUICOURSE = Format(
    "guicourse",
    "GUICourse's results: responses, whose labels a benchmark has to supply",
    frozenset({"uid", "image_id", "prompt", "pred", "position_format"}),
    lambda rows, steps: _read,
)
