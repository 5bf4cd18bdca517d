"""Folders of episodes whose steps have AITW's codes: AiTZ, the agent part of CAGUI, and AndroidControl as GUIEvalKit has it.

What each code means is tested with ``docs/labels.md``.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.aitz import write_aitz
from guieval.benchmarks._examples.cagui import write_cagui_agent
from PIL import Image

from guieval.actions import Action, Click, LongPress, Point, Press, Scroll, Stop, Type, Wait
from guieval.data.benchmark import ABCBenchmark
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode, StepTaskModel
from tests.rows import every_row

SCREEN = (100, 200)
MISSING = object()
NOWHERE = {"result_touch_yx": "[-1.0, -1.0]", "result_lift_yx": "[-1.0, -1.0]"}
STOP = {"episode_length": 2, "step_id": 0, "instruction": "Buy milk 牛奶", "result_action_type": 10, "result_action_text": ""}
SIZED = {"ui_positions": "[[0.25, 0.5, 0.125, 0.25]]", "image_width": SCREEN[0], "image_height": SCREEN[1]}
"""One step: lists as text, y before x, -1 where there is no place."""
COAT = {"coat_screen_desc": "A shop.", "coat_action_think": "Milk is below.", "coat_action_result": "Milk comes into sight."}
HASH = "0cf94392854b6b7224b63b93d7c8871a"


@dataclass(frozen=True)
class Form:
    """Where a benchmark's episodes lie, how one is called, and a row of it."""

    benchmark: str
    home: str
    name: str
    row: dict[str, Any]

    def rows(self, *changes: dict[str, Any]) -> list[dict[str, Any]]:
        made = []
        for step, change in enumerate(changes):
            row = {**self.row, "step_id": step, **change}
            row = {key: value for key, value in row.items() if value is not MISSING}
            made.append({key: value.format(step=step) if key == "image_path" else value for key, value in row.items()})
        return made

    def write(self, root: Path, *changes: dict[str, Any], name: str = "", home: str | None = None, file: str = "") -> Path:
        """An episode's folder with its annotation and, for AiTZ, which needs their size, its images."""
        folder = root / (self.home if home is None else home) / (name or self.name)
        folder.mkdir(parents=True)
        rows = self.rows(*changes)
        (folder / (file or f"{folder.name}.json")).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
        for row in rows if self is AITZ else ():
            draw(folder / str(row["image_path"]).rsplit("/", 1)[-1])
        return folder

    def step(self, root: Path, **changes: Any) -> StepTaskModel:
        self.write(root, changes)
        (episode,) = load_benchmark(self.benchmark, root)
        (step,) = episode.steps
        return step

    def problem(self, root: Path, *changes: dict[str, Any]) -> str:
        self.write(root, *changes)
        with pytest.raises(DataError) as caught:
            list(load_benchmark(self.benchmark, root))
        return str(caught.value)


def draw(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SCREEN, "white").save(file, format="PNG")


AITZ_ROW: dict[str, Any] = {**STOP, **NOWHERE, **COAT, "episode_id": "41", "coat_action_desc": "scroll up"}
AITZ_ROW |= {"ui_positions": "[[50, 50, 25, 25], [0, 0, 0, 1]]"}  # pixels
AITZ_ROW |= {"image_path": "general/GENERAL-41/GENERAL-41_{step}.png"}
AITZ_ROW |= {"image_full_path": "android-in-the-wild/aitw_with_gpt/train/general/GENERAL-41/x.png"}
TIMED: dict[str, Any] = {**STOP, **NOWHERE, **SIZED, "duration": None}
CAGUI_ROW = TIMED | {"episode_id": HASH, "image_path": f"domestic/{HASH}/{HASH}_{{step}}.jpeg"}
KIT_ROW = TIMED | {"episode_id": 7, "result_action_app_name": "", "low_instruction": "do it", "subset": "android_control"}
KIT_ROW |= {"image_path": "/home/someone/kit/data/android_control/screenshots/7/screenshot_7_{step}.png"}
AITZ = Form("aitz", "test/general", "GENERAL-41", AITZ_ROW)
CAGUI = Form("cagui", "CAGUI_agent/domestic", HASH, CAGUI_ROW)
KIT = Form("androidcontrol", "test/android_control", "7", KIT_ROW)
LOW = replace(KIT, benchmark="androidcontrol-low")


