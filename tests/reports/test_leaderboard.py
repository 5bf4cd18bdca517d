"""Leaderboards: what shares a column, ranks, published figures beside one's own, and that no name can break a format."""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.evaluation import get_protocol
from guieval.journal import METRICS
from guieval.journal.lines import json_line
from guieval.metrics.breakdown import breakdown
from guieval.metrics.columns import ENDS
from guieval.models import Request
from guieval.reports.leaderboards.board import Board, Cell, arranged
from guieval.reports.leaderboards.drawing import drawing, ticks
from guieval.reports.leaderboards.formats import FORMATS, written
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.reports.leaderboards.published_results import ResultTable
from guieval.reports.leaderboards.sections import sections
from guieval.reports.tables.writers import Format
from guieval.running.costs import Price, Spending, Tokens, bill
from guieval.scoring.matrix import judge_run
from guieval.steps import Usage
from tests.json_values import read_json
from tests.reports.scripted_runs import EPISODES, made_run, named, reported
from tests.rows import every_row

PROTOCOL = "aitw-original"
HOSTILE = "a|b <script>alert(1)</script> & 50% $x_1^2$ \\end{table} ~~#{} &lt; [x](javascript:y) `c` \ud83d"


def published(**row: object) -> ResultTable:
    """A table of one figure that the boards here have."""
    column = {"name": "exact", "title": "exact", "meaning": "exact match, in %", "decimals": 1, "mode": "offline"}
    column |= {"benchmark": "scripted", "protocol": PROTOCOL, "metric": figure_name()}
    values = {"name": "mine", "paper": "A paper", "short": "Mine", "table": "Table 1", "caption": "one figure"}
    rows = [{"model": "A", "values": [81.0], **row}, {"model": "B", "values": [None]}]
    return ResultTable.model_validate({**values, "columns": [column], "rows": rows})


def figure_name() -> str:
    return next(each.name for each in get_protocol(PROTOCOL).metrics if each.measure == "exact")


def cells(board: Board) -> dict[str, Cell | None]:
    """The cells of the first column, by model."""
    return {row.model: row.cells[0] for row in board.rows}


def test_runs_that_do_not_differ_share_a_rank_and_worse_ones_do_not(tmp_path: Path) -> None:
    """Two good runs that miss one step each, and one that is wrong in every first step."""
    runs = [
        made_run(tmp_path / "x", [("e00", 1)], rewrite=named("x")),
        made_run(tmp_path / "y", [("e05", 2), ("e06", 2)], rewrite=named("y")),
        made_run(tmp_path / "z", lambda _, step: step == 0, rewrite=named("z")),
    ]
    board = leaderboard(runs, [PROTOCOL])
    found = {name: (cell.measured.count, cell.measured.n, cell.rank) for name, cell in cells(board).items() if cell is not None}
    assert found == {"x": (47, 48, 1), "y": (46, 48, 1), "z": (36, 48, 3)}
    assert cells(leaderboard(runs[::-1], [PROTOCOL])) == cells(board)
    lines = written(board, "latex").splitlines()
    bold = [line.split(" & ")[0] for line in lines if r"\textbf" in line]
    assert bold == ["x", "y"]


def test_a_run_by_itself_has_no_rank_and_one_row_under_several_protocols(tmp_path: Path) -> None:
    board = leaderboard([made_run(tmp_path / "x")], [PROTOCOL])
    assert {cell.rank for row in board.rows for cell in row.cells if cell} == {None}
    assert "**" not in written(board, "md")
    board = leaderboard([tmp_path / "x"], ["guievalkit", PROTOCOL])
    (row,) = board.rows
    assert {column.protocol for column in board.columns} == {"guievalkit", PROTOCOL}
    assert None not in row.cells
    rows = leaderboard([tmp_path / "x", made_run(tmp_path / "y", [("e00", 0)])], [PROTOCOL]).rows
    assert [row.note for row in rows] == ["x", "y"]  # of one model and mode


