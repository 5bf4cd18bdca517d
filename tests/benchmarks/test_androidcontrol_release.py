"""AndroidControl from its authors' release: what each record becomes, which are taken, and how damage is reported."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shutil
import struct
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.androidcontrol import bounds, fitting_episodes, pixel, shard_name, write_release
from guieval.benchmarks._examples.androidcontrol_guievalkit import write_folder
from guieval.benchmarks._examples.androidcontrol_ui_s1 import write_test_file
from guieval.benchmarks._examples.tfrecord import Feature, blob, example, framed, number, packed, write_records
from PIL import Image

from guieval.actions import Action, Click, LongPress, Point, Scroll, Stop, Type, Unsupported, Wait
from guieval.data.benchmark import Release, ReleasedEpisode
from guieval.data.doctor.counts import Counts, compare
from guieval.data.episodes.prepare import prepare
from guieval.errors import DataError, UsageError
from guieval.playground.phone import PhoneEpisode, encode
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode, EpisodeKey
from tests.rows import every_row

SCREEN = (100, 200)
LARGE = 2**62 + 3


def release(root: Path, name: str = "androidcontrol", **options: Any) -> Release:
    return benchmarks()[name].release(root, **options)


def everything(source: Release) -> list[ReleasedEpisode]:
    return [found for part in source.parts() for found in source.episodes(part, lambda key: False)]


def png(size: tuple[int, int] = SCREEN) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, "white").save(buffer, format="PNG")
    return buffer.getvalue()


def rectangle(field: int, *edges: int) -> bytes:
    written: bytes = blob(field, b"".join(number(index, edge) for index, edge in enumerate(edges, 1)))
    return written


def window(*nodes: bytes, own: bytes = b"") -> bytes:
    written: bytes = blob(1, own + blob(11, b"".join(blob(1, node) for node in nodes)))
    return written


def record(*actions: object, episode_id: int = 7, **changes: Feature) -> dict[str, Feature]:
    count = len(actions) + 1
    written = [action if isinstance(action, bytes) else json.dumps(action).encode() for action in actions]
    told = [f"do step {index}".encode() for index in range(len(actions))]
    goal: dict[str, Feature] = {"episode_id": [episode_id], "goal": ["Buy milk 牛奶 🥛".encode()]}
    sizes: dict[str, Feature] = {"screenshot_widths": [SCREEN[0]] * count, "screenshot_heights": [SCREEN[1]] * count}
    screens = {"screenshots": [png()] * count, "accessibility_trees": [window(rectangle(2, 25, 50, 75, 100))] * count}
    return {**goal, **screens, **sizes, "actions": written, "step_instructions": told, **changes}


WAIT = {"action_type": "wait"}


def write(root: Path, *records: Mapping[str, Feature] | bytes, splits: object = None, compressed: bool = True) -> Path:
    """One shard with these records, all of the test split unless set otherwise."""
    payloads = [item if isinstance(item, bytes) else example(item) for item in records]
    write_records(root / shard_name(0, 1), payloads, compressed=compressed)
    ids = [item["episode_id"][0] for item in records if not isinstance(item, bytes)]
    (root / "splits.json").write_text(json.dumps(splits or {"train": [], "validation": [], "test": ids}))
    return root


def only(root: Path, *records: Mapping[str, Feature], **options: Any) -> Episode:
    (found,) = everything(release(write(root, *records), **options))
    return found.episode


# --- whole episodes, written independently of the reader ---


@pytest.fixture(scope="module")
def phone_episodes() -> dict[int, PhoneEpisode]:
    return dict(zip((5, LARGE, 9), fitting_episodes(0, 3), strict=True))


@pytest.fixture(scope="module")
def folder(phone_episodes: dict[int, PhoneEpisode], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("release")
    splits = {"train": [9], "validation": [LARGE], "test": [5]}
    write_release(root, phone_episodes, splits=splits, subsplits={"app_unseen": [5], "IDD": [], "task_unseen": [5]})
    return root


def expected(label: Action, size: tuple[int, int]) -> Action:
    if isinstance(label, Click | LongPress):
        x, y = pixel(label.point, size)
        return type(label)(point=Point(x * 1000 / size[0], y * 1000 / size[1]))
    if isinstance(label, Scroll):
        return Scroll(point=Point(500, 500), direction=label.direction)
    return label


def test_what_was_written_is_read(folder: Path, phone_episodes: dict[int, PhoneEpisode]) -> None:
    source = release(folder, splits="all")
    assert source.parts() == ("android_control-00000-of-00002", "android_control-00001-of-00002")
    assert source.episodes_expected == 3
    found = everything(source)
    assert [item.episode.key.episode_id for item in found] == ["5", "9", str(LARGE)]
    for item in found:
        phone = phone_episodes[int(item.episode.key.episode_id)]
        assert len(item.episode) == len(phone)
        for step, made in zip(item.episode.steps, phone.steps, strict=True):
            assert step.action == expected(made.action, phone.size)
            assert step.instruction == phone.task.instruction
            finished = isinstance(made.action, Stop)
            assert step.low_level_instruction == ("finish the task" if finished else made.instruction)
            assert step.extras.get("synthetic", False) == finished
            assert step.screenshot_size == phone.size
            pixels = [
                [round(edge * side / 1000, 6) for edge, side in zip(box, phone.size * 2, strict=True)] for box in step.elements
            ]
            assert pixels == [list(box) for box in bounds(made.phone.screen)]
            assert item.screenshots[step.screenshot]() == encode(made.phone.render())
        assert len(item.screenshots) == len({step.screenshot for step in item.episode.steps}) == len(phone)
    splits = {item.episode.key.episode_id: item.episode.steps[0].split for item in found}
    assert splits == {"5": "test", "9": "train", str(LARGE): "validation"}


def test_the_three_layouts_agree(folder: Path, phone_episodes: dict[int, PhoneEpisode], tmp_path: Path) -> None:
    """The same episodes through GUIEvalKit's preparation and through UI-S1's file; a swipe has a place only in the latter."""
    released = [item.episode for item in everything(release(folder, splits="all"))]
    by_goal = {episode.steps[0].instruction: episode for episode in released}
    read = []
    for name, write_as in (("kit", write_folder), ("ui_s1", write_test_file)):
        (tmp_path / name).mkdir()
        write_as(tmp_path / name, list(phone_episodes.values()))
        read.append(list(load_benchmark("androidcontrol", tmp_path / name)))
    kit, ui_s1 = read
    assert len(kit) == len(ui_s1) == 3
    for episode in kit + ui_s1:
        steps = by_goal[episode.steps[0].instruction].steps
        assert len(steps) - len(episode) == (episode in ui_s1)
        for step, other in zip(episode.steps, steps, strict=False):
            assert step.low_level_instruction == other.low_level_instruction
            assert step.screenshot_size == other.screenshot_size
            action, reference = step.action, other.action
            if isinstance(action, Click | LongPress) and isinstance(reference, Click | LongPress):
                assert action.type == reference.type
                assert tuple(action.point) == pytest.approx(tuple(reference.point), abs=1e-9)
            elif isinstance(action, Scroll) and isinstance(reference, Scroll):
                assert action.direction == reference.direction
                assert episode in ui_s1 or action.point == reference.point
            elif not isinstance(reference, Wait):  # UI-S1 gives a wait a length
                assert action == reference
            if episode in kit:
                assert step.elements.array == pytest.approx(other.elements.array, abs=1e-9)
            elif step.elements:
                assert set(map(tuple, step.elements.array.round(6))) <= set(map(tuple, other.elements.array.round(6))) | {
                    tuple(box) for box in step.elements.array[-1:].round(6)
                }  # the list that holds the target is not an element


def test_low_is_the_same_data_with_the_steps_instruction(folder: Path) -> None:
    high = [item.episode for item in everything(release(folder))]
    low = [item.episode for item in everything(release(folder, "androidcontrol-low"))]
    other = {"benchmark": "androidcontrol-low", "setting": "low"}
    assert low == [Episode(steps=tuple(step.model_copy(update=other) for step in item.steps)) for item in high]


def test_the_test_and_validation_splits_are_taken_unless_set_otherwise(folder: Path) -> None:
    def names(**options: Any) -> list[str]:
        return [item.episode.key.episode_id for item in everything(release(folder, **options))]

    assert names() == ["5", str(LARGE)]
    assert names(splits="train") == ["9"]
    assert names(splits="test, train") == names(splits=["test", "train"]) == ["5", "9"]
    assert release(folder).episodes_expected == 2
    with pytest.raises(UsageError, match=r"no split 'trian' \(did you mean 'train'\?\); expected all, or one or more of train"):
        release(folder, splits="trian")
    with pytest.raises(UsageError, match=r"splits\.json lists no split 5; expected all"):
        release(folder, splits=5)
    with pytest.raises(UsageError, match=r"no option 'split' \(did you mean 'splits'\?\)"):
        release(folder, split="train")
    with pytest.raises(UsageError, match="finish is 'no'"):
        release(folder, finish="no")


def test_sub_splits_overlap_and_are_kept(folder: Path) -> None:
    by_name = {item.episode.key.episode_id: item.episode.steps for item in everything(release(folder, splits="all"))}
    assert all(step.extras["subsplits"] == ["app_unseen", "task_unseen"] for step in by_name["5"])
    assert all(step.groups == {"domain": "OOD"} for step in by_name["5"])
    assert all("subsplits" not in step.extras and not step.groups for step in by_name["9"])


def test_what_is_done_is_not_read_again(tmp_path: Path) -> None:
    """A done episode's trees and actions are not even decoded: here they could not be."""
    broken = record(b"{", episode_id=8, accessibility_trees=[b"\xff", b"\xff"])
    source = release(write(tmp_path, record(WAIT), broken, record(WAIT, episode_id=9)))
    done = {EpisodeKey("androidcontrol", "", "8"), EpisodeKey("androidcontrol", "", "9")}
    (part,) = source.parts()
    assert [item.episode.key.episode_id for item in source.episodes(part, done.__contains__)] == ["7"]
    assert everything(release(write(tmp_path, broken, splits={"train": [8], "test": [], "validation": []}))) == []


