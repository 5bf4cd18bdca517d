"""Any of our values as plain ones, for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from guieval.reports.tables.table import Number, Table


def json_text(value: Any) -> str:
    """The value as JSON of standard form, ending in a newline."""
    return json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Dictionaries, lists, texts, numbers and ``None``; a number without a finite value is ``None``."""
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, Table):
        return {
            "name": value.name,
            "title": value.title,
            "header": [column.flat for column in value.columns],
            "rows": [[plain(cell) for cell in row] for row in value.filled],
            "notes": list(value.notes),
        }
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="python"))
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


def _number(cell: Number) -> Any:
    if cell.interval is None and cell.n is None:
        return plain(cell.value)
    ends = {} if cell.interval is None else {"low": plain(cell.interval.low), "high": plain(cell.interval.high)}
    return {"value": plain(cell.value), **ends, **({} if cell.n is None else {"n": cell.n})}