def touched(touch: list[float], lift: list[float] | None = None, code: int = 4, **changes: Any) -> dict[str, Any]:
    return {"result_action_type": code, "result_touch_yx": str(touch), "result_lift_yx": str(lift or touch), **changes}


@every_row(
    ("form", "values"),
    [
        (AITZ, ("aitz", "general", "test", "high", "41", "test/general/GENERAL-41/GENERAL-41_0.png", "scroll up")),
        (CAGUI, ("cagui", "domestic", "test", "high", HASH, f"CAGUI_agent/domestic/{HASH}/{HASH}_0.jpeg", None)),
        (KIT, ("androidcontrol", "", "test", "high", "7", "screenshots/7/screenshot_7_0.png", "do it")),
        (LOW, ("androidcontrol", "", "test", "low", "7", "screenshots/7/screenshot_7_0.png", "do it")),
    ],
)
def test_a_step_carries_what_its_row_says(tmp_path: Path, form: Form, values: tuple[str, ...]) -> None:
    step = form.step(tmp_path)
    found = (step.dataset, step.subset, step.split, step.setting, step.episode_id, step.screenshot, step.low_level_instruction)
    assert (step.benchmark, *found) == (form.benchmark, *values)
    assert (step.action, step.instruction, step.screenshot_size) == (Stop(), "Buy milk 牛奶", SCREEN)
    assert [tuple(box) for box in step.elements] == [(500, 250, 750, 375)] + [(0, 0, 10, 0)] * (form is AITZ)


@every_row(
    ("form", "changes", "action"),
    [
        (AITZ, touched([0.0, 0.0], [0.04, 0.0]), Click(point=Point(0, 0))),
        (AITZ, touched([0.25, 0.5], [0.25, 0.55]), Scroll(point=Point(500, 250), direction="right")),
        (AITZ, touched([0.75, 0.5], [0.25, 0.5]), Scroll(point=Point(500, 750), direction="up")),
        (AITZ, touched([0.25, 0.5], [1.01, 0.5]), Scroll(point=Point(500, 250), direction="down")),
        (AITZ, {"result_action_type": 3, "result_action_text": "多行\ntext"}, Type(text="多行\ntext")),
        (CAGUI, touched([0.25, 0.5], code=0), LongPress(point=Point(500, 250))),
        (CAGUI, {"result_action_type": 1, "duration": 3000}, Wait()),
        (CAGUI, touched([0.25, 0.5], duration=200), Click(point=Point(500, 250))),
        (CAGUI, touched([0.5, 0.25], [0.5, 0.75]), Scroll(point=Point(250, 500), direction="right")),
        (KIT, touched([0.25, 0.5], code=0), LongPress(point=Point(500, 250))),
        (KIT, touched([0.0, 1.0]), Click(point=Point(1000, 0))),
        (KIT, touched([0.0, 0.0], [0.04, 0.0]), Click(point=Point(0, 0))),
        (KIT, touched([0.0, 0.0], [0.0401, 0.0]), Scroll(point=Point(0, 0), direction="down")),
        (KIT, touched([0.5, 0.5], [0.5, 0.2]), Scroll(point=Point(500, 500), direction="left")),
        (KIT, touched([0.5, 0.5], [0.5, 0.8]), Scroll(point=Point(500, 500), direction="right")),
    ],
)
def test_what_the_page_of_labels_does_not_show(tmp_path: Path, form: Form, changes: dict[str, Any], action: Action) -> None:
    assert form.step(tmp_path, **changes).action == action


def test_a_swipe_keeps_its_path_and_a_step_its_other_texts(tmp_path: Path) -> None:
    swipe = touched([0.5, 0.25], [0.125, 0.25])
    path = [[250, 500], [250, 125]]
    assert AITZ.step(tmp_path / "aitz", **swipe).extras == {"episode_length": 2, **COAT, "path": path}
    assert KIT.step(tmp_path / "kit", **swipe).extras["path"] == path


