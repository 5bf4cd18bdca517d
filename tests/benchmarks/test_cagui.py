"""CAGUI: every label of the agent part from hand-written files, the real grounding lists, every folder, and damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.cagui import episode_id, write_cagui_agent, write_cagui_grounding

from guieval.actions import Action, Click, LongPress, Point, Press, Scroll, Stop, Type, Wait
from guieval.errors import DataError, UsageError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel

NAME = "0cf94392854b6b7224b63b93d7c8871a"
SCREEN = (1264, 2800)


def row(code: int, **changes: Any) -> dict[str, Any]:
    """One step of the agent part; lists are text, -1 where there is no place."""
    return {
        "episode_id": NAME,
        "episode_length": 1,
        "step_id": 0,
        "instruction": "高德把浐灞国家湿地公园加入收藏夹 ",
        "image_path": f"domestic/{NAME}/{NAME}_0.jpeg",
        "image_width": SCREEN[0],
        "image_height": SCREEN[1],
        "ui_positions": "[[0.25, 0.5, 0.125, 0.25]]",
        "result_action_type": code,
        "result_action_text": "",
        "result_touch_yx": "[-1.0, -1.0]",
        "result_lift_yx": "[-1.0, -1.0]",
        "duration": None,
        **changes,
    }


def touched(code: int, touch: list[float], lift: list[float] | None = None, **changes: Any) -> dict[str, Any]:
    return row(code, result_touch_yx=str(touch), result_lift_yx=str(lift or touch), **changes)


def write(folder: Path, *rows: dict[str, Any], name: str = NAME, file: str | None = None) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / (file or f"{name}.json")).write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return folder


def only_step(root: Path, item: dict[str, Any]) -> StepTaskModel:
    write(root / "CAGUI_agent" / "domestic", item)
    (episode,) = load_benchmark("cagui", root)
    (step,) = episode.steps
    return step


@pytest.mark.parametrize(
    ("item", "action"),
    [
        (touched(0, [0.25, 0.5]), LongPress(point=Point(500, 250))),
        (touched(0, [0.25, 0.5], duration=2000.0), LongPress(point=Point(500, 250), duration=2000)),
        (row(1, duration=3000), Wait()),
        (row(3, result_action_text="浐灞"), Type(text="浐灞")),
        (touched(4, [0.25, 0.5], duration=200), Click(point=Point(500, 250))),
        (touched(4, [0.75, 0.5], [0.25, 0.5]), Scroll(point=Point(500, 750), direction="up")),
        (touched(4, [0.5, 0.25], [0.5, 0.75]), Scroll(point=Point(250, 500), direction="right")),
        (row(5), Press(button="BACK")),
        (row(6), Press(button="HOME")),
        (row(7), Press(button="ENTER")),
        (row(10), Stop(status="finish")),
        (row(11), Stop(status="impossible")),
    ],
    ids=lambda value: getattr(value, "type", None),
)
def test_every_code(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    step = only_step(tmp_path, item)
    assert step.action == action
    assert step.instruction == "高德把浐灞国家湿地公园加入收藏夹 "
    assert (step.dataset, step.subset, step.split, step.low_level_instruction) == ("cagui", "domestic", "test", None)
    assert step.screenshot == f"CAGUI_agent/domestic/{NAME}/{NAME}_0.jpeg"
    assert step.screenshot_size == SCREEN
    assert [tuple(box) for box in step.boxes] == [(500, 250, 750, 375)]


@pytest.mark.parametrize("absent", [None, "", "missing"])
def test_bbox_is_read_where_there_are_no_ui_positions(tmp_path: Path, absent: str | None) -> None:
    item = row(10, ui_positions=absent, bbox="[[0.5, 0.25, 0.25, 0.5]]")
    if absent == "missing":
        del item["ui_positions"]
    assert [tuple(box) for box in only_step(tmp_path, item).boxes] == [(250, 500, 750, 750)]


def test_an_empty_list_of_positions_is_one(tmp_path: Path) -> None:
    assert len(only_step(tmp_path, row(10, ui_positions="[]", bbox="[[0.5, 0.25, 0.25, 0.5]]")).boxes) == 0


def test_what_was_played_is_what_is_loaded(tmp_path: Path) -> None:
    played = {episode_id(one): one for one in write_cagui_agent(tmp_path, episodes=4)}
    episodes: list[Episode] = list(load_benchmark("cagui", tmp_path))
    assert [episode.key.episode_id for episode in episodes] == sorted(played)
    seen = set()
    for episode in episodes:
        for step, was in zip(episode.steps, played[episode.key.episode_id].steps, strict=True):
            seen.add(was.action.type)
            assert step.screenshot_size == (360, 800)
            if isinstance(was.action, Click | LongPress) and isinstance(step.action, Click | LongPress):
                assert step.action.type == was.action.type
                assert tuple(step.action.point) == pytest.approx(tuple(was.action.point))
            elif isinstance(was.action, Scroll) and isinstance(step.action, Scroll):
                assert step.action.direction == was.action.direction
            else:
                assert step.action == was.action
    assert seen >= {"CLICK", "LONG_PRESS", "TYPE", "STOP"}


@pytest.mark.parametrize("inner", ["", "CAGUI_agent", "CAGUI_agent/domestic"])
def test_any_folder_of_the_download_may_be_given(tmp_path: Path, inner: str) -> None:
    write_cagui_agent(tmp_path, episodes=1)
    benchmark = load_benchmark("cagui", tmp_path / inner)
    (episode,) = benchmark
    assert all((benchmark.root / step.screenshot).is_file() for step in episode.steps)


def test_guievalkits_folder_may_be_given(tmp_path: Path) -> None:
    write(tmp_path / "test" / "domestic", row(10))
    (episode,) = load_benchmark("cagui", tmp_path)
    assert episode.steps[0].screenshot == f"test/domestic/{NAME}/{NAME}_0.jpeg"


@pytest.mark.parametrize("stray", [None, "domestic/notes.txt", "7/7.json", f"domestic/{NAME}/other.json"])
def test_another_folder_is_refused(tmp_path: Path, stray: str | None) -> None:
    if stray is not None:
        (tmp_path / stray).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stray).write_text("[]")
    with pytest.raises(UsageError, match=r"holds no CAGUI_agent/domestic.*guieval prepare cagui"):
        load_benchmark("cagui", tmp_path)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (touched(4, [0.5, 1.01]), "result_touch_yx"),
        (touched(0, [0.5, 0.5], duration=-1), "duration"),
        (row(2), "result_action_type"),
        (row(12, result_action_app_name="高德"), "result_action_type"),
        (row(10, ui_positions="[[1, 2]]"), "ui_positions"),
        (row(10, ui_positions=None, bbox="[[1, 2]]"), "bbox"),
        (row(10, image_width=0), "screenshot_size.0"),
        (row(10, image_path="domestic/x"), "image_path"),
        (row(10, episode_length=None), "episode_length"),
    ],
)
def test_a_damaged_step_is_reported_by_file_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    write(tmp_path / "domestic", row(5), item)
    with pytest.raises(DataError) as caught:
        list(load_benchmark("cagui", tmp_path))
    assert f"{NAME}.json, step 1, field {field}: " in str(caught.value)


def test_a_file_of_another_name_is_read_when_it_is_the_only_one(tmp_path: Path) -> None:
    write(tmp_path / "domestic", row(10))
    write(tmp_path / "domestic", row(10), name="1", file="steps.json")
    write(tmp_path / "domestic", row(10), name="2", file="a.json")
    (tmp_path / "domestic" / "2" / "b.json").write_text("[]")
    benchmark = load_benchmark("cagui", tmp_path)
    with pytest.raises(DataError, match=r"domestic/2: expected '2\.json', found 2 other JSON files"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [ref.key.episode_id for ref in benchmark.index()] == [NAME, "1"]
    assert benchmark.load(benchmark.index()[1]).steps[0].extras == {"episode_id": NAME}


# --- grounding --------------------------------------------------------------------------------------------------------


def entry(number: int = 0, part: str = "cap", **changes: Any) -> dict[str, Any]:
    """One row of a list; a screen of 100 x 200 pixels."""
    return {
        "task": "bbox2function" if part == "cap" else "bbox2text",
        "image": f"grounding_eval/dataset/images/{'' if part == 'cap' else 'ocr/'}{number}.jpeg",
        "id": 7,
        "abs_position": "<10, 20, 30, 60>",
        "rel_position": "<0.1, 0.1, 0.3, 0.3>",
        "text": "关注",
        **changes,
    }


def write_lists(folder: Path, *cap: dict[str, Any], packed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("cap", cap or (entry(),)), ("ocr", (entry(part="ocr"),))):
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows).encode()
        (folder / f"{part}.jsonl{'.gz' if packed else ''}").write_bytes(gzip.compress(text) if packed else text)
    return folder


def targets(root: Path) -> list[StepTaskModel]:
    return [step for episode in load_benchmark("cagui-grounding", root) for step in episode.steps]


def test_a_row_becomes_a_click_on_the_middle_of_its_box(tmp_path: Path) -> None:
    first, second = targets(write_lists(tmp_path))
    assert first.key == ("cagui-grounding", "fun2point", "0", 0)
    assert second.key == ("cagui-grounding", "text2point", "0", 0)
    for step in (first, second):
        assert step.action == Click(point=Point(200, 200))
        assert [tuple(box) for box in step.boxes] == [(100, 100, 300, 300)]
        assert (step.instruction, step.setting, step.dataset) == ("关注", "grounding", "cagui-grounding")
        assert step.screenshot_size == (100, 200)
        assert step.groups == {"task": step.subset}
        assert step.extras == {"id": 7}
    assert (first.screenshot, second.screenshot) == ("images/cap/0.jpeg", "images/ocr/0.jpeg")


def test_the_published_lists(shared_data: Path) -> None:
    steps = targets(shared_data / "cagui_grounding")
    assert [sum(step.subset == task for step in steps) for task in ("fun2point", "text2point")] == [1500, 1500]
    assert len({step.key for step in steps}) == len({step.screenshot for step in steps}) == 3000
    by_key = {(step.subset, step.episode_id): step for step in steps}
    menu = by_key["fun2point", "0"]
    assert menu.instruction.startswith("UI元素是一个菜单按钮")
    assert menu.screenshot_size == (1220, 2712)  # 1061 / 0.8696721311475409 and 2424 / 0.8938053097345132
    assert isinstance(menu.action, Click)
    assert tuple(menu.action.point) == pytest.approx((1110 / 1220 * 1000, 2473 / 2712 * 1000))
    music = by_key["text2point", "1"]
    assert (music.instruction, music.extras, music.screenshot_size) == ("QQ音乐", {"id": 629}, (1080, 2376))
    assert tuple(music.boxes[0]) == pytest.approx((643 / 1.08, 462 / 2.376, 849 / 1.08, 744 / 2.376))
    assert [step.key for step in steps if not step.instruction] == [by_key["text2point", "416"].key]
    assert len({step.screenshot_size for step in steps}) == 15


@pytest.mark.parametrize("inner", ["", "CAGUI_grounding", "CAGUI_grounding/code"])
def test_any_folder_of_the_grounding_part_may_be_given(tmp_path: Path, inner: str) -> None:
    shown = write_cagui_grounding(tmp_path, episodes=2)
    benchmark = load_benchmark("cagui-grounding", tmp_path / inner)
    episodes = list(benchmark)
    assert [episode.steps[0].subset for episode in episodes] == ["fun2point"] * 2 + ["text2point"] * 2
    for episode, was in zip(episodes[2:], shown, strict=True):
        (step,) = episode.steps
        assert was.target is not None
        assert (benchmark.root / step.screenshot).is_file()
        assert step.instruction == was.target.label
        assert isinstance(was.action, Click)
        box = step.boxes[0]
        assert box.x1 <= was.action.point.x <= box.x2
        assert box.y1 <= was.action.point.y <= box.y2


def test_images_where_the_rows_recorded_them_are_found(tmp_path: Path) -> None:
    write_lists(tmp_path / "code")
    (tmp_path / "images" / "ocr").mkdir(parents=True)
    assert [step.screenshot for step in targets(tmp_path)] == ["images/0.jpeg", "images/ocr/0.jpeg"]


def test_packed_lists_are_the_same(tmp_path: Path) -> None:
    rows = [entry(number, text=f"第{number}个") for number in range(3)]
    assert targets(write_lists(tmp_path / "a", *rows)) == targets(write_lists(tmp_path / "b", *rows, packed=True))


@pytest.mark.parametrize("part", ["cap", "ocr", None])
def test_a_folder_without_both_lists_is_refused(tmp_path: Path, part: str | None) -> None:
    if part is not None:
        write_lists(tmp_path)
        (tmp_path / f"{part}.jsonl").unlink()
    with pytest.raises(UsageError, match=r"holds no .*\.jsonl.*guieval prepare cagui-grounding"):
        load_benchmark("cagui-grounding", tmp_path)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (entry(1, abs_position="<10, 20, 30>"), "abs_position"),
        (entry(1, abs_position="<10, 20, 30, x>"), "abs_position"),
        (entry(1, abs_position="<30, 20, 10, 60>"), "abs_position"),
        (entry(1, abs_position="<10, 20, 30, nan>"), "abs_position"),
        (entry(1, rel_position="<0.1, 0.1, 0.2, 0.3>"), "rel_position"),
        (entry(1, rel_position="<0, 0, 0, 0>", abs_position="<0, 0, 0, 0>"), "rel_position"),
        (entry(1, rel_position="<0, 0, 1e-300, 1e-300>", abs_position="<0, 0, 1e300, 1e300>"), "rel_position"),
        (entry(1, task="bbox2text"), "task"),
        (entry(1, text=None), "text"),
        (entry(1, id="7"), "id"),
        (entry(1, image="1"), "image"),
        (entry(0), "image"),
    ],
)
def test_a_damaged_row_is_reported_by_file_line_and_field_and_can_be_skipped(
    tmp_path: Path, item: dict[str, Any], field: str
) -> None:
    write_lists(tmp_path, entry(0), item, entry(2))
    with pytest.raises(DataError) as caught:
        targets(tmp_path)
    assert f"cap.jsonl, line 2, field {field}: " in str(caught.value)
    benchmark = load_benchmark("cagui-grounding", tmp_path)
    benchmark = benchmark.skipping_damaged()
    assert [episode.key[1:] for episode in benchmark] == [("fun2point", "0"), ("fun2point", "2"), ("text2point", "0")]
    assert [str(error) for error in benchmark.skipped] == [str(caught.value)]
