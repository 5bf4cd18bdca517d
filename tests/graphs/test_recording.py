"""``guieval data record --graph``: a graph of an environment with a reset, in which actions do what they do there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from guieval.actions import Click, ExecutableAction, LongPress, Point, Press, Stop, Type, executable
from guieval.errors import UsageError
from guieval.graphs import recording
from guieval.graphs.of_benchmarks import RecordedGraphs, graph_environment
from guieval.graphs.recording import COLUMNS, ROWS, record_graphs
from guieval.online import ABCEnvironment
from guieval.online.find import load_environment
from guieval.online.recording import Recording
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.graphs.small import led, named
from tests.online.devices import require_chromium
from tests.rows import every_row

CELLS = [Click(point=Point((x + 0.5) * 1000 / COLUMNS, (y + 0.5) * 1000 / ROWS)) for x in range(COLUMNS) for y in range(ROWS)]
Shown = tuple[bytes, bool, bool]


def shown(environment: ABCEnvironment, name: str, actions: Sequence[ExecutableAction]) -> Shown:
    """The screen after some actions, and whether the task is over, and a success."""

    async def act() -> Shown:
        device = await environment.open()
        task = next(each for each in environment.tasks() if each.id == name)
        observation = await device.reset(task, 0)
        for action in actions:
            observation = await device.step([action])
        success = (await device.score()).success
        await device.close()
        return observation.screenshot, observation.over, success

    return asyncio.run(act())


def recorded(folder: Path, environment: ABCEnvironment) -> tuple[RecordedGraphs, dict[str, list[ExecutableAction]]]:
    """The graphs of an environment, and the expert's actions in each task."""
    record_graphs(environment, folder)
    graphs = graph_environment("episodes", folder)
    assert isinstance(graphs, RecordedGraphs)
    episodes = {
        episode.key.episode_id: [executable(step.action) for step in episode.steps]
        for episode in load_benchmark("episodes", folder)
    }
    return graphs, {name: [action for action in actions if action is not None] for name, actions in episodes.items()}


@pytest.mark.ci
def test_a_recorded_graph_leads_where_the_environment_does(tmp_path: Path) -> None:
    """After any part of the expert's way, a click leads to the same screen, and ends the task in the same way.

    With a budget of its own, a graph forgave useless steps that cost the environment's task.
    """
    environment = load_environment("demo-icons", episodes=1)
    graphs, ways = recorded(tmp_path / "icons", environment)
    ((name, way),) = ways.items()
    assert named(graphs, name).max_steps == environment.tasks()[0].max_steps
    assert asyncio.run(led(graphs, named(graphs, name))).success
    for actions in ([*way[:count], *more] for count in range(len(way)) for more in ([], *([cell] for cell in CELLS))):
        there, here = shown(environment, name, actions), shown(graphs, name, actions)
        assert there[1:] == here[1:] and (there[1] or there[0] == here[0]), actions
    assert "graph-v1-graph-miss:stay-" in graphs.version


@pytest.mark.ci
def test_errors_on_the_phone_are_as_fatal_in_its_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong text, a long press, an early stop, and the way back to the home screen."""
    monkeypatch.setattr(recording, "MOST_SCREENS", 3)
    environment = load_environment("demo", episodes=1)
    graphs, ways = recorded(tmp_path / "phone", environment)
    ((name, way),) = ways.items()
    place = next(number for number, action in enumerate(way) if isinstance(action, Type))
    clicks = [action for action in way if isinstance(action, Click)]
    typed: list[ExecutableAction] = [*way[:place], Type(text="zz"), *way[place + 1 :]]
    early: list[ExecutableAction] = [way[0], Stop()]
    held: list[ExecutableAction] = [LongPress(point=clicks[0].point)]
    back: list[ExecutableAction] = [way[0], Press(button="HOME"), *way]
    for actions in (way, typed, early, held, back):
        assert shown(graphs, name, actions)[1:] == shown(environment, name, actions)[1:], actions


@pytest.mark.ci
def test_a_page_has_a_graph(tmp_path: Path, guieval: CommandLine) -> None:
    require_chromium("miniwob")
    out = tmp_path / "pages"
    done = guieval(
        "data", "record", "--bench", "miniwob", "--set", "scale=1", "--task", "click-test-2", "--graph", "--out", out
    )
    assert done.code == 0 and "1 graph: " in done.out, done
    graphs = graph_environment("episodes", out)
    assert isinstance(graphs, RecordedGraphs)
    (task,) = graphs.tasks()
    assert asyncio.run(led(graphs, task)).success


@pytest.mark.ci
@pytest.mark.parametrize("part", ["expert 0", "graph"])
def test_a_recording_that_was_killed_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """A kill lost the graphs of all tasks, an hour of pages. Nothing finished is done again, and the files are the same."""
    environment = load_environment("demo-icons", episodes=3)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    record_graphs(environment, whole)
    ids = [task.id for task in environment.tasks()]
    added: list[str] = []
    add = Recording.add

    def killed(self: Recording, name: str, value: object) -> None:
        added.append(name)
        if name == f"{part} {ids[1]}" and len(added) == len(set(added)):
            with (cut / "recording.jsonl").open("a") as file:
                file.write('["torn')
            raise KeyboardInterrupt
        add(self, name, value)

    monkeypatch.setattr(Recording, "add", killed)
    with pytest.raises(KeyboardInterrupt):
        record_graphs(environment, cut)
    with pytest.raises(UsageError, match="a recording that was stopped, of other tasks; repeat its command"):
        record_graphs(environment, cut, tasks=ids[:1])
    with pytest.raises(UsageError, match="of other seeds and depth; repeat"):
        record_graphs(environment, cut, seed=1, depth=1)
    begun = (cut / "recording.jsonl").read_bytes()
    (cut / "recording.jsonl").write_bytes(begun.replace(b"[", b"", 3))
    with pytest.raises(UsageError, match=r"recording.jsonl' is damaged; name a new folder"):
        record_graphs(environment, cut)
    (cut / "recording.jsonl").write_bytes(begun)
    record_graphs(environment, cut)
    assert sorted(added) == sorted([*(f"{kind} {name}" for kind in ("expert 0", "graph") for name in ids), f"{part} {ids[1]}"])
    one, other = ({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")} for folder in (whole, cut))
    assert one == other and "graphs.jsonl" in one and "recording.jsonl" not in one


@every_row(
    ("options", "sentence"),
    [
        (["--graph", "RUN"], "--graph is of an environment's expert and one seed: name the environment with --bench"),
        (["--graph", "--bench", "demo", "--seeds", "2"], "--graph is of an environment's expert and one seed"),
        (["--graph", "--bench", "demo", "--agent", "ocr-baseline"], "--graph is of an environment's expert and one seed"),
        (["--graph", "--bench", "demo", "--depth", "-1"], "--depth is -1; expected at least 0"),
        (["--depth", "1", "--bench", "demo"], "--depth is for --graph"),
    ],
)
def test_what_cannot_be_recorded_is_a_sentence(tmp_path: Path, guieval: CommandLine, options: list[str], sentence: str) -> None:
    assert sentence in guieval.sentence("data", "record", "--out", tmp_path / "out", *options)
