"""Mixed histories: the draws, the operator psi, the artifacts, and runs under them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Action, Click, Point, Unsupported
from guieval.errors import GuievalError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.mixing import Artifact, Artifacts, Diversities, Mix, Mixture, read_mix
from guieval.journal import STEPS, RunFolder
from guieval.models import ModelConfig, Request
from guieval.running.history_artifacts import read_artifacts, read_diversities
from guieval.running.outcome import RunOutcome
from guieval.settings import RunConfig
from guieval.steps import Episode, EpisodeKey, Sample, StepKey, StepOutcome, StepRecord
from tests.made_runs import record, step, write_run
from tests.rows import every_row
from tests.scripted import ACTIONS, ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, past_of, reply_with, runner_of

EVALUATOR = ActionEvaluator("guievalkit")
RIGHT, WRONG = Click(point=Point(500.0, 500.0)), Click(point=Point(20.0, 900.0))
EPISODES = [make_episode(name, ACTIONS * 2) for name in "abcdef"]


def of_all(episodes: list[Episode], *, but: int | None = None) -> Artifacts:
    """An artifact of every step but those with one index, whose thought names the step."""
    tasks = [task for episode in episodes for task in episode.steps if task.step_index != but]
    steps = {task.key: Artifact(task.action, f"own {task.episode_id}{task.step_index}", None, None) for task in tasks}
    return Artifacts(Path("made"), "scripted", "scripted", steps, "0123")


def key(name: str) -> EpisodeKey:
    return EpisodeKey("scripted", "", name)


def test_a_past_step_is_the_models_own_where_it_is_drawn_and_was_exact_else_the_references() -> None:
    past = EPISODES[0].steps[:6]
    shown = Mixture(Mix(start=1.0), of_all(EPISODES, but=2)).history(past)
    assert [entry.origin for entry in shown] == ["model", "model", "reference", "model", "model", "model"]
    assert [entry.thought for entry in shown] == ["own a0", "own a1", None, "own a3", "own a4", "own a5"]
    assert [entry.task for entry in shown] == list(past) and [entry.action for entry in shown] == [each.action for each in past]
    never = Mixture(Mix(start=0.0), of_all(EPISODES)).history(past)
    assert {entry.origin for entry in never} == {"reference"} and never[2].conclusion == "do part 2"
    assert Mixture(Mix(start=1.0), of_all(EPISODES)).history(()) == ()


def test_draws_follow_the_schedules_probabilities() -> None:
    mixture = Mixture(Mix(start=0.1, end=0.9, mean=0.4), of_all([]))
    drawn = np.array([mixture.draws(key(str(number)), 8, 30) for number in range(3000)])
    wanted = mixture.mix.schedule.probabilities(8)
    assert np.all(np.abs(drawn.mean(axis=0) - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / 3000))
    assert np.abs(np.corrcoef(drawn.T) - np.eye(8)).max() < 0.08  # steps are drawn apart


@given(st.integers(0, 5), st.floats(0, 1), st.text(max_size=5), st.integers(1, 20), st.integers(0, 20))
def test_under_a_stationary_schedule_what_was_drawn_stays_drawn(seed: int, p: float, name: str, length: int, more: int) -> None:
    mix = Mix(start=p, shape="constant", seed=seed)
    early = Mixture(mix, of_all([])).draws(key(name), length, 50)
    late = Mixture(mix, of_all([])).draws(key(name), length + more, 50)
    assert late[:length].tolist() == early.tolist()


def test_other_seeds_settings_repeats_and_episodes_draw_again() -> None:
    mixes = [Mix(start=0.5), Mix(start=0.5, seed=1), Mix(start=0.5, repeat=1), Mix(start=0.5, shape="constant")]
    drawn = [tuple(Mixture(mix, of_all([])).draws(key("a"), 64, 65).tolist()) for mix in mixes]
    drawn.append(tuple(Mixture(mixes[0], of_all([])).draws(key("b"), 64, 65).tolist()))
    assert len(set(drawn)) == 5


def test_over_the_episode_a_step_has_the_probability_of_its_place_in_it() -> None:
    mix = Mix(start=0.0, end=1.0, shape="linear", over="episode")
    assert Mixture(mix, of_all([])).probabilities(key("a"), 10, 11).tolist() == pytest.approx([n / 10 for n in range(1, 11)])


def diverse(*steps: int, episodes: str = "a", sha256: str = "89ab") -> Diversities:
    """1 nat at some steps of each episode, and 0.5 at its others."""
    found = {StepKey(*key(name), step): 1.0 if step in steps else 0.5 for name in episodes for step in range(10)}
    return Diversities(Path("made"), found, sha256)


def test_near_diverse_decisions_up_to_the_current_step_p_is_another_and_the_draws_are_else_the_same() -> None:
    """By hand: 1 and 5 are diverse, so 0 to 2 are near and, once 5 is the current step, 4 to 6."""
    mixture = Mixture(Mix(start=0.2, near=0.9), of_all([]), diverse(1, 5, episodes="abcdefghijkl"))
    before, after = [0.9, 0.9, 0.9, 0.2], [0.9, 0.9, 0.9, 0.2, 0.9, 0.9, 0.9, 0.2]
    for length, expected in ((0, []), (1, [0.9]), (3, before[:3]), (4, before), (5, after[:5]), (6, after[:6]), (8, after)):
        assert mixture.probabilities(key("a"), length, 12).tolist() == expected, length
    later = Mixture(Mix(start=0.2, near=0.9, within=3), of_all([]), diverse(4))
    assert later.probabilities(key("a"), 3, 12).tolist() == [0.2] * 3
    assert later.probabilities(key("b"), 5, 12).tolist() == [0.2] * 5
    plain = Mixture(Mix(start=0.2), of_all([]))
    more = np.array([mixture.draws(key(name), 8, 12) ^ plain.draws(key(name), 8, 12) for name in "abcdefghijkl"]).sum(axis=0)
    assert (more > 0).tolist() == [each == 0.9 for each in after]


def line(benchmark: str, diversity: float | None, model: str = "m") -> str:
    named = {"model": model, "benchmark": benchmark, "subset": "", "episode_id": "a", "step_index": 0}
    return json.dumps({**named, "diversity": diversity, "n": 8}) + "\n"


@every_row(
    ("text", "message"),
    [
        *((".", "line 1: is not JSON"), ('{"model": "m"}', "line 1, field benchmark: is missing")),
        *(
            (line("b", -1), "line 1, field diversity: expected 0 or more"),
            (line("b", 1) * 2, "line 2: has the step b/a#0 again"),
        ),
        *((line("c", 1), r"no decisions of benchmark 'b' \(it has .* c\)"), ("", "has no decisions of benchmark 'b'$")),
        (line("b", 1, "other"), "are of model 'other', not of 'm'"),
    ],
)
def test_a_file_of_decisions_that_does_not_fit_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "steps.jsonl").write_text(text)
    with pytest.raises(GuievalError, match=message):
        read_diversities(tmp_path / "steps.jsonl", "m", "b")


@every_row(
    ("values", "message"),
    [
        *(({"star": 0.5}, "'mix.star' .did you mean 'start'"), ({}, "'mix.start' is required")),
        *(({"start": 1.5}, "'mix.start' is 1.5"), ({"start": 0.0, "end": 1.0, "mean": 0.99}, "the mean is 0.99")),
        *(({"start": 0.0, "over": "run"}, "'mix.over' is 'run'"), ({"start": 0.0, "within": 2}, "'mix': within and above")),
    ],
)
def test_an_impossible_setting_is_reported(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_mix(values)


def answered(action: Action | None, thought: str) -> Sample:
    return Sample(raw_response=f"<{thought}>", thought=thought, action=action, outcome=StepOutcome(verdict="wrong"))


def sampled(index: int, *samples: Sample) -> StepRecord:
    task = step(RIGHT, index=index, length=3, targets=((480.0, 480.0, 520.0, 520.0),))
    return StepRecord(task=task, samples=samples)


def place(index: int) -> StepKey:
    return StepKey("made-up", "", "a", index)


def test_the_first_exact_sample_of_a_step_is_its_artifact(tmp_path: Path) -> None:
    records = [
        sampled(0, answered(WRONG, "one"), answered(RIGHT, "two"), answered(RIGHT, "three")),
        record(sampled(0, answered(RIGHT, "x")).task),  # one without an answer does not undo one that has it
        sampled(1, answered(WRONG, "one"), answered(None, "two"), answered(Unsupported(name="zoom"), "three")),
        sampled(2, answered(RIGHT, "old")),
        sampled(2, answered(WRONG, "again")),  # the answer that counts is no longer exact
    ]
    found = read_artifacts(write_run(tmp_path / "run", records), EVALUATOR)
    assert dict(found.steps) == {place(0): Artifact(RIGHT, "two", None, "<two>")}
    entry = found.entry(records[0].task)
    assert entry is not None and (entry.origin, entry.thought, entry.raw_response) == ("model", "two", "<two>")
    assert found.entry(records[2].task) is None


def test_a_seeded_choice_takes_every_exact_sample_equally_often_and_the_same_again(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    run = write_run(tmp_path / "run", [sampled(0, answered(WRONG, "x"), *(answered(RIGHT, name) for name in names))])
    taken = [read_artifacts(run, EVALUATOR, pick="seeded", seed=seed) for seed in range(200)]
    thoughts = [str(each.steps[place(0)].thought) for each in taken]
    assert all(30 <= thoughts.count(name) <= 75 for name in names), [thoughts.count(name) for name in names]
    assert thoughts[7] == read_artifacts(run, EVALUATOR, pick="seeded", seed=7).steps[place(0)].thought
    assert len({each.sha256 for each in taken}) == 4  # the fingerprint tells what was taken


def test_the_rounds_of_a_rollout_are_one_pool(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [sampled(0, answered(WRONG, "x")), sampled(1, answered(RIGHT, "first"))])
    write_run(tmp_path / "two", [sampled(0, answered(RIGHT, "second")), sampled(1, answered(RIGHT, "late"))])
    rounds = [{"directory": "one", "seed": 1}, {"directory": "two", "seed": 2}]
    (tmp_path / "rollout.json").write_text(json.dumps({"rounds": rounds}))
    found = read_artifacts(tmp_path, EVALUATOR)
    assert {key.step_index: artifact.thought for key, artifact in found.steps.items()} == {0: "second", 1: "first"}


def test_runs_without_an_exact_answer_have_no_artifacts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no response that is an exact match under 'guievalkit'"):
        read_artifacts(write_run(tmp_path / "run", [sampled(0, answered(WRONG, "x"))]), EVALUATOR)
    with pytest.raises(UsageError, match="not a run directory"):
        read_artifacts(tmp_path / "nowhere", EVALUATOR)


MIX = {"start": 0.2, "end": 0.8, "mean": 0.5, "seed": 3}


def right(request: Request) -> str:
    return reply_with(request.task.action)


def mixed(
    directory: Path,
    engine: ScriptedEngine,
    artifacts: Artifacts | None,
    resume: bool = False,
    many: int = 8,
    diversities: Diversities | None = None,
    **mix: object,
) -> RunOutcome:
    config = RunConfig(model="scripted", bench="scripted", mix={**MIX, **mix}, mix_artifacts="made" if artifacts else None)
    model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
    mixture = None if artifacts is None else Mixture(read_mix(config.history.mix), artifacts, diversities)
    run = runner_of(config, directory, ListBenchmark(EPISODES), model, engine, many, mixture=mixture)
    return run.execute(resume=resume)


def origins(directory: Path) -> dict[StepKey, tuple[str, ...]]:
    return {each.task.key: each.history for each in RunFolder(directory).records}


def test_a_mixed_run_waits_for_no_step_shows_what_it_records_and_names_schedule_seed_and_artifacts(tmp_path: Path) -> None:
    engine = ScriptedEngine(right, turns=lambda request: 20)
    outcome = mixed(tmp_path, engine, of_all(EPISODES, but=1), many=16)
    assert outcome.summary().metrics["exact match"].value == 1.0
    assert engine.most_in_flight == 16  # of six episodes
    recorded = origins(tmp_path)
    for request in engine.requests:
        past = past_of(request)
        assert tuple(each["origin"] for each in past) == recorded[request.task.key]
        for index, each in enumerate(past):
            assert each["thought"] == (f"own {request.task.episode_id}{index}" if each["origin"] == "model" else None)
    assert {each for history in recorded.values() for each in history} == {"model", "reference"}
    assert all(history[1] == "reference" for history in recorded.values() if len(history) > 1)
    manifest = RunFolder(tmp_path).manifest.to_json()
    assert manifest["mode"] == {"name": "offline", "history": "mixed", "stop": "never"}
    assert manifest["mixing"]["schedule"] == {
        **{"regime": "increasing", "start": 0.2, "end": 0.8, "shape": "logistic", "kappa": 16.0, "mean": 0.5},
        **{"mu": pytest.approx(0.5), "over": "history"},
    }
    assert manifest["mixing"]["seed"] == 3 and manifest["mixing"]["artifacts"]["sha256"] == "0123"


def test_neither_concurrency_nor_a_resume_changes_a_draw(tmp_path: Path) -> None:
    near: dict[str, Any] = {"near": 0.9, "diversities": diverse(2, 6, episodes="abcdef")}
    slow = ScriptedEngine(right, turns=lambda request: 20 * (request.task.step_index % 3))
    mixed(tmp_path / "one", ScriptedEngine(right), of_all(EPISODES), many=1, **near)
    mixed(tmp_path / "many", slow, of_all(EPISODES), **near)
    assert origins(tmp_path / "one") == origins(tmp_path / "many")
    lines = (tmp_path / "many" / STEPS).read_bytes().splitlines(keepends=True)
    (tmp_path / "many" / STEPS).write_bytes(b"".join(lines[::2]))
    engine = ScriptedEngine(right)
    mixed(tmp_path / "many", engine, of_all(EPISODES), resume=True, **near)
    assert len(engine.requests) == len(lines) // 2
    assert origins(tmp_path / "one") == origins(tmp_path / "many")
    assert RunFolder(tmp_path / "one").manifest.to_json()["mixing"]["schedule"]["regime"] == "adaptive"
    near["diversities"] = diverse(2, 6, episodes="abcdef", sha256="cdef")
    with pytest.raises(UsageError, match=r"decisions fingerprint .was '89ab', now 'cdef'"):
        mixed(tmp_path / "many", engine, of_all(EPISODES), resume=True, **near)


def test_an_unlike_resume_is_refused(tmp_path: Path) -> None:
    mixed(tmp_path, ScriptedEngine(right), of_all(EPISODES))
    for change, message in (({"mean": 0.4}, "mix.mean"), ({"seed": 4}, "mix.seed"), ({"kappa": 8.0}, "mix.kappa")):
        with pytest.raises(UsageError, match=message):
            mixed(tmp_path, ScriptedEngine(right), of_all(EPISODES), resume=True, **change)
    others = replace(of_all(EPISODES), sha256="4567")
    with pytest.raises(UsageError, match=r"artifacts fingerprint .was '0123', now '4567'"):
        mixed(tmp_path, ScriptedEngine(right), others, resume=True)


def test_a_mix_needs_artifacts_and_the_mode_offline(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs the answers to mix in"):
        mixed(tmp_path, ScriptedEngine(right), None)
    config = RunConfig(model="scripted", bench="scripted", mode="soeval", mix=MIX)
    model = ScriptedModel(ModelConfig(name="s", adapter="s"))
    with pytest.raises(UsageError, match="mode 'soeval' has a history of its own"):
        runner_of(config, tmp_path, ListBenchmark(EPISODES), model, ScriptedEngine(right), 1)


def test_a_run_without_a_mix_is_the_run_it_was() -> None:
    plain = RunConfig(model="m", bench="b")
    assert "mix" not in plain.identity() and "mix_artifacts" not in plain.identity()


def test_answers_to_anothers_thoughts_are_no_artifacts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [sampled(0, answered(RIGHT, "x"))])
    manifest = RunFolder(run).manifest.to_json()
    (run / "manifest.json").write_text(json.dumps({**manifest, "fixed_thoughts": {"model": "made-up-model"}}))
    assert len(read_artifacts(run, EVALUATOR).steps) == 1
    (run / "manifest.json").write_text(json.dumps({**manifest, "fixed_thoughts": {"model": "another-model"}}))
    with pytest.raises(UsageError, match="was given the thoughts of 'another-model'"):
        read_artifacts(run, EVALUATOR)
