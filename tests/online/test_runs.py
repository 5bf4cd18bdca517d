"""Online runs: figures of scripted agents, resume after kills, failures of environments, and what is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from PIL import Image

import guieval
from guieval import run as run_guieval
from guieval.actions import Click, ExecutableAction, Point, Stop, Type, Unsupported, Wait
from guieval.errors import EnvironmentFailure, UsageError
from guieval.journal import METRICS, RunFolder
from guieval.journal.caveats import model_label
from guieval.journal.directory import TASKS
from guieval.metrics import TaskSummary
from guieval.models.scaffold import Typing
from guieval.online import ABCDevice, ABCEnvironment, EnvironmentTask, Observation, Score, find
from guieval.online.attempt import Attempt, LoopRule, screen_name
from guieval.online.contract import UNKNOWN
from guieval.online.trajectory import SCREENS, TRAJECTORIES, last_attempts, read_trajectories
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.playground.phone import generate_episode
from guieval.reports.opened import open_run
from guieval.reports.server.library import Library
from guieval.steps import OnlineTask, Outcome, Sample
from tests.command_line import CommandLine
from tests.made_runs import ANSWERED
from tests.made_runs import step as made_step
from tests.online.deadlines import SECONDS, Deadlines
from tests.programs import started
from tests.rows import every_row
from tests.waiting import until

AGENT = '''
"""Acts by a script: its reply to each step of each task; when a list is over, its last reply is repeated."""

import json
import time
from pathlib import Path

from guieval.actions import ActionSpace, action_from_json
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models import ABCModel, ImageRef, Message, ModelInput, ParsedResponse

HERE = Path(__file__)


class Scripted(ABCModel):
    """An agent for tests."""

    action_space = ActionSpace()
    fixed_frame = PER_1000

    def prepare_input(self, task, history):
        asked = f"{task.episode_id} {task.step_index} {len(history)} {task.instruction}"
        return ModelInput((Message("user", (asked, ImageRef(task))),))

    def respond(self, request):
        episode, step, past, _ = request.input.text.split(" ", 3)
        while held():
            time.sleep(0.01)
        with HERE.with_suffix(".log").open("a") as log:
            log.write(f"{episode} {step} {past}\\n")
        replies = json.loads(HERE.with_suffix(".json").read_text())[episode]
        return replies[min(int(step), len(replies) - 1)]

    def parse_response(self, task, text):
        try:
            actions = [action_from_json(line) for line in text.splitlines()]
            return ParsedResponse(actions[0], thought="as the script says", batch=tuple(actions) if len(actions) > 1 else ())
        except ValueError as error:
            raise ParseError(f"no action in {text!r}") from error

    def render(self, task, action, thought=None, conclusion=None):
        return action.model_dump_json()


def held():
    """Whether replies wait: a file holds the number after which they do."""
    try:
        return len(HERE.with_suffix(".log").read_text().splitlines()) >= int(HERE.with_suffix(".held").read_text())
    except OSError:
        return False
'''


def reference(number: int) -> list[str]:
    return [step.action.model_dump_json() for step in generate_episode(0, number).steps]


def task_id(number: int) -> str:
    return f"s0-{number:04d}"


KILLS = min(20, int(os.environ.get("GUIEVAL_KILLS", "3")))
"""How often a run is killed; `make kills` asks for 20."""
STOP = Stop().model_dump_json()
TASK = OnlineTask(benchmark="demo", episode_id="t", instruction="a goal", max_steps=9)
TAP = Click(point=Point(1, 1)).model_dump_json()
ZOOM = Unsupported(name="zoom").model_dump_json()
PLAYED: list[tuple[str, list[str]]] = [
    ("success", reference(0)),
    ("false completion", [STOP]),
    ("wrong stop", [Stop(status="impossible").model_dump_json()]),
    ("step limit", [TAP]),
    ("unparseable", ["no action at all"]),
    ("false completion", ["no action", *reference(5)[1:]]),
    ("success", [ZOOM, *reference(6)]),
    ("success", reference(7)),
]
SCRIPTS = {task_id(number): replies for number, (_, replies) in enumerate(PLAYED)}
UNTIL_STOP = len(reference(0)) - 1
ENDED = {task_id(number): ended for number, (ended, _) in enumerate(PLAYED)}


def write_agent(folder: Path, scripts: Mapping[str, Sequence[str]] = SCRIPTS) -> Path:
    """The agent's file, with its replies by task."""
    path = folder / "scripted.py"
    path.write_text(AGENT)
    path.with_suffix(".json").write_text(json.dumps(scripts))
    return path


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    return write_agent(tmp_path)


