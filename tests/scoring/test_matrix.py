"""One set of answers under every protocol: what the columns hold, and that each says in them what it says of a step."""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import (
    ACTION_TYPES,
    DIRECTIONS,
    Action,
    ActionSpace,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
)
from guieval.data.overlays import read_overlay
from guieval.data.sample_sets import get_sample_set, step_digest
from guieval.data.selection import Choice
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator, list_protocols
from guieval.exchange.importing import import_predictions
from guieval.journal import STEPS
from guieval.metrics.columns import ENDS, TYPES, RunColumns
from guieval.metrics.ledger import voted
from guieval.registry import load_benchmark
from guieval.scoring.matrix import ALL, agreeing, disagreements, disputed, judge_run, on_own_sets, protocols_for
from guieval.steps import StepRecord, StepTaskModel
from tests.evaluation.strategies import anything, tasks
from tests.made_runs import key, record, step, write_run
from tests.rows import every_row

TARGET = Click(point=Point(500, 500))
BOX = [[450.0, 450.0, 550.0, 550.0]]
MISS = Click(point=Point(900, 100))
NEAR_MISS = Click(point=Point(600, 500))
"""Within 0.14 of the screen of the target, outside its box."""


def target(episode: str = "a", index: int = 0, length: int = 1, **more: Any) -> StepTaskModel:
    return step(TARGET, episode=episode, index=index, length=length, targets=BOX, **more)


def ends_of(columns: RunColumns, protocol: str = "seeclick-official") -> list[str]:
    return [ENDS[end] for end in columns.judged[protocol].end.tolist()]


def check_against_the_evaluator(columns: RunColumns, answers: Iterable[tuple[StepTaskModel, Action | None]]) -> int:
    """Compare every cell with the one judge of a single step; how many were compared."""
    rows = {columns.key_of(row): row for row in range(len(columns))}
    evaluators = {name: ActionEvaluator(name) for name in columns.judged}
    compared = 0
    for task, action in answers:
        row = rows[task.key]
        for name, judged in columns.judged.items():
            message = evaluators[name].evaluate(task, action)
            distance, similarity = (
                None if math.isnan(each[row]) else each[row] for each in (judged.distance, judged.similarity)
            )
            found = (ENDS[judged.end[row]], distance, similarity)
            assert found == (message.verdict, message.distance, message.text_similarity), name
            assert (judged.type_match[row], judged.exact_match[row]) == (message.type_match, message.exact_match), name
            compared += 1
    return compared


@settings(max_examples=30)
@given(st.lists(st.tuples(tasks(), st.none() | anything, st.booleans()), min_size=1, max_size=6))
def test_every_protocol_states_of_random_steps_what_its_evaluator_states(
    drawn: list[tuple[StepTaskModel, Action | None, bool]],
) -> None:
    answers = [
        (task.model_copy(update={"episode_id": str(number)}), task.action if right else action)
        for number, (task, action, right) in enumerate(drawn)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "run", [record(task, action) for task, action in answers], benchmark="test")
        columns = judge_run(run, list_protocols()).columns()
    assert check_against_the_evaluator(columns, answers) == len(answers) * len(list_protocols())


def test_every_protocol_states_of_actions_of_known_type_what_its_evaluator_states(tmp_path: Path) -> None:
    references: list[Action] = [*ActionSpace().examples, Unsupported(name="zoom")]
    answers: list[tuple[StepTaskModel, Action]] = []
    for number, reference in enumerate(references):
        for known in ACTION_TYPES:
            alternatives = (Wait(),) if number % 3 == 0 else ()
            task = step(reference, episode=f"{number}-{known}", alternatives=alternatives)
            answers.append((task, Unsupported(name="call", known=known, problem="it has no argument")))
    columns = judge_run(write_run(tmp_path, [record(task, action) for task, action in answers]), list_protocols()).columns()
    assert check_against_the_evaluator(columns, answers) == len(answers) * len(list_protocols())


def perturbed(task: StepTaskModel, rng: random.Random) -> Action | None:
    """The label, more or less: a point moved, a text cut, another direction or button, another type, or nothing."""
    action, draw = task.action, rng.random()
    if draw < 0.04:
        return None
    if draw < 0.3:
        return action
    if draw < 0.4:
        others: list[Action] = [Wait(), Stop(), Press(button="BACK"), MISS, Type(text="a"), Unsupported(name="drag")]
        return rng.choice(others)
    if isinstance(action, Click | LongPress):
        x, y = (min(1000.0, max(0.0, rng.gauss(side, rng.choice((20, 60, 200))))) for side in action.point)
        return Click(point=Point(x, y)) if rng.random() < 0.9 else LongPress(point=Point(x, y))
    if isinstance(action, Scroll):
        return Scroll(point=action.point, direction=rng.choice(DIRECTIONS))
    if isinstance(action, Type):
        return Type(text=action.text[: rng.randint(0, len(action.text))].upper())
    if isinstance(action, Open):
        opened: list[Action] = [Open(app=action.app.split()[0]), Open(app="x"), Click(point=Point(500, 500))]
        return rng.choice(opened)
    return action


