"""One name, one number: whatever prints the metrics of a run, a name has the same value, n, missing steps and interval."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from guieval import evaluate_run, open_run
from guieval.actions import Click, Point
from guieval.metrics import Measured
from guieval.registry import load_benchmark, load_model
from guieval.reports.opened import OpenedRun
from guieval.reports.server.library import Library
from guieval.reports.server.overview import judged_run, metrics_section, stored_section
from guieval.reports.tables.writers import plain
from guieval.testing.mock_server import MockServer, MockSettings
from tests.cli.demo_runs import MODEL
from tests.command_line import CommandLine

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
        return json.loads(done.out)

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
    (listed,) = values("runs", "list", run)
    yield "runs", by_name({"exact match": listed["exact_match"], "success rate": listed["success_rate"]})
    board = values("leaderboard", run)
    cells = [cell["measured"] for cell in board["rows"][0]["cells"]]
    yield "leaderboard", by_name(dict(zip((column["metric"] for column in board["columns"]), cells, strict=True)))
    for words, letter in (((run, other), "A"), ((other, run), "B")):
        compared = [each for each in values("compare", *words)["metrics"] if not each["shared"]]
        assert compared[0]["metric"] == "exact match"
        yield f"compare, {letter}", by_name({each["metric"]: each[letter] for each in compared})
    (drawn,) = values("plot", "pareto", run, "--out", other / "a.svg")["numbers"]
    yield "plot", by_name({"exact match": drawn["share"]})
    (row,) = Library([run]).listed()
    yield "view: the list", by_name({"exact match": row["headline"]})
    assert row["state"] == "stopped"
    for place, section in (("stored", stored_section(run)), ("judged", metrics_section(judged_run(run)))):
        assert section is not None and section["state"] == "stopped"
        yield f"view: {place}", by_name({card["name"]: card["measured"] for card in section["cards"]})
        assert all("missing" in card["mark"] for card in section["cards"] if card["name"] == "exact match")
    guieval("export-results", run, "--format", "every-eval-ever", "--out", other)
    exported = json.loads(next(file for file in other.rglob("*.json") if "evaluation_results" in file.read_text()).read_text())
    found = {}
    for each in exported["evaluation_results"]:
        details = each["score_details"]
        between = details["uncertainty"]["confidence_interval"]
        held = details["details"]
        found[each["metric_config"]["metric_name"]] = (
            Measured(details["score"], int(held["n"]), missing=int(held["steps_not_measured"])),
            (between["lower"], between["upper"]),
        )
    yield "export", {name: (*numbers(plain(each))[:3], *ends, "share") for name, (each, ends) in found.items()}


def texts_lead_with_exact_match(guieval: CommandLine, run: Path, exact: Mapping[str, Any]) -> None:
    ends = f"[{100 * exact['interval']['low']:.1f}, {100 * exact['interval']['high']:.1f}]"
    parts = (f"{100 * exact['value']:.2f}", ends, f"({exact['missing']} missing)")
    board = ("leaderboard", run, "--format")
    for words in (("score", run), ("runs", "list", run), (*board, "text"), (*board, "latex")):
        text = guieval(*words).out
        assert all(part in text for part in parts), words
        names = re.findall(r"[A-Z_\\]*\s?exact\s+match", text)
        assert names[0].strip() == "exact match", (words, names)


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
            if those != pytest.approx(expected):
                unlike.append(f"{name}: {before} {expected}, {command} {those}")
    assert unlike == []
    planned, missing = verdicts["planned"], verdicts["infrastructure_failure"] + verdicts["not_run"]
    assert first["exact match"][1][:3] == (verdicts["right"] / planned, planned, missing)
    texts_lead_with_exact_match(guieval, run, shown["summary"]["metrics"]["exact match"])
