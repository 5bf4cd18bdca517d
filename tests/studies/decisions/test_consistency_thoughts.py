"""Fixed thoughts in runs: requests, steps that are left out, the memory of later steps, resuming, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Press
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.models import ModelConfig, Request
from guieval.running.fixed_thoughts import FixedThoughts, read_thoughts
from guieval.running.resume.identity import identity
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import Sample, StepError, StepKey, StepOutcome
from tests import scripted
from tests.command_line import CommandLine
from tests.made_runs import ANSWERED, FAILED, record, step, write_run
from tests.rows import every_row
from tests.scripted import ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, run_scripted, runner_of

HOME = Press(button="HOME")
NOBODY = "http://127.0.0.1:9/v1"
EPISODES = [make_episode(name, scripted.ACTIONS[:length]) for name, length in (("a", 4), ("b", 1), ("c", 2))]
SILENT = {("a", 1), ("b", 0)}


class ThoughtfulModel(ScriptedModel):
    """A scripted model into whose mouth a thought can be put."""

    thought_form = "<{thought}>"


def thinks(request: Request) -> str:
    task = request.task
    silent = (task.episode_id, task.step_index) in SILENT
    return reply_with(task.action, " " if silent else f"thought {task.episode_id}{task.step_index}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    run_scripted(tmp_path / "source", EPISODES, ScriptedEngine(thinks))
    return tmp_path / "source"


def opened(directory: Path, fixed: FixedThoughts, engine: ScriptedEngine, **settings: Any) -> Runner:
    config = RunConfig(model="scripted", bench="scripted", fixed_thoughts=str(fixed.directory), **settings)
    model = ThoughtfulModel(ModelConfig(name="scripted", adapter="scripted"))
    return runner_of(config, directory, ListBenchmark(EPISODES), model, engine, 8, fixed=fixed)


def same(request: Request) -> str:
    return reply_with(request.task.action)


def begun(engine: ScriptedEngine) -> dict[str, list[str]]:
    """The unfinished turns that were sent, by step."""
    found: dict[str, list[str]] = {}
    for each in engine.requests:
        last = each.input.messages[-1]
        assert each.input.prefill and last.role == "assistant"
        found.setdefault(f"{each.task.episode_id}{each.task.step_index}", []).append(str(last.parts[0]))
    return found


def test_every_sample_is_asked_with_its_steps_thought_and_the_manifest_states_whose_it_is(tmp_path: Path, source: Path) -> None:
    engine = ScriptedEngine(same)
    run = opened(tmp_path / "run", read_thoughts(source), engine, samples=3)
    outcome = run.execute(resume=False)
    requested = ["a0", "a2", "a3", "c0", "c1"]
    assert begun(engine) == {name: [f"<thought {name}>"] * 3 for name in requested}
    for plan in (outcome.run.plan, RunFolder(tmp_path / "run").plan):
        assert {key.episode_id: list(steps) for key, steps in plan.items()} == {"a": [0, 2, 3], "c": [0, 1]}
    assert "the 5 of 7 steps at which scripted gave a thought" in outcome.run.selection.text
    assert outcome.run.selection.title.endswith("with a thought")
    manifest = RunFolder(tmp_path / "run").manifest
    saved, digest = manifest.to_json()["fixed_thoughts"], read_thoughts(source).digest
    assert saved.pop("form") and manifest.mode.label == "offline+fixed-thoughts"
    assert saved == {"run": str(source), "model": "scripted", "sha256": digest, "steps": 5, "without_thought": 2}


def test_a_given_thought_is_what_later_steps_remember(tmp_path: Path, source: Path) -> None:
    engine = ScriptedEngine(lambda request: reply_with(HOME if request.task.step_index == 2 else request.task.action))
    opened(tmp_path / "run", read_thoughts(source), engine, mode="soeval").execute(resume=False)
    last = next(each for each in engine.requests if (each.task.episode_id, each.task.step_index) == ("a", 3))
    told = json.loads(str(last.input.messages[0].parts[0]))["past"]
    # step 1 had no thought and was not sent; step 2 was sent, and wrong
    expected = [("model", "thought a0"), ("reference", None), ("reference", None)]
    assert [(entry["origin"], entry["thought"]) for entry in told] == expected
    thoughts = {each.sample.thought for each in RunFolder(tmp_path / "run").records}
    assert thoughts == {f"thought {name}" for name in begun(engine)}


def test_a_resume_with_other_thoughts_is_refused(tmp_path: Path, source: Path) -> None:
    run, fixed = tmp_path / "run", read_thoughts(source)
    opened(run, fixed, ScriptedEngine(same)).execute(resume=False)
    again = ScriptedEngine(same)
    opened(run, fixed, again).execute(resume=True)
    assert again.requests == []
    otherwise = ScriptedEngine(lambda request: thinks(request).replace("thought a0", "thought a9"))
    run_scripted(tmp_path / "other", EPISODES, otherwise)
    other = read_thoughts(tmp_path / "other")
    assert other.digest != fixed.digest and other.texts.keys() == fixed.texts.keys()
    with pytest.raises(UsageError, match="differs in fixed thoughts fingerprint"):
        opened(run, other, ScriptedEngine(same)).execute(resume=True)


def test_the_digest_is_of_the_thoughts_and_not_of_their_order(tmp_path: Path, source: Path) -> None:
    run_scripted(tmp_path / "slow", EPISODES, ScriptedEngine(thinks), concurrency=1)
    lines = (tmp_path / "slow" / "steps.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "slow" / "steps.jsonl").write_text("".join(reversed(lines)))
    assert read_thoughts(tmp_path / "slow").digest == read_thoughts(source).digest


def test_no_step_with_a_thought_among_those_asked_for(tmp_path: Path, source: Path) -> None:
    (tmp_path / "b.txt").write_text("b\n")
    with pytest.raises(UsageError, match="no thought at any of the chosen steps"):
        opened(tmp_path / "run", read_thoughts(source), ScriptedEngine(same), episodes=str(tmp_path / "b.txt"))


def test_which_thought_is_taken(tmp_path: Path) -> None:
    def thought(index: int, raw: str = "", **more: Any) -> Any:
        samples = (Sample(raw_response=raw, outcome=ANSWERED, **more),)
        return record(step(HOME, index=index, length=9)).model_copy(update={"samples": samples})

    unread = {"error": StepError(stage="parse", message="no action"), "action": None}
    records = [
        thought(0, action=HOME, thought="old"),
        thought(0, action=HOME, thought=" new\n"),
        thought(1, action=HOME, thought="kept"),
        record(step(HOME, index=1, length=9)),  # later, but nobody answered
        thought(2, "Well. <think> cut off", **unread),
        thought(3, "<thinking>\nI wait.\n</thinking>\n...", **unread),
        thought(4, "...", reasoning="I press.", **unread),
        thought(5, "<think>no</think>", action=HOME),  # read, and the adapter found no thought
        thought(6, action=HOME, thought="\n"),
        record(step(HOME, index=7, length=9)),
    ]
    found = read_thoughts(write_run(tmp_path / "run", records))
    assert {key.step_index: text for key, text in found.texts.items()} == {0: "new", 1: "kept", 3: "I wait.", 4: "I press."}
    assert found.without == 3 and found.model == "made-up-model"


@every_row(("actions", "reason"), [([HOME], "has no thought: made-up-model gave none at 1 steps"), ([], "has no answer")])
def test_a_run_without_thoughts_is_refused(tmp_path: Path, actions: list[Action], reason: str) -> None:
    write_run(tmp_path / "run", [record(step(HOME), *actions)])
    with pytest.raises(UsageError, match=reason):
        read_thoughts(tmp_path / "run")


def test_a_failed_answer_is_given_no_thought(source: Path) -> None:
    fixed = read_thoughts(source)
    key = StepKey("scripted", "", "a", 0)
    assert fixed.with_thought(key, Sample(outcome=FAILED)).thought is None
    assert fixed.with_thought(key, Sample(raw_response="x", outcome=StepOutcome(verdict="unparseable"))).thought == "thought a0"


@pytest.fixture
def demo_source(tmp_path: Path) -> Path:
    """A run over the demo benchmark's first step, with a thought."""
    from guieval.registry import load_benchmark

    task = next(iter(load_benchmark("demo", tmp_path / "demo", episodes=1))).steps[0]
    answer = Sample(raw_response="", action=task.action, thought="I do it.", outcome=ANSWERED)
    return write_run(tmp_path / "source", [record(task, HOME).model_copy(update={"samples": (answer,)})], benchmark="demo")


