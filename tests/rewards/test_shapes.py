"""The published rewards on cases worked out by hand, and DAPO's soft overlong punishment by its equation 13."""

from __future__ import annotations

import math
from typing import Any

import pytest

from guieval.actions import Action, Box, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import UsageError
from guieval.evaluation.click_rule import overlap
from guieval.registry import load_model
from guieval.rewards import REWARDS, ABCReward, Overlong, ResponseScorer, RewardParts, get_reward
from guieval.rewards.adapters.trl import reward_function
from guieval.rewards.step import RawResponse
from tests.conftest import REPOSITORY
from tests.model_adapters.steps import step
from tests.rows import every_row

CENTRE = Point(500.0, 500.0)
BOX = [400.0, 450.0, 600.0, 550.0]
"""200 wide and 100 high about the centre."""
CLICK = Click(point=CENTRE)
ON_BORDER, OUTSIDE = Click(point=Point(600, 550)), Click(point=Point(601, 550))


def clicking(**changes: Any) -> Any:
    return step(CLICK, **{"targets": Boxes([BOX]), **changes})


def best(reward: ABCReward) -> RewardParts:
    """What a click on the target earns, with its box, and in the words that are read without an adapter."""
    raw = RawResponse("<think>t</think><answer>[{'action': 'click', 'coordinate': [500, 500]}]</answer>", (1000.0, 1000.0))
    outcome = reward.evaluator.evaluate(clicking(), CLICK)
    return reward.grade(clicking(), CLICK, outcome, well_formed=True, box=Box(*BOX), raw=raw)


def total(name: str, task: Any, action: Action | None, *, well_formed: bool = True, **weights: Any) -> float:
    return get_reward(name, **weights).of(task, action, well_formed=well_formed).total


@every_row(
    ("action", "well_formed", "expected"),
    [
        (ON_BORDER, True, 3.0),  # R_T + R_C + R_F
        *[(ON_BORDER, False, 2.0), (OUTSIDE, True, 2.0), (Press(button="BACK"), True, 1.0), (None, True, 1.0)],
        *[(None, False, 0.0), (Unsupported(name="scroll"), True, 1.0)],
    ],
)
def test_ui_r1_adds_type_coordinate_and_format(action: Action | None, well_formed: bool, expected: float) -> None:
    assert total("ui-r1", clicking(), action, well_formed=well_formed) == expected


def test_ui_r1_asks_for_a_type_or_the_target_or_smallest_element_and_weights_are_fields() -> None:
    assert total("ui-r1", step(Type(text="coffee")), Type(text="tea")) == 3.0
    assert total("ui-r1", step(Scroll(point=CENTRE, direction="up")), Scroll(point=CENTRE, direction="left")) == 3.0
    assert total("ui-r1", step(Press(button="BACK")), Press(button="HOME")) == 1.0  # another button is another action
    # weights are fields
    assert total("ui-r1", clicking(), ON_BORDER, type_weight=0.5, coordinate_weight=2, format_weight=0.25) == 2.75
    assert get_reward("ui-s1").highest == pytest.approx(1.0)
    assert get_reward("hypertrack", params_weight=3).highest == 4.0
    # the target, or the smallest element around the label
    window = [0.0, 0.0, 1000.0, 1000.0]
    among = {"targets": Boxes(), "elements": Boxes([window, BOX])}
    assert total("ui-r1", clicking(**among), OUTSIDE) == 2.0
    assert total("ui-r1", clicking(**among), CLICK) == 3.0
    assert total("ui-r1", clicking(elements=Boxes([window])), OUTSIDE) == 2.0  # an element is no target
    assert total("ui-r1", clicking(targets=Boxes([window]), elements=Boxes([BOX])), OUTSIDE) == 3.0
    assert total("ui-r1", clicking(targets=Boxes()), CLICK) == 2.0  # no box, no coordinate


