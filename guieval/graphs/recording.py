"""Records graphs of an environment: its expert's way to every goal, and what other actions lead to next to it.

A screen is what it looks like: two states of an environment with the same picture are one screen, and what the first of them
leads to counts. So a graph knows less than its environment, and docs/graphs/graphs.md compares both.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from guieval import actions as act
from guieval.actions import BORDER, Box, Boxes, ExecutableAction, Point, executable
from guieval.data.episodes.format import EPISODES
from guieval.graphs.graph import Edge, Goal, Graph, Milestone, RecordedScreen
from guieval.graphs.of_benchmarks import GRAPHS, RecordedGraph
from guieval.online.attempt import screen_name
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.online.demonstrate import Demonstrations, chosen_tasks, demonstrated
from guieval.online.recording import Progress, Recording

DONE, FAILED = "done", "failed"
COLUMNS, ROWS = 3, 8
"""A screen is clicked in the middle of every cell of a grid too, since not all of its elements are known."""
WIDTH, HEIGHT = 500 / COLUMNS, 500 / ROWS
"""The box in which such a click is taken to lead to the same: half a cell, so that most of the rest is a miss."""
MOST_SCREENS = 400
"""The most screens of a task on which actions are tried."""
ANY_TEXT = "zz"
"""What is typed to see where a wrong text leads."""
PRESS = 5.0
"""Half the side of the box around an expert's click whose target is not known, in [0, 1000]."""


class RecordedGraphsCount(NamedTuple):
    """Counts of a recording: its demonstrations, graphs, screens and edges."""

    demonstrations: Demonstrations
    graphs: int
    screens: int
    edges: int


def record_graphs(
    environment: ABCEnvironment,
    out: Path,
    *,
    seed: int = 0,
    tasks: Sequence[str] | None = None,
    depth: int = 0,
    on_progress: Progress = lambda done, total: None,
) -> RecordedGraphsCount:
    """Write the expert's demonstrations as :func:`guieval.online.demonstrate.demonstrate` does, with a graph of each.

    Every action is tried on the expert's screens and on those up to ``depth`` actions away from them; on the screens that these
    lead to, BACK and HOME. A recording that was stopped is continued at the first task whose graph is not finished. Raises as
    that function, and :class:`EnvironmentFailure` if a device fails.
    """
    chosen = chosen_tasks(environment, tasks)
    recording = Recording(environment, out, (seed,), chosen, depth=depth, on_progress=on_progress)
    done, episodes = demonstrated(environment, recording, (seed,), chosen)
    succeeded = [task for task in chosen if task.id in done.succeeded]
    graphs = asyncio.run(_record(environment.with_expert(), recording, seed, succeeded, depth))
    recording.finish({EPISODES: episodes, GRAPHS: "".join(each.model_dump_json() + "\n" for each in graphs)})
    edges = sum(len(each) for recorded in graphs for each in recorded.graph.edges.values())
    return RecordedGraphsCount(done, len(graphs), sum(len(each.graph.screens) for each in graphs), edges)


async def _record(
    environment: ABCEnvironment, recording: Recording, seed: int, tasks: Sequence[EnvironmentTask], depth: int
) -> list[RecordedGraph]:
    found: list[RecordedGraph] = []
    device = await environment.open()
    try:
        for task in tasks:
            part = f"graph {task.id}"
            if (kept := recording.finished(part)) is None:
                graph = await _Explorer(device, task, seed, recording, depth).recorded()
                kept = [] if graph is None else [graph.model_dump(mode="json")]
                recording.add(part, kept)
            found += [RecordedGraph.model_validate(each) for each in kept]
    finally:
        await device.close()
    return found


