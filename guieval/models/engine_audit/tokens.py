"""The size of the picture that the model sees, from the prompt tokens that the server counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from guieval.frames import ResizedPixels, Size
from guieval.models import ABCModel
from guieval.models.engine_audit.finding import AuditFinding
from guieval.models.engine_audit.screen import SentScreen
from guieval.models.image_tokens import FACTORS, Limits, fitted, tokens_of


@dataclass(frozen=True)
class TokenAudit:
    """The counts of the screens that were sent to ``model``."""

    model: ABCModel
    screens: Sequence[SentScreen]

    @cached_property
    def processor(self) -> ResizedPixels | None:
        """The resize of the checkpoint's own processor, as its adapter declares it."""
        return self.model.processor(self.screens[0].task)

    @cached_property
    def limits(self) -> Limits | None:
        """The resize that the counts show; ``None`` if none of Qwen's kind explains them."""
        counts = [(screen.size, beyond) for screen in self.screens if (beyond := screen.beyond_common) is not None]
        factors = FACTORS if self.processor is None else dict.fromkeys((self.processor.factor, *FACTORS))
        found = (fitted([*counts, (self.screens[0].common, 0)], factor) for factor in factors if counts)
        return next(filter(None, found), None)

    def seen(self, screen: SentScreen) -> int | None:
        """The tokens of the screen's picture by the server's counts."""
        frame = self.processor if self.limits is None else self.limits.frame
        beyond = screen.beyond_common
        return None if frame is None or beyond is None else beyond + _tokens(frame, screen.common)

    def expected(self, screen: SentScreen) -> int | None:
        """The tokens of the screen's picture by the processor's formula."""
        return None if self.processor is None else _tokens(self.processor, screen.size)

    @property
    def finding(self) -> AuditFinding:
        counted = [screen for screen in self.screens if screen.beyond_common is not None]
        own = self.processor
        if not counted:
            return AuditFinding("tokens", "unknown", "The server states no prompt tokens, so they cannot be checked")
        if len({screen.beyond_common for screen in counted}) == 1 < len({screen.size for screen in counted}):
            fixed = "Pictures of every size take as many prompt tokens: all are resized to one size, or none is seen"
            return AuditFinding("tokens", "unknown" if own is None else "fault", fixed)
        seen = "no resize of Qwen's kind explains them" if self.limits is None else f"the server {self.limits.sentence}"
        name = self.model.config.name
        if own is None:
            why = f"The adapter of {name} declares no processor, so its prompt tokens have no formula; by their numbers {seen}"
            return AuditFinding("tokens", "unknown", why)
        wrong = sum(self.seen(screen) != self.expected(screen) for screen in counted)
        if not wrong:
            return AuditFinding(
                "tokens", "fine", f"Prompt tokens of {len(counted)} screens are those of the processor's formula"
            )
        limits = f"sides rounded to multiples of {own.factor}, {own.min_pixels:,} to {own.max_pixels:,} pixels"
        many = f"Prompt tokens of {wrong} of {len(counted)} screens are not those of the processor of {name} ({limits})"
        return AuditFinding("tokens", "fault", f"{many}: {seen}")


def _tokens(frame: ResizedPixels, size: Size) -> int:
    return tokens_of(size, frame.factor, frame.min_pixels, frame.max_pixels)
