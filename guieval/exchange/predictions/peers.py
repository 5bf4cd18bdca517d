"""Grounding results of general harnesses: lmms-eval's samples, EvalScope's predictions and reviews, VLMEvalKit's tables.

Each asks for a point in its own prompt and keeps the response as text. Here the point is read as the harness reads it: numbers
up to 1 are fractions, for EvalScope those up to 1000 thousandths, others pixels of the image. ``--model`` reads the responses
instead.

``lmms-eval`` (EvolvingLMMs-Lab/lmms-eval@75571cf ``lmms_eval/loggers/evaluation_tracker.py``, ``evaluator.py``): a line has
``doc_id``, ``target``, ``filtered_resps``, and ``resps`` if a filter changed them, but not the document. Its target is the
instruction; among steps with the same one, ``doc_id`` is the place in the data set. ScreenSpot's ``screenshot_rec_test`` keeps
instruction, image and box in its metrics.

``evalscope`` (modelscope/evalscope@fde259d ``evalscope/api/evaluator/cache.py``, ``benchmarks/screenspot_pro``):
``predictions/<model>/*.jsonl`` has the model's output, ``reviews/<model>/*.jsonl`` the point that was read in it, in fractions.
``metadata`` names the step. Both have its target too, so that no data is needed; rows without ``metadata``
(``save_metadata=False``) are refused.

``vlmevalkit`` (open-compass/VLMEvalKit@e8e78f0 ``vlmeval/dataset/GUI``): ``<model>_<dataset>.xlsx`` or ``.tsv``, the data set's
table with a column ``prediction``. Boxes of ScreenSpot and ScreenSpot-v2 are x, y, width, height, those of ScreenSpot-Pro and
OSWorld-G corners.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from guieval.actions import Action, Stop
from guieval.errors import ParseError
from guieval.exchange.predictions.grounding import RowLayout
from guieval.exchange.predictions.predicted import Format, ReadRow, Rows
from guieval.exchange.predictions.rows import PredictionRow
from guieval.frames import PER_1000, PIXELS, RELATIVE, Size
from guieval.models.parsing import clicked
from guieval.models.parsing.points import place, stated_place
from guieval.steps import StepTaskModel

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NAMED = re.compile(rf"x['\"]?\s*[:=]\s*{_NUMBER}\D{{1,20}}?y['\"]?\s*[:=]\s*{_NUMBER}", re.IGNORECASE)
_ANSWER = re.compile(r"answer\s*[:\uff1a]", re.IGNORECASE)


def _stated(value: Any, size: Size, *, thousandths: bool = False) -> Action:
    """The click on the place that a response states, its numbers read by their size."""
    text = value if isinstance(value, str) else str(value)
    text = text[max((found.end() for found in _ANSWER.finditer(text)), default=0) :]
    named = _NAMED.search(text)
    stated = [float(named[1]), float(named[2])] if named else stated_place(text)
    if stated is None:
        raise ParseError("the response states no place")
    x, y = place(stated)
    if x < 0 and y < 0 and not thousandths:
        return Stop(status="impossible")  # lmms-eval's prompt for OSWorld-G asks for [-1, -1] if there is no target
    within = max(abs(x), abs(y))
    frame = RELATIVE if within <= 1 else PER_1000 if thousandths and within <= 1000 else PIXELS
    return clicked([x, y], frame, size)


def _stated_by_thousandths(value: Any, size: Size) -> Action:
    return _stated(value, size, thousandths=True)


def _format(name: str, summary: str, fields: Iterable[str], reader: Callable[..., ReadRow], *one_of: str) -> Format:
    return Format(name, summary, frozenset(fields), reader, frozenset(one_of))


def _through(
    flat: Callable[[PredictionRow], PredictionRow], layout: RowLayout, rows: Rows, steps: Iterable[StepTaskModel]
) -> ReadRow:
    read = layout.reader(lambda: map(flat, rows()), steps)
    return lambda row: read(flat(row))


def _texts(value: Any) -> str | None:
    """The first text of a list of responses, however deep it is."""
    while isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else None


def _sample(row: PredictionRow) -> PredictionRow:
    """A line of lmms-eval with what its metrics keep of the document."""
    kept: Mapping[str, Any] = next(
        (value for value in row.values.values() if isinstance(value, dict) and "instruction" in value), {}
    )
    answer = _texts(row.value("filtered_resps"))
    values = {
        "target": kept.get("instruction", row.values.get("target")),
        "ann_id": kept.get("ann_id"),
        "bbox": kept.get("bbox"),
        "doc_id": row.value("doc_id"),
        "filtered_resps": answer,
        "resps": _texts(row.values.get("resps")) or answer,
    }
    return PredictionRow(values, row.where)


_SAMPLES = RowLayout(
    "ann_id", "target", "bbox", "filtered_resps", "resps", size=(), box_frame=RELATIVE, id="", place="doc_id", read=_stated
)


def _evalscope(row: PredictionRow) -> PredictionRow:
    """A prediction or a review of EvalScope."""
    if "sample_score" in row:
        reviewed = row.row("sample_score")
        score, about = reviewed.row("score"), reviewed.values.get("sample_metadata")
        response, point = score.values.get("prediction"), score.values.get("extracted_prediction")
    else:
        choices = row.row("model_output").rows("choices") if "model_output" in row else []
        message = choices[0].row("message") if choices else None
        response = point = None if message is None else _spoken(message.values.get("content"))
        about = row.values.get("metadata")
    if not isinstance(about, dict) or "id" not in about:
        raise row.error("metadata", "has no id of the step, which EvalScope keeps unless save_metadata is False")
    prompt = next((message.values.get("content") for message in row.rows("messages")), None) if "messages" in row else None
    values = {
        **{f"metadata.{name}": about.get(name) for name in ("id", "sent_size", "bbox_norm")},
        "prompt": _spoken(prompt) or "",
        "response": response,
        "point": point,
        "ui_type": about.get("ui_type"),
        "application": about.get("application"),
        "platform": about.get("platform"),
    }
    return PredictionRow(values, row.where)


def _spoken(content: Any) -> str | None:
    """The text of a message, which may be in parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text")
    return content if isinstance(content, str) else None


