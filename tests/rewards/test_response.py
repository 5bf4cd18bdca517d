"""From a raw reply to its reward."""

from __future__ import annotations

from typing import Any

import pytest

from guieval.actions import Box, Boxes, Click, Point
from guieval.errors import UsageError
from guieval.registry import load_model
from guieval.rewards import HasThought, ResponseScorer, Tags, get_reward, open_scorer
from guieval.rewards.response import predicted_box
from tests.model_adapters.steps import step
from tests.rows import every_row

TASK = step(Click(point=Point(500.0, 500.0)), targets=Boxes([[450.0, 450.0, 550.0, 550.0]]), screenshot_size=(1000, 1000))


def test_a_scorer_by_names_reads_judges_and_weighs() -> None:
    scorer = open_scorer("ui-s1-7b", "ui-s1", protocol="guievalkit", type_weight=0.3)
    assert scorer.reward.evaluator.protocol.name == "guievalkit"
    scored = scorer.score(TASK, scorer.model.render(TASK, TASK.action, "tap it"))
    assert scored.measured and scored.sample.thought == "tap it" and scored.sample.action is not None
    assert scored.reward.outcome == scored.sample.outcome
    assert scored.reward.total == pytest.approx(0.9)
    assert scorer.score(TASK, "I do not know").reward.total == 0.0
    assert scorer.score(TASK, "I do not know").sample.outcome.verdict == "unparseable"
    for model, reward, nearest in (("ui-s1-7bb", "ui-s1", "ui-s1-7b"), ("ui-s1-7b", "ui-s", "ui-s1")):
        with pytest.raises(UsageError, match=f"did you mean '{nearest}'"):
            open_scorer(model, reward)


def test_the_form_may_be_another_than_the_rewards_own() -> None:
    model, text = load_model("ui-s1-7b"), '<action>\n{"action": "wait", "time": 1}\n</action>'
    reward = get_reward("ui-s1-lenient")
    assert ResponseScorer(model, reward).score(TASK, text).reward.parts["format"] == 1.0
    assert ResponseScorer(model, reward, HasThought()).score(TASK, text).reward.parts["format"] == 0.0
    assert ResponseScorer(model, reward, Tags("action")).score(TASK, text).reward.parts["format"] == 1.0


def test_an_adapters_own_failure_is_not_measured_and_earns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise KeyError("a bug")

    model = load_model("ui-s1-7b")
    monkeypatch.setattr(model, "parse_response", broken)
    scored = ResponseScorer(model, get_reward("ui-r1")).score(TASK, "<think>a</think><answer>b</answer>")
    assert not scored.measured
    assert scored.reward.outcome.verdict == "infrastructure_failure" and "a bug" in scored.reward.outcome.reason
    assert scored.reward.total == 0.0 and not any(scored.reward.parts.values())


@every_row(
    ("text", "box"),
    [
        ("[100, 200, 300, 400]", Box(100, 200, 300, 400)),
        ("(100,200),(300,400)", Box(100, 200, 300, 400)),
        ("<|box_start|>(100, 200), (300, 400)<|box_end|>", Box(100, 200, 300, 400)),
        ("first [1, 2, 3, 4], then [10.5, 20, 30, 40]", Box(10.5, 20, 30, 40)),
        ("[100, 200]", None),
        ("[300, 200, 100, 400]", None),  # turned round
        ("[100, 200, 300, 1400]", None),  # off the screen
        ("", None),
    ],
)
def test_a_predicted_box_is_the_replys_last_four_numbers_in_the_models_frame(text: str, box: Box | None) -> None:
    assert predicted_box(load_model("ui-tars-7b-dpo"), TASK, text) == box


def test_the_iou_reward_reads_boxes_from_replies() -> None:
    scorer = ResponseScorer(load_model("qwen2.5-vl-7b"), get_reward("ui-r1-iou"))
    grounding = TASK.model_copy(update={"setting": "grounding"})
    width, height = scorer.model.frame(grounding).extent(grounding.screenshot_size)
    corners = [round(share * side) for share, side in ((0.45, width), (0.45, height), (0.55, width), (0.55, height))]
    scored = scorer.score(grounding, f'[{{"bbox_2d": {corners}, "label": "button"}}]')
    assert isinstance(scored.sample.action, Click) and scored.reward.parts["iou"] == 1.0
    point = scorer.score(grounding, scorer.model.render(grounding, grounding.action))
    assert point.reward.outcome.exact_match and point.reward.parts["iou"] == 0.0
