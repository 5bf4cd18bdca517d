"""ColorBench (MadeAgents, 2025): 175 tasks in a graph of 1,987 recorded screens of 21 Chinese apps.

``graph.json`` and ``tasks.json`` are in ``data`` of github.com/MadeAgents/ColorBench (1f26a84), the screenshots in the data set
Norsheep/ColorBench of the Hugging Face hub. A folder has all of them, the screenshots anywhere below it. The published
``tasks.json`` lacks a comma; it is added when it is read. Boxes are in pixels of 1080 x 2374.

``colorbench-official`` has the rules of the authors' code with its faults, ``colorbench-intended`` those that it seems to mean;
docs/graphs.md lists in which they differ (S1 to S11 of ``graph_tools.py``, P1 to P7 of ``parse_result.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from guieval import actions as act
from guieval.actions import Action, Box, Boxes, ExecutableAction, Point
from guieval.data.files import read_bytes
from guieval.data.text_files import read_whole
from guieval.errors import DataError, UsageError, first_problem
from guieval.graphs.environment import GraphEnvironment, Miss
from guieval.graphs.graph import Distances, Edge, Goal, Graph, Milestone, RecordedScreen, Roads, Ways
from guieval.graphs.rules import Move, Rules, Walk
from guieval.graphs.stand_ins import drawn

SIZE = (1080, 2374)
ROOT = "update_by_hand_Screenshot_2025-09-08-12-52-48-00_b783bf344239542886fee7b48fa4b892.jpg"
"""The home screen: ``root_node`` of the authors' configuration."""
FOLDERS = (Path("data/colorbench"), Path("data/colorbench-official"), Path("data/colorbench-intended"))
_WITHOUT_COMMA = re.compile(rb'("optimal_steps": \d+)(\s*")')
_Read = TypeVar("_Read")
SEED = 42
SAME = 2.0
"""Boxes around a point that differ in area by no more are of one element."""
PLACES = 7
"""A click is tried in a grid of so many columns and rows of its box."""
BUDGET = 40
LONGEST_NAME = 255
"""Bytes of a folder's name on common file systems (P6)."""
OTHER_NAMES = {
    **{"bilibili": "哔哩哔哩", "高德": "高德地图", "WPS": "WPS Office", "58": "58同城", "去哪儿": "去哪儿旅行"},
    **{
        "携程": "携程旅行",
        "红果": "红果免费短剧",
        "红果短剧": "红果免费短剧",
        "小布": "小布助手",
        "百度浏览器": "百度",
        "JD": "京东",
    },
}
ICONS = {
    "微信": (78, 191, 248, 421),
    "QQ": (327, 193, 499, 426),
    "淘宝": (576, 472, 755, 705),
    "哔哩哔哩": (329, 474, 501, 707),
    "抖音": (78, 479, 250, 702),
    "京东": (834, 479, 1004, 707),
    "美团": (78, 756, 250, 988),
    "小红书": (585, 758, 750, 981),
    "百度": (834, 758, 1004, 988),
    "高德地图": (329, 1042, 501, 1273),
    "拼多多": (332, 1328, 490, 1558),
    "携程旅行": (80, 1323, 250, 1553),
    "大众点评": (834, 1326, 1004, 1556),
}
"""What a click on the home screen opens, in pixels. The graph has no QQ."""