def test_missing_shards_are_reported_and_leave_the_number_of_episodes_open(folder: Path, tmp_path: Path) -> None:
    for name in ("splits.json", shard_name(1, 2)):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / f"{shard_name(0, 2)}.part").write_bytes(b"downloading")
    source = release(tmp_path)
    with pytest.raises(DataError, match=f"lacks 1 of the release's shards, the first is {shard_name(0, 2)!r}"):
        source.parts()
    source.skip_damaged = True
    assert source.parts() == (shard_name(1, 2),)
    assert source.episodes_expected is None
    assert len(source.skipped) == 1
    assert [item.episode.key.episode_id for item in everything(source)] == [str(LARGE)]


# --- labels ---

TYPED = {"x": 1, "y": 2, "text": "hi"}


@every_row(
    ("action", "label"),
    [
        ({"action_type": "click", "x": 25, "y": 150}, Click(point=Point(250, 750))),
        ({"action_type": "click", "x": 100, "y": 0}, Click(point=Point(1000, 0))),
        ({"action_type": "long_press", "x": 50, "y": 200}, LongPress(point=Point(500, 1000))),
        ({"action_type": "scroll", "direction": "up"}, Scroll(point=Point(500, 500), direction="down")),
        ({"action_type": "scroll", "direction": "right"}, Scroll(point=Point(500, 500), direction="left")),
        ({"action_type": "input_text", "text": '多行\n😀 "q"'}, Type(text='多行\n😀 "q"')),
        ({"action_type": "type", **TYPED}, Unsupported(name="type", arguments=TYPED)),
    ],
)
def test_what_the_page_of_labels_does_not_show(tmp_path: Path, action: dict[str, Any], label: Action) -> None:
    episode = only(tmp_path, record(action))
    assert [step.action for step in episode.steps] == [label, Stop()]
    assert episode.steps[0].extras.get("direction_label") == action.get("direction")
    assert episode.steps[0].instruction == "Buy milk 牛奶 🥛"


