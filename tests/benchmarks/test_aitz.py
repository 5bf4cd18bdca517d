"""AiTZ: every label from hand-written files, the authors' published example, every folder that may be given, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.aitz import write_aitz

from guieval.actions import Action, Click, Point, Press, Scroll, Stop, Type
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError, UsageError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel

SCREEN = (100, 200)
NAME = "GENERAL-41"


def row(step: int, code: int, **changes: Any) -> dict[str, Any]:
    """One step as the release has it: lists as text, -1 where there is no place, no size."""
    return {
        "episode_id": "41",
        "episode_length": 2,
        "step_id": step,
        "instruction": "Buy milk",
        "ui_positions": "[[50, 50, 25, 25], [0, 0, 0, 1]]",
        "result_action_type": code,
        "result_action_text": "",
        "result_touch_yx": "[-1.0, -1.0]",
        "result_lift_yx": "[-1.0, -1.0]",
        "image_path": f"general/{NAME}/{NAME}_{step}.png",
        "image_full_path": f"android-in-the-wild/aitw_with_gpt/train/general/{NAME}/{NAME}_{step}.png",
        "coat_screen_desc": "A shop.",
        "coat_action_think": "Milk is below.",
        "coat_action_desc": "scroll up",
        "coat_action_result": "Milk comes into sight.",
        **changes,
    }


def touched(touch: list[float], lift: list[float], **changes: Any) -> dict[str, Any]:
    return row(0, 4, result_touch_yx=str(touch), result_lift_yx=str(lift), **changes)


def write(folder: Path, *rows: dict[str, Any], name: str = NAME) -> Path:
    """An episode's folder with its annotation, and an image for every step."""
    from PIL import Image

    home = folder / name
    home.mkdir(parents=True)
    (home / f"{name}.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    for each in rows:
        Image.new("RGB", SCREEN, "white").save(home / str(each["image_path"]).rsplit("/", 1)[-1], format="PNG")
    return home


def only_step(root: Path, item: dict[str, Any]) -> StepTaskModel:
    write(root / "test" / "general", item)
    (episode,) = load_benchmark("aitz", root)
    (step,) = episode.steps
    return step


def problem(root: Path, *rows: dict[str, Any]) -> str:
    write(root / "test" / "general", *rows)
    with pytest.raises(DataError) as caught:
        list(load_benchmark("aitz", root))
    return str(caught.value)


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (row(0, 3, result_action_text="多行\ntext"), Type(text="多行\ntext")),
        (touched([0.25, 0.5], [0.25, 0.5]), Click(point=Point(500, 250))),
        (touched([0.0, 0.0], [0.04, 0.0]), Click(point=Point(0, 0))),
        (touched([0.25, 0.5], [0.25, 0.55]), Scroll(point=Point(500, 250), direction="right")),
        (touched([0.75, 0.5], [0.25, 0.5]), Scroll(point=Point(500, 750), direction="up")),
        (touched([0.25, 0.5], [1.01, 0.5]), Scroll(point=Point(500, 250), direction="down")),
        (touched([0.5, 0.75], [0.5, 0.25]), Scroll(point=Point(750, 500), direction="left")),
        (row(0, 5), Press(button="BACK")),
        (row(0, 6), Press(button="HOME")),
        (row(0, 7), Press(button="ENTER")),
        (row(0, 10), Stop(status="finish")),
        (row(0, 11), Stop(status="impossible")),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_code(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    step = only_step(tmp_path, item)
    assert step.action == action
    assert (step.instruction, step.low_level_instruction) == ("Buy milk", "scroll up")
    assert (step.dataset, step.subset, step.split, step.setting, step.episode_id) == ("aitz", "general", "test", "high", "41")
    assert step.screenshot == f"test/general/{NAME}/{NAME}_0.png"
    assert step.screenshot_size == SCREEN
    # [y, x, height, width] of a screen of 100 x 200 pixels
    assert [tuple(box) for box in step.boxes] == [(500, 250, 750, 375), (0, 0, 10, 0)]


def test_a_swipe_keeps_its_path_and_a_step_its_other_texts(tmp_path: Path) -> None:
    assert only_step(tmp_path, touched([0.5, 0.25], [0.125, 0.25])).extras == {
        "episode_length": 2,
        "coat_screen_desc": "A shop.",
        "coat_action_think": "Milk is below.",
        "coat_action_result": "Milk comes into sight.",
        "path": [[250, 500], [250, 125]],
    }


def test_the_published_example(shared_data: Path) -> None:
    (episode,) = load_benchmark("aitz", shared_data / "aitz_example")
    assert episode.key == ("aitz", "google_apps", "523638528775825151")
    home, up, tap, stop = episode.steps
    assert {step.split for step in episode.steps} == {"train"}
    assert {step.screenshot_size for step in episode.steps} == {(270, 600)}
    assert home.action == Press(button="HOME")
    assert home.low_level_instruction == "press the home button"
    assert up.action == Scroll(point=Point(0.5073748230934143 * 1000, 0.541063666343689 * 1000), direction="up")
    assert up.low_level_instruction == "scroll up"
    assert tap.action == Click(point=Point(0.6069772839546204 * 1000, 0.49836206436157227 * 1000))
    assert stop.action == Stop(status="finish")
    assert tuple(home.boxes[0]) == pytest.approx((17 / 270 * 1000, 54 / 600 * 1000, 29 / 270 * 1000, 62 / 600 * 1000))
    # the word "Clock" stands below the icon that is tapped: rows 321 to 326, columns 156 to 174 of the image
    assert [tuple(map(round, box)) for box in tap.boxes if box.x1 < 607 < box.x2 and 498 < box.y1 < 560] == [
        (578, 535, 644, 543)
    ]


def test_the_prepared_files_are_read_alike(tmp_path: Path) -> None:
    loaded = []
    for prepared in (False, True):
        root = tmp_path / str(prepared)
        write_aitz(root, prepared=prepared)
        loaded.append(list(load_benchmark("aitz", root)))
    assert loaded[0] == loaded[1]
    assert sum(len(step.boxes) for episode in loaded[0] for step in episode.steps) > 50


def test_what_was_played_is_what_is_loaded(tmp_path: Path) -> None:
    played = write_aitz(tmp_path, episodes=5)
    episodes = {episode.key.episode_id: episode for episode in load_benchmark("aitz", tmp_path)}
    assert [episode.key.subset for episode in episodes.values()] == ["general"] * 2 + ["install", "google_apps", "web_shopping"]
    for one in played:
        episode = episodes[f"{523_000_000_000_000_000 + one.number}"]
        for step, was in zip(episode.steps, one.steps, strict=True):
            assert step.instruction == one.task.instruction
            assert step.low_level_instruction == was.instruction
            assert step.screenshot_size == one.size
            assert_same(step.action, was.action)


def assert_same(read: Action, played: Action) -> None:
    """The same action; a scroll starts where its path does, which is not always where it was played."""
    assert read.type == played.type
    if isinstance(read, Click) and isinstance(played, Click):
        assert tuple(read.point) == pytest.approx(tuple(played.point))
    elif isinstance(read, Scroll) and isinstance(played, Scroll):
        assert read.direction == played.direction
    else:
        assert read == played


# --- folders ----------------------------------------------------------------------------------------------------------


def names(benchmark: ABCBenchmark) -> list[tuple[str, str, str]]:
    return [(ref.split, ref.key.subset, ref.key.episode_id) for ref in benchmark.index()]


@pytest.mark.parametrize("inner", ["", "data", "data/android_in_the_zoo", "data/android_in_the_zoo/train"])
def test_any_folder_of_the_release_may_be_given(tmp_path: Path, inner: str) -> None:
    top = tmp_path / "data" / "android_in_the_zoo"
    write(top / "train" / "single", row(0, 10), name="SINGLE-7")
    write(top / "train" / "install", row(0, 10), name="INSTALL-41")
    if inner != "data/android_in_the_zoo/train":
        write(top / "test" / "web_shopping", row(0, 10), name="WEB_SHOPPING-9")
    if inner == "":
        with pytest.raises(UsageError, match="holds no <subset>"):
            load_benchmark("aitz", tmp_path)
        return
    benchmark = load_benchmark("aitz", tmp_path / inner)
    train = [("train", "install", "41"), ("train", "single", "7")]
    assert names(benchmark) == (train if inner.endswith("train") else [("test", "web_shopping", "9"), *train])
    for episode in benchmark:
        for step in episode.steps:
            assert (benchmark.root / step.screenshot).is_file()


def test_the_folder_of_one_subset_may_be_given(tmp_path: Path) -> None:
    write(tmp_path / "test" / "general", row(0, 10))
    assert names(load_benchmark("aitz", tmp_path / "test" / "general")) == [("test", "general", "41")]


def test_the_recorded_path_determines_the_split_where_no_folder_does(tmp_path: Path) -> None:
    write(tmp_path, row(0, 10))
    write(tmp_path, row(0, 10, image_full_path="general/x.png"), name="INSTALL-2")
    (tmp_path / "notes").mkdir()
    assert names(load_benchmark("aitz", tmp_path)) == [("train", "general", "41"), ("test", "install", "2")]


@pytest.mark.parametrize(
    "stray", [None, "notes.txt", "test/general/GENERAL-1/picture.png", "7/7.json", "train/other/A-1/A-1.json"]
)
def test_another_folder_is_refused(tmp_path: Path, stray: str | None) -> None:
    if stray is not None:
        (tmp_path / stray).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stray).write_text("[]")
    with pytest.raises(UsageError, match=r"holds no <subset>.*AiTZ comes from.*guieval prepare aitz"):
        load_benchmark("aitz", tmp_path)


def test_the_published_subsets_make_up_the_published_whole() -> None:
    from guieval.registry import benchmarks

    for split in ("test", "train"):
        counts = [count for count in benchmarks()["aitz"].published if count.split == split]
        (whole,) = [count for count in counts if count.subset is None]
        parts = [count for count in counts if count.subset is not None]
        assert whole.steps == sum(count.steps or 0 for count in parts)
        assert whole.episodes == sum(count.episodes or 0 for count in parts)


# --- what the boxes are in --------------------------------------------------------------------------------------------


def test_fractions_are_known_by_their_numbers_alone(tmp_path: Path) -> None:
    step = only_step(tmp_path, row(0, 10, ui_positions="[[0.25, 0.5, 0.125, 0.25], [0, 0, 1, 1]]"))
    assert [tuple(box) for box in step.boxes] == [(500, 250, 750, 375), (0, 0, 1000, 1000)]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("[[0.25, 0.5, 0.125, 0.25]]", "step 1, field ui_positions: is in fractions of the screen, but in pixels at"),
        ("[[0, 0, 1, 1]]", None),
        ("[]", None),
        (None, None),
    ],
)
def test_all_steps_must_agree_on_what_boxes_are_in(tmp_path: Path, second: str | None, message: str | None) -> None:
    rows = [row(0, 10), row(1, 10, ui_positions=second)]
    if message:
        assert message in problem(tmp_path, *rows)
        return
    write(tmp_path / "test" / "general", *rows)
    (episode,) = load_benchmark("aitz", tmp_path)
    assert [tuple(box) for box in episode.steps[1].boxes] == ([(0, 0, 10, 5)] if second == "[[0, 0, 1, 1]]" else [])