class _ColorBenchRules(Rules):
    """What both sets of rules share."""

    def anywhere(self, graph: Graph) -> Ways:
        """Every screen that an app opens with, and HOME."""
        opened = {edge.target: edge.action for edge in reversed(graph.edges[ROOT]) if isinstance(edge.action, act.Open)}
        return {**opened, ROOT: act.Press(button="HOME")}

    def ways(self, graph: Graph, screen: str) -> Ways:
        """A click is in the place that the fewest other edges have."""
        found: dict[str, tuple[int, Action]] = {}
        for edge in graph.edges.get(screen, ()) if screen != ROOT else ():
            for action in _places(edge):
                leads = self._leads(graph, screen, action)
                if edge.target in leads and len(leads) < found.get(edge.target, (math.inf,))[0]:
                    found[edge.target] = len(leads), action
                if found.get(edge.target, (0,))[0] == 1:
                    break
        return {target: action for target, (_, action) in found.items()}

    def _leads(self, graph: Graph, screen: str, action: Action | ExecutableAction) -> set[str]:
        """The screens that an action may lead to by edges."""
        return {edge.target for edge in graph.edges.get(screen, ()) if self._fits(edge, action)}

    def _fits(self, edge: Edge, action: Action | ExecutableAction) -> bool:
        """Whether an edge takes an action; a long press and a click do not stand for each other (S10)."""
        match edge.action, action:
            case (act.Click(), act.Click(point=point)) | (act.LongPress(), act.LongPress(point=point)):
                return _holds(_corners(edge), point)
            case act.Scroll(), act.Scroll():
                return edge.action.direction == action.direction
            case act.Type(), act.Type():
                return self._same_text(edge.action.text, action.text)
            case act.Wait(), act.Wait():
                return True
        return False

    def _same_text(self, reference: str, text: str) -> bool:
        raise NotImplementedError


class OfficialRules(_ColorBenchRules):
    """Those of ``graph_tools.py`` and ``parse_result.py`` at 1f26a84, with their faults."""

    name = "colorbench-official"
    unparseable = 1  # S11

    def move(self, graph: Graph, walk: Walk, action: ExecutableAction, draw: Random) -> Move:
        stack, screen = walk.stack, walk.stack[-1]
        match action:
            case act.Stop():
                return Move(stack, "stop", over=True)
            case act.Press(button="BACK"):
                return Move(stack[:-1], "rule") if len(stack) > 1 else Move(stack, "miss", over=True)  # S9
            case act.Press(button="HOME"):
                return Move((*stack, ROOT), "rule")  # S9: BACK returns into the app
            case act.Click() if screen == ROOT and (icon := _icon(action.point)):
                action = act.Open(app=icon)  # S7
        if isinstance(action, act.Open):
            entries = _entries(graph, action.app)
            return (
                Move((*stack, draw.choice(entries)), "edge", len(entries)) if entries else Move(stack, "miss", over=True)
            )  # S8
        edges = graph.edges.get(screen, ())
        found = list(dict.fromkeys(edge.target for edge in edges if self._fits(edge, action)))
        waits = [edge.target for edge in edges if isinstance(edge.action, act.Wait)]
        if fitting := found or waits:
            return Move(
                (*stack, fitting[draw.randint(0, len(fitting) - 1)]), "edge" if found else "free", len(fitting)
            )  # S1, S5
        return Move((*stack, screen), "miss")  # S9: BACK returns from a screen to itself, once for each miss

    def _same_text(self, reference: str, text: str) -> bool:
        """S2, S3: an empty text or any common part will do; only the reference is normalised in some of the tests (S4)."""
        reference, whole = _normal(reference), _normal(text)
        some = all(part in text for part in reference.split(",")) or all(part in reference for part in whole.split(","))
        return some or text.lower() in reference or reference in text.lower()

    def reached(self, walk: Walk) -> Sequence[bool]:
        """P1: a set of screens, in any order; P2: never an answer; P6: nothing if the trajectory's folder cannot be made."""
        seen = set(walk.seen) if self.in_means(walk) else set()
        return [bool(milestone.screens & seen) for milestone in walk.goal.milestones]

    def in_means(self, walk: Walk) -> bool:
        """P4, P6: a task is not, if the folder of its trajectory cannot have the goal as its name."""
        return len(walk.goal.text.replace("/", "_").encode()) <= LONGEST_NAME

    def attempted(self, walk: Walk) -> Sequence[bool]:
        """P5: the first ability that failed is counted, and none of the later ones that did."""
        reached = self.reached(walk)
        first = next((place for place, met in enumerate(reached) if not met), None)
        return [self.in_means(walk) and (met or place == first) for place, met in enumerate(reached)]


