"""A model as judge of tasks: what it is sent, how its verdict is read and compared, and that no task is judged twice."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from guieval.journal import RunFolder
from guieval.models import ImageForm, ImageRef, Request, Response
from guieval.online.trajectory import last_attempts
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.steps import Usage
from guieval.studies.judges.agreement import LabelsAndVerdicts, agreement, self_consistency
from guieval.studies.judges.asking import CaseVerdict, apply, ask, spent
from guieval.studies.judges.cases import Case, CaseStep, of_run
from guieval.studies.judges.judge import RULES, Judge, load_judge
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

RUN = REPOSITORY / "tests" / "pinned" / "runs" / "phone-careful"
PICTURE = next((RUN / "screens").iterdir()).read_bytes()


class Scripted:
    """An engine whose responses are made of the requests that it is sent."""

    images: ImageForm = "base64"

    def __init__(self, says: Callable[[Request], str]) -> None:
        self.sent: list[Request] = []
        self._says = says

    async def generate(self, request: Request) -> Response:
        self.sent.append(request)
        return Response(self._says(request), usage=Usage(prompt_tokens=1000, completion_tokens=10))

    async def close(self) -> None: ...


def judged(judge: Judge, engine: Scripted, *cases: Case) -> list[CaseVerdict]:
    async def each() -> list[CaseVerdict]:
        places = [(case, 0) for case in cases]
        return [found async for found in ask(judge, engine, "m", places, sampling={}, concurrency=1)]

    return asyncio.run(each())


def known(name: str) -> Judge:
    judge = load_judge(name)
    assert isinstance(judge, Judge)
    return judge


def made(label: bool, number: int = 0, **fields: Any) -> Case:
    return Case(f"t{number}/0", f"t{number}", "Set an alarm.", [CaseStep("Wait.")], label, **fields)


UI_S1 = known("ui-s1")
READ = [
    ("ui-s1", "Q: ?\nA: ...\nStatus: success\nScreenshot", "success"),
    ("ui-s1", "as in 'Status: success' above\nstatus:failure", "failure"),
    ("ui-s1", "It went well.", "unreadable"),
    ("ui-s1", "", "unreadable"),
    ("webvoyager-official", "NOT SUCCESS at first, then SUCCESS", "failure"),
    ("webvoyager-intended", "NOT SUCCESS at first, then SUCCESS", "success"),
    ("webvoyager-official", "UNSUCCESSFUL", "success"),
    ("webvoyager-intended", "UNSUCCESSFUL", "unreadable"),
    ("webvoyager-official", "success", "unreadable"),
    ("webvoyager-om2w-official", "", "success"),
    ("webvoyager-om2w-intended", "", "unreadable"),
    ("webvoyager-om2w-official", "FAILURE? No: SUCCESS", "failure"),
    ("webvoyager-om2w-intended", "FAILURE? No: SUCCESS", "success"),
    ("webjudge-om2w-official", 'Thoughts: a success\nStatus: "success"', "success"),
    ("webjudge-om2w-official", "Status: failure\nStatus: success", "failure"),
    ("webjudge-om2w-official", "Status: unsuccessful", "success"),
    ("webjudge-om2w-official", "**Status**: success", "failure"),
    ("webjudge-om2w-intended", "**Status**: success", "success"),
    ("webjudge-om2w-intended", "Status: unsuccessful", "unreadable"),
    ("osreward", "Thought: judge: fail?\n**Judge: SUCCESS**", "success"),
    ("osreward", "Judge: SUCCESS\nsaid the judge: fail", "success"),
    ("osreward", "so I judge: failure", "failure"),
    ("osreward", "I am not sure", "unreadable"),
    ("agentrewardbench-official", "<success>Unsuccessful</success> <success>Successful</success>", "failure"),
    ("agentrewardbench-official", "<success> 'Successful' </success>", "success"),
    ("agentrewardbench-official", "Successful", "failure"),
    ("agentrewardbench-intended", "Successful", "unreadable"),
]


def test_how_responses_are_read() -> None:
    """A reading that is not that of the published code, in its faults too, gives another verdict here."""
    assert [(name, text, known(name).verdict((text,))) for name, text, _ in READ] == READ


PUBLISHED = {
    "agentrewardbench-official": "636e772a9fc666d4",
    "osreward": "3816e127ffbeb646",
    "webjudge-om2w-official": "ff67fd2ed338ab1a",
    "webvoyager-official": "b666ebf53ca6d2d8",
    "webvoyager-om2w-official": "23005ced31c5ffd2",
}
"""The beginnings of the SHA-256 of system prompts, from the repositories that the judges name."""


def test_system_prompts_are_those_of_the_published_code() -> None:
    found = {name: sha256((known(name).system or "").encode()).hexdigest()[:16] for name in PUBLISHED}
    assert found == PUBLISHED
    judge = known("webjudge-om2w-official")
    assert judge.key_points is not None and judge.screening is not None
    digests = [sha256(prompt.system.encode()).hexdigest()[:16] for prompt in (judge.key_points, judge.screening)]
    assert digests == ["f59402219cc586b0", "0c15bc23bcadf384"]


STEPS = [
    CaseStep("click(1)", "Look.", "http://a/", (500.0, 500.0), lambda: PICTURE),
    CaseStep("type({goal})", "", "http://b/", None, lambda: PICTURE),
    CaseStep("done()", " Done. ", "http://b/", None, None),
]
ARB = "-----\nStep: {}\nURL: {}\nAction: {}\nReasoning: {}"
WIRE = {
    "webvoyager-official": ["TASK: Go.\nResult Response: 42\n15 screenshots at the end: ", "#", "#", "Your verdict:\n"],
    "webvoyager-om2w-official": ["TASK: Go.\n\nResult Response: 42\n\n2 screenshots at the end: ", "#", "#", "Your verdict:\n"],
    "osreward": [
        *("#", "#"),
        "2 screenshots from the agent's trajectory have been provided.\nPlatform: Web\nUser instruction: Go.\n"
        "Full action history:\n"
        "Step 0:\nThought: Look.\nAction: click(1)\n\nStep 1:\nThought: [empty]\nAction: type({goal})\n\n"
        "Step 2:\nThought: Done.\nAction: done()",
    ],
    "agentrewardbench-official": [
        "The user goal is: Go.\n",
        "The agent performed the following actions:\n"
        + ARB.format(1, "http://a/", "click(1)", "Look.")
        + ARB.format(2, "http://b/", "type({goal})", "None")
        + ARB.format(3, "http://b/", "done()", " Done. ")
        + "\n-----",
        "Here is the screenshot of the last step.",
        "#",
        "Provide your reasoning and answer the four questions from the system prompt, using the specified format.",
    ],
}
"""The user's turns of the published code for :data:`STEPS`; # is a screenshot."""


