"""Runs over a choice of steps: what is requested, what the history shows of the rest, what is counted, and resuming."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Open, Press, Stop, Type, Wait
from guieval.data.selection import Choice
from guieval.errors import EngineError, UsageError
from guieval.journal import EPISODES, METRICS, STEPS, RunFolder
from guieval.models import Request
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import Episode
from tests.cli.test_cli_selection import write_set
from tests.running.scripted_runs import failing, lines_of, right
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, past_of, reply_with, run_scripted

EPISODE_LIST = [make_episode("a", ACTIONS), make_episode("b", ACTIONS), make_episode("c", ACTIONS[:2])]
CHOSEN = ["a#1", "a#3", "b"]
ASKED = {("a", 1), ("a", 3), ("b", 0), ("b", 1), ("b", 2), ("b", 3)}
HOME = Press(button="HOME")


@pytest.fixture
def chosen(tmp_path: Path) -> str:
    file = tmp_path / "chosen.txt"
    file.write_text("\n".join(CHOSEN))
    return str(file)


def asked(engine: ScriptedEngine) -> Counter[tuple[str, int]]:
    return Counter((request.task.episode_id, request.task.step_index) for request in engine.requests)


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_only_the_chosen_steps_are_asked_and_counted(tmp_path: Path, chosen: str, mode: str) -> None:
    engine = ScriptedEngine(right)
    outcome = run_scripted(tmp_path / "run", EPISODE_LIST, engine, mode=mode, episodes=chosen)
    assert asked(engine) == Counter(ASKED)
    summary = outcome.summary()
    assert (summary.verdicts.right, summary.verdicts.planned, summary.episodes) == (6, 6, 2) and summary.complete
    assert summary.success_rate.value == 1.0
    stored = outcome.summary(intervals=True)
    store_summary(tmp_path / "run", stored)
    assert evaluate_run(tmp_path / "run").summary == stored


def test_steps_that_do_not_count_are_written_as_in_the_reference(tmp_path: Path, chosen: str) -> None:
    """Even in modes whose history is the model's own: it was not asked there, so there is no answer of its own."""
    engine = ScriptedEngine(right)
    run_scripted(tmp_path / "run", EPISODE_LIST, engine, mode="soeval", episodes=chosen)
    result = {each.task.key[2:]: [past["origin"] for past in past_of(each)] for each in engine.requests}
    assert result["a", 1] == ["reference"]
    assert result["a", 3] == ["reference", "model", "reference"]
    assert result["b", 3] == ["model", "model", "model"]
    stored = {record.task.key[2:]: list(record.history) for record in RunFolder(tmp_path / "run").records}
    assert stored == result


def test_sop_stops_at_the_first_mismatch_among_the_steps_that_count(tmp_path: Path, chosen: str) -> None:
    engine = ScriptedEngine(lambda request: reply_with(HOME) if request.task.key[2:] == ("a", 1) else right(request))
    outcome = run_scripted(tmp_path / "run", EPISODE_LIST, engine, mode="sop", episodes=chosen)
    summary = outcome.summary()
    assert ("a", 3) not in asked(engine)
    assert (summary.verdicts.wrong, summary.verdicts.not_reached, summary.verdicts.right) == (1, 1, 4)
    assert summary.metrics["PG"].value == 0.5  # 0 of 2 steps, and 4 of 4


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_resuming_runs_what_is_left_with_the_same_history(tmp_path: Path, chosen: str, mode: str) -> None:
    clean = ScriptedEngine(right)
    run_scripted(tmp_path / "clean", EPISODE_LIST, clean, mode=mode, episodes=chosen)
    down = ScriptedEngine(failing(EngineError("down"), lambda request: request.task.key[2:] == ("a", 3)))
    run_scripted(tmp_path / "run", EPISODE_LIST, down, mode=mode, episodes=chosen)
    engine = ScriptedEngine(right)
    outcome = run_scripted(tmp_path / "run", EPISODE_LIST, engine, mode=mode, episodes=chosen, resume=True)
    assert asked(engine) == Counter({("a", 3): 1})
    inputs = {each.task.key: each.input for each in clean.requests}
    assert all(inputs[each.task.key] == each.input for each in engine.requests)
    assert outcome.summary().complete


