"""AndroidControl from both prepared forms: what each label becomes, where images are looked for, and how damage is reported."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import OPPOSITE, Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.data.benchmark import ABCBenchmark
from guieval.data.doctor.counts import Counts, compare
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.frames import PIXELS, smart_resize
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel

SCREEN = (100, 200)


def entry(episode: int, step: int, code: int, **changes: Any) -> dict[str, Any]:
    """One step as GUIEvalKit's preparation writes it: places as the text of [y, x] lists, -1 where there is none."""
    return {
        "episode_id": episode,
        "step_id": step,
        "episode_length": 3,
        "image_width": SCREEN[0],
        "image_height": SCREEN[1],
        "image_path": f"/home/someone/kit/data/android_control/screenshots/{episode}/screenshot_{episode}_{step}.png",
        "instruction": "Buy milk",
        "result_action_type": code,
        "result_touch_yx": "[-1.0, -1.0]",
        "result_lift_yx": "[-1.0, -1.0]",
        "duration": None,
        "result_action_text": "",
        "result_action_app_name": "",
        "ui_positions": "[[0.25, 0.5, 0.125, 0.25]]",
        "low_instruction": f"do step {step}",
        "subset": "android_control",
        **changes,
    }


def point_entry(code: int, touch: list[float], lift: list[float] | None = None, **changes: Any) -> dict[str, Any]:
    return entry(7, 0, code, result_touch_yx=str(touch), result_lift_yx=str(lift or touch), **changes)


def write_episodes(folder: Path, *episodes: list[dict[str, Any]]) -> Path:
    for steps in episodes:
        name = str(steps[0]["episode_id"])
        (folder / name).mkdir(parents=True)
        (folder / name / f"{name}.json").write_text(json.dumps(steps, ensure_ascii=False), encoding="utf-8")
    return folder


def write_image(path: Path, size: tuple[int, int]) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(path)


def only_step(root: Path, item: dict[str, Any], name: str = "androidcontrol") -> StepTaskModel:
    write_episodes(root / "test/android_control", [item])
    benchmark = load_benchmark(name, root)
    (ref,) = benchmark.index()
    (step,) = benchmark.load(ref).steps
    return step


