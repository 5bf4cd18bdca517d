"""One name, one number: whatever commands print of one run, the figures that they share are equal."""

from __future__ import annotations

import json
import shutil
from itertools import zip_longest
from pathlib import Path
from typing import Any

from guieval.actions import Action, Boxes, Click, Open, Point, Press, Unsupported
from guieval.evaluation import get_protocol, list_protocols
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, FailurePolicy
from guieval.journal import Journal, read_planned
from guieval.metrics.breakdown import breakdown
from guieval.metrics.figures import figures_of
from guieval.metrics.summary import Average, Rate
from guieval.models import Request
from guieval.reports.comparison import compare_runs
from guieval.scoring.matrix import score_run
from guieval.scoring.score import evaluate_run
from guieval.steps import StepRecord
from tests.command_line import CommandLine
from tests.made_runs import record, sample, step, write_run
from tests.rows import every_row
from tests.scripted import ScriptedEngine, make_episode, reply_with, run_scripted

TARGET = Click(point=Point(500, 500))
MISS = Click(point=Point(50, 50))
BOXES = Boxes([[450.0, 450.0, 550.0, 550.0]])


def a_run(folder: Path, answers: dict[str, list[Action | None]], **how: Any) -> Path:
    """A run of one answer to every step; ``None`` is a reply that cannot be read."""
    records = [
        record(step(TARGET, episode=name, index=index, length=len(message), targets=BOXES, dataset="androidcontrol"), action)
        for name, message in answers.items()
        for index, action in enumerate(message)
    ]
    return write_run(folder / "run", records, **how)


@every_row("name", list_protocols())
def test_a_protocols_figure_that_is_named_like_a_headline_figure_is_that_figure(name: str) -> None:
    protocol = get_protocol(name)
    assert len({figure.name for figure in protocol.figures}) == len(protocol.figures)
    for headline in (TYPE_MATCH, EXACT_MATCH, PROGRESS, SUCCESS_RATE):
        for figure in protocol.figures:
            if figure.name == headline.name:
                assert figure == headline and (figure.failure or protocol.failure) == FailurePolicy()


def test_score_prints_one_value_of_pg_for_a_sop_run(guieval: CommandLine, tmp_path: Path) -> None:
    run = a_run(tmp_path, {"a": [TARGET, None], "b": [TARGET, TARGET]}, mode="sop", protocol="ui-s1-sop")
    out = guieval("score", run).out
    values = [line.split()[1] for line in out.splitlines() if line.split()[:1] == ["PG"]]
    assert values == ["75.00%", "75.00%"]  # appendix C: the mean of 1/2 and 2/2
    scores = [line.split()[1] for line in out.splitlines() if line.split()[:1] in (["Score"], ["score"])]
    assert scores == ["62.50%", "62.50%"]


def several(folder: Path, answers: dict[str, list[str]], length: int, **how: Any) -> Path:
    """A run of four samples a step: ``+`` right, ``-`` wrong, ``!`` never answered; further steps were never asked."""
    message = {"+": sample(TARGET), "-": sample(MISS), "!": sample(None, failed=True)}
    records = [
        StepRecord(
            task=step(TARGET, episode=name, index=index, length=length, targets=BOXES),
            samples=tuple(message[each] for each in samples),
        )
        for name, steps in answers.items()
        for index, samples in enumerate(steps)
    ]
    return write_run(folder / "run", records, **how)


ALL_PASS = {name: ["++++", "+++-", "++--"] for name in "abcdefghijkl"}
FAILED = {"a": ["!++-", "++!!"], "b": ["!!!!", "+---"], "c": ["++++", "-+++"]}
PARTIAL = {"a": ["++++"], "b": ["+---", "-+++"], "c": ["++-+"]}


