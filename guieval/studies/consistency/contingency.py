"""Two yes-or-no properties of the same steps in one table: match ratios, association, and a detector's rates.

:class:`Contingency` is Table 6 of the GUIEvalKit paper, :class:`Detection` its Tables 21 and 22. An undefined metric is
``None``, or infinite where a number is divided by 0.

Sources: K. Pearson's chi-square statistic without Yates's continuity correction; D. Katz et al., Biometrics 34 (1978), for the
interval of a relative risk; B. Woolf, Annals of Human Genetics 19 (1955), for that of an odds ratio.
"""

from __future__ import annotations

import math
from dataclasses import asdict, astuple, dataclass
from typing import Any

from guieval.metrics import Measured
from guieval.metrics.intervals import LEVEL, quantile
from guieval.metrics.measured import share_of


@dataclass(frozen=True)
class Contingency:
    """Steps by whether the execution follows the reasoning (consistent or not) and whether it is an exact match."""

    consistent_exact: int
    consistent_missed: int
    inconsistent_exact: int
    inconsistent_missed: int

    @property
    def consistent(self) -> int:
        return self.consistent_exact + self.consistent_missed

    @property
    def inconsistent(self) -> int:
        return self.inconsistent_exact + self.inconsistent_missed

    @property
    def n(self) -> int:
        return self.consistent + self.inconsistent

    @property
    def consistent_ratio(self) -> float | None:
        """The share of exact matches among consistent steps, in [0, 1]."""
        return share_of(self.consistent_exact, self.consistent).value

    @property
    def inconsistent_ratio(self) -> float | None:
        """The share of exact matches among inconsistent steps, in [0, 1]."""
        return share_of(self.inconsistent_exact, self.inconsistent).value

    @property
    def difference(self) -> float | None:
        """The first ratio minus the second, in [-1, 1]."""
        first, second = self.consistent_ratio, self.inconsistent_ratio
        return None if first is None or second is None else first - second

    @property
    def relative_risk(self) -> float | None:
        """The first ratio over the second."""
        first, second = self.consistent_ratio, self.inconsistent_ratio
        return None if first is None or second is None else _quotient(first, second)

    @property
    def odds_ratio(self) -> float | None:
        """(exact : missed) among consistent steps over the same among inconsistent ones."""
        return _quotient(
            self.consistent_exact * self.inconsistent_missed,
            self.consistent_missed * self.inconsistent_exact,
        )

    @property
    def phi(self) -> float | None:
        """The correlation of the two properties, in [-1, 1]; above 0 if consistent steps match more often."""
        exact = self.consistent_exact + self.inconsistent_exact
        margins = self.consistent * self.inconsistent * exact * (self.n - exact)
        if not margins:
            return None
        cross = self.consistent_exact * self.inconsistent_missed - self.consistent_missed * self.inconsistent_exact
        return cross / math.sqrt(margins)

    @property
    def chi_square(self) -> float | None:
        """Pearson's statistic, one degree of freedom, without continuity correction; the steps are taken as independent."""
        return None if self.phi is None else self.n * self.phi**2

    @property
    def log10_p(self) -> float | None:
        """The decimal logarithm of :attr:`p`, which itself may be too small for a float."""
        if self.chi_square is None:
            return None
        from scipy.special import log_ndtr

        # the square of a standard normal variable has chi-square's distribution
        return (math.log(2.0) + float(log_ndtr(-math.sqrt(self.chi_square)))) / math.log(10.0)

    @property
    def p(self) -> float | None:
        """The p-value of the statistic if the two properties were independent."""
        return None if self.log10_p is None else 10.0**self.log10_p

    def relative_risk_interval(self) -> tuple[float, float] | None:
        """Katz's interval on the logarithm's scale; ``None`` if a group has no exact match."""
        risk = self.relative_risk
        if not risk or not self.inconsistent_exact:
            return None
        variance = 1 / self.consistent_exact - 1 / self.consistent + 1 / self.inconsistent_exact - 1 / self.inconsistent
        return _on_log_scale(risk, variance)

    def odds_ratio_interval(self) -> tuple[float, float] | None:
        """Woolf's interval on the logarithm's scale; ``None`` if a cell is empty."""
        odds = self.odds_ratio
        if odds is None or 0 in astuple(self):
            return None
        return _on_log_scale(odds, sum(1 / cell for cell in astuple(self)))

    def to_json(self) -> dict[str, Any]:
        """Counts and metrics; an infinite metric is the text ``inf``."""
        risk, odds = ("inf" if value == math.inf else value for value in (self.relative_risk, self.odds_ratio))
        return {
            **asdict(self),
            "consistent_match_ratio": self.consistent_ratio,
            "inconsistent_match_ratio": self.inconsistent_ratio,
            "difference": self.difference,
            "relative_risk": risk,
            "relative_risk_interval": self.relative_risk_interval(),
            "odds_ratio": odds,
            "odds_ratio_interval": self.odds_ratio_interval(),
            **{name: getattr(self, name) for name in ("chi_square", "phi", "p", "log10_p")},
        }


@dataclass(frozen=True)
class Detection:
    """A detector of consistency against human labels; positive is *consistent*, as in Table 21.

    ``undecided`` steps have a label, but the detector did not decide; no rate counts them.
    """

    true_positive: int
    false_negative: int
    false_positive: int
    true_negative: int
    undecided: int = 0

    @property
    def accuracy(self) -> Measured:
        """Steps judged as by the human, among those judged."""
        judged = self.true_positive + self.false_negative + self.false_positive + self.true_negative
        return share_of(self.true_positive + self.true_negative, judged, "labelled steps", interval=True)

    @property
    def true_positive_rate(self) -> Measured:
        """Steps judged consistent, among those that are."""
        return share_of(self.true_positive, self.true_positive + self.false_negative, "labelled steps", interval=True)

    @property
    def true_negative_rate(self) -> Measured:
        """Steps judged inconsistent, among those that are."""
        return share_of(self.true_negative, self.true_negative + self.false_positive, "labelled steps", interval=True)

    def to_json(self) -> dict[str, Any]:
        rates = {"accuracy": self.accuracy, "tpr": self.true_positive_rate, "tnr": self.true_negative_rate}
        return {**asdict(self), **rates}


def _quotient(above: float, below: float) -> float | None:
    if below:
        return above / below
    return math.inf if above else None


def _on_log_scale(value: float, variance: float) -> tuple[float, float]:
    reach = quantile(LEVEL) * math.sqrt(max(variance, 0.0))
    return value * math.exp(-reach), value * math.exp(reach)