def episodes_of(benchmark: ABCBenchmark) -> list[Episode]:
    return [benchmark.load(ref) for ref in benchmark.index()]


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (point_entry(0, [0.25, 0.5]), LongPress(point=Point(500, 250))),
        (point_entry(0, [0.25, 0.5], duration=2500), LongPress(point=Point(500, 250), duration=2500)),
        (entry(7, 0, 1), Wait()),
        (entry(7, 0, 3, result_action_text="多行\ntext"), Type(text="多行\ntext")),
        (point_entry(4, [0.25, 0.5]), Click(point=Point(500, 250))),
        (point_entry(4, [0.0, 1.0]), Click(point=Point(1000, 0))),
        (point_entry(4, [0.0, 0.0], [0.04, 0.0]), Click(point=Point(0, 0))),
        (point_entry(4, [0.0, 0.0], [0.0401, 0.0]), Scroll(point=Point(0, 0), direction="down")),
        (point_entry(4, [0.5, 0.5], [0.2, 0.5]), Scroll(point=Point(500, 500), direction="up")),
        (point_entry(4, [0.5, 0.5], [0.5, 0.2]), Scroll(point=Point(500, 500), direction="left")),
        (point_entry(4, [0.5, 0.5], [0.5, 0.8]), Scroll(point=Point(500, 500), direction="right")),
        (entry(7, 0, 5), Press(button="BACK")),
        (entry(7, 0, 6), Press(button="HOME")),
        (entry(7, 0, 7), Press(button="ENTER")),
        (entry(7, 0, 10), Stop(status="finish")),
        (entry(7, 0, 11), Stop(status="impossible")),
        (entry(7, 0, 12, result_action_app_name="Zoho"), Open(app="Zoho")),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_code_of_the_folder_layout(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    step = only_step(tmp_path, item)
    assert step.action == action
    assert step.screenshot_size == SCREEN
    assert [tuple(box) for box in step.boxes] == [(500, 250, 750, 375)]
    assert (step.instruction, step.low_level_instruction) == ("Buy milk", "do step 0")


def test_a_swipe_keeps_its_path(tmp_path: Path) -> None:
    assert only_step(tmp_path, point_entry(4, [0.5, 0.25], [0.125, 0.25])).extras["path"] == [[250, 500], [250, 125]]


@pytest.mark.parametrize(("name", "setting"), [("androidcontrol", "high"), ("androidcontrol-low", "low")])
def test_both_settings_are_the_same_data_set(tmp_path: Path, name: str, setting: str) -> None:
    step = only_step(tmp_path, entry(7, 0, 1), name)
    assert (step.benchmark, step.dataset, step.setting, step.split) == (name, "androidcontrol", setting, "test")


def test_steps_are_counted_and_numbered_by_what_the_file_holds(tmp_path: Path) -> None:
    steps = [entry(7, 0, 1), entry(7, 2, 5), entry(7, 3, 10, image_path="/x/screenshots/7/screenshot_7_2.png")]
    write_episodes(tmp_path, [{**item, "episode_length": 4} for item in steps])
    benchmark = load_benchmark("androidcontrol", tmp_path)
    (ref,) = benchmark.index()
    assert ref.length == 3
    episode = benchmark.load(ref)
    assert [(step.step_index, step.episode_length) for step in episode.steps] == [(0, 3), (1, 3), (2, 3)]
    assert [step.extras for step in episode.steps] == [
        {"episode_length": 4},
        {"step_id": 2, "episode_length": 4},
        {"step_id": 3, "episode_length": 4},
    ]


def test_a_word_in_a_text_is_not_counted_as_a_step(tmp_path: Path) -> None:
    tricky = '"result_action_type": 4, \\"result_action_type\\": "result_action_type'
    write_episodes(tmp_path, [entry(7, 0, 3, result_action_text=tricky, instruction=tricky), entry(7, 1, 10)])
    (ref,) = load_benchmark("androidcontrol", tmp_path).index()
    assert ref.length == 2


def test_episodes_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    write_episodes(tmp_path, *([entry(number, 0, 1)] for number in (100, 9, 10)))
    assert [ref.key.episode_id for ref in load_benchmark("androidcontrol", tmp_path).index()] == ["9", "10", "100"]


@pytest.mark.parametrize("inner", ["..", ".", "test", "test/android_control"])
def test_any_folder_of_the_layout_may_be_given(tmp_path: Path, inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "data" / "android_control"
    write_episodes(top / "test" / "android_control", [entry(7, 0, 1), entry(7, 1, 10)])
    write_image(top / "screenshots/7/screenshot_7_0.png", SCREEN)
    write_image(top / "screenshots/7/screenshot_7_1.png", SCREEN)
    monkeypatch.chdir(top / inner)
    for root in ((top / inner).resolve(), Path(".")):
        benchmark = load_benchmark("androidcontrol", root)
        (episode,) = episodes_of(benchmark)
        assert len(episode) == 2
        for step in episode.steps:
            assert read_screenshot(benchmark.root, step.screenshot, step.screenshot_size).size == SCREEN


@pytest.mark.parametrize(
    ("recorded", "stored", "expected"),
    [
        ("/a/b/screenshots/7/x.png", "screenshots/7/x.png", "screenshots/7/x.png"),
        ("/a/b/screenshots/7/x.png", "b/screenshots/7/x.png", "b/screenshots/7/x.png"),
        ("/a/b/screenshots/7/x.png", "x.png", "x.png"),
        ("screenshots//7/x.png", "screenshots/7/x.png", "screenshots/7/x.png"),
        ("C:\\data\\screenshots\\7\\x.png", "screenshots/7/x.png", "screenshots/7/x.png"),
        ("/a/b/screenshots/7/x.png", None, "screenshots/7/x.png"),
        ("/a/screenshots/b/images/x.png", None, "images/x.png"),
        ("/a/b/c/x.png", None, "c/x.png"),
        ("x.png", None, "x.png"),
        ("../x.png", None, "../x.png"),
    ],
)
def test_recorded_paths_are_found_below_the_folder(tmp_path: Path, recorded: str, stored: str | None, expected: str) -> None:
    if stored is not None:
        write_image(tmp_path / stored, SCREEN)
    steps = [entry(7, 0, 1, image_path=recorded), entry(7, 1, 10, image_path=recorded)]
    write_episodes(tmp_path / "test/android_control", steps)
    (episode,) = episodes_of(load_benchmark("androidcontrol", tmp_path))
    assert [step.screenshot for step in episode.steps] == [expected, expected]


def test_boxes_may_reach_outside_the_screen(tmp_path: Path) -> None:
    step = only_step(tmp_path, entry(7, 0, 1, ui_positions="[[-0.5, -0.25, 2.0, 1.5], [0, 0, 0, 0]]"))
    assert [tuple(box) for box in step.boxes] == [(-250, -500, 1250, 1500), (0, 0, 0, 0)]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (point_entry(4, [0.5, 1.01]), "result_touch_yx"),
        (point_entry(4, [-0.01, 0.5]), "result_touch_yx"),
        (entry(7, 0, 4), "result_touch_yx"),
        (point_entry(4, [0.5, 0.5], [math.inf, 0.5]), "result_lift_yx"),
        (entry(7, 0, 4, result_touch_yx="[0.5]"), "result_touch_yx"),
        (entry(7, 0, 4, result_touch_yx="somewhere"), "result_touch_yx"),
        (point_entry(0, [0.5, 0.5], duration=-1), "duration"),
        (entry(7, 0, 2), "result_action_type"),
        (entry(7, 0, 1, result_action_type="4"), "result_action_type"),
        (entry(7, 0, 4, result_touch_yx="[0.5, 0.5]", result_lift_yx="[0.5, NaN]"), "result_lift_yx"),
        (entry(7, 0, 4, result_touch_yx="[0.5, 0.5]", result_lift_yx="[0.5, 1e999]"), "result_lift_yx"),
        (entry(7, 0, 3, result_action_text=None), "result_action_text"),
        (entry(7, 0, 1, ui_positions="[[1, 2, 3]]"), "ui_positions"),
        (entry(7, 0, 1, ui_positions="[[1, 2, 3, NaN]]"), "ui_positions"),
        (entry(7, 0, 1, ui_positions=[[1, 2, 3, 10**400]]), "ui_positions"),
        (entry(7, 0, 1, image_width=0), "screenshot_size.0"),
        (entry(7, 0, 1, step_id=None), "step_id"),
        ({key: value for key, value in entry(7, 0, 1).items() if key != "instruction"}, "instruction"),
    ],
)
def test_a_damaged_step_is_reported_by_file_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    write_episodes(tmp_path / "test/android_control", [entry(7, 0, 1), {**item, "step_id": item["step_id"] and 1}])
    benchmark = load_benchmark("androidcontrol", tmp_path)
    (ref,) = benchmark.index()
    with pytest.raises(DataError) as caught:
        benchmark.load(ref)
    assert f"7.json, step 1, field {field}: " in str(caught.value)


