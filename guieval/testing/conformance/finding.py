"""What a conformance suite reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One violation: the plug-in, the check, and the problem in one sentence."""

    subject: str
    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.check}: {self.message}"
