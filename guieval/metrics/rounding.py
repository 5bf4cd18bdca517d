"""Rounds numbers for readers: of shares only none is 0 %, and only all is 100 %; a column's decimals are kept."""

from __future__ import annotations

from collections.abc import Sequence

_NOISE = 1e-9
"""Percentage points by which sums of fractions miss a whole number; no share of fewer than 10^11 steps is as near."""


def percentage(share: float, form: str = ".2f") -> str:
    """A fraction in per cent, without the unit. A ``form`` with a sign, ``+.2f``, is for a difference of fractions.

    A value that is not 0 but would be rounded to it is ``< 0.01`` (a difference ``< +0.01`` or ``> -0.01``). A share below 1
    that would be rounded to 100 is ``> 99.99``.
    """
    value = 100 * share
    shown = f"{value:{form}}"
    least = 10.0 ** -len(shown.partition(".")[2])
    if float(shown) == 0 and abs(value) > _NOISE:
        return f"< {least:{form}}" if value > 0 else f"> {-least:{form}}"
    if float(shown) == 100 and value < 100 - _NOISE and not form.startswith("+"):
        return f"> {100 - least:{form}}"
    return shown


def alike(values: Sequence[float]) -> list[str]:
    """Numbers of one column, all with as many decimals as the one that has most, so that 13.0 is not 13 next to 68.3.

    Up to six digits count, as Python's ``g`` shows them; if that is a power of ten for any of them, each is shown so.
    """
    shown = [f"{value:g}" for value in values]
    if any("e" in each for each in shown):
        return shown
    decimals = max((len(each.partition(".")[2]) for each in shown), default=0)
    return [f"{value:.{decimals}f}" for value in values]
