"""Files whose rows carry the annotation of their step: AgentCPM-GUI's, GUIEvalKit's and LZ-Dong's.

All keep Android in the Wild's action codes and (y, x) fractions (:mod:`guieval.data.aitw_labels`) next to an action object
(:mod:`.compact`), so a step can be rebuilt from its row alone. Episodes and steps are named as our loaders name them:
GUI-Odyssey's step is the one in the image's name, because two projects split episodes again and one renumbers steps.

``agentcpm``: OpenBMB/AgentCPM-GUI ``eval/run_predict_*.py``, ``eval/utils/convert_output.py``, ``eval/utils/evaluator.py``.
The answer is under ``pred``: an action object, or the raw response if it was none, which is unparseable. ``category`` is the
folder of episodes (general, domestic, android_control, ...). ``convert_output.py`` also takes rows of whole episodes, with
``steps``; these are refused. A step without a row was never predicted.

``guievalkit``: xiaomi-research/guievalkit ``guieval/main/step_task.py``, ``guieval/main/compute.py``,
``guieval/eval/evaluator.py`` and ``data/*.py``. The answer is under ``prediction``: an action object with OPEN_APP and INPUT,
or null. ``dataset`` ``androidcontrol_low`` is our ``androidcontrol-low``. Early versions with ``pred`` are read as
AgentCPM-GUI's.

``lz-dong``: LZ-Dong/AgentCPM-GUI-Evaluation ``cot_eval/data``. The annotation is under ``ground_truth``, without boxes and
paths, the action object under ``source_parsed_prediction`` (null: the answer was not kept, so the row is not an answer). The
benchmark's name is in brackets: ``CAGUI (chinese_app_test)``. AiTZ's subset is not kept, so it is "" here.

An INPUT is a click if the label is one, otherwise typing.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from guieval.actions import Action, Boxes, LongPress
from guieval.data.aitw_labels import CODES, boxes_from_fractions, fraction_point, labelled_action
from guieval.errors import nearest
from guieval.exchange.predictions.compact import KIT_KEYS, compact_action
from guieval.exchange.predictions.predicted import NO_BOXES, Format, Predicted
from guieval.exchange.predictions.rows import PredictionRow
from guieval.steps import StepTaskModel

AITZ = ("general", "google_apps", "install", "single", "web_shopping")
_IMAGE = re.compile(r"(?:.*[/\\])?([^/\\]+?)_(\d+)\.\w+")
_IN_BRACKETS = re.compile(r".*\((\w+)\)")


class Home(NamedTuple):
    """Whose step a row is: our loader, the data set that protocols know, and the loader's subset."""

    benchmark: str
    dataset: str
    subset: str


HOMES = {
    **{name: Home("aitz", "aitz", name) for name in AITZ},
    "domestic": Home("cagui", "cagui", "domestic"),
    "android_control": Home("androidcontrol", "androidcontrol", ""),
    "odyssey": Home("gui-odyssey", "gui-odyssey", ""),
    "gui_odyssey": Home("gui-odyssey", "gui-odyssey", ""),
}
"""By the name of the folder of episodes, which AgentCPM-GUI calls category and GUIEvalKit subset."""
LZ_DONG_HOMES = {
    "chinese_app_test": HOMES["domestic"],
    "android_control_high_test": HOMES["android_control"],
    "android_control_low_test": HOMES["android_control"]._replace(benchmark="androidcontrol-low"),
    "aitz_test": Home("aitz", "aitz", ""),
    "gui_odyssey_test": HOMES["gui_odyssey"],
}


def home(row: PredictionRow, field: str) -> Home:
    """Whose step a row is, by the folder that ``field`` names."""
    name = row.text(field)
    if name not in HOMES:
        raise row.error(field, f"{name!r:.80} is none of {', '.join(HOMES)}{nearest(name, HOMES)}")
    return HOMES[name]


def place_in_episode(row: PredictionRow, of: Home) -> int:
    """The step's index, from 0."""
    if of.benchmark == "gui-odyssey" and isinstance(row.values.get("image_path"), str):
        image = _IMAGE.fullmatch(row.text("image_path"))
        if image is not None:
            return int(image[2])
    return row.whole("step_id")