def test_a_strangers_step_is_refused(tmp_path: Path) -> None:
    write_episodes(tmp_path, [entry(7, 0, 1), entry(8, 1, 1)])
    benchmark = load_benchmark("androidcontrol", tmp_path)
    with pytest.raises(DataError, match=r"7\.json, step 1, field episode_id: is 8, but the file belongs to episode '7'"):
        benchmark.load(benchmark.index()[0])


@pytest.mark.parametrize(
    "text", ['[{"result_action_type": 1', '{"result_action_type": 1}', '[["result_action_type": 1]]', "[]"]
)
def test_a_file_that_holds_no_list_of_steps_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "7.json").write_text(text, encoding="utf-8")
    benchmark = load_benchmark("androidcontrol", tmp_path)
    with pytest.raises(DataError, match=r"7\.json"):
        episodes_of(benchmark)


@pytest.mark.parametrize("stray", [None, "notes.txt", "7/8.json", "images/7_0.png"])
def test_a_folder_without_the_data_is_refused_saying_what_was_expected(tmp_path: Path, stray: str | None) -> None:
    if stray is not None:
        (tmp_path / stray).parent.mkdir(exist_ok=True)
        (tmp_path / stray).write_text("[]")
    with pytest.raises(UsageError, match=r"no AndroidControl data.*<episode>\.json.*android_control_evaluation_std\.jsonl"):
        load_benchmark("androidcontrol", tmp_path)


def test_options_that_have_no_use_are_refused(tmp_path: Path) -> None:
    write_episodes(tmp_path, [entry(7, 0, 1)])
    with pytest.raises(UsageError, match="screen_size='1x2' has no use"):
        load_benchmark("androidcontrol", tmp_path, screen_size="1x2")
    with pytest.raises(UsageError, match="no option 'colour'"):
        load_benchmark("androidcontrol", tmp_path, colour="red")


# --- UI-S1's annotation file ---


def shot(content: dict[str, Any], number: int = 0, **others: Any) -> dict[str, Any]:
    """One step as UI-S1's file writes it."""
    return {
        "action_content": content,
        "screenshot": f"/datasets/AndroidControl/images/7_{number}.png",
        "step_instruction": "do it",
        "check_options": {key: value for key, value in content.items() if key != "coordinate2"},
        **others,
    }


