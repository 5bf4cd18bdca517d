"""AndroidControl in UI-S1's annotation file: labels, boxes, sizes of screens, damage, and the real file."""

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
from PIL import Image

from guieval.actions import OPPOSITE, Action, Click, LongPress, Open, Point, Press, Scroll, Stop
from guieval.data.benchmark import ABCBenchmark
from guieval.data.doctor.counts import Counts, compare
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.frames import PIXELS, smart_resize
from guieval.registry import load_benchmark
from guieval.steps import Episode
from tests.rows import every_row

SCREEN = (100, 200)


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


@every_row(
    ("item", "action"),
    [
        (click(540, 2400), Click(point=Point(500, 1000))),
        (shot({"action": "long_press", "coordinate": [0, 600]}), LongPress(point=Point(0, 250))),
        (shot({"action": "system_button", "button": "Home"}), Press(button="HOME")),
        (shot({"action": "system_button", "button": "Enter"}), Press(button="ENTER")),
        (swipe([540, 600], [540, 1800], "up"), Scroll(point=Point(500, 250), direction="down")),
        (swipe([810, 1200], [270, 1200], "left"), Scroll(point=Point(250, 500), direction="right")),
        (swipe([540, 1800], [540, 600], None), Scroll(point=Point(500, 750), direction="up")),
        (swipe([270, 1200], [810, 1200], None), Scroll(point=Point(750, 500), direction="left")),
    ],
)
def test_what_the_page_of_labels_does_not_show(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(item))).steps
    assert step.action == action
    assert (step.instruction, step.low_level_instruction, step.setting) == ("Buy milk", "do it", "high")
    assert step.screenshot == "images/7_0.png"


@every_row(("item", "label"), [(swipe([540, 1800], [540, 600], "down"), "down"), (swipe([540, 1800], [540, 600], None), "up")])
def test_a_swipe_keeps_the_word_its_own_scorers_use(tmp_path: Path, item: dict[str, Any], label: str) -> None:
    extras = first_episode(write_lines(tmp_path, line(item))).steps[0].extras
    assert extras["direction_label"] == label
    assert extras["path"] == [[500, 750], [500, 250]]


@every_row(
    ("item", "boxes"),
    [
        (click(540, 1200, [0, 0, 1080, 2400], [540, 600, 2160, -240]), [(0, 0, 1000, 1000), (500, 250, 2000, -100)]),
        (click(540, 1200), []),
        (click(1, 1) | {"check_options": {"candidate_bbox": [0, 0, 540, 600]}}, [(0, 0, 500, 250)]),
        (click(1, 1) | {"check_options": {"action": "click", "bbox": [0, 0, 54, 24]}}, [(0, 0, 50, 10)]),
        (shot({"action": "open", "text": "A"}, check_options={"candidate_bbox": [[0, 0, 108, 240]]}), [(0, 0, 100, 100)]),
    ],
)
def test_candidate_boxes_in_every_form(tmp_path: Path, item: dict[str, Any], boxes: list[tuple[float, ...]]) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(item))).steps
    assert [tuple(box) for box in step.elements] == boxes


