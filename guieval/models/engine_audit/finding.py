"""What one part of an audit found, in a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["fine", "fault", "unknown"]


class AuditFinding(NamedTuple):
    """A fault, that there is none, or what cannot be known; ``sentence`` ends without a stop."""

    about: Literal["requests", "tokens", "clicks", "orientation", "fingerprint"]
    verdict: Verdict
    sentence: str
