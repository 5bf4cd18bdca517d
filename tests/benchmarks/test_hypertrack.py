"""HyperTrack by its description: spellings, the stated assumptions and their options, and what is reported when lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Box, Boxes, Click, Open, Point, Scroll, Stop, Type
from guieval.data.doctor.statistics import statistics
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, build_model, load_benchmark, load_model, model_config
from guieval.steps import Episode, StepTaskModel
from tests.rows import every_row

NAME = "h" * 33
SIZE = (1080, 2400)
MIDDLE = Point(500.0, 500.0)


def write(root: Path, value: Any, *, name: str = NAME, file: str = "", categories: Any = None) -> Path:
    home = root / "test_filtered" / name
    home.mkdir(parents=True, exist_ok=True)
    (home / f"{file or name}.json").write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    listed = {"idd": [name]} if categories is None else categories
    (root / "episode_categorization.json").write_text(json.dumps(listed), encoding="utf-8")
    return root


def document(**step: Any) -> dict[str, Any]:
    """An episode of one step."""
    base = {"screenshot": "0.png", "observation": "桌面", "action_type": "STOP"}
    return {
        "episode_id": NAME,
        "instruction": "打开微博热搜榜",
        "device_info": {"device_model": "M1", "os": "Android 13", "resolution": "1080x2400"},
        "steps": [{**base, **step}],
    }


def load(root: Path, **options: Any) -> list[Episode]:
    benchmark = load_benchmark("hypertrack", root, **options)
    return [benchmark.load(ref) for ref in benchmark.index()]


def only_step(root: Path, value: Any, **options: Any) -> StepTaskModel:
    ((step,),) = (episode.steps for episode in load(write(root, value), **options))
    return step


@every_row(
    ("step", "expected"),
    [
        ({"action_type": "CLICK", "coordinate": [540, 600]}, Click(point=Point(500.0, 250.0))),
        ({"action_type": None, "action": "click", "click_coordinates": {"x": 108, "y": 2400}}, Click(point=Point(100, 1000))),
        ({"action_type": None, "action": {"type": "Tap", "point": "[540, 600]"}}, Click(point=Point(500.0, 250.0))),
        ({"action_type": "SCROLL", "direction": "up"}, Scroll(point=Point(500.0, 500.0), direction="up")),
        ({"action_type": "SCROLL", "direction": "向左", "coordinate": [540, 1200]}, Scroll(point=MIDDLE, direction="left")),
        ({"action_type": "SWIPE", "start": [540, 1800], "end": [540, 600]}, Scroll(point=Point(500.0, 750.0), direction="up")),
        ({"action_type": "TYPE", "text": "天气 预报"}, Type(text="天气 预报")),
        ({"action_type": "input", "params": {"text": ""}}, Type(text="")),
        ({"action_type": "OPEN", "app_name": "微博"}, Open(app="微博")),
        ({"action_type": "open_app", "text": "微博"}, Open(app="微博")),
        # the app that the screen is of, or the task, is not the one that is opened
        ({"action_type": None, "app_name": "桌面", "action": {"type": "OPEN", "app": "微博"}}, Open(app="微博")),
        ({"app_name": "桌面", "action_type": "OPEN", "params": {"text": "微博"}}, Open(app="微博")),
        ({"action_type": "STOP"}, Stop(status="finish")),
        ({"action_type": "STOP", "status": "impossible"}, Stop(status="impossible")),
    ],
)
def test_actions_in_the_obvious_spellings(tmp_path: Path, step: dict[str, Any], expected: Action) -> None:
    assert only_step(tmp_path, document(**step)).action == expected
    assert expected in benchmarks()["hypertrack"].action_space


def test_nothing_that_a_row_states_is_lost_in_either_form(tmp_path: Path) -> None:
    """The app of an action is the one it opens; what no key is known for is kept under its own name."""
    kept = {"app_name": "微博", "app_category": "社交", "ui_tree": TREE, "score": 3}
    flat = {**document()["steps"][0], "episode_id": NAME, "instruction": "i", "device_model": "M1", "os": "Android 13", **kept}
    flat |= {"action_type": None, "action": {"type": "OPEN", "app": "微信", "via": "dock"}, "image_width": 1, "image_height": 1}
    whole, bare = only_step(tmp_path / "object", {**document(), **kept}), only_step(tmp_path / "list", [flat])
    assert whole.groups == bare.groups == {"device": "M1", "app": "微博", "category": "社交"}
    shared = {"observation": "桌面", "tree": TREE, "system": "Android 13"}
    assert (whole.extras, bare.extras) == (
        {**shared, "unread": {"score": 3}},
        {**shared, "unread": {"action.via": "dock", "score": 3}},
    )
    assert bare.action == Open(app="微信")
    counts = statistics(load_benchmark("hypertrack", tmp_path / "list")).to_json()
    assert counts["categories"] == {"社交": {"episodes": 1, "apps": 1}} and counts["further_data"]["tree"] == 1
    assert (counts["chinese_episodes"], counts["level"], counts["steps_with_elements"]) == (0, "high", 1)
    low = load_benchmark("hypertrack-low", write(tmp_path / "low", document(action_description="结束任务")))
    assert low.load(low.index()[0]).steps[0].setting == "low"


def test_texts_of_a_screen_are_given_to_every_family_in_its_own_frame(tmp_path: Path) -> None:
    """After the last user's turn, once; a step without the text is an error and no silent gap."""
    step = only_step(tmp_path, document(ui_tree=TREE))
    expected = {0: 'Tree:\n  - Button "OK" clickable ', 1: "[109, 241, 546, 482]", 999: "[100, 100, 500, 200]"}
    for name, frame in (("qwen2.5-vl-7b", 1), ("ui-tars-1.5-7b", 1), ("glm-4.5v", 999)):
        config = model_config(name)
        options = {**config.options, "screen_texts": ["observation", "tree"]}
        model = build_model(config.model_copy(update={"options": options}))
        asked = [message for message in model.prepare_input(step, ()).messages if message.role == "user"][-1]
        assert asked.parts[-2:] == ("Observation:\n桌面", expected[0] + expected[frame])
        assert asked.parts[:-2] == load_model(name).prepare_input(step, ()).messages[-1].parts
        with pytest.raises(DataError, match=r"has no 'observation', which the option screen_texts gives .* further data: none"):
            model.prepare_input(step.model_copy(update={"extras": {}}), ())


