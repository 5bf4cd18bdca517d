"""The functions of the tasks: documents are steps by their key, messages are a run's, and scores are the protocol's."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guieval.data.screenshots import picture
from guieval.errors import UsageError
from guieval.models import Response
from guieval.plugins.harness_steps import HarnessSteps, harness_steps
from guieval.steps import StepRecord


def documents(rows: Any) -> Any:
    """A row of settings as the rows of its steps: ``key``, ``settings``, ``instruction``. A mistake in them ends it all."""
    from datasets import Dataset

    (row,) = rows
    settings = json.dumps({name: value for name, value in row.items() if value is not None})
    try:
        steps = harness_steps(json.loads(settings))
    except UsageError as error:  # lmms-eval tries again after any other exception, and prints tracebacks without the sentence
        print(error, file=sys.stderr)
        sys.exit(2)
    return Dataset.from_list(
        [{"key": key, "settings": settings, "instruction": steps.task(key).instruction} for key in steps.keys]
    )


def messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The step's messages in lmms-eval's form, with the screenshots as a model sees them."""
    steps = _steps(doc)
    asked = steps.messages(steps.body(doc["key"]))
    return [{"role": each["role"], "content": list(map(_part, _parts(each["content"])))} for each in asked]


def text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The texts of the step's request in one, for models of lmms-eval that take no chat messages."""
    return _steps(doc).prepared(doc["key"]).text


def visual(doc: Mapping[str, Any]) -> list[Any]:
    """The screenshots of the step's request. Raises :class:`UsageError` if it has several turns, which only messages show."""
    asked = messages(doc)
    if sum(message["role"] != "system" for message in asked) != 1:
        raise UsageError("this family's prompt has several turns: choose a model of lmms-eval that takes chat messages")
    return [part["url"] for message in asked for part in message["content"] if part["type"] == "image"]


def process(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """The record of the response, as text, under the name of each metric."""
    steps, key = _steps(doc), doc["key"]
    record = StepRecord(task=steps.task(key), samples=(steps.scored(key, Response(results[0])),))
    stored = {"settings": doc["settings"], "key": key, "verdict": record.verdict, "record": record.model_dump_json()}
    return {"exact_match": stored, "type_match": stored}


def exact_match(stored: Iterable[Mapping[str, Any]]) -> float:
    """Exact match under the protocol, as ``guieval score`` has it."""
    return _metric("exact match", stored)


def type_match(stored: Iterable[Mapping[str, Any]]) -> float:
    """Type match under the protocol, as ``guieval score`` has it."""
    return _metric("type match", stored)


def _metric(name: str, stored: Iterable[Mapping[str, Any]]) -> float:
    rows = list(stored)
    records = [StepRecord.model_validate_json(row["record"]) for row in rows]
    return _steps(rows[0]).metrics(records)[name]


def _steps(row: Mapping[str, Any]) -> HarnessSteps:
    return harness_steps(json.loads(row["settings"]))


def _parts(content: str | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return dict(part)
    return {"type": "image", "url": picture(b64decode(part["image_url"]["url"].partition(",")[2]))}
