"""Answers that published scorers accept in addition to the ordinary comparison: small frozen values in a protocol's step rules.

Each decides for some pairs of action types and leaves all others to the ordinary comparison. They get actions as
:meth:`guieval.evaluation.rules.StepRules.read` reads them, so a predicted press that the rules take as a tap is a click here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from guieval import actions as act
from guieval.evaluation.click_rule import smallest_box
from guieval.evaluation.judgement import Judgement
from guieval.evaluation.rules import StepRules
from guieval.steps import StepTaskModel


class _Listed:
    """A leniency for listed pairs of action types, described by fixed words."""

    pairs: ClassVar[frozenset[tuple[act.AnyType, act.AnyType]]]
    """The types of the reference and of the prediction."""
    words: ClassVar[str]

    def concerns(self, reference: act.AnyType, predicted: act.AnyType) -> bool:
        return (reference, predicted) in self.pairs

    def describe(self) -> str:
        return self.words


class _Always(_Listed):
    """A leniency under which the listed pairs always match."""

    reason: ClassVar[str]

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        return _exact(self.reason.format(predicted=predicted.type, reference=reference.type))


def _exact(reason: str) -> Judgement:
    return Judgement(True, True, None, None, reason)


def _other_type(judged: Judgement, reference: act.Action, predicted: act.Action) -> Judgement | None:
    """An exact match without a type match, if the parameters of two actions of different types agree."""
    if not judged.exact_match:
        return None
    return judged._replace(type_match=False, reason=f"{predicted.type} in place of {reference.type}: {judged.reason}")


@dataclass(frozen=True)
class WaitIsStop(_Always):
    """Wait and stop are one type, and always match (AgentCPM-GUI, eval/utils/evaluator.py)."""

    pairs = frozenset({("WAIT", "WAIT"), ("WAIT", "STOP"), ("STOP", "WAIT"), ("STOP", "STOP")})
    words = "wait and stop are one type and match whatever else they say"
    reason = "{predicted} if {reference} is labelled: one type here"


@dataclass(frozen=True)
class LongPressIsClick:
    """A long press is a click: the labelled one (AgentCPM-GUI's data preparation makes taps of them), any (``both``), or a
    predicted one if a click is labelled (``prediction``; Mobi-Bench).

    With ``label`` alone a predicted long press never matches a step on which one was labelled.
    """

    side: Literal["label", "both", "prediction"] = "label"

    def concerns(self, reference: act.AnyType, predicted: act.AnyType) -> bool:
        if self.side == "prediction":
            return (reference, predicted) == ("CLICK", "LONG_PRESS")
        return reference == "LONG_PRESS" or (self.side == "both" and predicted == "LONG_PRESS")

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        return rules.judge(task, _tapped(reference), predicted if self.side == "label" else _tapped(predicted))

    def describe(self) -> str:
        return {
            "label": "a labelled long press is a click",
            "both": "every long press is a click",
            "prediction": "a long press is a click where a click is labelled",
        }[self.side]


def _tapped(action: act.Action) -> act.Action:
    return act.Click(point=action.point) if isinstance(action, act.LongPress) else action


@dataclass(frozen=True)
class NeverNamed(_Listed):
    """Opening an app and pressing a button never match (ScreenSuite at 8e85edb).

    The scorer takes the underscores out of a response's call and compares the rest with ``open_app`` and ``navigate_back``.
    """

    pairs = frozenset({("OPEN", "OPEN"), ("PRESS", "PRESS")})
    words = (
        "opening an app and pressing a button never match, because the names of these calls are compared without underscores"
    )

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        return Judgement(False, False, None, None, "a call's name without its underscores is not a name of the label's")


@dataclass(frozen=True)
class AnyLongPress(_Always):
    """If a long press is labelled, any long press is exact, wherever it is (GUI-R1, verl/utils/reward_score/r1gui.py)."""

    pairs = frozenset({("LONG_PRESS", "LONG_PRESS")})
    words = "any long press matches a labelled one, wherever it is"
    reason = "any long press agrees"


@dataclass(frozen=True)
class AnyPointedAction(_Listed):
    """If a click or long press is labelled, any action whose point hits is exact, though its type stays a mismatch.

    GUI-R1's evaluation (guir1/eval/eval_omni.py) looks at the predicted coordinate alone.
    """

    pairs = frozenset({("CLICK", "LONG_PRESS"), ("CLICK", "SCROLL"), ("LONG_PRESS", "CLICK"), ("LONG_PRESS", "SCROLL")})
    words = (
        "where a click or long press is labelled, a click, long press or scroll whose point hits is exact, "
        "though it is not a type match when its type differs"
    )

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        assert isinstance(reference, act.Click | act.LongPress) and isinstance(
            predicted, act.Click | act.LongPress | act.Scroll
        )
        return _other_type(rules.judge_point(task, reference.point, predicted.point), reference, predicted)


@dataclass(frozen=True)
class AnyWrittenAction(_Listed):
    """If a text or an app is labelled, typing or opening what agrees with it is exact, though its type stays a mismatch.

    GUI-R1's evaluation (guir1/eval/eval_omni.py) looks at the predicted text alone.
    """

    pairs = frozenset({("TYPE", "OPEN"), ("OPEN", "TYPE")})
    words = "where a text or an app is labelled, either one that agrees is exact, though it is not a type match"

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        """Exact without a type match if the texts agree by the rule of the labelled type."""
        rule = rules.text if isinstance(reference, act.Type) else rules.app_text
        return _other_type(rule.judge(_written(reference), _written(predicted)), reference, predicted)


def _written(action: act.Action) -> str:
    assert isinstance(action, act.Type | act.Open)
    return action.text if isinstance(action, act.Type) else action.app


@dataclass(frozen=True)
class ClickForType(_Always):
    """A click if typing is labelled, or the reverse, matches in type and exactly, wherever and whatever it is.

    MagicGUI, utils/eval/utils/evaluator_honor.py.
    """

    pairs = frozenset({("CLICK", "TYPE"), ("TYPE", "CLICK")})
    words = "any click matches where typing is labelled, and any typed text where a click is"
    reason = "{predicted} counts if {reference} is labelled"


@dataclass(frozen=True)
class CornerForPress(_Listed):
    """A click in the upper left ``share`` x ``share`` of the screen (border included) matches any labelled press.

    MagicGUI, utils/eval/utils/evaluator_honor.py.
    """

    share: float = 0.15
    pairs = frozenset({("PRESS", "CLICK")})

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        assert isinstance(reference, act.Press) and isinstance(predicted, act.Click)
        x, y = predicted.point
        if x / 1000.0 <= self.share and y / 1000.0 <= self.share:
            return _exact(f"a click in the upper left corner counts as pressing {reference.button}")
        return None

    def describe(self) -> str:
        return f"a click in the upper left {self.share:g} x {self.share:g} of the screen matches any labelled press"


@dataclass(frozen=True)
class RecentIsHome(_Listed):
    """A labelled RECENT is HOME, as the data preparation of AgentCPM-GUI and GUIEvalKit makes it for GUI-Odyssey.

    Their action space has no RECENT, so predicting it matches neither.
    """

    pairs = frozenset({("PRESS", "PRESS")})
    words = "a labelled press of RECENT is one of HOME"

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        if isinstance(reference, act.Press) and reference.button == "RECENT":
            return rules.judge(task, act.Press(button="HOME"), predicted)
        return None


@dataclass(frozen=True)
class DeviceActions(_Listed):
    """Mouse actions that Table 9 lacks match by their places, and keys pressed together as a set.

    A double click, right click or hover has to hit ``extras["unsupported_boxes"]`` by the click rule; so has the start of a
    drag, and its end ``extras["drag_end_boxes"]``. ``distance`` is the larger one of a drag's two. OpenCUA,
    evaluation/agentnetbench/eval.py, in which ``press`` and ``hotkey`` are two types; here they are one.
    """

    pairs = frozenset({("UNSUPPORTED", "UNSUPPORTED")})
    words = "double clicks, right clicks, hovers and drags match by the click rule at their places, keys as a set"

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        """Compare two device actions of one type; all others are left to the comparison of names and arguments."""
        assert isinstance(reference, act.Unsupported) and isinstance(predicted, act.Unsupported)
        match reference.device, predicted.device:
            case (
                (act.DoubleClick(), act.DoubleClick()) | (act.RightClick(), act.RightClick()) | (act.Hover(), act.Hover())
            ) as both:
                return self._at(rules, task, "unsupported_boxes", both[0].point, both[1].point)
            case act.Drag() as wanted, act.Drag() as given:
                if wanted.start is None or given.start is None:
                    return Judgement(True, False, None, None, "the drag has no start")
                start = self._at(rules, task, "unsupported_boxes", wanted.start, given.start)
                end = self._at(rules, task, "drag_end_boxes", wanted.end, given.end)
                worse = end if start.exact_match else start
                return worse._replace(distance=max(start.distance or 0.0, end.distance or 0.0))
            case act.Hotkey() as wanted, act.Hotkey() as given:
                equal = {key.lower() for key in wanted.keys} == {key.lower() for key in given.keys}
                reason = f"pressed {'+'.join(given.keys)}, reference {'+'.join(wanted.keys)}"
                return Judgement(True, equal, None, None, reason)
        return None

    def _at(self, rules: StepRules, task: StepTaskModel, name: str, reference: act.Point, predicted: act.Point) -> Judgement:
        targets = act.Boxes(task.extras.get(name, ()))
        return rules.click.judge(targets, act.Boxes(), reference, predicted, screen=task.screenshot_size)


@dataclass(frozen=True)
class NodeText(_Listed):
    """Clicking an element may stand for opening the app, or going back, that its text names, and the reverse.

    The element is the smallest of the step's that contains the clicked point; its text is the one at the same place in
    ``task.extras["box_texts"]``. UGround, offline_evaluation/AndroidControl/eval.py; if a click is labelled and an app is
    opened, that code asks the label for an app name it does not have, so any text does; here the opened app's name is asked
    for, as it is meant.
    """

    pairs = frozenset({("CLICK", "OPEN"), ("CLICK", "PRESS"), ("OPEN", "CLICK"), ("PRESS", "CLICK")})
    words = (
        "a click and opening an app match when the text of the smallest box around the click holds the app's name, "
        'and a click and BACK when it holds "back"'
    )

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        """Exact if the text of the clicked element contains the app's name, or "back" for BACK, in any case."""
        click, other = (reference, predicted) if isinstance(reference, act.Click) else (predicted, reference)
        assert isinstance(click, act.Click)
        if isinstance(other, act.Open):
            wanted = other.app.lower()
        elif isinstance(other, act.Press) and other.button == "BACK":
            wanted = "back"
        else:
            return None
        text = _text_at(task, click.point).lower()
        if text and wanted in text:
            return _exact(f"{predicted.type} counts where {reference.type} is labelled: the element's text names it")
        return None


def _text_at(task: StepTaskModel, point: act.Point) -> str:
    texts = task.extras.get("box_texts")
    index = smallest_box(task.elements, point)
    if index is None or not isinstance(texts, list | tuple) or index >= len(texts):
        return ""
    return texts[index] if isinstance(texts[index], str) else ""


@dataclass(frozen=True)
class PromptDirection(_Listed):
    """A scroll in the direction that the step's own prompt names, "Scroll up" or "Scroll down", is exact too.

    OS-Genesis, evaluation/android_control/ac_eval.py, whose directions are AndroidControl's: those of the content, so the
    finger moves the other way. The prompt is the goal and, if the setting is low, the step's instruction; case matters.
    """

    pairs = frozenset({("SCROLL", "SCROLL")})
    words = (
        'where the step\'s prompt says "Scroll up" or "Scroll down", scrolling the content that way is exact whatever '
        "the labelled direction"
    )

    def judge(self, rules: StepRules, task: StepTaskModel, reference: act.Action, predicted: act.Action) -> Judgement | None:
        assert isinstance(predicted, act.Scroll)
        word = act.OPPOSITE.get(predicted.direction)
        if word not in ("up", "down"):
            return None
        prompt = task.instruction
        if task.setting == "low" and task.low_level_instruction is not None:
            prompt = f"{prompt}\n{task.low_level_instruction}"
        return _exact(f'the prompt says "Scroll {word}"') if f"Scroll {word}" in prompt else None
