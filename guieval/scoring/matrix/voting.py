"""The action that most samples of a step agree on, by a rule that does not depend on a protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence

from guieval.actions import Action, Click, LongPress, Open, Scroll, Type
from guieval.evaluation import TextRule

NEAR = 40.0
"""Points of two samples within this many thousandths of the screen are the same click to a vote."""

_TEXT = TextRule()


def voted(actions: Sequence[Action | None]) -> int:
    """The place of the action that most samples agree on; among equally many the first one.

    Actions are taken in order, and each joins the first group with whose first action it agrees: equal types, and points
    within :data:`NEAR` (clicks and long presses), equal directions, buttons or ends, equal texts and app names once
    lower-cased and stripped; what lies outside the unified space must be equal altogether. Replies without an action agree
    with each other. The vote is the same under all protocols.
    """
    groups: list[list[int]] = []
    for place, action in enumerate(actions):
        for group in groups:
            if _agree(actions[group[0]], action):
                group.append(place)
                break
        else:
            groups.append([place])
    return max(groups, key=len)[0]


def _agree(one: Action | None, other: Action | None) -> bool:
    if isinstance(one, Click | LongPress) and isinstance(other, Click | LongPress):
        return one.type == other.type and math.dist(one.point, other.point) <= NEAR
    if isinstance(one, Scroll) and isinstance(other, Scroll):
        return one.direction == other.direction
    if isinstance(one, Type) and isinstance(other, Type):
        return _TEXT.normalise(one.text) == _TEXT.normalise(other.text)
    if isinstance(one, Open) and isinstance(other, Open):
        return _TEXT.normalise(one.app) == _TEXT.normalise(other.app)
    if one is not None and other is not None and one.type == other.type == "WAIT":
        return True
    return one == other
