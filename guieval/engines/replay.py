"""Answers requests from an earlier run's journal, so that parsing and scoring can be repeated without a model.

Screenshots are not needed. Only steps that the model answered in the earlier run can be replayed. Of several records of a step
the last finished one counts, as in a resume; without one, the last with the model's responses (one may have crashed a parser).
"""

from __future__ import annotations

from guieval.engines import parse_request_id
from guieval.errors import DataError, EngineError
from guieval.journal import Records
from guieval.models import ImageForm, Request, Response
from guieval.models.response import recorded_response
from guieval.steps import StepKey, StepRecord


class ReplayEngine:
    """Answers each request with the response in ``records`` to its step and sample; :class:`DataError` for a damaged line."""

    images: ImageForm = "none"

    def __init__(self, records: Records[StepRecord]) -> None:
        self._records = records
        self._offsets: dict[StepKey, int] = {}
        self._lost: set[StepKey] = set()
        finished: set[StepKey] = set()
        for offset, record in records.with_offsets():
            key = record.task.key
            if record.finished:
                finished.add(key)
            elif key in finished or any(sample.raw_response is None for sample in record.samples):
                self._lost.add(key)
                continue
            self._offsets[key] = offset
        if records.damaged:
            raise DataError(f"{records.path}, line {records.damaged[0]}: is damaged, so the run cannot be replayed")

    async def generate(self, request: Request) -> Response:
        """The recorded answer; :class:`EngineError` naming the step when there is none."""
        key, journal = request.task.key, f"the journal {str(self._records.path)!r}"
        if key not in self._offsets:
            raise EngineError(f"step {key} {'was never answered in' if key in self._lost else 'is not in'} {journal}")
        record = self._records.at(self._offsets[key])
        if record.task.setting != request.task.setting:
            raise EngineError(
                f"step {key} was recorded in the setting {record.task.setting!r}, but {request.task.setting!r} is requested"
            )
        _, index = parse_request_id(request.request_id)
        samples = (*record.retried, *record.samples)
        if index >= len(samples):
            raise EngineError(f"step {key} has {len(samples)} samples in the journal, so sample {index} is not in it")
        if samples[index].raw_response is None:
            raise EngineError(f"step {key} has no response in {journal}")
        return recorded_response(samples[index])

    async def close(self) -> None:
        """Nothing is open."""