def click(x: float, y: float, *boxes: list[float]) -> dict[str, Any]:
    content = {"action": "click", "coordinate": [x, y]}
    return shot(content, check_options={**content, "candidate_bbox": list(boxes)})


def swipe(start: list[float], end: list[float], direction: str | None) -> dict[str, Any]:
    checks = {"action": "swipe"} if direction is None else {"action": "swipe", "direction": direction}
    return shot({"action": "swipe", "coordinate": start, "coordinate2": end}, check_options=checks)


def line(*steps: dict[str, Any], episode: int | None = 7) -> dict[str, Any]:
    named = {} if episode is None else {"episode_id": episode}
    numbered = [{**step, "screenshot": step["screenshot"].replace("7_0", f"7_{index}")} for index, step in enumerate(steps)]
    return {"goal": "Buy milk", "is_successful": True, "steps": numbered, **named}


def write_lines(root: Path, *lines: dict[str, Any], name: str = "android_control_evaluation_std.jsonl") -> Path:
    text = "".join(json.dumps(item) + "\n" for item in lines).encode()
    (root / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return root


def first_episode(root: Path, name: str = "androidcontrol", **options: Any) -> Episode:
    benchmark = load_benchmark(name, root, **options)
    return benchmark.load(benchmark.index()[0])


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (click(540, 2400), Click(point=Point(500, 1000))),
        (shot({"action": "long_press", "coordinate": [0, 600], "time": 2}), LongPress(point=Point(0, 250), duration=2000)),
        (shot({"action": "long_press", "coordinate": [0, 600]}), LongPress(point=Point(0, 250))),
        (shot({"action": "type", "text": "milk"}), Type(text="milk")),
        (shot({"action": "open", "text": "Shop"}), Open(app="Shop")),
        (shot({"action": "system_button", "button": "Back"}), Press(button="BACK")),
        (shot({"action": "system_button", "button": "Home"}), Press(button="HOME")),
        (shot({"action": "system_button", "button": "Enter"}), Press(button="ENTER")),
        (shot({"action": "wait", "time": 2}), Wait(duration=2000)),
        (shot({"action": "terminate", "status": "success"}), Stop(status="finish")),
        (shot({"action": "terminate", "status": "failure"}), Stop(status="impossible")),
        (swipe([540, 1800], [540, 600], "down"), Scroll(point=Point(500, 750), direction="up")),
        (swipe([540, 600], [540, 1800], "up"), Scroll(point=Point(500, 250), direction="down")),
        (swipe([270, 1200], [810, 1200], "right"), Scroll(point=Point(750, 500), direction="left")),
        (swipe([810, 1200], [270, 1200], "left"), Scroll(point=Point(250, 500), direction="right")),
        (swipe([540, 1800], [540, 600], None), Scroll(point=Point(500, 750), direction="up")),
        (swipe([270, 1200], [810, 1200], None), Scroll(point=Point(750, 500), direction="left")),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_action_of_the_annotation_file(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(item))).steps
    assert step.action == action
    assert (step.instruction, step.low_level_instruction, step.setting) == ("Buy milk", "do it", "high")
    assert step.screenshot == "images/7_0.png"


@pytest.mark.parametrize(
    ("item", "label"),
    [(swipe([540, 1800], [540, 600], "down"), "down"), (swipe([540, 1800], [540, 600], None), "up")],
)
def test_a_swipe_keeps_the_word_its_own_scorers_use(tmp_path: Path, item: dict[str, Any], label: str) -> None:
    extras = first_episode(write_lines(tmp_path, line(item))).steps[0].extras
    assert extras["direction_label"] == label
    assert extras["path"] == [[500, 750], [500, 250]]


@pytest.mark.parametrize(
    ("item", "boxes"),
    [
        (click(540, 1200, [0, 0, 1080, 2400], [540, 600, 2160, -240]), [(0, 0, 1000, 1000), (500, 250, 2000, -100)]),
        (click(540, 1200), []),
        (
            shot({"action": "click", "coordinate": [1, 1]}, check_options={"candidate_bbox": [0, 0, 540, 600]}),
            [(0, 0, 500, 250)],
        ),
        (
            shot({"action": "click", "coordinate": [1, 1], "bbox": [0, 0, 54, 24]})
            | {"check_options": {"action": "click", "bbox": [0, 0, 54, 24]}},
            [(0, 0, 50, 10)],
        ),
        (shot({"action": "open", "text": "A"}, check_options={"candidate_bbox": [[0, 0, 108, 240]]}), [(0, 0, 100, 100)]),
    ],
)
def test_candidate_boxes_in_every_form(tmp_path: Path, item: dict[str, Any], boxes: list[tuple[float, ...]]) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(item))).steps
    assert [tuple(box) for box in step.boxes] == boxes