def test_every_protocol_states_of_real_steps_what_its_evaluator_states(shared_data: Path, tmp_path: Path) -> None:
    benchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    rng = random.Random(7)
    answers: list[tuple[StepTaskModel, Action | None]] = []
    for ref in rng.sample(benchmark.index(), 60):
        answers += [(task, perturbed(task, rng)) for task in benchmark.load(ref).steps]
    run = write_run(
        tmp_path / "run", [record(task, action) for task, action in answers], benchmark="androidcontrol", protocol="ui-s1-sop"
    )
    judged = judge_run(run, [ALL])
    assert judged.protocols[0] == "ui-s1-sop" and set(judged.protocols) == set(protocols_for("androidcontrol"))
    columns = judged.columns()
    assert check_against_the_evaluator(columns, answers) == len(answers) * len(judged.protocols)
    exact = {name: each.exact_match.mean() for name, each in columns.judged.items()}
    assert len(set(exact.values())) > 5  # the same answers, and the protocols do differ
    assert [task.key for task, _ in judged.again()] == [task.key for task, _ in answers]


def test_rows_are_the_plans_steps_whatever_is_recorded(tmp_path: Path) -> None:
    groups = {"app": "Maps"}
    records = [
        *[record(target("b", 1, 3, groups=groups), TARGET), record(target("a", 0, 2), None)],
        *[record(target("b", 0, 3), Unsupported(name="drag")), record(target("a", 1, 2)), record(target("z", 0, 1), TARGET)],
    ]
    run = write_run(tmp_path / "run", records, plan={key("a"): (0, 1), key("b"): (1, 2), key("c"): range(1)})
    judged = judge_run(run)
    columns = judged.columns()
    names = [f"made-up/{name}" for name in ("a#0", "a#1", "b#1", "b#2", "c#0")]
    assert [str(columns.key_of(row)) for row in range(len(columns))] == names
    assert ends_of(columns) == ["unparseable", "infrastructure_failure", "right", "not_run", "not_run"]
    assert columns.length.tolist() == [2, 2, 3, 3, 1]
    assert [TYPES[code] if code >= 0 else "" for code in columns.reference_type.tolist()] == ["CLICK"] * 3 + ["", ""]
    assert [TYPES[code] if code >= 0 else "" for code in columns.predicted_type.tolist()] == ["", "", "CLICK", "", ""]
    assert columns.samples.tolist() == [1, 0, 1, 0, 0]
    assert columns.groups == {"app": ["", "", "Maps", "", ""]}
    assert (columns.dataset, columns.mode, columns.model) == ("made-up", "offline", "made-up-model")
    foreign = "seeclick-official is written for screenspot, screenspot-v2, not for made-up"
    assert judged.notes == (foreign, "2 recorded steps outside the plan count nowhere")


def test_the_last_finished_record_of_a_step_counts(tmp_path: Path) -> None:
    task = target()
    cases: list[tuple[list[StepRecord], str]] = [
        ([record(task, TARGET), record(task, MISS)], "wrong"),
        ([record(task, MISS), record(task, TARGET)], "right"),
        ([record(task, TARGET), record(task)], "right"),
        ([record(task), record(task, None)], "unparseable"),
        ([record(task, TARGET), record(task, Type(text="x"))], "wrong"),
    ]
    for number, (records, expected) in enumerate(cases):
        judged = judge_run(write_run(tmp_path / str(number), records))
        assert ends_of(judged.columns()) == [expected]
        assert len(list(judged.again())) == 1
    half = StepRecord(task=task, samples=(record(task, MISS).sample, record(task).sample))
    columns = judge_run(write_run(tmp_path / "half", [record(task, TARGET, TARGET), half])).columns()
    assert ends_of(columns) == ["right"] and columns.samples.tolist() == [2]


def test_damaged_lines_are_noted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record(target(), TARGET)])
    with (run / STEPS).open("ab") as stream:
        stream.write(b'{"task": 1}\n{"torn')
    judged = judge_run(run)
    assert ends_of(judged.columns()) == ["right"]
    assert judged.notes[0] == f"line 2 of {run / STEPS} has no record and was passed over"


