"""Step rules: how one predicted action is compared with one accepted action, as small frozen values.

Every published scorer is a choice of these rules and their thresholds (:mod:`guieval.evaluation.protocols`), so thresholds
are fields and each rule can describe itself in words. Rules are pure functions of a step and two actions. Points are compared
in :mod:`guieval.evaluation.click_rule`, texts in :mod:`guieval.evaluation.text_rule`; what a scorer accepts between actions of
different types is in :mod:`guieval.evaluation.leniencies`. Verdicts and alternatives belong to
:mod:`guieval.evaluation.evaluator`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from guieval import actions as act
from guieval.evaluation.click_rule import ClickRule, Polygon
from guieval.evaluation.judgement import Judgement, short
from guieval.evaluation.text_rule import TextRule
from guieval.steps import StepTaskModel

ScrollComparison: TypeAlias = Literal["direction", "axis", "type-only", "ui-s1-reward"]
StopComparison: TypeAlias = Literal["type", "status"]
PressComparison: TypeAlias = Literal["button", "type-only"]

_CONTAINMENT = TextRule()
_SWAP_VERTICAL = {"up": "down", "down": "up"}
_AXES: tuple[tuple[act.Direction, act.Direction], ...] = (("up", "down"), ("left", "right"))


@dataclass(frozen=True)
class ScrollRule:
    """Whether two scrolls agree.

    ``direction``: the finger's directions are equal. ``axis``: both are vertical or both horizontal. ``type-only``: any scroll
    agrees. ``ui-s1-reward``: the word in ``task.extras["direction_label"]``, else the reference's own direction, with up and
    down swapped, equals the predicted finger direction. The last is UI-S1's training matcher as released: right if the
    label states the content's direction, upside down if there is no label. It is kept so that its numbers can be reproduced.
    """

    compare: ScrollComparison = "direction"

    def expected(self, task: StepTaskModel, reference: act.Scroll) -> tuple[str, ...]:
        """The finger directions of which a prediction must have one."""
        match self.compare:
            case "type-only":
                return act.DIRECTIONS
            case "axis":
                return next(axis for axis in _AXES if reference.direction in axis)
            case "direction":
                return (reference.direction,)
            case "ui-s1-reward":
                label = task.extras.get("direction_label")
                word = label if isinstance(label, str) else reference.direction
                return (_SWAP_VERTICAL.get(word, word),)

    def judge(self, task: StepTaskModel, reference: act.Scroll, predicted: act.Scroll) -> Judgement:
        expected = self.expected(task, reference)
        if len(expected) == len(act.DIRECTIONS):
            return Judgement(True, True, None, None, "any scroll agrees")
        words = " or ".join(expected)
        if predicted.direction in expected:
            return Judgement(True, True, None, None, f"scrolled {predicted.direction} as the reference")
        return Judgement(True, False, None, None, f"scrolled {predicted.direction}, reference {words}")

    def describe(self) -> str:
        return {
            "direction": "the finger moves in the reference's direction (up, down, left or right)",
            "axis": "the finger moves along the reference's axis (vertical or horizontal), either way",
            "type-only": "any scroll agrees, whatever its direction",
            "ui-s1-reward": (
                "the finger moves in the direction the label names (the reference's own where there is no label), "
                "up and down swapped: without a label vertical scrolls are judged upside down, as in the released matcher"
            ),
        }[self.compare]


@dataclass(frozen=True)
class OpenRule:
    """Whether an app was opened: by its name, compared by ``text`` (``None``: by the step rules' text rule).

    With ``icon``, a click on a step that has targets or elements (the app's icons) also opens it when it hits by that rule,
    whose reference point is then the centre of the first of them; such a click matches in type even if it misses.
    """

    icon: ClickRule | None = None
    text: TextRule | None = None

    def icon_point(self, task: StepTaskModel) -> act.Point | None:
        """Where the icon is: the centre of the first target or element, in thousandths; ``None`` if a click opens nothing."""
        boxes = task.targets if len(task.targets) else task.elements
        return boxes[0].centre if self.icon is not None and len(boxes) else None

    def judge_icon(self, rule: ClickRule, task: StepTaskModel, icon: act.Point, predicted: act.Point) -> Judgement:
        """Judge a click in place of opening the app; there is no distance, because an app has no reference point."""
        judged = rule.judge(task.targets, task.elements, icon, predicted, screen=task.screenshot_size)
        return judged._replace(distance=None, reason=f"a click on the app's icon may open it: {judged.reason}")

    def describe(self) -> str:
        words = "the app's name by the text rule" if self.text is None else f"the app's name: {self.text.describe()}"
        if self.icon is not None:
            words += (
                "; where the step has targets or elements also a click, which is then of the right type, "
                f"{self.icon.describe()}, which is here the centre of the first box"
            )
        return words


class Leniency(Protocol):
    """Answers that a scorer accepts in addition to the ordinary comparison, as a small frozen value."""

    def concerns(self, reference: act.AnyType, predicted: act.AnyType) -> bool:
        """Whether :meth:`judge` may decide for actions of these types (as :meth:`StepRules.read` reads them)."""
        ...

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        """Decide for actions of types that it concerns; ``None`` leaves the decision to the rules that follow."""
        ...

    def describe(self) -> str: ...


@dataclass(frozen=True)
class StepRules:
    """One rule per action type. Types must be equal unless a rule sets otherwise; a wait has no other condition.

    ``click`` judges clicks and long presses. ``stop`` decides whether a stop must have the reference's status too, ``press``
    whether a press must have its button. With ``status_types`` and ``button_types`` each status and each button is a type of
    its own, so another one does not match in type. Under all rules, actions outside the unified space agree if name (any case)
    and arguments are equal. ``tap_limit`` is the longest predicted press, in milliseconds, that still is a tap and counts as
    a click; ``None`` takes every long press as one. A labelled press stays one however long it lasts, for labels say their
    type themselves (AgentCPM-GUI and GUIEvalKit). ``leniencies`` decide first, in order.
    """

    click: ClickRule
    text: TextRule = _CONTAINMENT
    scroll: ScrollRule = ScrollRule()
    open: OpenRule = OpenRule()
    stop: StopComparison = "type"
    tap_limit: float | None = None
    press: PressComparison = "button"
    button_types: bool = False
    status_types: bool = False
    leniencies: tuple[Leniency, ...] = ()

    def read(self, action: act.Action) -> act.Action:
        """A predicted action as these rules understand it: a long press within ``tap_limit`` is a click."""
        if self.tap_limit is not None and isinstance(action, act.LongPress) and action.duration <= self.tap_limit:
            return act.Click(point=action.point)
        return action

    def judge(self, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement:
        """Compare ``predicted`` with ``reference``, which is the step's own action or one of its alternatives."""
        expected, given = reference, self.read(predicted)
        if isinstance(given, act.Unsupported) and given.known is not None:
            return self._judge_type(expected, given)
        for leniency in self.leniencies:
            if leniency.concerns(expected.type, given.type):
                lenient = leniency.judge(self, task, expected, given)
                if lenient is not None:
                    return lenient
        if given.type != expected.type:
            if isinstance(expected, act.Open) and isinstance(given, act.Click) and self.open.icon is not None:
                icon = self.open.icon_point(task)
                if icon is not None:
                    return self.open.judge_icon(self.open.icon, task, icon, given.point)
            return Judgement(False, False, None, None, f"{given.type}, reference {expected.type}")
        if isinstance(expected, act.Click | act.LongPress):
            assert isinstance(given, act.Click | act.LongPress)
            return self.judge_point(task, expected.point, given.point)
        if isinstance(expected, act.Scroll):
            assert isinstance(given, act.Scroll)
            return self.scroll.judge(task, expected, given)
        if isinstance(expected, act.Type):
            assert isinstance(given, act.Type)
            return self.text.judge(expected.text, given.text, patterns_of(task))
        if isinstance(expected, act.Open):
            assert isinstance(given, act.Open)
            return self.app_text.judge(expected.app, given.app)
        if isinstance(expected, act.Press):
            assert isinstance(given, act.Press)
            return self._judge_press(expected, given)
        if isinstance(expected, act.Unsupported):
            assert isinstance(given, act.Unsupported)
            return _judge_unsupported(expected, given)
        if isinstance(expected, act.Stop):
            assert isinstance(given, act.Stop)
            if (self.stop == "status" or self.status_types) and given.status != expected.status:
                reason = f"stopped as {given.status}, reference {expected.status}"
                return Judgement(not self.status_types, False, None, None, reason)
        return Judgement(True, True, None, None, f"{given.type} as the reference")

    def judge_point(self, task: StepTaskModel, reference: act.Point, predicted: act.Point) -> Judgement:
        """Compare two points by the click rule."""
        polygon = polygon_of(task) if self.click.polygon else None
        return self.click.judge(task.targets, task.elements, reference, predicted, polygon, task.screenshot_size)

    @property
    def app_text(self) -> TextRule:
        return self.text if self.open.text is None else self.open.text

    def _judge_press(self, expected: act.Press, given: act.Press) -> Judgement:
        if given.button == expected.button:
            return Judgement(True, True, None, None, f"pressed {expected.button} as the reference")
        if self.press == "type-only" and not self.button_types:
            return Judgement(True, True, None, None, "any button agrees")
        return Judgement(not self.button_types, False, None, None, f"pressed {given.button}, reference {expected.button}")

    def _judge_type(self, expected: act.Action, given: act.Unsupported) -> Judgement:
        """Judge an action of which only the type is known: it is exact only if these rules look at nothing else."""
        if given.known != expected.type:
            return Judgement(False, False, None, None, f"{given.known}, reference {expected.type}")
        alone = {
            "SCROLL": self.scroll.compare == "type-only",
            "TYPE": self.text.compare == "type-only",
            "OPEN": self.app_text.compare == "type-only",
            "PRESS": self.press == "type-only" and not self.button_types,
            "STOP": self.stop == "type" and not self.status_types,
            "WAIT": True,
        }
        exact = alone.get(expected.type, False)
        own_types = (isinstance(expected, act.Press) and self.button_types) or (
            isinstance(expected, act.Stop) and self.status_types
        )
        reason = "any will do" if exact else given.problem or "its arguments are not known"
        return Judgement(not own_types, exact, None, None, f"{given.known} as the reference; {reason}")

    @property
    def deciding_type(self) -> Hashable:
        """The part of these rules that decides on an action of which only the type is known, as :meth:`deciding`."""
        kinds = self.text.compare, self.app_text.compare, self.scroll.compare
        return (*kinds, self.press, self.button_types, self.stop, self.status_types)

    def deciding(self, reference: act.AnyType, predicted: act.AnyType) -> Hashable:
        """The part of these rules that decides between actions of two types.

        If the deciding parts of two step rules are equal, their judgements are equal for every such pair on every step.
        """
        parts = tuple(self._deciding(reference, given) for given in self.readings(predicted))
        return parts if len(parts) == 1 else (self.tap_limit, parts)

    def readings(self, action: act.AnyType) -> tuple[act.AnyType, ...]:
        """The types that :meth:`read` may make of a predicted action of that type."""
        return ("LONG_PRESS", "CLICK") if action == "LONG_PRESS" and self.tap_limit is not None else (action,)

    def _deciding(self, expected: act.AnyType, given: act.AnyType) -> Hashable:
        if any(leniency.concerns(expected, given) for leniency in self.leniencies):
            return self  # a leniency may use any of the rules
        if expected != given:
            return self.open.icon if (expected, given) == ("OPEN", "CLICK") else None
        parts: dict[act.AnyType, Hashable] = {
            "CLICK": self.click,
            "LONG_PRESS": self.click,
            "SCROLL": self.scroll,
            "TYPE": self.text,
            "OPEN": self.app_text,
            "PRESS": (self.press, self.button_types),
            "STOP": (self.stop, self.status_types),
        }
        return parts.get(expected)

    def describe(self) -> str:
        """The rules in words, one line per action type."""
        stop = "the status is equal" if self.stop == "status" else "the type alone"
        if self.status_types:
            stop = "each status is a type of its own"
        press = "the button is equal" if self.press == "button" else "the type alone"
        if self.button_types:
            press = "each button is a type of its own"
        lines = [
            f"click, long press: {self.click.describe()}",
            f"scroll: {self.scroll.describe()}",
            f"type: {self.text.describe()}; or one of the step's text patterns matches the whole text",
            f"open: {self.open.describe()}",
            f"press: {press}",
            "wait, stop: the type alone" if stop == "the type alone" else f"wait: the type alone; stop: {stop}",
            "outside the unified space: name and arguments are equal",
        ]
        if self.tap_limit is not None:
            lines.append(f"a predicted long press of at most {self.tap_limit:g} ms is a click")
        return "\n".join([*lines, *(f"before these: {leniency.describe()}" for leniency in self.leniencies)])

    def describe_for(self, action: act.Action) -> str:
        """The rules in words that decide if an action of that type is the reference."""
        word = action.type.lower().replace("_", " ")
        own = re.compile(rf"(^|[,;] ){re.escape(word)}[,:]")
        outside = isinstance(action, act.Unsupported)
        lines = self.describe().splitlines()
        return "; ".join(
            line for line in lines if line.startswith("before these" if not outside else "outside") or own.search(line)
        )


def patterns_of(task: StepTaskModel) -> Sequence[str]:
    """The regular expressions of ``extras["text_patterns"]``, by which a step accepts more typed texts than its label."""
    patterns = task.extras.get("text_patterns")
    return [pattern for pattern in patterns if isinstance(pattern, str)] if isinstance(patterns, list | tuple) else ()


def polygon_of(task: StepTaskModel) -> Polygon | None:
    """The corners of ``extras["polygon"]``, [[x, y], ...] in [0, 1000]; ``None`` if there are fewer than three."""
    corners = task.extras.get("polygon")
    if not isinstance(corners, list | tuple) or len(corners) < 3:
        return None
    if not all(isinstance(corner, list | tuple) and len(corner) == 2 for corner in corners):
        return None
    if not all(isinstance(side, int | float) for corner in corners for side in corner):
        return None
    return tuple((float(x), float(y)) for x, y in corners)


def unsupported_key(action: act.Unsupported) -> tuple[str, str]:
    """Name and arguments of an action outside the unified space, in the form in which they are compared."""
    return action.name.casefold(), json.dumps(_canonical(action.arguments), sort_keys=True, ensure_ascii=False, default=repr)


def _canonical(value: Any) -> Any:
    """The value with keys as texts and whole floats as integers, which JSON does not distinguish either."""
    if isinstance(value, dict):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _judge_unsupported(expected: act.Unsupported, given: act.Unsupported) -> Judgement:
    (wanted, arguments), (name, own_arguments) = unsupported_key(expected), unsupported_key(given)
    if name != wanted:
        return Judgement(False, False, None, None, f"{short(given.name)}, reference {short(expected.name)}")
    if own_arguments != arguments:
        return Judgement(True, False, None, None, f"arguments {short(own_arguments)}, reference {short(arguments)}")
    return Judgement(True, True, None, None, f"{short(given.name)} as the reference")