def labelled_step(row: PredictionRow, of: Home) -> StepTaskModel:
    """The step that a row's annotation describes; :class:`guieval.errors.DataError` if a part is missing."""
    extras: dict[str, Any] = {}
    action = label(row, extras)
    index = place_in_episode(row, of)
    length = row.whole("episode_length", 1)
    if length <= index:  # pieces of GUI-Odyssey's episodes keep the whole one's step numbers
        extras["episode_length"] = length
    low = row.values.get("low_instruction")
    return row.task(
        benchmark=of.benchmark,
        dataset=of.dataset,
        subset=of.subset,
        episode_id=row.identity("episode_id"),
        step_index=index,
        episode_length=max(length, index + 1),
        instruction=row.text("instruction"),
        low_level_instruction=low if isinstance(low, str) and low else None,
        screenshot=_screenshot(row),
        screenshot_size=(row.whole("image_width", 1), row.whole("image_height", 1)),
        action=action,
        elements=_boxes(row),
        extras=extras,
    )


def label(row: PredictionRow, extras: dict[str, Any]) -> Action:
    """The reference action; a swipe's ends, [x, y] in [0, 1000], go into ``extras["path"]``."""
    if row.whole("result_action_type") == 0:
        return LongPress(point=fraction_point(row, "result_touch_yx"))
    return labelled_action(row, CODES, extras)


def _boxes(row: PredictionRow) -> Boxes:
    field = next((name for name in ("ui_positions", "bbox") if row.values.get(name)), None)
    return Boxes() if field is None else row.build(field, lambda: boxes_from_fractions(row.boxes(field)))


def _screenshot(row: PredictionRow) -> str:
    path = row.values.get("image_path")
    if isinstance(path, list) and path:  # GUIEvalKit allows several images
        path = path[-1]
    return path if isinstance(path, str) else ""


def _agentcpm(row: PredictionRow) -> Predicted:
    if "steps" in row:
        raise row.error("steps", "a row with a whole episode is not read; expected one row for every step")
    task = labelled_step(row, home(row, "category" if "category" in row else "subset"))
    pred = row.value("pred")
    return Predicted.of(task, lambda: compact_action(pred, label=task.action))


def _guievalkit(row: PredictionRow) -> Predicted:
    of = home(row, "subset")
    low = of.benchmark in ("androidcontrol", "gui-odyssey") and str(row.values.get("dataset")).endswith("_low")
    task = labelled_step(row, of._replace(benchmark=f"{of.benchmark}-low") if low else of)
    if low:
        task = row.task(**{**dict(task), "setting": "low"})
    prediction = row.value("prediction")
    return Predicted.of(task, lambda: compact_action(prediction, KIT_KEYS, label=task.action))


def _lz_dong(row: PredictionRow) -> Predicted | None:
    named = _IN_BRACKETS.fullmatch(row.text("benchmark"))
    if named is None or named[1] not in LZ_DONG_HOMES:
        expected = f"expected a name in brackets among {', '.join(LZ_DONG_HOMES)}"
        raise row.error("benchmark", f"{expected}, got {row.text('benchmark')!r:.80}")
    task = labelled_step(row.row("ground_truth"), LZ_DONG_HOMES[named[1]])
    prediction = row.value("source_parsed_prediction")
    if prediction is None:
        return None
    return Predicted.of(task, lambda: compact_action(prediction, KIT_KEYS, label=task.action))


GUIEVALKIT = Format(
    "guievalkit",
    "GUIEvalKit's outputs, one JSONL file for a data set",
    frozenset({"prediction", "target_action", "result_action_type"}),
    lambda rows, steps: _guievalkit,
)
AGENTCPM = Format(
    "agentcpm",
    "AgentCPM-GUI's predict.jsonl or all.jsonl",
    frozenset({"pred", "episode_id"}),
    lambda rows, steps: _agentcpm,
    one_of=frozenset({"result_action_type", "steps"}),
)
LZ_DONG = Format(
    "lz-dong",
    "steps of LZ-Dong's evaluation of AgentCPM-GUI, label and parsed answer apart",
    frozenset({"ground_truth", "source_parsed_prediction"}),
    lambda rows, steps: _lz_dong,
    assumed=(NO_BOXES,),
)
