"""One name, one number: whatever prints the metrics of a run, a name has the same value, n, missing steps and interval."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from guieval import evaluate_run, open_run
from guieval.actions import Click, Point
from guieval.journal.directory import TASKS
from guieval.metrics import Measured
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.reports.opened import OpenedOnlineRun, OpenedRun
from guieval.reports.server.library import Library
from guieval.reports.server.overview import judged_run, metrics_section, stored_section
from guieval.reports.tables.writers import plain
from guieval.reports.viewer.reading import FAILED, NOT_RUN, RIGHT
from tests.cli.demo_runs import MODEL
from tests.command_line import CommandLine
from tests.reports.scripted_runs import edited
from tests.reports.trajectories.made_online import online_run

OPTIONS = {"episodes": 8, "seed": 4}
CHOSEN = [part for name, value in OPTIONS.items() for part in ("--set", f"bench_options.{name}={value}")]
ENDS = ("right", "right", "wrong", "right", "unparseable", "right", "unsupported", "failed")
NEVER_SENT = 6
Numbers = tuple[Any, ...]


def made_run(guieval: CommandLine, folder: Path) -> tuple[Path, Any]:
    """A run with wrong, unparseable, unsupported, failed and missing steps, as ``guieval run`` makes it, and its JSON."""
    data, script = folder / "data", folder / "script.jsonl"
    model = load_model(MODEL)
    benchmark = load_benchmark("demo", data, **OPTIONS)
    steps = [step for ref in benchmark.index() for step in benchmark.load(ref).steps]
    lines = []
    for number, step in enumerate(steps):
        end = ENDS[number % len(ENDS)]
        texts = {"unparseable": "I would tap the icon.", "unsupported": "Thought: x\nAction: hotkey(key='ctrl a')"}
        action = step.action if end == "right" and step.action in model.action_space else Click(point=Point(3.0, 3.0))
        if end != "failed":
            lines.append(json.dumps({"key": str(step.key), "reply": texts.get(end) or model.render(step, action)}))
    script.write_text("\n".join(lines))
    settings = MockSettings(model=MODEL, policy="script", script=script, served_models=(MODEL,), error_rate=1.0)
    ends = settings.model_copy(update={"error_status": 402, "faults_after": len(steps) - NEVER_SENT})
    with MockServer(ends) as server:
        words = ("run", "--model", MODEL, "--bench", "demo", "--data", data, "--base-url", server.base_url)
        done = guieval(*words, *CHOSEN, "--concurrency", "1", "--out", folder / "run", "--json")
    assert done.code != 0 and "demands payment" in done.err
    (shown,) = json.loads(done.out)["runs"]
    return folder / "run", shown


def numbers(measured: Mapping[str, Any]) -> Numbers:
    interval = measured.get("interval") or {}
    return measured["value"], measured["n"], measured["missing"], interval.get("low"), interval.get("high"), measured["unit"]


def by_name(found: Mapping[str, Any]) -> dict[str, Numbers]:
    return {name: numbers(each if isinstance(each, Mapping) else plain(each)) for name, each in found.items()}


def of_summary(summary: Mapping[str, Any]) -> dict[str, Numbers]:
    return by_name({**summary["metrics"], **summary["own"], **summary["further"]})


def everywhere(guieval: CommandLine, run: Path, shown: Any, other: Path) -> Iterator[tuple[str, dict[str, Numbers]]]:
    """Every command, and what it shows of the run, by name."""

    def values(*words: str | Path) -> Any:
        done = guieval(*words, "--json")
        assert done.code in (0, 1), done.err
        found = json.loads(done.out)
        return found["runs"][0] if words[0] in ("score", "runs") else found

    yield "run", of_summary(shown["summary"])
    opened = open_run(run)
    assert isinstance(opened, OpenedRun) and opened.state == opened.metrics().state == "stopped"
    yield "open_run", by_name(opened.metrics())
    yield "evaluate_run", by_name(evaluate_run(run).summary.all_metrics)
    scored = values("score", run)
    yield "score", of_summary(scored["summary"])
    yield "score: its protocol", by_name(scored["protocols"][0]["metrics"])
    several = values("score", run, "--protocol", "guievalkit", "--protocol", "osatlas")
    yield "score of several protocols", by_name(several["protocols"][0]["metrics"])
    listed = values("runs", "list", run)
    yield "runs", by_name({"exact match": listed["exact_match"], "success rate": listed["success_rate"]})
    board = values("leaderboard", run)
    cells = [cell["measured"] for cell in board["rows"][0]["cells"]]
    yield "leaderboard", by_name(dict(zip((column["metric"] for column in board["columns"]), cells, strict=True)))
    for words, letter in (((run, other), "A"), ((other, run), "B")):
        compared = [each for each in values("compare", *words)["comparisons"][0]["metrics"] if not each["shared"]]
        assert compared[0]["metric"] == "exact match"
        yield f"compare, {letter}", by_name({each["metric"]: each[letter] for each in compared})
    (drawn,) = values("plot", "pareto", run, "--out", other / "a.svg")["numbers"]
    yield "plot", by_name({"exact match": drawn["share"]})
    for name in ("exact match", "type match", "progress", "success rate"):
        metric = name.split()[0]
        drawn = values("plot", "matrix", run, other, "--metric", metric, "--out", other / "a.svg")["numbers"]
        expected = shown["summary"]["metrics"][name]
        assert [(each["value"], each["n"]) for each in drawn["values"][0]] == [(expected["value"], expected["n"])] * 2, metric
    (row,) = Library([run]).listed()
    yield "view: the list", by_name({"exact match": row["headline"]})
    assert row["state"] == "stopped"
    for place, section in (("stored", stored_section(run)), ("judged", metrics_section(judged_run(run)))):
        assert section is not None and section["state"] == "stopped"
        yield f"view: {place}", by_name({card["name"]: card["measured"] for card in section["cards"]})
        assert all("missing" in card["mark"] for card in section["cards"] if card["name"] == "exact match")
    yield from exported(guieval, run, other / "exported")
    yield "report", by_name({"exact match": reported(guieval, run, other / "report")})


def exported(guieval: CommandLine, run: Path, out: Path) -> Iterator[tuple[str, dict[str, Numbers]]]:
    """What is in the files of every format of ``export-results``; percentages in them have two decimals."""

    def written(form: str, *words: str) -> Path:
        done = guieval("data", "export-results", run, "--format", form, "--out", out / form, *words)
        assert done.code == 0, done.err
        return out / form

    (file,) = (each for each in written("every-eval-ever").rglob("*.json") if "evaluation_results" in each.read_text())
    found: dict[str, Numbers] = {}
    for each in json.loads(file.read_text())["evaluation_results"]:
        details = each["score_details"]
        between, held = details["uncertainty"]["confidence_interval"], details["details"]
        whole = (details["score"], int(held["n"]), int(held["steps_not_measured"]), between["lower"], between["upper"], "share")
        found[each["metric_config"]["metric_name"]] = whole
    yield "Every Eval Ever", found
    (log,) = written("inspect").glob("*.eval")
    with ZipFile(log) as archive:
        (scores,) = json.loads(archive.read("header.json"))["results"]["scores"]
    found = {}
    for name, each in scores["metrics"].items():
        held = each["params"]
        found[name] = (each["value"], held["n"], held["steps_not_measured"], held["low"], held["high"], "share")
    yield "Inspect", found
    (file,) = written("model-index").glob("*.yaml")
    found = {}
    for each in yaml.safe_load(file.read_text())["model-index"][0]["results"][0]["metrics"]:
        held = each["args"]
        shares = (each["value"] / 100, held["n"], held["missing"], held["low"] / 100, held["high"] / 100, "share")
        found[each["name"]] = shares
    yield "model-index", found
    found = {}
    for name in ("exact match", "type match"):
        folder = written("hf-eval-results", "--dataset", "org/demo", "--metric", name)
        (entry,) = yaml.safe_load(next((folder / ".eval_results").glob("*.yaml")).read_text())
        assert entry["notes"].startswith(f"{name} in %")
        (held,) = re.findall(r"n = (\d+).* interval ([\d.]+) to ([\d.]+), (\d+) not", entry["notes"])
        n, low, high, missing = map(float, held)
        found[name] = (entry["value"] / 100, n, missing, low / 100, high / 100, "share")
    yield "hf-eval-results", found


def reported(guieval: CommandLine, run: Path, out: Path) -> Measured:
    """Exact match as the page counts it; it prints no interval, so its run's is taken."""
    assert guieval("report", run, "--out", out, "--no-images").code == 0
    (ends,) = re.findall(r'"ends":\[\["(\d+)"\]\]', (out / "data" / "index.js").read_text())
    right, missing = ends.count(str(RIGHT)), ends.count(str(FAILED)) + ends.count(str(NOT_RUN))
    exact: Measured = evaluate_run(run)["exact match"]
    return replace(exact, value=right / len(ends), n=len(ends), missing=missing)