@every_row(("answers", "mode"), [(ALL_PASS, "offline"), (FAILED, "offline"), (FAILED, "sop"), (PARTIAL, "sop")])
def test_pass_at_n_has_one_value_and_one_interval(
    guieval: CommandLine, tmp_path: Path, answers: dict[str, list[str]], mode: str
) -> None:
    run = several(tmp_path, answers, length=3, mode=mode)
    (scored,) = json.loads(guieval("score", run, "--json").out)["protocols"]
    four = next(each for each in scored["samples"] if each["name"] == "pass@4")
    tables = {each["name"]: each for each in json.loads(guieval("decisions", run, "--format", "json").out)}
    (passed,) = (row[1] for row in tables["pass"]["rows"] if row[0] == "4")
    assert passed["value"] == four["value"] and passed["n"] == four["n"]
    assert (passed["low"], passed["high"]) == (four["interval"]["low"], four["interval"]["high"])
    drawn = json.loads(guieval("plot", "samples", run, "--out", tmp_path / "s.svg", "--json").out)["numbers"]["made-up-model"]
    assert [each for each in drawn if each["name"] == "pass@4"] == [four]


def test_a_step_counts_as_open_by_its_reference_asked_or_not(tmp_path: Path) -> None:
    """A run that a dead server ended after a few steps leaves out as many OPEN steps as a complete one."""
    episodes = [make_episode(name, [TARGET, Open(app="Maps"), TARGET, Open(app="Files"), TARGET]) for name in "abcd"]

    def policy(request: Request) -> str:
        late = request.task.step_index == 3 and request.task.episode_id != "a"
        return reply_with(Press(button="HOME") if late else request.task.action)

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for mode in ("offline", "sop"):
        run_scripted(whole / mode, episodes, ScriptedEngine(policy), mode=mode)
        shutil.copytree(whole / mode, cut / mode)
        journal = cut / mode / "steps.jsonl"
        journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
        complete, partial = (evaluate_run(each / mode).summary for each in (whole, cut))
        assert not partial.complete and partial.verdicts.not_run > 0
        opened = sum(type_ == "OPEN" for of in read_planned(cut / mode).types.values() for type_ in of.values())
        if mode == "offline":
            assert complete.type_match.n - complete.without_open.type_match.n == opened > 0
            assert partial.without_open.type_match.n == complete.without_open.type_match.n
            assert {name: each.n for name, each in partial.by_action_type.items()} == {
                name: each.n for name, each in complete.by_action_type.items()
            }
        for run in (whole / mode, cut / mode):
            columns = score_run(run, ["guievalkit-intended"])
            figures = {figure.name: value for figure, value in figures_of(get_protocol("guievalkit-intended"), columns)}
            message = evaluate_run(run, "guievalkit-intended").summary.without_open
            assert figures["exact match, without OPEN"].n == message.exact_match.n
            assert figures["exact match, without OPEN"].value == message.exact_match.value
            assert message.progress_step_weighted is not None
            assert figures["step-weighted progress, without OPEN"].value == message.progress_step_weighted.value
            assert figures["step-weighted progress, without OPEN"].n == message.progress_step_weighted.n


AGREEING = ("guievalkit", "guievalkit-intended", "agentcpm", "infigui-r1", "ui-s1-sop", "seeclick-official")
MIXED: dict[str, list[Action | None]] = {
    "a": [TARGET, MISS, TARGET],
    "b": [TARGET, None, TARGET, Press(button="HOME")],
    "c": [TARGET, TARGET],
    "d": [Press(button="HOME"), TARGET],
    "e": [Unsupported(name="zoom"), TARGET],
}