def test_groups_have_columns_with_the_numbers_of_the_breakdown_and_ranks(tmp_path: Path) -> None:
    wrong = {"x": [("e00", 1)], "y": [(f"e{each:02}", 0) for each in range(12)]}
    runs = [made_run(tmp_path / name, of, rewrite=named(name)) for name, of in wrong.items()]
    board = leaderboard(runs, [PROTOCOL], by=["step"])
    of_steps = breakdown(judge_run(runs[1], [PROTOCOL]).columns(), PROTOCOL, "step")
    (found,) = [[cell.measured for cell in row.cells if cell] for row in board.rows if row.model == "y"]
    assert [(each.count, each.n, each.interval) for each in found[1:]] == [
        (cell.exact_match.count, cell.n, cell.exact_match.interval) for cell in of_steps
    ]
    assert [[cell.rank for cell in row.cells if cell] for row in board.rows] == [[1, 1, 1, 1, 1], [2, 2, 1, 1, 1]]


def test_runs_over_other_steps_have_columns_of_their_own(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / "x"), made_run(tmp_path / "y", episodes=EPISODES[:5], rewrite=named("y"))]
    board = leaderboard(runs, [PROTOCOL])
    width = len(board.columns) // 2
    assert [column.step_count for column in board.columns] == [48] * width + [20] * width
    filled = [[cell is not None for cell in row.cells] for row in board.rows]
    assert filled == [[True] * width + [False] * width, [False] * width + [True] * width]


def test_modes_share_columns_and_are_ranked_apart(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path / "x", rewrite=named("x")),
        made_run(tmp_path / "y", lambda _, step: step == 0, rewrite=named("y")),
        made_run(tmp_path / "z", lambda _, step: step < 2, mode="soeval", rewrite=named("z")),
    ]
    board = leaderboard(runs, [PROTOCOL])
    ranked = [(row.mode, row.cells[0].rank) for row in board.rows if row.cells[0]]
    assert ranked == [("offline", 1), ("offline", 2), ("soeval", None)]
    assert "modes are not comparable" in written(board, "md")


def test_verdicts_coverage_and_missing_answers_are_reported(tmp_path: Path) -> None:
    run = made_run(tmp_path / "x", [("e00", 1)])
    journal = run / "steps.jsonl"
    journal.write_text("".join(line for line in journal.open() if '"episode_id":"e03"' not in line))
    board = leaderboard([run], [PROTOCOL])
    cell = board.rows[0].cells[0]
    assert cell is not None and cell.measured.missing == 4
    assert cell.ends == dict.fromkeys(ENDS, 0) | {"right": 43, "wrong": 1, "not_run": 4}
    assert cell.coverage == 1
    assert "incomplete (`guieval run --resume RUN` asks again): scripted" in board.notes
    for form in ("md", "latex", "html"):
        assert " (4 missing)" in written(board, form)
    line = next(csv.DictReader(written(board, "csv").splitlines()))
    assert [line[name] for name in ("right", "wrong", "not_run", "missing", "coverage")] == ["43", "1", "4", "4", "1.0"]


def test_published_figures_stand_beside_ones_own(tmp_path: Path) -> None:
    """38 of 48 steps are 79.17 %: 1.83 points below the 81.0 that the table prints."""
    run = made_run(tmp_path / "x", [(name, 0) for name in EPISODES[:10]], rewrite=named("x"))
    board = leaderboard([run], [PROTOCOL], [published(checkpoint="x")])
    (reproduction,) = board.reproductions
    assert reproduction.own == pytest.approx(100 * 38 / 48)
    assert reproduction.difference == pytest.approx(100 * 38 / 48 - 81)
    assert reproduction.inside is True and reproduction.published_steps is None
    sentence = "79.17 here, 81.0 in Mine, Table 1, -1.83 points: reproduced within 1.9, inside the interval"
    assert str(reproduction).endswith(sentence)
    (row,) = board.references  # B prints nothing for this column
    assert (row.model, row.mode, row.source, row.values[1]) == ("A", "offline", "Mine, Table 1", (81.0, 1))
    for form in FORMATS:
        assert "81.0" in written(board, form) or "0.81" in written(board, form)
    (note,) = [each for each in board.notes if "Mine, Table 1" in each]
    assert "is over the paper's own steps, and the runs of that column are over split test (48 steps" in note
    far = made_run(tmp_path / "y", lambda name, step: step < 3 and name < "e08", rewrite=named("x"))
    (reproduction,) = leaderboard([far], [PROTOCOL], [published(checkpoint="x")]).reproductions
    assert reproduction.inside is False and "reproduced" not in str(reproduction) and "outside the" in str(reproduction)