def test_what_published_judges_are_sent() -> None:
    case = made(True, answer="42", platform="Web")._replace(goal="Go.", steps=STEPS)
    for name, expected in WIRE.items():
        engine = Scripted(lambda request: "Judge: SUCCESS")
        judged(known(name), engine, case)
        parts = engine.sent[0].input.messages[1].parts
        assert ["#" if isinstance(part, ImageRef) else part for part in parts] == expected, name
    engine = Scripted(lambda request: "SUCCESS")
    assert judged(known("webvoyager-official"), engine, case._replace(answer=None))[0].verdict == "failure" and not engine.sent


def test_web_judge_screens_the_screenshots() -> None:
    """Key points, a score for each screenshot, and those from 3 on with their reasons; the last action is left out."""
    scores = iter(
        ["1. **Reasoning**: A\nlist.\n\nMore.\n2. **Score**: 4", "no digit", "**Reasoning**: x **Score**: 2", "**Score**: 1"]
    )

    def says(request: Request) -> str:
        text = str(request.input.messages[1].parts[0])
        if text.startswith("Task: "):
            return "Sure.\n**Key Points**:\n\n  1. Filter"
        return next(scores) if text.startswith("**Task**") else "Status: success"

    case = made(True)._replace(goal="Go.", steps=STEPS)
    engine = Scripted(says)
    (found,) = judged(known("webjudge-om2w-official"), engine, case)
    assert (found.verdict, len(found.before), len(found.usage)) == ("success", 3, 4)
    last = engine.sent[-1].input.messages[1].parts
    assert last[0] == (
        "User Task: Go.\n\nKey Points: \n1. Filter\n\nAction History:\n1. click(1)\n2. type({goal})\n\n"
        "The potentially important snapshots of the webpage in the agent's trajectory and their reasons:\n1. A list."
    )
    assert len(last) == 2 and engine.sent[-1].images[0].format == "jpeg"
    judged(known("webjudge-om2w-official"), engine, case)
    (text,) = engine.sent[-1].input.messages[1].parts
    assert str(text).endswith("Action History:\n1. click(1)\n2. type({goal})")


