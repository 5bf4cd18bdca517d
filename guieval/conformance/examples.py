"""Synthetic steps and actions for the conformance suites."""

from __future__ import annotations

from guieval.actions import Action, ActionSpace, Box, Boxes, LongPress, Point, Wait
from guieval.frames import Size
from guieval.steps import Setting, StepTaskModel

SIZES: tuple[Size, ...] = ((1080, 2400), (1920, 1080), (330, 210))
"""Screenshots of the synthetic steps: a phone, a desktop, and one that is smaller than some families' lower limit."""


def example_step(
    action: Action, *, setting: Setting = "high", size: Size = SIZES[0], index: int = 0, length: int = 8
) -> StepTaskModel:
    """A synthetic step whose reference is ``action``; a box of 4 % of the screen is around its point, if it has one."""
    point: Point | None = getattr(action, "point", None)
    boxes = Boxes([Box(point.x - 20, point.y - 20, point.x + 20, point.y + 20)]) if point else Boxes()
    return StepTaskModel(
        benchmark="conformance",
        dataset="conformance",
        episode_id="episode",
        step_index=index,
        episode_length=length,
        setting=setting,
        instruction='Turn on {Wi-Fi} and say "done"',
        low_level_instruction="Tap the switch",
        screenshot=f"{index}.png",
        screenshot_size=size,
        action=action,
        targets=boxes,
    )


def example_actions(space: ActionSpace) -> tuple[Action, ...]:
    """The examples of an action space, and some with a duration of their own."""
    point = Point(400.0, 600.0)
    timed: tuple[Action, ...] = (LongPress(point=point, duration=2500.0), Wait(duration=2500.0))
    return (*space.examples, *(action for action in timed if action in space))