class IntendedRules(_ColorBenchRules):
    """No chance, no free wait, one stack, milestones in order, and an explicit finish."""

    name = "colorbench-intended"

    def move(self, graph: Graph, walk: Walk, action: ExecutableAction, draw: Random) -> Move:
        stack, screen = walk.stack, walk.stack[-1]
        match action:
            case act.Stop():
                return Move(stack, "stop", over=True)
            case act.Answer():
                return Move(stack, "rule")
            case act.Press(button="BACK"):
                return Move(stack[:-1], "rule") if len(stack) > 1 else Move(stack, "miss")
            case act.Press(button="HOME"):
                return Move((ROOT,), "rule")
            case act.Click() if screen == ROOT and (icon := _icon(action.point)):
                action = act.Open(app=icon)
        if isinstance(action, act.Open):
            entries = _entries(graph, action.app)
            return Move((*stack, entries[0]), "edge") if entries else Move(stack, "miss")
        if not (found := self._leads(graph, screen, action)):
            return Move(stack, "miss")
        return Move((*stack, min(found, key=lambda target: (walk.left(target), target))), "edge", len(found))

    def anywhere(self, graph: Graph) -> Ways:
        found = super().anywhere(graph)
        return {at: do for at, do in found.items() if not isinstance(do, act.Open) or _entries(graph, do.app)[0] == at}

    def _leads(self, graph: Graph, screen: str, action: Action | ExecutableAction) -> set[str]:
        """Those of the smallest box, and of others of up to :data:`SAME` times its area: an element is annotated several times.

        Of several the nearest to the goal is taken, as on a device that is in the task's state.
        """
        found = [edge for edge in graph.edges.get(screen, ()) if self._fits(edge, action)]
        most = SAME * min(map(_area, found), default=0.0)
        return {edge.target for edge in found if _area(edge) <= most}

    def _same_text(self, reference: str, text: str) -> bool:
        first, second = _normal(reference), _normal(text)
        short, long = sorted((first, second), key=len)
        return bool(short) and (short == long or (len(short) > 1 and short in long))

    def answered(self, walk: Walk) -> int:
        expected = walk.goal.milestones[walk.met].answers if walk.met < len(walk.goal.milestones) else ()
        return walk.met + any(self._same_text(each, walk.answers[-1]) for each in expected)

    def success(self, walk: Walk) -> bool:
        return walk.stopped == "finish" and super().success(walk)


class _PublishedAction(BaseModel):
    action_type: Literal["click", "long_press", "swipe", "type", "open", "wait"]
    bbox: tuple[float, float, float, float] = (0, 0, 0, 0)
    direction: act.Direction = "up"
    text: str = ""
    app: str = ""

    def edge(self, target: str) -> Edge:
        """The edge in unified words."""
        box = Box(*(1000 * each / side for each, side in zip(self.bbox, (*SIZE, *SIZE), strict=True)))
        middle = Point(500, 500)
        meant: Action
        match self.action_type:
            case "click" | "long_press" as name:
                kind = act.Click if name == "click" else act.LongPress
                return Edge(target=target, action=kind(point=_on_screen(box).centre), targets=Boxes([box]))
            case "swipe":
                meant = act.Scroll(point=middle, direction=self.direction)
            case "type":
                meant = act.Type(text=self.text)
            case "open":
                meant = act.Open(app=self.app)
            case _:
                meant = act.Wait()
        return Edge(target=target, action=meant)


class _PublishedMilestone(BaseModel):
    ability: str
    page_node: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()


class _PublishedTask(BaseModel):
    task_id: int
    query: str
    optimal_steps: int
    app_num: int
    milestone: tuple[_PublishedMilestone, ...]


_GRAPH, _TASKS = TypeAdapter(dict[str, dict[str, tuple[_PublishedAction, ...]]]), TypeAdapter(tuple[_PublishedTask, ...])