def test_a_judge_is_sent_the_goal_and_the_last_screenshot() -> None:
    engine = Scripted(lambda request: "Status: success")
    (case, *_) = of_run(RUN, RunFolder(RUN).tasks)
    assert [each.verdict for each in judged(UI_S1, engine, case)] == ["success"]
    system, user = engine.sent[0].input.messages
    assert system.parts[0] == UI_S1.system and "Task: Set an alarm for 6pm." in str(system.parts[0])
    assert user.parts[0] == f"Task: {case.goal}\nScreenshot:" and len(user.parts) == 2
    last = last_attempts(RUN)[next(each.task.episode_key for each in RunFolder(RUN).tasks), 0][-1]
    assert [each.data for each in engine.sent[0].images] == [(RUN / last.screenshot).read_bytes()]


def test_votes_and_further_requests() -> None:
    """The verdict is that of more than half of the votes, and what cannot be read is requested again as often as it says."""
    said = iter(["?", "Status: success", "Status: failure", "Status: success"])
    judge = UI_S1.model_copy(update={"votes": 3, "again": 1})
    [first] = judged(judge, Scripted(lambda request: next(said)), made(True))
    [second] = judged(judge, Scripted(lambda request: "?"), made(True))
    assert (first.verdict, len(first.responses), len(first.usage)) == ("success", 3, 4)
    assert (second.verdict, len(second.usage), spent([first, second]).prompt) == ("unreadable", 6, 10_000)
    assert judge.digest({}) != UI_S1.digest({}) != UI_S1.digest({"temperature": 1.0})


def test_rules() -> None:
    case = made(True, own=False, claimed=None, answer="42")
    said = {name: [each.verdict for each in apply(rule, [case]).values()] for name, rule in RULES.items()}
    expected = {
        "rule-own": "failure",
        "rule-claim": "unreadable",
        "rule-second": "unreadable",
        "rule-answer": "success",
        "rule-success": "success",
    }
    assert said == {name: [verdict] for name, verdict in expected.items()}


def test_agreement_is_that_of_scikit_learn() -> None:
    """Two tasks have two trajectories each; what cannot be read is missing, and counted."""
    random = np.random.default_rng(3)
    cases = [made(bool(random.random() < 0.4), number)._replace(task=f"t{number // 2}") for number in range(60)]
    verdicts = ["success" if (random.random() < 0.8) == case.label else "failure" for case in cases[:-1]] + ["unreadable"]
    found = {
        (case.id, 0): CaseVerdict(case=case.id, judge="", verdict=verdict)
        for case, verdict in zip(cases, verdicts, strict=True)
    }
    measured = agreement(LabelsAndVerdicts.of(cases, found))
    true, said = [case.label for case in cases[:-1]], [verdict == "success" for verdict in verdicts[:-1]]
    expected = {
        "accuracy": metrics.accuracy_score(true, said),
        "balanced": metrics.balanced_accuracy_score(true, said),
        "kappa": metrics.cohen_kappa_score(true, said),
        "f1_success": metrics.f1_score(true, said),
        "f1_failure": metrics.f1_score(true, said, pos_label=False),
        "sensitivity": metrics.recall_score(true, said),
        "specificity": metrics.recall_score(true, said, pos_label=False),
        "precision": metrics.precision_score(true, said),
        "judged_success": np.mean(said),
        "leniency": np.mean(said) - np.mean(true),
    }
    assert {name: getattr(measured, name).value for name in expected} == pytest.approx(expected)
    assert {each.missing for each in measured} == {1}
    wrong = [name for name, each in measured._asdict().items() if not each.low < each.value < each.high]
    assert not wrong, wrong
    same = found | {(case.id, 1): found[case.id, 0].model_copy(update={"repeat": 1}) for case in cases[:3]}
    same[cases[0].id, 1] = same[cases[0].id, 1].model_copy(update={"verdict": "no response"})
    consistent = self_consistency(cases, same)
    assert consistent is not None and (consistent.count, consistent.n) == (2, 3)


