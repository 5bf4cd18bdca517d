"""Answers requests from an earlier run's journal, so that parsing and scoring can be repeated without a model.

Only the position of each line is kept in memory. Screenshots are not needed. Only steps that the model answered in the
earlier run can be replayed; of several lines for one step the last finished one counts, as in a resume. Without a finished
line, an unfinished one with the model's answer (its response crashed a parser) is used.
"""

from __future__ import annotations

from pathlib import Path

from guieval.data.files import open_file
from guieval.engines import parse_request_id
from guieval.errors import DataError, EngineError, UsageError
from guieval.journal.lines import json_line
from guieval.models import ImageForm, Request, Response
from guieval.models.response import recorded_response
from guieval.steps import StepKey, StepRecord, validated


class ReplayEngine:
    """Answers each request with the response in the journal ``records`` (compact or not) to its step and sample.

    The sample is the one in the request's id (0 when the id has another form). A last line that was cut off is ignored.
    Raises :class:`UsageError` when the file cannot be opened and :class:`DataError` for a damaged line before the last.
    """

    images: ImageForm = "none"

    def __init__(self, records: Path) -> None:
        self._path = records
        try:
            self._stream = open_file(records)
        except OSError as error:
            raise UsageError(f"the journal {str(records)!r} cannot be opened: {error.strerror}") from None
        self._places: dict[StepKey, tuple[int, int]] = {}
        self._answered: dict[StepKey, tuple[int, int]] = {}
        self._lost: set[StepKey] = set()
        try:
            self._index()
        except DataError:
            self._stream.close()
            raise

    def __len__(self) -> int:
        return len(self._places.keys() | self._answered.keys())

    async def generate(self, request: Request) -> Response:
        """The recorded answer; :class:`EngineError` naming the step when there is none."""
        key = request.task.key
        place = self._places.get(key) or self._answered.get(key)
        if place is None:
            why = "was never answered in" if key in self._lost else "is not in"
            raise EngineError(f"step {key} {why} the journal {str(self._path)!r}")
        offset, number = place
        self._stream.seek(offset)
        record = self._record(self._stream.readline(), number)
        if record.task.setting != request.task.setting:
            raise EngineError(
                f"step {key} was recorded in the setting {record.task.setting!r}, but {request.task.setting!r} is requested"
            )
        index = _sample_index(request.request_id)
        if index >= len(record.samples):
            raise EngineError(f"step {key} has {len(record.samples)} samples in the journal, so sample {index} is not in it")
        sample = record.samples[index]
        if sample.raw_response is None:
            raise EngineError(f"step {key} has no response in the journal {str(self._path)!r}")
        return recorded_response(sample)

    async def close(self) -> None:
        self._stream.close()

    def _index(self) -> None:
        offset = 0
        for number, line in enumerate(self._stream, 1):
            if line.strip():
                try:
                    self._note(self._record(line, number), offset, number)
                except DataError:
                    if line.endswith(b"\n"):
                        raise
            offset += len(line)

    def _record(self, line: bytes, number: int) -> StepRecord:
        try:
            text = json_line(line)
        except ValueError as error:
            raise DataError(f"{self._path}, line {number}: {error}") from None
        record: StepRecord = validated(StepRecord, text, file=self._path, line=number)
        return record

    def _note(self, record: StepRecord, offset: int, number: int) -> None:
        if record.finished:
            self._places[record.task.key] = (offset, number)
        elif all(sample.raw_response is not None for sample in record.samples):
            self._answered[record.task.key] = (offset, number)
        else:
            self._lost.add(record.task.key)


def _sample_index(request_id: str) -> int:
    try:
        return parse_request_id(request_id)[1]
    except ValueError:
        return 0