def test_each_protocol_ends_an_episode_at_its_own_first_mismatch(tmp_path: Path) -> None:
    records = [record(target("a", index, 4), action) for index, action in enumerate((TARGET, NEAR_MISS, MISS))]
    run = write_run(tmp_path / "run", records, mode="sop", protocol="guievalkit")
    columns = judge_run(run, ["seeclick-official", "guievalkit"]).columns()
    assert ends_of(columns) == ["right", "wrong", "not_reached", "not_reached"]
    assert ends_of(columns, "guievalkit") == ["right", "right", "wrong", "not_reached"]
    strict = columns.judged["seeclick-official"]
    assert strict.reached.tolist() == [True, True, False, False]
    assert np.isnan(strict.distance[2:]).all() and not strict.type_match[2:].any()
    assert disputed(columns).tolist() == [False, True, False, False]


def test_a_failed_request_hides_the_steps_after_it_but_ends_no_episode(tmp_path: Path) -> None:
    records = [record(target("a", 0, 3)), record(target("a", 2, 3), TARGET)]
    run = write_run(tmp_path, records, mode="sop")
    assert ends_of(judge_run(run).columns()) == ["infrastructure_failure", "not_run", "right"]


def test_covered_is_what_lies_in_both_action_spaces(tmp_path: Path) -> None:
    message: list[Action | None] = [TARGET, Press(button="RECENT"), Type(text="x"), None, Unsupported(name="drag")]
    records = [record(target("a", index, 6), action) for index, action in enumerate(message)] + [record(target("a", 5, 6))]
    mute = ActionSpace(types=frozenset({"CLICK", "PRESS"}), buttons=frozenset({"RECENT"}))
    columns = judge_run(write_run(tmp_path / "run", records, model_space=mute)).columns()
    assert columns.covered.tolist() == [True, False, False, False, False, False]


def test_elsewhere_is_a_point_in_a_box_that_does_not_hold_the_target(tmp_path: Path) -> None:
    boxes = [[450.0, 450.0, 550.0, 550.0], [600.0, 450.0, 700.0, 550.0], [0.0, 400.0, 1000.0, 600.0]]
    message: list[tuple[Action | None, bool]] = [
        (Click(point=Point(650, 500)), True),
        (Click(point=Point(600, 450)), True),  # borders included
        (Click(point=Point(599.9, 500)), False),  # in the bar alone, which holds the target too
        (TARGET, False),
        (LongPress(point=Point(650, 500)), True),
        (Scroll(point=Point(650, 500), direction="up"), False),
        (None, False),
    ]
    records = [
        record(step(TARGET, index=index, length=len(message) + 1, targets=boxes), action)
        for index, (action, _) in enumerate(message)
    ]
    columns = judge_run(write_run(tmp_path / "run", records)).columns()
    assert columns.elsewhere is not None
    assert columns.elsewhere.tolist() == [*(there for _, there in message), False]


def test_all_protocols_of_data_that_none_names_are_those_of_its_kind() -> None:
    pointing = ("seeclick-official", "sspro-official", "ui-r1-grounding")
    navigating = ("ui-s1-sop", "odyssey-v2", "agentcpm", "mind2web-element", "guievalkit")
    assert protocols_for("cagui") == list_protocols("cagui") and "agentcpm" in protocols_for("cagui")
    for name in ("os-kairos", "hypertrack"):
        found = protocols_for(name)
        assert set(navigating) <= set(found) and not set(pointing) & set(found)
    targets = protocols_for("some targets", "grounding")
    assert {*pointing, "guievalkit"} <= set(targets) and not {*navigating} - {"guievalkit"} & set(targets)
    assert protocols_for("screenspot-v2", "grounding") == list_protocols("screenspot-v2")


