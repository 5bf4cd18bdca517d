"""The pages of a board: their numbers, ranks and commands are those of other commands, and published ones stay apart."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import guieval as package
from guieval.board.numbers import BoardNumber, numbers_of, numbers_table, published_numbers
from guieval.board.orders import OrderCount, pair_orders
from guieval.registry import load_benchmark
from guieval.reports.leaderboards.board import Board, Cell
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.reports.leaderboards.published_results import get_results, list_results
from guieval.reports.tables.table import Number
from guieval.steps import StepTaskModel
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.reports.scripted_runs import EPISODES, Missed, made_run, named

HOSTILE = "z<script>alert(1)</script>"
AGENT = ("--model", "lured", "--adapter", str(REPOSITORY / "tests" / "perturbed" / "lured.py"), "--set", "engine=local")
TABLES = [get_results(name) for name in list_results()]


def of(number: BoardNumber, head: str) -> object:
    """The cell of a number's row under a heading."""
    heads = [column.name for column in numbers_table([number]).columns]
    return number.row[heads.index(head)]


def measured(number: BoardNumber) -> float | None:
    value = of(number, "value")
    assert isinstance(value, Number)
    return value.of.value


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """A run with a slip, an equally good one, and one that is wrong in every second step."""
    slips: dict[str, Missed | set[tuple[str, int]]] = {
        "good": {("e00", 1)},
        "as good": {("e03", 2)},
        HOSTILE: lambda episode, step: step % 2 == 1,
    }
    return [
        made_run(tmp_path / f"run{place}", missed, rewrite=named(name)) for place, (name, missed) in enumerate(slips.items())
    ]


def test_ranks_and_values_are_those_of_the_leaderboard_command(three: list[Path], guieval: CommandLine) -> None:
    done = guieval("leaderboard", *three, "--protocol", "all", "--json")
    told = json.loads(done.out)
    expected = {
        (row["model"], column["protocol"], column["metric"]): (cell["measured"]["value"], cell["rank"])
        for row in told["rows"]
        for column, cell in zip(told["columns"], row["cells"], strict=True)
        if cell is not None
    }
    found = {}
    for number in numbers_of(leaderboard(three, ["all"])):
        rank = of(number, "rank")
        found[of(number, "model"), of(number, "protocol"), of(number, "metric")] = (
            measured(number),
            rank.of.value if isinstance(rank, Number) else None,
        )
    assert found == expected
    first = {of_model: rank for (of_model, protocol, metric), (_, rank) in expected.items() if metric == "exact match"}
    assert first == {"good": 1, "as good": 1, HOSTILE: 3}


def made_files(folder: Path) -> list[StepTaskModel]:
    """The demo's steps, and a file with right answers to all of the first ten but two."""
    benchmark = load_benchmark("demo", None)
    steps = [step for ref in benchmark.index() for step in benchmark.load(ref).steps]
    rows = [
        {"episode_id": step.episode_id, "step_index": step.step_index, "action": step.action.model_dump(mode="json")}
        for place, step in enumerate(steps[:10])
        if place not in (3, 7)
    ]
    (folder / "my answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return steps


def run_commands(page: str) -> Iterator[tuple[str, str, list[str]]]:
    """(metric, value shown, commands) of every number of a page."""
    for row, more in re.findall(r"<tr>(<th scope=\"row\">.*?)</tr>\s*<tr class=\"more\" hidden>(.*?)</tr>", page, re.DOTALL):
        value = re.match(r".*?<td class=\"number\" data-value=\"([\d.e-]+)\"", row, re.DOTALL)
        if '<td class="number">' in row[: 0 if value is None else value.end()]:
            value = None
        commands = re.search(r"<pre[^>]*>(.*?)</pre>", more, re.DOTALL)
        assert commands is not None
        if value is not None:
            cells = re.findall(r"<td>(.*?)</td>", row)
            yield html.unescape(cells[1]), value[1], html.unescape(commands[1]).splitlines()


def test_the_commands_shown_give_the_numbers_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine
) -> None:
    """A run and an import, both deleted, are made again by what the page says, and score as it says."""
    monkeypatch.chdir(tmp_path)
    made_files(tmp_path)
    run = (*AGENT, "--bench", "demo", "--limit", "2", "--perturb-seed", "3")
    assert guieval("run", *run[:-2], "--temperature", "0.5", "--quiet", "--out", "runs/a run").code == 0
    imported = ("my answers.jsonl", "--bench", "demo", "--name", "it's mine", "--answered-only", "--out", "runs/b")
    assert guieval("data", "import", *imported).code == 0
    done = guieval("leaderboard", "runs/a run", "runs/b", "--site", "site")
    assert done.code == 0 and "site/index.html" in done.out
    shown = list(run_commands(Path("site/demo.html").read_text(encoding="utf-8")))
    shutil.rmtree("runs")
    told: dict[str, list[dict[str, Any]]] = {}
    for metric, value, commands in shown:
        first, second = map(shlex.split, commands)
        if commands[0] not in told:
            assert guieval(*first[1:]).code == 0, commands[0]
            assert guieval(*second[1:]).code == 0, commands[1]
            done = guieval(*second[1:], "--protocol", "all", "--json")  # at once, for speed
            told[commands[0]] = json.loads(done.out)["runs"][0]["protocols"]
        metrics = next(each["metrics"] for each in told[commands[0]] if each["name"] == second[-1])
        assert metrics[metric]["value"] == float(value), (metric, commands)
    assert len(told) == 2 and len(shown) > 100


