"""How decisions shift from one run to another on the same steps: from offline to SOEval, from instruct-only to thinking.

Source: GUIEvalKit paper, section 5.3 (Table 4, Figure 4), section 5.4 (Figure 8) and appendix C.3: a stability shift is
negligible if it is 0, a shift of the effective support size if it is within 0.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError, nearest
from guieval.metrics import Measured
from guieval.studies.decisions.measures import LEVELS, PUBLISHED, DecisionColumns, Level, Thresholds, mean_of
from guieval.studies.decisions.points import Floats, Ints

Trend: TypeAlias = Literal["dec", "negl", "inc"]
TRENDS: tuple[Trend, ...] = ("dec", "negl", "inc")
DEC, NEGL, INC = range(3)
_DUST = 1e-9
"""Tolerance for rounding: a shift of exactly 0.1 is negligible."""


class ShiftCell(NamedTuple):
    """A cell of Figure 4 (the row is the baseline's stability level) or of Figure 8 (the trend of the support size); the
    column is the trend of the stability.
    """

    row: Level | Trend
    column: Trend

    @classmethod
    def of(cls, text: str) -> ShiftCell:
        """``low:inc`` as a cell; :class:`UsageError` for a text that is none."""
        row, _, column = text.partition(":")
        for value, known in ((row, (*LEVELS, *TRENDS)), (column, TRENDS)):
            if value not in known:
                raise UsageError(
                    f"the cell {text!r} has {value!r}{nearest(value, known)}: expected {'|'.join(LEVELS)}:{'|'.join(TRENDS)} "
                    f"for Figure 4 or {'|'.join(TRENDS)}:{'|'.join(TRENDS)} for Figure 8, e.g. low:inc"
                )
        return cls(row, column)  # type: ignore[arg-type]  # both are among the known

    def __str__(self) -> str:
        rows = f"baseline stability {self.row}" if self.row in LEVELS else f"support size {self.row}"
        return f"{rows}, stability {self.column} (Figure {4 if self.row in LEVELS else 8})"


@dataclass(frozen=True, eq=False)
class Shifts:
    """Two runs' metrics of the s steps that both measured, row for row; ``before`` is the baseline.

    ``only_before`` and ``only_after`` count the steps that one of them alone has measured.
    """

    before: DecisionColumns
    after: DecisionColumns
    only_before: int
    only_after: int

    def __len__(self) -> int:
        return len(self.before)

    @cached_property
    def stability(self) -> Floats:
        """(s,) stability after - before."""
        return self.after.stability - self.before.stability

    @cached_property
    def stability_trend(self) -> Ints:
        """(s,) indices into :data:`TRENDS`: negligible if the stabilities are equal."""
        return stability_trend(self.before, self.after)

    @cached_property
    def support(self) -> Floats:
        """(s,) exp(diversity) after - before, NaN if one of them has no decision."""
        return self.after.support_size - self.before.support_size

    @cached_property
    def diverse(self) -> NDArray[np.bool_]:
        """(s,) steps with a diversity in both runs."""
        return self.before.decided & self.after.decided

    @cached_property
    def support_trend(self) -> Ints:
        """(s,) indices into :data:`TRENDS`: negligible up to the threshold either way; -1 without a diversity."""
        return np.where(self.diverse, support_trend(self.support, self.before.thresholds), -1)

    def levels_by_trend(self) -> Ints:
        """(3, 3) steps by the baseline's stability level (low, medium, high) and the stability's trend (Figure 4)."""
        return _crossed(self.before.level, self.stability_trend)

    def support_by_stability(self) -> Ints:
        """(3, 3) steps by the trend of the effective support size and that of the stability (Figure 8)."""
        return _crossed(self.support_trend, self.stability_trend)

    def in_cell(self, cell: ShiftCell) -> Ints:
        """The rows of a cell of Figure 4 or 8, in their order."""
        rows = self.before.level if cell.row in LEVELS else self.support_trend
        names: Sequence[str] = LEVELS if cell.row in LEVELS else TRENDS
        return np.flatnonzero((rows == names.index(cell.row)) & (self.stability_trend == TRENDS.index(cell.column)))

    def mean_by_trend(self, trend: Trend) -> Measured:
        """The mean stability shift of the steps of one trend (Table 4)."""
        of = self.stability_trend == TRENDS.index(trend)
        return mean_of(self.stability[of], self.before.episode[of])

    def mean_stability(self) -> Measured:
        return mean_of(self.stability, self.before.episode)

    def mean_support(self) -> Measured:
        return mean_of(self.support[self.diverse], self.before.episode[self.diverse])


def shift(before: DecisionColumns, after: DecisionColumns) -> Shifts:
    """The steps that both runs measured, side by side. Raises :class:`UsageError` for runs that share none."""
    places = {key: row for row, key in enumerate(after.keys) if after.measured[row]}
    own = [row for row, key in enumerate(before.keys) if before.measured[row]]
    rows = [row for row in own if before.keys[row] in places]
    if not rows:
        raise UsageError(f"{before.title!r} and {after.title!r} share no measured step, so there is nothing to compare")
    return Shifts(
        before=before.take(np.array(rows, dtype=np.int64)),
        after=after.take(np.array([places[before.keys[row]] for row in rows], dtype=np.int64)),
        only_before=len(own) - len(rows),
        only_after=len(places) - len(rows),
    )


def stability_trend(before: DecisionColumns, after: DecisionColumns) -> Ints:
    """(s,) indices into :data:`TRENDS` of two runs' stabilities on the same steps, compared in whole numbers."""
    return np.asarray(np.sign(after.right * before.n - before.right * after.n) + NEGL, dtype=np.int64)


def support_trend(shift: Floats, thresholds: Thresholds = PUBLISHED) -> Ints:
    """(s,) indices into :data:`TRENDS` of shifts of the effective support size; NaN is negligible."""
    most = thresholds.negligible + _DUST
    return np.where(shift > most, INC, np.where(shift < -most, DEC, NEGL))


def _crossed(rows: Ints, across: Ints) -> Ints:
    known = (rows >= 0) & (across >= 0)
    return np.bincount(3 * rows[known] + across[known], minlength=9).reshape(3, 3)
