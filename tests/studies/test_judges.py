"""A model as judge of tasks: what it is sent, how its verdict is read and compared, and that no task is judged twice."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

from guieval.journal import RunFolder
from guieval.models import ImageForm, Request, Response
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.studies.judges import Case, JudgedTask, agreement, ask, cases, load_judge
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

RUN = REPOSITORY / "tests" / "pinned" / "runs" / "phone-careful"
UI_S1 = load_judge("ui-s1")


def test_the_last_of_several_verdicts_counts() -> None:
    read = {
        "Q: ?\nA: ...\nStatus: success\nScreenshot": "success",
        "as in 'Status: success' above\nstatus:failure": "failure",
        "It went well.": "unreadable",
        "": "unreadable",
    }
    assert {text: UI_S1.read(text) for text in read} == read


def test_a_judge_is_sent_the_goal_and_the_last_screenshot() -> None:
    sent: list[Request] = []

    class Server:
        images: ImageForm = "base64"

        async def generate(self, request: Request) -> Response:
            sent.append(request)
            return Response("Status: success")

        async def close(self) -> None: ...

    (case, *_) = cases(RUN, RunFolder(RUN).tasks)

    async def verdicts() -> list[str]:
        return [each.verdict async for each in ask(UI_S1, Server(), "m", RUN, [case], sampling={}, concurrency=1)]

    assert asyncio.run(verdicts()) == ["success"]
    system, user = sent[0].input.messages
    assert system.parts[0] == UI_S1.system and "Task: Set an alarm for 6pm." in str(system.parts[0])
    assert user.parts[0] == f"Task: {case.steps[0].goal}\nScreenshot:"
    assert sent[0].images[0].data == (RUN / case.steps[-1].screenshot).read_bytes() and len(sent[0].images) == 1


def test_agreement_by_hand() -> None:
    """Of 3 successes one is called so, of 3 others all are called failures; one response cannot be read."""
    known = cases(RUN, RunFolder(RUN).tasks)
    won, lost = (next(case for case in known if case.outcome.score.success is done) for done in (True, False))
    chosen = [Case(each.task, number, each.steps, each.outcome) for number, each in enumerate([won] * 3 + [lost] * 4)]
    said = ("success", "failure", "failure", "failure", "failure", "failure", "unreadable")
    verdicts = {
        (case.task.episode_key, case.repetition): JudgedTask(
            key=case.task.episode_key, repetition=case.repetition, judge="", model="", verdict=verdict
        )
        for case, verdict in zip(chosen, said, strict=True)
    }
    found = agreement(chosen, verdicts)
    assert (found.judged_success.count, found.judged_success.n, found.judged_success.missing) == (1, 6, 1)
    assert (found.success.count, found.agreement.count, found.sensitivity.count, found.specificity.count) == (3, 4, 1, 3)
    assert found.kappa.value is not None and abs(found.kappa.value - (4 / 6 - 1 / 2) / (1 / 2)) < 1e-12


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
    file.write_text(file.read_text().replace(UI_S1.digest, "0123456789abcdef"))
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
    known = cases(RUN, RunFolder(RUN).tasks)
    steps = sum(len(case.steps) for case in known)
    won = sum(len(case.steps) for case in known if case.outcome.score.success)
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
