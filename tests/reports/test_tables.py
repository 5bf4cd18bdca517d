"""The table renderer at any width, and the tables at a run's end as people read them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence

import pytest
from rich.cells import cell_len

from guieval.actions import Action, ActionSpace, Click, Open, Point
from guieval.history.modes import get_mode
from guieval.metrics import Measured, RunSummary
from guieval.metrics.intervals import Interval
from guieval.reports.console import Run, action_table, group_table, report_tables, run_table, warning_lines
from guieval.reports.tables.table import Column, Number, Table, bare, columns, share
from guieval.reports.tables.terminal import fold, rendered
from guieval.reports.tables.writers import comma_separated, json_text, markdown
from guieval.steps import EpisodeKey, Sample, StepOutcome, StepRecord, Verdict
from tests.made_runs import step
from tests.metrics.made_columns import summarise
from tests.rows import every_row

SHORT = ("[bold]markup[/bold] 👍🏽 e\u0301 \u202eright to left", "half \ud83d surrogate\nnew\tline", "")
HOSTILE = ("a" * 300, "\x1b[31mred\x1b[0m \x07bell\rback", "中文字符" * 40, *SHORT)


def lines(table: Table, width: int) -> list[str]:
    return [line.plain for line in rendered(table, width)]


def wide_table(name: str = "qwen2.5-vl-7b", words: str = "a sentence that describes what this row shows") -> Table:
    heads = columns(
        "model", "exact match", "type match", "95 % interval", "steps", "what it is", folds=("what it is",), spare=("steps",)
    )
    row = (name, Number(Measured(0.5, 1234), show_n=True), share(None), "[48.3, 51.7]", 1234, words)
    return Table("Figures", heads, (row, (), ("other-model", *row[1:])), ("A note.",))


def test_a_table_that_fits_is_printed_as_it_is() -> None:
    table = Table("T", columns("model", "n"), (("a", 1234), (), ("bc", None)), ("Note.",))
    assert lines(table, 80) == ["T", "model      n", "────────────", "a      1,234", "", "bc         -", "Note.", ""]


@every_row("width", [20, 40, 60, 80, 100, 120, 200])
@every_row("name", HOSTILE)
def test_no_line_is_wider_than_the_terminal_whatever_a_name_is(name: str, width: int) -> None:
    named = Table(name, (Column(name), Column(name)), ((name, name),), (name,))
    for table in (wide_table(name), wide_table(words=name), named):
        shown = lines(table, width)
        assert max(map(cell_len, shown)) <= width
        assert all(line.isprintable() for line in shown)


@every_row("width", [40, 60, 80, 100, 200])
def test_no_word_is_split_and_every_figure_is_there(width: int) -> None:
    table = wide_table()
    shown = lines(table, width)
    known = {word for column in table.columns for word in column.name.split()}
    known |= {word for row in table.filled for cell in row for word in str(cell).replace("1234", "1,234").split()}
    text = " ".join(shown)
    words = set(re.sub(r"Left out at this width: .*|A note\.|Figures", "", text).replace("─", "").split())
    assert words <= known | {name + ":" for name in known} | {"1,234", "-"}
    for word in ("qwen2.5-vl-7b", "other-model", "50.00%", "[48.3,", "51.7]", "sentence"):
        assert word in text
    assert ("steps" in text.split("Left out")[0]) != ("Left out at this width: steps." in text)


def test_a_table_that_is_cut_repeats_the_names_and_drops_the_rows_without_a_value() -> None:
    heads = (Column("figure", right=False), *(Column(f"a-model-of-some-length-{number}") for number in range(4)))
    rows = (("exact", 1, 2, 3, 4), ("progress", 1, None, None, None), ("head", "", "", "", ""))
    shown = lines(Table("", heads, rows), 60)
    assert [line.split() for line in shown if line.startswith("exact")] == [["exact", "1", "2"], ["exact", "3", "4"]]
    assert [line.split() for line in shown if line.startswith("progress")] == [["progress", "1", "-"]]
    assert sum(line == "head" for line in shown) == 2


def test_a_narrow_column_is_left_out_only_where_there_is_no_room_for_it() -> None:
    heads = columns("run", "age", "model", spare=("age", "model"))
    shown = lines(Table("", heads, (("r" * 30, "1 min", "m" * 30),)), 40)
    assert "age" in shown[0] and "1 min" in shown[2] and "model" not in shown[0]
    assert "Left out at this width: model." in " ".join(shown)


def test_sentences_fold_between_words_and_paths_stay_whole() -> None:
    path = "/a/path/that/is/longer/than/the/line.json"
    assert fold(f"note: see {path} for it", 20, 2) == ["note: see", f"  {path}", "  for it"]
    assert fold("run:      here", 80) == ["run:      here"]


def test_numbers_keep_their_precision_in_json_and_csv() -> None:
    cell = Number(Measured(1 / 3, 3, missing=2, interval=Interval(0.1, 0.9, 0.95, "wilson")), show_n=True)
    assert str(cell) == "33.33% of 3 (2 missing) [10.0, 90.0]"
    table = Table("T", columns("=row", "x"), (("=a", cell), ("b", bare(float("nan"), ".2f"))), name="t")
    read = json.loads(json_text([table]))[0]
    (name, number), other = read["rows"]
    assert (name, other) == ("=a", ["b", None])
    assert [number[key] for key in ("value", "n", "missing", "unit")] == [1 / 3, 3, 2, "share"]
    assert [number["interval"][key] for key in ("low", "high", "method")] == [0.1, 0.9, "wilson"]
    (first, second) = csv.DictReader(io.StringIO(comma_separated([table])))
    assert (first["row"], float(first["value"]), first["high"], first["n"], first["missing"]) == ("'=a", 1 / 3, "0.9", "3", "2")
    assert second["value"] == ""


def test_markdown_escapes_and_marks_the_best() -> None:
    table = Table("T|x", columns("model", "exact"), (("a|b <i>", Number(Measured(0.5), unit=False, best=True)),), ("note",))
    rows = ["| model | exact |", "| --- | ---: |", r"| a\|b &lt;i&gt; | **50.00** |"]
    assert markdown([table]).splitlines() == [r"### T\|x", "", *rows, "", "- note"]


def test_a_board_too_wide_for_the_terminal_keeps_what_was_measured_of_a_model_together() -> None:
    heads = columns("model", "mode", "exact match (%)", "type match (%)", "success rate (%)", keys=2)
    rows = (("one", "offline", "82.86 [51.2, 92.2]", "89.29 [54.5, 97.4]", "14.29 [0.4, 56.7]"), ("two", "sop", *"abc"))
    board = Table("A board", heads, rows, keys=2, turns=True)
    assert " ".join(lines(board, 120)[1].split()) == "model mode exact match (%) type match (%) success rate (%)"
    narrow = lines(board, 40)
    assert max(map(len, narrow)) <= 40
    first = narrow[: narrow.index("")]
    assert [line.split() for line in first[1:3]] == [["one", "two"], ["offline", "sop"]]
    assert [line.split("  ")[0] for line in first[4::2]] == ["exact match (%)", "type match (%)", "success rate (%)"]
    assert "[51.2, 92.2]" in first[5] and "82.86" in first[4]  # an interval is below its number


CLICK = Click(point=Point(500.0, 500.0))
SPACE = ActionSpace()


def record(name: str, index: int, length: int, verdict: Verdict, groups: Mapping[str, str], reference: Action) -> StepRecord:
    right = verdict == "right"
    task = step(reference, episode=name, index=index, length=length, groups=dict(groups))
    answered = verdict in ("right", "wrong")
    distance = 12.0 if answered else None
    outcome = StepOutcome(verdict=verdict, type_match=answered, exact_match=right, distance=distance)
    return StepRecord(task=task, samples=(Sample(action=reference if answered else None, outcome=outcome),))


def summary(episodes: Sequence[Sequence[Verdict | None]], mode: str = "offline", first: Action = CLICK) -> RunSummary:
    """A run over these episodes; ``None`` is a step without a record, ``first`` the reference of every first step."""
    records = [
        record(str(number), index, len(verdicts), verdict, {}, CLICK if index else first)
        for number, verdicts in enumerate(episodes)
        for index, verdict in enumerate(verdicts)
        if verdict is not None
    ]
    plan = {EpisodeKey("made-up", "", str(number)): range(len(verdicts)) for number, verdicts in enumerate(episodes)}
    return summarise(records, plan, get_mode(mode), SPACE, SPACE)


def grounding() -> RunSummary:
    cells: list[tuple[str, str, list[Verdict]]] = [
        ("mobile", "text", ["right", "right", "right", "wrong"]),
        ("mobile", "icon", ["right", "wrong"]),
        ("web", "text", ["wrong"]),
        ("web", "icon", ["right"]),
    ]
    records = [
        record(f"{platform} {element} {number}", 0, 1, verdict, {"platform": platform, "element": element}, CLICK)
        for platform, element, verdicts in cells
        for number, verdict in enumerate(verdicts)
    ]
    return summarise(records, {one.task.episode_key: range(1) for one in records}, get_mode("offline"), SPACE, SPACE)


def text(table: Table | None, width: int = 100) -> str:
    """The lines that are printed."""
    assert table is not None
    return "\n".join(line.plain for line in rendered(table, width))


def row(table: str, name: str) -> str:
    """The first row of that name, its blanks squeezed."""
    return next(" ".join(line.split()) for line in table.splitlines() if line.strip().startswith(name))


@pytest.mark.parametrize("width", [70, 100, 160])
def test_wide_tables_are_cut_by_runs_and_never_wrapped(width: int) -> None:
    found = summary([["right"] * 7, ["wrong"] * 3], first=Open(app="Maps"))
    runs = [Run(f"androidcontrol\nsome-model-{number}b", found) for number in range(9)]
    for table in (run_table(runs), action_table(runs)):
        lines = [line for line in text(table, width).splitlines() if line]
        assert max(map(len, lines)) <= width
        names = [word for line in lines for word in line.split() if word.startswith("some-model")]
        assert names == [f"some-model-{number}b" for number in range(9)]
        unlimited = [line for line in text(table, 1000).splitlines() if line]
        tables = sum(set(line.split()) == {"androidcontrol"} for line in lines)
        assert tables > 1
        assert len(lines) == 1 + tables * (len(unlimited) - 1)


def test_the_group_table_shows_keys_cells_mean_and_micro() -> None:
    runs = [Run("one", grounding()), Run("no groups", summary([["right"]]))]
    table = group_table(runs)
    assert table is not None
    shown = text(table)
    for line in (
        *("icon 66.7 / 100.0 of 3 -", "text 60.0 / 100.0 of 5 -", "mobile 66.7 / 100.0 of 6 -", "web 50.0 / 100.0 of 2 -"),
        *("icon / mobile 50.0 / 100.0 of 2 -", "icon / web 100.0 / 100.0 of 1 -"),
        *("text / mobile 75.0 / 100.0 of 4 -", "text / web 0.0 / 100.0 of 1 -"),
        "all steps 62.5 / 100.0 of 8 100.0 / 100.0 of 1",
    ):
        assert line in [" ".join(each.split()) for each in shown.splitlines()]
    assert [each.keys for each in grounding().groups] == [("element",), ("platform",), ("element", "platform")]
    means = [f"mean {mean} / 100.0 of {cells} cells -" for mean, cells in (("63.3", 2), ("58.3", 2), ("56.2", 4))]
    assert all(mean in " ".join(shown.split()) for mean in means)
    assert group_table([Run("no groups", summary([["right"]]))]) is None


def test_incomplete_runs_low_coverage_and_foreign_records_are_reported_and_whole_runs_get_no_warning() -> None:
    assert warning_lines([Run("one", summary([["right", "wrong"]])), Run("two", summary([["wrong", None]], "sop"))]) == []
    (line,) = warning_lines([Run("bench\nmodel", summary([["right", "infrastructure_failure", "wrong", None]]))])
    assert line == (
        "bench model: incomplete: 2 of 4 steps, in 1 of 1 episodes, are missing (1 failed, 1 unrecorded). "
        "They count as wrong: exact match is at least 25.00% and at most 75.00%; over the 2 answered steps it is 50.00%."
    )
    (line,) = warning_lines([Run("one", summary([["right", "unparseable"]]))])
    assert "coverage is 50.00%, below 95% (1 unparseable): the covered metrics should not be reported" in line
    foreign = summarise([record("a", 0, 1, "right", {}, CLICK)], {}, get_mode("offline"), SPACE, SPACE)
    (line,) = warning_lines([Run("one", foreign)])
    assert "not counted: 1 recorded step outside the plan" in line


def test_grounding_has_no_progress_no_action_types_and_nothing_without_open() -> None:
    runs = [Run("screenspot", grounding())]
    assert [table.name for table in report_tables(runs)] == ["groups", "metrics", "own"]
    table = text(run_table(runs))
    assert "progress" not in table and "success" not in table and "OPEN" not in table and row(table, "exact match")
    whole = text(run_table([*runs, Run("demo", summary([["right", "wrong"]], first=Open(app="Maps")))]))
    assert "step-weighted progress" in whole and "exact match without OPEN" in whole
    assert "OPEN" not in text(run_table([Run("no app is opened", summary([["right", "wrong"]]))]))
