"""Hand-computed cases of every rule, borders and known oddities included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.evaluation import ClickRule, OpenRule, ScrollRule, StepRules, TextRule
from guieval.steps import StepTaskModel

CLIPPED = ClickRule(enlarge=1.2, clip=True, boxes="any")
CENTRED = ClickRule(enlarge=1.2, boxes="any")
FAR = Point(900, 900)


def hit(rule: ClickRule, boxes: list[list[float]], reference: Point, x: float, y: float) -> bool:
    return rule.judge(Boxes(boxes), reference, Point(x, y)).exact_match


@pytest.mark.parametrize(
    ("x", "y", "inside"),
    [
        (100, 200, True),
        (300, 400, True),
        (100, 400, True),
        (200, 300, True),
        (99.9, 300, False),
        (300.1, 300, False),
        (200, 199.9, False),
        (200, 400.1, False),
    ],
)
def test_a_box_includes_its_border(x: float, y: float, inside: bool) -> None:
    assert hit(ClickRule(), [[100, 200, 300, 400]], FAR, x, y) is inside


def test_without_box_or_fallback_nothing_is_right() -> None:
    judged = ClickRule().judge(Boxes(), Point(500, 500), Point(500, 500))
    assert (judged.type_match, judged.exact_match, judged.distance) == (True, False, 0.0)
    assert judged.reason == "the step has no target box"


def test_the_fallback_distance_includes_its_border_and_scales_each_axis_by_its_own_side() -> None:
    rule = ClickRule(fallback=0.04)
    origin = Point(0, 0)
    assert hit(rule, [], origin, 40, 0)
    assert hit(rule, [], origin, 0, 40)
    assert hit(rule, [], origin, 24, 32)  # 3-4-5 triangle: exactly 40
    assert not hit(rule, [], origin, 40.01, 0)
    assert not hit(rule, [], origin, 24.1, 32)


def test_distance_is_in_thousandths_and_told_on_hit_and_miss() -> None:
    rule = ClickRule(fallback=0.14)
    near = rule.judge(Boxes(), Point(500, 500), Point(503, 504))
    assert (near.exact_match, near.distance) == (True, 5.0)
    miss = rule.judge(Boxes(), Point(100, 100), Point(400, 500))
    assert (miss.exact_match, miss.distance) == (False, 500.0)
    assert miss.reason == "500 thousandths from the target; 140 allowed; the step has no target box"


def test_enlargement_is_about_the_centre() -> None:
    # 100 wide and 200 high: 10 more on the left and right, 20 more above and below.
    boxes = [[400.0, 400.0, 500.0, 600.0]]
    for rule in (CENTRED, CLIPPED):
        assert hit(rule, boxes, FAR, 391, 381)
        assert hit(rule, boxes, FAR, 509, 619)
        assert not hit(rule, boxes, FAR, 389, 500)
        assert not hit(rule, boxes, FAR, 450, 621)
    assert not hit(ClickRule(boxes="any"), boxes, FAR, 391, 500)


def test_clipping_at_zero_keeps_the_size_so_the_far_edge_moves_out() -> None:
    # [0, 100] grows by 20 to 120. Centred it ends at 110; cut at 0 with the size kept it ends at 120.
    boxes = [[0.0, 0.0, 100.0, 100.0]]
    assert hit(CLIPPED, boxes, FAR, 119, 119)
    assert not hit(CLIPPED, boxes, FAR, 121, 50)
    assert hit(CENTRED, boxes, FAR, 109, 109)
    assert not hit(CENTRED, boxes, FAR, 111, 50)


def test_clipping_cuts_the_size_at_one_screen() -> None:
    # [500, 1400] grows by 180 to 1080, cut to 1000; it begins at 410 and so ends at 1410, where it would end at 1490.
    accepted = CLIPPED.accepted(Boxes([[500, 500, 1400, 600]]), FAR)
    np.testing.assert_allclose(accepted[:, 0], [0.41, 0.49, 1.41, 0.61])
    np.testing.assert_allclose(CENTRED.accepted(Boxes([[500, 500, 1400, 600]]), FAR)[:, 0], [0.41, 0.49, 1.49, 0.61])


def test_boxes_around_the_reference_are_chosen_after_enlarging() -> None:
    rule = ClickRule(enlarge=1.2, clip=True, boxes="containing-reference")
    boxes = [[400.0, 400.0, 500.0, 500.0], [700.0, 700.0, 800.0, 800.0]]
    assert hit(rule, boxes, Point(450, 450), 401, 401)
    assert not hit(rule, boxes, Point(450, 450), 750, 750)  # inside a box that does not hold the reference
    assert hit(rule, boxes, Point(509, 450), 450, 450)  # only the enlarged box holds this reference
    missed = rule.judge(Boxes(boxes), Point(600, 600), Point(450, 450))
    assert (missed.exact_match, missed.reason) == (False, "no box contains the target")


def column_of_boxes(count: int) -> list[list[float]]:
    """Boxes of 20 x 20 whose centres are 100, 200, 300... below each other."""
    return [[490.0, 100.0 * i + 90, 510.0, 100.0 * i + 110] for i in range(count)]


def test_only_the_nearest_five_boxes_count_measured_from_the_reference() -> None:
    rule = ClickRule(boxes="nearest", nearest=5)
    boxes = column_of_boxes(9)  # centres 100 ... 900
    reference = Point(500, 110)  # nearest are 100, 200, 300, 400, 500
    assert hit(rule, boxes, reference, 500, 500)
    assert not hit(rule, boxes, reference, 500, 600)
    assert hit(replace(rule, nearest=6), boxes, reference, 500, 600)
    assert hit(replace(rule, boxes="any"), boxes, reference, 500, 900)


def test_nearest_is_by_the_enlarged_and_clipped_centre() -> None:
    # Clipping moves the centre of the box at the edge from 50 to 60 of 1000, so it loses to one 55 away.
    rule = ClickRule(enlarge=1.2, clip=True, boxes="nearest", nearest=1)
    boxes = [[0.0, 400.0, 100.0, 500.0], [45.0, 440.0, 65.0, 460.0]]
    np.testing.assert_allclose(rule.accepted(Boxes(boxes), Point(0, 450))[:, 0], [0.043, 0.438, 0.067, 0.462])


def test_at_equal_distance_the_earlier_box_counts() -> None:
    rule = ClickRule(boxes="nearest", nearest=1)
    left, right = [0.0, 490.0, 500.0, 510.0], [500.0, 490.0, 1000.0, 510.0]  # centres at 250 and 750
    reference = Point(500, 500)
    assert hit(rule, [left, right], reference, 100, 500)
    assert not hit(rule, [left, right], reference, 900, 500)
    assert hit(rule, [right, left], reference, 900, 500)


@pytest.mark.parametrize("count", [6, 17, 40, 120])
def test_among_many_ties_the_first_boxes_count(count: int) -> None:
    # All numbers are multiples of 1/16 screen, so equal distances are equal as floats too.
    rng = np.random.default_rng(count)
    centres, halves = rng.choice([250.0, 500.0, 750.0], count), rng.choice([62.5, 125.0, 187.5, 250.0], count)
    boxes = [[x - half, 500 - half, x + half, 500 + half] for x, half in zip(centres, halves, strict=True)]
    for reference in (250.0, 500.0):
        distances = np.abs(centres - reference).tolist()
        first = [index for _, index in sorted(zip(distances, range(count), strict=True))[:5]]
        accepted = ClickRule(boxes="nearest", nearest=5).accepted(Boxes(boxes), Point(reference, 500))
        np.testing.assert_array_equal(accepted.T * 1000, [boxes[i] for i in first])


def test_fewer_boxes_than_the_limit_all_count() -> None:
    assert hit(ClickRule(boxes="nearest", nearest=5), column_of_boxes(5), Point(500, 0), 500, 500)


@pytest.mark.parametrize(
    ("reference", "predicted", "exact"),
    [
        ("Coffee", "coffee", True),
        ("  Coffee\n", "coffee", True),
        ("coffee near me", "coffee", True),
        ("coffee", "order coffee now", True),
        ("coffee", "cofee", False),
        ("coffee", "", True),  # the empty text is part of every text
        ("", "coffee", True),
        ("", "", True),
        ("上海天气", "上海", True),
    ],
)
def test_texts_match_by_mutual_containment(reference: str, predicted: str, exact: bool) -> None:
    assert TextRule().judge(reference, predicted).exact_match is exact


def test_text_similarity_is_normalised_levenshtein_of_the_normalised_texts() -> None:
    assert TextRule().judge("KITTEN ", "sitting").text_similarity == pytest.approx(1 - 3 / 7)
    assert TextRule().judge("Same", "same").text_similarity == 1.0
    assert TextRule().judge("some", "").text_similarity == 0.0


def scroll(direction: str) -> Scroll:
    return Scroll.model_validate({"point": (500, 500), "direction": direction})


@pytest.mark.parametrize(
    ("compare", "label", "reference", "predicted", "exact"),
    [
        ("direction", None, "up", "up", True),
        ("direction", None, "up", "down", False),
        ("direction", "down", "up", "up", True),  # a label changes nothing here
        ("type-only", None, "up", "left", True),
        ("ui-s1-reward", "down", "up", "up", True),  # content moves down the list, the finger up
        ("ui-s1-reward", "down", "up", "down", False),
        ("ui-s1-reward", "left", "left", "left", True),
        ("ui-s1-reward", "left", "right", "left", True),  # the label, not the path, decides
        ("ui-s1-reward", None, "up", "up", False),  # released defect: no label, upside down
        ("ui-s1-reward", None, "up", "down", True),
        ("ui-s1-reward", None, "right", "right", True),
        ("ui-s1-reward", "no direction", "up", "up", False),
    ],
)
def test_scrolls(
    step: Callable[..., StepTaskModel], compare: Any, label: str | None, reference: str, predicted: str, exact: bool
) -> None:
    task = step(scroll(reference), extras={} if label is None else {"direction_label": label})
    judged = ScrollRule(compare).judge(task, scroll(reference), scroll(predicted))
    assert (judged.type_match, judged.exact_match) == (True, exact)


ICON = StepRules(click=CENTRED, open=OpenRule(icon=ClickRule(enlarge=1.2, boxes="any", fallback=0.04)))
ICON_BOXES = [[100.0, 100.0, 200.0, 200.0], [600.0, 600.0, 700.0, 700.0]]


@pytest.mark.parametrize(
    ("predicted", "type_match", "exact"),
    [
        (Open(app="clock"), True, True),
        (Open(app="Maps"), True, False),
        (Click(point=Point(209, 150)), True, True),  # in the first box x1.2
        (Click(point=Point(691, 650)), True, True),  # in another box
        (Click(point=Point(400, 400)), True, False),  # misses, yet is of the right type
        (LongPress(point=Point(150, 150)), False, False),
        (Type(text="Clock"), False, False),
    ],
)
def test_an_app_may_be_opened_by_its_icon(
    step: Callable[..., StepTaskModel], predicted: Action, type_match: bool, exact: bool
) -> None:
    task = step(Open(app="Clock"), ICON_BOXES)
    judged = ICON.judge(task, task.action, predicted)
    assert (judged.type_match, judged.exact_match, judged.distance) == (type_match, exact, None)


def test_an_icon_click_needs_boxes_and_a_rule_that_allows_it(step: Callable[..., StepTaskModel]) -> None:
    click = Click(point=Point(150, 150))
    bare = step(Open(app="Clock"))
    assert not ICON.judge(bare, bare.action, click).type_match
    task = step(Open(app="Clock"), ICON_BOXES)
    assert not replace(ICON, open=OpenRule()).judge(task, task.action, click).type_match


def test_the_icons_fallback_is_measured_from_the_first_box(step: Callable[..., StepTaskModel]) -> None:
    small = [[148.0, 148.0, 152.0, 152.0], [600.0, 600.0, 604.0, 604.0]]
    task = step(Open(app="Clock"), small)
    assert ICON.judge(task, task.action, Click(point=Point(180, 150))).exact_match
    assert not ICON.judge(task, task.action, Click(point=Point(630, 602))).exact_match


def test_a_short_press_is_a_tap_only_where_the_rules_say_so(step: Callable[..., StepTaskModel]) -> None:
    at = Point(500, 500)
    rules = StepRules(click=ClickRule(fallback=0.04), tap_limit=200.0)
    task = step(Click(point=at))
    assert rules.judge(task, task.action, LongPress(point=at, duration=200)).exact_match
    assert not rules.judge(task, task.action, LongPress(point=at, duration=201)).type_match
    assert not replace(rules, tap_limit=None).judge(task, task.action, LongPress(point=at, duration=200)).type_match
    held = step(LongPress(point=at, duration=1000))
    assert rules.judge(held, held.action, LongPress(point=at, duration=500)).exact_match
    assert not rules.judge(held, held.action, Click(point=at)).type_match


@pytest.mark.parametrize(
    ("reference", "predicted", "type_match", "exact"),
    [
        (Press(button="BACK"), Press(button="BACK"), True, True),
        (Press(button="BACK"), Press(button="HOME"), True, False),
        (Wait(duration=1), Wait(duration=9000), True, True),
        (Stop(status="finish"), Stop(status="impossible"), True, True),
        (Wait(), Stop(), False, False),
        (Stop(), Wait(), False, False),
        (Type(text="a"), Open(app="a"), False, False),
        (Open(app="a"), Type(text="a"), False, False),
    ],
)
def test_the_rest_is_compared_by_type_and_button(
    step: Callable[..., StepTaskModel], reference: Action, predicted: Action, type_match: bool, exact: bool
) -> None:
    judged = StepRules(click=CENTRED).judge(step(reference), reference, predicted)
    assert (judged.type_match, judged.exact_match) == (type_match, exact)


@pytest.mark.parametrize(
    "changed",
    [
        {"enlarge": 1.3},
        {"clip": False},
        {"boxes": "any"},
        {"boxes": "containing-reference"},
        {"nearest": 4},
        {"fallback": 0.05},
        {"fallback": None},
    ],
)
def test_every_threshold_of_a_click_rule_is_in_its_words(changed: dict[str, Any]) -> None:
    rule = ClickRule(enlarge=1.2, clip=True, boxes="nearest", nearest=5, fallback=0.04)
    assert set(changed) <= {each.name for each in fields(ClickRule)}
    assert replace(rule, **changed).describe() != rule.describe()
