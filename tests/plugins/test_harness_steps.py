"""The steps as plug-ins see them: requests, verdicts and metrics are those of a run, and what does not fit is refused."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from typing import Any

import pytest

import guieval
from guieval.errors import UsageError
from guieval.models import Response
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.plugins.harness_steps import HarnessSteps, harness_steps
from guieval.steps import StepRecord
from tests.plugins.conftest import MODEL, PROTOCOLS, RecordedRun, RecordRun
from tests.rows import every_row


def steps_of(run: RecordedRun, **more: Any) -> HarnessSteps:
    return harness_steps({**run.settings, "model": MODEL, **more}, by_episode=True)


def test_all_kinds_of_verdicts_are_recorded(recorded: RecordRun) -> None:
    """Else equal verdicts would say little."""
    run = recorded("offline")
    kinds = {verdict for verdict, _ in run.verdicts().values()}
    assert kinds == {"right", "wrong", "unparseable", "unsupported"} and len(run.verdicts()) > 60
    assert run.verdicts(PROTOCOLS[0]) != run.verdicts(PROTOCOLS[1])


@every_row("protocol", PROTOCOLS)
def test_every_verdict_is_that_of_a_run(recorded: RecordRun, protocol: str) -> None:
    run = recorded("offline")
    steps = steps_of(run, protocol=protocol)
    found = {key: steps.scored(key, run.replies[key]).outcome for key in steps.keys}
    assert {key: (each.verdict, each.type_match) for key, each in found.items()} == run.verdicts(protocol)


@every_row("mode", ("offline", "soeval", "sop"))
def test_metrics_are_those_of_a_run(recorded: RecordRun, mode: str) -> None:
    run = recorded(mode)
    found = steps_of(run).metrics(run.records())
    assert {name: run.metrics()[name] for name in found} == found and {"exact match", "progress"} <= found.keys()


def test_a_part_of_the_steps_is_all_that_metrics_are_over(recorded: RecordRun) -> None:
    """Else a harness's limit would make every other step a missing one."""
    run = recorded("offline")
    some = [record for record in run.records() if record.exact][:7]
    assert steps_of(run).metrics(some)["exact match"] == 1.0


def test_what_a_harness_leaves_out_of_a_request_is_said_once(recorded: RecordRun, capsys: pytest.CaptureFixture[str]) -> None:
    """GLM's reader needs its special tokens, and a harness that sends messages alone does not request them."""
    plain, glm = steps_of(recorded("offline")), steps_of(recorded("offline"), model="glm-4.1v-9b-thinking")
    body = plain.body(plain.keys[0])
    assert plain.messages(body) == body["messages"] and body.keys() > {"messages", "temperature"}
    assert capsys.readouterr().err == ""
    for key in glm.keys[:2]:
        glm.messages(glm.body(key))
    (said,) = capsys.readouterr().err.splitlines()
    assert "does not send skip_special_tokens, as `guieval run` does for glm-4.1v-9b-thinking" in said


def test_the_body_of_a_request_is_what_a_run_sends(recorded: RecordRun) -> None:
    run = recorded("offline")
    steps = steps_of(run)
    key = steps.keys[3]
    episode = steps.task(key).episode_id
    with MockServer(MockSettings(policy="fixed", reply="Action: wait()", keep=100)) as server:
        listed = run.directory.parent / "one.jsonl"
        listed.write_text(episode + "\n")
        out = run.directory.parent / "sent"
        guieval.run(**run.settings, model=MODEL, base_url=server.base_url, out=out, episodes=listed, progress=False)
        bodies = [json.loads(each.body) for each in server.requests]
    sent = [{name: value for name, value in body.items() if name != "model"} for body in bodies]
    assert steps.body(key) in sent


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an agent of its own": ({"model": "ocr-baseline"}, "answers by itself"),
    "an environment": ({"mode": "online"}, "acts in an environment"),
    "a second request": ({"zoom": 2}, "a composition of models, or a zoom need"),
    "samples": ({"samples": 2, "resampling": {"temperature": 1.0}}, "several samples need"),
    "an unknown protocol": ({"protocol": "ui-r2"}, "ui-r1"),
}


@every_row("case", list(REFUSED))
def test_what_a_harness_cannot_do_is_refused(recorded: RecordRun, case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(UsageError, match=message):
        steps_of(recorded("offline"), **given)


def test_a_mode_with_a_past_of_its_own_needs_a_walk(recorded: RecordRun) -> None:
    run = recorded("offline")
    with pytest.raises(UsageError, match="its own responses"):
        HarnessSteps({**run.settings, "model": MODEL, "mode": "sop"})


def test_an_unknown_step_is_named(recorded: RecordRun) -> None:
    with pytest.raises(UsageError, match="no step 'demo/s0-0000#99'"):
        steps_of(recorded("offline")).task("demo/s0-0000#99")


def test_a_broken_off_response_is_no_verdict(recorded: RecordRun) -> None:
    """Else a server's failure would count as the model's mistake."""
    steps = steps_of(recorded("offline"))
    message = {"role": "assistant", "content": "Action: wait()"}
    sample = steps.scored(steps.keys[0], replace(Response.of(message), finish_reason="abort"))
    assert not sample.answered and StepRecord(task=steps.task(steps.keys[0]), samples=(sample,)).finished is False


@every_row(
    ("module", "package"),
    [("nemo_gym_server", "nemo_gym.base_resources_server"), ("evalscope_tasks", "evalscope.api.benchmark")],
)
def test_a_program_without_its_harness_is_a_sentence(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"guieval.plugins.{module}", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"guieval.plugins.{module}", run_name="__main__")
    (said,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and said.startswith("this needs")