@every_row(
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


@every_row("given_size", ["1600x3200", " 1600 X 3200 ", (1600, 3200), [1600, 3200]])
def test_the_screen_size_may_be_given(tmp_path: Path, given_size: Any) -> None:
    (step,) = first_episode(write_lines(tmp_path, line(click(1600, 1600))), screen_size=given_size).steps
    assert step.screenshot_size == (1600, 3200)
    assert step.action == Click(point=Point(1000, 500))
    assert step.extras["screen_size_from"] == "option"


@every_row("given_size", ["1600", "1600x", "0x5", "axb", (1, 2, 3), (0, 5), (1.5, 2)])
def test_a_screen_size_that_is_none_is_refused(tmp_path: Path, given_size: Any) -> None:
    write_lines(tmp_path, line(click(1, 1)))
    with pytest.raises(UsageError, match="expected WIDTHxHEIGHT in pixels"):
        load_benchmark("androidcontrol", tmp_path, screen_size=given_size)


def test_an_image_states_its_own_size(tmp_path: Path) -> None:
    write_lines(tmp_path, line(click(50, 50), click(540, 600)))
    (tmp_path / "images").mkdir()
    Image.new("RGB", SCREEN, "white").save(tmp_path / "images/7_0.png")
    first, second = first_episode(tmp_path, screen_size="1080x2400").steps
    assert (first.screenshot_size, first.extras["screen_size_from"]) == (SCREEN, "image")
    assert first.action == Click(point=Point(500, 250))
    assert (second.screenshot_size, second.extras["screen_size_from"]) == ((1080, 2400), "option")
    assert read_screenshot(tmp_path, first.screenshot, first.screenshot_size).size == SCREEN
    (tmp_path / "images/7_0.png").write_text("hello")
    told = r"line 1, step 0, field screenshot: the image 'images/7_0.png' is not a readable PNG, JPEG or WebP image"
    with pytest.raises(DataError, match=told):
        first_episode(tmp_path)


def test_packed_and_plain_files_are_the_same(tmp_path: Path) -> None:
    lines = [line(click(50, 50), episode=5), line(swipe([540, 1800], [540, 600], "down"), click(9, 9), episode=3)]
    loaded = []
    for suffix in ("", ".gz"):
        (tmp_path / f"packed{suffix}").mkdir()
        root = write_lines(tmp_path / f"packed{suffix}", *lines, name=f"android_control_evaluation_std.jsonl{suffix}")
        benchmark = load_benchmark("androidcontrol", root)
        assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("5", 1), ("3", 2)]
        loaded.append([benchmark.load(ref) for ref in reversed(benchmark.index())])
    assert loaded[0] == loaded[1]


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    good, bad = json.dumps(line(click(1, 1))), json.dumps(line(click(-1, 1), episode=8))
    (tmp_path / "android_control_evaluation_std.jsonl").write_text(f"\n{good}\r\n\n{bad}")
    benchmark = load_benchmark("androidcontrol", tmp_path)
    assert [ref.key.episode_id for ref in benchmark.index()] == ["7", "8"]
    with pytest.raises(DataError, match=r"std\.jsonl, line 4, step 0, field action_content, field coordinate: .*outside"):
        list(benchmark)