TOUCH = ({"result_action_type": 4}, touched([0.5, 1.01]), touched([-0.01, 0.5]))
LIFT = (touched([0.5, 0.5], [0.5]), touched([0.5, 0.5], [0.5, math.inf]), touched([0.5, 0.5], result_lift_yx="[0.5, NaN]"))
DAMAGE: list[tuple[Form, dict[str, Any], str]] = [
    *[(form, touch, "result_touch_yx") for form in (AITZ, CAGUI, KIT) for touch in TOUCH],
    *[(form, lift, "result_lift_yx") for form in (AITZ, KIT) for lift in LIFT],
    (KIT, touched([0.5, 0.5], result_lift_yx="[0.5, 1e999]"), "result_lift_yx"),
    (KIT, {"result_action_type": 4, "result_touch_yx": "[0.5]"}, "result_touch_yx"),
    *[(form, touched([0.5, 0.5], code=0, duration=-1), "duration") for form in (CAGUI, KIT)],
    *[(AITZ, {"result_action_type": code}, "result_action_type") for code in (0, 1, 12)],
    *[(CAGUI, {"result_action_type": code, "result_action_app_name": "高德"}, "result_action_type") for code in (2, 12)],
    *[(KIT, {"result_action_type": code}, "result_action_type") for code in (2, "4")],
    *[(form, {"ui_positions": "[[1, 2]]"}, "ui_positions") for form in (AITZ, CAGUI, KIT)],
    *[(form, {"ui_positions": "[[50, 50, NaN, 5]]"}, "ui_positions") for form in (AITZ, KIT)],
    (KIT, {"ui_positions": [[1, 2, 3, 10**400]]}, "ui_positions"),
    (CAGUI, {"ui_positions": None, "bbox": "[[1, 2]]"}, "bbox"),
    *[(form, {"image_width": 0}, "screenshot_size.0") for form in (CAGUI, KIT)],
    (AITZ, {"image_width": 100}, "image_height"),
    (CAGUI, {"image_path": "domestic/x"}, "image_path"),
    (AITZ, {"image_path": "general/x"}, "image_path"),
    (CAGUI, {"episode_length": None}, "episode_length"),
    (AITZ, {"step_id": "1"}, "step_id"),
    (KIT, {"step_id": None}, "step_id"),
    (KIT, {"result_action_type": 3, "result_action_text": None}, "result_action_text"),
    (KIT, {"instruction": MISSING}, "instruction"),
]


@every_row(("form", "changes", "field"), DAMAGE)
def test_a_damaged_step_is_reported_by_file_step_and_field(
    tmp_path: Path, form: Form, changes: dict[str, Any], field: str
) -> None:
    assert f"{form.name}.json, step 1, field {field}: " in form.problem(tmp_path, {}, changes)


def test_a_strangers_step_is_refused_and_another_id_in_all_rows_kept(tmp_path: Path) -> None:
    told = "step 1, field episode_id: is '8', but step 0 has '41'"
    assert told in AITZ.problem(tmp_path / "a", {}, {"episode_id": "8"})
    told = "step 1, field episode_id: is 8, but the file belongs to episode '7'"
    assert told in KIT.problem(tmp_path / "b", {}, {"episode_id": 8})
    step = AITZ.step(tmp_path / "c", episode_id="8")
    assert (step.episode_id, step.extras["episode_id"]) == ("41", "8")


