"""The cases in which published aggregates part ways, each on the same answers: missing and unreadable steps, episodes of one
step, splits that overlap, several samples of a step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Open, Point
from guieval.evaluation import FailurePolicy, Figure, get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import FigureValue, compute, figures_of
from guieval.scoring.matrix import score_run
from tests.made_runs import key, record, step, write_run

TARGET = Click(point=Point(500, 500))
MISS = Click(point=Point(900, 100))
STEP_WEIGHTED = Figure("progress", "progress")
JUDGE = "seeclick-official"


def run_of(folder: Path, **episodes: list[Action | str | None]) -> RunColumns:
    """A run of clicks on one button; "missing" leaves no record of a step."""
    records = [
        record(step(TARGET, episode=name, index=index, length=len(message), boxes=[[450.0, 450.0, 550.0, 550.0]]), action)
        for name, message in episodes.items()
        for index, action in enumerate(message)
        if not isinstance(action, str)
    ]
    plan = {key(name): range(len(message)) for name, message in episodes.items()}
    return score_run(write_run(folder / "run", records, plan=plan), [JUDGE])


def found(figure: Figure, columns: RunColumns, policy: FailurePolicy) -> FigureValue:
    return compute(figure, policy, columns, columns.judged[JUDGE])


@pytest.mark.parametrize(
    ("policy", "exact", "progress", "weighted", "success"),
    [
        # steps: 1 - 1 | 1 1; the second one is missing
        (FailurePolicy(missing="wrong"), 4 / 5, (1 / 3 + 1) / 2, 3 / 5, 1 / 2),
        (FailurePolicy(missing="left-out"), 4 / 4, (2 / 2 + 1) / 2, 4 / 4, 2 / 2),  # AgentCPM: as if there were no such step
        (FailurePolicy(missing="zero"), 4 / 4, (0 / 2 + 1) / 2, 2 / 4, 1 / 2),  # GUIEvalKit: the gap takes the whole prefix
    ],
)
def test_09_a_missing_step_is_wrong_or_dropped_or_ends_the_episode_with_nothing(
    tmp_path: Path, policy: FailurePolicy, exact: float, progress: float, weighted: float, success: float
) -> None:
    columns = run_of(tmp_path, a=[TARGET, "missing", TARGET], b=[TARGET, TARGET])
    for figure, expected in (
        (EXACT_MATCH, exact),
        (PROGRESS, progress),
        (STEP_WEIGHTED, weighted),
        (SUCCESS_RATE, success),
    ):
        value = found(figure, columns, policy)
        assert value.value == pytest.approx(expected)
        assert value.strict == found(figure, columns, FailurePolicy()).value  # what is dropped never hides
        assert value.upper == (None if expected == 1.0 else 1.0)


def test_09_where_an_app_is_opened_first_guievalkits_progress_is_nothing(tmp_path: Path) -> None:
    records = [
        record(step(Open(app="Maps"), episode="a", index=0, length=2), Open(app="Maps")),
        record(step(TARGET, episode="a", index=1, length=2), TARGET),
        record(step(TARGET, episode="b", index=0, length=2), TARGET),
        record(step(TARGET, episode="b", index=1, length=2), MISS),
    ]
    run = write_run(tmp_path / "run", records)
    names = ["guievalkit", "guievalkit-intended"]
    columns = score_run(run, names)
    released, intended = ({figure.name: value for figure, value in figures_of(get_protocol(name), columns)} for name in names)
    assert released["TARGET_NOT_OPEN progress"].value == (0 + 1) / 3
    assert intended["step-weighted progress, without OPEN"].value == (1 + 1) / 3


def test_10_an_unreadable_reply_is_in_the_denominator_or_not(tmp_path: Path) -> None:
    columns = run_of(tmp_path, a=[TARGET, None, MISS, TARGET])
    inside, outside = (found(EXACT_MATCH, columns, FailurePolicy(unparseable=fate)) for fate in ("wrong", "left-out"))
    assert (inside.value, inside.n) == (2 / 4, 4)
    assert (outside.value, outside.n, outside.strict) == (2 / 3, 3, 2 / 4)


def test_16_episodes_of_one_step_move_the_success_rate_as_whole_episodes(tmp_path: Path) -> None:
    columns = run_of(tmp_path, a=[TARGET], b=[MISS], c=[TARGET, MISS, TARGET])
    assert found(SUCCESS_RATE, columns, FailurePolicy()).value == 1 / 3
    assert found(PROGRESS, columns, FailurePolicy()).value == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert found(STEP_WEIGHTED, columns, FailurePolicy()).value == 2 / 5
    assert found(Figure("score", "score"), columns, FailurePolicy()).value == pytest.approx(((4 / 3) / 3 + 1 / 3) / 2)


def test_16_a_prefix_of_exactly_one_step_counts_one(tmp_path: Path) -> None:
    columns = run_of(tmp_path, a=[TARGET, MISS], b=[MISS, TARGET])
    assert (found(STEP_WEIGHTED, columns, FailurePolicy()).count, found(SUCCESS_RATE, columns, FailurePolicy()).count) == (1, 0)


def test_17_the_order_of_overlapping_splits_decides_when_an_episode_counts_in_the_first_only(tmp_path: Path) -> None:
    """OS-Atlas puts an episode into the first of the lists that name it; listed the other way round, other numbers result."""
    lists = {"app unseen": {"a", "b"}, "task unseen": {"b", "c"}}
    columns = run_of(tmp_path, a=[TARGET, TARGET], b=[MISS, MISS], c=[TARGET, MISS])

    def mean_of_splits(order: list[str]) -> float | None:
        split = {name: next(each for each in order if name in lists[each]) for name in "abc"}
        values = [split[columns.key_of(row).episode_id] for row in range(len(columns))]
        figure = Figure("mean of splits", "exact", average="cells", keys=("split",))
        return found(figure, replace(columns, groups={"split": values}), FailurePolicy()).value

    assert mean_of_splits(["app unseen", "task unseen"]) == (2 / 4 + 1 / 2) / 2
    assert mean_of_splits(["task unseen", "app unseen"]) == (2 / 2 + 1 / 4) / 2


def test_18_of_several_samples_the_first_the_vote_the_mean_and_any_are_four_figures(tmp_path: Path) -> None:
    task = step(TARGET, boxes=[[450.0, 450.0, 550.0, 550.0]])
    answers: list[list[Action | None]] = [
        [TARGET, MISS, MISS, None],
        [MISS, TARGET, TARGET, MISS],
        [None, TARGET, TARGET, TARGET],
        [MISS, None, MISS, MISS],
    ]
    records = [record(task.model_copy(update={"episode_id": str(number)}), *actions) for number, actions in enumerate(answers)]
    columns = score_run(write_run(tmp_path / "run", records), [JUDGE])
    judged = columns.judged[JUDGE]
    assert found(EXACT_MATCH, columns, FailurePolicy()).value == judged.exact_match.mean() == 1 / 4
    assert judged.vote.tolist() == [False, False, True, False]  # two each: the one that was given first
    assert (judged.exact_samples / columns.samples).mean() == (1 / 4 + 2 / 4 + 3 / 4 + 0) / 4
    assert (judged.exact_samples > 0).mean() == 3 / 4