class _ColorBench(GraphEnvironment):
    source = (
        "huggingface.co/datasets/Norsheep/ColorBench: the screenshots; github.com/MadeAgents/ColorBench: data/graph.json and "
        "data/tasks.json"
    )
    licence = "Apache-2.0 (the code and the graph); that of the screenshots is not stated"
    tried = False
    spare: ClassVar[float] = 0.0
    """The steps of a task are as many times the published ones, and at least :data:`BUDGET`."""

    def __init__(self, *, data: str = "", screens: Literal["published", "drawn"] = "published", miss: Miss = "stay") -> None:
        super().__init__(miss)
        self.root = Path(data) if data else next((folder for folder in FOLDERS if folder.is_dir()), FOLDERS[0])
        self.screens = screens

    @property
    def content(self) -> str:
        digest = sha256(b"".join(read_whole(self._file(name)) for name in ("graph.json", "tasks.json"))).hexdigest()
        return f"{digest[:12]}{'-drawn' * (self.screens == 'drawn')}"

    @classmethod
    def published_tasks(cls, options: Mapping[str, Any]) -> int:
        return 175

    def graph(self, goal: Goal) -> Graph:
        return self._graph

    def roads(self, graph: Graph) -> Roads:
        return self._roads

    def picture(self, graph: Graph, screen: str) -> bytes:
        if self.screens == "drawn":
            return drawn(graph, screen)
        if screen not in self._pictures:
            raise UsageError(f"{str(self.root)!r} has no screenshot {screen!r}: guieval data download {self.name}")
        return read_bytes(self._pictures[screen])

    @cached_property
    def _pictures(self) -> Mapping[str, Path]:
        return {file.name: file for file in sorted(self.root.rglob("*")) if file.name in self._graph.screens}

    def _file(self, name: str) -> Path:
        found = next((file for file in (self.root / name, self.root / "data" / name) if file.is_file()), None)
        if found is None:
            raise UsageError(f"the folder {str(self.root)!r} has no {name}; add --data DIR, with the files of {self.source}")
        return found

    def _read(self, name: str, kind: TypeAdapter[_Read]) -> _Read:
        file = self._file(name)
        text = _WITHOUT_COMMA.sub(rb"\1,\2", read_whole(file))
        try:
            return kind.validate_json(text)
        except ValidationError as error:
            problem = first_problem(error)
            raise DataError(f"{file}, field {problem.field or '(whole file)'}: {problem.sentence}") from None

    @cached_property
    def _graph(self) -> Graph:
        rows = self._read("graph.json", _GRAPH)
        edges = {
            screen: tuple(each.edge(target) for target, actions in targets.items() for each in actions)
            for screen, targets in rows.items()
        }
        if ROOT not in edges:
            raise DataError(f"{self._file('graph.json')}: has no home screen {ROOT}")
        names = dict.fromkeys([*edges, *(target for targets in rows.values() for target in targets)])
        return Graph(screens={name: RecordedScreen(file=name, size=SIZE) for name in names}, edges=edges)

    @cached_property
    def _roads(self) -> Roads:
        return super().roads(self._graph)

    @cached_property
    def goals(self) -> Mapping[str, Goal]:
        return {str(task.task_id): self._goal(task) for task in self._read("tasks.json", _TASKS)}

    def _goal(self, task: _PublishedTask) -> Goal:
        milestones = tuple(
            Milestone(screens=frozenset(each.page_node), answers=each.answer, name=each.ability) for each in task.milestone
        )
        steps = max(BUDGET, int(self.spare * task.optimal_steps))
        goal = Goal(id=str(task.task_id), text=task.query, start=ROOT, milestones=milestones, max_steps=steps)
        feasible = not any(each.answers for each in milestones) and Distances(goal, self._roads).left(ROOT, 0) < math.inf
        groups = {"apps": "one" if task.app_num == 1 else "several", "can succeed": "yes" if feasible else "no"}
        return goal.model_copy(update={"groups": groups})