class _Explorer:
    """The graph of one task, while it grows."""

    def __init__(self, device: ABCDevice, task: EnvironmentTask, seed: int, recording: Recording, depth: int) -> None:
        self._device, self._task, self._seed, self._recording, self._depth = device, task, seed, recording, depth
        self._screens: dict[str, RecordedScreen] = {}
        self._ways: dict[str, tuple[ExecutableAction, ...]] = {}
        self._edges: dict[str, list[Edge]] = {}
        self._expert: dict[str, ExpertStep] = {}
        self._here: str | None = None
        """The screen that the device is on, if it is on one by its own way."""

    async def recorded(self) -> RecordedGraph | None:
        """The graph; ``None`` if the expert did not succeed this time."""
        observation = await self._device.reset(self._task, self._seed)
        goal, start = observation.goal, self._seen(observation, ())
        end = await self._follow(start)
        if end != DONE:
            return None
        queue = deque((screen, 0) for screen in self._expert)
        for _ in range(MOST_SCREENS):
            if not queue:
                break
            screen, away = queue.popleft()
            found = await self._try(screen, whole=away <= self._depth)
            queue.extend((each, away + 1) for each in found if away <= self._depth)
        milestone = Milestone(screens=frozenset({DONE}))
        groups = dict(self._task.groups) or {"task": self._task.id}
        about = Goal(
            id=self._task.id, text=goal, start=start, milestones=(milestone,), max_steps=self._task.max_steps, groups=groups
        )
        edges = {screen: tuple(each) for screen, each in self._edges.items()}
        return RecordedGraph(goal=about, graph=Graph(screens=self._screens, edges=edges, ends=frozenset({DONE, FAILED})))

    async def _follow(self, screen: str) -> str:
        """The expert's way from a screen; where it ends."""
        for _ in range(self._task.max_steps):
            step = await self._device.expert()
            action = None if step is None else executable(step.action)
            if step is None or action is None:
                break
            self._expert.setdefault(screen, step)
            target = await self._led(screen, action)
            boxes = step.targets
            if isinstance(action, act.Click | act.LongPress) and not len(boxes):
                boxes = Boxes([_around(action.point)])
            edge = Edge(target=target, action=step.action, alternatives=step.alternatives, targets=boxes)
            self._edges.setdefault(screen, []).append(edge)
            screen = target
            if screen in (DONE, FAILED):
                break
        return screen

    async def _try(self, screen: str, *, whole: bool) -> list[str]:
        """Try all actions on a screen, or the ways back; the screens that were not known before."""
        new: list[str] = []
        clicks: dict[tuple[str, bool, str], list[tuple[act.Click | act.LongPress, Box]]] = {}
        for action, box, patterns in _tried(self._expert.get(screen), whole=whole):
            before = len(self._ways)
            if not await self._reached(screen):
                break
            target = await self._led(screen, action)
            new += [target] * (len(self._ways) > before)
            if box is not None and isinstance(action, act.Click | act.LongPress):
                clicks.setdefault((action.type, abs(box.x2 - box.x1 - WIDTH) < BORDER, target), []).append((action, box))
            else:
                self._edges.setdefault(screen, []).append(Edge(target=target, action=action, extras=patterns))
        for (_, _, target), places in sorted(
            clicks.items(), key=lambda item: item[0][1]
        ):  # those of elements before the grid's
            edge = Edge(target=target, action=places[0][0], targets=Boxes([box for _, box in places]))
            self._edges.setdefault(screen, []).append(edge)
        return new

    async def _reached(self, screen: str) -> bool:
        """Bring the device to a known screen; whether it shows the same again."""
        if self._here != screen:
            observation = await self._device.reset(self._task, self._seed)
            if way := self._ways[screen]:
                observation = await self._device.step(way)
            self._here = _name(observation)
        return self._here == screen

    async def _led(self, screen: str, action: ExecutableAction) -> str:
        """Carry out an action on a screen; where it leads."""
        observation = await self._device.step([action])
        if isinstance(action, act.Stop) or observation.over:
            self._here = None
            end = DONE if (await self._device.score()).success else FAILED
            self._screens.setdefault(end, self._kept(observation))
            return end
        known = _name(observation) in self._screens
        target = self._seen(observation, (*self._ways[screen], action))
        self._here = None if known and target != screen else target
        return target

    def _seen(self, observation: Observation, way: tuple[ExecutableAction, ...]) -> str:
        name = _name(observation)
        if name not in self._screens:
            self._screens[name] = self._kept(observation)
            self._ways[name] = way
        return name

    def _kept(self, observation: Observation) -> RecordedScreen:
        return RecordedScreen(file=self._recording.keep(observation.screenshot), size=observation.size)


def _name(observation: Observation) -> str:
    return screen_name(observation.screenshot)


_BACKWARDS: tuple[act.Button, ...] = ("BACK", "HOME")
_Tried = tuple[ExecutableAction, Box | None, dict[str, list[str]]]


def _tried(step: ExpertStep | None, *, whole: bool) -> Iterator[_Tried]:
    """What is tried on a screen: with each action the box in which it leads to the same, or the patterns of texts that do."""
    middle = Point(500, 500)
    for button in _BACKWARDS:
        yield act.Press(button=button), None, {}
    if not whole:
        return
    yield act.Wait(), None, {}
    yield act.Stop(), None, {}
    for place, box in enumerate(() if step is None else (*step.targets, *step.elements)):
        shown = Box(*(min(1000.0, max(0.0, side)) for side in box))
        yield act.Click(point=shown.centre), shown, {}
        if step is not None and place < len(step.targets):
            yield act.LongPress(point=shown.centre), shown, {}
    for direction in act.DIRECTIONS:
        yield act.Scroll(point=middle, direction=direction), None, {}
    yield act.Type(text=ANY_TEXT), None, {"text_patterns": ["(?s).*"]}
    yield act.Stop(status="impossible"), None, {}
    for row in range(ROWS):
        for column in range(COLUMNS):
            x, y = (column + 0.5) * 1000 / COLUMNS, (row + 0.5) * 1000 / ROWS
            box = Box(x - WIDTH / 2, y - HEIGHT / 2, x + WIDTH / 2, y + HEIGHT / 2)
            yield act.Click(point=Point(x, y)), box, {}


def _around(point: Point) -> Box:
    return Box(point.x - PRESS, point.y - PRESS, point.x + PRESS, point.y + PRESS)
