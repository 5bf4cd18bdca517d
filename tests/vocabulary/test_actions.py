"""The unified actions: exact JSON both ways, what is refused, and the geometry of boxes and swipes."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from guieval import actions as act
from tests.rows import every_row

coordinates = st.floats(0.0, 1000.0)
points = st.builds(act.Point, coordinates, coordinates)
durations = st.floats(0.0, 1e9)
numbers = st.floats(-1e6, 1e6)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ACTIONS: dict[str, st.SearchStrategy[act.Action]] = {
    "CLICK": st.builds(act.Click, point=points),
    "LONG_PRESS": st.builds(act.LongPress, point=points, duration=durations),
    "SCROLL": st.builds(act.Scroll, point=points, direction=st.sampled_from(act.DIRECTIONS)),
    "TYPE": st.builds(act.Type, text=st.text()),
    "OPEN": st.builds(act.Open, app=st.text()),
    "PRESS": st.builds(act.Press, button=st.sampled_from(act.BUTTONS)),
    "WAIT": st.builds(act.Wait, duration=durations),
    "STOP": st.builds(act.Stop, status=st.sampled_from(("finish", "impossible"))),
    "UNSUPPORTED": st.builds(act.Unsupported, name=st.text(), arguments=st.dictionaries(st.text(), json_values, max_size=3)),
}


@every_row("name", [*act.ACTION_TYPES, "UNSUPPORTED"])
@given(data=st.data())
def test_json_and_pickle_round_trips_are_exact(name: str, data: st.DataObject) -> None:
    action = data.draw(ACTIONS[name])
    text = act.action_to_json(action)
    assert json.loads(text)["type"] == name
    assert act.action_from_json(text) == action
    assert act.action_from_json(json.loads(text)) == action
    assert act.action_to_json(act.action_from_json(text)) == text
    assert pickle.loads(pickle.dumps(action)) == action


@every_row(
    ("text", "field"),
    [
        ('{"type": "CLICK", "point": [1000.0001, 5]}', "point"),
        ('{"type": "CLICK", "point": [5, -1e-9]}', "point"),
        ('{"type": "CLICK", "point": [5, NaN]}', "point"),
        ('{"type": "CLICK", "point": [5]}', "point"),
        ('{"type": "CLICK"}', "point"),
        ('{"type": "SCROLL", "point": [5, 5], "direction": "north"}', "direction"),
        ('{"type": "PRESS", "button": "back"}', "button"),
        ('{"type": "WAIT", "duration": -1}', "duration"),
        ('{"type": "TYPE", "text": 5}', "text"),
        ('{"type": "STOP", "status": "finish", "why": ""}', "why"),
        *((text, None) for text in ('{"type": "TAP", "point": [1, 2]}', '{"point": [1, 2]}', "[]", "", "{")),
    ],
)
def test_what_is_no_action_is_refused_naming_the_field(text: str, field: str | None) -> None:
    with pytest.raises(ValidationError) as caught:
        act.action_from_json(text)
    assert field is None or field in [str(part) for part in caught.value.errors()[0]["loc"]]


def test_actions_and_boxes_cannot_be_changed() -> None:
    action: Any = act.Click(point=act.Point(1, 2))
    with pytest.raises(ValidationError):
        action.point = act.Point(3, 4)
    with pytest.raises(ValueError, match="read-only"):
        act.Boxes([[1, 2, 3, 4]]).array[0, 0] = 5


def test_space_knows_types_buttons_and_statuses() -> None:
    space = act.ActionSpace(frozenset({"CLICK", "PRESS", "STOP"}), frozenset({"BACK"}), frozenset({"finish"}))
    assert all(action in space for action in (act.Click(point=act.Point(0, 0)), act.Press(button="BACK"), act.Stop()))
    others = (act.Press(button="HOME"), act.Stop(status="impossible"), act.Wait(), act.Unsupported(name="drag"))
    assert not any(action in space for action in others)


@given(
    st.sets(st.sampled_from(act.ACTION_TYPES)),
    st.sets(st.sampled_from(act.BUTTONS)),
    st.sets(st.sampled_from(("finish", "impossible"))),
)
def test_examples_are_exactly_of_the_space(types: set[Any], buttons: set[Any], statuses: set[Any]) -> None:
    space = act.ActionSpace(frozenset(types), frozenset(buttons), frozenset(statuses))
    assert all(example in space for example in space.examples)
    without = {"PRESS"} - ({"PRESS"} if buttons else set()) | {"STOP"} - ({"STOP"} if statuses else set())
    assert {example.type for example in space.examples} == types - without


rectangles = st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=5)


@given(rectangles)
def test_boxes_keep_their_numbers_through_json_and_pickle(rows: list[tuple[float, float, float, float]]) -> None:
    boxes = act.Boxes(rows)
    adapter = TypeAdapter(act.Boxes)
    assert [tuple(box) for box in boxes] == rows
    assert len(boxes) == len(rows)
    assert adapter.validate_json(adapter.dump_json(boxes)) == boxes
    assert pickle.loads(pickle.dumps(boxes)) == boxes
    assert hash(act.Boxes(rows)) == hash(boxes)


def test_boxes_of_one_row_differ_from_others_and_give_boxes() -> None:
    boxes = act.Boxes([[0, 10, 20, 40]])
    assert boxes[0] == act.Box(0, 10, 20, 40)
    assert boxes[0].centre == act.Point(10, 25) and (boxes[:2], boxes[1:]) == (boxes, act.Boxes())
    assert boxes != act.Boxes([[0, 10, 20, 41]])
    assert boxes != act.Boxes()


@every_row("rows", [[[1, 2, 3]], [1, 2, 3, 4], [[1, 2, 3, 4], [1, 2]], [[1, 2, 3, math.nan]], [[1, 2, 3, math.inf]]])
def test_boxes_refuse_other_shapes_and_numbers_that_are_none(rows: list[Any]) -> None:
    with pytest.raises(ValueError):
        act.Boxes(rows)


@every_row("value", ['"abc"', "5", '[["a", 1, 2, 3]]', "[[1, 2, 3]]"])
def test_boxes_in_json_are_checked(value: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(act.Boxes).validate_json(value)


@every_row(
    ("end", "direction"),
    [
        *(((6, 5), "right"), ((4, 5), "left"), ((5, 6), "down"), ((5, 4), "up"), ((9, 8), "right"), ((8, 9), "down")),
        *(((6, 6), "down"), ((4, 6), "down"), ((6, 4), "up"), ((5, 5), None), ((math.nan, 6), None)),
    ],
)
def test_the_larger_movement_decides_and_a_tie_is_vertical(end: tuple[float, float], direction: str | None) -> None:
    assert act.path_direction((5, 5), end) == direction


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_walking_back_is_the_opposite_direction(start: tuple[float, float], end: tuple[float, float]) -> None:
    there, back = act.path_direction(start, end), act.path_direction(end, start)
    assert (there is None) == (start == end)
    assert back == (act.OPPOSITE[there] if there else None)


@given(points, st.sampled_from(act.DIRECTIONS), st.floats(20.0, 500.0))
def test_a_drawn_scroll_stays_on_screen_and_runs_its_way(point: act.Point, direction: Any, length: float) -> None:
    start, end = act.scroll_path(act.Scroll(point=point, direction=direction), length)
    assert all(0.0 <= value <= 1000.0 for value in (*start, *end))
    assert act.path_direction(start, end) == direction
    assert length / 10 * (1 - 1e-9) <= math.dist(start, end) <= length * (1 + 1e-9)


def test_a_scroll_with_room_starts_at_its_point() -> None:
    scroll = act.Scroll(point=act.Point(100, 400), direction="up")
    assert act.scroll_path(scroll) == (act.Point(100, 400), act.Point(100, 100))
    assert act.scroll_path(act.Scroll(point=act.Point(100, 250), direction="up")) == (act.Point(100, 250), act.Point(100, 0))
    assert act.scroll_path(act.Scroll(point=act.Point(100, 10), direction="up")) == (act.Point(100, 500), act.Point(100, 200))
    stated = act.Scroll(point=act.Point(100, 900), direction="up", distance=650)
    assert act.scroll_path(stated, 100) == (act.Point(100, 900), act.Point(100, 250))