class ColorBenchOfficial(_ColorBench):
    """ColorBench by its authors' rules, with their faults: 40 steps, and transitions drawn in the order of all tasks.

    ``draws`` is ``run`` as there: all 175 tasks are done one after the other in their order, so that the same actions lead to
    the same screens, and a stopped run cannot be resumed. With ``task`` each task draws for itself.
    """

    name = "colorbench-official"
    title = "ColorBench (the authors' rules)"
    rules = OfficialRules()

    def __init__(
        self,
        *,
        data: str = "",
        screens: Literal["published", "drawn"] = "published",
        miss: Miss = "stay",
        draws: Literal["run", "task"] = "run",
    ) -> None:
        super().__init__(data=data, screens=screens, miss=miss)
        self._by, self._drawing, self._begun = draws, Random(SEED), 0

    @property
    def content(self) -> str:
        return f"{super().content}-draws:{self._by}"

    @property
    def most_devices(self) -> int | None:
        return 1 if self._by == "run" else None

    def draws(self, goal: Goal, seed: int) -> Random:
        if self._by == "task":
            return super().draws(goal, seed)
        order = [*self.goals, "no task"]
        if goal.id != order[self._begun]:
            raise UsageError(
                f"{self.name} draws transitions in the order of all tasks, and task {goal.id} was begun where "
                f"{order[self._begun]} is next: start a new run of all tasks, or let each draw for itself with "
                "--set bench_options.draws=task"
            )
        self._begun += 1
        return self._drawing


class ColorBenchIntended(_ColorBench):
    """ColorBench by the rules that its authors seem to mean; a task has twice its published steps, at least 40."""

    name = "colorbench-intended"
    title = "ColorBench (the rules it means)"
    rules = IntendedRules()
    spare = 2.0


def _places(edge: Edge) -> Iterator[Action]:
    """The action of an edge, and others like it in its box."""
    yield edge.action
    if isinstance(edge.action, act.Click | act.LongPress):
        x1, y1, x2, y2 = _on_screen(edge.targets[0])
        for row, column in product(range(1, PLACES), repeat=2):
            point = Point(x1 + (x2 - x1) * column / PLACES, y1 + (y2 - y1) * row / PLACES)
            yield edge.action.model_copy(update={"point": point})


def _on_screen(box: Box) -> Box:
    """The part of a box on the screen, since some reach beyond it."""
    return Box(*(min(1000.0, max(0.0, each)) for each in box))


def _pixel(point: Point) -> tuple[int, int]:
    return tuple(int(each * side / 1000 + 1e-6) for each, side in zip(point, SIZE, strict=True))  # type: ignore[return-value]


def _holds(box: Sequence[float], point: Point) -> bool:
    """S6: whether a box in pixels has a point, borders included."""
    x, y = _pixel(point)
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def _corners(edge: Edge) -> tuple[int, ...]:
    """The box of a click in whole pixels, as the authors cut it."""
    return tuple(int(each * side / 1000 + 1e-6) for each, side in zip(edge.targets[0], (*SIZE, *SIZE), strict=True))


def _area(edge: Edge) -> float:
    x1, y1, x2, y2 = edge.targets[0] if len(edge.targets) else (0, 0, 0, 0)
    return (x2 - x1) * (y2 - y1)


def _icon(point: Point) -> str | None:
    return next((app for app, box in ICONS.items() if _holds(box, point)), None)


def _entries(graph: Graph, app: str) -> list[str]:
    """The screens that an app opens with: the first action of every edge from the home screen names its app."""
    name = OTHER_NAMES.get(app, app)
    first = {edge.target: edge.action for edge in reversed(graph.edges[ROOT])}
    targets = dict.fromkeys(edge.target for edge in graph.edges[ROOT])
    return [each for each in targets if isinstance(found := first[each], act.Open) and found.app == name]


def _normal(text: str) -> str:
    return re.sub('[，。/:*?"“”<>|]', ",", text.lower()).replace(" ", "")