def test_no_name_becomes_markup(three: list[Path], tmp_path: Path) -> None:
    package.leaderboard(three, site=tmp_path / "site")
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count("<script") == 1 and "<script>alert" not in text
    assert html.escape(HOSTILE) in (tmp_path / "site" / "scripted.html").read_text(encoding="utf-8")


def under(board: Board, protocol: str, values: dict[str, tuple[float, int]], p_value: float) -> tuple[Board, dict[str, Cell]]:
    """A column more, of this protocol, with these values and missing steps by model, every pair with this p-value."""
    column = replace(board.columns[0], protocol=protocol)
    cells = {}
    for row in board.rows:
        cell, (value, missing) = row.cells[0], values[row.model]
        assert cell is not None
        own = replace(cell.measured, value=value, missing=missing, upper=value + missing / 48 if missing else None)
        cells[row.model] = replace(cell, measured=own)
    rows = tuple(replace(row, cells=(*row.cells, cells[row.model])) for row in board.rows)
    pairs = tuple(pair._replace(column=column, p_value=p_value) for pair in board.pairs if pair.column == board.columns[0])
    return replace(board, columns=(*board.columns, column), rows=rows, pairs=(*board.pairs, *pairs)), cells


def test_an_order_changes_only_where_both_are_ahead_somewhere(three: list[Path]) -> None:
    """Faults: a tie, or an order that missing steps may turn, taken for a change; an undecided order for a decided one."""
    board = leaderboard(three[1:])  # "as good" is ahead of the hostile one, surely
    board = replace(board, columns=board.columns[:1], rows=tuple(replace(row, cells=row.cells[:1]) for row in board.rows))

    def count(*protocols: tuple[float, float, int, float]) -> OrderCount:
        made = board
        for place, (first, second, missing, p_value) in enumerate(protocols):
            made, _ = under(made, f"p{place}", {"as good": (first, 0), HOSTILE: (second, missing)}, p_value)
        return OrderCount.of(pair_orders(made))

    assert count() == (0, 0, 0, 0)  # a single protocol
    assert count((0.9, 0.5, 0, 0.001)) == (1, 0, 0, 0)
    assert count((0.5, 0.9, 0, 0.001)) == (1, 1, 1, 0)
    assert count((0.5, 0.9, 0, 0.2)) == (1, 1, 0, 0)
    assert count((0.5, 0.5, 0, 1.0)) == (1, 0, 0, 1)
    assert count((0.6, 0.5, 6, 0.001)) == (1, 0, 0, 0)  # 6 of 48 steps more would turn it: open
    assert count((0.6, 0.7, 6, 0.001)) == (1, 1, 1, 0)


def test_published_numbers_are_of_their_table_alone(three: list[Path]) -> None:
    board = leaderboard(three)
    ranked = {of(number, "kind") for number in numbers_of(board)}
    assert ranked == {"recomputed"}
    published = list(published_numbers(TABLES))
    assert {of(number, "kind") for number in published} == {"published"}
    assert {of(number, "n") for number in published} == {None}
    table = get_results("ui-s1-table-2")
    column = next(place for place, each in enumerate(table.columns) if each.benchmark == "screenspot-pro")
    values = [row.values[column] for row in table.rows if row.values[column] is not None]
    own = [each for each in published_numbers([table]) if each.benchmark == "screenspot-pro"]
    assert str(of(own[0], "rank")) == f"1 of {len(values)}"
    assert [measured(each) for each in own] == sorted((value / 100 for value in values if value is not None), reverse=True)
    assert not any("journal" in dict(each.facts) for each in published)