def test_a_run_is_judged_once(tmp_path: Path, guieval: CommandLine) -> None:
    run = shutil.copytree(RUN, tmp_path / "run")
    with MockServer(MockSettings(policy="fixed", reply="Status: failure", served_models=("m",))) as server:
        asked = ("study", "judge", run, "--base-url", server.base_url, "--json")
        first, again = guieval(*asked), guieval(*asked)
        assert first.code == again.code == 0 and first.out == again.out
        count = json.loads(first.out)["judged_success"]["n"]
        assert server.stats()["requests"] == count == sum(len(each.samples) for each in RunFolder(RUN).tasks)
    assert (run / "steps.jsonl").read_bytes() == (RUN / "steps.jsonl").read_bytes()  # the environment's verdicts stay
    (file,) = (run / "judges").iterdir()
    file.write_text(file.read_text().replace(json.loads(first.out)["digest"], "0123456789abcdef"))
    with MockServer(MockSettings(policy="fixed", reply="Status: failure", served_models=("m",))) as server:
        assert "has verdicts of 'm' with the prompt 0123456789abcdef" in guieval.sentence(
            "study", "judge", run, "--base-url", server.base_url
        )
    assert "is no online run" in guieval.sentence(
        "study", "judge", REPOSITORY / "tests/pinned/runs/careful/sop", "--base-url", "http://h/v1"
    )
    assert "did you mean 'ui-s1'?" in guieval.sentence("study", "judge", run, "--judge", "ui-s2")


def test_thoughts_of_trajectories_are_judged_as_those_of_recorded_steps(tmp_path: Path, guieval: CommandLine) -> None:
    """Failed ones too; actions that a judge does not take from the same thought are inconsistent."""
    done = guieval("data", "record", RUN, "--every", "--out", tmp_path / "set")
    known = of_run(RUN, RunFolder(RUN).tasks)
    steps = sum(len(case.steps) for case in known)
    won = sum(len(case.steps) for case in known if case.label)
    assert f"6 episodes, {steps} steps; " in done.out and f"next: guieval run --fixed-thoughts {RUN}" in done.out
    data = ("--bench", "episodes", "--data", tmp_path / "set")
    mock = MockSettings(model="qwen2.5-vl-7b", policy="reference", accuracy=0.7, benchmark="episodes", data=tmp_path / "set")
    with MockServer(mock) as server:
        to = ("--model", "qwen2.5-vl-7b", "--base-url", server.base_url, "--out", tmp_path / "judge")
        assert guieval("run", "--fixed-thoughts", RUN, *data, *to).code == 0
    asked = ("study", "consistency", RUN, "--judges", tmp_path / "judge")
    said = guieval(*asked, "--page", tmp_path / "page.html")
    rows = [[int(each) for each in re.findall(r"\d+", row)] for row in re.findall("^(?:true|false) .*", said.out, re.MULTILINE)]
    assert [*map(sum, rows)] == [won, steps - won] and 0 < sum(each[1] for each in rows) < steps, said
    assert "success of the task" in said.out and "data:image" in (tmp_path / "page.html").read_text()
    assert "the protocol 'guievalkit' is of recorded steps" in guieval.sentence(*asked, "--protocol", "guievalkit")
    assert "--every records one run, and these are 2" in guieval.sentence(
        "data", "record", RUN, RUN.parent / "phone-hasty", "--every", "--out", tmp_path / "x"
    )
