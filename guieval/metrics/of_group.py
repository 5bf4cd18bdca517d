"""A metric over the steps, or tasks, of one group: a column of a leaderboard that goes by categories, tags or the like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guieval.metrics.breakdown import rows_by
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.intervals import Terms
from guieval.metrics.leading import Leading
from guieval.metrics.measured import Better, Measured


@dataclass(frozen=True)
class OfGroup:
    """``metric`` over the rows that have these ``labels``, one for each name in ``by``."""

    metric: Leading
    by: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.metric.name}: {' / '.join(self.labels)}"

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def better(self) -> Better | None:
        return self.metric.better

    @property
    def of_episodes(self) -> bool:
        return self.metric.of_episodes

    @property
    def meaning(self) -> str:
        return f"{self.metric.meaning}, of one group"

    @property
    def of(self) -> str:
        return f"{self.metric.of} with the {' and '.join(self.by)}"

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured:
        """Its value on the group; ``None`` of a run that has no such row."""
        rows = self._rows(columns)
        if not rows.any():
            return Measured(None, 0, self.metric.of)
        part = columns.only(rows)
        return self.metric.measure(part, part.judged[judged.protocol], intervals=intervals)

    def terms(self, columns: RunColumns, judged: Judged) -> Terms:
        """Its sums over all of the run's episodes: 0 of one without a row of the group, so that runs can be compared."""
        return self._over_all(columns, judged, "terms")[0]

    def possible(self, columns: RunColumns, judged: Judged) -> list[Terms]:
        return self._over_all(columns, judged, "possible")

    def _rows(self, columns: RunColumns) -> NDArray[np.bool_]:
        return rows_by(columns, self.by).get(self.labels, np.zeros(len(columns), dtype=np.bool_))

    def _over_all(self, columns: RunColumns, judged: Judged, name: str) -> list[Terms]:
        rows = self._rows(columns)
        part = columns.only(rows)
        own = part.judged[judged.protocol]
        found = [self.metric.terms(part, own)] if name == "terms" else self.metric.possible(part, own)
        places = np.unique(columns.episode[rows])

        def whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
            spread = np.zeros((len(columns.episodes), values.shape[1]))
            spread[places] = values
            return spread

        return [Terms(whole(each.numerator), whole(each.denominator), each.combine) for each in found]