def test_every_published_value_with_a_metric_of_ours_is_there() -> None:
    values = sum(
        row.values[place] is not None
        for table in TABLES
        for place, column in enumerate(table.columns)
        if column.benchmark
        for row in table.rows
    )
    assert len(list(published_numbers(TABLES))) == values > 500


def test_published_tables_need_no_run_and_other_folders_are_not_overwritten(tmp_path: Path, guieval: CommandLine) -> None:
    site = tmp_path / "site"
    assert guieval("leaderboard", "--site", site, "--reference", "all").code == 0
    text = (site / "published.html").read_text(encoding="utf-8")
    assert all(html.escape(table.caption) in text for table in TABLES)
    assert guieval("leaderboard", "--site", site, "--reference", "ui-s1-table-2").code == 0
    assert not (site / "aitz.html").exists()  # of the earlier board
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    sentence = guieval.sentence("leaderboard", "--site", tmp_path / "mine", "--reference", "all")
    assert "exists and is no board" in sentence
    assert "needs run directories" in guieval.sentence("leaderboard", "--site", site)


def test_repeats_have_one_row_and_one_command_of_all(tmp_path: Path, guieval: CommandLine) -> None:
    """Fault: the folder of repeats taken for a run without a manifest."""
    words = (*AGENT, "--bench", "demo", "--limit", "1", "--repeats", "2", "--quiet", "--out", tmp_path / "r")
    assert guieval("run", *words).code == 0
    board = package.leaderboard(tmp_path / "r")
    number = next(numbers_of(board))
    assert "--repeats 2" in number.commands[0] and number.commands[0].endswith(f"--out {tmp_path / 'r'}")
    assert guieval(*shlex.split(number.commands[1])[1:]).code == 0


@pytest.mark.ci
def test_a_campaign_feeds_the_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine) -> None:
    """Runs of two models in two modes, from the folder of a campaign alone; ranks are within a mode."""
    monkeypatch.chdir(tmp_path)
    text = "models: [ocr-baseline, {model: ocr-errant, options: {slip: 0.5}}]\nbenchmarks: [demo]\nmodes: [offline, sop]\n"
    Path("small.yaml").write_text(text + "settings: {limit: 2}\n", encoding="utf-8")
    assert guieval("campaign", "small.yaml", "--quiet").code == 0
    assert guieval("leaderboard", "--site", "site", "runs/small").code == 0
    numbers = list(numbers_of(package.leaderboard("runs/small", protocol="all")))
    assert {(of(each, "model"), of(each, "mode")) for each in numbers} == {
        (model, mode) for model in ("ocr-baseline", "ocr-errant") for mode in ("offline", "sop")
    }
    assert all(str(of(each, "rank")).endswith("of 2") for each in numbers if of(each, "metric") == "exact match")
    page = Path("site/demo.html").read_text(encoding="utf-8")
    assert all(
        f"guieval score runs/small/{run.name} --protocol osatlas" in page for run in Path("runs/small").glob("ocr-*-demo-*")
    )


def test_the_hours_of_the_first_table_are_those_of_the_measured_rate(guieval: CommandLine) -> None:
    """Fault: another number of steps or another rate than docs/campaigns.md says."""
    page = (REPOSITORY / "docs" / "campaigns.md").read_text(encoding="utf-8")
    said = re.search(
        r"These are ([\d,]+) requests.*?\*\*([\d.]+) GPU hours\*\* on one H100 at ([\d.]+) steps a second", page, re.DOTALL
    )
    assert said is not None
    done = guieval("campaign", "first-table", "--dry-run", "--pace", said[3])
    assert done.code == 0 and said[1] in done.out and f"at most {said[2]} h" in done.out
    assert f"| {said[3]} steps/s |" in (REPOSITORY / "docs" / "gpu.md").read_text(encoding="utf-8")


def test_a_number_of_a_row_of_two_runs_has_the_command_of_its_own(tmp_path: Path) -> None:
    """Fault: the commands of a row's first run next to all of its numbers."""
    one = made_run(tmp_path / "a", episodes=EPISODES[:2])
    other = made_run(tmp_path / "b", [("e03", 1)], episodes=EPISODES[2:4])
    board = leaderboard([one, other])
    assert len(board.rows) == 1
    values = {
        number.commands[1].split()[2]: measured(number) for number in numbers_of(board) if of(number, "metric") == "exact match"
    }
    assert values == {str(one): 1.0, str(other): 7 / 8}