@pytest.mark.parametrize(
    ("steps", "size", "told_by"),
    [
        ([click(1080, 2400)], (1080, 2400), "fit"),
        ([click(10, 10), click(1081, 10)], (1440, 3120), "fit"),
        ([click(10, 10), click(10, 2401)], (1440, 3120), "fit"),
        ([click(10, 10, [0, 5, 1440, 9])], (1440, 3120), "fit"),
        ([click(10, 10, [-5, 5, 1500, 9], [5, 5, 1440, 9])], (1080, 2400), "fit"),
        ([click(10, 10), swipe([720, 2340], [720, 780], "down")], (1440, 3120), "swipe"),
        ([swipe([270, 1200], [810, 1200], "right")], (1080, 2400), "swipe"),
        ([swipe([270, 1199], [810, 1200], "right")], (1080, 2400), "fit"),
        ([click(10, 10), click(540, 1080, [0, 0, 1080, 2160])], (1080, 2160), "box"),
        ([click(540, 1080, [0, 0, 1080, 2160], [0, 0, 1080, 2400])], (1080, 2400), "box"),
        ([click(540, 1080, [0, 77, 1080, 2160])], (1080, 2400), "fit"),
    ],
)
def test_the_screen_size_follows_from_the_episode(
    tmp_path: Path, steps: list[dict[str, Any]], size: tuple[int, int], told_by: str
) -> None:
    episode = first_episode(write_lines(tmp_path, line(*steps)))
    assert {step.screenshot_size for step in episode.steps} == {size}
    assert {step.extras["screen_size_from"] for step in episode.steps} == {told_by}


@pytest.mark.parametrize("given_size", ["1600x3200", " 1600 X 3200 ", (1600, 3200), [1600, 3200]])
def test_the_screen_size_may_be_given(tmp_path: Path, given_size: Any) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(click(1600, 1600))), screen_size=given_size).steps
    assert step.screenshot_size == (1600, 3200)
    assert step.action == Click(point=Point(1000, 500))
    assert step.extras["screen_size_from"] == "option"


@pytest.mark.parametrize("given_size", ["1600", "1600x", "0x5", "axb", (1, 2, 3), (0, 5), (1.5, 2)])
def test_a_screen_size_that_is_none_is_refused(tmp_path: Path, given_size: Any) -> None:
    write_lines(tmp_path, line(click(1, 1)))
    with pytest.raises(UsageError, match="expected WIDTHxHEIGHT in pixels"):
        load_benchmark("androidcontrol", tmp_path, screen_size=given_size)


def test_an_image_states_its_own_size(tmp_path: Path) -> None:
    write_lines(tmp_path, line(click(50, 50), click(540, 600)))
    write_image(tmp_path / "images/7_0.png", SCREEN)
    first, second = first_episode(tmp_path, screen_size="1080x2400").steps
    assert (first.screenshot_size, first.extras["screen_size_from"]) == (SCREEN, "image")
    assert first.action == Click(point=Point(500, 250))
    assert (second.screenshot_size, second.extras["screen_size_from"]) == ((1080, 2400), "option")
    assert read_screenshot(tmp_path, first.screenshot, first.screenshot_size).size == SCREEN


def test_a_file_that_is_no_image_is_reported(tmp_path: Path) -> None:
    write_lines(tmp_path, line(click(50, 50)))
    (tmp_path / "images").mkdir()
    (tmp_path / "images/7_0.png").write_text("hello")
    with pytest.raises(
        DataError,
        match=r"line 1, step 0, field screenshot: the image 'images/7_0.png' is not a readable PNG, JPEG or WebP image",
    ):
        first_episode(tmp_path)