@every_row(
    ("item", "field"),
    [
        (click(1441, 5), "action_content, field coordinate"),
        (click(5, math.nan), "action_content, field coordinate"),
        (shot({"action": "click"}), "action_content, field coordinate"),
        (shot({"action": "tap"}), "action_content, field action"),
        (shot({}), "action_content, field action"),
        (shot({"action": "type"}), "action_content, field text"),
        (shot({"action": "wait", "time": -2}), "action_content, field time"),
        (shot({"action": "system_button", "button": "Menu"}), "action_content, field button"),
        (shot({"action": "terminate", "status": "maybe"}), "action_content, field status"),
        (swipe([5, 5], [5, 5], "down"), "action_content.coordinate2"),
        (swipe([5, 5], [5, 9], "north"), "check_options, field direction"),
        (click(5, 5, [1, 2, 3]), "check_options, field candidate_bbox"),
        (shot({"action": "wait"}, step_instruction=None), "step_instruction"),
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


@every_row(
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


@every_row("keep", [0, 10, 40])
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
    write_lines(tmp_path, line({key: value for key, value in click(1, 1).items() if key != "step_instruction"}))
    assert first_episode(tmp_path).steps[0].low_level_instruction is None
    with pytest.raises(DataError, match="line 1, step 0, field step_instruction: is missing"):
        first_episode(tmp_path, "androidcontrol-low")


@given(st.integers(0, 1080), st.integers(0, 2400))
def test_pixels_come_back_from_the_record(tmp_path_factory: pytest.TempPathFactory, x: int, y: int) -> None:
    (step,) = first_episode(write_lines(tmp_path_factory.mktemp("ac"), line(click(x, y, [0, 0, x, y])))).steps
    assert isinstance(step.action, Click)
    assert step.action.point.x * 1080 / 1000 == pytest.approx(x, abs=1e-9)
    assert step.action.point.y * 2400 / 1000 == pytest.approx(y, abs=1e-9)
    box = step.elements[0]
    assert (box.x2, box.y2) == tuple(step.action.point)  # a point on a box's edge stays on it


@pytest.fixture(scope="module")
def ui_s1(shared_data: Path) -> Path:
    folder = shared_data / "ui_s1"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


@pytest.fixture(scope="module")
def real(ui_s1: Path) -> list[Episode]:
    """The whole test split."""
    return list(load_benchmark("androidcontrol", ui_s1))


def published(benchmark: ABCBenchmark, episodes: list[Episode]) -> list[str]:
    """The published counts that these episodes meet."""
    counts = Counts()
    for episode in episodes:
        first = episode.steps[0]
        counts.add(first.split, first.subset, [(step.groups, step.action.type) for step in episode.steps])
    return [each.published.name for each in compare(benchmark.published, counts) if each.verdict == "agrees"]


def test_the_whole_test_file(ui_s1: Path, real: list[Episode]) -> None:
    benchmark = load_benchmark("androidcontrol", ui_s1)
    steps = [step for episode in real for step in episode.steps]
    assert (len(real), len(steps)) == (1543, 8444)
    assert [(ref.key, ref.length) for ref in benchmark.index()] == [(episode.key, len(episode)) for episode in real]
    assert published(benchmark, real) == ["test split"]
    scrolls = [step for step in steps if isinstance(step.action, Scroll)]
    assert Counter(step.extras["direction_label"] for step in scrolls) == {"down": 947, "up": 96, "right": 94, "left": 74}
    assert all(step.action.direction == OPPOSITE[step.extras["direction_label"]] for step in scrolls)  # type: ignore[union-attr]
    screens = Counter(episode.steps[0].screenshot_size for episode in real)
    assert screens == {(1080, 2400): 1514, (1440, 3120): 24, (1080, 2160): 5}
    assert sum(len(step.elements) > 0 for step in steps if isinstance(step.action, Open)) == 81
    assert len({step.screenshot for step in steps}) == 8444


def test_the_screens_agree_with_the_labels_of_ui_genie(real: list[Episode], shared_data: Path) -> None:
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
    for step in (step for episode in real for step in episode.steps):
        if isinstance(step.action, Click | LongPress):
            width, height = step.screenshot_size
            x, y = PIXELS.encode(step.action.point, step.screenshot_size)
            across, down = smart_resize(step.screenshot_size, max_pixels=768 * 28 * 28)
            label = int(step.episode_id), step.step_index, round(x) * across // width, round(y) * down // height
            compared[step.screenshot_size] += label in labels
            labels.discard(label)
    assert not labels
    assert compared == {(1080, 2400): 1264, (1440, 3120): 6, (1080, 2160): 6}


def test_instructions_agree_with_the_fingers_direction(real: list[Episode]) -> None:
    """Where a sideways swipe's instruction names a side, it is the finger's: the reason for turning both axes around."""
    message: Counter[tuple[str, str]] = Counter()
    for episode in real:
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
    episodes = list(benchmark)
    assert {episode.steps[-1].action for episode in episodes} == {Stop()}
    assert sum(len(step.elements) for episode in episodes for step in episode.steps) == 74
    assert [episode.key.episode_id for episode in episodes[:3]] == ["0", "20", "40"]
    assert {step.split for episode in episodes for step in episode.steps} == {"train"}
    assert published(benchmark, episodes) == ["UI-S1's training example"]


def test_finish_steps_of_the_file_can_be_left_out(tmp_path: Path) -> None:
    end = shot({"action": "terminate", "status": "success"})
    write_lines(tmp_path, line(click(1, 1), end), line(end, episode=8), line(click(1, 1), episode=9))
    benchmark = load_benchmark("androidcontrol", tmp_path, finish=False)
    assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("7", 1), ("9", 1)]
    assert [[step.action.type for step in episode.steps] for episode in benchmark] == [["CLICK"], ["CLICK"]]
    with pytest.raises(UsageError, match="finish is 'no'; expected true or false"):
        load_benchmark("androidcontrol", tmp_path, finish="no")


def test_damaged_lines_can_be_passed_over(tmp_path: Path) -> None:
    whole, damaged = json.dumps(line(click(1, 1))), line(click(1, 1), episode=8)
    (tmp_path / "android_control_evaluation_std.jsonl").write_text(f"{whole}\n{json.dumps(damaged)[:-9]}\n{whole}")
    benchmark = load_benchmark("androidcontrol", tmp_path).skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == ["7"]
    not_json, twice = map(str, benchmark.skipped)
    assert "line 2: is not JSON" in not_json and "line 3: episode androidcontrol/7 is already in " in twice
