"""Steps with a model's parsed answer and the label apart, as they are kept from LZ-Dong/AgentCPM-GUI-Evaluation.

Source: LZ-Dong/AgentCPM-GUI-Evaluation ``cot_eval/data``, whose own files are of the format ``agentcpm``; a row here keeps
the annotation under ``ground_truth`` (AITW's fields, without boxes and paths), the action object under
``source_parsed_prediction`` (null: the answer was not kept, so the row is no answer), and the names of ``benchmark`` and
``model``. The benchmark is named as by AgentCPM-GUI, in brackets: ``CAGUI (chinese_app_test)``. AiTZ's subset is not kept, so
it is "" here.
"""

from __future__ import annotations

import re

from guieval.scoring.predictions.aitw import HOMES, Home, labelled_step
from guieval.scoring.predictions.compact import KIT_KEYS, compact_action
from guieval.scoring.predictions.predicted import NO_BOXES, Format, Predicted
from guieval.scoring.predictions.rows import Row

_DATA = re.compile(r".*\((\w+)\)")
_HOMES: dict[str, Home] = {
    "chinese_app_test": HOMES["domestic"],
    "android_control_high_test": HOMES["android_control"],
    "android_control_low_test": HOMES["android_control"]._replace(benchmark="androidcontrol-low"),
    "aitz_test": Home("aitz", "aitz", ""),
    "gui_odyssey_test": HOMES["gui_odyssey"],
}


def _read(row: Row) -> Predicted | None:
    named = _DATA.fullmatch(row.text("benchmark"))
    if named is None or named[1] not in _HOMES:
        raise row.error(
            "benchmark", f"expected a name in brackets among {', '.join(_HOMES)}, got {row.text('benchmark')!r:.80}"
        )
    task = labelled_step(row.row("ground_truth"), _HOMES[named[1]])
    prediction = row.value("source_parsed_prediction")
    if prediction is None:
        return None
    return Predicted.of(task, lambda: compact_action(prediction, KIT_KEYS, label=task.action))


FORMAT = Format(
    "lz-dong",
    "steps of LZ-Dong's evaluation of AgentCPM-GUI, label and parsed answer apart",
    frozenset({"ground_truth", "source_parsed_prediction"}),
    lambda rows, steps: _read,
    assumed=(NO_BOXES,),
)
