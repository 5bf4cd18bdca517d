"""AITW in SeeClick's files: every label from hand-written rows, where episodes lie in a file, and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Scroll
from guieval.errors import DataError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel
from tests.rows import every_row

SCREEN = (100, 200)
SUBSETS = ("general", "single", "webshopping", "install", "googleapps")


def row(code: int, word: str, *, number: int = 0, episode: str = "41", **changes: Any) -> dict[str, Any]:
    """One step as SeeClick's files have it; x before y in touch and lift, y before x in the boxes."""
    shown = {"ep_id": episode, "step": number, "img_filename": f"general/{episode}_{number}", "goal": "Wie wird das Wetter?"}
    label = {"action_type_id": code, "action_type_text": word, "type_text": "", "touch": [-1.0, -1.0], "lift": [-1.0, -1.0]}
    return {**shown, **label, "annot_position": [0.25, 0.5, 0.125, 0.25, 0.0, 0.0, 1.0, 1.0], **changes}


def gesture(word: str, touch: list[float], lift: list[float], **changes: Any) -> dict[str, Any]:
    return row(4, word, touch=touch, lift=lift, **changes)


def write(root: Path, *episodes: list[dict[str, Any]], split: str = "test", images: str = "aitw_images", **others: Any) -> Path:
    """Episodes of the subset general, and one of a step for each other subset; an image for every step."""
    file: dict[str, Any] = {"general": list(episodes)}
    for subset in SUBSETS[1:]:
        file[subset] = [[row(10, "status task complete", episode=f"{split}-{subset}")]]
    file |= others
    root.mkdir(exist_ok=True)
    (root / f"aitw_data_{split}.json").write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
    for part in file.values():
        for each in (step for episode in part for step in episode):
            path = root / images / f"{each['img_filename']}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", SCREEN, "white").save(path)
    return root


def general(root: Path) -> list[Episode]:
    return [episode for episode in load_benchmark("aitw", root) if episode.key.subset == "general"]


def only_step(root: Path, item: dict[str, Any]) -> StepTaskModel:
    (episode,) = general(write(root, [item]))
    (step,) = episode.steps
    return step


@every_row(
    ("item", "action"),
    [
        (gesture("click", [0.5, 0.25], [0.75, 0.25]), Click(point=Point(500, 250))),
        (gesture("scroll up", [0.5, 0.25], [0.5, 0.75]), Scroll(point=Point(500, 250), direction="down")),
        (gesture("scroll left", [0.25, 0.5], [0.75, 0.5]), Scroll(point=Point(250, 500), direction="right")),
        (gesture("scroll right", [0.75, 0.5], [0.25, 0.5]), Scroll(point=Point(750, 500), direction="left")),
    ],
)
def test_what_the_page_of_labels_does_not_show(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    step = only_step(tmp_path, item)
    assert step.action == action
    assert (step.dataset, step.subset, step.split, step.setting) == ("aitw", "general", "test", "high")
    assert (step.instruction, step.low_level_instruction) == ("Wie wird das Wetter?", None)
    assert (step.screenshot, step.screenshot_size) == ("aitw_images/general/41_0.png", SCREEN)
    assert [tuple(box) for box in step.elements] == [(500, 250, 750, 375), (0, 0, 1000, 1000)]


def test_the_word_and_the_fingers_direction_are_kept(tmp_path: Path) -> None:
    """SeeClick's word and the path may disagree; the finger's path is AITW's own label."""
    step = only_step(tmp_path, gesture("scroll left", [0.5, 0.75], [0.5, 0.25]))
    assert step.action == Scroll(point=Point(500, 750), direction="up")
    assert step.extras == {"direction_label": "left", "path": [[500, 750], [500, 250]]}


def test_a_click_whose_finger_moved_keeps_the_path_and_a_step_its_position(tmp_path: Path) -> None:
    steps = [gesture("click", [0.5, 0.25], [0.5, 0.29]), gesture("click", [0.5, 0.25], [0.5, 0.3], number=1)]
    (episode,) = general(write(tmp_path, [*steps, row(10, "x", number=5)]))
    assert [step.extras for step in episode.steps] == [{}, {"path": [[500, 250], [500, 300]]}, {"step_id": 5}]


def test_every_file_is_a_split_and_episodes_keep_their_order(tmp_path: Path) -> None:
    write(tmp_path, [row(10, "x", episode="9")], [row(10, "x", episode="10")], split="train")
    write(tmp_path, [row(5, "x", episode="3"), row(10, "x", episode="3", number=1)], split="test")
    write(tmp_path, [row(10, "x", episode="7")], split="val")
    refs = load_benchmark("aitw", tmp_path).index()
    found = [(ref.split, ref.key.episode_id, ref.length) for ref in refs if ref.key.subset == "general"]
    assert found == [("test", "3", 2), ("validation", "7", 1), ("train", "9", 1), ("train", "10", 1)]
    assert [ref.key.subset for ref in refs if ref.split == "test"] == list(SUBSETS)


@every_row("indent", [None, 2])
def test_an_episode_after_letters_of_any_width_is_read(tmp_path: Path, indent: int | None) -> None:
    goals = ["天气怎么样？", "Quel temps fera-t-il à Orléans ?", "weather 🌦", 'say "]},["']
    write(tmp_path, *([row(10, "x", episode=str(number), goal=goal)] for number, goal in enumerate(goals)))
    file = tmp_path / "aitw_data_test.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()), ensure_ascii=False, indent=indent) + "\r\n", encoding="utf-8")
    benchmark = load_benchmark("aitw", tmp_path)
    loaded = [benchmark.load(ref) for ref in reversed(benchmark.index()) if ref.key.subset == "general"]
    assert [episode.steps[0].instruction for episode in reversed(loaded)] == goals


@every_row(("images", "before"), [("aitw_images", "aitw_images/"), ("aitw_imgs", "aitw_imgs/"), ("", "")])
def test_images_may_lie_in_any_of_the_usual_folders(tmp_path: Path, images: str, before: str) -> None:
    write(tmp_path, [row(10, "x")], images=images)
    assert general(tmp_path)[0].steps[0].screenshot == f"{before}general/41_0.png"


@every_row(
    ("item", "field"),
    [
        (row(4, "click"), "touch"),
        (gesture("click", [0.5, 1.5], [0.5, 0.5]), "touch"),
        (gesture("scroll down", [0.5, 0.5], [0.5, 0.5]), "lift"),
        *[
            (gesture(word, [0.5, 0.5], lift), "lift: expected fractions of the screen, got")
            for word in ("click", "scroll up")
            for lift in ([1e308, 0.5], [-1e308, -1e308], [0.5, 1e306])
        ],
        *[(gesture(word, [0.5, 0.5], [0.5, 0.1]), "action_type_text") for word in ("swipe", "scroll")],
        (row(0, "scroll down"), "action_type_id"),
        (row(10, "x", annot_position=[0.1, 0.2, 0.3]), "annot_position"),
        (gesture("click", [0.5, 0.5], [0.5]), "lift"),
        (row(10, "x", step=None), "step"),
    ],
)
def test_a_damaged_step_is_reported_by_file_episode_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    write(tmp_path, [row(10, "x", episode="1")], [row(5, "x"), item])
    with pytest.raises(DataError) as caught:
        general(tmp_path)
    assert f"aitw_data_test.json, general episode 1, step 1, field {field}" in str(caught.value)


def test_a_missing_image_leaves_out_the_episode(tmp_path: Path) -> None:
    write(tmp_path, [row(10, "x", episode="1")], [row(10, "x", episode="2")])
    (tmp_path / "aitw_images" / "general" / "1_0.png").unlink()
    benchmark = load_benchmark("aitw", tmp_path)
    with pytest.raises(DataError, match=r"step 0, field img_filename: there is no image 'aitw_images/general/1_0\.png'"):
        list(benchmark)
    benchmark = benchmark.skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark if episode.key.subset == "general"] == ["2"]


