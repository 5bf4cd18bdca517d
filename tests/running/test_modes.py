"""Modes, by hand-made scripted models: what the history holds, when an episode stops, and closed forms on real lengths."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Action, Open, Press, Stop, Type, Wait
from guieval.data.selection import Choice
from guieval.errors import EngineError, UsageError
from guieval.history import describe
from guieval.history.modes import get_mode
from guieval.journal import EPISODES, METRICS, STEPS, RunFolder
from guieval.metrics.kinds import of_steps
from guieval.models import Request
from guieval.registry import load_benchmark
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import Episode
from tests.cli.test_cli_selection import write_set
from tests.running.scripted_runs import failing, lines_of, right
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, past_of, reply_with, run_scripted

WRONG = Press(button="HOME")


def right_except(*wrong: tuple[str, int]) -> ScriptedEngine:
    """Answers the reference with a thought of its own, but HOME at the given steps."""

    def policy(request: Request) -> str:
        task = request.task
        missed = (task.episode_id, task.step_index) in wrong
        return reply_with(WRONG if missed else task.action, f"my thought {task.step_index}")

    return ScriptedEngine(policy)


def by_step(engine: ScriptedEngine) -> dict[tuple[str, int], Request]:
    return {(request.task.episode_id, request.task.step_index): request for request in engine.requests}


def seen(action: Action, index: int, *, own: bool) -> dict[str, object]:
    """What a scripted prompt shows of one past step."""
    thought = f"my thought {index}" if own else None
    return {"origin": "model" if own else "reference", "thought": thought, "action": action.model_dump(mode="json")}


def test_offline_history_is_the_reference_at_every_step(tmp_path: Path) -> None:
    engine = right_except(("a", 1))
    outcome = run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="offline")
    for (_, index), request in by_step(engine).items():
        assert past_of(request) == [seen(ACTIONS[past], past, own=False) for past in range(index)]
    summary = of_steps(outcome.summary())
    assert (summary.metrics["exact match"].count, summary.metrics["exact match"].n) == (3, 4)
    assert all(set(record.history) <= {"reference"} for record in RunFolder(tmp_path / "run").records)


def test_soeval_history_is_the_models_own_exactly_where_it_was_right(tmp_path: Path) -> None:
    """Eq. 4 and 5: own thought and action at matched steps, the reference (and no thought) at the missed one."""
    engine = right_except(("a", 1), ("b", 0), ("b", 2))
    episodes = [make_episode("a", ACTIONS), make_episode("b", ACTIONS)]
    run_scripted(tmp_path / "run", episodes, engine, mode="soeval")
    own = {"a": [True, False, True], "b": [False, True, False]}
    for (episode, index), request in by_step(engine).items():
        assert past_of(request) == [seen(ACTIONS[past], past, own=own[episode][past]) for past in range(index)]
    for record in RunFolder(tmp_path / "run").records:
        expected = ["model" if own[record.task.episode_id][past] else "reference" for past in range(record.task.step_index)]
        assert list(record.history) == expected


def test_soeval_shows_the_models_action_not_the_label_where_both_are_right(tmp_path: Path) -> None:
    """A click elsewhere in the target is right; the history must hold where the model really clicked."""
    own = CLICK.model_copy(update={"point": CLICK.point._replace(x=505.0)})
    engine = ScriptedEngine(lambda request: reply_with(own if request.task.step_index == 0 else request.task.action, "t"))
    run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="soeval")
    past = past_of(by_step(engine)["a", 1])
    assert past == [{"origin": "model", "thought": "t", "action": own.model_dump(mode="json")}]


def test_an_answer_without_action_leaves_the_reference(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda request: reply_with(request.task.action) if request.task.step_index else "no action")
    outcome = run_scripted(tmp_path / "run", [make_episode("a", ACTIONS)], engine, mode="soeval")
    assert past_of(by_step(engine)["a", 1]) == [seen(ACTIONS[0], 0, own=False)]
    assert outcome.summary().verdicts.unparseable == 1


def test_sop_stops_at_the_first_mismatch_and_counts_as_by_hand(tmp_path: Path) -> None:
    """Lengths 4, 4, 4, 2; prefixes 4, 1, 0, 2: PG = (1 + 1/4 + 0 + 1) / 4, TSR = 2/4, Score = their mean."""
    engine = right_except(("b", 1), ("c", 0))
    episodes = [make_episode(name, ACTIONS) for name in "abc"] + [make_episode("d", (CLICK, Wait()))]
    outcome = run_scripted(tmp_path / "run", episodes, engine, mode="sop")
    asked = sorted((request.task.episode_id, request.task.step_index) for request in engine.requests)
    assert asked == [*[("a", n) for n in range(4)], ("b", 0), ("b", 1), ("c", 0), ("d", 0), ("d", 1)]
    assert past_of(by_step(engine)["b", 1]) == [seen(ACTIONS[0], 0, own=True)]
    summary = of_steps(outcome.summary())
    assert summary.metrics["PG"].value == pytest.approx((1 + 1 / 4 + 0 + 1) / 4)
    assert summary.metrics["TSR"].value == pytest.approx(2 / 4)
    assert summary.metrics["score"].value == pytest.approx(((1 + 1 / 4 + 0 + 1) / 4 + 2 / 4) / 2)
    assert summary.verdicts.not_reached == 2 + 3 and summary.complete


def chance(seed: int, request: Request) -> float:
    digest = hashlib.blake2b(f"{seed}|{request.task.key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@pytest.mark.parametrize("probability", [0.6, pytest.param(0.9, marks=pytest.mark.ci)])
def test_sop_of_a_random_policy_meets_its_closed_form(shared_data: Path, tmp_path: Path, probability: float) -> None:
    """E[PG] = mean over episodes of (1/t) sum_{k=1..t} p^k, E[TSR] = mean of p^t, over the 1,543 AndroidControl episodes."""
    benchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    episodes = list(benchmark)
    assert (len(episodes), sum(map(len, episodes))) == (1543, 8444)

    def policy(request: Request) -> str:
        right = chance(1, request) < probability
        wrong: Action = Wait() if request.task.action.type != "WAIT" else WRONG
        return reply_with(request.task.action if right else wrong)

    outcome = run_scripted(tmp_path / "run", episodes, ScriptedEngine(policy), mode="sop", concurrency=32)
    sop = outcome.summary().metrics
    pg, tsr = sop["PG"].value, sop["TSR"].value
    assert pg is not None and tsr is not None
    lengths = [len(episode) for episode in episodes]
    p = probability
    expected_pg = sum(sum(p**k for k in range(1, t + 1)) / t for t in lengths) / len(lengths)
    expected_tsr = sum(p**t for t in lengths) / len(lengths)
    # E[s^2] = sum_k (2k - 1) P(s >= k), so the variance of one episode's progress s / t is known exactly
    variances = [
        sum((2 * k - 1) * p**k for k in range(1, t + 1)) / t**2 - (sum(p**k for k in range(1, t + 1)) / t) ** 2 for t in lengths
    ]
    error_pg = sum(variances) ** 0.5 / len(lengths)
    error_tsr = sum(p**t * (1 - p**t) for t in lengths) ** 0.5 / len(lengths)
    assert abs(pg - expected_pg) < 4 * error_pg
    assert abs(tsr - expected_tsr) < 4 * error_tsr


def test_reference_text_of_a_step_is_its_instruction_or_a_plain_description(tmp_path: Path) -> None:
    assert get_mode("soeval").sequential and get_mode("sop").sequential and not get_mode("offline").sequential
    assert [describe(action) for action in ACTIONS] == ["Click at (500, 500).", "Type 'tea'.", "Swipe up.", "Finish the task."]


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
    summary = of_steps(outcome.summary())
    assert (summary.verdicts.right, summary.verdicts.planned, summary.episodes) == (6, 6, 2) and summary.complete
    assert summary.metrics["success rate"].value == 1.0
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
    summary = of_steps(outcome.summary())
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
    assert (whole.summary.metrics["exact match"].count, whole.summary.metrics["exact match"].n) == (8, 10)
    part = evaluate_run(run, choice=Choice(episodes=Path(chosen)))
    exact = part["exact match"]
    assert (exact.count, exact.n, of_steps(part.summary).unplanned) == (5, 6, 0)
    assert part.steps == "all 2 episodes, as listed in chosen.txt, of a run over all 3 episodes of split test"
    assert part.summary.complete and part.summary.metrics["success rate"].count == 1
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
    summary = of_steps(outcome.summary())
    assert (summary.metrics["exact match"].count, summary.metrics["exact match"].n) == exact
    assert (summary.verdicts.not_reached, summary.verdicts.planned) == (not_reached, 8)
    assert summary.progress.value == pytest.approx((1 / 3 + 2 / 3 + 0 / 2) / 3)
    assert (summary.metrics["step-weighted progress"].count, summary.metrics["step-weighted progress"].n) == (1 + 2 + 0, 8)
    assert (summary.metrics["success rate"].count, summary.metrics["success rate"].n) == (0, 3)
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
    test, validation = (evaluate_run(run, choice=Choice(split=split)) for split in ("test", "validation"))
    assert (test["success rate"].n, validation["success rate"].n) == (3, 1)


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
