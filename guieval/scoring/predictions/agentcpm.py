"""AgentCPM-GUI's ``predict.jsonl`` and ``all.jsonl``: the annotation of a step with the answer under ``pred``.

Source: OpenBMB/AgentCPM-GUI ``eval/run_predict_*.py`` (which writes the rows for its own and for other models),
``eval/utils/convert_output.py`` and ``eval/run_eval_agent.py``; a second layout that ``convert_output.py`` takes has one
episode a row, its steps under ``steps``, and is refused here. LZ-Dong/AgentCPM-GUI-Evaluation keeps the same rows.

A row: ``episode_id``, ``step_id``, ``category`` (the folder of episodes: general, domestic, android_control, ...), AITW's
label fields and ``pred``, an action object, or the raw reply as a string where it was none: that, like an object that the
schema refuses, is an unparseable answer (see :mod:`.compact`). A step without a row was never predicted.
"""

from __future__ import annotations

from guieval.scoring.predictions.aitw import home, labelled_step
from guieval.scoring.predictions.compact import compact_action
from guieval.scoring.predictions.predicted import Format, Predicted
from guieval.scoring.predictions.rows import Row


def _read(row: Row) -> Predicted:
    if "steps" in row:
        raise row.error("steps", "a row that holds a whole episode is not read; expected one row for every step")
    task = labelled_step(row, home(row, "category" if "category" in row else "subset"))
    pred = row.value("pred")
    return Predicted.of(task, lambda: compact_action(pred, label=task.action))


FORMAT = Format(
    "agentcpm",
    "AgentCPM-GUI's predict.jsonl or all.jsonl",
    frozenset({"pred", "episode_id"}),
    lambda rows, steps: _read,
    one_of=frozenset({"result_action_type", "steps"}),
)
