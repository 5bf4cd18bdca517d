"""An environment of recorded screens: a graph, rules that say what an action does in it, and goals that are milestones.

An action that no edge fits is a miss. The policy for misses is an option of every such environment, and part of its version.
"""

from __future__ import annotations

import asyncio
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from guieval.actions import Answer, ExecutableAction, Stop, Unsupported
from guieval.data.files import read_bytes
from guieval.data.screenshots import probe, resolve
from guieval.errors import EnvironmentFailure, GuievalError, UsageError
from guieval.graphs.graph import Distances, Goal, Graph, Roads
from guieval.graphs.rules import Move, Rules, Walk
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, ExpertStep, Observation
from guieval.steps import Score

Miss = str | int
LEFT_OUT = "left out of means"
"""The count of a score whose task is in no mean over tasks, by the benchmark's own rule."""


class GraphEnvironment(ABCEnvironment):
    """Goals in graphs of recorded screens in the folder ``root``.

    ``miss`` is what an action does that no edge fits: ``stay`` leaves the screen as it is and costs a step, ``end`` ends the
    task, and a number ends it after so many misses in a row on one screen.
    """

    mode = "graph"
    deterministic = True
    rules: Rules
    root: Path

    def __init__(self, miss: Miss = "stay") -> None:
        if not (miss in ("stay", "end") or (isinstance(miss, int) and not isinstance(miss, bool) and miss >= 1)):
            raise UsageError(f"option miss is {miss!r}; expected stay, end, or a whole number from 1")
        self.miss = miss

    @property
    @abstractmethod
    def content(self) -> str:
        """The version of the data."""

    @property
    def version(self) -> str:
        return f"graph-v1-{self.rules.name}-miss:{self.miss}-{self.content}"

    @property
    @abstractmethod
    def goals(self) -> Mapping[str, Goal]:
        """All goals by id, in their own order."""

    @abstractmethod
    def graph(self, goal: Goal) -> Graph:
        """The graph of a goal."""

    def picture(self, graph: Graph, screen: str) -> bytes:
        """The picture of a screen. Raises :class:`guieval.errors.GuievalError` if it cannot be read."""
        return read_bytes(resolve(self.root, graph.screens[screen].file))

    def roads(self, graph: Graph) -> Roads:
        """From where every screen can be reached."""
        return Roads(graph.screens, lambda screen: self.rules.ways(graph, screen), self.rules.anywhere(graph))

    def draws(self, goal: Goal, seed: int) -> Random:
        """What the choices of an attempt at a goal are drawn from."""
        return Random(f"{seed} {goal.id}")

    def tasks(self) -> Sequence[EnvironmentTask]:
        unparseable = self.rules.unparseable
        return tuple(
            EnvironmentTask(goal.id, goal.max_steps, goal.text, groups=goal.groups, unparseable=unparseable)
            for goal in self.goals.values()
        )

    async def open(self) -> ABCDevice:
        return _GraphDevice(self)


