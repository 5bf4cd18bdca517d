"""The shipped published tables: they fit together, and agree with what their papers compute from the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.evaluation import get_protocol
from guieval.history.modes import MODES
from guieval.online.find import environments
from guieval.registry import list_benchmarks, list_models
from guieval.reports.leaderboards.published_results import ResultTable, get_results, joined, list_results
from guieval.studies.training_curves import mean_over_seeds
from tests.rows import every_row

TABLE = """
name: mine
paper: "A paper"
short: "Mine"
table: "Table 1"
caption: a caption
columns:
  - {name: sop, title: SOP, meaning: "SOP, in %", decimals: 1}
  - {name: live, title: live, meaning: "success, in %", decimals: 1}
derived:
  - {name: both, title: both, meaning: "mean of the two, in %", mean_of: [sop, live]}
rows:
  - {model: A, values: [1.0, 2.0]}
  - {model: B, values: [2.0, null]}
"""


def values(name: str, model: str, variant: str = "") -> tuple[float | None, ...]:
    (row,) = [each for each in get_results(name).rows if (each.model, each.variant) == (model, variant)]
    return row.values


def whole(row: tuple[float | None, ...]) -> list[float]:
    assert None not in row
    return [each for each in row if each is not None]


def test_every_table_of_the_papers_is_there() -> None:
    assert list_results() == [
        "agentrewardbench-judges",
        "fara-online",
        "gui-owl-1.5-online",
        *(f"guievalkit-table-{number}" for number in (*range(2, 8), *range(10, 16), *range(18, 23))),
        "online-mind2web-judges",
        "opencua-online",
        *(f"ui-r1-table-{number}" for number in (1, 2, 3, 6, 7)),
        "ui-s1-figure-8",
        *(f"ui-s1-table-{number}" for number in (1, 2, 3, 6, 7, 8, 10)),
        "ui-venus-1.5-online",
    ]


@every_row("name", list_results())
def test_tables_name_checkpoints_benchmarks_and_figures_that_exist(name: str) -> None:
    table = get_results(name)
    checkpoints = {row.checkpoint for row in table.rows} - {None}
    assert checkpoints <= set(list_models())
    once = [(row.checkpoint, row.thinking) for row in table.rows if row.checkpoint is not None]
    assert len(set(once)) == len(once), "a checkpoint's own row must be one"
    for column in table.columns:
        assert column.mode is None or column.mode in MODES
        over = column.mean_over or ({column.benchmark: column.metric or ""} if column.benchmark else {})
        assert {*over} <= {*(environments() if column.mode == "online" else list_benchmarks())}
        assert {*over.values()} <= {metric.name for metric in get_protocol(column.protocol or "environment").metrics}
    cells = [(each, column) for row in table.rows for column, each in zip(table.columns, row.values, strict=True)]
    wrong = [each for each, column in cells if each is not None and round(each, column.decimals) != each]
    wrong += [each for each, column in cells if each is not None and "in %" in column.meaning and not 0 <= each <= 100]
    assert not wrong


def test_the_printed_numbers_are_those_of_the_papers() -> None:
    """A few cells of each table, as they stand in the papers' text too."""
    assert values("guievalkit-table-2", "AgentCPM-GUI-8B")[8:] == (96.88, 91.32, 82.80, 54.26)
    assert values("guievalkit-table-2", "GUI-Owl-7B", "without thinking")[:2] == (91.05, 86.25)
    assert values("guievalkit-table-3", "UI-Venus-Navi-72B") == (74.09, 76.16)
    assert values("guievalkit-table-20", "GUI-Owl-7B") == (66.4, 67.37, 65.49, 12.01)
    assert values("ui-s1-table-1", "UI-S1-7B") == (32.4, 16.3, 74.3, 40.2, 60.9, 34.0)
    assert values("ui-s1-table-1", "MobileGUI-7B") == (None, None, 65.3, 22.7, None, 30.0)
    assert values("ui-s1-table-2", "AgentCPM-GUI-8B") == (None, None, 77.7, None, 69.2, 90.8, None, 75.0)
    assert values("ui-r1-table-6", "UI-R1 3B")[-1] == 85.4
    assert values("gui-owl-1.5-online", "GUI-Owl-1.5-8B-Thinking")[:2] == (52.9, 71.6)
    assert values("ui-venus-1.5-online", "UI-Venus-1.5-30B-A3B")[:3] == (77.6, 52.9, 21.5)
    assert values("opencua-online", "OpenCUA-32B") == (29.7, 34.1, 34.8)
    assert values("fara-online", "Fara-7B") == (73.5, 34.1, 26.2, 38.4)


def test_ui_s1_prints_the_rise_of_its_rows_and_their_means() -> None:
    base = "base, asked with the prompt of Appendix H"
    rises = {"ui-s1-table-1": [15.6, 7.2, 23.8, 11.4, 6.9, 19.1], "ui-s1-table-2": [1.1, 1.9, 17.7, 0.9, 15.5, 8.9, 5.4, 7.1]}
    for name, printed in rises.items():
        before, after = whole(values(name, "Qwen2.5VL-7B", base)), whole(values(name, "UI-S1-7B"))
        assert [round(b - a, 1) for a, b in zip(before, after, strict=True)] == printed
    for row in get_results("ui-s1-table-6").rows:
        pg, tsr, score, live, average = whole(row.values)
        assert score == pytest.approx((pg + tsr) / 2, abs=0.0501)
        assert average == pytest.approx((score + live) / 2, abs=0.0501)


