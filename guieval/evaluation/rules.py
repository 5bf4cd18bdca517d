"""Step rules: how one predicted action is compared with one accepted action, as small frozen values.

Every published scorer is a choice of these rules and their thresholds (:mod:`guieval.evaluation.protocols`), so thresholds
are fields and each rule can say itself in words. Rules are pure: they read a step and two actions and touch nothing else.
Verdicts and alternatives are :mod:`guieval.evaluation.evaluator`'s business, many steps at once that of
:mod:`guieval.evaluation.batch`, which asks the rules here for everything that belongs to the target.

Boxes and fallback distances are compared in screen fractions (thousandths / 1000, each axis by its own side), in the order
of operations the published scorers use, so that borders fall on the same side as theirs. All borders are inclusive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Type
from guieval.steps import StepTaskModel

BoxChoice: TypeAlias = Literal["any", "containing-reference", "nearest"]
ScrollComparison: TypeAlias = Literal["direction", "type-only", "ui-s1-reward"]

_SWAP_VERTICAL = {"up": "down", "down": "up"}


class Judgement(NamedTuple):
    """What a rule says of one prediction against one accepted action; fields as in :class:`guieval.steps.StepOutcome`."""

    type_match: bool
    exact_match: bool
    distance: float | None
    text_similarity: float | None
    reason: str


@dataclass(frozen=True)
class ClickRule:
    """Whether a point hits its target: inside an accepted box, or close enough to the reference point.

    ``enlarge`` scales each box about its centre. With ``clip`` the upper left corner is then cut at 0 without moving the
    size, and width and height are cut at 1 screen, so a box cut at the left or top reaches further right or down
    (AgentCPM-GUI and GUIEvalKit); without it nothing is cut (UI-S1). ``boxes`` says which of the enlarged boxes count: any,
    those that contain the reference point, or the ``nearest`` ones by distance of their centre to the reference point (the
    earlier box first at equal distance). ``fallback`` is the distance to the reference point, in screen fractions, that is
    accepted whatever the boxes say; ``None`` accepts none.
    """

    enlarge: float = 1.0
    clip: bool = False
    boxes: BoxChoice = "any"
    nearest: int = 5
    fallback: float | None = None

    def accepted(self, boxes: Boxes, reference: Point) -> NDArray[np.float64]:
        """The boxes a point may be in: columns of a (4, k) array x1, y1, x2, y2, in screen fractions."""
        corners: NDArray[np.float64] = np.divide(boxes.array.T, 1000.0, order="C")
        near, far = corners[:2], corners[2:]
        size = far - near
        if self.clip:
            growth = size * (self.enlarge - 1)
            size = np.minimum(size + growth, 1.0, out=size)
            np.maximum(near - growth / 2, 0.0, out=near)
            np.add(near, size, out=far)
        elif self.enlarge != 1.0:
            centre = (near + far) / 2
            size *= self.enlarge
            half = size / 2
            np.subtract(centre, half, out=near)
            np.add(centre, half, out=far)
        if self.boxes == "any":
            return corners
        x, y = reference.x / 1000.0, reference.y / 1000.0
        if self.boxes == "containing-reference":
            return corners[:, _contain(corners, x, y)]
        if len(boxes) <= self.nearest:
            return corners
        size /= 2
        size += near
        dx, dy = size[0] - x, size[1] - y
        chosen = (dy * dy + dx * dx).argsort(kind="stable")[: self.nearest]
        return corners[:, chosen]

    def judge(self, boxes: Boxes, reference: Point, predicted: Point) -> Judgement:
        """Compare two points; ``distance`` is in thousandths of the screen."""
        dx, dy = predicted.x - reference.x, predicted.y - reference.y
        distance = math.sqrt(dx * dx + dy * dy)
        x, y = predicted.x / 1000.0, predicted.y / 1000.0
        if self.fallback is not None:
            dx, dy = x - reference.x / 1000.0, y - reference.y / 1000.0
            if math.sqrt(dx * dx + dy * dy) <= self.fallback:
                reason = f"{distance:.4g} thousandths from the target; {1000 * self.fallback:g} allowed"
                return Judgement(True, True, distance, None, reason)
        if len(boxes):
            accepted = self.accepted(boxes, reference)
            if np.count_nonzero(_contain(accepted, x, y)):
                return Judgement(True, True, distance, None, "inside a target box")
            where = "outside every target box" if accepted.shape[1] else "no box contains the target"
        else:
            where = "the step has no target box"
        if self.fallback is None:
            return Judgement(True, False, distance, None, where)
        reason = f"{distance:.4g} thousandths from the target; {1000 * self.fallback:g} allowed; {where}"
        return Judgement(True, False, distance, None, reason)

    def describe(self) -> str:
        """The rule in words."""
        which = {
            "any": "any of the step's boxes",
            "containing-reference": "one of the boxes that contain the reference point",
            "nearest": f"one of the {self.nearest} boxes whose centre is nearest to the reference point",
        }[self.boxes]
        words = f"inside {which}"
        if self.enlarge != 1.0:
            words += f", each enlarged x{self.enlarge:g} about its centre"
        if self.clip:
            words += ", upper left cut at 0 with the size kept, size cut at 1 screen"
        if self.fallback is not None:
            words += f"; or at most {self.fallback:g} of the screen (each axis by its side) from the reference point"
        return words


@dataclass(frozen=True)
class TextRule:
    """Mutual containment of two texts, lower-cased and stripped: either may hold the other.

    An empty text is contained in every text, so it always matches, as under every published containment rule.
    """

    @staticmethod
    def normalise(text: str) -> str:
        """The form in which texts are compared."""
        return text.lower().strip()

    @staticmethod
    def matches(reference: str, predicted: str) -> bool:
        """Compare two normalised texts."""
        return predicted in reference or reference in predicted

    def judge(self, reference: str, predicted: str) -> Judgement:
        """Compare two texts; ``text_similarity`` is the normalised Levenshtein similarity of their normalised forms."""
        from rapidfuzz.distance import Levenshtein

        expected, given = self.normalise(reference), self.normalise(predicted)
        exact = self.matches(expected, given)
        if given == expected:
            reason = "the text is equal"
        elif exact:
            reason = "the text is part of the reference" if given in expected else "the text holds the reference"
        else:
            reason = f"text {_short(predicted)}, reference {_short(reference)}"
        return Judgement(True, exact, None, Levenshtein.normalized_similarity(expected, given), reason)

    def describe(self) -> str:
        """The rule in words."""
        return "one text contains the other, both lower-cased and stripped"


@dataclass(frozen=True)
class ScrollRule:
    """Whether two scrolls agree.

    ``direction``: the finger's directions are equal. ``type-only``: any scroll agrees. ``ui-s1-reward``: the word in
    ``task.extras["direction_label"]``, else the reference's own direction, with up and down swapped, equals the predicted
    finger direction. The last is UI-S1's training matcher as released: right where the label tells the content's direction,
    upside down where there is no label. It is kept so that its numbers can be reproduced.
    """

    compare: ScrollComparison = "direction"

    def expected(self, task: StepTaskModel, reference: Scroll) -> str | None:
        """The finger direction a prediction must have; ``None`` when every direction agrees."""
        if self.compare == "type-only":
            return None
        if self.compare == "direction":
            return reference.direction
        label = task.extras.get("direction_label")
        word = label if isinstance(label, str) else reference.direction
        return _SWAP_VERTICAL.get(word, word)

    def judge(self, task: StepTaskModel, reference: Scroll, predicted: Scroll) -> Judgement:
        """Compare two scrolls."""
        expected = self.expected(task, reference)
        if expected is None:
            return Judgement(True, True, None, None, "any scroll agrees")
        if predicted.direction == expected:
            return Judgement(True, True, None, None, f"scrolled {expected} as the reference")
        return Judgement(True, False, None, None, f"scrolled {predicted.direction}, reference {expected}")

    def describe(self) -> str:
        """The rule in words."""
        return {
            "direction": "the finger moves in the reference's direction (up, down, left or right)",
            "type-only": "any scroll agrees, whatever its direction",
            "ui-s1-reward": (
                "the finger moves in the direction the label names (the reference's own where there is no label), "
                "up and down swapped: without a label vertical scrolls are judged upside down, as in the released matcher"
            ),
        }[self.compare]


@dataclass(frozen=True)
class OpenRule:
    """Whether an app was opened: the text rule on its name.

    With ``icon``, a click on a step that has boxes (the app's icons) also opens it when it hits by that rule, whose
    reference point is then the centre of the first box; such a click matches in type even where it misses.
    """

    icon: ClickRule | None = None

    def icon_point(self, boxes: Boxes) -> Point:
        """Where the icon is: the centre of the first box, in thousandths. There must be a box."""
        return boxes[0].centre

    def judge_icon(self, rule: ClickRule, boxes: Boxes, predicted: Point) -> Judgement:
        """Judge a click given in place of opening; no distance is told, for an app has no reference point."""
        judged = rule.judge(boxes, self.icon_point(boxes), predicted)
        return judged._replace(distance=None, reason=f"a click on the app's icon may open it: {judged.reason}")

    def describe(self) -> str:
        """The rule in words."""
        words = "the app's name by the text rule"
        if self.icon is not None:
            words += (
                "; where the step has boxes also a click, which is then of the right type, "
                f"{self.icon.describe()}, which is here the centre of the first box"
            )
        return words


@dataclass(frozen=True)
class StepRules:
    """One rule per action type. Types must be equal unless a rule says otherwise; wait and stop ask for nothing else.

    ``click`` judges clicks and long presses. ``tap_limit`` is the longest press, in milliseconds, that still is a tap: it
    counts as a click, predicted or labelled alike; ``None`` takes every long press as one.
    """

    click: ClickRule
    text: TextRule = TextRule()
    scroll: ScrollRule = ScrollRule()
    open: OpenRule = OpenRule()
    tap_limit: float | None = None

    def read(self, action: Action) -> Action:
        """The action as these rules understand it: a long press within ``tap_limit`` is a click."""
        if self.tap_limit is not None and isinstance(action, LongPress) and action.duration <= self.tap_limit:
            return Click(point=action.point)
        return action

    def judge(self, task: StepTaskModel, reference: Action, predicted: Action) -> Judgement:
        """Compare ``predicted`` with ``reference``, which is the step's own action or one of its alternatives."""
        expected, given = self.read(reference), self.read(predicted)
        if isinstance(expected, Click | LongPress) and given.type == expected.type:
            assert isinstance(given, Click | LongPress)
            return self.click.judge(task.boxes, expected.point, given.point)
        if isinstance(expected, Scroll) and isinstance(given, Scroll):
            return self.scroll.judge(task, expected, given)
        if isinstance(expected, Type) and isinstance(given, Type):
            return self.text.judge(expected.text, given.text)
        if isinstance(expected, Open):
            if isinstance(given, Open):
                return self.text.judge(expected.app, given.app)
            if isinstance(given, Click) and self.open.icon is not None and len(task.boxes):
                return self.open.judge_icon(self.open.icon, task.boxes, given.point)
        if isinstance(expected, Press) and isinstance(given, Press):
            if given.button == expected.button:
                return Judgement(True, True, None, None, f"pressed {expected.button} as the reference")
            return Judgement(True, False, None, None, f"pressed {given.button}, reference {expected.button}")
        if given.type == expected.type and given.type in ("WAIT", "STOP"):
            return Judgement(True, True, None, None, f"{given.type} as the reference")
        return Judgement(False, False, None, None, f"{given.type}, reference {expected.type}")

    def describe(self) -> str:
        """The rules in words, one line per action type."""
        lines = [
            f"click, long press: {self.click.describe()}",
            f"scroll: {self.scroll.describe()}",
            f"type: {self.text.describe()}",
            f"open: {self.open.describe()}",
            "press: the button is equal",
            "wait, stop: the type alone",
        ]
        if self.tap_limit is not None:
            lines.append(f"a long press of at most {self.tap_limit:g} ms is a click")
        return "\n".join(lines)


def _contain(corners: NDArray[np.float64], x: float, y: float) -> NDArray[np.bool_]:
    """Which columns x1, y1, x2, y2 hold the point, borders included."""
    x1, y1, x2, y2 = corners
    inside: NDArray[np.bool_] = (x1 <= x) & (x <= x2) & (y1 <= y) & (y <= y2)
    return inside


def _short(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