@every_row(
    ("action", "problem"),
    [
        ({"action_type": "click", "x": 5}, "field y: is missing"),
        ({"action_type": "click", "x": 101, "y": 0}, "field x, y: (101, 0) lies outside the 100 x 200 frame"),
        ({"action_type": "click", "x": -1, "y": 0}, "field x, y: (-1, 0) lies outside"),
        ({"action_type": "long_press", "x": "5", "y": 0}, "field x: expected a number, got '5'"),
        ({"action_type": "scroll"}, "field direction: is missing"),
        ({"action_type": "scroll", "direction": "south"}, "field direction: expected up, down, left or right, got 'south'"),
        ({"action_type": "input_text", "text": None}, "field text: expected a string"),
        ({"action_type": "open_app"}, "field app_name: is missing"),
        ({"action_type": "dance"}, "field action_type: expected click, "),
        ({}, "field action_type: is missing"),
        (b"{", ": is not JSON"),
        (b"[]", ": expected an object"),
    ],
)
def test_a_damaged_action_is_reported_and_can_be_passed_over(tmp_path: Path, action: object, problem: str) -> None:
    source = release(write(tmp_path, record(WAIT, action), record(WAIT, episode_id=8)))
    with pytest.raises(DataError, match=rf"{shard_name(0, 1)}, record 0, action 1.*{re.escape(problem)}") as caught:
        everything(source)
    source.skip_damaged = True
    assert [item.episode.key.episode_id for item in everything(source)] == ["8"]
    assert [str(error) for error in source.skipped] == [str(caught.value)]


