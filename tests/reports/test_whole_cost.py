"""What a step cost is the same everywhere: in the budget, the tables, the viewer, and in the files for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from guieval.errors import EngineError
from guieval.evaluation import ActionEvaluator
from guieval.exchange.atif_reading import make_run
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import RunFolder
from guieval.models import Request, Response
from guieval.reports.opened import OpenedRun, open_run
from guieval.reports.trajectories.reading import read_online
from guieval.reports.viewer.reading import shown_run, walk
from guieval.reports.viewer.step import seen_values
from guieval.running.costs import Tokens
from guieval.scoring.matrix import judge_run
from guieval.settings import RunConfig
from guieval.steps import Usage
from tests.online.test_runs import AGENT, settings, write_agent
from tests.reports.scripted_runs import HOME
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, opened_run, reply_with

USAGE = Usage(prompt_tokens=100, completion_tokens=7)
WASTED = Usage(prompt_tokens=30, completion_tokens=2)
WASTEFUL_AGENT = AGENT.replace(
    "    def respond(self, request):",
    f"""    async def generate(self, request, engine):
        from guieval.models import Response
        from guieval.steps import Usage

        request.bill.add(Usage(**{WASTED.model_dump()}))
        return Response(self.respond(request), usage=Usage(**{USAGE.model_dump()}))

    def respond(self, request):""",
)


class Wasteful(ScriptedEngine):
    """One response before each answer cannot be used; steps of episode b are never answered, and every third step is missed."""

    def __init__(self) -> None:
        def policy(request: Request) -> str:
            task = request.task
            return reply_with(HOME if task.step_index == 2 else task.action, thought="I see it.")

        super().__init__(policy, usage=lambda request: USAGE)

    async def generate(self, request: Request) -> Response:
        request.bill.add(WASTED)
        if request.task.episode_id == "b":
            raise EngineError("no usable answer")
        return await super().generate(request)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tokens]:
    run = tmp_path_factory.mktemp("offline")
    patches = {"mode": "sop", "patch": "on-policy", "patch_budget": "unlimited", "samples": 2, "sampling": {"temperature": 1.0}}
    episodes = [make_episode(name, ACTIONS) for name in "abc"]
    outcome = scripted_runner(run, episodes, Wasteful(), settings=patches).execute(resume=False)
    records = list(RunFolder(run).steps)
    assert sum(record.patch is not None for record in records) == 2 and not all(record.finished for record in records)
    return run, outcome.progress.tokens


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tokens]:
    folder = tmp_path_factory.mktemp("online")
    agent = write_agent(folder)
    agent.write_text(WASTEFUL_AGENT)
    return folder / "run", opened_run(RunConfig(**settings(agent)), folder / "run").execute(resume=False).progress.tokens


def sums(pairs: Iterator[tuple[int, int]]) -> tuple[int, int]:
    given, made = zip(*pairs, strict=True)
    return sum(given), sum(made)


def written(run: Path, name: str, folder: Path) -> list[Path]:
    return format_named(name).write(exported(run), folder)


def in_inspect(path: Path) -> list[tuple[int, int]]:
    """The sum in the head of a log, and the sum over its samples."""
    with ZipFile(path) as archive:
        files = {name: json.loads(archive.read(name)) for name in archive.namelist()}
    samples = [content for name, content in files.items() if name.startswith("samples/")]
    (head,) = files["header.json"]["stats"]["model_usage"].values()
    used = [counts for sample in samples for counts in sample["model_usage"].values()]
    assert len(used) == len(samples)
    return [sums((counts["input_tokens"], counts["output_tokens"]) for counts in each) for each in ([head], used)]


def in_every_eval_ever(paths: list[Path]) -> tuple[int, int]:
    (rows,) = (path for path in paths if path.suffix == ".jsonl")
    used = [row["token_usage"] for row in map(json.loads, rows.read_text().splitlines())]
    return sums((counts["input_tokens"], counts["output_tokens"]) for counts in used if counts is not None)


def test_the_sums_over_steps_are_those_of_the_budget(offline: tuple[Path, Tokens], tmp_path: Path) -> None:
    run, budget = offline
    paid = (budget.prompt, budget.completion)
    assert budget.others > 0 and budget.reported == budget.answers
    again = Tokens()
    for record in RunFolder(run).steps:
        again.add(record)
    assert again == budget, "a resume counts what the journal holds"
    (log,) = written(run, "inspect", tmp_path)
    columns = judge_run(run).columns()
    assert columns.prompt_tokens is not None and columns.completion_tokens is not None
    opened = open_run(run)
    assert isinstance(opened, OpenedRun)
    rows = [row for step in opened.walk() for row in step.rows() if row["prompt_tokens"] is not None]
    shown = shown_run(run)
    seen = [
        sample["tokens"]
        for key in shown.plan
        for step in walk(shown, key, shown.read(key), [ActionEvaluator("guievalkit")], samples=None).values()
        for sample in seen_values(step).get("samples", ())
        if sample["tokens"] is not None
    ]
    assert in_inspect(log) == [paid, paid]
    assert in_every_eval_ever(written(run, "every-eval-ever", tmp_path)) == paid
    known = columns.prompt_tokens >= 0
    assert (int(columns.prompt_tokens[known].sum()), int(columns.completion_tokens[known].sum())) == paid
    assert sums((row["prompt_tokens"], row["completion_tokens"]) for row in rows) == paid
    assert sums((given, made) for given, made in seen) == paid


def test_the_sums_over_trajectories_are_those_of_the_budget(online: tuple[Path, Tokens], tmp_path: Path) -> None:
    run, budget = online
    paid = (budget.prompt, budget.completion)
    replies = sum(len(each.steps) for each in read_online(run))
    assert budget.others == replies and paid == (130 * replies, 9 * replies)
    (log,) = written(run, "inspect", tmp_path)
    assert in_inspect(log) == [paid, paid]
    assert in_every_eval_ever(written(run, "every-eval-ever", tmp_path)) == paid
    documents = [json.loads(path.read_text()) for path in written(run, "atif", tmp_path / "atif")]
    totals = [document["final_metrics"] for document in documents]
    assert sums((each["total_prompt_tokens"], each["total_completion_tokens"]) for each in totals) == paid
    steps = [step for document in documents for step in document["steps"][1:]]
    assert {step["llm_call_count"] for step in steps} == {2}
    assert sums((step["metrics"]["prompt_tokens"], step["metrics"]["completion_tokens"]) for step in steps) == paid
    make_run(tmp_path / "atif", tmp_path / "back")
    assert list(read_online(tmp_path / "back")) == list(read_online(run)), "each response has its own usage again"


def test_a_sum_with_an_unknown_part_is_left_out_of_formats_that_cannot_say_so(tmp_path: Path) -> None:
    class Silent(Wasteful):
        async def generate(self, request: Request) -> Response:
            request.bill.add(Usage())
            return await super().generate(request)

    scripted_runner(tmp_path / "run", [make_episode("a", ACTIONS)], Silent()).execute(resume=False)
    (log,) = written(tmp_path / "run", "inspect", tmp_path)
    with ZipFile(log) as archive:
        assert json.loads(archive.read("header.json"))["stats"]["model_usage"] == {}