_SCOPE = RowLayout(
    "",
    "prompt",
    "metadata.bbox_norm",
    "point",
    "response",
    size=("metadata.sent_size",),
    holds_steps=True,
    box_frame=RELATIVE,
    id="metadata.id",
    by_id=True,
    read=_stated_by_thousandths,
)


def _line(row: PredictionRow) -> PredictionRow:
    """A row of VLMEvalKit's table."""
    values = {**row.values, "prediction": None if row.values.get("prediction") is None else str(row.value("prediction"))}
    return PredictionRow(values, row.where)


_TABLE = RowLayout("image_path", "question", "bbox", "prediction", "prediction", size=(), id="", read=_stated)


def _table(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    first = next(rows(), None)
    corners = first is not None and "ui_type" in first  # ScreenSpot's tables call it data_type
    return _through(_line, replace(_TABLE, xywh=not corners), rows, steps)


FORMATS = (
    _format(
        "lmms-eval",
        "lmms-eval's *_samples_*.jsonl",
        ("doc_id", "filtered_resps", "doc_hash"),
        lambda rows, steps: _through(_sample, _SAMPLES, rows, steps),
    ),
    _format(
        "evalscope",
        "EvalScope's predictions/ and reviews/",
        ("index", "messages"),
        lambda rows, steps: _through(_evalscope, _SCOPE, rows, steps),
        "model_output",
        "sample_score",
    ),
    _format("vlmevalkit", "VLMEvalKit's tables", ("index", "image_path", "question", "bbox", "prediction"), _table),
)