@every_row(
    ("changes", "problem"),
    [
        ({"episode_id": []}, "field episode_id: expected one whole number, got 0"),
        ({"episode_id": [b"7"]}, "field episode_id: expected whole numbers"),
        ({"goal": []}, "field goal: expected one string, got 0"),
        ({"goal": [5]}, "field goal: expected byte strings"),
        ({"goal": [b"\xff"]}, "field goal: is not text in UTF-8"),
        ({"actions": []}, "field step_instructions: expected 0 for 0 actions, got 1"),
        ({"step_instructions": []}, "field step_instructions: expected 1 for 1 actions, got 0"),
        ({"screenshots": [png()]}, "field screenshots: expected 2 for 1 actions, got 1"),
        ({"screenshots": [png()] * 3}, "field screenshots: expected 2 for 1 actions, got 3"),
        ({"accessibility_trees": []}, "field accessibility_trees: expected 2 for 1 actions, got 0"),
        ({"screenshot_widths": [100]}, "field screenshot_widths: expected 2 for 1 actions, got 1"),
        ({"screenshot_heights": [200, 200, 200]}, "field screenshot_heights: expected 2 for 1 actions, got 3"),
        ({"screenshot_widths": [100, 0]}, "field screenshot_widths: screenshot 1 is stated as 0 x 200 pixels"),
        ({"screenshots": [png(), b"GIF89a"]}, "field screenshots: screenshot 1 is not a PNG image"),
        ({"screenshots": [png((200, 100)), png()]}, "field screenshots: screenshot 0 is 200x100 pixels, but its"),
        ({"accessibility_trees": [b"", b"\x0a\x05\x01"]}, "field accessibility_trees, screenshot 1: is not an AndroidAcc"),
        (b"\x0a\xff", "is not a tf.train.Example"),
    ],
)
def test_a_damaged_record_is_reported_by_shard_record_and_field(
    tmp_path: Path, changes: dict[str, Any] | bytes, problem: str
) -> None:
    write(tmp_path, record(WAIT, episode_id=8), record(WAIT))
    damaged = changes if isinstance(changes, bytes) else example({**record(WAIT), **changes})
    write_records(tmp_path / shard_name(0, 1), [example(record(WAIT, episode_id=8)), damaged])
    with pytest.raises(DataError, match=rf"{shard_name(0, 1)}, record 1[,:] {re.escape(problem)}"):
        everything(release(tmp_path))