def test_a_published_mean_over_benchmarks_is_a_column_with_an_interval(tmp_path: Path) -> None:
    """38 of 48 steps of one and 44 of 48 of the other: the mean of the shares; runs of one benchmark have no mean."""

    def other(manifest: dict[str, Any]) -> None:
        named("x")(manifest)
        manifest["benchmark"]["name"] = "other"

    run = made_run(tmp_path / "x", [(name, 0) for name in EPISODES[:10]], rewrite=named("x"))
    second = made_run(tmp_path / "y", [(name, 0) for name in EPISODES[:4]], rewrite=other)
    table = published(checkpoint="x").model_dump()
    of = {"benchmark": None, "metric": "mean exact", "mean_over": dict.fromkeys(("scripted", "other"), figure_name())}
    table["columns"] = [{**table["columns"][0], **of}]
    board = leaderboard([run, second], [PROTOCOL], [ResultTable.model_validate(table)])
    (place,) = (place for place, column in enumerate(board.columns) if column.metric == "mean exact")
    one, two, mean = (board.rows[0].cells[at] for at in (0, place // 2, place))
    assert one is not None and two is not None and mean is not None and mean.measured.interval is not None
    assert (board.columns[place].benchmark, mean.measured.n) == ("mean over scripted, other", 96)
    assert mean.measured.value is not None and mean.rank is None
    assert mean.measured.value == pytest.approx((38 / 48 + 44 / 48) / 2)
    lows = [each.measured.value - each.measured.low for each in (one, two) if each.measured.value and each.measured.low]
    assert mean.measured.value - mean.measured.interval.low == pytest.approx(math.hypot(*lows) / 2)
    assert board.reproductions[0].published == 81.0 and board.references[0].values[place] == (81.0, 1)
    assert all("mean over scripted, other" in written(board, form) for form in FORMATS)
    assert not any(column.metric == "mean exact" for column in leaderboard([run], [PROTOCOL], [ResultTable(**table)]).columns)


def test_what_counts_as_reproduced_and_how_it_is_shown(tmp_path: Path) -> None:
    """Nothing is reproduced on other steps, and a difference is never shown smaller than it is."""
    run = made_run(tmp_path / "x", [(name, 0) for name in EPISODES[:10]], rewrite=named("x"))
    (reproduction,) = leaderboard([run], [PROTOCOL], [published(checkpoint="x")]).reproductions
    assert "reproduced" not in str(replace(reproduction, published_steps=False))
    assert "(other steps: the published ones are sample set" in str(replace(reproduction, published_steps=False))
    assert "reproduced within" in str(replace(reproduction, published_steps=True))
    for own, within in ((81.0, "0.0"), (81.04, "0.1"), (80.9, "0.1"), (81.31, "0.4")):
        assert f"reproduced within {within}," in str(replace(reproduction, own=own))


@every_row("title, held", [("aitz-test-4724", True), ("aitz-test-4724, 12 of 506", False), ("split test", False)])
def test_a_sample_set_that_a_limit_cut_down_is_not_the_published_one(tmp_path: Path, title: str, held: bool) -> None:
    def chosen(manifest: dict[str, Any]) -> None:
        manifest["config"]["data"]["sample_set"] = "aitz-test-4724"
        manifest["selection"] = {"title": title, "text": title, "sample_set_sha256": None}

    run = made_run(tmp_path / "x", rewrite=chosen)
    journal = run / "steps.jsonl"
    lines = [json_line(line).rstrip(b"\n") + b"\n" for line in journal.read_bytes().splitlines(keepends=True)]
    journal.write_bytes(b"".join(lines).replace(b'"dataset":"scripted"', b'"dataset":"aitz"'))
    figure = get_protocol("coat-official").metrics[0].name
    table = published()
    column = table.columns[0].model_copy(update={"protocol": "coat-official", "metric": figure})
    board = leaderboard([run], ["coat-official"], [table.model_copy(update={"columns": (column,)})])
    assert [cell.published_steps for cell in board.rows[0].cells if cell] == [held] * len(board.columns)
    other = "is over sample set aitz-test-4724, and the runs of that column are over"
    assert held != any(other in each for each in board.notes)


def test_latex_states_differences_and_keeps_names_as_they_are(tmp_path: Path) -> None:
    name = "ocr--x `y` ''z''"
    run = made_run(tmp_path / "x", [(each, 0) for each in EPISODES[:10]], rewrite=named(name))
    tex = written(leaderboard([run], [PROTOCOL], [published(model=name, checkpoint=name)]), "latex")
    above = " ".join(tex[: tex.index(r"\begin{table}")].replace("\n%  ", "").split())
    assert f"{name} (offline), scripted" in above and "reproduced within 1.9" in above
    assert r"ocr-{}-x \textasciigrave{}y\textasciigrave{} '{}'z'{}'" in tex
    assert "LuaLaTeX" not in tex
    other = made_run(tmp_path / "y", rewrite=named("\u4e2d\u6587"))
    assert written(leaderboard([other], [PROTOCOL]), "latex").splitlines()[1].startswith("% has characters that pdfLaTeX")


def test_other_checkpoints_thinking_and_modes_are_not_ones_own_and_another_figure_is_reported(tmp_path: Path) -> None:
    run = made_run(tmp_path / "x", rewrite=named("x", thinking=False))
    for row in ({"checkpoint": "y"}, {"checkpoint": "x", "thinking": True}):
        board = leaderboard([run], [PROTOCOL], [published(**row)])
        assert board.reproductions == () and len(board.references) == 1
    run = made_run(tmp_path / "y", mode="soeval", rewrite=named("x"))
    assert leaderboard([run], [PROTOCOL], [published(checkpoint="x")]).reproductions == ()
    board = leaderboard([run], ["guievalkit"], [published(checkpoint="x")])
    assert board.references == () and "Mine, Table 1 has none of these metrics" in board.notes


def test_the_page_loads_nothing_and_runs_only_its_own_script(tmp_path: Path) -> None:
    page = written(leaderboard([made_run(tmp_path / "x", rewrite=named(HOSTILE))], [PROTOCOL]), "html")
    assert page.count("<script") == page.count("</script") == 1 and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; 50%" in page
    assert not re.findall(r"<(?:link|img|iframe|object)\b|<[^>]* (?:on\w+|src|href|style)=", page)
    (policy,) = re.findall(r'content="(default-src[^"]*)', page)
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


def test_no_name_breaks_markdown_latex_or_csv(tmp_path: Path) -> None:
    run, table = made_run(tmp_path / "x", rewrite=named(HOSTILE)), published(model=HOSTILE.replace("\ud83d", ""))
    board = leaderboard([run], [PROTOCOL], [table])
    width = len(board.columns) + 1
    for line in written(board, "md").split("\n\n")[1].splitlines():
        assert len(re.findall(r"(?<!\\)\|", line)) == width + 1, line
        assert "<script" not in line and "](" not in line.replace(r"\](", "")
    name = written(board, "md").splitlines()[4]
    assert name.startswith(r"| a\|b") and all(each in name for each in (r"\~", r"\$x", "&amp; 50", "&amp;lt;")), name
    tex = written(board, "latex")
    assert tex.count(r"\end{table*}") == 1
    body = next(line for line in tex.splitlines() if "textless" in line)
    assert r"\textbackslash{}end\{table\}" in body and r"50\%" in body and r"\$x\_1\textasciicircum{}2\$" in body
    for form in FORMATS:
        written(board, form).encode()  # half a surrogate pair could not be written
    assert len(list(csv.DictReader(written(board, "csv").splitlines()))) == len(board.columns) + 1
    formula = leaderboard([made_run(tmp_path / "y", rewrite=named("=cmd|' /C calc'!A0"))], [PROTOCOL])
    assert next(csv.DictReader(written(formula, "csv").splitlines()))["model"] == "'=cmd|' /C calc'!A0"


def test_a_board_is_sorted_and_cut_down_to_metrics_by_name(tmp_path: Path) -> None:
    """X misses one step, in which an episode ends early; Y misses the first steps of two episodes."""
    missed = {"y": [("e00", 0), ("e01", 0)], "x": [("e00", 0)]}
    runs = [made_run(tmp_path / name, steps, rewrite=named(name)) for name, steps in missed.items()]
    board = leaderboard(runs, ["agentcpm"])
    assert [row.model for row in board.rows] == ["y", "x"] and [row.model for row in arranged(board).rows] == ["x", "y"]
    names = [column.metric for column in board.columns]
    assert names[0] == "exact match" and names[-1] == "goal progress"
    cut = arranged(board, "goal progress, exact match")
    assert [column.metric for column in cut.columns] == ["goal progress", "exact match"]
    assert [[cell and cell.measured.value for cell in row.cells] for row in cut.rows] == [
        [cell and cell.measured.value for cell in (row.cells[-1], row.cells[0])] for row in (board.rows[1], board.rows[0])
    ]
    for wrong in ({"metrics": "goal progres"}, {"sort": "goal progres"}):
        with pytest.raises(UsageError, match="did you mean 'goal progress'"):
            arranged(board, **wrong)
    text = written(arranged(board), "text")
    assert text.startswith("scripted (split test: 48 steps) under agentcpm") and "TARGET" not in text
    assert text.index("\nx ") < text.index("\ny ")
    assert r"type match of answered steps" not in written(arranged(board, "goal progress"), "latex")


@pytest.fixture
def spenders(tmp_path: Path) -> list[Path]:
    """Of 48 steps, cheap is right in 36 for 1,000 tokens, dear in 47 for 3,000, beaten in 24 for 4,000; one has no counts."""
    price = Price(models=("dear",), currency="USD", input=2.0, output=10.0, source="a page", as_of="2026-01")
    dear = made_run(tmp_path / "b", [("e00", 1)], rewrite=named("dear"), usage=reported(2500, 500))
    (dear / METRICS).write_text(json.dumps({"cost": bill(Tokens(48, 48, 48 * 2500, 48 * 500), price)}))
    return [
        made_run(tmp_path / "a", lambda _, step: step == 0, rewrite=named("cheap"), usage=reported(900, 100)),
        dear,
        made_run(tmp_path / "c", lambda _, step: step < 2, rewrite=named("beaten"), usage=reported(3000, 1000)),
        made_run(tmp_path / "d", rewrite=named("uncounted")),
    ]


def test_tokens_and_cost_stand_beside_figures_in_every_format(spenders: list[Path]) -> None:
    """1,000 steps of 2,500 tokens in at 2 USD a million and 500 out at 10 USD a million cost 5 + 5 USD."""
    board = leaderboard(spenders, [PROTOCOL])
    spent = {name: cell.spending for name, cell in cells(board).items() if cell is not None}
    assert spent["dear"] == Spending(2500, 500, 48, 48, cost=10.0, currency="USD", as_of="2026-01")
    assert spent["cheap"] == Spending(900, 100, 48, 48) and spent["uncounted"] is None
    forms: tuple[tuple[Format, str], ...] = (("md", "|"), ("latex", r"\\"))
    for form, ends in forms:
        lines = written(board, form).replace(" & ", " | ").splitlines()
        rows = [next(line for line in lines if line.lstrip("| ").startswith(f"{name} |")) for name in spent]
        found = [line.removesuffix(ends).split(" | ")[-2:] for line in rows]
        priced = [["1,000", "no price"], ["3,000", "10.00 USD"], ["4,000", "no price"], ["not reported"] * 2]
        assert [[each.strip() for each in pair] for pair in found] == priced
    assert re.search(r"3,000 +10\.00 USD", written(board, "text"))
    records = {line["model"]: line for line in csv.DictReader(written(board, "csv").splitlines())}
    names = ("prompt_tokens", "completion_tokens", "cost_1000", "currency")
    assert [records["dear"][name] for name in names] == ["2500.0", "500.0", "10.0", "USD"]
    assert [records["uncounted"][name] for name in names] == ["", "", "", ""]
    read = read_json(written(board, "json"))
    costs = [row["cells"][0]["spending"] and row["cells"][0]["spending"]["cost"] for row in read["rows"]]
    assert costs == [None, 10.0, None, None]


def test_prices_that_are_given_come_before_the_recorded_ones(spenders: list[Path]) -> None:
    prices = [
        Price(models=("dear", "cheap"), currency="EUR", input=1.0, output=1.0, source="a page", as_of="2026-02"),
        Price(models=("beaten",), currency="USD", input=1.0, output=1.0, source="a page", as_of="2026-03"),
    ]
    board = leaderboard(spenders, [PROTOCOL], prices=prices)
    found = [cell.spending for cell in cells(board).values() if cell is not None]
    costs = [each and (round(each.cost or 0.0, 9), each.currency) for each in found]
    assert costs == [(1.0, "EUR"), (3.0, "EUR"), (4.0, "USD"), None]


def test_the_front_is_named_and_drawn(spenders: list[Path]) -> None:
    board = leaderboard(spenders, [PROTOCOL])
    (section,) = sections(board)
    (front,) = section.fronts()  # one run alone has a price
    points = [(point.name, front.is_best(point)) for point in front.points]
    assert points == [("cheap", True), ("dear", True), ("beaten", False)]
    assert front.left_out == ("uncounted (offline)",)
    sentence = "Pareto front of exact match against tokens per step: cheap (offline), dear (offline)."
    for form in ("text", "md", "latex", "html"):
        assert sentence in " ".join(written(board, form).replace("\\_", "_").split()), form
    drawn = drawing(front)
    assert [mark.x for mark in drawn.marks] == pytest.approx([60 + 544 * each / 4 for each in (1, 3, 4)])
    assert [tick.label for tick in drawn.across] == ["0", "1,000", "2,000", "3,000", "4,000"]
    lowest, highest = (float(drawn.up[at].label.removesuffix(" %")) for at in (0, -1))
    for mark, value in zip(drawn.marks, (75, 100 * 47 / 48, 50), strict=True):
        assert mark.y == pytest.approx(276 - 262 * (value - lowest) / (highest - lowest), abs=0.06)
        assert 14 <= mark.high <= mark.y <= mark.low <= 276
    assert [path.count("H") for path in drawn.paths] == [2]
    assert [written(board, "html").count(f"<{tag}") for tag in ("svg", "circle")] == [1, 3]


def test_each_mode_has_a_front_of_its_own(tmp_path: Path) -> None:
    modes, runs = ("offline", "soeval"), []
    for mode, number in product(modes, range(2)):
        of: dict[str, Any] = {"rewrite": named(f"m{number}"), "usage": reported(100 + number, 1)}
        runs.append(made_run(tmp_path / f"{mode}{number}", [("e00", 0)] * number, mode=mode, **of))
    board = leaderboard(runs, [PROTOCOL])
    (front,) = sections(board)[0].fronts()
    points = {(point.name, point.mode, front.is_best(point)) for point in front.points}
    assert points == {(f"m{number}", mode, number == 0) for mode, number in product(modes, range(2))}
    assert len(drawing(front).paths) == 2


def test_tokens_are_over_the_steps_that_have_counts(tmp_path: Path) -> None:
    def usage(request: Request) -> Usage:
        step = request.task.step_index
        return Usage(prompt_tokens=10 * (step + 1), completion_tokens=None if step else 5)

    board = leaderboard([made_run(tmp_path / "a", usage=usage)], [PROTOCOL])
    (row,) = board.rows
    assert row.cells[0] is not None and row.cells[0].spending == Spending(10, 5, 12, 48)
    assert any("tokens are means over the steps with known tokens" in note for note in board.notes)


def test_ticks_are_round_and_enclose_the_values() -> None:
    found = {(0, 0.0123): [0, 0.005, 0.01, 0.015], (61.3, 74.9): [60, 65, 70, 75], (50, 50): [50, 60], (0, 0): [0, 0.2]}
    assert {ends: ticks(*ends) for ends in found} == {ends: pytest.approx(values) for ends, values in found.items()}


def test_intervals_are_left_out_on_request_of_what_people_read(tmp_path: Path) -> None:
    board = leaderboard([made_run(tmp_path / "x", [("e00", 0)])], [PROTOCOL])
    forms: tuple[tuple[Format, str], ...] = (("text", "95 %"), ("md", "95 %"), ("latex", r"95 \%"), ("html", "95 %"))
    for form, sign in forms:
        assert sign in written(board, form) and sign not in written(board, form, intervals=False), form
    assert r"\tiny" not in written(board, "latex", intervals=False)
    assert written(board, "csv", intervals=False) == written(board, "csv")