class _GraphDevice(ABCDevice):
    """A walk through a graph."""

    def __init__(self, environment: GraphEnvironment) -> None:
        self._environment = environment
        self._walk: Walk | None = None

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        environment = self._environment
        goal = environment.goals[task.id]
        self._graph, self._draw = environment.graph(goal), environment.draws(goal, seed)
        distances = await asyncio.to_thread(lambda: Distances(goal, environment.roads(self._graph)))
        self._walk = Walk(goal, distances, (goal.start,))
        self._counts: Counter[str] = Counter()
        self._misses, self._over, self._astray = 0, False, False
        self._shortest = self._nearest = math.inf
        self._arrive(goal.start)
        self._shortest = self._nearest
        return await asyncio.to_thread(self._observe)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        for action in actions:
            if self._over:
                break
            self._act(action)
        return await asyncio.to_thread(self._observe)

    async def score(self) -> Score:
        rules, walk = self._environment.rules, self._now()
        reached, attempted = rules.reached(walk), rules.attempted(walk)
        success, counts = rules.success(walk), self._counts
        found = {name: float(count) for name, count in counts.items()}
        for milestone, met, counted in zip(walk.goal.milestones, reached, attempted, strict=True):
            for name in (f"ability {milestone.name}: reached", f"ability {milestone.name}: of") if milestone.name else ():
                found[name] = found.get(name, 0.0) + (met if name.endswith("reached") else counted)
        if not rules.in_means(walk):
            found[LEFT_OUT] = 1.0
        if (shortest := self._shortest) < math.inf:
            found |= {"walks": 1.0, "path progress": 1 - self._nearest / shortest if shortest else 1.0}
            found |= {
                "steps of walked successes": counts["actions"] * success,
                "wasted steps": (counts["actions"] - shortest) * success,
            }
        left = walk.distances.left(walk.stack[-1], walk.met)
        way = "no way is left" if left == math.inf else f"{left:.0f} of {shortest:.0f} steps are left on the shortest path"
        missed = f"{counts['misses']} of {counts['actions']} actions had no edge"
        reason = f"{sum(reached)} of {len(reached)} milestones are reached; {way}; {missed}"
        return Score(success=success, progress=sum(reached) / len(reached), reason=reason, counts=found)

    async def expert(self) -> ExpertStep | None:
        """The next step of a shortest path; a stop at its end."""
        walk, rules, graph = self._now(), self._environment.rules, self._graph
        if self._over:
            return None
        if walk.met == len(walk.goal.milestones):
            return ExpertStep(Stop())
        if answers := walk.goal.milestones[walk.met].answers:
            return ExpertStep(Unsupported(name="answer", device=Answer(text=answers[0])))
        screen = walk.stack[-1]
        ways = {**rules.anywhere(graph), **rules.ways(graph, screen)}
        left = {target: walk.left(target) for target in ways}
        best = min(left, key=lambda target: (left[target], target), default=None)
        if best is None or left[best] == math.inf:
            return None
        edge = next((each for each in graph.edges.get(screen, ()) if (each.target, each.action) == (best, ways[best])), None)
        return ExpertStep(ways[best]) if edge is None else ExpertStep(edge.action, edge.targets, edge.alternatives)

    async def close(self) -> None:
        self._walk = None

    def _now(self) -> Walk:
        if self._walk is None:
            raise RuntimeError("reset has not been called")
        return self._walk

    def _act(self, action: ExecutableAction) -> None:
        walk, miss = self._now(), self._environment.miss
        if isinstance(action, Stop):
            walk.stopped = action.status
        if isinstance(action, Answer):
            walk.answers.append(action.text)
            walk.met = self._environment.rules.answered(walk)
        move = self._environment.rules.move(self._graph, walk, action, self._draw)
        self._count(action, move)
        missed = move.by == "miss"
        self._misses = self._misses + 1 if missed else 0
        self._over = move.over or (missed and (miss == "end" or self._misses == miss))
        walk.stack = move.stack
        if not missed and move.by != "stop":
            self._arrive(walk.stack[-1])

    def _count(self, action: ExecutableAction, move: Move) -> None:
        if move.by == "stop":
            return
        self._counts["actions"] += 1
        self._counts["several edges"] += move.edges > 1
        self._counts["free waits"] += move.by == "free"
        self._counts["misses"] += move.by == "miss"
        self._counts[f"{action.type}: actions"] += 1
        self._counts[f"{action.type}: misses"] += move.by == "miss"

    def _arrive(self, screen: str) -> None:
        walk = self._now()
        walk.seen.append(screen)
        walk.met = walk.goal.met(walk.met, screen)
        self._over |= screen in self._graph.ends
        left = walk.distances.left(screen, walk.met)
        if left > self._nearest and not self._astray:
            self._counts["wrong turns"] += 1
            self._astray = True
        elif left <= self._nearest:
            self._counts["recovered"] += self._astray
            self._astray = False
        self._nearest = min(self._nearest, left)

    def _observe(self) -> Observation:
        walk, screen = self._now(), self._now().stack[-1]
        try:
            data = self._environment.picture(self._graph, screen)
            size = probe(data).size
        except (GuievalError, OSError, ValueError) as error:
            raise EnvironmentFailure(f"the screen {screen!r} cannot be read: {error}") from None
        return Observation(walk.goal.text, data, size, over=self._over)