def test_packed_and_plain_files_are_the_same(tmp_path: Path) -> None:
    lines = [line(click(50, 50), episode=5), line(swipe([540, 1800], [540, 600], "down"), click(9, 9), episode=3)]
    loaded = []
    for name in ("android_control_evaluation_std.jsonl", "android_control_evaluation_std.jsonl.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        folder = tmp_path / name.rsplit(".", 1)[-1]
        folder.mkdir()
        benchmark = load_benchmark("androidcontrol", write_lines(folder, *lines, name=name))
        assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("5", 1), ("3", 2)]
        loaded.append(list(reversed([benchmark.load(ref) for ref in reversed(benchmark.index())])))
    assert loaded[0] == loaded[1]


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    good, bad = json.dumps(line(click(1, 1))), json.dumps(line(click(-1, 1), episode=8))
    (tmp_path / "android_control_evaluation_std.jsonl").write_text(f"\n{good}\r\n\n{bad}")
    benchmark = load_benchmark("androidcontrol", tmp_path)
    assert [ref.key.episode_id for ref in benchmark.index()] == ["7", "8"]
    with pytest.raises(DataError, match=r"std\.jsonl, line 4, step 0, field action_content, field coordinate: .*outside"):
        episodes_of(benchmark)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (click(1441, 5), "action_content, field coordinate"),
        (click(5, math.nan), "action_content, field coordinate"),
        (shot({"action": "click", "coordinate": [5]}), "action_content, field coordinate"),
        (shot({"action": "click"}), "action_content, field coordinate"),
        (shot({"action": "tap"}), "action_content, field action"),
        (shot({}), "action_content, field action"),
        (shot({"action": "type"}), "action_content, field text"),
        (shot({"action": "wait", "time": -2}), "action_content, field time"),
        (shot({"action": "wait", "time": "2"}), "action_content, field time"),
        (shot({"action": "system_button", "button": "Menu"}), "action_content, field button"),
        (shot({"action": "terminate", "status": "maybe"}), "action_content, field status"),
        (swipe([5, 5], [5, 5], "down"), "action_content.coordinate2"),
        (swipe([5, 5], [5, 9], "north"), "check_options, field direction"),
        (click(5, 5, [1, 2, 3]), "check_options, field candidate_bbox"),
        (shot({"action": "wait"}, step_instruction=None), "step_instruction"),
        (shot({"action": "wait"}, action_content=5), "action_content"),
    ],
)
def test_a_damaged_line_is_reported_by_file_line_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    write_lines(tmp_path, line(click(1, 1), episode=1), line(click(1, 1), item))
    benchmark = load_benchmark("androidcontrol", tmp_path)
    first, second = benchmark.index()
    assert len(benchmark.load(first)) == 1
    with pytest.raises(DataError) as caught:
        benchmark.load(second)
    assert f"android_control_evaluation_std.jsonl, line 2, step 1, field {field}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 2: is not JSON"),
        ("[]", "line 2: expected an object"),
        ('{"episode_id": 1, "goal": ""}', "line 2, field steps: is missing"),
        ('{"episode_id": 1, "steps": []}', "line 2: expected a list of steps"),
        ('{"steps": [{"screenshot": "a.png"}]}', "line 2, field episode_id: is missing"),
        (json.dumps(line(click(1, 1))), "line 2: episode androidcontrol/7 is already in .*, line 1"),
    ],
)
def test_the_index_refuses_a_line_it_cannot_name(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "android_control_evaluation_std.jsonl").write_text(json.dumps(line(click(1, 1))) + "\n" + text + "\n")
    with pytest.raises(DataError, match=problem):
        load_benchmark("androidcontrol", tmp_path).index()


@pytest.mark.parametrize("keep", [0, 10, 40])
def test_a_cut_packed_file_is_reported(tmp_path: Path, keep: int) -> None:
    name = "android_control_evaluation_std.jsonl.gz"
    write_lines(tmp_path, line(click(1, 1)), name=name)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:keep])
    with pytest.raises((DataError, UsageError), match=r"cannot be unpacked|is empty"):
        load_benchmark("androidcontrol", tmp_path).index()


def test_a_file_can_be_named(tmp_path: Path) -> None:
    write_lines(tmp_path, line(click(1, 1)))
    write_lines(tmp_path, line(click(1, 1), click(2, 2)), name="my_train.jsonl")
    assert len(first_episode(tmp_path)) == 1
    episode = first_episode(tmp_path, file="my_train.jsonl")
    assert len(episode) == 2
    assert {step.split for step in episode.steps} == {"train"}
    with pytest.raises(UsageError, match=r"no annotation file 'none\.jsonl'"):
        load_benchmark("androidcontrol", tmp_path, file="none.jsonl")


def test_low_needs_an_instruction_for_every_step(tmp_path: Path) -> None:
    bare = {key: value for key, value in click(1, 1).items() if key != "step_instruction"}
    write_lines(tmp_path, line(bare))
    assert first_episode(tmp_path).steps[0].low_level_instruction is None
    with pytest.raises(DataError, match="line 1, step 0, field step_instruction: is missing"):
        first_episode(tmp_path, "androidcontrol-low")