class Ran(NamedTuple):
    """A run of all scripts, which tests only read, and what the agent was asked."""

    run: Path
    asked: list[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("ran")
    agent = write_agent(folder)
    guieval.run(**settings(agent), out=folder / "run", progress=False)
    return Ran(folder / "run", requests(agent))


def settings(agent: Path, **more: Any) -> dict[str, Any]:
    demo = {"model": "scripted", "engine": "local", "bench": "demo", "bench_options": {"episodes": 8}, "mode": "online"}
    return {**demo, "adapter": str(agent), **more}


def outcomes(directory: Path) -> dict[str, Outcome]:
    """The last outcome of each task that has one."""
    found = {record.task.episode_id: record.samples[0].outcome for record in RunFolder(directory).tasks}
    return {name: outcome for name, outcome in found.items() if outcome is not None}


def figures_of(directory: Path) -> TaskSummary:
    found = guieval.evaluate_run(directory).summary
    assert isinstance(found, TaskSummary)
    return found


def requests(agent: Path) -> list[str]:
    log = agent.with_suffix(".log")
    return log.read_text().splitlines() if log.exists() else []


def test_every_end_is_distinguished(ran: Ran) -> None:
    found = outcomes(ran.run)
    assert {name: outcome.ended for name, outcome in found.items()} == ENDED
    verdicts = {record.task.episode_id: record.verdict for record in RunFolder(ran.run).tasks}
    rights = {name for name, ended in ENDED.items() if ended == "success"}
    assert {name for name, verdict in verdicts.items() if verdict == "right"} == rights
    assert verdicts[task_id(4)] == "unparseable" and verdicts[task_id(1)] == "wrong"
    assert found[task_id(3)].steps == 2 * len(reference(3)) + 5
    assert (found[task_id(4)].steps, found[task_id(4)].unparseable) == (3, 3)
    assert found[task_id(6)].unsupported == 1 and found[task_id(6)].steps == len(reference(6)) + 1


@every_row(
    ("scaffold", "number", "ended", "steps"),
    [
        ({"budget": {"flat": 4}}, 3, "step limit", 4),
        ({"budget": {"flat": 4}, "max_steps": 1}, 0, "step limit", 1),
        ({"ending": {"unparseable": 2}}, 4, "unparseable", 2),
        ({"ending": {"loop": {"equal": 3, "effect": "stop"}}}, 3, "loop", 3),
        ({"ending": {"loop": {"equal": 3, "effect": "fail"}}}, 3, "loop", 3),
        ({"ending": {"loop": {"equal": 3, "effect": "terminate"}}}, 3, "false completion", 3),
        ({"budget": {"flat": UNTIL_STOP}, "success": {"above": 0, "needs_stop": False}}, 0, "success", UNTIL_STOP),
        ({"budget": {"flat": UNTIL_STOP}, "success": {"above": 0, "needs_stop": True}}, 0, "step limit", UNTIL_STOP),
    ],
)
def test_a_scaffold_decides_a_tasks_end(scaffold: dict[str, Any], number: int, ended: str, steps: int, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    more = {"max_steps": scaffold.pop("max_steps", None), "scaffold": str(file)}
    file.write_text(json.dumps({"name": "own", "tasks": {"only": [task_id(number)]}, **scaffold}))
    guieval.run(**settings(write_agent(tmp_path), **more), out=tmp_path / "run", progress=False)
    outcome = outcomes(tmp_path / "run")[task_id(number)]
    assert (outcome.ended, outcome.steps) == (ended, steps)
    done = [step.executed for step in read_trajectories(tmp_path / "run")]
    assert all(done[:-1]) is (ended != "unparseable") and done[-1] is (ended in ("step limit", "loop", "success"))


def test_scaffolds_of_one_model_are_measured_apart(tmp_path: Path) -> None:
    """Of eighteen tasks six take a detour, and six end without a stop: a budget that cuts the former short and two rules that
    count the latter differ from the plain scaffold by a third each, with intervals without 0, and by no setting besides."""
    ends = {n: Wait().model_dump_json() if n in (1, 2, 6, 7, 8, 9) else reference(n)[-1] for n in range(18)}
    scripts = {task_id(n): [*[ZOOM] * 2 * (len(reference(n)) > 6), *reference(n)[:-1], end] for n, end in ends.items()}
    agent, loop, rule = write_agent(tmp_path, scripts), {"equal": 3, "effect": "terminate"}, {"above": 0.9, "needs_stop": False}
    differing = {"plain": {}, "budget": {"flat": 8}, "ending": {"loop": loop}, "success": rule}
    for name, fields in differing.items():
        (file := tmp_path / f"{name}.yaml").write_text(json.dumps({"name": name, **({name: fields} if fields else {})}))
        more = settings(agent, bench_options={"episodes": 18}, scaffold=str(file))
        guieval.run(**more, out=tmp_path / name, progress=False)
    found = guieval.compare(*(tmp_path / name for name in differing), metrics="success rate")
    between = {each.second.scaffold: each.metrics[0].difference for each in found}
    assert {name: round(18 * (each.value or 0)) for name, each in between.items()} == {"budget": -6, "ending": 6, "success": 6}
    assert all(each.interval and each.interval.low * each.interval.high > 0 for each in between.values())
    alike = "the runs are of one model and differ in "
    assert [[note.removeprefix(alike) for note in each.notes if alike in note] for each in found] == [
        ["budget.flat (not set and 8)"],
        ['ending.loop.effect (not set and "terminate"), ending.loop.equal (not set and 3)'],
        ["success.above (not set and 0.9), success.needs_stop (not set and false)"],
    ]


def test_a_scaffold_says_how_texts_are_typed() -> None:
    attempt = Attempt(TASK, typed=Typing(escapes={" ": "%s", "%": "%%"}).typed)
    shown, action = made_step(Wait()), Type(text="5 % of it")
    assert attempt.answered(shown, Sample(raw_response="", action=action, outcome=ANSWERED)) == [Type(text="5%s%%%sof%sit")]
    assert attempt.history[0].action == action, "the past is the model's own"


def test_a_loop_that_counts_as_failed_fails_in_the_goal_state_too() -> None:
    for rule, success in ((LoopRule(2, "stop"), True), (LoopRule(2, "fail"), False)):
        attempt, seen = Attempt(TASK, loop=rule), Observation("", b"", (1, 1))
        for _ in range(2):
            attempt.answered(made_step(Wait()), Sample(raw_response="", action=Wait(), outcome=ANSWERED))
        assert attempt.over(seen) and attempt.outcome(Score(success=True, progress=1.0), seen).score.success is success


def test_figures_are_the_scripts_own(ran: Ran) -> None:
    figures = figures_of(ran.run)
    assert (figures.tasks, figures.judged, figures.failed, figures.not_run) == (8, 8, 0, 0)
    found = figures.metrics
    assert (figures.success.count, figures.success.n) == (3, 8)
    interval = figures.success.interval
    assert interval is not None and interval.method == "episodes"
    assert (round(interval.low, 2), round(interval.high, 2)) == (0.09, 0.75)  # between Wilson's and the exact one for 3 of 8
    assert (found["false completion"].count, found["false completion"].n) == (2, 5)  # 3 successes and 2 false ones
    assert found["mean steps of successes"].value == (len(reference(0)) + len(reference(6)) + 1 + len(reference(7))) / 3
    assert figures.ended["success"] == 3 and sum(figures.ended.values()) == 8
    by_app = figures.groups["app"]
    assert sum(share.n for share in by_app.values()) == 8 and sum(share.count for share in by_app.values()) == 3


def test_one_journal_has_the_success_of_every_published_finish_rule(ran: Ran, tmp_path: Path) -> None:
    """By hand, of eight tasks: a rule that ignored the stop, or the half score, would give another of these three numbers."""
    run = shutil.copytree(ran.run, tmp_path / "run")
    ends = [(1, "finish"), (1, None), (0.5, "finish"), (0.5, "impossible"), (0.5, None), (0, "finish"), (0, None), (0, None)]
    lines = [json.loads(line) for line in (run / TASKS).read_text().splitlines()]
    for line, (progress, stopped) in zip(lines, ends, strict=True):
        del line["crc32"]
        outcome = line["samples"][0]["outcome"]
        outcome["score"] |= {"success": progress == 1, "progress": progress, "needs_stop": True}
        outcome |= {"stopped": stopped, "ended": "success" if progress == 1 else "failed"}
    (run / TASKS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = {name: metric.value for name, metric in figures_of(run).metrics.items()}
    assert (found["score with a stop"], found["score above 0"], found["full score with a stop"]) == (2 / 8, 5 / 8, 1 / 8)
    assert (found["success rate"], found["progress"]) == (2 / 8, 3.5 / 8)


def test_the_model_sees_its_own_past(ran: Ran) -> None:
    """Steps whose reply was not carried out are not part of the history."""
    seen: dict[str, list[tuple[int, int]]] = {}
    for line in ran.asked:
        episode, step, past = line.split()
        seen.setdefault(episode, []).append((int(step), int(past)))
    assert sorted(seen[task_id(0)]) == [(step, step) for step in range(len(reference(0)))]
    assert sorted(seen[task_id(4)]) == [(0, 0), (1, 0), (2, 0)]
    assert sorted(seen[task_id(6)])[:3] == [(0, 0), (1, 0), (2, 1)]


def test_trajectories_hold_what_was_shown_and_done(ran: Ran) -> None:
    steps = {key.episode_id: steps for (key, _), steps in last_attempts(ran.run).items()}
    episode = generate_episode(0, 0)
    assert [step.action for step in steps[task_id(0)]] == [step.action for step in episode.steps]
    for step, expected in zip(steps[task_id(0)], episode.steps, strict=True):
        shown = Image.open(ran.run / step.screenshot)
        assert shown.size == step.size and shown.tobytes() == expected.phone.render().tobytes()
        assert step.executed and step.thought == "as the script says" and step.goal == episode.task.instruction
    unread = steps[task_id(4)][0]
    assert unread.action is None and not unread.executed and unread.error is not None


def test_a_reply_with_several_actions_carries_them_all_out(tmp_path: Path, agent: Path) -> None:
    """The whole of a task in one reply; an action that no device knows ends a batch, and a resume repeats what was done."""
    half, rest, whole = map("\n".join, (reference(0)[:2], reference(0)[2:], reference(7)))
    broken = "\n".join([reference(6)[0], ZOOM, TAP])
    write_agent(tmp_path, SCRIPTS | {task_id(0): [half, rest], task_id(6): [broken, *reference(6)[1:]], task_id(7): [whole]})
    guieval.run(**settings(agent), out=tmp_path / "run", progress=False)
    found = outcomes(tmp_path / "run")
    assert {name: outcome.ended for name, outcome in found.items()} == ENDED
    assert (found[task_id(0)].steps, found[task_id(6)].steps, found[task_id(7)].steps) == (2, len(reference(6)), 1)
    steps = {key.episode_id: steps for (key, _), steps in last_attempts(tmp_path / "run").items()}
    assert [len(step.actions) for step in steps[task_id(0)]] == [2, len(reference(0)) - 2]

    journal, recorded = tmp_path / "run" / TASKS, tmp_path / "run" / TRAJECTORIES
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if task_id(0) not in line))
    first = next(line for line in recorded.read_text().splitlines(True) if task_id(0) in line and '"index":0' in line)
    recorded.write_text("".join(line for line in recorded.read_text().splitlines(True) if task_id(0) not in line) + first)
    before = len(requests(agent))
    guieval.run(resume=tmp_path / "run", trust_run=True, progress=False, adapter=str(agent))
    assert outcomes(tmp_path / "run") == found and len(requests(agent)) == before + 1


def test_repetitions_give_pass_figures(tmp_path: Path, agent: Path) -> None:
    sampled = settings(agent, samples=2, sampling={"temperature": 1.0})
    guieval.run(**sampled, out=tmp_path / "run", progress=False)
    figures = figures_of(tmp_path / "run")
    assert (figures.repetitions, figures.judged) == (2, 16)
    found = figures.metrics  # the agent does the same in every repetition
    assert found["pass@2"].value == found["pass^2"].value == 3 / 8


class Flaky(ABCEnvironment):
    """Three tasks: one works, one fails at its first attempt, one always fails; steps count up on a blank screen."""

    name = "flaky"
    title = "Flaky"
    source = "this test"
    deterministic = False
    attempts: ClassVar[dict[str, int]] = {}
    deadlines: ClassVar[Deadlines | None] = None
    """With them, it hangs where it would fail."""
    opened = closed = 0

    @property
    def version(self) -> str:
        return "1"

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(EnvironmentTask(name, 5, goal=f"do {name}") for name in ("good", "once", "never"))

    async def open(self) -> ABCDevice:
        type(self).opened += 1
        return FlakyDevice(self)


class FlakyDevice(ABCDevice):
    def __init__(self, environment: Flaky) -> None:
        self.environment, self.task, self.steps = environment, "", 0

    def observe(self) -> Observation:
        stream = BytesIO()
        Image.new("RGB", (40, 80), (self.steps * 40, 0, 0)).save(stream, "PNG")
        return Observation(f"do {self.task}", stream.getvalue(), (40, 80), over=self.steps >= 3)

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        self.task, self.steps = task.id, 0
        Flaky.attempts[task.id] = Flaky.attempts.get(task.id, 0) + 1
        return self.observe()

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        self.steps += len(actions)
        if self.steps == 2 and (self.task == "never" or (self.task == "once" and Flaky.attempts[self.task] == 1)):
            if Flaky.deadlines is not None:
                await Flaky.deadlines.hang()
            raise EnvironmentFailure("the screen went black") if self.task == "once" else ValueError("a bug")
        return self.observe()

    async def score(self) -> Score:
        return Score(success=True, progress=1.0)

    async def close(self) -> None:
        type(self.environment).closed += 1


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch, agent: Path) -> dict[str, Any]:
    Flaky.attempts, Flaky.opened, Flaky.closed = {}, 0, 0
    monkeypatch.setitem(find.environments(), "flaky", Flaky)
    write_agent(agent.parent, {name: [Wait().model_dump_json()] for name in ("good", "once", "never")})
    return settings(agent, bench="flaky", bench_options={})


