"""Two yes-or-no properties of the same steps in one table: match ratios, association, and a detector's rates.

:class:`Contingency` is Table 6 of the GUIEvalKit paper, :class:`Detection` its Tables 21 and 22. An undefined metric is
``None``, or infinite where a number is divided by 0.

Sources: K. Pearson's chi-square statistic without Yates's continuity correction; D. Katz et al., Biometrics 34 (1978), for the
interval of a relative risk; B. Woolf, Annals of Human Genetics 19 (1955), for that of an odds ratio. Over several benchmarks:
N. Mantel and W. Haenszel, JNCI 22 (1959); J. Robins, N. Breslow and S. Greenland, Biometrics 42 (1986), for the interval of the
odds ratio; S. Greenland and J. Robins, Biometrics 41 (1985), for that of the relative risk; R. Tarone, Biometrika 72 (1985),
for the test of equal odds ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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
        return _log10_p(self.chi_square)

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
        return {
            **asdict(self),
            "consistent_match_ratio": self.consistent_ratio,
            "inconsistent_match_ratio": self.inconsistent_ratio,
            "difference": self.difference,
            "relative_risk": _finite(self.relative_risk),
            "relative_risk_interval": self.relative_risk_interval(),
            "odds_ratio": _finite(self.odds_ratio),
            "odds_ratio_interval": self.odds_ratio_interval(),
            **{name: getattr(self, name) for name in ("chi_square", "phi", "p", "log10_p")},
        }


def summed(tables: Iterable[Contingency]) -> Contingency:
    """The cells of all tables added up."""
    return Contingency(*(sum(cells) for cells in zip((0, 0, 0, 0), *map(astuple, tables), strict=True)))


@dataclass(frozen=True)
class Stratified:
    """What holds within strata, e.g. benchmarks, each with a table of its own.

    In the tables' sum, benchmarks that differ both in consistency and in exact match make an association, or hide one
    (Simpson's paradox); these metrics compare steps of one stratum only.
    """

    strata: tuple[Contingency, ...]

    @property
    def odds_ratio(self) -> float | None:
        """Mantel and Haenszel's odds ratio."""
        return _quotient(
            math.fsum(each.consistent_exact * each.inconsistent_missed / each.n for each in self._known),
            math.fsum(each.consistent_missed * each.inconsistent_exact / each.n for each in self._known),
        )

    @property
    def relative_risk(self) -> float | None:
        """Mantel and Haenszel's relative risk."""
        return _quotient(
            math.fsum(each.consistent_exact * each.inconsistent / each.n for each in self._known),
            math.fsum(each.inconsistent_exact * each.consistent / each.n for each in self._known),
        )

    @property
    def chi_square(self) -> float | None:
        """Cochran, Mantel and Haenszel's statistic, one degree of freedom, without continuity correction."""
        beyond, variance = 0.0, 0.0
        for each in self._known:
            exact = each.consistent_exact + each.inconsistent_exact
            beyond += each.consistent_exact - each.consistent * exact / each.n
            if each.n > 1:
                variance += each.consistent * each.inconsistent * exact * (each.n - exact) / (each.n**2 * (each.n - 1))
        return beyond**2 / variance if variance else None

    @property
    def log10_p(self) -> float | None:
        """The decimal logarithm of the p-value of :attr:`chi_square`."""
        return _log10_p(self.chi_square)

    def odds_ratio_interval(self) -> tuple[float, float] | None:
        """Robins, Breslow and Greenland's interval; ``None`` for an odds ratio of 0, of infinity, or of nothing."""
        odds = self.odds_ratio
        if not odds or odds == math.inf:
            return None
        rows = [
            (
                (each.consistent_exact + each.inconsistent_missed) / each.n,
                (each.consistent_missed + each.inconsistent_exact) / each.n,
                each.consistent_exact * each.inconsistent_missed / each.n,
                each.consistent_missed * each.inconsistent_exact / each.n,
            )
            for each in self._known
        ]
        above, below = (math.fsum(row[place] for row in rows) for place in (2, 3))
        variance = math.fsum(
            p * r / (2 * above**2) + (p * s + q * r) / (2 * above * below) + q * s / (2 * below**2) for p, q, r, s in rows
        )
        return _on_log_scale(odds, variance)

    def relative_risk_interval(self) -> tuple[float, float] | None:
        """Greenland and Robins's interval; ``None`` for a relative risk of 0, of infinity, or of nothing."""
        risk = self.relative_risk
        if not risk or risk == math.inf:
            return None
        above = spread = below = 0.0
        for each in self._known:
            exact = each.consistent_exact + each.inconsistent_exact
            products = each.consistent * each.inconsistent * exact - each.consistent_exact * each.inconsistent_exact * each.n
            spread += products / each.n**2
            above += each.consistent_exact * each.inconsistent / each.n
            below += each.inconsistent_exact * each.consistent / each.n
        return _on_log_scale(risk, spread / (above * below))

    def equal_odds(self) -> tuple[float, int, float] | None:
        """Breslow and Day's test that the strata have one odds ratio, corrected by Tarone: chi-square, degrees of freedom, p.

        Strata in which no table but one is possible say nothing about it; ``None`` for fewer than two others, and for an odds
        ratio of 0, of infinity, or of nothing.
        """
        odds = self.odds_ratio
        telling = [each for each in self._known if each.phi is not None]
        if not odds or odds == math.inf or len(telling) < 2:
            return None
        from scipy.special import chdtrc

        square = beyond = whole = 0.0
        for each in telling:
            exact = each.consistent_exact + each.inconsistent_exact
            fitted = _fitted(each.consistent, each.inconsistent, exact, odds)
            cells = (fitted, each.consistent - fitted, exact - fitted, each.inconsistent - exact + fitted)
            variance = 1 / sum(1 / cell for cell in cells)
            square += (each.consistent_exact - fitted) ** 2 / variance
            beyond += each.consistent_exact - fitted
            whole += variance
        square = max(0.0, square - beyond**2 / whole)
        return square, len(telling) - 1, float(chdtrc(len(telling) - 1, square))

    def to_json(self) -> dict[str, Any]:
        """The metrics; an infinite one is the text ``inf``."""
        equal = self.equal_odds()
        return {
            "relative_risk": _finite(self.relative_risk),
            "relative_risk_interval": self.relative_risk_interval(),
            "odds_ratio": _finite(self.odds_ratio),
            "odds_ratio_interval": self.odds_ratio_interval(),
            "chi_square": self.chi_square,
            "log10_p": self.log10_p,
            "equal_odds": None if equal is None else dict(zip(("chi_square", "degrees_of_freedom", "p"), equal, strict=True)),
        }

    @property
    def _known(self) -> list[Contingency]:
        return [each for each in self.strata if each.n]


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


def _fitted(consistent: int, inconsistent: int, exact: int, odds: float) -> float:
    """How many of the consistent steps are exact in the table with these margins and this odds ratio."""
    square, linear = 1 - odds, inconsistent - exact + odds * (consistent + exact)
    # of the two solutions the one within the margins, in the form that stays exact near an odds ratio of 1
    return 2 * odds * consistent * exact / (linear + math.sqrt(linear**2 + 4 * square * odds * consistent * exact))


def _log10_p(chi_square: float | None) -> float | None:
    """The decimal logarithm of the p-value of a statistic with one degree of freedom."""
    if chi_square is None:
        return None
    from scipy.special import log_ndtr

    # the square of a standard normal variable has chi-square's distribution
    return (math.log(2.0) + float(log_ndtr(-math.sqrt(chi_square)))) / math.log(10.0)


def _finite(value: float | None) -> float | str | None:
    return "inf" if value == math.inf else value


def _quotient(above: float, below: float) -> float | None:
    if below:
        return above / below
    return math.inf if above else None


def _on_log_scale(value: float, variance: float) -> tuple[float, float]:
    reach = quantile(LEVEL) * math.sqrt(max(variance, 0.0))
    return value * math.exp(-reach), value * math.exp(reach)
