"""Typed access to foreign JSON objects; errors name file, place and field.

Shared by the loaders of annotation files and of predictions files. The meaning of a field, and its coordinate frame, stay
with the loader of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json

from guieval.errors import DataError, ParseError, first_problem

Built = TypeVar("Built")

LONGEST = 400
"""Limit of an error message about a field, in characters."""
_NUMBERS = frozenset({int, float})  # and not bool


@dataclass(frozen=True)
class Row:
    """One JSON object; ``where`` is its place in messages, e.g. ``data.jsonl, line 3, step 0``."""

    values: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: Any, where: str) -> Self:
        """A parsed JSON value as a row; :class:`DataError` if it is not an object."""
        if not isinstance(value, dict):
            raise DataError(f"{where}: expected an object, got {value!r:.80}")
        return cls(value, where)

    def __contains__(self, field: str) -> bool:
        return field in self.values

    def error(self, field: str, problem: str) -> DataError:
        """The error for a field: one sentence with file, place and field, and a long problem cut."""
        short = problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}..."
        return DataError(f"{self.where}, field {field:.80}: {short}")

    def value(self, field: str) -> Any:
        """The field's value; :class:`DataError` if the field is missing."""
        try:
            return self.values[field]
        except KeyError:
            raise self.error(field, "is missing") from None

    def text(self, field: str) -> str:
        value = self.value(field)
        if not isinstance(value, str):
            raise self.error(field, f"expected a string, got {value!r:.80}")
        return value

    def whole(self, field: str, least: int | None = None) -> int:
        """A whole number, not below ``least``."""
        value = self.value(field)
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            expected = "a whole number" if least is None else f"a whole number from {least}"
            raise self.error(field, f"expected {expected}, got {value!r:.80}")
        return value

    def number(self, field: str) -> float:
        """A number; the record checks that it is finite and in range."""
        value = self.value(field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(field, f"expected a number, got {value!r:.80}")
        return self.build(field, lambda: float(value))

    def numbers(self, field: str, count: int) -> tuple[float, ...]:
        """Exactly ``count`` numbers, as a JSON list or as the text of one."""
        value = self._list(field)
        if len(value) != count or not _NUMBERS.issuperset(map(type, value)):
            raise self.error(field, f"expected a list of {count} numbers, got {self.value(field)!r:.80}")
        return self.build(field, lambda: tuple(map(float, value)))

    def boxes(self, field: str) -> list[list[float]]:
        """Boxes of four numbers, as a JSON list or as the text of one; a single box need not be in a list."""
        value = self._list(field)
        if len(value) == 4 and not any(isinstance(item, list) for item in value):
            value = [value]
        for box in value:
            if not isinstance(box, list) or len(box) != 4 or not _NUMBERS.issuperset(map(type, box)):
                raise self.error(field, f"expected boxes of 4 numbers, got {box!r:.80}")
        return self.build(field, lambda: [list(map(float, box)) for box in value])

    def row(self, field: str) -> Self:
        """An object inside this one."""
        return self.of(self.value(field), f"{self.where}, field {field}")

    def items(self, field: str) -> list[Any]:
        """The unread values of a field that is a JSON list; an error with the row's place for anything else."""
        value = self.value(field)
        if not isinstance(value, list):
            raise self.error(field, f"expected a list, got {value!r:.80}")
        return value

    def rows(self, field: str) -> list[Self]:
        """The objects of a JSON list."""
        return [self.of(item, f"{self.where}, field {field}[{number}]") for number, item in enumerate(self.items(field))]

    def build(self, field: str, make: Callable[[], Built]) -> Built:
        """The result of ``make``; its error (a point off the screen, a number of 400 digits) becomes a :class:`DataError`."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused below
                return make()
        except ValidationError as error:
            raise self.error(field, first_problem(error).sentence) from None
        except (ValueError, OverflowError, ParseError) as error:
            raise self.error(field, str(error)) from None

    def _list(self, field: str) -> list[Any]:
        value = self.value(field)
        if isinstance(value, str):
            try:
                value = from_json(value)
            except ValueError:
                raise self.error(field, f"expected the text of a JSON list, got {value!r:.80}") from None
        if not isinstance(value, list):
            raise self.error(field, f"expected a list, got {value!r:.80}")
        return value