def in_a_campaign(guieval: CommandLine, run: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """What a campaign prints and writes of the run, which a server that wants money cannot go on with."""
    folder.mkdir()
    file = folder / "campaign.yaml"
    bench = {"bench": "demo", "bench_options": OPTIONS}
    file.write_text(json.dumps({"models": [{"model": MODEL}], "benchmarks": [bench], "settings": {"concurrency": 1}}))
    shutil.copytree(run, folder / "all" / f"{MODEL}-demo-offline")
    settings = MockSettings(model=MODEL, policy="centre", served_models=(MODEL,), error_rate=1.0, error_status=402)
    with MockServer(settings) as server:
        words = ("--data", run.parent / "data", "--base-url", server.base_url, "--out", folder / "all")
        done = guieval("campaign", file, *words)
    assert done.code != 0 and "demands payment" in done.err
    yield "campaign", done.out
    yield "campaign's leaderboard.tex", (folder / "all" / "leaderboard.tex").read_text()


def texts_lead_with_exact_match(guieval: CommandLine, run: Path, folder: Path, exact: Mapping[str, Any]) -> None:
    ends = f"[{100 * exact['interval']['low']:.1f}, {100 * exact['interval']['high']:.1f}]"
    parts = (f"{100 * exact['value']:.2f}", ends, f"({exact['missing']} missing)")
    board = ("leaderboard", run, "--format")
    commands: Sequence[Sequence[str | Path]] = (("score", run), ("runs", "list", run), (*board, "text"), (*board, "latex"))
    texts = [(" ".join(map(str, words)), guieval(*words).out) for words in commands]
    for command, text in [*texts, *in_a_campaign(guieval, run, folder)]:
        assert all(part in text for part in parts), command
        names = re.findall(r"[A-Z_\\]*\s?exact\s+match", text)
        assert names[0].strip() == "exact match", (command, names)


def test_every_command_shows_one_number_under_one_name(guieval: CommandLine, tmp_path: Path) -> None:
    run, shown = made_run(guieval, tmp_path)
    other = tmp_path / "other" / "copy"
    shutil.copytree(run, other)
    verdicts = shown["summary"]["verdicts"]
    assert all(verdicts[name] for name in ("right", "wrong", "unparseable", "unsupported", "infrastructure_failure", "not_run"))
    first: dict[str, tuple[str, Numbers]] = {}
    unlike = []
    for command, found in everywhere(guieval, run, shown, other):
        assert "exact match" in found, command
        for name, those in found.items():
            before, expected = first.setdefault(name, (command, those))
            if those != pytest.approx(expected, abs=5.1e-5 if command.startswith(("model-index", "hf-")) else None):
                unlike.append(f"{name}: {before} {expected}, {command} {those}")
    assert unlike == []
    planned, missing = verdicts["planned"], verdicts["infrastructure_failure"] + verdicts["not_run"]
    assert first["exact match"][1][:3] == (verdicts["right"] / planned, planned, missing)
    texts_lead_with_exact_match(guieval, run, tmp_path / "campaign", shown["summary"]["metrics"]["exact match"])


def test_every_command_takes_all_repetitions_of_a_task(guieval: CommandLine, tmp_path: Path) -> None:
    """The first repetition of each task alone says something else: here a task is right at its second one only."""
    run = online_run(tmp_path, samples=2, sampling={"temperature": 1.0})
    with edited(run / TASKS) as lines:
        won, lost = (
            next(line for line in lines if line["samples"][0]["outcome"]["score"]["success"] is success)
            for success in (True, False)
        )
        won["samples"][0], won["samples"][1] = lost["samples"][0], won["samples"][0]
    opened = open_run(run)
    assert isinstance(opened, OpenedOnlineRun)
    rate = opened.metrics()["success rate"]
    assert (rate.count, rate.n) == (5, 16)
    expected = numbers(plain(rate))
    (listed,) = json.loads(guieval("runs", "list", run, "--json").out)["runs"]
    (row,) = json.loads(guieval("leaderboard", run, "--json").out)["rows"]
    compared = json.loads(guieval("compare", run, run, "--json").out)["comparisons"][0]["metrics"][0]
    assert numbers(listed["success_rate"]) == numbers(row["cells"][0]["measured"]) == numbers(compared["A"]) == expected
    (scored,) = json.loads(guieval("score", run, "--by", "app", "--by", "app,task", "--json").out)["runs"]
    for cells in scored["breakdowns"].values():
        assert [sum(cell["success"][name] for cell in cells) for name in ("count", "n")] == [5, 16]
    ends = row["cells"][0]["ends"]
    assert (ends["right"], ends["wrong"], ends["unparseable"]) == (5, 9, 2)