@given(st.integers(0, 1080), st.integers(0, 2400))
def test_pixels_come_back_from_the_record(tmp_path_factory: pytest.TempPathFactory, x: int, y: int) -> None:
    root = write_lines(tmp_path_factory.mktemp("ac"), line(click(x, y, [0, 0, x, y])))
    (step,) = first_episode(root).steps
    assert isinstance(step.action, Click)
    assert step.action.point.x * 1080 / 1000 == pytest.approx(x, abs=1e-9)
    assert step.action.point.y * 2400 / 1000 == pytest.approx(y, abs=1e-9)
    box = step.boxes[0]
    assert (box.x2, box.y2) == tuple(step.action.point)  # a point on a box's edge stays on it


@pytest.fixture(scope="module")
def ui_s1(shared_data: Path) -> Path:
    folder = shared_data / "ui_s1"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


def test_the_whole_test_file(ui_s1: Path) -> None:
    benchmark = load_benchmark("androidcontrol", ui_s1)
    refs = benchmark.index()
    episodes = [benchmark.load(ref) for ref in refs]
    steps = [step for episode in episodes for step in episode.steps]
    assert (len(episodes), len(steps)) == (1543, 8444)
    assert [(ref.key, ref.length) for ref in refs] == [(episode.key, len(episode)) for episode in episodes]
    assert Counter(step.action.type for step in steps) == {
        "CLICK": 5074,
        "SCROLL": 1211,
        "TYPE": 632,
        "OPEN": 608,
        "WAIT": 567,
        "PRESS": 343,
        "LONG_PRESS": 9,
    }
    scrolls = [step for step in steps if isinstance(step.action, Scroll)]
    assert Counter(step.extras["direction_label"] for step in scrolls) == {"down": 947, "up": 96, "right": 94, "left": 74}
    assert all(step.action.direction == OPPOSITE[step.extras["direction_label"]] for step in scrolls)  # type: ignore[union-attr]
    screens = Counter(episode.steps[0].screenshot_size for episode in episodes)
    assert screens == {(1080, 2400): 1514, (1440, 3120): 24, (1080, 2160): 5}
    assert sum(len(step.boxes) > 0 for step in steps if isinstance(step.action, Open)) == 81
    assert len({step.screenshot for step in steps}) == 8444


def test_the_screens_agree_with_the_labels_of_ui_genie(ui_s1: Path, shared_data: Path) -> None:
    """UI-Genie's labels are pixels of the resized image, so each of them shows the height of its episode's screen."""
    files = sorted((shared_data / "result_files").glob("Euphoria16+UI-Genie__*_badcase.json.gz"))
    if not files:
        pytest.skip("no files of UI-Genie")
    named = re.compile(
        r'"questionID": "(\d+)_(\d+)",\s*'
        r'"gt": "[^{]*\{[^{]*\{\\"action\\": \\"(?:click|long_press)\\", [^\[{}]*\[(\d+), (\d+)\]'
    )
    texts = [gzip.decompress(file.read_bytes()).decode() for file in files]
    labels = {tuple(map(int, found)) for text in texts for found in named.findall(text)}
    assert len(labels) == 1276
    compared = Counter[tuple[int, int]]()
    for step in (step for episode in load_benchmark("androidcontrol", ui_s1) for step in episode.steps):
        if isinstance(step.action, Click | LongPress):
            width, height = step.screenshot_size
            x, y = PIXELS.encode(step.action.point, step.screenshot_size)
            across, down = smart_resize(step.screenshot_size, max_pixels=768 * 28 * 28)
            label = int(step.episode_id), step.step_index, round(x) * across // width, round(y) * down // height
            compared[step.screenshot_size] += label in labels
            labels.discard(label)
    assert not labels
    assert compared == {(1080, 2400): 1264, (1440, 3120): 6, (1080, 2160): 6}


def test_instructions_agree_with_the_fingers_direction(ui_s1: Path) -> None:
    """Where a sideways swipe's instruction names a side, it is the finger's: the reason for turning both axes around."""
    message: Counter[tuple[str, str]] = Counter()
    for episode in episodes_of(load_benchmark("androidcontrol", ui_s1)):
        for step in episode.steps:
            if isinstance(step.action, Scroll) and step.action.direction in ("left", "right"):
                word = re.search(
                    r"\b(?:swipe|scroll|slide)(?: to)?(?: the)? (left|right)\b", (step.low_level_instruction or "").lower()
                )
                if word:
                    message[step.action.direction, word[1]] += 1
    assert message == {("left", "left"): 67, ("left", "right"): 14, ("right", "right"): 20, ("right", "left"): 1}