def test_features_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    floats = blob(1, blob(1, "scores") + blob(2, blob(2, blob(1, struct.pack("<2f", 1.0, 2.0)))))
    nothing = blob(1, blob(1, "nothing") + blob(2, b""))
    (known,) = everything(release(write(tmp_path, record(WAIT))))
    features_of_it = _features_of(example(record(WAIT)))
    write_records(tmp_path / shard_name(0, 1), [blob(1, floats + nothing + features_of_it) + blob(9, "unknown")])
    (more,) = everything(release(tmp_path))
    assert more.episode == known.episode


def _features_of(message: bytes) -> bytes:
    """What is in the first field of a message: tag, length, content."""
    end = 1
    while message[end] & 0x80:
        end += 1
    return message[end + 1 :]


def test_numbers_may_be_written_one_by_one(tmp_path: Path) -> None:
    """``Int64List`` is packed in proto3 and was not in proto2; both are read."""
    packed_ones = example(record(WAIT))
    entry = blob(1, blob(1, "screenshot_widths") + blob(2, blob(3, packed(1, [100, 100]))))
    assert packed_ones.count(entry) == 1
    loose = blob(1, blob(1, "screenshot_widths") + blob(2, blob(3, number(1, 100) + number(1, 100))))
    write(tmp_path, record(WAIT))
    write_records(tmp_path / shard_name(0, 1), [blob(1, _features_of(packed_ones).replace(entry, loose))])
    (found,) = everything(release(tmp_path))
    assert found.episode.steps[0].screenshot_size == SCREEN


def test_one_episode_is_in_memory_at_a_time(tmp_path: Path) -> None:
    """A few large episodes cost no more than one does: a record, the message made of it, and one image being looked at."""
    image = png() + bytes(4_000_000)
    records = [record(WAIT, episode_id=name, screenshots=[image, image]) for name in range(6)]
    source = release(write(tmp_path, *records))
    tracemalloc.start()
    try:
        assert sum(1 for part in source.parts() for _ in source.episodes(part, lambda key: False)) == 6
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * len(example(records[0]))


# --- finish steps, and episodes without actions ---


def test_finish_steps_can_be_left_out(tmp_path: Path) -> None:
    root = write(tmp_path, record(WAIT, WAIT), record(episode_id=8))
    whole, empty = everything(release(root))
    assert [step.action for step in whole.episode.steps] == [Wait(), Wait(), Stop()]
    assert [step.extras for step in whole.episode.steps] == [{}, {}, {"synthetic": True}]
    assert [step.screenshot for step in whole.episode.steps] == [f"screenshots/7/{index}.png" for index in range(3)]
    assert [step.action for step in empty.episode.steps] == [Stop()]
    (bare,) = everything(release(root, finish=False))
    assert [(step.action, step.episode_length) for step in bare.episode.steps] == [(Wait(), 2), (Wait(), 2)]
    assert list(bare.screenshots) == ["screenshots/7/0.png", "screenshots/7/1.png"]


# --- accessibility trees ---


def boxes(root: Path, *windows: bytes) -> list[tuple[float, ...]]:
    return [tuple(box) for box in only(root, record(accessibility_trees=[b"".join(windows)])).steps[0].elements]


