"""Many answers at once are rewarded exactly as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, Box
from guieval.evaluation import ActionEvaluator, PredictionTable, Protocol, StepRules
from guieval.rewards import REWARDS, get_reward
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import anything, coordinate, step_rules
from tests.evaluation.strategies import tasks as any_tasks

from . import pairs

predicted_boxes = st.none() | st.tuples(coordinate, coordinate, coordinate, coordinate).map(
    lambda sides: Box(min(sides[0], sides[2]), min(sides[1], sides[3]), max(sides[0], sides[2]), max(sides[1], sides[3]))
)
answers = st.tuples(any_tasks(), st.none() | anything, st.booleans(), predicted_boxes)


def box_table(boxes: list[Box | None]) -> np.ndarray:
    return np.array([(np.nan,) * 4 if box is None else box for box in boxes], dtype=np.float64).reshape(-1, 4)


@pytest.mark.parametrize("name", list(REWARDS))
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(answers, max_size=6), rules=step_rules)
def test_under_any_rules_a_table_gives_the_single_rewards(
    name: str, rows: list[tuple[StepTaskModel, Action | None, bool, Box | None]], rules: StepRules
) -> None:
    kind = REWARDS[name]
    for protocol in (ActionEvaluator(kind.protocol).protocol, Protocol(name="p", source="s", summary="t", rules=rules)):
        reward = kind(ActionEvaluator(protocol))
        table = reward.of_table(
            reward.targets(task for task, *_ in rows),
            PredictionTable.from_actions(action for _, action, *_ in rows),
            np.array([well_formed for *_, well_formed, _ in rows], dtype=np.bool_),
            box_table([box for *_, box in rows]),
        )
        single = [reward.of(task, action, well_formed=formed, box=box).total for task, action, formed, box in rows]
        assert table.tolist() == pytest.approx(single, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", list(REWARDS))
@pytest.mark.parametrize("protocol", [None, "guievalkit", "gui-r1"])
def test_thousands_of_answers_agree(name: str, protocol: str | None) -> None:
    reward = get_reward(name, protocol=protocol)
    tasks = pairs.tasks(3000)
    actions, boxes = pairs.actions(3000, tasks), pairs.boxes_beside(tasks)
    well_formed = np.arange(3000) % 3 > 0
    table = reward.of_table(reward.targets(tasks), PredictionTable.from_actions(actions), well_formed, box_table(boxes))
    single = [
        reward.of(task, action, well_formed=bool(formed), box=box).total
        for task, action, formed, box in zip(tasks, actions, well_formed, boxes, strict=True)
    ]
    assert table.tolist() == pytest.approx(single, rel=1e-12, abs=1e-15)
    assert len(set(single)) > 2


def test_tables_of_unlike_length_are_refused() -> None:
    reward = get_reward("ui-s1")
    targets, predictions = reward.targets(pairs.tasks(2)), PredictionTable.from_actions([None, None])
    with pytest.raises(ValueError, match="2 steps"):
        reward.of_table(targets, predictions, np.ones(3, dtype=np.bool_))
    with pytest.raises(ValueError, match="boxes"):
        reward.of_table(targets, predictions, np.ones(2, dtype=np.bool_), np.zeros((1, 4)))
    assert reward.of_table(reward.targets([]), PredictionTable.from_actions([]), np.ones(0, dtype=np.bool_)).shape == (0,)
