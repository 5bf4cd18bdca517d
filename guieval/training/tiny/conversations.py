"""The policy's training data: steps of made-up tasks on one screen, each as the adapter's prompt and its reply.

Prompts and replies are the adapter's own, so training and evaluation cannot differ. The history takes every form that
it has in an evaluation or a rollout: as the model's own answers, as the reference's steps, or as bare actions.
"""

from __future__ import annotations

from typing import NamedTuple

from guieval.actions import Click, Point
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel
from guieval.steps import StepTaskModel
from guieval.testing.icons.screens import SIZE, Icon, IconScreen, PlacedIcon, draw_goal, goal_text
from guieval.testing.phone.dice import Dice


class Conversation(NamedTuple):
    """The user's text after the image, the policy's reply, and what it taps."""

    question: str
    answer: str
    target: PlacedIcon


def draw_conversation(dice: Dice, screen: IconScreen, adapter: ABCModel) -> Conversation:
    """A step of a goal of the split ``train`` over some of the screen's icons; where the past was tapped is made up."""
    shown = [placed.icon for placed in screen.icons]
    goal = None
    while goal is None:
        goal = draw_goal(dice, "train", shown, dice.between(1, 4))
    index = dice.below(len(goal))
    own = dice.chance(0.5)
    bare = dice.chance(0.1)
    history = []
    for past in range(index):
        task = _task(goal, past, Point(dice.uniform(100, 900), dice.uniform(100, 950)))
        entry = reference_entry(task)
        if own:
            entry = HistoryEntry(task, task.action, goal[past].name, None, adapter.render(task, task.action), "model")
        if bare:
            entry = HistoryEntry(task, task.action, None, None, None, entry.origin)
        history.append(entry)
    target = screen.find(goal[index])
    task = _task(goal, index, target.centre)
    prompt = adapter.prepare_input(task, history)
    return Conversation(prompt.text, adapter.render(task, task.action, goal[index].name), target)


def _task(goal: tuple[Icon, ...], index: int, place: Point) -> StepTaskModel:
    return StepTaskModel(
        benchmark="tiny",
        dataset="tiny",
        split="train",
        episode_id="made up",
        step_index=index,
        episode_length=len(goal),
        instruction=goal_text(goal),
        low_level_instruction=goal_text(goal[index : index + 1]),
        screenshot=f"{index}.png",
        screenshot_size=SIZE,
        action=Click(point=place),
    )