def test_another_choice_is_another_run_but_a_moved_list_is_not(tmp_path: Path, chosen: str) -> None:
    run_scripted(tmp_path / "run", EPISODE_LIST, ScriptedEngine(right), episodes=chosen)
    moved = Path(chosen).rename(tmp_path / "moved.txt")
    run_scripted(tmp_path / "run", EPISODE_LIST, ScriptedEngine(right), episodes=str(moved), resume=True)
    moved.write_text("a#1\na#2\nb\n")
    with pytest.raises(UsageError, match="differs in benchmark fingerprint"):
        run_scripted(tmp_path / "run", EPISODE_LIST, ScriptedEngine(right), episodes=str(moved), resume=True)
    with pytest.raises(UsageError, match="differs in benchmark fingerprint"):
        run_scripted(tmp_path / "run", EPISODE_LIST, ScriptedEngine(right), resume=True)


def test_the_plan_is_stored_and_figures_name_their_steps(tmp_path: Path, chosen: str) -> None:
    outcome = run_scripted(tmp_path / "run", EPISODE_LIST, ScriptedEngine(right), episodes=chosen)
    first, second = json.loads((tmp_path / "run" / EPISODES).read_text())
    types = [action.type for action in ACTIONS]
    assert first == ["scripted", "", "a", 2, [1, 3], None, None, [types[1], types[3]]]
    assert second == ["scripted", "", "b", 4, None, None, None, types]
    read = {key: list(steps) for key, steps in RunFolder(tmp_path / "run").plan.items()}
    assert read == {key: list(steps) for key, steps in outcome.run.plan.items()}
    manifest = RunFolder(tmp_path / "run").manifest.to_json()
    assert manifest["selection"]["text"] == "all 2 episodes, as listed in chosen.txt"
    assert manifest["benchmark"]["steps"] == 6
    store_summary(tmp_path / "run", outcome.summary())
    selection = json.loads((tmp_path / "run" / METRICS).read_text())["selection"]
    text = "all 2 episodes, as listed in chosen.txt"
    assert selection == {"title": "episodes in chosen.txt", "text": text, "sample_set_sha256": None}


def test_a_run_from_before_selections_is_resumed_and_scored(tmp_path: Path) -> None:
    """Its manifest says nothing of a selection, and its configuration has none of the settings that came since."""
    run = tmp_path / "run"
    run_scripted(run, EPISODE_LIST, ScriptedEngine(right))
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["selection"]
    for name in ("split", "subset", "sample_set", "episodes", "skip_damaged", "overlay"):
        del manifest["config"]["data"][name]
    (run / "manifest.json").write_text(json.dumps(manifest))
    engine = ScriptedEngine(right)
    outcome = run_scripted(run, EPISODE_LIST, engine, resume=True)
    assert engine.requests == [] and outcome.summary().complete
    scored = evaluate_run(run)
    assert scored.summary.verdicts.right == 10 and scored.steps == "all episodes of the run (3)"


def test_a_run_is_scored_over_a_part_of_it(tmp_path: Path, chosen: str) -> None:
    run = tmp_path / "run"
    wrong = ScriptedEngine(lambda request: reply_with(HOME) if request.task.step_index == 2 else right(request))
    run_scripted(run, EPISODE_LIST, wrong)
    whole = evaluate_run(run)
    assert (whole.summary.exact_match.count, whole.summary.exact_match.n) == (8, 10)
    part = evaluate_run(run, choice=Choice(episodes=Path(chosen)))
    assert (part.summary.exact_match.count, part.summary.exact_match.n, part.summary.unplanned) == (5, 6, 0)
    assert part.steps == "all 2 episodes, as listed in chosen.txt, of a run over all 3 episodes of split test"
    assert part.summary.complete and part.summary.success_rate.count == 1
    assert part.label.splitlines()[-2] == "episodes in chosen.txt of split test"


@pytest.mark.parametrize("mode", ["offline", "sop"])
def test_an_unfinished_run_over_a_set_is_scored_over_that_set(tmp_path: Path, mode: str) -> None:
    """An episode without records is as long as the data state, though its last steps do not count."""

    file = write_set(tmp_path, {"a": 4, "b": 4}, without={"b": [2, 3]}, datasets=["scripted"])
    run, down = tmp_path / "run", ScriptedEngine(failing(EngineError("down"), lambda request: request.task.episode_id == "b"))
    run_scripted(run, EPISODE_LIST, down, mode=mode, sample_set=str(file))
    kept = [line for line in lines_of(run) if b'"episode_id":"b"' not in line]
    (run / STEPS).write_bytes(b"".join(kept))  # as a kill before episode b leaves it
    assert json.loads((run / EPISODES).read_text())[1] == ["scripted", "", "b", 2, None, None, 4, ["CLICK", "TYPE"]]
    scored = evaluate_run(run, choice=Choice(sample_set=str(file)))
    assert (scored.summary.verdicts.right, scored.summary.verdicts.not_run) == (4, 2)
    assert scored.summary == evaluate_run(run).summary


