"""A graph of recorded screens: its edges with their actions, the goals of tasks in it, and how far a goal is."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import Field

from guieval.actions import Action, Boxes, Frozen
from guieval.frames import Size


class Edge(Frozen):
    """An action that leads to the screen ``target``; the other fields are those of :class:`guieval.steps.StepTaskModel`."""

    target: str
    action: Action
    alternatives: tuple[Action, ...] = ()
    targets: Boxes = Boxes()
    elements: Boxes = Boxes()
    extras: dict[str, Any] = Field(default_factory=dict)


class RecordedScreen(Frozen):
    """A recorded screen: the path of its picture in the data folder, and the (width, height) in pixels that rules go by."""

    file: str
    size: Size


class Graph(Frozen):
    """Screens by name, and the edges that leave them, in the order of the source. Every screen of ``ends`` ends the task."""

    screens: dict[str, RecordedScreen]
    edges: dict[str, tuple[Edge, ...]]
    ends: frozenset[str] = frozenset()


class Milestone(Frozen):
    """Screens of which one has to be seen, or ``answers`` of which one has to be given; ``name`` is the ability it tests."""

    screens: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    name: str = ""


class Goal(Frozen):
    """A task in a graph: where it begins, and its milestones in order."""

    id: str
    text: str
    start: str
    milestones: tuple[Milestone, ...] = Field(min_length=1)
    max_steps: int = Field(ge=1)
    groups: dict[str, str] = Field(default_factory=dict)

    def met(self, before: int, screen: str) -> int:
        """The number of milestones that are met in order when a screen is seen after the first ``before`` of them."""
        while before < len(self.milestones) and screen in self.milestones[before].screens:
            before += 1
        return before


Ways = Mapping[str, Action]
"""For each screen that one action leads to, an action that does."""


class Roads:
    """From where every screen can be reached in one step: ``ways`` has those of each screen, ``anywhere`` those of all."""

    def __init__(self, screens: Iterable[str], ways: Callable[[str], Ways], anywhere: Ways) -> None:
        self.screens, self.anywhere = tuple(screens), anywhere.keys()
        self.before: dict[str, list[str]] = {}
        for screen in self.screens:
            for target in ways(screen):
                self.before.setdefault(target, []).append(screen)


class Distances:
    """The fewest steps from every screen through the rest of a goal's milestones, in order."""

    def __init__(self, goal: Goal, roads: Roads) -> None:
        self._roads = roads
        found: list[Mapping[str, int]] = [dict.fromkeys(roads.screens, 0)]
        for milestone in reversed(goal.milestones):
            rest = found[-1]
            if milestone.answers:
                found.append({screen: steps + 1 for screen, steps in rest.items()})
            else:
                found.append(self._nearest({each: rest[each] for each in milestone.screens if each in rest}))
        self._left = found[::-1]

    def _nearest(self, first: Mapping[str, int]) -> Mapping[str, int]:
        """The fewest steps from every screen to one of ``first`` and as many more as that has."""
        steps, queue = dict(first), [(count, screen) for screen, count in first.items()]
        heapq.heapify(queue)
        from_all = False
        while queue:
            count, screen = heapq.heappop(queue)
            if count > steps[screen]:
                continue
            before: Iterable[str] = self._roads.before.get(screen, ())
            if screen in self._roads.anywhere and not from_all:
                before, from_all = self._roads.screens, True
            for each in before:
                if count + 1 < steps.get(each, math.inf):
                    steps[each] = count + 1
                    heapq.heappush(queue, (count + 1, each))
        return steps

    def left(self, screen: str, met: int) -> float:
        """The steps that are left after the first ``met`` milestones; infinite if there is no way."""
        return self._left[met].get(screen, math.inf)