def test_guievalkit_computes_some_of_its_numbers_from_others() -> None:
    for row in get_results("guievalkit-table-6").rows:
        right, wrong, ratio = whole(row.values)
        assert ratio == pytest.approx(100 * right / (right + wrong), abs=0.03)  # 73.70 is printed of 73.68
    kinds = [whole(row.values) for row in get_results("guievalkit-table-7").rows]
    assert [ratio for _, ratio in kinds] == [round(100 * count / 108, 1) for count, _ in kinds]
    for row in get_results("guievalkit-table-19").rows:
        *seeds, mean, low, high = whole(row.values)
        found_mean = mean_over_seeds(seeds)
        assert (mean, low, high) == pytest.approx((found_mean.value, found_mean.low, found_mean.high), abs=1.1e-4)
    found = [whole(row.values) for row in get_results("guievalkit-table-21").rows]
    assert [sum(column) for column in zip(*found[:2], strict=True)] == found[2] and all(a + b == c for a, b, c in found)
    rates = [(273 + 309) / 648, 273 / 324, 309 / 324]
    assert [whole(row.values)[0] for row in get_results("guievalkit-table-22").rows] == [round(rate, 3) for rate in rates]


@every_row(
    ("name", "sizes"),
    [
        ("ui-r1-table-1", (206, 230, 140, 194)),
        ("ui-r1-table-2", (154, 145, 198, 143, 197, 64, 144, 110, 177, 53, 107, 89)),
        ("ui-r1-table-3", (1, 1)),
        ("ui-r1-table-6", (211, 290, 203, 234, 140, 194)),
    ],
)
def test_ui_r1_averages_are_those_of_their_columns(name: str, sizes: tuple[int, ...]) -> None:
    """``sizes``: samples of each column of the data sets (Table 3: a plain mean); rounding may move a mean by 0.1 at most."""
    for row in get_results(name).rows:
        *parts, average = whole(row.values)
        mean = sum(size * value for size, value in zip(sizes, parts, strict=True)) / sum(sizes)
        assert average == pytest.approx(mean, abs=0.1), row.title


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TABLE, encoding="utf-8")
    table = get_results(str(file))
    assert table.source == "Mine, Table 1"
    own = joined([str(file)])
    assert own.pairs("sop", "live") == [("A", 1.0, 2.0)]
    with pytest.raises(UsageError, match=r"no column 'life' \(did you mean 'live'\?\); it has: sop, live, both"):
        own.pairs("sop", "life")
    assert own.pairs("sop", "both") == [("A", 1.0, 1.5)]  # B lacks one of the two
    other = tmp_path / "other.yaml"
    text = TABLE.replace("name: mine", "name: other").replace("{model: A", "{model: AA, aliases: [A]").replace("sop", "em")
    other.write_text(text.replace("1.0, 2.0", "7.0, 8.0"), encoding="utf-8")
    two = joined([str(file), str(other)])
    assert two.pairs("em", "mine:live") == [("A", 7.0, 2.0)] and two.pairs("mine:live", "other:live") == [("AA", 2.0, 8.0)]
    wrong = {
        "live": "2 tables have a column 'live'; write mine:live or other:live",
        "my:em": "no table given",
        "emm": "mean 'em'",
    }
    for name, message in wrong.items():
        with pytest.raises(UsageError, match=message):
            two.pairs("em", name)


@every_row(
    ("old", "new", "message"),
    [
        ("values: [1.0, 2.0]", "values: [1.0]", "'A' has 1 values for 2 columns"),
        ("{model: B", "{model: A", "'A' has two rows"),
        ("name: live", "name: sop", "two columns have one name"),
        ("mean_of: [sop", "mean_of: [sopp", "'both' is a mean of 'sopp', which is no column"),
        ("name: mine", "name: other", "calls itself 'other'"),
        ("decimals: 1}\nderived", "decimals: 1, metric: PG}\nderived", "given together"),
        ("caption: a caption", "captoin: a caption", "field captoin: is not known .did you mean 'caption'"),
        ("rows:", "rows: [", "is not YAML"),
    ],
)
def test_a_table_that_does_not_fit_gives_the_reason(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    assert old in TABLE
    file.write_text(TABLE.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        get_results(str(file))


def test_a_table_reads_back_as_it_was_and_unknown_ones_are_reported_with_the_nearest_name(tmp_path: Path) -> None:
    table = get_results("ui-s1-table-1")
    assert ResultTable.model_validate_json(table.model_dump_json()) == table
    with pytest.raises(UsageError, match="did you mean 'ui-s1-table-1'"):
        get_results("uis1-table-1")
    with pytest.raises(UsageError, match="cannot be read"):
        get_results(str(tmp_path / "nothing.yaml"))