def test_boxes_that_tell_nothing_are_refused(tmp_path: Path) -> None:
    assert "41.json, step 0, field ui_positions: does not tell whether it is in pixels" in problem(
        tmp_path, row(0, 10, ui_positions="[[0, 0, 1, 1]]")
    )


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (touched([0.5, 1.01], [0.5, 0.5]), "result_touch_yx"),
        (row(0, 4), "result_touch_yx"),
        (touched([0.5, 0.5], [0.5]), "result_lift_yx"),
        (row(0, 0), "result_action_type"),
        (row(0, 1), "result_action_type"),
        (row(0, 12), "result_action_type"),
        (row(0, 3, result_action_text=None), "result_action_text"),
        (row(0, 10, ui_positions="[[50, 50]]"), "ui_positions"),
        (row(0, 10, ui_positions="[[50, 50, NaN, 5]]"), "ui_positions"),
        (row(0, 10, image_path="general/x"), "image_path"),
        (row(0, 10, image_width=100), "image_height"),
        (row(0, 10, coat_action_desc=5), "coat_action_desc"),
        (row(0, 10, step_id="0"), "step_id"),
    ],
)
def test_a_damaged_step_is_reported_by_file_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    assert f"{NAME}.json, step 1, field {field}: " in problem(
        tmp_path, row(0, 10), {**item, "step_id": item["step_id"] and "1"}
    )


