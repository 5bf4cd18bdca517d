"""``guieval plot``: a picture of real runs, what it says it shows, and one sentence for every mistake."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from guieval.journal import METRICS
from guieval.journal.lines import json_line
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.scoring.matrix import protocols_for
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.scripted import opened_run

EVERY = len(protocols_for("demo"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two tries offline, one in mode sop, and one in the simulated phone."""
    folder = tmp_path_factory.mktemp("plotted")
    made = {name: folder / name for name in ("first", "second", "sop", "online")}
    with MockServer(MockSettings(policy="centre", model="ui-tars-7b")) as server:
        for name, directory in made.items():
            mode = name if name in ("sop", "online") else "offline"
            own = {"limit": 4, "max_steps": 2} if name == "online" else {"bench_options": {"episodes": 4, "seed": 4}}
            made_of = {**own, "base_urls": (server.base_url,), "mode": mode}
            opened_run(RunConfig(model="ui-tars-7b", bench="demo", **made_of), directory).execute(resume=False)
    return made


@pytest.mark.parametrize(
    ("arguments", "names", "says"),
    [
        (("actions",), ("first", "sop"), "exact match by action type under guievalkit, 95 % intervals over episodes; in a"),
        (("horizon", "--by", "length"), ("first",), "exact match by episode length under guievalkit"),
        (("matrix", "--protocol", "all"), ("first",), f"exact match by action type under {EVERY} protocols"),
        (("matrix", "--metric", "progress", "--protocol", "all"), ("first", "sop"), f"progress under {EVERY} protocols"),
        (("pareto",), ("first", "second"), "under guievalkit against tokens per step, 95 % intervals; on the front"),
        (("samples",), ("first", "second"), "in n tries (tries: ui-tars-7b: 2)"),
        (("horizon", "--by", "reasoning"), ("first",), "exact match by length of the reasoning under guievalkit"),
        (("bars", "--metric", "mean steps"), ("online",), "mean steps under environment, n = 4, 95 % intervals"),
        (("strip",), ("online",), "By ui-tars-7b ("),
    ],
)
def test_each_kind_of_picture_of_runs(
    runs: dict[str, Path], tmp_path: Path, arguments: tuple[str, ...], names: tuple[str, ...], says: str, guieval: CommandLine
) -> None:
    file = tmp_path / "figure.svg"
    done = guieval("plot", *arguments, *(runs[name] for name in names), "--out", file)
    assert done.code == 0, done
    assert says in done.out and f"picture:  {file}" in done.out
    assert "data: all 4 episodes" in done.out or arguments[0] in ("bars", "strip")
    assert file.read_text(encoding="utf-8").startswith("<?xml")


def test_pareto_against_cost_names_what_it_leaves_out(runs: dict[str, Path], tmp_path: Path, guieval: CommandLine) -> None:
    uncounted = tmp_path / "uncounted"
    shutil.copytree(runs["first"], uncounted)
    journal = uncounted / "steps.jsonl"
    records = [json.loads(json_line(line)) for line in journal.read_bytes().splitlines(keepends=True)]
    for sample in (sample for record in records for sample in record["samples"]):
        del sample["usage"]
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    prices = tmp_path / "prices.yaml"
    prices.write_text("[{models: [ui-tars-7b], currency: EUR, input: 1000, output: 1000, source: ours, as_of: 2026-03}]")
    places = (runs["first"], runs["second"], uncounted)
    labels = [word for name in "abc" for word in ("--label", name)]
    done = guieval("plot", "pareto", *places, *labels, "--prices", prices, "--json", "--out", tmp_path / "a.svg")
    assert done.code == 0, done
    assert f"note: the run {str(uncounted)!r} is left out: its server reported no tokens" in done.err
    shown = json.loads(done.out)
    assert "against cost of 1,000 steps (EUR)" in shown["shows"] and [each["name"] for each in shown["numbers"]] == ["a", "b"]
    tokens = json.loads(guieval("plot", "pareto", *places[:2], "--json", "--out", tmp_path / "b.svg").out)["numbers"]
    for cost, counted in zip(shown["numbers"], tokens, strict=True):
        assert cost["spent"] == pytest.approx(counted["spent"])  # a thousand steps at 1,000 EUR a million
    found = guieval.sentence("plot", "pareto", runs["first"], "--cost", "--out", tmp_path / "c.svg")
    assert "nothing to draw" in found and "its model has no price; --prices names a file of prices" in found


