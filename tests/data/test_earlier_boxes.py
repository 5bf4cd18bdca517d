"""What ``boxes`` of earlier versions become: by their loader's meaning in what guieval wrote, refused in what a user wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Boxes, Click, Point, Type
from guieval.data.earlier_boxes import ELEMENTS, TARGET_FIRST, TARGETS, divided_step, earlier_json
from guieval.data.episodes.prepare import prepare
from guieval.data.overlays import read_overlay
from guieval.errors import GuievalError
from guieval.journal.lines import read_line
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel
from tests.json_values import read_json
from tests.made_runs import record, step
from tests.rows import every_row

AROUND, ELSEWHERE = [400.0, 400.0, 600.0, 600.0], [700.0, 700.0, 900.0, 900.0]
AT = {"type": "CLICK", "point": [500.0, 500.0]}
WORDS = ("targets (boxes where a right click may land)", "elements (boxes of what else is on the screen)")


def earlier_line(task: StepTaskModel, *actions: Action) -> bytes:
    """A journal's line as earlier versions wrote it."""
    written = read_json(record(task, *actions).model_dump_json())
    return json.dumps({**written, "task": read_json(earlier_json(task))}).encode() + b"\n"


@every_row(
    ("dataset", "step", "targets", "elements"),
    [
        ("screenspot-v2", {"action": AT, "boxes": [AROUND, ELSEWHERE]}, [AROUND, ELSEWHERE], []),
        ("androidcontrol", {"action": AT, "boxes": [AROUND, ELSEWHERE]}, [], [AROUND, ELSEWHERE]),
        ("demo", {"action": AT, "boxes": [AROUND, ELSEWHERE]}, [AROUND], [ELSEWHERE]),
        ("demo", {"action": {"type": "WAIT"}, "boxes": [ELSEWHERE]}, [], [ELSEWHERE]),
        ("demo", {"action": {"type": "TYPE"}, "boxes": [ELSEWHERE, AROUND], "extras": {"target": "x"}}, [ELSEWHERE], [AROUND]),
        # what nobody here loaded: only boxes that are all around an accepted point can have been targets
        ("own", {"action": AT, "boxes": [AROUND]}, [AROUND], []),
        ("own", {"action": AT, "boxes": [AROUND, ELSEWHERE]}, [], [AROUND, ELSEWHERE]),
        ("own", {"action": {"type": "WAIT"}, "alternatives": [AT], "boxes": [AROUND]}, [AROUND], []),
        ("own", {"action": {"type": "WAIT"}, "boxes": [AROUND]}, [], [AROUND]),
        ("own", {"action": AT, "boxes": ["nonsense"]}, [], ["nonsense"]),
    ],
)
def test_the_boxes_are_what_the_loader_meant(dataset: str, step: dict[str, Any], targets: Any, elements: Any) -> None:
    divided = divided_step(step, dataset)
    assert (divided.get("targets"), divided.get("elements"), "boxes" in divided) == (targets, elements, False)


def test_every_data_set_with_a_loader_is_known() -> None:
    """One whose earlier boxes nobody divides would have its old journals read by a guess."""
    datasets = {kind.dataset for kind in benchmarks().values() if kind.__module__.startswith("guieval.benchmarks")}
    assert datasets - {""} <= TARGETS | ELEMENTS | TARGET_FIRST


def test_a_journal_of_an_earlier_version_is_read() -> None:
    task = step(Click(point=Point(500, 500)), dataset="aitz", elements=Boxes([AROUND, ELSEWHERE]))
    assert read_line(earlier_line(task)).task == task
    task = step(Click(point=Point(500, 500)), dataset="mind2web", targets=Boxes([AROUND, ELSEWHERE]))
    assert read_line(earlier_line(task)).task == task
    noted = step(Type(text='"boxes": [1]'), extras={"boxes": [1, 2]})  # a word in a text, and a field of the data's own
    assert read_line(record(noted).model_dump_json().encode()).task == noted


def test_a_folder_that_an_earlier_version_prepared_is_read(tmp_path: Path) -> None:
    source, folder = tmp_path / "release", tmp_path / "prepared"
    benchmarks()["aitz"].write_example(source)
    prepare(benchmarks()["aitz"], source, folder)
    now = [each for episode in load_benchmark("aitz", folder) for each in episode.steps]
    assert any(len(each.elements) for each in now)
    file = folder / "episodes.jsonl"
    file.write_text(file.read_text().replace('"elements":', '"boxes":'))
    (folder / "episodes.index.json").unlink()
    assert [each for episode in load_benchmark("aitz", folder) for each in episode.steps] == now


def own_file(folder: Path) -> None:
    line: dict[str, Any] = {"episode_id": "1", "instruction": "x", "frame": "unified"}
    line["steps"] = [{"screenshot": "0.png", "screenshot_size": [9, 9], "action": AT, "boxes": [AROUND]}]
    (folder / "episodes.jsonl").write_text(json.dumps(line) + "\n")
    for _ in load_benchmark("episodes", folder):
        pass


def constructed(folder: Path) -> None:
    step(Click(point=Point(500, 500)), boxes=Boxes([AROUND]))


def overlay(folder: Path) -> None:
    (folder / "more.jsonl").write_text(json.dumps({"episode_id": "1", "step_index": 0, "boxes": [AROUND]}) + "\n")
    read_overlay(folder / "more.jsonl")


@every_row("given", [own_file, constructed, overlay])
def test_a_users_boxes_are_refused_by_one_sentence_that_names_both(given: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises((GuievalError, ValueError)) as caught:
        given(tmp_path)
    message = str(caught.value)
    assert "\n" not in message and "boxes" in message
    assert all(words in message for words in WORDS), message