@every_row(
    ("box", "expected"),
    [
        (Box(*BOX), 1.0),
        (Box(400, 450, 600, 500), 0.0),  # half of it: 0.5 is not above 0.5
        (Box(400, 450, 600, 501), 1.0),
        (Box(700, 450, 900, 550), 0.0),
        (None, 0.0),  # a point is not a box, be it in the middle of the target
    ],
)
def test_the_iou_variant_compares_boxes(box: Box | None, expected: float) -> None:
    rewarded = get_reward("ui-r1-iou").of(clicking(), CLICK, well_formed=True, box=box)
    assert rewarded.parts["iou"] == expected
    assert rewarded.total == 2.0 + expected
    assert rewarded.outcome.exact_match  # the verdict is the protocol's, on the point


def test_the_iou_variant_leaves_other_actions_alone() -> None:
    reward = get_reward("ui-r1-iou")
    assert reward.of(step(Press(button="BACK")), Press(button="BACK"), well_formed=True).total == 3.0
    wrong_type = reward.of(step(LongPress(point=CENTRE), targets=Boxes([BOX])), CLICK, well_formed=True, box=Box(*BOX))
    assert wrong_type.parts["iou"] == 0.0
    assert overlap(Box(0, 0, 10, 10), Box(5, 5, 15, 15)) == pytest.approx(25 / 175)
    assert overlap(Box(0, 0, 10, 10), Box(20, 0, 30, 10)) == 0.0
    assert overlap(Box(3, 3, 3, 3), Box(3, 3, 3, 3)) == 0.0


@every_row(
    ("reference", "action", "expected"),
    [
        *[(CLICK, ON_BORDER, 2.0), (CLICK, OUTSIDE, 1.0), (CLICK, Wait(), 0.0)],
        (Scroll(point=CENTRE, direction="up"), Scroll(point=Point(1, 1), direction="up"), 2.0),
        (Scroll(point=CENTRE, direction="up"), Scroll(point=CENTRE, direction="down"), 1.0),
        (Type(text="Coffee"), Type(text="Coffee"), 2.0),
        (Type(text="Coffee"), Type(text="coffee"), 1.0),  # letter for letter
        *[(Type(text="Coffee"), Type(text="Coffee "), 1.0), (Type(text="Coffee"), Type(text=""), 1.0)],
        *[(Open(app="Maps"), Open(app="Maps"), 2.0), (Open(app="Maps"), Open(app="Google Maps"), 1.0), (Stop(), Stop(), 2.0)],
    ],
)
def test_hypertrack_adds_type_and_parameters(reference: Action, action: Action, expected: float) -> None:
    assert total("hypertrack", step(reference, targets=Boxes([BOX])), action, well_formed=False) == expected


def test_a_gaussian_has_half_the_boxes_sides_as_its_deviations() -> None:
    reward = get_reward("hypertrack-gaussian")

    def params(x: float, y: float, **changes: Any) -> float:
        return reward.of(clicking(**changes), Click(point=Point(x, y)), well_formed=True).parts["params"]

    assert params(500, 500) == 1.0
    assert params(600, 500) == pytest.approx(math.exp(-0.5))  # sx = 0.5 * 200: one deviation
    assert params(500, 550) == pytest.approx(math.exp(-0.5))  # sy = 0.5 * 100
    assert params(600, 550) == pytest.approx(math.exp(-1.0))
    assert params(700, 600) == pytest.approx(math.exp(-4.0))  # outside of the box there is still something
    wide = get_reward("hypertrack-gaussian", alpha=1.0).of(clicking(), Click(point=Point(700, 500)), well_formed=True)
    assert wide.parts["params"] == pytest.approx(math.exp(-0.5))
    assert params(500, 500, targets=Boxes()) == 0.0  # no box: binary, and the protocol asks for one


