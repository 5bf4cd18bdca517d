"""GUIEvalKit's ``outputs/.../<dataset>.jsonl``: a step with its answer under ``prediction``.

Source: xiaomi-research/guievalkit ``guieval/main/step_task.py`` (what a row holds), ``guieval/main/compute.py`` and
``guieval/eval/evaluator.py`` (how it is scored). Rows of its early versions, with ``pred`` in place of ``prediction``, are
AgentCPM-GUI's and are read as those.

A row: ``dataset`` (androidcontrol_high, aitz, cagui_agent, gui_odyssey, ...), ``subset``, ``episode_id``, ``step_id`` (counted
from 0 within the episode's file), AITW's label fields, ``prediction`` (an action object with OPEN_APP and INPUT, or null where
the reply held none), ``target_action``, ``pred_action``, ``response`` and, where it was computed, ``evaluation``.
``androidcontrol_low`` is our ``androidcontrol-low``. An INPUT is a click where the label is one, else typing (:mod:`.compact`).
"""

from __future__ import annotations

from guieval.scoring.predictions.aitw import home, labelled_step
from guieval.scoring.predictions.compact import KIT_KEYS, compact_action
from guieval.scoring.predictions.predicted import Format, Predicted
from guieval.scoring.predictions.rows import Row


def _read(row: Row) -> Predicted:
    of = home(row, "subset")
    low = of.benchmark in ("androidcontrol", "gui-odyssey") and str(row.values.get("dataset")).endswith("_low")
    task = labelled_step(row, of._replace(benchmark=f"{of.benchmark}-low") if low else of)
    if low:
        task = row.task(**{**dict(task), "setting": "low"})
    prediction = row.value("prediction")
    return Predicted.of(task, lambda: compact_action(prediction, KIT_KEYS, label=task.action))


FORMAT = Format(
    "guievalkit",
    "GUIEvalKit's outputs, one JSONL file for a data set",
    frozenset({"prediction", "target_action", "result_action_type"}),
    lambda rows, steps: _read,
)
