"""Discounted future returns of a rollout's steps.

Source: UI-S1 paper, equation 9 and Table 8. How its released code differs: ``docs/advantages.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from guieval.errors import UsageError, nearest

Segment: TypeAlias = Literal["natural", "trajectory", "released"]
"""How far a step's return looks ahead. ``natural``: to the end of its run of matches and the step after it, which is the
mismatch that ended it (equation 9: t_end = min(max{k >= t | all of t..k match} + 1, T); of a mismatch only itself).
``trajectory``: to the rollout's last step, across mismatches (Table 8, t_end = T). ``released``: as natural, but the mismatch
keeps its reward to itself and passes nothing back (the released code)."""
SEGMENTS: tuple[Segment, ...] = get_args(Segment)


def step_returns(
    rewards: Sequence[float], matched: Sequence[bool], *, gamma: float, segment: Segment = "natural"
) -> list[float]:
    """R_t of a rollout's n steps (n,), of their rewards and of whether each matched by itself (not by a patch).

    ``gamma`` in [0, 1] discounts a reward once for each step that it lies ahead. Raises :class:`UsageError` for another
    gamma or an unknown segment, and ``ValueError`` when there are not as many rewards as matches.
    """
    if not 0 <= gamma <= 1:
        raise UsageError(f"gamma is {gamma!r}: expected a number from 0 to 1")
    if segment not in SEGMENTS:
        raise UsageError(f"unknown segment {segment!r}{nearest(str(segment), SEGMENTS)}; known: {', '.join(SEGMENTS)}")
    returns = [0.0] * len(rewards)
    ahead = 0.0
    for t, (reward, match) in reversed(list(enumerate(zip(rewards, matched, strict=True)))):
        looks_ahead = match or segment == "trajectory"
        returns[t] = reward + gamma * ahead if looks_ahead else float(reward)
        ahead = 0.0 if segment == "released" and not match else returns[t]
    return returns