FIGURES_EPISODES = [make_episode(name, (Open(app="Clock"), CLICK, Type(text="tea"), Wait(), Stop())) for name in "abc"]


@pytest.mark.parametrize(("mode", "exact", "not_reached"), [("offline", (5, 8), 0), ("soeval", (5, 8), 0), ("sop", (3, 6), 2)])
def test_figures_over_chosen_steps_are_as_by_hand(tmp_path: Path, mode: str, exact: tuple[int, int], not_reached: int) -> None:
    """a: right, wrong, right; b: right, right, wrong; c: wrong, right. The last two of SOP's a and c are not reached."""
    listed = tmp_path / "listed.txt"
    listed.write_text("a#0\na#2\na#4\nb#0\nb#1\nb#4\nc#0\nc#2\n")
    wrong = {("a", 2), ("b", 4), ("c", 0)}

    def answer(request: Request) -> str:
        return reply_with(HOME) if request.task.key[2:] in wrong else right(request)

    outcome = run_scripted(tmp_path / "run", FIGURES_EPISODES, ScriptedEngine(answer), mode=mode, episodes=str(listed))
    summary = outcome.summary()
    assert (summary.exact_match.count, summary.exact_match.n) == exact
    assert (summary.verdicts.not_reached, summary.verdicts.planned) == (not_reached, 8)
    assert summary.progress.value == pytest.approx((1 / 3 + 2 / 3 + 0 / 2) / 3)
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (1 + 2 + 0, 8)
    assert (summary.success_rate.count, summary.success_rate.n) == (0, 3)
    bare = {name: summary.metrics[f"{name} without OPEN"] for name in ("exact match", "progress", "success rate")}
    if mode == "sop":
        assert summary.metrics["score"].value == pytest.approx((1 / 3 + 0) / 2)
        # the plan tells the types of steps that were not reached, too; c ended at its OPEN step, so its other one was not
        assert bare["progress"].value == pytest.approx((0 / 2 + 1 / 2 + 0 / 1) / 3)
        assert (bare["success rate"].count, bare["success rate"].n) == (0, 3)
    else:
        assert (bare["exact match"].count, bare["exact match"].n) == (3, 5)
        assert bare["progress"].value == pytest.approx((0 / 2 + 1 / 2 + 1 / 1) / 3)
        assert (bare["success rate"].count, bare["success rate"].n) == (1, 3)


def test_a_run_that_wrote_no_splits_down_is_scored_by_those_of_its_records(tmp_path: Path) -> None:
    """Earlier versions ran every split and stored four columns; a part of it must not be called another split's."""
    other = make_episode("v", ACTIONS)
    other = Episode(steps=tuple(step.model_copy(update={"split": "validation"}) for step in other.steps))
    run = tmp_path / "run"
    run_scripted(run, [*EPISODE_LIST, other], ScriptedEngine(right))
    rows = [row[:4] for row in json.loads((run / EPISODES).read_text())]
    (run / EPISODES).write_text(json.dumps(rows))
    test, validation = (evaluate_run(run, choice=Choice(split=split)).summary for split in ("test", "validation"))
    assert (test.episodes, validation.episodes) == (3, 1)


def test_a_part_of_chosen_steps_states_which_they_were_and_names_those_that_were_not_run(tmp_path: Path, chosen: str) -> None:
    """Its episodes are not whole, so a split of it is not all of that split's steps."""
    run = tmp_path / "run"
    run_scripted(run, EPISODE_LIST, ScriptedEngine(right), episodes=chosen)
    part = evaluate_run(run, choice=Choice(split="test"))
    assert part.summary.verdicts.planned == 6 and part.label.splitlines()[-2] == "split test of episodes in chosen.txt"
    assert part.steps == "all 2 episodes of split test, of a run over all 2 episodes, as listed in chosen.txt"
    more = tmp_path / "more.txt"
    more.write_text("a\nb\n")
    with pytest.raises(
        UsageError,
        match=r"does not hold 2 of the selected .* \(all 2 episodes, as listed in more\.txt\): scripted/a#0, scripted/a#2",
    ):
        evaluate_run(run, choice=Choice(episodes=more))
    with pytest.raises(UsageError, match="has no split 'train'"):
        evaluate_run(run, choice=Choice(split="train"))