def run_demo(tmp_path: Path, *more: str | Path) -> list[str | Path]:
    start: list[str | Path] = ["run", "--quiet", "--bench", "demo", "--data", tmp_path / "demo", "--out", tmp_path / "run"]
    return [*start, "--base-url", NOBODY, "--set", "bench_options.episodes=1", *more]


@every_row(
    ("more", "reason"),
    [
        (["--model", "ocr-baseline"], "cannot be given a thought"),
        (["--model", "seeclick"], "cannot be given a thought"),
        (["--model", "ui-tars-7b", "--mode", "sop"], "use --mode offline or soeval"),
        (["--model", "gui-owl-7b", "--no-thinking"], "thinking is turned off"),
    ],
)
def test_models_and_modes_that_take_no_thought(
    tmp_path: Path, demo_source: Path, guieval: CommandLine, more: list[str], reason: str
) -> None:
    error = guieval.sentence(*run_demo(tmp_path, *more, "--fixed-thoughts", demo_source))
    assert reason in error and not (tmp_path / "run").exists()


def test_sources_that_are_none(tmp_path: Path, demo_source: Path, guieval: CommandLine) -> None:
    write_run(tmp_path / "other", [*RunFolder(demo_source).records], benchmark="aitz")
    for name, reason in (("nowhere", "is not a run directory"), ("other", "about benchmark 'aitz', not 'demo'")):
        assert reason in guieval.sentence(*run_demo(tmp_path, "--model", "ui-tars-7b", "--fixed-thoughts", tmp_path / name))


def test_adapter_options_are_given_by_set(tmp_path: Path, guieval: CommandLine) -> None:
    from guieval.playground.mock_server import MockServer, MockSettings

    with MockServer(MockSettings(policy="centre", model="qwen2.5-vl-7b")) as server:
        arguments = run_demo(tmp_path, "--model", "qwen2.5-vl-7b", "--limit", "1", "--set", "options.max_pixels=200704")
        arguments[arguments.index(NOBODY)] = server.base_url
        assert guieval(*arguments).code == 0
    manifest = RunFolder(tmp_path / "run").manifest
    assert manifest.to_json()["model"]["options"]["max_pixels"] == 200704
    assert identity(manifest)["checkpoint.options.max_pixels"] == 200704
    error = guieval.sentence("run", "--resume", tmp_path / "run", "--set", "options.max_pixels=100352")
    assert "checkpoint.options.max_pixels (was 200704, now 100352)" in error
    wrong = guieval.sentence(*run_demo(tmp_path, "--model", "qwen2.5-vl-7b", "--set", "options.max_pixel=1"))
    assert "has no option 'max_pixel' (did you mean 'max_pixels'?)" in wrong
