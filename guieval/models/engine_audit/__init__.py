"""Whether a server shows a model the pictures that it was sent: by prompt tokens, by clicks, and by a fingerprint.

Tokens give the size of the picture that the model sees. Clicks on known targets give its frame, its axes and its turn, if the
model finds the targets. What changes neither, e.g. lossy encoding or another version, shows only next to a fingerprint: how the
same screens were answered by an engine that is known to be right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from guieval.models import ABCModel
from guieval.models.engine_audit.clicks import ClickAudit
from guieval.models.engine_audit.finding import AuditFinding
from guieval.models.engine_audit.fingerprint import Fingerprint, FingerprintAudit, fingerprint, read_fingerprint
from guieval.models.engine_audit.screen import SentScreen
from guieval.models.engine_audit.tokens import TokenAudit

__all__ = ["AuditFinding", "EngineAudit", "Fingerprint", "fingerprint", "read_fingerprint"]

_BLIND = (
    "Without a fingerprint of the checkpoint (--save FILE when the engine is known to be right, then --against FILE) it "
    "cannot be known whether pictures are encoded with loss, or whether filter, precision or version are others: such "
    "faults change no count of tokens and hardly a click"
)


@dataclass(frozen=True)
class EngineAudit:
    """The audit of the ``screens`` that were sent to ``model``, and its parts.

    Raises :class:`guieval.errors.UsageError` when made with a fingerprint of other requests.
    """

    model: ABCModel
    screens: Sequence[SentScreen]
    against: Fingerprint | None = None

    def __post_init__(self) -> None:
        _ = self.fingerprint

    @cached_property
    def tokens(self) -> TokenAudit:
        return TokenAudit(self.model, self.screens)

    @cached_property
    def clicks(self) -> ClickAudit:
        """The clicks, also read in the frame that the prompt tokens show."""
        limits = self.tokens.limits
        return ClickAudit(self.model, self.screens, () if limits is None else (limits.frame,))

    @cached_property
    def fingerprint(self) -> FingerprintAudit | None:
        """The comparison with the fingerprint, if there is one."""
        return None if self.against is None else FingerprintAudit(self.screens, self.against)

    @cached_property
    def findings(self) -> tuple[AuditFinding, ...]:
        compared = [AuditFinding("fingerprint", "unknown", _BLIND)] if self.fingerprint is None else self.fingerprint.findings
        return (*self._requests(), self.tokens.finding, *self.clicks.findings, *compared)

    @property
    def differs(self) -> bool:
        return any(finding.verdict == "fault" for finding in self.findings)

    def _requests(self) -> Iterator[AuditFinding]:
        failed = [error.message for screen in self.screens if not screen.sample.answered and (error := screen.sample.error)]
        if failed:
            many = f"{len(failed)} of {len(self.screens)} screens have no answer: {failed[0]}"
            yield AuditFinding("requests", "fault" if len(failed) == len(self.screens) else "unknown", many)
