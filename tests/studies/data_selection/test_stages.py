"""UI-R1's stages on runs whose right and wrong answers are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.steps import StepRecord
from guieval.studies.data_selection.candidates import Candidate, read_candidates
from guieval.studies.data_selection.stages import Quota, Recipe, Source, curate, get_preset, read_quota
from tests.made_runs import record, write_run
from tests.rows import every_row
from tests.studies.data_selection import made_answers as made
from tests.studies.data_selection.made_answers import BACK, OPEN, SCROLL, TARGET, TYPE, answer, control_run, target, trajectory

TABLE_5 = {"CLICK": 101, "SCROLL": 5, "TYPE": 2, "BACK": 9, "OPEN": 19}


def grounding_records(hard: int) -> list[StepRecord]:
    """``hard`` missed mobile targets of each element, and as many hit, and desktop ones that are missed."""
    mobile = [(f"{element}-{n}", element, n < hard) for element in ("icon", "text") for n in range(2 * hard)]
    records = [answer(target(name, element=element), right=not missed) for name, element, missed in mobile]
    return records + [answer(target(f"desktop-{n}", platform="desktop"), right=False) for n in range(5)]


def control_records(hard: int) -> list[StepRecord]:
    """``hard`` episodes with every step missed, then as many with every step matched."""
    episodes = [trajectory(f"e{episode:03}", made.EVERY) for episode in range(2 * hard)]
    return [answer(task, right=episode >= hard) for episode, tasks in enumerate(episodes) for task in tasks]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Candidate]:
    folder = tmp_path_factory.mktemp("curated")
    runs = [made.grounding_run(folder / "spot", grounding_records(60)), control_run(folder / "control", control_records(20))]
    return list(read_candidates(runs).steps)


def test_the_preset_gives_the_composition_of_table_5_and_a_reason_for_each_step(steps: list[Candidate]) -> None:
    curated = curate(steps, get_preset("ui-r1"))
    assert len(curated.chosen) == 136 and curated.composition == TABLE_5
    assert all(not each.step.exact_match for each in curated.chosen)
    clicks = [each.step for each in curated.chosen if each.step.type == "CLICK"]
    assert {step.groups["platform"] for step in clicks} == {"mobile"}, "clicks are ScreenSpot mobile's alone"
    assert Counter(step.groups["element"] for step in clicks) == {"icon": 51, "text": 50}
    assert {each.step.dataset for each in curated.chosen if each.step.type != "CLICK"} == {"androidcontrol"}
    # 240 mobile targets and 40 episodes of 7 steps without a click; half of both are hard; 20 WAIT and 20 LONG_PRESS of these
    assert curated.left == {"recorded": 565, "quality": 520, "difficulty": 260, "not rare": 220, "diversity": 136}
    back = next(each for each in curated.chosen if each.step.button == "BACK")
    assert list(back.why) == ["quality", "difficulty", "diversity"]
    assert back.why["quality"] == "no click, of androidcontrol"
    assert back.why["difficulty"].startswith("wrong under guievalkit in run control")
    assert back.why["diversity"] == "one of 9 for BACK, of 20 there were"


def test_a_selection_depends_on_the_seed_and_not_on_the_order_of_the_steps(steps: list[Candidate]) -> None:
    def names(some: list[Candidate], seed: int) -> set[str]:
        return {str(each.step.key) for each in curate(some, replace(get_preset("ui-r1"), seed=seed)).chosen}

    assert names(steps, 1) == names(steps[::-1], 1)
    assert names(steps, 1) != names(steps, 2)


def test_a_cell_with_too_few_steps_is_named_with_its_numbers(tmp_path: Path) -> None:
    runs = [made.grounding_run(tmp_path / "spot", grounding_records(60)), control_run(tmp_path / "control", control_records(7))]
    steps = read_candidates(runs).steps
    with pytest.raises(UsageError, match=r"too few steps to choose from: BACK 7 of 9, OPEN 7 of 19; --allow-fewer"):
        curate(steps, get_preset("ui-r1"))
    fewer = curate(steps, get_preset("ui-r1"), allow_fewer=True)
    assert fewer.composition == {**TABLE_5, "BACK": 7, "OPEN": 7}


def test_where_one_element_is_scarce_the_other_fills_up(tmp_path: Path) -> None:
    texts = [answer(target(f"t{n}", element="text"), right=False) for n in range(9)]
    icons = [answer(target(f"i{n}", element="icon"), right=False) for n in range(2)]
    steps = read_candidates([made.grounding_run(tmp_path / "spot", texts + icons)]).steps
    curated = curate(steps, Recipe(quotas=(Quota(6, "CLICK"),)))
    assert Counter(each.step.groups["element"] for each in curated.chosen) == {"text": 4, "icon": 2}


def test_a_step_that_nobody_answered_is_neither_hard_nor_lost_silently(tmp_path: Path) -> None:
    first, second, third, _ = trajectory("a", [SCROLL, BACK, OPEN, TYPE])
    run = control_run(tmp_path / "run", [answer(first, right=False), record(second), answer(third, right=True)])
    candidates = read_candidates([run])
    assert (candidates.unrecorded, candidates.unanswered) == (1, 2)
    assert [each.step.type for each in curate(candidates.steps, Recipe()).chosen] == ["SCROLL"]


def test_a_later_failure_replaces_no_answer(tmp_path: Path) -> None:
    first, *_ = trajectory("a", [SCROLL, BACK])
    run = control_run(tmp_path / "run", [answer(first, right=False), record(first)])
    assert [step.verdict for step in read_candidates([run]).steps] == ["wrong"]


def test_the_protocol_decides_what_is_hard(tmp_path: Path) -> None:
    """A click 20 thousandths outside the box: wrong for ScreenSpot's rule, near enough for one that takes a distance."""
    task = target("near").model_copy(update={"action": TARGET.model_copy(update={"point": (310.0, 200.0)})})
    run = made.grounding_run(tmp_path / "run", [answer(task, right=True)])
    assert [step.exact_match for step in read_candidates([run]).steps] == [False]
    assert [step.exact_match for step in read_candidates([run], "guievalkit").steps] == [True]