def test_a_strangers_step_is_refused(tmp_path: Path) -> None:
    assert "step 1, field episode_id: is '8', but step 0 has '41'" in problem(tmp_path, row(0, 5), row(1, 10, episode_id="8"))


def test_another_id_in_all_rows_is_kept(tmp_path: Path) -> None:
    step = only_step(tmp_path, row(0, 10, episode_id="8"))
    assert (step.episode_id, step.extras["episode_id"]) == ("41", "8")


def test_an_image_that_is_missing_or_none_is_reported(tmp_path: Path) -> None:
    home = write(tmp_path / "test" / "general", row(0, 10))
    (home / f"{NAME}_0.png").write_text("hello")
    with pytest.raises(DataError, match=rf"{NAME}_0\.png' is not a readable PNG"):
        list(load_benchmark("aitz", tmp_path))
    (home / f"{NAME}_0.png").unlink()
    with pytest.raises(DataError, match=rf"field image_path: there is no image 'test/general/{NAME}/{NAME}_0\.png'"):
        list(load_benchmark("aitz", tmp_path))


def test_a_damaged_episode_can_be_skipped(tmp_path: Path) -> None:
    write(tmp_path / "test" / "general", row(0, 10))
    write(tmp_path / "test" / "general", row(0, 12), name="GENERAL-42")
    write(tmp_path / "test" / "general", name="GENERAL-43")
    (tmp_path / "test" / "general" / "GENERAL-44").mkdir()
    benchmark = load_benchmark("aitz", tmp_path)
    benchmark = benchmark.skipping_damaged()
    episodes: list[Episode] = list(benchmark)
    assert [episode.key.episode_id for episode in episodes] == ["41"]
    messages = [str(error) for error in benchmark.skipped]
    assert len(messages) == 3
    assert "GENERAL-43.json: expected a list of steps, got []" in messages[0]
    assert "GENERAL-44: expected 'GENERAL-44.json', found 0 other JSON files" in messages[1]
    assert "GENERAL-42.json, step 0, field result_action_type: expected one of 3, 4, 5, 6, 7, 10, 11, got 12" in messages[2]


def test_the_same_episode_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "test" / "general", row(0, 10))
    write(tmp_path / "train" / "general", row(0, 10))
    with pytest.raises(DataError, match=r"episode aitz/general/41 is already in .*test/general/GENERAL-41"):
        load_benchmark("aitz", tmp_path).index()
