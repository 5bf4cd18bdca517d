"""Tables for a paper: what is in them, and that they compile into an article of two columns."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.metrics.intervals import Interval
from guieval.metrics.measured import Measured
from guieval.reports.comparison import compare_all
from guieval.reports.comparison_formats import written as written_comparisons
from guieval.reports.leaderboards.formats import written
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.reports.tables.latex import latex
from guieval.reports.tables.table import Column, Number, Row, Table, share
from tests.reports.scripted_runs import made_run, named, reported

PROTOCOL = "aitw-original"
ENGINE = next((name for name in ("pdflatex", "tectonic") if shutil.which(name)), None)
NAMES = ("ui-tars-7b", "an-organisation/its_model-with-a-long-name-7b-instruct", "x" * 90, "50% & more_$", "qwen2.5-vl-7b", "a")


def test_a_table_has_a_label_a_caption_broken_names_intervals_below_and_notes_as_comments() -> None:
    heads = (Column("model", right=False), Column("match of the type alone"), Column("exact match"))
    best = Number(Measured(-0.5, missing=4, interval=Interval(-0.75, 0.25, 0.95, "wilson")), unit=False, best=True)
    rows: tuple[Row, ...] = (("a_b", best, None), ("[c]", share(0.25, unit=False), 3))
    text = latex(Table("Board", heads, rows, ("50% is \n\\end{table} half",)), caption="What & why.", label="board")
    lines = text.splitlines()
    for part in (
        *[r"% 50% is \end{table} half", r"\caption{What \& why.}", r"\label{tab:board}"],
        r"model & \shortstack[r]{match of \\ the type \\ alone} & \shortstack[r]{exact \\ match} \\",
        *[r"a\_b & \textbf{$-$50.00} & - \\", r" & {\tiny (4 missing) [$-$75.0, 25.0]} &  \\ \addlinespace"],
        r"{}[c] & 25.00 & 3 \\",
    ):
        assert part in lines
    assert r"\begin{table}[t]" in lines and lines.index(r"\begin{table}[t]") > lines.index(r"% 50% is \end{table} half")


def test_labels_are_short_captions_two_sentences_and_both_can_be_given(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / name, [(f"e0{number}", 0)], rewrite=named(name)) for number, name in enumerate("abc")]
    board = leaderboard(runs, [PROTOCOL])
    text = written(board, "latex")
    assert r"\label{tab:scripted}" in text and text.count(r"\begin{table}") == 1
    (caption,) = (line for line in text.splitlines() if line.startswith(r"\caption"))
    assert caption.count(". ") == 1 and f"under {PROTOCOL} (not written for scripted), offline" in caption
    several = leaderboard(runs, [PROTOCOL, "guievalkit"])
    assert all(rf"\label{{tab:mine{more}}}" in written(several, "latex", label="mine") for more in ("", "-2"))
    with pytest.raises(UsageError, match="--caption is for one table, and this board has 2"):
        written(several, "latex", caption="Mine.")
    with pytest.raises(UsageError, match="--label and --caption are for --format latex, not for md"):
        written(board, "md", caption="Mine.")
    assert r"\caption{Mine.}" in written(board, "latex", caption="Mine.")

    one = compare_all([(runs[0], runs[1])], [PROTOCOL])
    text = written_comparisons(one, "latex")
    assert r"\label{tab:scripted-differences}" in text and "b against a on scripted (48 steps of 12 episodes), offline" in text
    assert r"metric & n & a & b & difference & p \\" in text
    both = compare_all([(runs[0], runs[1]), (runs[0], runs[2])], [PROTOCOL])
    text = written_comparisons(both, "latex")
    assert r"metric & model & n & a & \shortstack[r]{model's \\ value} & difference & p (Holm) \\" in text
    assert text.count(r"\begin{table") == 1 and "Each model against a" in text and "Holm for 2 models" in text


@pytest.mark.ci
@pytest.mark.skipif(ENGINE is None, reason="no TeX is installed: pdflatex or tectonic compiles these tables")
def test_tables_of_two_and_six_models_compile_into_two_columns(tmp_path: Path) -> None:
    """Long names, three modes, six metrics, costs and several protocols: no box is overfull, no float too large."""
    places = {}
    for number, name in enumerate(NAMES):
        for mode in ("offline", "soeval", "sop"):
            missed = [("e00", 0), *((f"e{each:02}", 1) for each in range(number))]
            usage = reported(900 + number, 100)
            places[name, mode] = made_run(tmp_path / f"{number}{mode}", missed, rewrite=named(name), mode=mode, usage=usage)
    offline = [places[name, "offline"] for name in NAMES]
    boards = [
        leaderboard(runs, protocols)
        for runs, protocols in (
            (offline[:2], ["guievalkit"]),
            (offline, ["guievalkit"]),
            (offline, [PROTOCOL]),
            ([*places.values()], ["guievalkit", "ui-s1-sop"]),
        )
    ]
    comparisons = [
        compare_all([(offline[0], other) for other in others], ["guievalkit", PROTOCOL])
        for others in (offline[4:5], offline[1:2], offline[1:])
    ]
    tables = [*(written(board, "latex") for board in boards), *(written_comparisons(each, "latex") for each in comparisons)]
    assert [text.split(r"\begin{")[1].split("}")[0] for text in tables] == [*["table*"] * 4, "table", *["table*"] * 2]
    head = r"\documentclass[twocolumn]{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    body = "\n\\clearpage\n".join(tables)
    (tmp_path / "a.tex").write_text(f"{head}\n{body}\n\\end{{document}}\n", encoding="utf-8")
    options = ["--keep-logs"] if ENGINE == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([str(ENGINE), *options, "a.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    log = (tmp_path / "a.log").read_text(encoding="utf-8", errors="replace")
    assert done.returncode == 0, log[-3000:]
    assert [line for line in log.splitlines() if line.startswith(("Overfull", "LaTeX Warning: Float too large"))] == []
