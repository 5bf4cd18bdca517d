"""Runs in mode sop with patches: the history, the end of an episode, resuming, what is refused, and the figures afterwards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Press, Stop, Wait
from guieval.engines import parse_request_id
from guieval.errors import EngineError, UsageError
from guieval.journal import METRICS, STEPS, RunFolder
from guieval.journal.run_files import Manifest
from guieval.metrics.columns import NOT_REACHED, NOT_RUN
from guieval.models import Request
from guieval.reports.comparison import compare_runs
from guieval.running.resume.identity import identity
from guieval.running.runner.runner import Runner
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import Usage
from tests.json_values import read_json
from tests.rows import every_row
from tests.running.records import final
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, past_of, reply_with

HOME = Press(button="HOME")
EPISODES = [make_episode("a", ACTIONS), make_episode("b", ACTIONS), make_episode("c", ACTIONS[:2])]
MISSED = {("a", 1), ("a", 3), ("b", 0), ("b", 1), ("b", 2)}
PATCHES = ["thought-free", "off-policy", "on-policy"]
AUXILIARY: dict[str, Any] = {"patch_model": "aux", "patch_base_urls": ("http://aux/v1",)}


def asks_thought(request: Request) -> bool:
    return request.input.messages[0].role == "system"


def policy(missed: Collection[tuple[str, int]] = MISSED) -> Callable[[Request], str]:
    def answer(request: Request) -> str:
        task = request.task
        if asks_thought(request):
            return f"<think>thought of {task.episode_id}{task.step_index}</think>"
        return reply_with(HOME if (task.episode_id, task.step_index) in missed else task.action, f"own {task.step_index}")

    return answer


def opened(directory: Path, engine: ScriptedEngine, *, concurrency: int = 8, **settings: Any) -> Runner:
    more = {name: settings.pop(name) for name in ("on_progress",) if name in settings}
    settings = {"mode": "sop", **(AUXILIARY if settings.get("patch") == "off-policy" else {}), **settings}
    return scripted_runner(directory, EPISODES, engine, concurrency=concurrency, settings=settings, thoughts=engine, **more)


def ran(directory: Path, engine: ScriptedEngine | None = None, *, resume: bool = False, **settings: Any) -> ScriptedEngine:
    engine = engine or ScriptedEngine(policy())
    outcome = opened(directory, engine, **settings).execute(resume=resume)
    store_summary(directory, outcome.summary())
    return engine


def retrying(missed: Mapping[int, Sequence[Action]]) -> Callable[[Request], str]:
    """At each step the wrong actions one by one, then the right one."""

    def answer(request: Request) -> str:
        task, number = request.task, parse_request_id(request.request_id)[1]
        wrong = missed.get(task.step_index, ()) if task.episode_id == "a" else ()
        return reply_with(wrong[number] if number < len(wrong) else task.action, f"try {number}")

    return answer


@every_row(
    ("wrong", "tries", "queried", "right"),
    [
        ((HOME,), 1, 1, False),
        ((HOME,), 2, 2, True),
        ((HOME, HOME), 2, 2, False),
        ((Wait(), Stop()), 3, 2, False),  # a stop ends the task
        ((Wait(), HOME), 2, 3, True),
        ((Wait(), Wait(), HOME), 2, 4, True),
        ((Wait(), Wait(), Wait(), HOME), 2, 4, False),  # the third wait of two is a try
        ((Wait(),) * 6, 2, 4, False),
    ],
)
def test_a_screen_is_tried_again_and_waits_are_forgiven(
    tmp_path: Path, wrong: Sequence[Action], tries: int, queried: int, right: bool
) -> None:
    engine = ScriptedEngine(retrying({1: wrong}))
    ran(tmp_path / "run", engine, mode="sop-retry", tries=tries)
    second = [each for each in engine.requests if each.task.key[2:] == ("a", 1)]
    assert len(second) == queried and len({each.request_id for each in second}) == queried
    shown = [[each["action"] for each in past_of(request)] for request in second]
    own = ACTIONS[0].model_dump(mode="json")
    assert shown == [[own, *(each.model_dump(mode="json") for each in wrong[:number])] for number in range(queried)]
    record = final(tmp_path / "run")[str(second[0].task.key)]
    assert (record.exact, len(record.retried)) == (right, queried - 1)
    summary = evaluate_run(tmp_path / "run").summary
    assert summary.metrics["PG"].value == pytest.approx(1 if right else 0.75)
    if right:  # later steps see one response of the step, the right one
        third = next(each for each in engine.requests if each.task.key[2:] == ("a", 2))
        assert [each["thought"] for each in past_of(third)] == ["try 0", f"try {queried - 1}"]


def test_a_run_with_tries_resumes_counts_every_try_and_has_its_number_in_its_identity(tmp_path: Path) -> None:
    missed: dict[int, list[Action]] = {0: [HOME], 2: [Wait(), HOME]}
    clean = tmp_path / "clean"
    ran(clean, ScriptedEngine(retrying(missed)), mode="sop-retry", concurrency=1)
    whole, lines = final(clean), (clean / STEPS).read_bytes().splitlines(keepends=True)
    assert RunFolder(clean).manifest.mode.label == "sop-retry+tries:3"
    paid = sum(len(each.responses) for record in whole.values() for each in record.billed)
    assert paid == len(whole) + 3
    for kept in range(0, len(lines), 3):
        directory = tmp_path / f"{kept}"
        shutil.copytree(clean, directory)
        (directory / STEPS).write_bytes(b"".join(lines[:kept]))
        ran(directory, ScriptedEngine(retrying(missed)), mode="sop-retry", resume=True)
        assert final(directory) == whole
    with pytest.raises(UsageError, match="differs in tries"):
        opened(clean, ScriptedEngine(policy()), mode="sop-retry", tries=2).execute(resume=True)
    for settings, message in (
        ({"mode": "sop", "tries": 2}, "one response a step"),
        ({"mode": "sop-retry", "patch": "thought-free"}, "takes no patch"),
        ({"mode": "sop-retry", "samples": 2}, "leave out --samples"),
    ):
        with pytest.raises(UsageError, match=message):
            opened(tmp_path / "other", ScriptedEngine(policy()), **settings)


def asked(engine: ScriptedEngine) -> dict[tuple[str, int], Request]:
    return {(each.task.episode_id, each.task.step_index): each for each in engine.requests if not asks_thought(each)}


def test_unlimited_thought_free_patches_show_what_soeval_shows(tmp_path: Path) -> None:
    """Word for word the same prompts and, but for the patches' own marks, the same records."""
    patched = ran(tmp_path / "patched", patch="thought-free", patch_budget="unlimited")
    soeval = ran(tmp_path / "soeval", mode="soeval")
    assert {key: each.input for key, each in asked(patched).items()} == {key: each.input for key, each in asked(soeval).items()}
    patched_steps = {key: each.model_copy(update={"patch": None}) for key, each in final(tmp_path / "patched").items()}
    assert patched_steps == final(tmp_path / "soeval")
    assert {each.task.key[2:] for each in RunFolder(tmp_path / "patched").records if each.patch} == MISSED