def test_the_training_examples(ui_s1: Path) -> None:
    benchmark = load_benchmark("androidcontrol", ui_s1, file="android_control_train_example.jsonl")
    episodes = episodes_of(benchmark)
    assert (len(episodes), sum(map(len, episodes))) == (32, 206)
    assert {episode.steps[-1].action for episode in episodes} == {Stop()}
    assert sum(len(step.boxes) for episode in episodes for step in episode.steps) == 74
    assert [episode.key.episode_id for episode in episodes[:3]] == ["0", "20", "40"]
    assert {step.split for episode in episodes for step in episode.steps} == {"train"}


# --- finish steps, damage that is passed over, published counts ---


def test_finish_steps_of_the_folder_can_be_left_out(tmp_path: Path) -> None:
    write_episodes(
        tmp_path / "test/android_control",
        [entry(7, 0, 1), entry(7, 1, 5), entry(7, 2, 10)],
        [entry(8, 0, 10)],
        [entry(9, 0, 10), entry(9, 1, 1)],
    )
    benchmark = load_benchmark("androidcontrol", tmp_path, finish=False)
    assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("7", 2), ("9", 2)]
    kept, odd = episodes_of(benchmark)
    assert [step.action for step in kept.steps] == [Wait(), Press(button="BACK")]
    assert [step.action for step in odd.steps] == [Stop(), Wait()]  # only a last step can be an added one
    assert [len(episode) for episode in episodes_of(load_benchmark("androidcontrol", tmp_path))] == [3, 1, 2]


def test_finish_steps_of_the_file_can_be_left_out(tmp_path: Path) -> None:
    end = shot({"action": "terminate", "status": "success"})
    write_lines(tmp_path, line(click(1, 1), end), line(end, episode=8), line(click(1, 1), episode=9))
    benchmark = load_benchmark("androidcontrol", tmp_path, finish=False)
    assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("7", 1), ("9", 1)]
    assert [[step.action.type for step in episode.steps] for episode in episodes_of(benchmark)] == [["CLICK"], ["CLICK"]]
    with pytest.raises(UsageError, match="finish is 'no'; expected true or false"):
        load_benchmark("androidcontrol", tmp_path, finish="no")


def test_damaged_episodes_can_be_passed_over(tmp_path: Path) -> None:
    folder = write_episodes(tmp_path / "kit", [entry(7, 0, 1)], [entry(8, 0, 99)], [entry(9, 0, 1)], [entry(10, 0, 1)])
    (folder / "9" / "9.json").write_text("gone")
    benchmark = load_benchmark("androidcontrol", folder)
    benchmark = benchmark.skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == ["7", "10"]
    assert [re.sub(r".*kit/", "", str(error)) for error in benchmark.skipped] == [
        "9/9.json: is not JSON (expected value at line 1 column 1)",
        "8/8.json, step 0, field result_action_type: expected one of 0, 1, 3, 4, 5, 6, 7, 10, 11, 12, got 99",
    ]


def test_damaged_lines_can_be_passed_over(tmp_path: Path) -> None:
    write_lines(tmp_path, line(click(1, 1)), line(click(1, 1), episode=8), line(click(1, 1), episode=9))
    file = tmp_path / "android_control_evaluation_std.jsonl"
    first, second, third = file.read_text().splitlines(keepends=True)
    file.write_text(first + second[: len(second) // 2] + "\n" + third + first)
    benchmark = load_benchmark("androidcontrol", tmp_path)
    benchmark = benchmark.skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == ["7", "9"]
    assert len(benchmark.skipped) == 2
    assert "line 2: is not JSON" in str(benchmark.skipped[0])
    assert "line 4: episode androidcontrol/7 is already in " in str(benchmark.skipped[1])


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("android_control_evaluation_std.jsonl.gz", "test split"),
        ("android_control_train_example.jsonl", "UI-S1's training example"),
    ],
)
def test_the_real_files_hold_what_is_published_of_them(ui_s1: Path, file: str, name: str) -> None:
    benchmark = load_benchmark("androidcontrol", ui_s1, file=file)
    counts = Counts()
    for episode in benchmark:
        first = episode.steps[0]
        counts.add(first.split, first.subset, [(step.groups, step.action.type) for step in episode.steps])
    assert [each.published.name for each in compare(benchmark.published, counts) if each.verdict == "agrees"] == [name]
