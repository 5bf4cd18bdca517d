"""The published step rewards as weights over an evaluator's verdict, by name.

A reward adds only its shape to the verdict: a Gaussian around the target, an overlap of boxes, a score that decays with
distance. The protocol decides type match and exact match; any protocol may replace the default.
Weights are fields, and the defaults are the sources'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from guieval.actions import Action, Box, Click, Open, Point, Press, Type
from guieval.errors import UsageError, known_name, nearest
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.click_rule import overlap
from guieval.rewards.formats import FormatRule, HasThought, Parses, Tags, ThoughtAndAction
from guieval.rewards.step import ABCReward, RawResponse, clicked_boxes
from guieval.rewards.ui_r1 import action_reward, coordinate_reward
from guieval.steps import StepOutcome, StepTaskModel


@dataclass(frozen=True)
class UIR1Reward(ABCReward):
    """UI-R1: R = R_T + R_C + R_F (eq. 2): the action's type, the click's coordinate, the format of the response.

    R_C (``coordinate``) is 1 if a click is in the target's box (eq. 3). An action without a place earns it if its type is
    right, as in the released code: together that is the exact match of protocol ``ui-r1-reward``. R_F (``format``) requires
    ``<think>`` and ``<answer>``. The released code's own leniencies, on raw texts, are in :mod:`guieval.rewards.ui_r1`.
    """

    name: ClassVar[str] = "ui-r1"
    source: ClassVar[str] = "UI-R1 paper (arXiv 2503.21620), eq. 2 and 3"
    part: ClassVar[str] = "coordinate"
    protocol: ClassVar[str] = "ui-r1-reward"
    form: ClassVar[FormatRule] = Tags("think", "answer")

    type_weight: float = 1.0
    coordinate_weight: float = 1.0
    format_weight: float = 1.0


@dataclass(frozen=True)
class UIR1ReleasedReward(UIR1Reward):
    """UI-R1's reward as its released code gives it, on the raw response (:mod:`guieval.rewards.ui_r1`).

    The solution has the step's box in pixels of the screenshot, and zeros for a click without one. No adapter reads the
    response: only the released names of actions count, and nothing but the first ``<answer>``. The outcome with it is the
    protocol's, so ``type`` and ``coordinate`` may differ from it.
    """

    name: ClassVar[str] = "ui-r1-released"
    source: ClassVar[str] = "lll6gg/UI-R1, src/ui_r1/src/open_r1/grpo_json_action_coord.py"
    reads_text: ClassVar[bool] = True

    def _raw_parts(self, task: StepTaskModel, raw: RawResponse | None) -> dict[str, float]:
        if raw is None:
            return {"type": 0.0, "coordinate": 0.0}
        (width, height), (seen_width, seen_height) = task.screenshot_size, raw.extent
        corners = next((tuple(box) for box in clicked_boxes(task)), (0.0, 0.0, 0.0, 0.0))
        box = [round(side * extent / 1000.0) for side, extent in zip(corners, (width, height) * 2, strict=True)]
        # the names of actions in UI-R1's data, which are AndroidControl's
        name = {"TYPE": "input_text", "OPEN": "open_app"}.get(task.action.type, task.action.type.lower())
        name = f"navigate_{task.action.button.lower()}" if isinstance(task.action, Press) else name
        solution = f"<answer>{[{'action': name, 'coordinate': box}]}</answer>"
        scale = width / seen_width, height / seen_height
        return {"type": action_reward(raw.text, solution), "coordinate": coordinate_reward(raw.text, solution, scale)}


@dataclass(frozen=True)
class UIR1IoUReward(ABCReward):
    """UI-R1's ablation (section 4.4): R_IoU takes the place of R_C, 1 if IoU with the target's box is above ``threshold``.

    The predicted box is four numbers in the response (:func:`guieval.rewards.response.predicted_box`), because a unified click
    is only a point. ``iou`` is 0 for a click whose response has no box, wherever its point is, for a step without a target box
    and for a click of the wrong type; for every other action it is the protocol's exact match.
    """

    name: ClassVar[str] = "ui-r1-iou"
    source: ClassVar[str] = "UI-R1 paper (arXiv 2503.21620), section 4.4"
    part: ClassVar[str] = "iou"
    protocol: ClassVar[str] = "ui-r1-reward"
    form: ClassVar[FormatRule] = Tags("think", "answer")
    reads_boxes: ClassVar[bool] = True

    type_weight: float = 1.0
    iou_weight: float = 1.0
    format_weight: float = 1.0
    threshold: Annotated[float, Field(ge=0, lt=1)] = 0.5

    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        if not isinstance(self.as_read(task, action), Click):
            return super()._parts(task, action, outcome, box)
        hit = (
            outcome.type_match and box is not None and any(overlap(box, each) > self.threshold for each in clicked_boxes(task))
        )
        return {"iou": float(hit)}


@dataclass(frozen=True)
class HyperTrackReward(ABCReward):
    """HyperTrack's binary reward: R = R_action-type + R_params (GUIEvalKit paper, eq. 1).

    R_params (``params``) is the exact match of protocol ``hypertrack-reward``: a click in the target's box, a scroll in its
    direction, texts and app names letter for letter. The format of a response does not count (``format_weight`` 0).
    """

    name: ClassVar[str] = "hypertrack"
    source: ClassVar[str] = "HyperTrack / GUIEvalKit paper (arXiv 2605.27134), section 2.2, eq. 1"
    part: ClassVar[str] = "params"
    protocol: ClassVar[str] = "hypertrack-reward"
    form: ClassVar[FormatRule] = Parses()

    type_weight: float = 1.0
    params_weight: float = 1.0
    format_weight: float = 0.0


@dataclass(frozen=True)
class HyperTrackGaussianReward(HyperTrackReward):
    """The same with a Gaussian for clicks (GUIEvalKit paper, appendix A.3, after GUI-G²'s point reward).

    R_params of a click that answers a click is exp(-½ ((x - cx)² / sx² + (y - cy)² / sy²)) about the centre of the target's
    box, sx = ``alpha`` x its width and sy = ``alpha`` x its height; of several accepted clicks the highest counts. GUIEvalKit
    does not publish its alpha; 0.5 is GUI-G²'s. If no accepted click has a box, and for all other actions, R_params stays
    binary. The verdict stays the protocol's, so ``params`` may be above 0 if a click is judged wrong.
    """

    name: ClassVar[str] = "hypertrack-gaussian"
    source: ClassVar[str] = "HyperTrack / GUIEvalKit paper (arXiv 2605.27134), appendix A.3; GUI-G² (arXiv 2507.15846)"

    alpha: Annotated[float, Field(gt=0)] = 0.5

    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        click = self.as_read(task, action)
        boxes = clicked_boxes(task) if isinstance(click, Click) and outcome.type_match else []
        if not isinstance(click, Click) or not boxes:
            return super()._parts(task, action, outcome, box)
        return {"params": max(self.gaussian(click.point, each) for each in boxes)}

    def gaussian(self, point: Point, box: Box) -> float:
        """The height of the Gaussian at ``point``, in (0, 1]; on an axis without extent only the centre itself counts."""
        centre, total = box.centre, 0.0
        for away, side in ((point.x - centre.x, box.x2 - box.x1), (point.y - centre.y, box.y2 - box.y1)):
            if sigma := self.alpha * side:
                total += (away / sigma) * (away / sigma)
            elif away:
                return 0.0
        return float(np.exp(-0.5 * total))


@dataclass(frozen=True)
class UIS1Reward(ABCReward):
    """UI-S1's composite: 0.1 format + 0.4 [format] type + 0.5 [format and type] exact (eq. 8).

    Parts are the evaluator's; gates only affect the total. A response with the wrong format earns nothing, whatever its action.
    The format is that of the paper's appendix H: a thought, one action, nothing else. The paper's r_acc is an "exact action
    match": protocol ``ui-s1-reward`` compares texts, app names and statuses letter for letter, white space around them aside
    (the released matcher strips it however strict it is), and takes the click rule from ``qwen-gist``, on which that is based.
    """

    name: ClassVar[str] = "ui-s1"
    source: ClassVar[str] = "UI-S1 paper (arXiv 2509.11543), section 3.4, eq. 8, and appendix H"
    part: ClassVar[str] = "exact"
    protocol: ClassVar[str] = "ui-s1-reward"
    form: ClassVar[FormatRule] = ThoughtAndAction()

    format_weight: float = 0.1
    type_weight: float = 0.4
    exact_weight: float = 0.5

    def _weigh(self, parts: Mapping[str, float]) -> float:
        form, gated = parts["format"], parts["format"] * parts["type"]
        return self.format_weight * form + self.type_weight * gated + self.exact_weight * gated * parts["exact"]


@dataclass(frozen=True)
class UIS1LenientReward(UIS1Reward):
    """UI-S1's composite for responses of any family: any response that the adapter reads is well formed, with or without a
    thought.

    The protocol is ``qwen-gist``, under which a text is right if it contains the other or is contained in it, as is an empty
    text.
    """

    name: ClassVar[str] = "ui-s1-lenient"
    source: ClassVar[str] = "UI-S1 paper (arXiv 2509.11543), section 3.4, eq. 8, with any form and contained texts"
    protocol: ClassVar[str] = "qwen-gist"
    form: ClassVar[FormatRule] = Parses()


@dataclass(frozen=True)
class UIS1ReleasedReward(ABCReward):
    """UI-S1's reward as its released code gives it: 0.1 for a thought + 0.9 times the action's score, not gated by the form.

    The score is 0 for a response without a comparable action, 0.1 (``parsed_score``) for any other, 0.5 (``type_score``) for
    the right type and 1 for an exact match, by the released training matcher (protocol ``ui-s1-reward-match``, which judges
    vertical scrolls upside down if the data has no direction label). Its labels HARMFUL and NEUTRAL of single steps are left
    out because no published data has them.
    """

    name: ClassVar[str] = "ui-s1-released"
    source: ClassVar[str] = "X-PLUG/MobileAgent, UI-S1/verl/utils/reward_score"
    protocol: ClassVar[str] = "ui-s1-reward-match"
    form: ClassVar[FormatRule] = HasThought()

    format_weight: float = 0.1
    action_weight: float = 0.9
    parsed_score: float = 0.1
    type_score: float = 0.5

    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        parsed = outcome.verdict not in ("unparseable", "unsupported", "infrastructure_failure")
        return {"parsed": float(parsed), "exact": float(outcome.exact_match)}

    def _weigh(self, parts: Mapping[str, float]) -> float:
        # An exact match under another action's type (some protocols know such) counts in full as well.
        exact, wrong = parts["exact"], 1.0 - parts["exact"]
        partly = self.parsed_score * parts["parsed"] * (1.0 - parts["type"]) + self.type_score * parts["type"]
        return self.format_weight * parts["format"] + self.action_weight * (exact + wrong * partly)


@dataclass(frozen=True)
class AgentNetReward(ABCReward):
    """AgentNetBench's marks: full ones for a right answer, some for a place that misses or a text that differs.

    ``soft`` is 1 for an exact match; of a place that misses exp(-``decay`` (d - ``reach``)) at a distance of d screens; of a
    text its similarity / ``similarity``, by the most similar of several accepted ones; else 0. Both need the right type. Unlike
    there, a right wait or horizontal scroll has full marks too. ``type_weight`` and ``format_weight`` are 0 because
    the benchmark scores nothing else.
    """

    name: ClassVar[str] = "agentnet"
    source: ClassVar[str] = "OpenCUA paper; xlang-ai/OpenCUA, evaluation/agentnetbench/eval.py"
    protocol: ClassVar[str] = "agentnetbench-v2"
    form: ClassVar[FormatRule] = Parses()

    soft_weight: float = 1.0
    type_weight: float = 0.0
    format_weight: float = 0.0
    decay: Annotated[float, Field(ge=0)] = 120.0
    reach: Annotated[float, Field(ge=0)] = 0.01 * math.sqrt(2.0)
    similarity: Annotated[float, Field(gt=0)] = 0.8

    def _parts(self, task: StepTaskModel, action: Action | None, outcome: StepOutcome, box: Box | None) -> dict[str, float]:
        soft = float(outcome.exact_match)
        if outcome.type_match and not outcome.exact_match:
            if outcome.distance is not None:
                soft = float(np.exp(-self.decay * max(outcome.distance / 1000.0 - self.reach, 0.0)))
            elif isinstance(action, Type | Open):
                soft = self._by_text(task, action)
        return {"soft": soft}

    def _by_text(self, task: StepTaskModel, action: Action) -> float:
        # Not the outcome's similarity: among texts with the same verdict that is the similarity to the first accepted one.
        rules = self.evaluator.protocol.rules_for(task.dataset)
        judged = (rules.judge(task, accepted, action) for accepted in (task.action, *task.alternatives))
        similar = (each.text_similarity for each in judged if each.type_match and each.text_similarity is not None)
        return min(1.0, max(similar, default=0.0) / self.similarity)


REWARDS: dict[str, type[ABCReward]] = {
    reward.name: reward
    for reward in (
        UIR1Reward,
        UIR1ReleasedReward,
        UIR1IoUReward,
        HyperTrackReward,
        HyperTrackGaussianReward,
        UIS1Reward,
        UIS1LenientReward,
        UIS1ReleasedReward,
        AgentNetReward,
    )
}
"""Every reward by its name."""


def get_reward(name: str, *, protocol: str | None = None, **weights: float) -> ABCReward:
    """The reward called ``name``, judged under ``protocol`` (default: its own), with ``weights`` in place of the published.

    Raises :class:`UsageError` naming the nearest one for an unknown reward, protocol or weight, and for a weight that is not a
    number.
    """
    return weighed(name, protocol, weights)


def weighed(name: str, protocol: str | None, weights: Mapping[str, Any]) -> ABCReward:
    """As :func:`get_reward`, with unchecked weights as users write them: any name and any value."""
    kind = REWARDS[known_name("reward", name, REWARDS)]
    known = [each.name for each in fields(kind) if each.default is not MISSING]
    values: dict[str, Any] = {}
    for weight, value in weights.items():
        if weight not in known:
            raise UsageError(f"reward {name!r} has no weight {weight!r}{nearest(weight, known)}; it has: {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UsageError(f"weight {weight!r} of reward {name!r} must be a number, got {value!r}")
        values[weight] = float(value)
    return kind(ActionEvaluator(kind.protocol if protocol is None else protocol), **values)