@every_row("text", ['[{"result_action_type": 1', '{"result_action_type": 1}', '[["result_action_type": 1]]', "[]"])
def test_a_file_that_holds_no_list_of_steps_is_refused(tmp_path: Path, text: str) -> None:
    (KIT.write(tmp_path) / "7.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"7\.json"):
        list(load_benchmark("androidcontrol", tmp_path))


# --- AiTZ -------------------------------------------------------------------------------------------------------------


def test_the_published_example_of_aitz(shared_data: Path) -> None:
    (episode,) = load_benchmark("aitz", shared_data / "aitz_example")
    assert episode.key == ("aitz", "google_apps", "523638528775825151")
    home, up, tap, stop = episode.steps
    assert {step.split for step in episode.steps} == {"train"}
    assert {step.screenshot_size for step in episode.steps} == {(270, 600)}
    assert (home.action, home.low_level_instruction) == (Press(button="HOME"), "press the home button")
    assert up.action == Scroll(point=Point(0.5073748230934143 * 1000, 0.541063666343689 * 1000), direction="up")
    assert up.low_level_instruction == "scroll up"
    assert tap.action == Click(point=Point(0.6069772839546204 * 1000, 0.49836206436157227 * 1000))
    assert stop.action == Stop(status="finish")
    assert tuple(home.elements[0]) == pytest.approx((17 / 270 * 1000, 54 / 600 * 1000, 29 / 270 * 1000, 62 / 600 * 1000))
    # the word "Clock" stands below the icon that is tapped: rows 321 to 326, columns 156 to 174 of the image
    below = [tuple(map(round, box)) for box in tap.elements if box.x1 < 607 < box.x2 and 498 < box.y1 < 560]
    assert below == [(578, 535, 644, 543)]


def test_the_prepared_files_are_read_alike(tmp_path: Path) -> None:
    loaded = []
    for prepared in (False, True):
        root = tmp_path / str(prepared)
        write_aitz(root, prepared=prepared)
        loaded.append(list(load_benchmark("aitz", root)))
    assert loaded[0] == loaded[1]
    assert sum(len(step.elements) for episode in loaded[0] for step in episode.steps) > 50


def names(benchmark: ABCBenchmark) -> list[tuple[str, str, str]]:
    return [(ref.split, ref.key.subset, ref.key.episode_id) for ref in benchmark.index()]


@every_row("inner", ["data", "data/android_in_the_zoo", "data/android_in_the_zoo/train"])
def test_any_folder_of_aitzs_release_may_be_given(tmp_path: Path, inner: str) -> None:
    top = "data/android_in_the_zoo"
    AITZ.write(tmp_path, {}, home=f"{top}/train/single", name="SINGLE-7")
    AITZ.write(tmp_path, {}, home=f"{top}/train/install", name="INSTALL-41")
    if not inner.endswith("train"):
        AITZ.write(tmp_path, {}, home=f"{top}/test/web_shopping", name="WEB_SHOPPING-9")
        with pytest.raises(UsageError, match="has no <subset>"):
            load_benchmark("aitz", tmp_path)
    benchmark = load_benchmark("aitz", tmp_path / inner)
    train = [("train", "install", "41"), ("train", "single", "7")]
    assert names(benchmark) == (train if inner.endswith("train") else [("test", "web_shopping", "9"), *train])
    for episode in benchmark:
        for step in episode.steps:
            assert (benchmark.root / step.screenshot).is_file()


def test_the_split_is_that_of_the_folder_or_else_of_the_recorded_path(tmp_path: Path) -> None:
    AITZ.write(tmp_path / "a", {})
    assert names(load_benchmark("aitz", tmp_path / "a" / "test" / "general")) == [("test", "general", "41")]
    AITZ.write(tmp_path / "b", {}, home="")
    AITZ.write(tmp_path / "b", {"image_full_path": "general/x.png"}, home="", name="INSTALL-2")
    (tmp_path / "b" / "notes").mkdir()
    assert names(load_benchmark("aitz", tmp_path / "b")) == [("train", "general", "41"), ("test", "install", "2")]


def test_the_published_subsets_make_up_the_published_whole() -> None:
    for split in ("test", "train"):
        counts = [count for count in benchmarks()["aitz"].published if count.split == split]
        (whole,) = [count for count in counts if count.subset is None]
        parts = [count for count in counts if count.subset is not None]
        assert whole.steps == sum(count.steps or 0 for count in parts)
        assert whole.episodes == sum(count.episodes or 0 for count in parts)


PIXELS = "[[50, 50, 25, 25]]"


@every_row(
    ("positions", "boxes"),
    [
        (["[[0.25, 0.5, 0.125, 0.25], [0, 0, 1, 1]]"], [(500, 250, 750, 375), (0, 0, 1000, 1000)]),
        *[([PIXELS, second], boxes) for second, boxes in (("[[0, 0, 1, 1]]", [(0, 0, 10, 5)]), ("[]", []), (None, []))],
    ],
)
def test_all_numbers_of_an_episode_tell_what_boxes_are_in(
    tmp_path: Path, positions: list[str | None], boxes: list[Any]
) -> None:
    AITZ.write(tmp_path, *({"ui_positions": each} for each in positions))
    (episode,) = load_benchmark("aitz", tmp_path)
    assert [tuple(box) for box in episode.steps[-1].elements] == boxes


def test_boxes_that_contradict_each_other_or_tell_nothing_are_refused(tmp_path: Path) -> None:
    fractions, either = {"ui_positions": "[[0.25, 0.5, 0.125, 0.25]]"}, {"ui_positions": "[[0, 0, 1, 1]]"}
    apart = "step 1, field ui_positions: is in fractions of the screen, but in pixels at"
    assert apart in AITZ.problem(tmp_path / "a", {}, fractions)
    unclear = "41.json, step 0, field ui_positions: does not tell whether it is in pixels"
    assert unclear in AITZ.problem(tmp_path / "b", either)


def test_an_image_that_is_missing_or_none_is_reported(tmp_path: Path) -> None:
    image = AITZ.write(tmp_path, {}) / "GENERAL-41_0.png"
    image.write_text("hello")
    with pytest.raises(DataError, match=r"GENERAL-41_0\.png' is not a readable PNG"):
        list(load_benchmark("aitz", tmp_path))
    image.unlink()
    with pytest.raises(DataError, match=r"field image_path: there is no image 'test/general/GENERAL-41/GENERAL-41_0\.png'"):
        list(load_benchmark("aitz", tmp_path))


def test_the_same_episode_twice_is_refused(tmp_path: Path) -> None:
    AITZ.write(tmp_path, {})
    AITZ.write(tmp_path, {}, home="train/general")
    with pytest.raises(DataError, match=r"episode aitz/general/41 is already in .*test/general/GENERAL-41"):
        load_benchmark("aitz", tmp_path).index()


# --- CAGUI ------------------------------------------------------------------------------------------------------------


@every_row(("given", "boxes"), [*((absent, [(250, 500, 750, 750)]) for absent in (None, "", MISSING)), ("[]", [])])
def test_bbox_is_read_where_there_are_no_ui_positions(tmp_path: Path, given: Any, boxes: list[Any]) -> None:
    step = CAGUI.step(tmp_path, ui_positions=given, bbox="[[0.5, 0.25, 0.25, 0.5]]")
    assert [tuple(box) for box in step.elements] == boxes


def test_any_folder_of_caguis_download_may_be_given(tmp_path: Path) -> None:
    write_cagui_agent(tmp_path, episodes=1)
    for inner in ("", "CAGUI_agent", "CAGUI_agent/domestic"):
        benchmark = load_benchmark("cagui", tmp_path / inner)
        (episode,) = benchmark
        assert all((benchmark.root / step.screenshot).is_file() for step in episode.steps)
    CAGUI.write(tmp_path / "kit", {}, home="test/domestic")  # as GUIEvalKit's folder
    (episode,) = load_benchmark("cagui", tmp_path / "kit")
    assert episode.steps[0].screenshot == f"test/domestic/{HASH}/{HASH}_0.jpeg"


def test_a_file_of_another_name_is_read_when_it_is_the_only_one(tmp_path: Path) -> None:
    CAGUI.write(tmp_path, {}, home="domestic")
    CAGUI.write(tmp_path, {}, home="domestic", name="1", file="steps.json")
    (CAGUI.write(tmp_path, {}, home="domestic", name="2", file="a.json") / "b.json").write_text("[]")
    CAGUI.write(tmp_path, home="domestic", name="3").joinpath("3.json").unlink()
    benchmark = load_benchmark("cagui", tmp_path)
    with pytest.raises(DataError, match=r"domestic/2: expected '2\.json', found 2 other JSON files"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [ref.key.episode_id for ref in benchmark.index()] == [HASH, "1"]
    assert "domestic/3: expected '3.json', found 0 other JSON files" in str(benchmark.skipped[1])
    assert benchmark.load(benchmark.index()[1]).steps[0].extras == {"episode_length": 2, "episode_id": HASH}


# --- AndroidControl as GUIEvalKit has it ------------------------------------------------------------------------------


def test_steps_are_counted_and_numbered_by_what_the_file_holds(tmp_path: Path) -> None:
    KIT.write(tmp_path, *({"step_id": number, "episode_length": 4} for number in (0, 2, 3)), home="")
    with pytest.raises(UsageError, match="screen_size='1x2' has no use"):
        load_benchmark("androidcontrol", tmp_path, screen_size="1x2")
    benchmark = load_benchmark("androidcontrol", tmp_path)
    (ref,) = benchmark.index()
    assert ref.length == 3
    episode = benchmark.load(ref)
    assert [(step.step_index, step.episode_length) for step in episode.steps] == [(0, 3), (1, 3), (2, 3)]
    own = {"episode_length": 4}
    assert [step.extras for step in episode.steps] == [own, {"step_id": 2, **own}, {"step_id": 3, **own}]


def test_a_word_in_a_text_is_not_counted_as_a_step(tmp_path: Path) -> None:
    tricky = '"result_action_type": 4, \\"result_action_type\\": "result_action_type'
    KIT.write(tmp_path, {"result_action_type": 3, "result_action_text": tricky, "instruction": tricky}, {}, home="")
    (ref,) = load_benchmark("androidcontrol", tmp_path).index()
    assert ref.length == 2


def test_episodes_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (100, 9, 10):
        KIT.write(tmp_path, {"episode_id": number}, home="", name=str(number))
    assert [ref.key.episode_id for ref in load_benchmark("androidcontrol", tmp_path).index()] == ["9", "10", "100"]


@every_row("inner", ["..", ".", "test", "test/android_control"])
def test_any_folder_of_the_kits_layout_may_be_given(tmp_path: Path, inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "data" / "android_control"
    KIT.write(top, {"result_action_type": 1}, {})
    for number in range(2):
        draw(top / f"screenshots/7/screenshot_7_{number}.png")
    monkeypatch.chdir(top / inner)
    for root in ((top / inner).resolve(), Path(".")):
        benchmark = load_benchmark("androidcontrol", root)
        (episode,) = benchmark
        assert len(episode) == 2
        for step in episode.steps:
            assert read_screenshot(benchmark.root, step.screenshot, step.screenshot_size).size == SCREEN


@every_row(
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
        draw(tmp_path / stored)
    KIT.write(tmp_path, {"image_path": recorded}, {"image_path": recorded})
    (episode,) = load_benchmark("androidcontrol", tmp_path)
    assert [step.screenshot for step in episode.steps] == [expected, expected]


def test_boxes_may_reach_outside_the_screen(tmp_path: Path) -> None:
    step = KIT.step(tmp_path, ui_positions="[[-0.5, -0.25, 2.0, 1.5], [0, 0, 0, 0]]")
    assert [tuple(box) for box in step.elements] == [(-250, -500, 1250, 1500), (0, 0, 0, 0)]


def test_finish_steps_can_be_left_out(tmp_path: Path) -> None:
    wait, back, stop = ({"result_action_type": code} for code in (1, 5, 10))
    for name, codes in (("7", [wait, back, stop]), ("8", [stop]), ("9", [stop, wait])):
        KIT.write(tmp_path, *({**code, "episode_id": int(name)} for code in codes), name=name)
    benchmark = load_benchmark("androidcontrol", tmp_path, finish=False)
    assert [(ref.key.episode_id, ref.length) for ref in benchmark.index()] == [("7", 2), ("9", 2)]
    kept, odd = benchmark
    assert [step.action for step in kept.steps] == [Wait(), Press(button="BACK")]
    assert [step.action for step in odd.steps] == [Stop(), Wait()]  # only a last step can be an added one
    assert [len(episode) for episode in load_benchmark("androidcontrol", tmp_path)] == [3, 1, 2]


def test_a_file_that_is_gone_can_be_skipped(tmp_path: Path) -> None:
    for name in ("7", "9"):
        KIT.write(tmp_path, {"episode_id": int(name)}, name=name)
    (tmp_path / KIT.home / "9" / "9.json").write_text("gone")
    benchmark = load_benchmark("androidcontrol", tmp_path).skipping_damaged()
    episodes: list[Episode] = list(benchmark)
    assert [episode.key.episode_id for episode in episodes] == ["7"]
    skipped = [re.sub(r".*android_control/", "", str(error)) for error in benchmark.skipped]
    assert skipped == ["9/9.json: is not JSON (expected value at line 1 column 1)"]
