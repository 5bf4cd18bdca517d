"""The table renderer: at any width, no line is wider, no word is split, and nothing is lost without a note."""

from __future__ import annotations

import csv
import io
import json
import re

from rich.cells import cell_len

from guieval.metrics import Measured
from guieval.metrics.intervals import Interval
from guieval.reports.tables.table import Column, Number, Table, bare, columns, share
from guieval.reports.tables.terminal import fold, rendered
from guieval.reports.tables.writers import comma_separated, json_text, markdown
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
