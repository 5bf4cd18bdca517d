"""What an action does in a graph, and when a goal in it is reached: a benchmark's own rules, or those of recorded edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Literal, NamedTuple

from guieval.actions import Action, ExecutableAction, Stop, StopStatus, TableNineAction, Unsupported
from guieval.evaluation import ActionEvaluator, ClickRule, Protocol, StepRules, TextRule
from guieval.frames import Size
from guieval.graphs.graph import Distances, Edge, Goal, Graph, Ways
from guieval.steps import StepTaskModel


class Move(NamedTuple):
    """What an action comes to: the screens that BACK returns through, the present one last, and by what it was led there.

    ``edge``: one of ``edges`` that fit it. ``free``: an edge that any action takes. ``rule``: BACK, HOME or an answer, by the
    rules. ``stop``: the task is stopped. ``miss``: nothing fits it. ``over``: it ends the task.
    """

    stack: tuple[str, ...]
    by: Literal["edge", "free", "rule", "stop", "miss"]
    edges: int = 1
    over: bool = False


@dataclass
class Walk:
    """What happened in a task so far."""

    goal: Goal
    distances: Distances
    stack: tuple[str, ...]
    seen: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    met: int = 0
    """The milestones met so far, in order."""
    stopped: StopStatus | None = None

    def left(self, screen: str) -> float:
        """The steps that would be left if a screen was seen now."""
        return self.distances.left(screen, self.goal.met(self.met, screen))


class Rules(ABC):
    """The rules of a graph. Stateless."""

    name: str
    unparseable: ClassVar[int | None] = None
    """Responses in a row without an action that end a task, if the rules say so."""

    @abstractmethod
    def move(self, graph: Graph, walk: Walk, action: ExecutableAction, draw: Random) -> Move:
        """What ``action`` does on the present screen; what is left to chance is drawn from ``draw``."""

    def ways(self, graph: Graph, screen: str) -> Ways:
        """The screens that one action can lead to, beyond :meth:`anywhere`, each with the action that most surely does."""
        found: dict[str, Action] = {}
        for edge in graph.edges.get(screen, ()):
            found.setdefault(edge.target, edge.action)
        return found

    def anywhere(self, graph: Graph) -> Ways:
        """The same for what leads to a screen from every other one."""
        return {}

    def answered(self, walk: Walk) -> int:
        """The milestones that are met in order with the last answer."""
        return walk.met

    def reached(self, walk: Walk) -> Sequence[bool]:
        """Whether each milestone counts as reached."""
        return [place < walk.met for place in range(len(walk.goal.milestones))]

    def success(self, walk: Walk) -> bool:
        """Whether the task is a success in the present state."""
        return all(self.reached(walk))

    def in_means(self, walk: Walk) -> bool:
        """Whether the attempt is in means over tasks."""
        return True

    def attempted(self, walk: Walk) -> Sequence[bool]:
        """Whether each milestone is in the denominator of its ability."""
        return [True] * len(walk.goal.milestones)


EXACT = Protocol(
    name="graph",
    source="guieval, docs/graphs/graphs.md",
    summary="graphs that guieval records: inside the box, the same text, direction, button and status",
    rules=StepRules(click=ClickRule(inside="targets"), text=TextRule(compare="equal"), stop="status"),
)
"""The rules of edges that were tried in an environment, where a click next to an element leads elsewhere."""


class RecordedRules(Rules):
    """The first edge is taken of which a protocol calls the action an exact match; ``dataset`` is that of its rules."""

    def __init__(self, protocol: str | Protocol, dataset: str) -> None:
        self._evaluator, self._dataset = ActionEvaluator(protocol), dataset
        self.name = self._evaluator.protocol.name

    def move(self, graph: Graph, walk: Walk, action: ExecutableAction, draw: Random) -> Move:
        screen = walk.stack[-1]
        said = action if isinstance(action, TableNineAction) else Unsupported(name=action.type, device=action)
        size = graph.screens[screen].size
        found = [each.target for each in graph.edges.get(screen, ()) if self._fits(walk.goal, each, size, said)]
        if not found:
            return Move(walk.stack, "miss", over=isinstance(action, Stop))
        return Move((found[0],), "edge", len(set(found)))

    def _fits(self, goal: Goal, edge: Edge, size: Size, action: Action) -> bool:
        if isinstance(edge.action, Unsupported) and isinstance(action, Unsupported) and edge.action.device is not None:
            return edge.action.device == action.device
        about = {"benchmark": "graph", "dataset": self._dataset, "episode_id": goal.id, "step_index": 0, "episode_length": 1}
        shown = {"instruction": goal.text, "screenshot": "screen", "screenshot_size": size}
        fields = {name: getattr(edge, name) for name in Edge.model_fields if name != "target"}
        return self._evaluator.evaluate(StepTaskModel(**about, **shown, **fields), action).exact_match
