"""GUI-Odyssey, both releases: what each label becomes, which split file says what, and where the screenshots are found."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Box, Boxes, Click, LongPress, Point, Press, Scroll, Stop, Type
from guieval.errors import DataError, UsageError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel
from tests.rows import every_row

TOLD = {"description": "a screen", "intention": "go on", "context": "nothing yet"}


def raw(action: str, info: Any, **changes: Any) -> dict[str, Any]:
    """A step of v2 without its number and screenshot."""
    label = {"action": action, "info": info, "ps": "", "low_level_instruction": "do it", "sam2_bbox": []}
    return {**label, **TOLD, **changes}


END = raw("COMPLETE", "")


def annotation(name: str, steps: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    return {
        "episode_id": name,
        "device_info": {"product": "sdk", "h": 2400, "w": 1080, "device_name": "Medium Phone"},
        "task_info": {"category": "Web_Shopping", "app": ["Amazon", "Clock"], "meta_task": "Buy {}", "instruction": "Buy tea."},
        "step_length": len(steps),
        "steps": [{"step": index, "screenshot": f"{name}_{index}.png", **step} for index, step in enumerate(steps)],
        **changes,
    }


def write(root: Path, *episodes: dict[str, Any], train: tuple[str, ...] = ("9.json",), setup: str = "random") -> Path:
    for name in ("annotations", "screenshots", "splits"):
        (root / name).mkdir(parents=True, exist_ok=True)
    names = [f"{value['episode_id']}.json" for value in episodes]
    for name, value in zip(names, episodes, strict=True):
        (root / "annotations" / name).write_text(json.dumps(value), encoding="utf-8")
    split = {"train": list(train), "test": [name for name in names if name not in train]}
    (root / "splits" / f"{setup}_split.json").write_text(json.dumps(split), encoding="utf-8")
    return root


def load(root: Path, name: str = "gui-odyssey", **options: Any) -> list[Episode]:
    benchmark = load_benchmark(name, root, **options)
    return [benchmark.load(ref) for ref in benchmark.index()]


def only_step(root: Path, step: dict[str, Any], name: str = "gui-odyssey") -> StepTaskModel:
    ((read,),) = (episode.steps for episode in load(write(root, annotation("1", [step])), name))
    return read


@every_row(
    ("action", "info", "expected"),
    [
        ("CLICK", [[683, 321], [683, 321]], Click(point=Point(683.0, 321.0))),
        ("CLICK", [[683, 321]], Click(point=Point(683.0, 321.0))),
        ("LONG_PRESS", [[0, 1000], [0, 1000]], LongPress(point=Point(0.0, 1000.0))),
        ("CLICK", "KEY_RECENT", Press(button="RECENT")),
        ("LONG_PRESS", "KEY_HOME", Press(button="HOME")),
        ("TEXT", "http://example.org: tea, 1:2", Type(text="http://example.org: tea, 1:2")),
        ("TEXT", "", Type(text="")),
        ("TYPE", "tea", Type(text="tea")),
        ("IMPOSSIBLE", "", Stop(status="impossible")),
        ("HOME", "", Press(button="HOME")),
        ("BACK", "", Press(button="BACK")),
    ],
)
def test_every_word_becomes_the_action_its_authors_mean(tmp_path: Path, action: str, info: Any, expected: Action) -> None:
    assert only_step(tmp_path, raw(action, info)).action == expected


@every_row(
    ("start", "end", "direction"),
    [
        ((500, 800), (510, 200), "up"),
        ((500, 200), (490, 800), "down"),
        ((900, 500), (100, 480), "left"),
        ((100, 500), (900, 700), "right"),
        ((400, 400), (500, 500), "down"),  # a tie is vertical
        ((500, 500), (400, 400), "up"),
        ((400, 400), (400, 400), "down"),  # no movement at all
        ((500, 30), (500, -12), "up"),  # lifted beyond the edge
    ],
)
def test_a_scroll_goes_where_the_finger_goes(
    tmp_path: Path, start: tuple[int, int], end: tuple[int, int], direction: str
) -> None:
    step = only_step(tmp_path, raw("SCROLL", [list(start), list(end)], ps=[[1, 2], [3, 4]]))
    assert isinstance(step.action, Scroll)
    assert (step.action.direction, step.action.point) == (direction, Point(*map(float, start)))
    assert step.extras["path"] == [list(map(float, start)), list(map(float, end))]
    assert step.extras["ps"] == [[1, 2], [3, 4]]


def test_a_step_of_v2_carries_all_that_is_published_about_it(tmp_path: Path) -> None:
    step = only_step(tmp_path, raw("CLICK", [[500, 300], [500, 300]], sam2_bbox=[450, 280, 560.5, 330]))
    assert list(step.targets) == [Box(450.0, 280.0, 560.5, 330.0)]
    assert (step.instruction, step.low_level_instruction) == ("Buy tea.", "do it")
    assert step.screenshot == "screenshots/1_0.png"
    assert step.screenshot_size == (1080, 2400)
    assert step.groups == {"category": "Web_Shopping", "device": "Medium Phone", "setup": "random", "release": "v2"}
    assert step.extras == {"app": ["Amazon", "Clock"], "meta_task": "Buy {}", **TOLD}


def test_v1_has_no_boxes_and_cannot_be_run_low(tmp_path: Path) -> None:
    step = only_step(tmp_path, {"action": "CLICK", "info": [[500, 300]], "ps": ""})
    assert (step.targets, step.low_level_instruction, step.groups["release"]) == (Boxes(), None, "v1")
    with pytest.raises(DataError, match=r"1\.json, step 0, field low_level_instruction: is missing"):
        load(tmp_path, "gui-odyssey-low")
    assert only_step(tmp_path, raw("COMPLETE", ""), "gui-odyssey-low").setting == "low"


@every_row(
    ("step", "message"),
    [
        (raw("SWIPE", [[1, 1], [2, 2]]), "field action: expected CLICK, LONG_PRESS, SCROLL, TEXT, COMPLETE or INCOMPLETE"),
        (raw("CLICK", "KEY_ENTER"), "field info: expected KEY_HOME, KEY_BACK, KEY_APPSELECT or KEY_RECENT, got 'KEY_ENTER'"),
        (raw("CLICK", ""), "field info: expected KEY_HOME"),
        (raw("CLICK", [[500, 1001]]), "field info: .* lies outside"),
        (raw("SCROLL", [[1, 2]]), "field info: expected 2 or more"),
        (raw("SCROLL", [[1, 2], [math.nan, 2]]), "field info: expected finite numbers"),
        (raw("SCROLL", [[1, 2], [1, math.inf]]), "field info: expected finite numbers"),
        (raw("SCROLL", [[1, 2], [1, 10**400]]), "field info: int too large"),
        (raw("CLICK", [[5, 3]], sam2_bbox=[1, 2, 3]), "field sam2_bbox: expected boxes of 4 numbers"),
    ],
)
def test_what_cannot_be_read_is_reported_and_not_guessed(tmp_path: Path, step: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"1\.json, step 1, {message}"):
        load(write(tmp_path, annotation("1", [END, step])))


def test_the_chosen_split_file_states_what_is_test(tmp_path: Path) -> None:
    episodes = [annotation(name, [END]) for name in ("1", "2", "3")]
    write(tmp_path, *episodes, train=("1.json",))
    write(tmp_path, *episodes, train=("3.json",), setup="device")
    write(tmp_path, annotation("7", [END]), setup="app")

    def splits(**options: Any) -> list[tuple[str, str]]:
        refs = load_benchmark("gui-odyssey", tmp_path, **options).index()
        assert [ref.split for ref in refs] == [episode.steps[0].split for episode in load(tmp_path, **options)]
        return [(ref.key.episode_id, ref.split) for ref in refs]

    unlisted = ("7", "unlisted")
    assert splits() == splits(setup="random") == [("2", "test"), ("3", "test"), ("1", "train"), unlisted]
    assert splits(setup="device") == [("1", "test"), ("2", "test"), ("3", "train"), unlisted]
    assert load(tmp_path, setup="device")[0].steps[0].groups["setup"] == "device"
    with pytest.raises(UsageError, match=r"option setup is 'devise'; expected random or app or device or task"):
        splits(setup="devise")
    with pytest.raises(UsageError, match=r"has no splits/task_split\.json"):
        splits(setup="task")


def test_a_test_episode_that_is_not_there_is_reported_and_a_training_one_is_not(tmp_path: Path) -> None:
    write(tmp_path, *(annotation(name, [END]) for name in ("1", "2", "3")))
    (tmp_path / "annotations" / "2.json").unlink()
    benchmark = load_benchmark("gui-odyssey", tmp_path)
    with pytest.raises(DataError, match=r"random_split\.json, field test: names 1 episodes that .* the first is '2'"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [ref.key.episode_id for ref in benchmark.index()] == ["1", "3"]
    assert len(benchmark.skipped) == 1


def test_an_episode_in_both_lists_and_a_file_of_another_one_are_reported(tmp_path: Path) -> None:
    write(tmp_path, annotation("1", [END]))
    (tmp_path / "annotations" / "1.json").write_text(json.dumps(annotation("2", [END])), encoding="utf-8")
    with pytest.raises(DataError, match="field episode_id: is '2', but the file belongs to episode '1'"):
        load(tmp_path)
    (tmp_path / "splits" / "random_split.json").write_text('{"train": ["1.json"], "test": ["1"]}', encoding="utf-8")
    with pytest.raises(DataError, match=r"field train: names episode '1', which is already listed under test"):
        load(tmp_path)


def test_published_irregularities_are_kept_for_scoring(tmp_path: Path) -> None:
    (episode,) = load(write(tmp_path, annotation("1", [raw("COMPLETE", "", step=4)], step_length=3)))
    (step,) = episode.steps
    assert (step.step_index, step.episode_length) == (0, 1)
    assert (step.extras["step"], step.extras["step_length"]) == (4, 3)


def test_os_atlas_reads_the_same_names_and_grid(tmp_path: Path, shared_data: Path) -> None:
    """OS-Atlas's three samples are steps of one v1 episode: the file names and points are those this loader deals in."""
    lines = (shared_data / "os_atlas_eval" / "gui_odyssey_test.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    files = [Path(sample["image"]).name for sample in samples]
    points = [json.loads(sample["conversations"][1]["value"].split("<point>")[1].split("</point>")[0]) for sample in samples]
    name = files[0].rpartition("_")[0]
    (episode,) = load(write(tmp_path, annotation(name, [{"action": "CLICK", "info": point, "ps": ""} for point in points])))
    assert [step.screenshot for step in episode.steps] == [f"screenshots/{file}" for file in files]
    places = ((683, 321), (749, 810), (348, 232))
    assert [step.action for step in episode.steps] == [Click(point=Point(x, y)) for x, y in places]
