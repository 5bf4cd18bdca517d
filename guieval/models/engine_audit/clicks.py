"""The frame, the axes, the scale and the turn in which the model sees a picture, from clicks on known targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Click, Point
from guieval.data.orientations import unturned_point
from guieval.frames import Frame
from guieval.models import ABCModel
from guieval.models.engine_audit.finding import AuditFinding
from guieval.models.engine_audit.screen import SentScreen
from guieval.models.frame_audit import GAIN, FrameReport, Region, StepAudit, mcnemar, targets_of

ENOUGH, CHANCE = 30, 1e-4
"""Fewest clicks and highest p of a verdict on their frame: targets are certain and looked at once, unlike those of a run."""
_APART = 50.0  # thousandths of the screen; the slope between nearer targets is noise


@dataclass(frozen=True)
class ClickAudit:
    """The clicks on the screens; ``frames`` are further frames that they may be in."""

    model: ABCModel
    screens: Sequence[SentScreen]
    frames: Sequence[Frame] = ()

    @cached_property
    def report(self) -> FrameReport | None:
        """How the clicks fit under every known frame."""
        audit = StepAudit(self.model, self.frames)
        for screen in self.screens:
            audit.add(screen.task, screen.sample, reread=True)
        return None if audit.audit is None else replace(audit.audit.report(), enough=ENOUGH, chance=CHANCE)

    @property
    def findings(self) -> Iterator[AuditFinding]:
        """The result, and that of the turned pictures if there is one."""
        answered = [screen for screen in self.screens if screen.sample.answered]
        clicks = [(screen, action.point) for screen in answered if isinstance(action := screen.sample.action, Click)]
        hits = sum(screen.hit for screen in answered)
        found = f"Clicks hit the target on {hits} of {len(answered)} screens"
        if len(clicks) < len(answered):
            found += f" ({len(answered) - len(clicks)} answers hold no click)"
        skilled = 2 * hits >= len(answered) > 0
        if self.report is not None and self.report.better is not None:
            yield AuditFinding("clicks", "fault", f"{found}: {self.report.sentence}")
        elif (line := _line(clicks)) is not None:
            yield AuditFinding("clicks", "fault", f"{found}: {line}")
        elif skilled:
            yield AuditFinding("clicks", "fine", f"{found}, and no other frame, scale, offset or order of axes fits far better")
        else:
            yield AuditFinding(
                "clicks", "unknown", f"{found}, and no other reading fits far better, so they show no fault and exclude none"
            )
        turned = [(screen, point) for screen, point in clicks if screen.orientation != 1]
        upright = sum(screen.hit for screen, _ in turned)
        flat = sum(_inside(_unturned(_target(screen), screen.orientation), point) for screen, point in turned)
        if 2 * (flat - upright) >= len(turned) > 0:
            why = f"{flat} hit where it is in the unturned picture: the server does not turn them"
            on = f"Of {len(turned)} clicks on pictures that an EXIF orientation turns, {upright} hit the target"
            yield AuditFinding("orientation", "fault", f"{on}, and {why}")
        elif skilled and 2 * upright >= len(turned) > 0:
            on = f"{upright} of {len(turned)} clicks hit the target on pictures that an EXIF orientation turns"
            yield AuditFinding("orientation", "fine", on)


def _target(screen: SentScreen) -> Region:
    return targets_of(screen.task)[0]


def _inside(region: Region, point: Sequence[float]) -> bool:
    left, top, right, bottom = region
    return left <= point[0] <= right and top <= point[1] <= bottom


def _unturned(region: Region, orientation: int) -> Region:
    (x1, y1), (x2, y2) = (unturned_point(*corner, orientation) for corner in (region[:2], region[2:]))
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def _line(clicks: Sequence[tuple[SentScreen, Point]]) -> str | None:
    """The scale and offset of the clicks in words, if far more of them hit without these; ``None`` otherwise.

    Both are medians over pairs of screens (Theil and Sen), so that single clicks elsewhere do not count.
    """
    if len(clicks) < ENOUGH:
        return None
    regions = [_target(screen) for screen, _ in clicks]
    points = np.array([point for _, point in clicks])
    middles = np.array([((left + right) / 2.0, (top + bottom) / 2.0) for left, top, right, bottom in regions])
    lines = [_theil_sen(middles[:, axis], points[:, axis]) for axis in (0, 1)]
    if min(scale for scale, _ in lines) <= 0.0:
        return None
    undone = (points - [offset for _, offset in lines]) / [scale for scale, _ in lines]
    before = [_inside(region, point) for region, point in zip(regions, points, strict=True)]
    after = [_inside(region, point) for region, point in zip(regions, undone, strict=True)]
    gained, lost = (sum(one > other for one, other in zip(*each, strict=True)) for each in ((after, before), (before, after)))
    if gained - lost < GAIN * len(clicks) or mcnemar(gained, lost) >= CHANCE:
        return None
    words = (
        f"{name} is {scale:.3f} times its place {round(offset):+}" for name, (scale, offset) in zip("xy", lines, strict=True)
    )
    return f"{sum(after)} would hit without a scale and an offset (in thousandths of the screen): {', '.join(words)}"


def _theil_sen(places: NDArray[np.float64], clicked: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and offset of the line through ``clicked`` over ``places``; that of the diagonal if all places are alike."""
    one, other = np.triu_indices(len(places), 1)
    apart = np.abs(places[other] - places[one]) > _APART
    if not apart.any():
        return 1.0, 0.0
    slope = float(np.median((clicked[other] - clicked[one])[apart] / (places[other] - places[one])[apart]))
    return slope, float(np.median(clicked - slope * places))