def test_a_gaussian_is_for_clicks_alone_takes_the_best_target_and_over_a_line_is_the_line() -> None:
    reward = get_reward("hypertrack-gaussian")
    assert reward.of(step(Type(text="a")), Type(text="b"), well_formed=True).parts["params"] == 0.0
    assert reward.of(clicking(), LongPress(point=CENTRE), well_formed=True).total == 0.0
    held = reward.of(step(LongPress(point=CENTRE), targets=Boxes([BOX])), LongPress(point=Point(600, 500)), well_formed=True)
    assert held.parts["params"] == 1.0  # a long press is judged by its box, not graded
    other = Click(point=Point(100, 100))
    task = clicking(alternatives=(other,), targets=Boxes([BOX, [50.0, 50.0, 150.0, 150.0]]))
    assert reward.of(task, other, well_formed=True).parts["params"] == 1.0
    line = clicking(targets=Boxes([[400.0, 500.0, 600.0, 500.0]]))
    assert reward.of(line, Click(point=Point(600, 500)), well_formed=True).parts["params"] == pytest.approx(math.exp(-0.5))
    assert reward.of(line, Click(point=Point(500, 501)), well_formed=True).parts["params"] == 0.0


@every_row(
    ("action", "well_formed", "expected"),
    [
        *[(CLICK, True, 1.0), (Click(point=Point(900, 900)), True, 0.5), (Wait(), True, 0.1), (None, True, 0.1)],
        (CLICK, False, 0.0),  # every later term is gated by the format
        (None, False, 0.0),
    ],
)
def test_ui_s1_gates_its_terms(action: Action | None, well_formed: bool, expected: float) -> None:
    assert total("ui-s1", clicking(), action, well_formed=well_formed) == pytest.approx(expected)


@every_row(
    ("action", "thought", "expected"),
    [
        (CLICK, True, 1.0),
        (CLICK, False, 0.9),  # not gated
        *[(Click(point=Point(900, 900)), True, 0.55), (Wait(), True, 0.19), (Wait(), False, 0.09)],
        *[(Unsupported(name="drag"), False, 0.0), (None, True, 0.1), (None, False, 0.0)],
    ],
)
def test_ui_s1_as_released_does_not(action: Action | None, thought: bool, expected: float) -> None:
    assert total("ui-s1-released", clicking(), action, well_formed=thought) == pytest.approx(expected)


def test_agentnet_fades_with_the_distance_and_unsupported_actions_count_where_accepted() -> None:
    def soft(reference: Action, action: Action | None, **changes: Any) -> float:
        return get_reward("agentnet").of(step(reference, **changes), action, well_formed=False).total

    assert soft(CLICK, Click(point=Point(514, 500))) == 1.0
    assert soft(CLICK, Click(point=Point(530, 540))) == pytest.approx(math.exp(-120 * (0.05 - 0.01 * math.sqrt(2))))
    assert soft(CLICK, OUTSIDE, targets=Boxes([[400.0, 450.0, 601.0, 550.0]])) == 1.0
    assert soft(CLICK, LongPress(point=CENTRE)) == 0.0
    assert soft(Type(text="abcdefghij"), Type(text="abcdefgh")) == 1.0  # 0.8 similar
    assert soft(Type(text="abcdefghij"), Type(text="abcd")) == pytest.approx(0.4 / 0.8)
    assert soft(Type(text="abc"), None) == 0.0
    assert soft(Stop(), Stop(status="impossible")) == 0.0
    # a text by the most similar accepted one
    task = step(Type(text="abcdefghij"), alternatives=(Type(text="vwxyz"), Type(text="vwxyzvwxyz")))
    reward, half = get_reward("agentnet"), Type(text="vwx")
    assert reward.of(task, half, well_formed=True).total == pytest.approx(0.6 / 0.8)
    # unsupported actions count where one is accepted
    drag = Unsupported(name="drag", arguments={"n": 1})
    assert total("ui-s1-released", step(drag), drag, well_formed=False) == pytest.approx(0.9)
    assert total("ui-s1", step(drag), Unsupported(name="drag")) == pytest.approx(0.5)