def test_every_rectangle_counts_in_the_order_of_the_tree(tmp_path: Path) -> None:
    first = window(rectangle(2, 10, 20, 30, 40), b"", rectangle(2, 0, 0, 0, 0), own=rectangle(1, 0, 0, 100, 20))
    second = window(number(1, 5) + blob(2, b""), rectangle(2, -50, 100, 150, 300), rectangle(2, 10, 20, 30, 40))
    assert boxes(tmp_path, first, second) == [
        (0, 0, 1000, 100),
        (100, 100, 300, 200),
        (0, 0, 0, 0),
        (0, 0, 0, 0),  # a rectangle that is there but says nothing
        (-500, 500, 1500, 1500),
        (100, 100, 300, 200),
    ]
    assert boxes(tmp_path, b"") == []


def test_a_published_node_is_read(tmp_path: Path) -> None:
    """The root of the status bar in the first screen of episode 0 (AndroidControl, CC BY 4.0), with all its other fields."""
    node = base64.b64decode(
        "CrEBCAASCggAEAAYuAggiAEaGmFuZHJvaWQud2lkZ2V0LkZyYW1lTGF5b3V0IgAqADIUY29tLmFuZHJvaWQuc3lzdGVtdWk6AED///////////8BSP//"
        "/////////wFSAFgFYABoAHAAeACAAQGIAQCQAQCYAQCgAQCoAQCwAQC4AQHCAQQIBBIAwgEECAgSAMIBBAhAEgDCAQcItoCICBIAyAEByAECyAED2AEA"
        "8AEA+gEA"
    )
    own = base64.b64decode("CgoIABAAGLgIIIgBEAAYBSABKgAwAzgAQABIAFAA")
    size = (1080, 2400)
    tree = blob(1, own + blob(11, node))
    sized: dict[str, Any] = {"screenshots": [png(size)], "screenshot_widths": [1080], "screenshot_heights": [2400]}
    button = blob(1, blob(3, "Button") + blob(4, "send it") + blob(7, "Senden") + number(14, 1) + number(16, 1) + number(27, 2))
    trees = [tree + window(button[2:])]
    (step,) = only(tmp_path, record(accessibility_trees=trees, **sized), trees=True).steps
    assert [tuple(box) for box in step.elements] == [(0, 0, 1000, 136 * 1000 / 2400)] * 2
    states = {"states": ["enabled", "visible"]}
    assert step.extras["tree"] == [
        {"class": "android.widget.FrameLayout", **states, "box": [0.0, 0.0, 1000.0, 56.67]},
        {"class": "Button", "description": "send it", "text": "Senden", "states": ["clickable", "enabled"], "depth": 2},
    ]
    assert "tree" not in only(tmp_path, record(accessibility_trees=trees, **sized)).steps[0].extras


# --- framing ---

EVENT_FILE = bytes.fromhex("1800000000000000a37f4b22")
"""How every TensorBoard event file begins: a first record of 24 bytes."""


def test_the_framing_is_tensorflows() -> None:
    assert framed(bytes(24))[:12] == EVENT_FILE
    assert framed(b"123456789")[-4:] == struct.pack("<I", ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32)
    assert framed(bytes(32))[-4:] == struct.pack("<I", ((0x8A9136AA >> 15 | 0x8A9136AA << 17) + 0xA282EAD8) % 2**32)  # RFC 3720


def test_a_length_that_looks_like_gzip_is_not_taken_for_it(tmp_path: Path) -> None:
    """A plain record of 0x...8b1f bytes begins as packed files do."""
    filling = 0x8B1F - len(example(record(WAIT, note=[b""])))
    for length in range(filling - 16, filling + 1):
        payload = example(record(WAIT, note=[bytes(length)]))
        if len(payload) == 0x8B1F:
            break
    root = write(tmp_path, record(WAIT))
    write_records(root / shard_name(0, 1), [payload], compressed=False)
    assert (root / shard_name(0, 1)).read_bytes()[:2] == b"\x1f\x8b"
    assert len(everything(release(root))) == 1


def read_all(root: Path) -> tuple[list[str], list[str]]:
    """Ids that were read, and what was passed over; without passing over, the first damage is an error."""
    source = release(root)
    source.skip_damaged = True
    names = [item.episode.key.episode_id for item in everything(source)]
    if source.skipped:
        with pytest.raises(DataError, match=re.escape(str(source.skipped[0]))):
            everything(release(root))
    return names, [str(error) for error in source.skipped]