@pytest.mark.parametrize("hangs", [False, True])
def test_a_failing_environment_is_restarted_and_costs_its_task_only(
    tmp_path: Path, flaky: dict[str, Any], hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if hangs:  # one device, as the deadlines of all that are in use pass together
        monkeypatch.setattr(Flaky, "deadlines", Deadlines(monkeypatch, Flaky))
    more: dict[str, Any] = {"environment_timeout": SECONDS, "environments": 1 if hangs else 3}
    result = guieval.run(**flaky, **more, out=tmp_path / "run", progress=False)
    figures = figures_of(tmp_path / "run")
    assert (figures.success.count, figures.judged, figures.failed) == (2, 2, 1) and not result.complete
    assert Flaky.attempts == {"good": 1, "once": 2, "never": 3}
    assert Flaky.opened == Flaky.closed == 6
    (failed,) = (record for record in RunFolder(tmp_path / "run").tasks if not record.finished)
    error = failed.samples[0].error
    assert failed.verdict == "infrastructure_failure" and error is not None and error.stage == "environment"
    assert (f"took longer than {SECONDS:g} s" if hangs else "ValueError: a bug (3 attempts)") in error.message
    steps = [step for step in read_trajectories(tmp_path / "run") if step.key.episode_id == "once"]
    assert [(step.attempt, step.index) for step in steps] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert outcomes(tmp_path / "run")["once"].steps == 3


def test_every_list_shows_success_over_the_judged_tasks(
    tmp_path: Path, flaky: dict[str, Any], guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of two judged tasks; the third one, whose environment failed, is in no denominator."""
    result = run_guieval(**flaky, out=tmp_path / "runs" / "one", progress=False)
    (listed,) = json.loads(guieval("runs", str(tmp_path / "runs"), "--json").out)["runs"]
    rate = listed["success_rate"]
    assert (rate["value"], rate["n"], listed["exact_match"]) == (1.0, 2, None)
    board = json.loads(guieval("leaderboard", str(tmp_path / "runs" / "one"), "--format", "json").out)
    cell = board["rows"][0]["cells"][0]["measured"]
    assert (cell["value"], cell["n"]) == (1.0, 2)
    assert rate["interval"] == cell["interval"]
    monkeypatch.setenv("COLUMNS", "160")
    assert "100.00% success (1 missing)  [10.4, 100.0]" in guieval("runs", str(tmp_path / "runs")).out
    (row,) = Library([tmp_path / "runs"]).listed()
    assert (row["headline"]["value"], row["headline"]["n"], row["headline"]["missing"], row["state"]) == (1.0, 2, 1, "stopped")
    assert result.metrics() == open_run(result.directory).metrics() and result.metrics()["success rate"].value == 1.0


TALKATIVE = "qwen2.5-vl-7b"
PRICES = "- {models: [qwen2.5-vl-7b], currency: EUR, input: 1.0, output: 0.0, source: this test, as_of: 2026-11-25}\n"


@pytest.fixture
def paid(flaky: dict[str, Any], tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A server whose replies of 3,000 + 60 tokens cost 0.003 EUR each does the tasks of the flaky environment one by one."""
    (tmp_path / "prices.yaml").write_text(PRICES)
    with MockServer(MockSettings(model=TALKATIVE, served_models=(TALKATIVE,))) as server:
        yield {
            **{name: value for name, value in flaky.items() if name not in ("adapter", "engine")},
            **{"model": TALKATIVE, "base_urls": (server.base_url,), "environments": 1, "prices": str(tmp_path / "prices.yaml")},
        }


def test_the_tokens_of_every_attempt_are_paid_and_a_resume_repeats_a_failed_task(tmp_path: Path, paid: dict[str, Any]) -> None:
    """Replies: 3 to the first task, 2 and 3 at two attempts at the second, 2 at each of three attempts at the third."""
    run_guieval(**paid, out=tmp_path / "run", progress=False)
    cost = json.loads((tmp_path / "run" / METRICS).read_text())["cost"]
    assert (cost["answers"], cost["prompt_tokens"], cost["completion_tokens"]) == (14, 14 * 3000, 14 * 60)
    assert cost["amount"] == pytest.approx(14 * 0.003)
    used = {}
    for record in RunFolder(tmp_path / "run").tasks:
        (sample,) = record.samples
        assert sample.usage is not None and sample.seconds is not None
        used[record.task.episode_id] = sample.usage.prompt_tokens
    assert used == {"good": 3 * 3000, "once": 5 * 3000, "never": 6 * 3000}

    run_guieval(resume=tmp_path / "run", trust_run=True, progress=False)
    assert Flaky.attempts == {"good": 1, "once": 2, "never": 6} and figures_of(tmp_path / "run").failed == 1
    assert len(list(RunFolder(tmp_path / "run").records)) == len(used) + 1
    cost = json.loads((tmp_path / "run" / METRICS).read_text())["cost"]
    assert cost["answers"] == len(list(read_trajectories(tmp_path / "run"))) == 20, "three further attempts at the third task"


def test_a_budget_counts_failed_attempts(tmp_path: Path, paid: dict[str, Any]) -> None:
    """Eight replies use it up, of which two belong to an attempt that failed; the third task is not begun."""
    result = run_guieval(**paid, budget=8 * 0.003, out=tmp_path / "run", progress=False)
    assert Flaky.attempts == {"good": 1, "once": 2}
    assert "is used up (0.0240 EUR spent, 0 requests in flight)" in str(result["online"].outcome.progress.halted)


@pytest.mark.ci
def test_a_killed_run_goes_on_and_asks_nothing_twice(tmp_path: Path, agent: Path, ran: Ran) -> None:
    for moment in random.Random(17).sample(range(len(ran.asked)), KILLS):
        agent.with_suffix(".log").unlink(missing_ok=True)
        run = tmp_path / f"killed{moment}"
        kill_after(moment, agent, run)
        guieval.run(resume=run, trust_run=True, progress=False, adapter=str(agent))
        assert outcomes(run) == outcomes(ran.run)
        # a reply whose step was not on the disk when the process was killed is asked again: one per device at most
        assert set(requests(agent)) == set(ran.asked) and 0 <= len(requests(agent)) - len(ran.asked) <= 4


def kill_after(count: int, agent: Path, out: Path) -> None:
    """Start a run and kill it after so many requests."""
    with started(command(agent, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: process.poll() is not None or len(requests(agent)) >= count, f"{count} requests", every=0.002)


def command(agent: Path, out: Path) -> list[str]:
    words = "run --quiet --mode online --model scripted --engine local --bench demo --set bench_options.episodes=8"
    return [sys.executable, "-m", "guieval", *words.split(), "--adapter", str(agent), "--out", str(out)]


def test_a_torn_trajectory_is_cut_and_a_changed_one_begun_again(tmp_path: Path, agent: Path, ran: Ran) -> None:
    run = shutil.copytree(ran.run, tmp_path / "run")
    (run / TASKS).write_bytes(b"")  # as if killed before any outcome was written
    lines = (run / TRAJECTORIES).read_text().splitlines(keepends=True)
    changed = [line.replace(".png", "0.png") if task_id(1) in line else line for line in lines]
    (run / TRAJECTORIES).write_text("".join(changed) + '{"key": ["demo"')
    guieval.run(resume=run, trust_run=True, progress=False, adapter=str(agent))
    assert {name: outcome.ended for name, outcome in outcomes(run).items()} == ENDED
    assert [line.split()[0] for line in requests(agent)] == [task_id(1)]  # the only one whose screens are not the recorded ones
    assert outcomes(run)[task_id(1)].attempt == 1


def zeroed(run: Path, task: str, index: int) -> None:
    """Zeros in the place of a task's step, as a loss of power may leave in a file that had grown."""
    path = run / TRAJECTORIES
    lines = path.read_text().splitlines(keepends=True)
    lost = [task in line and f'"index":{index},' in line for line in lines]
    path.write_text("".join("\0" * (len(line) - 1) + "\n" if gone else line for line, gone in zip(lines, lost, strict=True)))


def screens(run: Path) -> list[Path]:
    return sorted((run / SCREENS).iterdir())


@pytest.mark.ci
@every_row(
    ("left", "again"),
    [
        *((lambda run: os.truncate(screens(run)[0], 0), 0), (lambda run: screens(run)[0].unlink(), 0)),
        *((lambda run: shutil.rmtree(run / SCREENS), 0), (lambda run: os.truncate(screens(run)[0], 20), 0)),
        *((lambda run: os.truncate(run / TRAJECTORIES, 0), None), (lambda run: (run / TRAJECTORIES).unlink(), None)),
        (lambda run: os.truncate(run / TRAJECTORIES, (run / TRAJECTORIES).stat().st_size - 30), 1),
        (lambda run: zeroed(run, task_id(0), 0), len(reference(0))),
        (lambda run: zeroed(run, task_id(0), 1), len(reference(0))),
        (lambda run: zeroed(run, task_id(0), len(reference(0)) - 1), 1),
        (lambda run: zeroed(run, task_id(3), 1), 2 * len(reference(3)) + 5),  # whose every step shows the same screen
    ],
)
def test_what_a_loss_of_power_leaves_never_counts_as_a_half_trajectory(
    left: Callable[[Path], None], again: int | None, tmp_path: Path, agent: Path, ran: Ran
) -> None:
    """A step that is gone in the middle begins its task again, one at its end is asked again, a screenshot is shown again."""
    run = shutil.copytree(ran.run, tmp_path / "run")
    os.truncate(run / TASKS, 0)  # no outcome was on the disk yet
    left(run)
    guieval.run(resume=run, trust_run=True, progress=False, adapter=str(agent))
    assert {name: outcome.ended for name, outcome in outcomes(run).items()} == ENDED
    assert len(requests(agent)) == (len(ran.asked) if again is None else again)
    agent.with_suffix(".log").unlink(missing_ok=True)
    for steps in last_attempts(run).values():
        assert [step.index for step in steps] == [*range(len(steps))]
        assert {step.attempt for step in steps} == {outcomes(run)[steps[0].key.episode_id].attempt}
    assert whole_screens(run)


def whole_screens(run: Path) -> bool:
    """Whether every recorded step has its screenshot; a file is named by its content's digest."""
    named = [run / step.screenshot for step in read_trajectories(run)]
    return bool(named) and all(file.name == screen_name(file.read_bytes()) for file in named)


def test_the_command_prints_one_table(tmp_path: Path, agent: Path, guieval: CommandLine) -> None:
    ran = guieval(*command(agent, tmp_path / "run")[3:])
    assert ran.code == 0 and "success" in ran.out and "37.50% of 8 [8.8, 74.5]" in ran.out
    assert "exact match" not in ran.out and "re-score" not in ran.out
    scored = guieval("score", str(tmp_path / "run"))
    assert scored.code == 0 and "37.50% of 8 [8.8, 74.5]" in scored.out
    values = json.loads(guieval("score", str(tmp_path / "run"), "--json").out)["runs"][0]["summary"]
    assert values["metrics"]["success rate"]["count"] == 3 and values["ended"]["step limit"] == 1


@every_row(
    ("changes", "sentence"),
    [
        (
            {"bench": "androidcontrol"},
            "'androidcontrol' has no environment; mode online is for aitw-gen, aitw-web, androidworld, ",
        ),
        ({"bench": "demos"}, "unknown environment 'demos' (did you mean 'demo'?)"),
        ({"bench_options": {"episods": 3}}, "environment 'demo' has no option 'episods' (did you mean 'episodes'?)"),
        ({"bench_options": {"episodes": "x"}}, "option episodes is 'x'; expected a whole number"),
        ({"protocol": "guievalkit"}, "mode online is judged by the environment, so it takes no protocol 'guievalkit'"),
        ({"sample_set": "aitz-test-4724"}, "sample_set does not fit mode online"),
        ({"cluster": "ray"}, "mode online runs on this machine"),
        ({"patch": "thought-free"}, "mode 'online' continues after a mismatch anyway"),
        ({"mode": "offline", "bench": "miniwob", "bench_options": {}}, "is an environment, with no recorded episodes"),
        ({"mode": "offline", "max_steps": 3}, "max_steps is for mode online, and the mode is 'offline'"),
        ({"mode": "offline", "allow_network": True}, "allow_network is for mode online, and the mode is 'offline'"),
        ({"allow_network": True}, "opened here (browsergym, cube, miniwob, mobilegym, "),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, agent: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        guieval.run(**settings(agent, **changes), out=tmp_path / "run", progress=False)
    assert sentence in str(refused.value)
    assert not (tmp_path / "run").exists()


@every_row(
    ("changes", "sentence"),
    [
        ({"max_steps": 4}, "because it differs in max_steps (was None, now 4)\n"),
        ({"seed": 5}, "because it differs in seed (was 0, now 5)\n"),
        ({"observation": "text"}, "because it differs in bench_options.observation (was 'screenshot', now 'text')\n"),
        ({"now": "2"}, "because it differs in the environment's version, which was '1' and is '2'; --accept-changes continues"),
        ({"fonts": "b"}, "because it differs in the environment's fonts, which was 'a' and is 'b'; --accept-changes continues"),
    ],
)
def test_a_resume_is_of_the_same_environment(
    tmp_path: Path, flaky: dict[str, Any], monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setitem(find.environments(), "flaky", Changing)
    options = {"bench_options": {"observation": "screenshot"}}
    run_guieval(**{**flaky, **options}, out=tmp_path / "run", progress=False)
    for name in [name for name in changes if hasattr(Changing, name)]:
        monkeypatch.setattr(Changing, name, changes[name])
        changes = {}
    given = {"bench_options": changes} if "observation" in changes else changes
    again = {"resume": tmp_path / "run", "trust_run": True, "progress": False, "adapter": flaky["adapter"], **given}
    with pytest.raises(UsageError) as refused:
        run_guieval(**again)
    assert sentence in f"{refused.value}\n"
    if changes:
        with pytest.raises(UsageError):
            run_guieval(**again, accept_changes=True)
        return
    if Changing.fonts == "b":
        run_guieval(**{**flaky, **options}, out=tmp_path / "other", progress=False)
        (found,) = guieval.compare(tmp_path / "run", tmp_path / "other")
        assert "the environments differ in fonts (a and b): screens may differ" in found.notes
    run_guieval(**again, accept_changes=True)
    assert model_label(RunFolder(tmp_path / "run").manifest) == "scripted (mixed)"


class Changing(Flaky):
    """An environment of several versions and fonts, and of two kinds of observations; the first has an unknown server."""

    now: ClassVar[str] = "1"
    fonts: ClassVar[str] = "a"

    def __init__(self, *, observation: str = "screenshot") -> None:
        super().__init__()

    @property
    def version(self) -> str:
        return self.now

    def identity(self) -> dict[str, str]:
        return {"fonts": self.fonts, "server version": UNKNOWN if self.fonts == "a" else "3"}
