"""AndroidControl's release: shards of TFRecords, splits.json and test_subsplits.json.

After the README of github.com/google-research/google-research/tree/master/android_control and the schema of the trees in
github.com/google-deepmind/android_env, android_env/proto/a11y.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from guieval.actions import OPPOSITE, Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.playground.phone import encode
from guieval.playground.phone.episodes import PhoneEpisode
from guieval.playground.phone.layout import Element, PixelBox, Screen
from guieval.playground.phone.state import Size

from .played import expressible, write_json
from .tfrecord import Feature, blob, example, number, packed, write_records


def fitting_episodes(seed: int, wanted: int) -> list[PhoneEpisode]:
    """The first ``wanted`` episodes of ``seed``, counted from number 0, that AndroidControl has words for.

    Passed over are episodes with a press of ENTER, which the data set does not know, and those that cannot be done.
    """
    outside = (Press(button="ENTER"), Stop(status="impossible"))
    return list(islice(expressible(seed, lambda step: step.action not in outside), wanted))


def write_release(
    folder: Path,
    episodes: Mapping[int, PhoneEpisode],
    *,
    splits: Mapping[str, Sequence[int]] | None = None,
    subsplits: Mapping[str, Sequence[int]] | None = None,
    shards: int = 2,
    compressed: bool = True,
) -> None:
    """Write ``episodes`` (by their ids) into ``shards`` files, and the two lists of splits.

    Without ``splits`` every episode is of the test split, without ``subsplits`` each is in the sub-split "IDD".
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids = list(episodes)
    for shard in range(shards):
        records = (example(features(name, episodes[name])) for name in ids[shard::shards])
        write_records(folder / shard_name(shard, shards), records, compressed=compressed)
    listed = splits if splits is not None else {"train": [], "validation": [], "test": ids}
    write_json(folder / "splits.json", {name: list(names) for name, names in listed.items()})
    within = subsplits if subsplits is not None else {"IDD": ids}
    write_json(folder / "test_subsplits.json", {name: list(names) for name, names in within.items()})


def shard_name(shard: int, shards: int) -> str:
    return f"android_control-{shard:05d}-of-{shards:05d}"


def features(episode_id: int, episode: PhoneEpisode) -> dict[str, Feature]:
    """One episode as the features of its record. The closing STOP is not an action there, but its screenshot is in it."""
    screens = [step.phone.screen for step in episode.steps]
    acted = episode.steps[:-1]
    return {
        "episode_id": [episode_id],
        "goal": [episode.task.instruction.encode()],
        "screenshots": [encode(step.phone.render()) for step in episode.steps],
        "accessibility_trees": [forest(screen) for screen in screens],
        "screenshot_widths": [screen.size[0] for screen in screens],
        "screenshot_heights": [screen.size[1] for screen in screens],
        "actions": [json.dumps(action(step.action, episode.size), separators=(",", ":")).encode() for step in acted],
        "step_instructions": [step.instruction.encode() for step in acted],
    }


def action(label: Action, size: Size) -> dict[str, object]:
    """An action's dictionary. Points are whole pixels; a scroll has no place, and its direction is the content's."""
    match label:
        case Click() | LongPress():
            x, y = pixel(label.point, size)
            return {"action_type": "click" if isinstance(label, Click) else "long_press", "x": x, "y": y}
        case Scroll():
            return {"action_type": "scroll", "direction": OPPOSITE[label.direction]}
        case Type():
            return {"action_type": "input_text", "text": label.text}
        case Open():
            return {"action_type": "open_app", "app_name": label.app}
        case Press(button="BACK" | "HOME" as button):
            return {"action_type": f"navigate_{button.lower()}"}
        case Wait():
            return {"action_type": "wait"}
        case _:
            raise ValueError(f"AndroidControl has no word for {label!r}")


def pixel(point: Point, size: Size) -> tuple[int, int]:
    width, height = size
    return min(int(point.x * width / 1000), width - 1), min(int(point.y * height / 1000), height - 1)


def bounds(screen: Screen) -> list[PixelBox]:
    """Every rectangle of :func:`forest`, in its order: the status bar's window, the app's, its root, then its elements."""
    width, height = screen.size
    windows = [PixelBox(0, 0, width, height // 30), PixelBox(0, 0, width, height)]
    return [*windows, PixelBox(0, 0, width, height), *(element.box for element in _drawn(screen))]


def forest(screen: Screen) -> bytes:
    """A serialised AndroidAccessibilityForest of two windows: a status bar without nodes, and the app with all its elements."""
    width, height = screen.size
    elements = _drawn(screen)
    root = number(1, 0) + _rectangle(2, (0, 0, width, height)) + blob(3, "android.widget.FrameLayout")
    root += packed(25, range(1, len(elements) + 1))
    nodes = [root, *(_node(index, element) for index, element in enumerate(elements, 1))]
    status_bar = _rectangle(1, (0, 0, width, height // 30)) + number(3, 12) + number(4, 1) + number(6, 3)
    app = _rectangle(1, (0, 0, width, height)) + number(3, 7) + number(4, 0) + blob(5, "Phone") + number(6, 1) + number(8, True)
    app += blob(11, b"".join(blob(1, node) for node in nodes))
    return blob(1, status_bar) + blob(1, app)


def _drawn(screen: Screen) -> list[Element]:
    return [element for element in screen.elements if element.box.area]


def _node(unique_id: int, element: Element) -> bytes:
    node = number(1, unique_id) + _rectangle(2, element.box) + blob(3, f"android.widget.{element.role.title()}")
    node += blob(6, "org.example.phone") + blob(7, element.label) + number(8, -1) + number(9, -1)
    node += number(14, element.interactive) + number(16, True) + number(23, True)
    if element.interactive:
        node += blob(24, number(1, 16) + blob(2, "activate"))
    return node + number(27, 1)


def _rectangle(field: int, box: tuple[int, int, int, int]) -> bytes:
    return blob(field, b"".join(number(index, edge) for index, edge in enumerate(box, 1)))