def three(tmp_path: Path, compressed: bool) -> tuple[Path, list[bytes]]:
    records = [record(WAIT, episode_id=name) for name in (1, 2, 3)]
    return write(tmp_path, *records, compressed=compressed) / shard_name(0, 1), [framed(example(item)) for item in records]


def changed(frame: bytes, place: int, bit: int) -> bytes:
    return frame[:place] + bytes([frame[place] ^ bit]) + frame[place + 1 :]


ENDS = "is damaged: the file ends within it, so it is only a part"
OTHER_DATA = "is damaged: its data do not agree with their checksum"
OTHER_LENGTH = "is damaged: its length does not agree with its checksum"
TOO_LONG = f"is damaged: its length is {2**60} bytes, more than a record can have"
SIZE = struct.pack("<Q", 2**60)


@every_row(
    ("damage", "names", "error"),
    [
        (lambda one, two, three: b"", [], ": is empty"),
        (lambda one, two, three: one + changed(two, len(two) // 2, 1) + three, ["1", "3"], OTHER_DATA),
        *[
            (lambda one, two, three, place=place: one + changed(two, place, 0x40) + three, ["1"], OTHER_LENGTH)
            for place in range(12)
        ],
        (lambda one, two, three: one + SIZE + framed(SIZE)[-4:], ["1"], TOO_LONG),
        *[(lambda one, two, three, cut=cut: one + two[:cut], ["1"], ENDS) for cut in (1, 8, 11, 12, 500, -5, -4, -1)],
    ],
)
def test_a_damaged_shard_is_read_as_far_as_it_goes(
    tmp_path: Path, damage: Callable[..., bytes], names: list[str], error: str
) -> None:
    file, frames = three(tmp_path, compressed=False)
    file.write_bytes(damage(*frames))
    where = "" if error.startswith(":") else ", record 1: "
    assert read_all(tmp_path) == (names, [f"{file}{where}{error}"])


def test_a_packed_shard_that_ends_early_is_reported_wherever_it_was_cut(tmp_path: Path) -> None:
    file, _ = three(tmp_path, compressed=True)
    whole = file.read_bytes()
    for cut in {1, 5, 12, *range(20, len(whole), len(whole) // 7), len(whole) - 8, len(whole) - 1}:
        file.write_bytes(whole[:cut])
        names, errors = read_all(tmp_path)
        assert names == ["1", "2", "3"][: len(names)]
        assert len(errors) == 1, cut
        assert f"{file}, record {len(names)}: is damaged: " in errors[0]


def test_a_packed_shard_with_other_bytes_within_is_reported(tmp_path: Path) -> None:
    file, frames = three(tmp_path, compressed=True)
    whole = bytearray(file.read_bytes())
    for place in range(20, len(whole) - 8, len(whole) // 11):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        names, errors = read_all(tmp_path)
        assert errors, place
        assert set(names) <= {"1", "2", "3"}
    file.write_bytes(gzip.compress(b"".join(frames))[:-8] + bytes(8))  # a wrong sum of the whole
    names, errors = read_all(tmp_path)
    assert names == ["1", "2", "3"]
    assert errors == [f"{file}, record 3: is damaged: it cannot be unpacked as gzip"]


# --- the lists of splits, and where the release is looked for ---


@every_row(
    ("splits", "problem"),
    [
        ({"train": [], "validation": [], "test": [8]}, r"record 0, field episode_id: episode 7 is in no list of splits\.json"),
        ({"train": [7], "validation": [], "test": [7]}, r"splits\.json: 1 episodes are listed more than once"),
        ({"train": 5, "validation": [], "test": []}, r"splits\.json, field train: expected a list of episode numbers, got 5"),
        ({"train": [], "validation": ["7"], "test": []}, r"splits\.json, field validation: expected a list of episode numbers"),
        ([], r"splits\.json: expected an object"),
    ],
)
def test_lists_that_do_not_fit_are_reported(tmp_path: Path, splits: object, problem: str) -> None:
    write(tmp_path, record(WAIT))
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    with pytest.raises(DataError, match=problem):
        everything(release(tmp_path))
    (tmp_path / "splits.json").unlink()
    with pytest.raises(UsageError, match=r"lacks 'splits\.json'"):
        release(tmp_path)


def test_the_loader_sends_the_release_to_prepare(folder: Path) -> None:
    told = r"as its authors release it.*`guieval data prepare androidcontrol-low --source .* --out DIR`"
    with pytest.raises(UsageError, match=told):
        load_benchmark("androidcontrol-low", folder)


def test_other_layouts_are_released_as_they_are_read(tmp_path: Path) -> None:
    write_folder(tmp_path, fitting_episodes(0, 1))
    (found,) = everything(release(tmp_path))
    (read,) = load_benchmark("androidcontrol", tmp_path)
    assert found.episode == read
    images: Sequence[bytes] = [found.screenshots[step.screenshot]() for step in read.steps]
    assert all(image.startswith(b"\x89PNG") for image in images)
    with pytest.raises(UsageError, match="no option 'splits'"):
        release(tmp_path, splits="all")


# --- prepared ---


def test_a_prepared_folder_is_the_release(folder: Path, tmp_path: Path) -> None:
    prepared = prepare(benchmarks()["androidcontrol"], folder, tmp_path / "out", options={"splits": "all"})
    assert (prepared.preparation.episodes, prepared.preparation.complete) == (3, True)
    benchmark = load_benchmark("androidcontrol", tmp_path / "out")
    released = everything(release(folder, splits="all"))
    assert list(benchmark) == [item.episode for item in released]
    low = load_benchmark("androidcontrol-low", tmp_path / "out")
    assert list(low) == [item.episode for item in everything(release(folder, "androidcontrol-low", splits="all"))]
    for item in released:
        for path, image in item.screenshots.items():
            assert (tmp_path / "out" / path).read_bytes() == image()
    assert len(list((tmp_path / "out" / "screenshots").rglob("*.png"))) == sum(len(item.episode) for item in released)


def test_preparing_goes_on_after_a_truncated_shard(folder: Path, tmp_path: Path) -> None:
    """An unfinished download is reported; once it is whole, the same command does the rest and nothing twice."""
    source = Path(shutil.copytree(folder, tmp_path / "source"))
    second = source / shard_name(1, 2)
    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    kind, out = benchmarks()["androidcontrol"], tmp_path / "out"
    with pytest.raises(DataError, match=f"{shard_name(1, 2)}, record 0: is damaged: the packed file ends within it"):
        prepare(kind, source, out)
    second.write_bytes(whole)
    assert prepare(kind, source, out).added == 1
    assert [ref.key.episode_id for ref in load_benchmark("androidcontrol", out).index()] == ["5", str(LARGE)]


@every_row(("finish", "name"), [(True, "test split with finish steps"), (False, "test split")])
def test_a_layout_is_compared_with_its_own_published_count(tmp_path: Path, finish: bool, name: str) -> None:
    """The official test split's counts, met by as many one-line actions as it has of each type."""
    numbers = {"CLICK": 5074, "SCROLL": 1211, "TYPE": 632, "OPEN": 608, "WAIT": 567, "PRESS": 343, "LONG_PRESS": 9}
    counts = Counts()
    actions = [action for action, number in numbers.items() for _ in range(number)]
    for index in range(1543):
        last = len(actions) if index == 1542 else 5 * index + 5
        steps = actions[5 * index : last] + ["STOP"] * finish
        counts.add("test", "", [({}, action) for action in steps])
    found = {each.published.name: each for each in compare(benchmarks()["androidcontrol"].published, counts)}
    assert found[name].verdict == "agrees"
    assert [each.published.name for each in found.values() if each.verdict == "agrees"] == [name]