def test_the_last_record_of_a_step_counts_and_steps_outside_the_plan_do_not(tmp_path: Path) -> None:
    first, second = trajectory("a", [SCROLL, BACK])
    records = [answer(first, right=False), answer(second, right=False), answer(first, right=True)]
    run = write_run(tmp_path / "run", records, plan={first.episode_key: (0,)}, protocol="guievalkit")
    candidates = read_candidates([run])
    assert [(step.key.step_index, step.exact_match) for step in candidates.steps] == [(0, True)]
    assert candidates.unrecorded == 0


def test_two_runs_of_one_step_are_refused(tmp_path: Path) -> None:
    runs = [made.grounding_run(tmp_path / name, [answer(target("a"), right=False)]) for name in ("one", "two")]
    with pytest.raises(UsageError, match=r"both answer step screenspot/a#0"):
        read_candidates(runs)


@pytest.fixture
def reasoned(tmp_path: Path) -> list[Candidate]:
    """Missed clicks whose answers hold 10, 20, ... 60 characters of reasoning, and a hit one with 500."""
    records = [answer(target(f"t{n}"), right=False, thought="x" * 10 * n) for n in (3, 1, 6, 2, 5, 4)]
    records.append(answer(target("hit"), right=True, thought="x" * 500))
    return list(read_candidates([made.grounding_run(tmp_path / "run", records)]).steps)


def test_the_longest_reasoning_among_the_failed_comes_first(reasoned: list[Candidate]) -> None:
    top = curate(reasoned, Recipe(stages=("difficulty",), order="reasoning", top=3))
    assert sorted(each.step.reasoning_length for each in top.chosen) == [40, 50, 60]
    within = curate(reasoned, Recipe(quotas=(Quota(2, "CLICK"),), order="reasoning"))
    assert sorted(each.step.reasoning_length for each in within.chosen) == [50, 60]
    with pytest.raises(UsageError, match=r"any 6 of 7; --allow-fewer"):
        curate(reasoned, Recipe(order="reasoning", top=7))


def test_without_reasoning_there_is_nothing_to_sort_by(steps: list[Candidate]) -> None:
    with pytest.raises(UsageError, match="no answer of these steps has any reasoning"):
        curate(steps, Recipe(order="reasoning", top=3))


def test_each_stage_can_be_left_out(steps: list[Candidate]) -> None:
    assert len(curate(steps, Recipe(stages=("quality",))).chosen) == 525, "no click of the trajectories, desktop targets too"
    assert len(curate(steps, Recipe(stages=("difficulty",))).chosen) == 285
    assert {step.step.type for step in curate(steps, Recipe(stages=("diversity",))).chosen}.isdisjoint({"WAIT", "LONG_PRESS"})


def test_other_actions_can_be_kept_to_so_many_drawn_episodes(steps: list[Candidate]) -> None:
    recipe = Recipe(stages=("quality",), others=(Source("androidcontrol"),), other_episodes=3)
    drawn = {each.step.key.episode_id for each in curate(steps, recipe).chosen if each.step.type != "CLICK"}
    more = curate(steps, replace(recipe, other_episodes=6))
    assert len(drawn) == 3
    assert drawn < {each.step.key.episode_id for each in more.chosen if each.step.type != "CLICK"}


def test_a_quota_for_each_value_leaves_out_what_an_earlier_quota_took(steps: list[Candidate]) -> None:
    quotas = tuple(read_quota(text, ["element", "platform"]) for text in ("SCROLL=3", "CLICK+element=4", "action=2"))
    curated = curate(steps, Recipe(quotas=quotas))
    assert [(cell.key, cell.taken) for cell in curated.cells] == [
        *(("SCROLL", 3), ("CLICK+element:icon", 4), ("CLICK+element:text", 4)),
        *(("BACK", 2), ("HOME", 2), ("OPEN", 2), ("TYPE", 2)),
    ]


@every_row(
    ("text", "message"),
    [
        *(("SCROLL", "written KEY=N"), ("SCROLL=0", "N at least 1")),
        ("SCROL=3", r"'SCROL', which is neither an action nor a label of these steps \(did you mean 'SCROLL'\?\)"),
        *(("elemnt:icon=3", "nor a label of these steps"), ("SCROLL+BACK=3", "names the actions SCROLL and BACK")),
        ("SCROLL+action=3", "the action SCROLL and every action at once"),
    ],
)
def test_a_quota_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_quota(text, ["element"])


def test_unknown_names_in_a_recipe_are_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="unknown preset 'ui-r2'"):
        get_preset("ui-r2")
    with pytest.raises(UsageError, match="two quotas are given for 'BACK'"):
        Recipe(quotas=(Quota(1, "BACK"), Quota(2, "BACK")))