@pytest.mark.parametrize("method", PATCHES)
def test_later_steps_see_the_patch_and_not_the_mistake(tmp_path: Path, method: str) -> None:
    engine = ran(tmp_path / "run", patch=method, patch_budget=1)
    thought = None if method == "thought-free" else "thought of a1"
    past = past_of(asked(engine)["a", 2])
    assert [each["thought"] for each in past] == ["own 0", thought]
    assert past[1]["action"] == ACTIONS[1].model_dump(mode="json") and past[1]["origin"] == "reference"
    stored = {record.task.key[2:]: record for record in RunFolder(tmp_path / "run").records}
    patch = stored["a", 1].patch
    assert patch is not None and (patch.method, patch.thought) == (method, thought)
    assert stored["a", 1].sample.action == HOME and stored["a", 0].patch is None
    assert ("a", 3) in stored and stored["a", 3].patch is None  # the second mismatch ends it
    assert set(asked(engine)) == {("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 0), ("b", 1), ("c", 0), ("c", 1)}


def test_thoughts_are_asked_once_for_each_patch_that_a_later_step_sees(tmp_path: Path) -> None:
    engine = ran(tmp_path / "run", patch="on-policy", patch_budget="unlimited")
    thoughts = [each for each in engine.requests if asks_thought(each)]
    assert {each.task.key[2:] for each in thoughts} == MISSED - {("a", 3)}  # nobody sees what a's last step thought
    assert len(thoughts) == 4
    names = [each.request_id for each in engine.requests]
    assert len(set(names)) == len(names)


@every_row(("budget", "reached", "not_reached"), [(0, 5, 5), (1, 8, 2), (2, 9, 1), ("unlimited", 10, 0), (3, 10, 0)])
def test_figures_count_what_was_reached(tmp_path: Path, budget: int | str, reached: int, not_reached: int) -> None:
    """Progress stays exact prefix by length, (1/4 + 0/4 + 2/2) / 3, and success all exact, 1/3, whatever is patched."""
    engine = ScriptedEngine(policy())
    outcome = opened(tmp_path / "run", engine, patch="thought-free", patch_budget=budget).execute(resume=False)
    stored = outcome.summary(intervals=True)
    summary = evaluate_run(tmp_path / "run").summary
    assert summary == stored and summary.complete and len(engine.requests) == reached
    assert (summary.metrics["exact match"].n, summary.verdicts.not_reached) == (reached, not_reached)
    assert [summary.metrics[name].value for name in ("PG", "TSR")] == pytest.approx([1.25 / 3, 1 / 3])
    columns = judge_run(tmp_path / "run").columns()
    (judged,) = columns.judged.values()
    assert (judged.end == NOT_REACHED).sum() == not_reached and not (judged.end == NOT_RUN).any()
    assert judged.exact_match.sum() == summary.metrics["exact match"].count


def test_another_protocol_counts_its_own_mismatches(tmp_path: Path) -> None:
    """Scored again, by the tally and by the columns alike, an episode ends at the protocol's own second mismatch."""
    ran(tmp_path / "run", patch="thought-free", patch_budget=1)
    for protocol in ("ui-s1-sop", "guievalkit"):
        summary = evaluate_run(tmp_path / "run", protocol).summary
        (judged,) = judge_run(tmp_path / "run", [protocol]).columns().judged.values()
        assert (judged.end == NOT_REACHED).sum() == summary.verdicts.not_reached
        assert judged.exact_match.sum() == summary.metrics["exact match"].count


@every_row("method", PATCHES)
@every_row("budget", [1, "unlimited"])
def test_a_resume_rebuilds_the_same_history(tmp_path: Path, method: str, budget: int | str) -> None:
    """Cut after any record, a run goes on with the prompts of one that was never cut, and asks for no patch twice."""
    clean = tmp_path / "clean"
    whole = ran(clean, patch=method, patch_budget=budget, concurrency=1)
    lines = (clean / STEPS).read_bytes().splitlines(keepends=True)
    for kept in range(len(lines)):
        directory = tmp_path / f"{kept}"
        opened(directory, ScriptedEngine(policy()), patch=method, patch_budget=budget).begin()
        (directory / STEPS).write_bytes(b"".join(lines[:kept]))
        engine = ran(directory, resume=True, patch=method, patch_budget=budget)
        assert final(directory) == final(clean)
        assert all(each.input == asked(whole)[key].input for key, each in asked(engine).items())
        assert len(asked(engine)) == len(lines) - kept
    done = ran(clean, resume=True, patch=method, patch_budget=budget)
    assert not done.requests


def test_a_thought_that_cannot_be_had_is_asked_for_again(tmp_path: Path) -> None:
    """The step stands as one without an answer: not wrong, not patched, and a resume asks for both again."""

    def silent(request: Request) -> str:
        if asks_thought(request):
            raise EngineError("no thoughts today", attempts=2)
        return policy()(request)

    directory = tmp_path / "run"
    usage = Usage(prompt_tokens=100, completion_tokens=10)
    first, second, third = (ScriptedEngine(each, usage=lambda request: usage) for each in (silent, policy(), policy()))
    opened(directory, first, patch="on-policy", patch_budget=2).execute(resume=False)
    failed = {record.task.key[2:]: record.sample for record in RunFolder(directory).records if not record.finished}
    assert set(failed) == {("a", 1), ("b", 0)} and all(sample.usage == usage for sample in failed.values()), "it was paid for"
    error = failed["a", 1].error
    assert error is not None and (error.stage, error.message) == ("generate", "the thought of its patch: no thoughts today")
    ran(directory, second, resume=True, patch="on-policy", patch_budget=2)
    ran(tmp_path / "clean", third, patch="on-policy", patch_budget=2)
    assert final(directory) == final(tmp_path / "clean")


def test_a_broken_parser_loses_a_thought_and_not_the_run(tmp_path: Path) -> None:
    engine = ScriptedEngine(lambda request: "no tags" if asks_thought(request) else policy()(request))
    run = opened(tmp_path, engine, patch="on-policy", patch_budget=2)
    parse = run.run.model.parse_response

    def broken(task: Any, text: str) -> Any:
        if text == "no tags":
            raise RuntimeError("bug")
        return parse(task, text)

    run.run.model.parse_response = broken  # type: ignore[method-assign]
    run.execute(resume=False)
    failed = [record.sample.error for record in RunFolder(tmp_path).records if not record.finished]
    told = {(error.stage, error.message.split(" in ")[1]) for error in failed if error}
    assert told == {("adapter", "broken: RuntimeError: bug")}


@every_row(
    ("other", "named"),
    [
        ({"patch_budget": 2}, r"patch_budget \(was 1, now 2\)"),
        ({"patch_budget": "unlimited"}, "patch_budget"),
        ({"patch": "on-policy"}, r"patch \(was 'thought-free', now 'on-policy'\)"),
        ({"patch": "none", "patch_budget": None}, "patch"),
    ],
)
def test_an_unlike_resume_is_refused(tmp_path: Path, other: dict[str, Any], named: str) -> None:
    settings: dict[str, Any] = {"patch": "thought-free", "patch_budget": 1}
    ran(tmp_path / "run", **settings)
    with pytest.raises(UsageError, match=named):
        opened(tmp_path / "run", ScriptedEngine(policy()), **settings | other).execute(resume=True)
    ran(tmp_path / "run", resume=True, patch="thought-free")  # the default budget is 1


def test_no_patch_and_a_budget_of_nought_are_the_run_that_always_was(tmp_path: Path) -> None:
    """The same identity, and the same bytes in the journal but for times; each resumes the other, and runs from before."""
    forms: list[dict[str, Any]] = [{}, {"patch": "thought-free", "patch_budget": 0}, {"patch": "none", "patch_budget": 0}]
    identities, lines = [], []
    for number, settings in enumerate(forms):
        directory = tmp_path / str(number)
        ran(directory, concurrency=1, **settings)
        manifest = RunFolder(directory).manifest.to_json()
        assert manifest["mode"] == {"name": "sop", "history": "model", "stop": "first-mismatch"}
        assert set(manifest["prompts"]) == {"fingerprint"}
        identities.append(identity(Manifest.of(manifest)))
        lines.append([read_json(line) for line in (directory / STEPS).read_text().splitlines()])
        for line in lines[-1]:
            del line["samples"][0]["seconds"], line["crc32"]
    assert identities[0] == identities[1] == identities[2] and lines[0] == lines[1] == lines[2]
    assert not [name for name in identities[0] if "patch" in name or "thought" in name]
    manifest = RunFolder(tmp_path / "0").manifest.to_json()
    manifest["config"]["history"] = {"mode": "sop"}
    assert identity(Manifest.of(manifest)) == identities[0]
    (tmp_path / "0" / "manifest.json").write_text(json.dumps(manifest))
    assert not ran(tmp_path / "0", resume=True, patch="thought-free", patch_budget=0).requests


@every_row(
    ("settings", "sentence"),
    [
        ({"mode": "soeval", "patch": "thought-free"}, "mode 'soeval' continues after a mismatch anyway"),
        ({"mode": "offline", "patch": "on-policy", "patch_budget": "unlimited"}, "--patch is for --mode sop"),
        ({"patch_budget": 1}, "--patch-budget is for patches, and there are none"),
        ({"patch_model": "aux"}, "--patch-model is for patches"),
        ({"patch": "thought-fre"}, r"unknown patch method 'thought-fre' .did you mean 'thought-free'"),
        ({"patch": "off-policy", "patch_base_urls": ()}, "add --patch-base-url URL"),
        ({"patch": "off-policy", "patch_model": None}, "add --patch-base-url URL .* and --patch-model NAME"),
        ({"patch": "on-policy", "patch_model": "aux"}, "--patch-model is for --patch off-policy; on-policy patches ask no"),
    ],
)
def test_settings_that_do_not_go_together_are_reported(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        opened(tmp_path / "run", ScriptedEngine(policy()), **settings)
    assert not (tmp_path / "run").exists()


def test_the_manifest_states_the_patches_and_the_label_too(tmp_path: Path) -> None:
    ran(tmp_path / "run", patch="on-policy", patch_budget="unlimited")
    manifest = RunFolder(tmp_path / "run").manifest.to_json()
    assert manifest["mode"]["patch"] == {"method": "on-policy", "budget": None}
    assert Manifest.of(manifest).mode.label == "sop+on-policy:unlimited" == judge_run(tmp_path / "run").columns().mode
    assert read_json((tmp_path / "run" / METRICS).read_text())["summary"]["mode"] == "sop+on-policy:unlimited"
    assert "thought" in manifest["prompts"]


def test_runs_with_other_budgets_are_not_compared_unasked(tmp_path: Path) -> None:
    ran(tmp_path / "none")
    ran(tmp_path / "one", patch="thought-free", patch_budget=1)
    ran(tmp_path / "other", ScriptedEngine(policy({("a", 0)})), patch="on-policy", patch_budget=1)
    with pytest.raises(UsageError, match=r"the modes 'sop' and 'sop\+thought-free:1' do not reach the same steps"):
        compare_runs(tmp_path / "none", tmp_path / "one")
    compare_runs(tmp_path / "one", tmp_path / "other")
