"""Hand-computed cases of every rule, borders and known oddities included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Stop, Type, Unsupported, Wait
from guieval.evaluation import ClickRule, OpenRule, ScrollRule, StepRules, TextRule
from guieval.evaluation.leniencies import LongPressIsClick, RecentIsHome, WaitIsStop
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import FIELDS, anything, step_rules, tasks
from tests.evaluation.verdicts import scroll, step
from tests.rows import every_row

CLIPPED = ClickRule(enlarge=1.2, clip=True, inside="elements")
CENTRED = ClickRule(enlarge=1.2, inside="elements")
PLAIN = StepRules(CENTRED)
FAR = Point(900, 900)


def hit(rule: ClickRule, boxes: list[list[float]], reference: Point, x: float, y: float) -> bool:
    targets, elements = (boxes, []) if rule.inside == "targets" else ([], boxes)
    return rule.judge(Boxes(targets), Boxes(elements), reference, Point(x, y)).exact_match


def test_without_box_or_fallback_nothing_is_right() -> None:
    judged = ClickRule("targets").judge(Boxes(), Boxes(), Point(500, 500), Point(500, 500))
    assert (judged.type_match, judged.exact_match, judged.distance) == (True, False, 0.0)
    assert judged.reason == "the step has no target box"


def test_distance_is_in_thousandths_and_reported_on_hit_and_miss() -> None:
    rule = ClickRule("targets", fallback=0.14)
    near = rule.judge(Boxes(), Boxes(), Point(500, 500), Point(503, 504))
    assert (near.exact_match, near.distance) == (True, 5.0)
    miss = rule.judge(Boxes(), Boxes(), Point(100, 100), Point(400, 500))
    assert (miss.exact_match, miss.distance) == (False, 500.0)
    assert miss.reason == "500 thousandths from the reference; 140 allowed; the step has no target box"


def test_clipping_cuts_the_size_at_one_screen() -> None:
    # [500, 1400] grows by 180 to 1080, cut to 1000; it begins at 410 and so ends at 1410, where it would end at 1490.
    accepted = CLIPPED.accepted(Boxes(), Boxes([[500, 500, 1400, 600]]), FAR)
    np.testing.assert_allclose(accepted[:, 0], [0.41, 0.49, 1.41, 0.61])
    np.testing.assert_allclose(CENTRED.accepted(Boxes(), Boxes([[500, 500, 1400, 600]]), FAR)[:, 0], [0.41, 0.49, 1.49, 0.61])


def column_of_boxes(count: int) -> list[list[float]]:
    """Boxes of 20 x 20 whose centres are 100, 200, 300... below each other."""
    return [[490.0, 100.0 * i + 90, 510.0, 100.0 * i + 110] for i in range(count)]


def test_nearest_is_by_the_enlarged_and_clipped_centre() -> None:
    # Clipping moves the centre of the box at the edge from 50 to 60 of 1000, so it loses to one 55 away.
    rule = ClickRule(enlarge=1.2, clip=True, inside="elements", which="nearest", nearest=1)
    boxes = [[0.0, 400.0, 100.0, 500.0], [45.0, 440.0, 65.0, 460.0]]
    np.testing.assert_allclose(rule.accepted(Boxes(), Boxes(boxes), Point(0, 450))[:, 0], [0.043, 0.438, 0.067, 0.462])


@every_row("count", [6, 17, 40, 120])
def test_among_many_ties_the_first_boxes_count(count: int) -> None:
    # All numbers are multiples of 1/16 screen, so equal distances are equal as floats too.
    rng = np.random.default_rng(count)
    centres, halves = rng.choice([250.0, 500.0, 750.0], count), rng.choice([62.5, 125.0, 187.5, 250.0], count)
    boxes = [[x - half, 500 - half, x + half, 500 + half] for x, half in zip(centres, halves, strict=True)]
    for reference in (250.0, 500.0):
        distances = np.abs(centres - reference).tolist()
        first = [index for _, index in sorted(zip(distances, range(count), strict=True))[:5]]
        accepted = ClickRule(inside="elements", which="nearest", nearest=5).accepted(
            Boxes(), Boxes(boxes), Point(reference, 500)
        )
        np.testing.assert_allclose(accepted.T * 1000, [boxes[i] for i in first], atol=2e-6)


CENTRE = Point(500, 500)
CIRCLE = ClickRule("targets", measure="canvas", fallback=math.hypot(0.14 * 1080, 0.14 * 2400))


@every_row(
    ("rule", "screen", "x", "y", "exact"),
    [
        # A circle of 368.45 px on a canvas of 1080 x 2400, whatever the screenshot: 341 x 1.08 = 368.28, 342 x 1.08 = 369.36.
        (CIRCLE, (100, 100), 841, 500, True),
        (CIRCLE, (100, 100), 842, 500, False),
        (CIRCLE, (100, 100), 500, 653, True),  # 367.2
        (CIRCLE, (100, 100), 500, 654, False),  # 369.6
        (replace(CIRCLE, canvas=(1000, 1000), fallback=140.0), (100, 100), 584, 612, True),  # 84, 112, 140
        (replace(CIRCLE, canvas=(1000, 1000), fallback=140.0), (100, 100), 584, 612.1, False),
        # 140 px of a screenshot of 1000 x 500: an ellipse in thousandths.
        (ClickRule("targets", measure="pixels", fallback=140.0), (1000, 500), 640, 500, True),
        (ClickRule("targets", measure="pixels", fallback=140.0), (1000, 500), 640.1, 500, False),
        (ClickRule("targets", measure="pixels", fallback=140.0), (1000, 500), 500, 780, True),
        (ClickRule("targets", measure="pixels", fallback=140.0), (1000, 500), 500, 780.1, False),
        # 0.04 of 1000, so 40 px on either axis.
        (ClickRule("targets", measure="longest-side", fallback=0.04), (1000, 500), 540, 500, True),
        (ClickRule("targets", measure="longest-side", fallback=0.04), (1000, 500), 541, 500, False),
        (ClickRule("targets", measure="longest-side", fallback=0.04), (500, 1000), 580, 500, True),
        (ClickRule("targets", measure="longest-side", fallback=0.04), (500, 1000), 581, 500, False),
        (ClickRule("targets", measure="diagonal", fallback=0.1), (300, 400), 500, 625, True),
        (ClickRule("targets", measure="diagonal", fallback=0.1), (300, 400), 500, 626, False),
        # The border itself is left out.
        (ClickRule("targets", fallback_strict=True, fallback=0.25), (1000, 500), 750, 500, False),
        (ClickRule("targets", fallback_strict=True, fallback=0.25), (1000, 500), 749.9, 500, True),
        (ClickRule("targets", fallback_strict=True, fallback=140.0, measure="pixels"), (1000, 500), 640, 500, False),
        (ClickRule("targets", fallback_strict=True, fallback=140.0, measure="pixels"), (1000, 500), 639.9, 500, True),
    ],
)
def test_distances_in_every_measure(rule: ClickRule, screen: tuple[int, int], x: float, y: float, exact: bool) -> None:
    for boxes in (Boxes(), Boxes([[0, 0, 1, 1]])):
        judged = rule.judge(boxes, Boxes(), CENTRE, Point(x, y), screen=screen)
        assert (judged.type_match, judged.exact_match) == (True, exact)
        assert judged.distance == math.sqrt((x - 500) ** 2 + (y - 500) ** 2)


def test_a_border_in_pixels_falls_the_same_way_wherever_it_lies() -> None:
    # Thousandths of 1179 px are not whole numbers, so a distance of 140 px is seldom exactly 140 again.
    width = 1179
    inclusive, strict = (
        ClickRule("targets", measure="pixels", fallback=140.0, fallback_strict=strict) for strict in (False, True)
    )
    for pixel in range(0, width - 140):
        reference, predicted = (Point(each * 1000.0 / width, 0) for each in (pixel, pixel + 140))
        assert inclusive.judge(Boxes(), Boxes(), reference, predicted, screen=(width, 10)).exact_match
        assert not strict.judge(Boxes(), Boxes(), reference, predicted, screen=(width, 10)).exact_match


def test_what_is_counted_in_pixels_needs_the_screen() -> None:
    for rule in (
        ClickRule("targets", measure="pixels", fallback=9.0),
        ClickRule("targets", whole_pixels=True),
        ClickRule("targets", far_edge=1.0),
    ):
        with pytest.raises(ValueError, match="size of the screenshot must be given"):
            rule.judge(Boxes(), Boxes([[0, 0, 1, 1]]), CENTRE, CENTRE)


def test_a_coordinate_of_zero_may_count_as_none() -> None:
    rule = ClickRule("targets", fallback=0.14, zero_is_missing=True)
    boxes, reference = [[0.0, 0.0, 50.0, 50.0]], Point(10, 10)
    for x, y, exact in ((0, 10, False), (10, 0, False), (0.5, 0.5, True)):
        assert hit(rule, boxes, reference, x, y) is exact
    assert hit(replace(rule, zero_is_missing=False), boxes, reference, 0, 10)
    whole = replace(rule, whole_pixels=True)
    assert not whole.judge(Boxes(), Boxes(boxes), reference, Point(0.9, 10), screen=(1000, 1000)).exact_match  # pixel 0
    assert whole.judge(Boxes(), Boxes(boxes), reference, Point(1, 10), screen=(1000, 1000)).exact_match


def test_a_point_may_be_cut_to_whole_pixels() -> None:
    rule, box, screen = ClickRule("targets", whole_pixels=True), Boxes([[100, 100, 200, 200]]), (1000, 1000)
    assert rule.judge(box, Boxes(), FAR, Point(200.9, 150), screen=screen).exact_match
    assert not rule.judge(box, Boxes(), FAR, Point(201, 150), screen=screen).exact_match
    assert not rule.judge(box, Boxes(), FAR, Point(99.9, 150), screen=screen).exact_match
    assert not ClickRule("targets").judge(box, Boxes(), FAR, Point(200.9, 150), screen=screen).exact_match


@pytest.mark.parametrize("width", [644, 1080, 1179])
def test_every_whole_pixel_stays_itself(width: int) -> None:
    for pixel in range(width):
        at = pixel * 1000.0 / width  # as loaders make it
        line, screen = Boxes([[at, 0, at, 1000]]), (width, 10)
        assert ClickRule("targets", whole_pixels=True).judge(line, Boxes(), FAR, Point(at, 500), screen=screen).exact_match
        assert not ClickRule("targets", far_edge=1.0).judge(line, Boxes(), FAR, Point(at, 500), screen=screen).exact_match
        wide = Boxes([[0, 0, (pixel + 1) * 1000.0 / width, 1000]])
        assert ClickRule("targets", far_edge=1.0).judge(wide, Boxes(), FAR, Point(at, 500), screen=screen).exact_match


def test_the_far_edge_may_be_drawn_in() -> None:
    rule, box, screen = ClickRule("targets", far_edge=1.0), Boxes([[100, 100, 200, 200]]), (1000, 500)
    assert rule.judge(box, Boxes(), FAR, Point(199, 198), screen=screen).exact_match  # a pixel is two thousandths high
    assert not rule.judge(box, Boxes(), FAR, Point(199.1, 198), screen=screen).exact_match
    assert not rule.judge(box, Boxes(), FAR, Point(199, 198.1), screen=screen).exact_match
    assert rule.judge(box, Boxes(), FAR, Point(100, 100), screen=screen).exact_match


def test_nearest_may_be_measured_from_the_prediction() -> None:
    rule, boxes = ClickRule(inside="elements", which="nearest-to-prediction", nearest=5), column_of_boxes(9)
    assert hit(rule, boxes, Point(500, 110), 500, 900)
    assert not hit(rule, boxes, Point(500, 110), 500, 950)
    # A tall box whose centre is far away is no longer among the nearest, although it holds the point.
    tall = [*column_of_boxes(5), [0.0, 0.0, 1000.0, 1000.0]]
    assert not hit(rule, tall, FAR, 480, 50)
    assert hit(replace(rule, nearest=6), tall, FAR, 480, 50)
    assert rule.accepted(Boxes(), Boxes(boxes), FAR).shape == (4, 9)  # without a prediction all that may count
    assert rule.accepted(Boxes(), Boxes(boxes), FAR, predicted=Point(500, 900)).shape == (4, 5)


NESTED = [[0.0, 0.0, 1000.0, 1000.0], [400.0, 400.0, 500.0, 500.0], [500.0, 400.0, 600.0, 500.0], [450.0, 450.0, 700.0, 700.0]]
BOX, HIGH, AT_ZERO = [100.0, 200.0, 300.0, 400.0], [400.0, 400.0, 500.0, 600.0], [0.0, 0.0, 100.0, 100.0]
SMALL, OTHER = [400.0, 400.0, 500.0, 500.0], [700.0, 700.0, 800.0, 800.0]
LEFT, RIGHT = [0.0, 490.0, 500.0, 510.0], [500.0, 490.0, 1000.0, 510.0]  # centres at 250 and 750
AROUND = ClickRule(enlarge=1.2, clip=True, inside="elements", which="around-reference")
AFTER = ClickRule("elements", "around-reference", enlarge=1.2)
FIVE, NEAREST = (ClickRule(inside="elements", which="nearest", nearest=number) for number in (5, 1))
SMALLEST, NODE, WITHIN = (
    ClickRule(inside="target-element"),
    ClickRule("elements", enlarge=1.2, by_node=True),
    ClickRule("targets", fallback=0.04),
)
Tried = tuple[float, float, bool]
HITS: list[tuple[ClickRule, list[list[float]], Point, Sequence[Tried]]] = [
    # a box includes its border
    (ClickRule("targets"), [BOX], FAR, [(100, 200, True), (300, 400, True), (100, 400, True), (200, 300, True)]),
    (ClickRule("targets"), [BOX], FAR, [(99.9, 300, False), (300.1, 300, False), (200, 199.9, False), (200, 400.1, False)]),
    # the fallback distance includes its border and scales each axis by its own side; 3-4-5 triangle: exactly 40
    (WITHIN, [], Point(0, 0), [(40, 0, True), (0, 40, True), (24, 32, True), (40.01, 0, False), (24.1, 32, False)]),
    # enlargement is about the centre: 100 wide and 200 high, so 10 more on the left and right, 20 more above and below
    *[
        (rule, [HIGH], FAR, [(391, 381, True), (509, 619, True), (389, 500, False), (450, 621, False)])
        for rule in (CENTRED, CLIPPED)
    ],
    (ClickRule(inside="elements"), [HIGH], FAR, [(391, 500, False)]),
    # [0, 100] grows by 20 to 120. Centred it ends at 110; cut at 0 with the size kept it ends at 120.
    (CLIPPED, [AT_ZERO], FAR, [(119, 119, True), (121, 50, False)]),
    (CENTRED, [AT_ZERO], FAR, [(109, 109, True), (111, 50, False)]),
    # boxes around the reference are chosen after enlarging; the second is inside a box that does not hold the reference
    (AROUND, [SMALL, OTHER], Point(450, 450), [(401, 401, True), (750, 750, False)]),
    (AROUND, [SMALL, OTHER], Point(509, 450), [(450, 450, True)]),  # only the enlarged box holds this reference
    (AFTER, [SMALL], Point(500, 450), [(509, 450, True)]),
    (AFTER, [SMALL], Point(509, 450), [(450, 450, True)]),
    # only the nearest five boxes count, measured from the reference: 100, 200, 300, 400, 500
    (FIVE, column_of_boxes(9), Point(500, 110), [(500, 500, True), (500, 600, False)]),
    (ClickRule(inside="elements", which="nearest", nearest=6), column_of_boxes(9), Point(500, 110), [(500, 600, True)]),
    (ClickRule(inside="elements"), column_of_boxes(9), Point(500, 110), [(500, 900, True)]),
    (FIVE, column_of_boxes(5), Point(500, 0), [(500, 500, True)]),
    # at equal distance the earlier box counts
    (NEAREST, [LEFT, RIGHT], Point(500, 500), [(100, 500, True), (900, 500, False)]),
    (NEAREST, [RIGHT, LEFT], Point(500, 500), [(900, 500, True)]),
    # the smallest box around the reference, not a larger one that holds it too
    (SMALLEST, NESTED, Point(450, 450), [(400, 400, True), (600, 600, False)]),
    (SMALLEST, NESTED, Point(650, 650), [(600, 600, True)]),
    (SMALLEST, NESTED, Point(900, 900), [(1, 1, True)]),
    (SMALLEST, NESTED, Point(500, 450), [(450, 450, True), (550, 450, False)]),  # of two equal ones the earlier
    (replace(SMALLEST, enlarge=1.2), NESTED, Point(450, 450), [(391, 450, True)]),
    (replace(SMALLEST, enlarge=1.2), NESTED[1:], Point(391, 450), [(450, 450, False)]),  # chosen before enlarging
    # an element pointed at stands for its box: the enlarged box [390, 510] holds the reference
    (NODE, [SMALL], Point(510, 450), [(400, 400, True)]),
    (NODE, [SMALL], Point(511, 450), [(450, 450, False)]),
    (NODE, [SMALL], Point(450, 450), [(450, 450, True), (399, 450, False)]),  # in no box, so only the very point would do
    (NODE, [], Point(300, 300), [(300, 300, True), (300, 300.1, False)]),
]


@every_row(("rule", "boxes", "reference", "tried"), HITS)
def test_which_points_hit(rule: ClickRule, boxes: list[list[float]], reference: Point, tried: Sequence[Tried]) -> None:
    for x, y, exact in tried:
        assert hit(rule, boxes, reference, x, y) is exact, (x, y)


def test_the_reason_states_that_no_box_contains_the_target() -> None:
    missed = AROUND.judge(Boxes(), Boxes([SMALL, OTHER]), Point(600, 600), Point(450, 450))
    assert (missed.exact_match, missed.reason) == (False, "no box of the screen is around the reference")


def test_an_element_that_nearly_is_the_target_counts() -> None:
    # Boxes of 100 x 100, the other moved right by d: intersection over union is (100 - d) / (100 + d), above 0.5 below 33.3.
    for shift, exact in ((33.0, True), (34.0, False)):
        boxes = [[400.0, 400.0, 500.0, 500.0], [400.0 + shift, 400.0, 500.0 + shift, 500.0]]
        assert hit(ClickRule("elements", by_node=True), boxes, Point(500 + shift, 450), 401, 450) is exact


def test_the_corner_may_stand_for_the_label() -> None:
    rule = ClickRule("elements", reference="origin", by_node=True, enlarge=1.2)
    boxes = [[0.0, 0.0, 100.0, 100.0], [400.0, 400.0, 500.0, 500.0]]
    assert not hit(rule, boxes, Point(450, 450), 450, 450)
    judged = rule.judge(Boxes(), Boxes(boxes), Point(450, 450), Point(50, 50))
    assert judged.exact_match
    assert judged.distance == pytest.approx(400 * 2**0.5)  # still to the label
    near = ClickRule("targets", reference="origin", fallback=0.1)
    assert hit(near, [], FAR, 100, 0)
    assert not hit(near, [], FAR, 900, 900)


def test_text_similarity_is_normalised_levenshtein_of_the_normalised_texts() -> None:
    assert TextRule().judge("KITTEN ", "sitting").text_similarity == pytest.approx(1 - 3 / 7)
    assert TextRule().judge("Same", "same").text_similarity == 1.0
    assert TextRule().judge("some", "").text_similarity == 0.0


F1 = TextRule("token-f1", threshold=0.5)


@every_row(
    ("rule", "reference", "predicted", "exact"),
    [
        (TextRule(), "Coffee", "coffee", True),
        (TextRule(), "  Coffee\n", "coffee", True),
        (TextRule(), "coffee near me", "coffee", True),
        (TextRule(), "coffee", "order coffee now", True),
        (TextRule(), "coffee", "cofee", False),
        (TextRule(), "coffee", "", True),  # the empty text is part of every text
        (TextRule(), "", "coffee", True),
        (TextRule(), "", "", True),
        (TextRule(), "上海天气", "上海", True),
        (F1, "red wine glass", "red", True),  # precision 1, recall 1/3: F1 exactly 0.5
        (replace(F1, above=True), "red wine glass", "red", False),
        (replace(F1, above=True), "red wine", "red", True),  # 2/3
        (F1, "red wine glass jar", "red", False),  # 0.4
        (F1, "Red", "rED", True),
        (F1, "", "", False),
        (F1, "coffee", "", False),
        (F1, "wine", "win", False),
        (replace(F1, part_of_word=True), "wine", "win", True),
        (replace(F1, part_of_word=True), "win", "wine", True),
        (replace(F1, part_of_word=True), "red wine", "win", False),
        (replace(F1, part_of_word=True, form="unbracketed"), "[wine]", "win", True),
        (replace(F1, form="unbracketed"), "[red] wine", "RED", True),
        (replace(F1, form="as-given"), "[red] wine jar", "RED wine", False),  # 0.4
        # {a, b} and {a, c, d, e}: 1/3; as multisets a a a b and a c d e: 1/4.
        (replace(F1, threshold=0.3), "a a a b", "a c d e", True),
        (replace(F1, threshold=0.3, tokens="multiset"), "a a a b", "a c d e", False),
        (replace(F1, threshold=0.3, tokens="multiset"), "a a a b", "a a", True),  # 2/3
        (replace(F1, span="second-token"), "hello world", "Hello there everybody", True),  # "[hello" on both sides
        (replace(F1, span="second-token"), "hello world", "say hello world", False),
        (replace(F1, span="second-token"), "hello world", "hello", False),  # "[hello]" has a bracket more
        (replace(F1, span="action", above=True), "a b", "a c", True),  # type, [a of three each: 2/3
        (replace(F1, above=True), "a b", "a c", False),  # 1/2
        (replace(F1, span="action", above=True), "a", "b", False),  # type of two each: 1/2
        (replace(F1, compare="equal-or-token-f1"), "", "", True),
        (replace(F1, compare="equal-or-token-f1"), "red wine glass", "red", True),
        (replace(F1, compare="equal-or-token-f1", form="as-given"), "...", "...", True),
        (replace(F1, compare="containment-or-token-f1"), "wine", "win", True),
        (replace(F1, compare="containment-or-token-f1"), "wine", "", True),
        (replace(F1, compare="containment-or-token-f1"), "red wine", "wine red", True),
        (replace(F1, compare="containment-or-token-f1"), "red wine", "white whine", False),
        # "abcde" and "abcdf": Levenshtein 1 - 1/5 = 0.8, indel 1 - 2/10 = 0.8; "kitten" and "sitting": 4/7, 1 - 5/13.
        (TextRule("similarity", threshold=0.8), "abcde", "abcdf", True),
        (TextRule("similarity", threshold=0.8, above=True), "abcde", "abcdf", False),
        (TextRule("similarity", threshold=0.8, similarity="indel"), "abcde", "abcdf", True),
        (TextRule("similarity", threshold=0.8, similarity="indel", above=True), "abcde", "abcdf", False),
        (TextRule("similarity", threshold=0.6), "kitten", "sitting", False),
        (TextRule("similarity", threshold=0.6, similarity="indel"), "kitten", "sitting", True),
        (TextRule("containment", form="unbracketed"), "[Clock]", "clock", True),
    ],
)
def test_texts_by_containment_words_and_similarity(rule: TextRule, reference: str, predicted: str, exact: bool) -> None:
    judged = rule.judge(reference, predicted)
    assert judged.exact_match is exact
    if exact:
        assert not judged.reason.startswith("text ")


def test_the_reason_states_which_of_two_ways_agreed() -> None:
    rule = TextRule("containment-or-token-f1", above=True)
    assert rule.judge("red wine", "wine").reason == "the text is part of the reference"
    assert rule.judge("red wine", "wine red").reason == "the words' F1 is more than 0.5"
    assert TextRule("similarity", threshold=0.8).judge("abcde", "abcdf").reason == "the text is at least 0.8 similar"


@every_row(
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
def test_scrolls(compare: Any, label: str | None, reference: str, predicted: str, exact: bool) -> None:
    task = step(scroll(reference), extras={} if label is None else {"direction_label": label})
    judged = ScrollRule(compare).judge(task, scroll(reference), scroll(predicted))
    assert (judged.type_match, judged.exact_match) == (True, exact)


ICON = StepRules(click=CENTRED, open=OpenRule(icon=ClickRule(enlarge=1.2, inside="elements", fallback=0.04)))
ICON_BOXES = [[100.0, 100.0, 200.0, 200.0], [600.0, 600.0, 700.0, 700.0]]


@every_row(
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
def test_an_app_may_be_opened_by_its_icon(predicted: Action, type_match: bool, exact: bool) -> None:
    task = step(Open(app="Clock"), ICON_BOXES)
    judged = ICON.judge(task, task.action, predicted)
    assert (judged.type_match, judged.exact_match, judged.distance) == (type_match, exact, None)


def test_a_short_press_is_a_tap_only_where_the_rules_say_so() -> None:
    at = Point(500, 500)
    rules = StepRules(click=ClickRule("targets", fallback=0.04), tap_limit=200.0)
    task = step(Click(point=at))
    assert rules.judge(task, task.action, LongPress(point=at, duration=200)).exact_match
    assert not rules.judge(task, task.action, LongPress(point=at, duration=201)).type_match
    assert not replace(rules, tap_limit=None).judge(task, task.action, LongPress(point=at, duration=200)).type_match
    for labelled in (1000.0, 200.0, 0.0):  # a label says its type itself, however short
        held = step(LongPress(point=at, duration=labelled))
        assert rules.judge(held, held.action, LongPress(point=at, duration=500)).exact_match
        assert not rules.judge(held, held.action, LongPress(point=at, duration=200)).type_match
        assert not rules.judge(held, held.action, Click(point=at)).type_match


@every_row(
    ("rules", "reference", "predicted", "type_match", "exact"),
    [
        (PLAIN, Press(button="BACK"), Press(button="BACK"), True, True),
        (PLAIN, Press(button="BACK"), Press(button="HOME"), True, False),
        (PLAIN, Wait(duration=1), Wait(duration=9000), True, True),
        (PLAIN, Stop(status="finish"), Stop(status="impossible"), True, True),
        (PLAIN, Wait(), Stop(), False, False),
        (PLAIN, Stop(), Wait(), False, False),
        (PLAIN, Type(text="a"), Open(app="a"), False, False),
        (PLAIN, Open(app="a"), Type(text="a"), False, False),
        (StepRules(CENTRED, press="type-only"), Press(button="BACK"), Press(button="HOME"), True, True),
        (StepRules(CENTRED, button_types=True), Press(button="BACK"), Press(button="HOME"), False, False),
        (StepRules(CENTRED, button_types=True), Press(button="BACK"), Press(button="BACK"), True, True),
        (StepRules(CENTRED, button_types=True, press="type-only"), Press(button="BACK"), Press(button="HOME"), False, False),
        (StepRules(CENTRED, stop="status"), Stop(), Stop(status="impossible"), True, False),
        (StepRules(CENTRED, status_types=True), Stop(), Stop(status="impossible"), False, False),
        (StepRules(CENTRED, status_types=True), Stop(), Stop(), True, True),
        (StepRules(CENTRED, open=OpenRule(text=TextRule("equal"))), Open(app="Google Maps"), Open(app="Maps"), True, False),
        (StepRules(CENTRED, open=OpenRule(text=TextRule("equal"))), Type(text="Google Maps"), Type(text="Maps"), True, True),
        (StepRules(CENTRED, text=TextRule("equal")), Open(app="Google Maps"), Open(app="Maps"), True, False),
    ],
)
def test_buttons_ends_and_app_names_as_rules_say(
    rules: StepRules, reference: Action, predicted: Action, type_match: bool, exact: bool
) -> None:
    judged = rules.judge(step(reference), reference, predicted)
    assert (judged.type_match, judged.exact_match) == (type_match, exact)


@settings(max_examples=120)
@given(others=st.fixed_dictionaries(FIELDS), rules=step_rules, task=tasks(), predicted=anything)
def test_rules_with_equal_deciding_parts_judge_alike(
    others: dict[str, Any], rules: StepRules, task: StepTaskModel, predicted: Action
) -> None:
    def deciding(of: StepRules, reference: Action) -> object:
        known = isinstance(predicted, Unsupported) and predicted.known is not None
        return of.deciding_type if known else of.deciding(reference.type, predicted.type)

    for field, value in others.items():
        other = replace(rules, **{field: value})
        for reference in (task.action, *task.alternatives):
            if deciding(rules, reference) == deciding(other, reference):
                assert rules.judge(task, reference, predicted) == other.judge(task, reference, predicted), field


def test_only_what_decides_is_in_the_deciding_part() -> None:
    rules = StepRules(CENTRED)
    assert rules.deciding("CLICK", "CLICK") == replace(rules, text=TextRule("equal")).deciding("CLICK", "CLICK")
    assert rules.deciding("CLICK", "CLICK") != replace(rules, click=CLIPPED).deciding("CLICK", "CLICK")
    assert rules.deciding("OPEN", "CLICK") != ICON.deciding("OPEN", "CLICK")
    assert rules.deciding("CLICK", "OPEN") == ICON.deciding("CLICK", "OPEN")
    assert rules.deciding("OPEN", "OPEN") == replace(rules, open=OpenRule(text=TextRule())).deciding("OPEN", "OPEN")
    taps = replace(rules, tap_limit=200.0)
    assert rules.deciding("CLICK", "LONG_PRESS") != taps.deciding("CLICK", "LONG_PRESS")
    assert rules.deciding("LONG_PRESS", "CLICK") == taps.deciding("LONG_PRESS", "CLICK")
    assert rules.deciding("CLICK", "CLICK") == taps.deciding("CLICK", "CLICK")
    lenient = replace(rules, leniencies=(WaitIsStop(), LongPressIsClick(), RecentIsHome()))
    assert rules.deciding("WAIT", "STOP") != lenient.deciding("WAIT", "STOP")
    assert rules.deciding("TYPE", "TYPE") == lenient.deciding("TYPE", "TYPE")
    assert len({hash(rules.deciding("CLICK", "CLICK")), hash(lenient.deciding("CLICK", "CLICK"))}) == 1


WORDS, NEAR_FIVE = TextRule("equal-or-token-f1"), replace(FIVE, enlarge=1.2, clip=True, fallback=0.04)
SAID: list[tuple[Any, Sequence[dict[str, Any]]]] = [
    (WORDS, [*({"form": form} for form in ("as-given", "label-lowered")), {"above": True}, {"threshold": 0.6}]),
    (WORDS, [{"tokens": "multiset"}, *({"span": span} for span in ("action", "second-token")), {"part_of_word": True}]),
    (WORDS, [{"compare": compare} for compare in ("token-f1", "containment-or-token-f1")]),
    (TextRule("similarity"), [{"similarity": "indel"}]),
    (PLAIN, [{"press": "type-only"}, {"button_types": True}, {"status_types": True}, {"stop": "status"}, {"tap_limit": 200.0}]),
    (PLAIN, [{"open": each} for each in (OpenRule(text=TextRule("equal")), OpenRule(icon=CLIPPED))]),
    (NEAR_FIVE, [{"enlarge": 1.3}, {"clip": False}, {"nearest": 4}, {"fallback": 0.05}, {"fallback": None}, {"strict": True}]),
    (NEAR_FIVE, [{"inside": inside} for inside in ("targets", "target-element", "nothing")]),
    (NEAR_FIVE, [{"which": which} for which in ("any", "around-reference", "nearest-to-prediction")]),
    (NEAR_FIVE, [{"measure": measure} for measure in ("canvas", "pixels", "longest-side", "diagonal")]),
    (NEAR_FIVE, [{"measure": "canvas", "canvas": (1000.0, 1000.0)}, {"fallback_strict": True}, {"zero_is_missing": True}]),
    (NEAR_FIVE, [{"whole_pixels": True}, {"far_edge": 1.0}, {"reference": "origin"}, {"by_node": True}, {"polygon": True}]),
]


@every_row(("rule", "changes"), SAID)
def test_every_choice_of_a_rule_is_in_its_words(rule: Any, changes: Sequence[dict[str, Any]]) -> None:
    for changed in changes:
        assert replace(rule, **changed).describe() != rule.describe(), changed
