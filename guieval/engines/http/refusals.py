"""Detects that servers refuse every request for the same reason, so that further requests are useless."""

from __future__ import annotations

import re

IN_A_ROW = 8
"""Number of requests that must be refused for the same reason, with none answered since the start."""


class Refusals:
    """Records how each request ends, from the first on.

    Refusals come faster than answers. So after :data:`IN_A_ROW` refusals the decision waits for the requests that are under
    way: if one of them is answered, the refusals concerned only their own requests.
    """

    def __init__(self) -> None:
        self._answered = False
        self._reason = ""
        self._count = 0
        self._begun = 0
        self._under_way: set[int] = set()
        self._awaited: set[int] | None = None

    def begun(self) -> int:
        """A request begins; returns its number."""
        self._begun += 1
        self._under_way.add(self._begun)
        return self._begun

    def over(self, number: int) -> None:
        """A request has ended; call it after :meth:`answered` or :meth:`refused`."""
        self._under_way.discard(number)
        if self._awaited is not None:
            self._awaited.discard(number)

    def answered(self) -> None:
        self._answered = True

    def refused(self, number: int, status: int | None, text: str) -> bool:
        """A request was refused; returns whether all others will be too. Reasons that differ only in numbers are the same."""
        reason = re.sub(r"\d+", "0", f"{status} {text}")
        if reason != self._reason:
            self._reason, self._count, self._awaited = reason, 0, None
        self._count += 1
        if self._count == IN_A_ROW:
            self._awaited = set(self._under_way)
        return not self._answered and self._awaited is not None and self._awaited <= {number}