@every_row(
    ("mode", "lost", "plotted", "figure_plotted"),
    [
        ("offline", False, "exact", "exact match"),
        ("offline", True, "type", "type match"),
        ("sop", False, "progress", "progress"),
        ("sop", True, "success", "success rate"),
    ],
)
def test_all_commands_agree_on_every_figure_they_share(
    guieval: CommandLine, tmp_path: Path, mode: str, lost: bool, plotted: str, figure_plotted: str
) -> None:
    """By protocol and name, whatever prints a figure: its value, what it is divided by, and where given its interval."""
    run = a_run(tmp_path, MIXED, mode=mode, protocol="guievalkit")
    if lost:  # the last steps were never asked, and one request failed
        lines = (run / "steps.jsonl").read_bytes().splitlines(keepends=True)
        (run / "steps.jsonl").write_bytes(b"".join(lines[:-2]))
        with Journal(run) as journal:
            journal.append(record(step(TARGET, episode="d", length=2, targets=BOXES, dataset="androidcontrol")))
        kept = [line for line in (run / "steps.jsonl").read_bytes().splitlines(keepends=True) if b'"HOME"' not in line]
        (run / "steps.jsonl").write_bytes(b"".join(kept))
    names = [word for name in AGREEING for word in ("--protocol", name)]
    found: dict[tuple[str, str], dict[str, tuple[float | None, ...]]] = {}

    def result(command: str, protocol: str, figure: str, *numbers: float | None) -> None:
        found.setdefault((protocol, figure), {})[command] = numbers

    for each in json.loads(guieval("score", run, *names, "--json").out)["protocols"]:
        for figure in each["figures"]:
            result("matrix", each["name"], figure["name"], figure["value"], figure["n"], *ends(figure["interval"]))
    board = json.loads(guieval("leaderboard", run, *names, "--format", "json").out)
    for column, cell in zip(board["columns"], board["rows"][0]["cells"], strict=True):
        result("leaderboard", column["protocol"], column["figure"], cell["value"], cell["n"], *ends(cell["interval"]))
    for each in () if lost else compare_runs(run, run, AGREEING).figures:  # else of what both answered, as their names say
        result("compare", each.protocol, each.figure.name, each.first.value, each.first.n)
    for name in AGREEING:
        for figure in json.loads(guieval("score", run, "--protocol", name, "--json").out)["protocols"][0]["figures"]:
            result("score", name, figure["name"], figure["value"], figure["n"], *ends(figure["interval"]))
        summary = evaluate_run(run, name).summary
        bare = {"type match": summary.without_open.type_match, "exact match": summary.without_open.exact_match}
        headline: dict[str, Rate | Average] = {
            "type match": summary.type_match,
            "exact match": summary.exact_match,
            "progress": summary.progress_episode_mean,
            "success rate": summary.success_rate,
            **{f"{each}, without OPEN": value for each, value in bare.items()},
            **({} if summary.sop is None else {"PG": summary.sop.pg, "TSR": summary.sop.tsr, "score": summary.sop.score}),
        }
        for figure_name, value in headline.items():
            result("report", name, figure_name, value.value, value.n)
        columns = score_run(run, [name])
        for cell in breakdown(columns, name, "action"):
            by_type = summary.by_action_type[cell.label]
            assert (by_type.n, by_type.exact_match.value, by_type.type_match.value) == (
                cell.n,
                cell.exact_match,
                cell.type_match,
            )
    runs = (run, run_beside(run), "--label", "a", "--label", "b", "--out", tmp_path / "m.svg")
    grid = json.loads(guieval("plot", "matrix", *runs, *names, "--figure", plotted, "--json").out)["numbers"]
    for protocol, row in zip(grid["rows"], grid["values"], strict=True):
        result("plot", protocol, figure_plotted, row[0])
    assert {command for of in found.values() for command in of} >= {"matrix", "leaderboard", "score", "report", "plot"}
    unlike = [(*figure, numbers) for figure, numbers in found.items() if differ(list(numbers.values()))]
    assert unlike == []


def differ(results: list[tuple[float | None, ...]]) -> bool:
    """Whether any two say something else in a place that both have."""
    rounded = [[None if each is None else round(each, 12) for each in numbers] for numbers in results]
    return any(len(set(place) - {...}) > 1 for place in zip_longest(*rounded, fillvalue=...))


def ends(interval: dict[str, float] | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval["low"], interval["high"])


def run_beside(run: Path) -> Path:
    """A copy of the run, so that a heat map shows whole runs rather than one run by action type."""
    copy = run.with_name("beside")
    if not copy.exists():
        shutil.copytree(run, copy)
    return copy
