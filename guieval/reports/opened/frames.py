"""pandas, which is an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from guieval.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str], index: str | None = None) -> pd.DataFrame:
    """A DataFrame with a column for each of ``types``; :class:`UsageError` without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("a DataFrame needs pandas: pip install 'guieval[pandas]'") from None
    columns = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in types.items()}
    frame = pd.DataFrame(columns)
    return frame if index is None else frame.set_index(index)