def test_numbers_of_bars_budgets_and_kinds_of_evaluation(runs: dict[str, Path], tmp_path: Path, guieval: CommandLine) -> None:
    def numbers(*arguments: str | Path) -> Any:
        done = guieval("plot", *arguments, "--json", "--out", tmp_path / "a.svg")
        assert done.code == 0, done.err
        return json.loads(done.out)["numbers"]

    first, second = numbers("bars", runs["first"], runs["second"])["bars"]
    assert first["value"] == second["value"] and (first["p_value"], second["p_value"]) == (None, 1.0)
    last = numbers("budget", "--table", "ui-r1-table-1", "--y", "average")[-1]
    assert (last["spent"], last["value"], last["parameters"]) == (136, 78.6, 3)
    columns = ("--table", "ui-s1-table-1", "--x", "sop-pg", "--y", "androidworld")
    assert "is not finished" in guieval.sentence(
        "plot", "paradigms", runs["sop"], runs["online"], *columns, "--out", tmp_path / "b.svg"
    )
    finished = [shutil.copytree(runs[name], tmp_path / name) for name in ("sop", "online")]
    for each in finished:
        (each / METRICS).write_text("{}")
    sop, online = numbers("paradigms", *finished, *columns)
    assert [sop["tasks"], round(sop["r2"], 3), online["tasks"], online["r2"]] == [4, 0.601, 4, 1]
    assert "1 --x and 1 runs" in guieval.sentence("plot", "paradigms", runs["sop"], *columns, "--out", tmp_path / "b.svg")
    assert "is over recorded steps" in guieval.sentence("plot", "strip", runs["first"], "--out", tmp_path / "b.svg")


def test_names_of_equal_runs_and_tables(runs: dict[str, Path], tmp_path: Path, guieval: CommandLine) -> None:
    file = tmp_path / "figure.svg"
    done = guieval("plot", "actions", runs["first"], runs["second"], "--out", file)
    assert done.code == 0, done
    text = file.read_text(encoding="utf-8")
    assert "ui-tars-7b (first)" in text and "ui-tars-7b (second)" in text
    pdf = tmp_path / "figure.pdf"
    done = guieval("plot", "reliability", "--table", "ui-s1-table-1", "--x", "sop-pg", "--y", "androidworld", "--out", pdf)
    assert done.code == 0, done
    assert "sop-pg against androidworld of UI-S1, Table 1" in done.out
    assert pdf.read_bytes().startswith(b"%PDF")


def test_mistakes(runs: dict[str, Path], tmp_path: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    first, out = runs["first"], ("--out", tmp_path / "a.pdf")
    assert "did you mean 'actions'?" in guieval.sentence("plot", "action", first, *out)
    assert "must end in .pdf, .svg, .png" in guieval.sentence("plot", "actions", first, "--out", tmp_path / "a.gif")
    assert "--out names the picture" in guieval.sentence("plot", "actions", first)
    assert "did you mean 'column'?" in guieval.sentence("plot", "actions", first, *out, "--width", "colum")
    assert "--cost is for pareto, not for actions" in guieval.sentence("plot", "actions", first, *out, "--cost")
    assert "--table is for budget, paradigms, reliability, not for actions" in guieval.sentence(
        "plot", "actions", first, *out, "--table", "x"
    )
    assert "name at least one run directory" in guieval.sentence("plot", "matrix", *out)
    assert "none' does not exist" in guieval.sentence("plot", "actions", tmp_path / "none", *out)
    assert "did you mean 'ratio'?" in guieval.sentence("plot", "horizon", first, *out, "--by", "ration")
    assert "did you mean 'exact'?" in guieval.sentence("plot", "matrix", first, *out, "--metric", "exat")
    assert "drawn under one protocol" in guieval.sentence("plot", "actions", first, *out, "--protocol", "all")
    assert "there are 2 runs and 1 --label" in guieval.sentence("plot", "actions", first, runs["second"], *out, "--label", "a")
    shutil.copytree(first, tmp_path / "first")
    assert "two runs would be called" in guieval.sentence("plot", "actions", first, tmp_path / "first", *out)
    assert "one answer to each step" in guieval.sentence("plot", "samples", first, *out)
    assert "at least one --x" in guieval.sentence("plot", "reliability", *out, "--table", "ui-s1-table-1")
    table = ("--table", "ui-s1-table-1", "--y", "androidworld")
    assert "did you mean 'sop-pg'?" in guieval.sentence("plot", "reliability", *out, *table, "--x", "sop-gp")
    for name in ["matplotlib", *(name for name in sys.modules if name.startswith("matplotlib."))]:
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'guieval[report]'" in guieval.sentence("plot", "actions", first, *out)
    assert not (tmp_path / "a.pdf").exists()
