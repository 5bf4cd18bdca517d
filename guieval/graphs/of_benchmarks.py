"""The graphs of a benchmark: those that were recorded with its episodes, or else each episode as a path.

On a path the actions that a step accepts are edges to the next screen, and the last step's lead to the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from guieval.actions import Frozen
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.text_files import lines, open_text
from guieval.errors import UsageError, nearest
from guieval.graphs.environment import GraphEnvironment, Miss
from guieval.graphs.graph import Edge, Goal, Graph, Milestone, RecordedScreen
from guieval.graphs.rules import EXACT, RecordedRules
from guieval.online.contract import ABCEnvironment
from guieval.online.find import environments, load_environment
from guieval.registry import list_benchmarks, load_benchmark
from guieval.steps import Episode, validated

GRAPHS = "graphs.jsonl"
"""The file of recorded graphs in a folder of episodes: a :class:`RecordedGraph` a line."""
SPARE_STEPS = 5


class RecordedGraph(Frozen):
    """A goal and the graph in which it is to be reached."""

    goal: Goal
    graph: Graph


def graph_environment(bench: str, folder: Path | None, **options: Any) -> ABCEnvironment:
    """What is acted in when ``bench`` is run in mode ``graph``; ``folder`` is its data.

    Raises :class:`UsageError` for an unknown name or option, and for an environment that has no graph.
    """
    kind, known = environments().get(bench), list_benchmarks()
    if kind is not None and issubclass(kind, GraphEnvironment):
        return load_environment(bench, **(options if folder is None else {"data": str(folder), **options}))
    if kind is not None and bench not in known:
        raise UsageError(
            f"environment {bench!r} has no recorded screens: `guieval data record --graph --bench {bench} --out DIR` records "
            "some, for --bench episodes --data DIR"
        )
    if bench not in known:
        graphs = [name for name, each in environments().items() if each.mode == "graph"]
        raise UsageError(f"unknown benchmark {bench!r}{nearest(bench, [*known, *graphs])}; `guieval benchmarks` lists them")
    miss = options.pop("miss", "stay")
    benchmark = load_benchmark(bench, folder, **options)
    made = RecordedGraphs if (benchmark.root / GRAPHS).is_file() else PathGraphs
    about = {name: getattr(benchmark, name) for name in ("name", "title", "source", "licence")}
    found: ABCEnvironment = type(made.__name__, (made,), about)(benchmark, miss)  # the environment has the benchmark's name
    return found


class PathGraphs(GraphEnvironment):
    """The episodes of ``benchmark``, each as a path. An agent may take twice its steps and :data:`SPARE_STEPS` more."""

    def __init__(self, benchmark: ABCBenchmark, miss: Miss = "stay") -> None:
        super().__init__(miss)
        self.benchmark, self.root = benchmark, benchmark.root
        self.rules = RecordedRules(benchmark.protocol, benchmark.dataset)
        self._load = lru_cache(maxsize=64)(lambda name: benchmark.load(self._refs[name]))

    @cached_property
    def _refs(self) -> Mapping[str, EpisodeRef]:
        return {"/".join(filter(None, (ref.key.subset, ref.key.episode_id))): ref for ref in self.benchmark.index()}

    @cached_property
    def goals(self) -> Mapping[str, Goal]:
        return {name: self._goal(name, self._load(name)) for name in self._refs}

    @property
    def content(self) -> str:
        digest = sha256("".join(goal.model_dump_json() for goal in self.goals.values()).encode("utf-8", "replace"))
        return f"{self.benchmark.name}-{digest.hexdigest()[:12]}"

    def _goal(self, name: str, episode: Episode) -> Goal:
        count = len(episode.steps)
        screens = [*map(str, range(1, count)), "end"]
        first = episode.steps[0]
        milestones = tuple(Milestone(screens=frozenset({each})) for each in screens)
        most = 2 * count + SPARE_STEPS
        return Goal(id=name, text=first.instruction, start="0", milestones=milestones, max_steps=most, groups=first.groups)

    def graph(self, goal: Goal) -> Graph:
        steps = self._load(goal.id).steps
        names = [*map(str, range(len(steps))), "end"]
        screens = [RecordedScreen(file=step.screenshot, size=step.screenshot_size) for step in (*steps, steps[-1])]
        fields = [name for name in Edge.model_fields if name != "target"]
        edges = [
            (Edge(target=target, **{name: getattr(step, name) for name in fields}),)
            for target, step in zip(names[1:], steps, strict=True)
        ]
        return Graph(
            screens=dict(zip(names, screens, strict=True)), edges=dict(zip(names, edges, strict=False)), ends=frozenset({"end"})
        )


class RecordedGraphs(GraphEnvironment):
    """The graphs that ``guieval data record --graph`` wrote."""

    def __init__(self, benchmark: ABCBenchmark, miss: Miss = "stay") -> None:
        super().__init__(miss)
        self.root = benchmark.root
        self.rules = RecordedRules(EXACT, "online")

    @cached_property
    def _recorded(self) -> Mapping[str, RecordedGraph]:
        file = self.root / GRAPHS
        with open_text(file) as stream:
            found = [
                validated(RecordedGraph, line, file=file, line=number) for number, line in enumerate(lines(file, stream), 1)
            ]
        if len({each.goal.id for each in found}) < len(found):
            raise UsageError(f"{str(file)!r} has several graphs of one task")
        return {each.goal.id: each for each in found}

    @property
    def goals(self) -> Mapping[str, Goal]:
        return {name: each.goal for name, each in self._recorded.items()}

    @property
    def content(self) -> str:
        digest = sha256("".join(each.model_dump_json() for each in self._recorded.values()).encode("utf-8", "replace"))
        return digest.hexdigest()[:12]

    def graph(self, goal: Goal) -> Graph:
        return self._recorded[goal.id].graph