def test_several_samples_of_a_step(tmp_path: Path) -> None:
    task = target("a", 0, 1)
    failed = record(task).sample
    answers: list[tuple[list[Action | None], int, bool]] = [
        ([TARGET, MISS, Click(point=Point(510, 500))], 2, True),
        ([MISS, TARGET, Click(point=Point(890, 110))], 1, False),
        ([None, TARGET], 1, False),  # one each: the one that was given first
        ([TARGET, None, Unsupported(name="drag")], 1, True),
        ([MISS], 0, False),
    ]
    for number, (actions, exact, vote) in enumerate(answers):
        run = write_run(tmp_path / str(number), [record(task, *actions)])
        columns = judge_run(run).columns()
        judged = columns.judged["seeclick-official"]
        assert (columns.samples.tolist(), judged.exact_samples.tolist()) == ([len(actions)], [exact])
        assert judged.vote.tolist() == [vote], number
        assert judged.exact_match.tolist() == [actions[0] == TARGET]
    whole = record(task, MISS, TARGET, TARGET)
    run = write_run(tmp_path / "failed", [whole.model_copy(update={"samples": (*whole.samples, failed)})])
    columns = judge_run(run).columns()
    assert columns.samples.tolist() == [3] and columns.judged["seeclick-official"].exact_samples.tolist() == [2]
    assert columns.judged["seeclick-official"].vote.tolist() == [True]


@every_row(
    ("actions", "place"),
    [
        ([TARGET], 0),
        ([MISS, TARGET, Click(point=Point(540, 500))], 1),
        ([MISS, TARGET, Click(point=Point(540.1, 500))], 0),
        # a group is represented by its first action: the third is near the second only
        ([Click(point=Point(500, 500)), Click(point=Point(530, 500)), Click(point=Point(560, 500)), MISS], 0),
        ([Click(point=Point(500, 500)), LongPress(point=Point(500, 500)), LongPress(point=Point(501, 500))], 1),
        ([Type(text="a"), Type(text=" Tea"), Type(text="tea ")], 1),
        ([Open(app="tea"), Type(text="tea"), Type(text="tea")], 1),
        ([Open(app="a"), Open(app="MAPS"), Open(app="maps")], 1),
        ([Scroll(point=Point(0, 0), direction="up"), *[Scroll(point=Point(x, 0), direction="down") for x in (1, 900)]], 1),
        ([Press(button="BACK"), Press(button="HOME"), Press(button="HOME")], 1),
        ([Stop(), Stop(status="impossible"), Stop(status="impossible")], 1),
        ([TARGET, Wait(duration=1), Wait(duration=2)], 1),
        ([TARGET, None, None], 1),
        ([Unsupported(name="a"), Unsupported(name="b", arguments={"n": 1}), Unsupported(name="b", arguments={"n": 1})], 1),
        ([Type(text="a"), Type(text="b"), Type(text="b"), Type(text="a")], 0),
    ],
)
def test_the_vote(actions: Sequence[Action | None], place: int) -> None:
    assert voted(actions) == place


def test_a_part_of_a_run_and_a_part_that_it_does_not_hold(tmp_path: Path) -> None:
    records = [record(target(name, index, 2), TARGET) for name in "abc" for index in range(2)]
    run = write_run(tmp_path / "run", records, plan={key("a"): range(2), key("b"): (1,)})
    listed = tmp_path / "listed.txt"
    listed.write_text("b#1\n")
    columns = judge_run(run).columns(Choice(episodes=listed))
    assert [str(columns.key_of(row)) for row in range(len(columns))] == ["made-up/b#1"]
    assert "of a run over" in columns.selection and columns.groups == {}
    listed.write_text("b#0\n")
    with pytest.raises(UsageError, match="does not hold 1 of the selected"):
        judge_run(run).columns(Choice(episodes=listed))
    with pytest.raises(UsageError, match="unknown protocol 'seeclick'"):
        judge_run(run, ["seeclick"]).columns()
    with pytest.raises(UsageError, match="not a run directory"):
        judge_run(tmp_path).columns()


def test_an_overlay_accepts_more(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record(target(), MISS)])
    file = tmp_path / "overlay.jsonl"
    addition = {"episode_id": "a", "step_index": 0, "alternatives": [{"type": "CLICK", "point": [900, 100]}]}
    file.write_text(json.dumps({**addition, "targets": [[890, 90, 910, 110]]}) + "\n")
    assert ends_of(judge_run(run).columns()) == ["wrong"]
    assert ends_of(judge_run(run, overlay=read_overlay(file)).columns()) == ["right"]