TREE = [{"class": "a.Button", "text": "OK", "states": ["clickable", "enabled"], "box": [100, 100, 500, 200], "depth": 1}, {}]


def test_an_episode_carries_what_is_described(tmp_path: Path) -> None:
    step = only_step(tmp_path, document(action_description="结束任务"))
    assert (step.episode_id, len(step.episode_id), step.subset, step.split) == (NAME, 33, "idd", "test")
    assert (step.instruction, step.low_level_instruction) == ("打开微博热搜榜", "结束任务")
    assert step.screenshot_size == SIZE
    assert (step.groups, step.extras) == ({"device": "M1"}, {"observation": "桌面", "system": "Android 13"})
    assert only_step(tmp_path, document(step_id=4)).extras["step_id"] == 4
    with pytest.raises(DataError, match=r"field episode_id: is 'other', but its folder is 'h{33}'"):
        only_step(tmp_path, {**document(), "episode_id": "other"})


@every_row(
    ("box", "options"),
    [
        ([108, 240, 540, 1200], {}),
        ([[108, 240], [540, 1200]], {}),
        ({"left": 108, "top": 240, "right": 540, "bottom": 1200}, {}),
        ({"x": 108, "y": 240, "width": 432, "height": 960}, {}),
        ([108, 240, 432, 960], {"boxes": "sizes"}),
    ],
)
def test_boxes_in_every_form_are_the_same_box(tmp_path: Path, box: Any, options: dict[str, str]) -> None:
    step = only_step(tmp_path, document(action_type="CLICK", coordinate=[300, 300], bbox=box), **options)
    assert list(step.targets) == [Box(100.0, 100.0, 500.0, 500.0)]


def test_options_change_what_is_assumed(tmp_path: Path) -> None:
    click = document(action_type="CLICK", coordinate=[0.25, 0.5], bbox=[0.2, 0.4, 0.3, 0.6])
    step = only_step(tmp_path, click, coordinates="fractions")
    assert step.action == Click(point=Point(250.0, 500.0))
    assert step.targets.array == pytest.approx(Boxes([[200, 400, 300, 600]]).array)
    with pytest.raises(DataError, match=r"field coordinate: .* use the option coordinates=fractions"):
        only_step(tmp_path, click)
    step = only_step(tmp_path, document(action_type="CLICK", coordinate=[250, 500]), coordinates="thousandths")
    assert step.action == Click(point=Point(250.0, 500.0))
    scroll = document(action_type="SCROLL", direction="down")
    assert only_step(tmp_path, scroll, scroll="content").action == Scroll(point=Point(500, 500), direction="up")
    with pytest.raises(DataError, match=r"field bbox: .* use the option boxes=sizes"):
        only_step(tmp_path, document(action_type="CLICK", coordinate=[900, 2000], bbox=[880, 1950, 40, 100]))
    with pytest.raises(UsageError, match=r"coordinates is 'fraction'; expected .*\(did you mean 'fractions'\?\)"):
        load(tmp_path, coordinates="fraction")


