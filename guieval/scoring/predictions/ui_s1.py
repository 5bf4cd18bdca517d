"""UI-S1's result files, which keep how far each episode went but no answer, so nothing in them can be scored again.

Source: X-PLUG/MobileAgent ``UI-S1/evaluation/eval_*.py``. A row: ``goal``, ``num_steps``, ``task_success`` and
``final_step_id``, the number of steps before the first mismatch. The file is refused with its own two figures in the message:
progress is the mean of ``final_step_id / num_steps`` over episodes, success the share of ``task_success``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from guieval.errors import UsageError
from guieval.scoring.predictions.predicted import Format, Rows
from guieval.steps import StepTaskModel


def _refuse(rows: Rows, steps: Iterable[StepTaskModel]) -> NoReturn:
    episodes, progress, successes = 0, 0.0, 0
    for row in rows():
        length = row.whole("num_steps", 1)
        reached = row.whole("final_step_id")
        if reached > length:
            raise row.error("final_step_id", f"expected no more than the episode's {length} steps, got {reached!r:.80}")
        episodes += 1
        progress += reached / length
        successes += row.value("task_success") is True
    if not episodes:
        raise UsageError("a result file of UI-S1 keeps no answers, so it cannot be scored")
    raise UsageError(
        "a result file of UI-S1 keeps how far each episode went but no answers, so it cannot be scored again; by its own "
        f"count, progress is {progress / episodes:.4f} and success {successes / episodes:.4f} over {episodes:,} episodes"
    )


FORMAT = Format(
    "ui-s1",
    "UI-S1's results: recognised, but they keep no answers to score",
    frozenset({"goal", "num_steps", "task_success", "final_step_id"}),
    _refuse,
)