@every_row(
    ("arguments", "message"),
    [
        ({"name": "ui-s2"}, r"unknown reward 'ui-s2' \(did you mean 'ui-s1'\?\)"),
        ({"name": "ui-s1", "protocol": "guievalkitt"}, r"unknown protocol 'guievalkitt' \(did you mean 'guievalkit'\?\)"),
        ({"name": "ui-s1", "tipe_weight": 1.0}, r"has no weight 'tipe_weight' \(did you mean 'type_weight'\?\); it has: "),
        ({"name": "ui-s1", "type_weight": "much"}, "weight 'type_weight' of reward 'ui-s1' must be a number, got 'much'"),
        ({"name": "ui-s1", "evaluator": 1.0}, "has no weight 'evaluator'"),
        ({"name": "hypertrack-gaussian", "alpha": 0.0}, "alpha is 0.0"),
        ({"name": "agentnet", "similarity": 0.0}, "similarity is 0.0: expected more than 0"),
        ({"name": "agentnet", "decay": -1.0}, "decay is -1.0: expected 0 or more"),
        ({"name": "ui-r1-iou", "threshold": 1.0}, "threshold is 1.0: expected less than 1"),
    ],
)
def test_mistakes_are_reported_with_the_nearest_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_reward(**arguments)


@every_row("name", list(REWARDS))
def test_every_reward_states_what_it_is(name: str) -> None:
    reward = get_reward(name, protocol="guievalkit")
    result = reward.describe()
    assert result["name"] == name and result["protocol"] == "guievalkit" and result["source"]
    assert all(isinstance(value, float) for key, value in result.items() if key not in ("name", "protocol", "source"))
    assert best(reward).total == pytest.approx(reward.highest)


def test_the_page_on_rewards_states_every_name_part_and_protocol() -> None:
    page = (REPOSITORY / "docs" / "rewards.md").read_text(encoding="utf-8")
    result = {cells[1].strip(" `"): cells for line in page.splitlines() if len(cells := line.split("|")) == 7}
    for name, kind in REWARDS.items():
        parts = best(get_reward(name)).parts
        weighed = {part for part in parts if f"`{part}`" in result[name][3]}
        assert weighed >= parts.keys() - {"format", "type"} and weighed <= parts.keys(), name
        assert result[name][4].strip() == f"`{kind.protocol}`"


def test_the_papers_lengths_another_penalty_and_a_cache_that_is_the_whole_length() -> None:
    """16,384 expected tokens and a cache of 4,096: (16,384 - |y|) / 4,096 in between, -1 from 20,480 on."""
    worth = {0: 0.0, 16_384: 0.0, 16_385: -1 / 4_096, 17_408: -0.25, 18_432: -0.5, 20_480: -1.0, 30_000: -1.0}
    assert {tokens: Overlong(longest=20_480, cache=4_096).of(tokens) for tokens in worth} == worth
    assert Overlong(longest=4, cache=4, penalty=2.0).of(1) == -0.5
    assert [Overlong(longest=4, cache=1).of(tokens) for tokens in (3, 4)] == [0.0, -1.0]
    for cache, penalty in ((0, 1.0), (11, 1.0), (5, 0.0), (5, float("nan"))):
        with pytest.raises(UsageError, match=r"reward\.overlong"):
            Overlong(longest=10, cache=cache, penalty=penalty)


def test_a_long_reply_earns_less_and_the_log_has_the_punishment() -> None:
    task = step(Click(point=Point(500, 500)), targets=Boxes([[400.0, 400.0, 600.0, 600.0]]))
    scorer = ResponseScorer(load_model("tiny-policy"), get_reward("hypertrack"), overlong=Overlong(longest=10, cache=4))
    logged: dict[str, float] = {}
    rewards = reward_function(scorer)(
        completions=["click(500,500)"] * 3,
        completion_ids=[[0] * 6, [0] * 7, [0] * 10],
        task=[task.model_dump_json()] * 3,
        log_metric=lambda name, value: logged.update({name: value}),
    )
    assert rewards == [2.0, 1.75, 1.0]
    assert logged["hypertrack/overlong"] == pytest.approx(-1.25 / 3)
    assert scorer.score(task, "click(500,500)").reward.total == 2.0  # of an unknown length