@every_row(
    ("episodes", "message"),
    [
        ([[]], "general episode 0: expected a list of steps, got []"),
        ([[5]], "general episode 0, step 0: expected an object, got 5"),
        ([[row(5, "x"), row(10, "x", episode="8")]], "general episode 0, step 1, field ep_id: is '8', but step 0 has '41'"),
        ([[row(10, "x")], [row(10, "x")]], "general episode 1: episode aitw/general/41 is already in "),
    ],
)
def test_an_episode_that_cannot_be_listed_is_refused(tmp_path: Path, episodes: list[Any], message: str) -> None:
    write(tmp_path, [row(10, "x", episode="1")])
    file = tmp_path / "aitw_data_test.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"general": episodes}))
    with pytest.raises(DataError) as caught:
        load_benchmark("aitw", tmp_path).index()
    assert message in str(caught.value)


@every_row(
    ("text", "message"),
    [
        *[(text, "is not JSON") for text in ("", "{general", '{"general": [[{"ep_id": "1"}]')],
        ("[]", "expected an object, got []"),
        ("{}", "field general: is missing"),
        ('{"general": 5}', "field general: expected a list of episodes, got 5"),
        ('{"general": []}', "field general: expected a list of episodes, got []"),
        ('{"general": [[{"ep_id": "1"}]]}', "field single: is missing"),
        (
            '{"generals": [[{"ep_id": "1"}]]}',
            "expected the fields general, single, webshopping, install, googleapps, got 'generals'",
        ),
    ],
)
def test_a_file_that_is_no_such_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "aitw_data_test.json").write_text(text)
    with pytest.raises(DataError) as caught:
        load_benchmark("aitw", tmp_path).index()
    assert str(caught.value).removeprefix(f"{tmp_path / 'aitw_data_test.json'}").lstrip(":, ").startswith(message)


def test_something_after_the_end_and_a_number_of_5000_digits_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, [row(10, "x")]) / "aitw_data_test.json"
    whole = file.read_text()
    file.write_text(whole + "{")
    with pytest.raises(DataError, match=r"is not JSON \(trailing characters"):
        load_benchmark("aitw", tmp_path).index()
    file.write_text(whole.replace('"step": 0', f'"step": {"9" * 5000}', 1))
    with pytest.raises(DataError, match=r"aitw_data_test\.json"):
        general(tmp_path)