def demo_predictions(folder: Path, leave_out: int = 0) -> tuple[Path, list[tuple[StepTaskModel, Action | None]]]:
    rng = random.Random(3)
    answers = [
        (task, perturbed(task, rng)) for episode in load_benchmark("demo", folder, episodes=4, seed=4) for task in episode.steps
    ]
    file = folder / "predictions.jsonl"
    lines = [
        task.model_dump(include={"subset", "episode_id", "step_index"})
        | {"action": None if action is None else action.model_dump(mode="json")}
        for task, action in answers[: len(answers) - leave_out]
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file, answers


DEMO = {"episodes": 4, "seed": 4}


def test_imported_predictions_are_scored_as_a_run_of_the_same_answers(tmp_path: Path) -> None:
    file, answers = demo_predictions(tmp_path)
    run = write_run(tmp_path / "run", [record(task, action) for task, action in answers], benchmark="demo")
    names = ["guievalkit", "onekey", "ui-s1-sop"]
    made = import_predictions(file, tmp_path / "made", bench="demo", data=tmp_path, bench_options=DEMO).directory
    predicted = judge_run(made, names).columns()
    ran = judge_run(run, names).columns()
    assert predicted.episodes == ran.episodes and predicted.groups == ran.groups
    for name in names:
        for field in ("end", "type_match", "exact_match", "distance", "similarity", "exact_samples", "vote"):
            one, other = (getattr(each.judged[name], field) for each in (predicted, ran))
            assert np.array_equal(one, other, equal_nan=field in ("distance", "similarity")), (name, field)
    assert check_against_the_evaluator(predicted, answers) == 3 * len(answers)


def test_a_step_that_was_not_predicted_is_missing_with_the_type_of_its_label(tmp_path: Path) -> None:
    file, answers = demo_predictions(tmp_path, leave_out=9)
    how: dict[str, Any] = {"bench": "demo", "data": tmp_path, "bench_options": DEMO}
    judged = judge_run(import_predictions(file, tmp_path / "made", **how).directory)
    columns = judged.columns()
    assert len(columns) == len(answers) and ends_of(columns, "guievalkit")[-9:] == ["not_run"] * 9
    assert [TYPES[code] for code in columns.reference_type.tolist()] == [task.action.type for task, _ in answers]
    assert len(list(judged.again())) == len(answers) - 9
    assert not judged.hold(judged.part(None).plan)
    part = judge_run(import_predictions(file, tmp_path / "part", answered_only=True, **how).directory).columns()
    assert len(part) == len(answers) - 9 and "that predictions.jsonl answers" in part.selection


def test_disagreements_tell_every_protocols_verdict_and_reason(tmp_path: Path) -> None:
    records = [record(target("a", index, 3), action) for index, action in enumerate((TARGET, NEAR_MISS, MISS))]
    judged = judge_run(write_run(tmp_path / "run", records), ["seeclick-official", "guievalkit", "sspro-official"])
    columns = judged.columns()
    (found,) = disagreements(columns, judged)
    assert (found.key.step_index, found.reference, found.prediction) == (1, TARGET, NEAR_MISS)
    assert found.verdicts == {"seeclick-official": "wrong", "guievalkit": "right", "sspro-official": "wrong"}
    assert found.reasons["seeclick-official"] == "outside every target box"
    assert "140 allowed" in found.reasons["guievalkit"]
    assert agreeing(columns) == [("seeclick-official", "sspro-official"), ("guievalkit",)]


def test_protocols_are_placed_on_their_own_sets_where_the_run_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AndroidControl's sets are as large as its test split, so the set here is one of the same form, with two episodes."""
    folder = tmp_path / "sample_sets"
    folder.mkdir()
    steps = {"a": 2, "b": 1}
    digest = step_digest({name: range(count) for name, count in steps.items()})
    values: dict[str, Any] = {"name": "ac-test-8444", "title": "A part", "datasets": ["androidcontrol"], "used_by": "a test"}
    values |= {"source": "a test", "episodes": 2, "steps": 3, "ids": steps, "sha256": digest}
    (folder / "ac-test-8444.json").write_text(json.dumps(values))
    monkeypatch.setattr("guieval.data.sample_sets.sample_sets_folder", lambda: folder)
    get_sample_set.cache_clear()
    made = {"a": 2, "b": 1, "c": 4}
    records = [
        record(target(name, index, length, dataset="androidcontrol"), TARGET)
        for name, length in made.items()
        for index in range(length)
    ]
    try:
        judged = judge_run(write_run(tmp_path / "run", records), ["ui-s1-sop", "guievalkit", "seeclick-official"])
        placed = {each.protocol.name: each for each in on_own_sets(judged)}
        found = {name: (each.held, len(each.columns)) for name, each in placed.items()}
        assert found == {"ui-s1-sop": (True, 3), "guievalkit": (False, 7), "seeclick-official": (False, 7)}
        assert placed["guievalkit"].sample_set is not None and placed["seeclick-official"].sample_set is None
        asked = on_own_sets(judged, Choice(subsets=("",)))
        assert [(each.held, len(each.columns)) for each in asked] == [(False, 7)] * 3
    finally:
        get_sample_set.cache_clear()