def test_the_image_states_its_size_before_the_device_does(tmp_path: Path) -> None:
    write(tmp_path, document(action_type="CLICK", coordinate=[540, 600]))
    Image.new("RGB", (1800, 1200), "white").save(tmp_path / "test_filtered" / NAME / "0.png")
    ((step,),) = (episode.steps for episode in load(tmp_path))
    assert (step.screenshot_size, step.action) == ((1800, 1200), Click(point=Point(300.0, 500.0)))
    ((step,),) = (episode.steps for episode in load(write(tmp_path, document(image_width=900, image_height=600))))
    assert step.screenshot_size == (900, 600)


@every_row(
    ("categories", "split", "subset"),
    [
        ({"test": {"IDD": [NAME]}}, "test", "idd"),
        ({"Unseen App & Device": [NAME], "train": ["other"]}, "test", "unseen-app-device"),
        ({"splits": {"test_unseen_device": [NAME]}}, "test", "unseen-device"),
        ({NAME: "unseen_app"}, "test", "unseen-app"),
        ({NAME: {"category": "Val", "app": "微博"}}, "val", ""),
        ([{"episode_id": NAME, "split": "train"}], "train", ""),
    ],
)
def test_the_categorisation_in_the_obvious_forms(tmp_path: Path, categories: Any, split: str, subset: str) -> None:
    write(tmp_path, document(), categories=categories)
    (ref,) = load_benchmark("hypertrack", tmp_path).index()
    assert (ref.split, ref.key.subset) == (split, subset)
    assert [(step.split, step.subset) for episode in load(tmp_path) for step in episode.steps] == [(split, subset)]


@every_row(
    ("categories", "message"),
    [
        ({"group 7": [NAME]}, "field group 7: is not the name of a split; known are .*idd.*train"),
        ({"idd": ["other"]}, "does not list episode 'h{33}' under train, val, idd, unseen_app"),
        ({"idd": [NAME], "unseen_app": [NAME]}, "lists episode 'h{33}' both as test/idd and as test/unseen-app"),
        ({NAME: "phone"}, "expected the name of a split .* got 'phone'"),
    ],
)
def test_a_categorisation_that_cannot_be_read_is_reported(tmp_path: Path, categories: Any, message: str) -> None:
    write(tmp_path, document(), categories=categories)
    with pytest.raises(DataError, match=rf"episode_categorization\.json.*{message}"):
        load(tmp_path)


def test_the_inner_folder_may_be_given_and_names_the_split_without_a_categorisation(tmp_path: Path) -> None:
    write(tmp_path, document())
    for folder, subset in ((tmp_path / "test_filtered", "idd"), (tmp_path, "")):
        (episode,) = load(folder)
        assert (episode.key.subset, episode.steps[0].split) == (subset, "test")
        (tmp_path / "episode_categorization.json").unlink(missing_ok=True)


def test_an_unknown_layout_states_what_was_found_and_where_to_adapt(tmp_path: Path) -> None:
    write(tmp_path, {"uuid": 1, "wording": "打开", "moves": []})
    told = r"field steps: is under none of steps, trajectory.*; found are uuid, wording, moves; .*KEYS in"
    with pytest.raises(DataError, match=told):
        load(tmp_path)
    value = document()
    value["aim"] = value.pop("instruction")
    told = r"field instruction: is under none of .*; found are .*aim; .*benchmarks/hypertrack\.py"
    with pytest.raises(DataError, match=told):
        load(write(tmp_path, value))


@every_row(
    ("step", "message"),
    [
        ({"action_type": "DRAG"}, "field action_type: expected OPEN, CLICK, SCROLL, TYPE or STOP, got 'DRAG'"),
        ({"action_type": "CLICK", "coordinate": [1081, 5]}, "field coordinate: .* lies outside"),
        ({"action_type": "SCROLL", "direction": "inwards"}, "field direction: expected up, down, left or right"),
        ({"action_type": "SCROLL", "start": [5, 5], "end": [5, 5]}, "field end: expected another place"),
        ({"action_type": "OPEN", "text": ""}, "field text: names no app"),
        ({"action_type": "STOP", "status": "maybe"}, "field status: expected finish or impossible"),
    ],
)
def test_what_cannot_be_read_is_reported_and_not_guessed(tmp_path: Path, step: dict[str, Any], message: str) -> None:
    write(tmp_path, document(**step))
    with pytest.raises(DataError, match=rf"{NAME}\.json, step 0, {message}"):
        load(tmp_path)


def test_the_file_need_not_be_named_like_its_folder_unless_there_are_two(tmp_path: Path) -> None:
    home = write(tmp_path, document(), file="annotation") / "test_filtered" / NAME
    assert [episode.key.episode_id for episode in load(tmp_path)] == [NAME]
    (home / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"holds 2 JSON files and none is called h{33}\.json"):
        load(tmp_path)
