"""``guieval compare``, ``correlate``, ``power`` and ``leaderboard``: what they print, and what they say of mistakes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.reports.scripted_runs import EPISODES, made_run, named, reported
from tests.rows import every_row


def test_mistakes_of_compare_are_one_sentence(tmp_path: Path, guieval: CommandLine) -> None:
    run = made_run(tmp_path / "runs" / "a", episodes=EPISODES[:2])
    assert "nothing' does not exist" in guieval.sentence("compare", run, tmp_path / "nothing")
    assert guieval("compare", run, tmp_path / "runs").out == guieval("compare", run, run).out  # a folder of one run is that run
    other = made_run(tmp_path / "runs" / "b", episodes=EPISODES[:2])
    assert f"{str(run)!r} and {str(other)!r} are in the same mode" in guieval.sentence("compare", run, tmp_path / "runs")
    assert "is not a run directory" in guieval.sentence("compare", run, tmp_path)
    assert ".csv or .jsonl" in guieval.sentence("compare", run, run, "--flips", tmp_path / "flips.txt")
    assert "there is no folder" in guieval.sentence("compare", run, run, "--flips", tmp_path / "no" / "flips.csv")
    assert "did you mean 'guievalkit'" in guieval.sentence("compare", run, run, "--protocol", "guieval-kit")
    assert guieval("compare", run).code == 2


def test_published_tables_and_csv_files_are_correlated(guieval: CommandLine, tmp_path: Path) -> None:
    done = guieval("study", "correlate", "--table", "guievalkit-table-20", "--x", "offline-exact", "--y", "androidworld")
    assert done.code == 0
    assert "source: GUIEvalKit, Table 20" in done.out and "note: The printed R² are those of straight lines" in done.out
    for message in ("GUI-Owl-32B", "0.6571", "0.4821", "only 6 points", "exact, of all orders of 6"):
        assert message in done.out
    file = tmp_path / "points.csv"
    file.write_text("model,static,live\na,1,10\nb,2,20\nc,,15\nd,3,31\ne,4,-\n", encoding="utf-8")
    done = guieval("study", "correlate", file, "--x", "static", "--y", "live")
    assert done.code == 0
    assert "Over 3 models" in done.out and "1.0000  p = 0.3333" in done.out
    found = json.loads(guieval("study", "correlate", file, "--x", "static", "--y", "live", "--json").out)
    assert (found["n"], found["rank"]["rho"], len(found["points"])) == (3, 1.0, 3)
    # a very small p is not shown as 0
    file.write_text("a,b\n" + "".join(f"{each},{each}\n" for each in range(12)), encoding="utf-8")
    assert "1.0000  p < 0.0001, Student's t" in guieval("study", "correlate", file, "--x", "a", "--y", "b").out


def test_several_columns_are_compared_as_predictors(tmp_path: Path, guieval: CommandLine) -> None:
    file = tmp_path / "models.csv"
    rows = [f"m{number},{number},{(7 * number) % 11},{number * number}" for number in range(1, 11)]
    file.write_text("\n".join(["model,good,poor,live", *rows, "m11,3,,9"]), encoding="utf-8")
    done = guieval("study", "correlate", file, "--x", "good", "--x", "poor", "--y", "live")
    assert "How each predicts live, over 10 models" in done.out and "good - poor" in done.out
    assert "1 model left out, because a metric is missing" in done.out
    found = json.loads(guieval("study", "correlate", file, "--x", "good", "--x", "poor", "--y", "live", "--json").out)
    good, poor = (found["predictors"][name]["Spearman"]["value"] for name in ("good", "poor"))
    assert good == 1 and abs(poor) < 0.5
    assert "given twice" in guieval.sentence("study", "correlate", file, "--x", "good", "--x", "good", "--y", "live")


def online(folder: Path, *rows: str) -> tuple[str | Path, ...]:
    """Options that name a CSV file of success rates online."""
    file = folder / "online.csv"
    file.write_text("\n".join(["model,AW", *rows]) + "\n", encoding="utf-8")
    return ("--y", "AW", "--online", file)


def test_runs_are_correlated_with_a_csv_file_of_their_models(tmp_path: Path, guieval: CommandLine) -> None:
    for name, missed in (("x", 1), ("y", 4), ("z", 9)):
        made_run(tmp_path / "runs" / name, [(each, 0) for each in EPISODES[:missed]], rewrite=named(name))
    figure = json.loads(guieval("leaderboard", tmp_path / "runs", "--format", "json").out)["columns"][0]["metric"]
    asked = ("study", "correlate", tmp_path / "runs", "--x", figure)
    done = guieval(*asked, *online(tmp_path, "x,30", "y,20", "z,5"))
    assert done.code == 0, done.err
    assert "z (offline)" in done.out and "R², line " in done.out
    wrong = guieval.sentence(*asked[:-1], figure[:-1], *online(tmp_path, "x,30", "y,20", "z,5"))
    assert "did you mean" in wrong
    assert "need --online" in guieval.sentence(*asked, "--y", "AW")
    twice = guieval.sentence(*asked, *online(tmp_path, "x,30", "y,20", "x,10"))
    assert "line 4: the model 'x' has a value already" in twice
    assert "of the model 'z'" in guieval.sentence(*asked, *online(tmp_path, "x,30", "y,20"))


def test_unlike_runs_and_several_of_one_model_are_not_correlated(tmp_path: Path, guieval: CommandLine) -> None:
    made_run(tmp_path / "runs" / "x", rewrite=named("x"))
    made_run(tmp_path / "runs" / "y", rewrite=named("y"), mode="soeval")
    board = guieval("leaderboard", tmp_path / "runs", "--format", "csv").out
    figure = next(csv.DictReader(board.splitlines()))["metric"]
    asked = ("--x", figure, *online(tmp_path, "x,30", "y,20"))
    assert "several modes (offline, soeval)" in guieval.sentence("study", "correlate", tmp_path / "runs", *asked)
    made_run(tmp_path / "z", episodes=EPISODES[:3], rewrite=named("y"))
    assert "stands in 2 columns" in guieval.sentence("study", "correlate", tmp_path / "runs" / "x", tmp_path / "z", *asked)
    for name in ("x", "y"):
        made_run(tmp_path / "twice" / name, episodes=EPISODES[:2], rewrite=named("x"))
    twice = ("study", "correlate", tmp_path / "twice", "--x", "Action Acc", "--protocol", "aitw-original")
    assert "the model 'x' has several runs" in guieval.sentence(*twice, *online(tmp_path, "x,30"))


@every_row(
    ("arguments", "message"),
    [
        ((), "either --table NAME, or a CSV file or run directories"),
        (("--table", "guievalkit-table-20"), "--x and --y"),
        (("--table", "guievalkit-table-29", "--x", "a", "--y", "b"), "did you mean 'guievalkit-table-2"),
        (("--table", "ui-s1-table-1", "--table", "ui-s1-table-1", "--x", "a", "--y", "b"), "'ui-s1-table-1' is given twice"),
        (("--table", "ui-s1-table-1", "--x", "a", "--y", "b", "--stated", "1", "--stated", "0"), "2 --stated for 1 --x"),
        (("--table", "guievalkit-table-20", "--x", "offlin-exact", "--y", "androidworld"), "did you mean 'offline-exact'"),
        (("nothing.csv", "--x", "a", "--y", "b"), "neither a CSV file"),
        (("one.csv", "two.csv", "--x", "a", "--y", "b"), "must all be run directories"),
        (("--table", "ui-r1-table-1", "--x", "web-icon", "--y", "web-text", "--protocol", "all"), "is for run directories"),
    ],
)
def test_mistakes_of_correlate_are_one_sentence(guieval: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    assert message in guieval.sentence("study", "correlate", *arguments)


@every_row(
    ("text", "message"),
    [
        ("model,a\nx,1\n", "has no column 'b'"),
        ("model,a,b\nx,1,2\ny,2,three\n", "line 3, column b: expected a number, got 'three'"),
        ("model,a,b\nx,1,2\ny,2,3\n", "at least 3 points"),
        ("model,a,b\nx,1,2\ny,1,3\nz,1,4\n", "every x is 1"),
        ("", "has no column 'a'"),
    ],
)
def test_csv_files_that_cannot_be_correlated_say_why(tmp_path: Path, guieval: CommandLine, text: str, message: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text, encoding="utf-8")
    assert message in guieval.sentence("study", "correlate", file, "--x", "a", "--y", "b")


HARD = EPISODES[:4]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Both models miss all four steps of four episodes, and elsewhere each a step of its own in every second episode."""
    folder = tmp_path_factory.mktemp("runs")
    easy = EPISODES[len(HARD) :]
    hard = [(name, step) for name in HARD for step in range(4)]
    one = made_run(folder / "one", [*hard, *((name, 0) for name in easy[::2])])
    return one, made_run(folder / "other", [*hard, *((name, 1) for name in easy[1::2])])


def told(guieval: CommandLine, *asked: Any) -> dict[str, Any]:
    return dict(json.loads(guieval("study", "power", *asked, "--json").out))


def test_hard_episodes_and_one_run_are_no_difference_given_values_are(runs: tuple[Path, Path], guieval: CommandLine) -> None:
    """Right and wrong of one run correlate by some 0.8 within episodes, the difference of the two hardly."""
    found = told(guieval, *runs)
    assert (found["steps"], found["episodes"], found["icc_is"]) == (48, 12, "measured")
    assert found["icc"] == pytest.approx(0.022, abs=0.001)
    assert found["disagreement"] == pytest.approx(8 / 48) and found["disagreement_is"] == "measured"
    assert "icc of the difference within episodes 0.02 (measured)" in guieval("study", "power", *runs).out
    assert found == told(guieval, *runs[::-1])
    found = told(guieval, runs[0])
    assert (found["icc"], found["icc_is"], found["disagreement"], found["disagreement_is"]) == (0.1, "assumed", 0.2, "assumed")
    assert found == told(guieval, "--steps", 48, "--episodes", 12)
    out = guieval("study", "power", runs[0]).out
    assert "one model alone is right on 20 % of the steps (assumed)" in out and "guieval study power RUN OTHER" in out
    given = told(guieval, *runs, "--icc", 0.3, "--disagreement", 0.5)
    assert (given["icc"], given["icc_is"], given["disagreement"]) == (0.3, "given", 0.5)


def test_few_episodes_show_less_and_unlike_runs_nothing(guieval: CommandLine, runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Two episodes go into finding out how much they differ."""
    few, many = (told(guieval, "--steps", 200, "--episodes", episodes, "--icc", 0)["smallest"] for episodes in (10, 200))
    assert few > 1.1 * many
    short = made_run(tmp_path / "short", episodes=EPISODES[:6])
    assert "cannot be compared: the steps differ" in guieval.sentence("study", "power", runs[0], short)
    assert "there is no difference" in guieval.sentence("study", "power", runs[0], runs[0])
    assert "give a run, or two, or --steps" in guieval.sentence("study", "power")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds two pair."""
    folder = tmp_path_factory.mktemp("pair")
    made_run(folder / "x", [("e00", 0)], episodes=EPISODES[:6], rewrite=named("x"))
    made_run(folder / "y", lambda _, step: step > 0, episodes=EPISODES[:6], rewrite=named("y"))
    return folder


def test_a_folder_of_runs_is_a_table_of_them_the_same_again_with_references_beside(pair: Path, guieval: CommandLine) -> None:
    done = guieval("leaderboard", pair)
    assert done.code == 0, done.err
    assert [line.split(" | ")[0] for line in done.out.splitlines()[2:6]] == ["| model", "| ---", "| x", "| y"]
    assert guieval("leaderboard", pair / "x", pair / "y", pair).out == done.out  # each run once
    asked = ("leaderboard", pair, "--protocol", "all", "--format", "json")
    first = guieval(*asked).out
    assert first == guieval(*asked).out
    assert len({column["protocol"] for column in json.loads(first)["columns"]}) >= 2
    listed = guieval("leaderboard", "--list-references")
    assert listed.code == 0 and "guievalkit-table-20" in listed.out and "UI-S1, Table 1" in listed.out
    done = guieval("leaderboard", pair, "--reference", "ui-r1-table-6")
    assert done.code == 0 and "UI-R1, Table 6 has none of these metrics" in done.out


def test_every_format_goes_to_a_file(pair: Path, tmp_path: Path, guieval: CommandLine) -> None:
    named = guieval("leaderboard", pair, "--format", "csv", "--out", tmp_path / "named.html")
    assert named.code == 0 and (tmp_path / "named.html").read_text(encoding="utf-8").startswith("model,mode")
    begins = {"md": "### scripted", "txt": "scripted (", "csv": "model,mode"}
    begins |= {"tex": "% needs", "json": "{", "html": "<!doctype"}
    for ending in begins:
        assert guieval("leaderboard", pair, "--out", tmp_path / f"board.{ending}").code == 0
    found = {ending: (tmp_path / f"board.{ending}").read_text(encoding="utf-8") for ending in begins}
    assert {ending: found[ending][: len(begin)] for ending, begin in begins.items()} == begins


def test_figures_and_the_order_are_chosen_and_mistakes_told(pair: Path, guieval: CommandLine, tmp_path: Path) -> None:
    whole = json.loads(guieval("leaderboard", pair, "--json").out)
    title = whole["columns"][1]["metric"]
    done = guieval("leaderboard", pair, "--metrics", title, "--sort", title, "--format", "text")
    assert done.code == 0 and title in " ".join(done.out.split()) and done.out.index("\nx ") < done.out.index("\ny ")
    cut = json.loads(guieval("leaderboard", pair, "--metrics", title, "--json").out)
    assert [column["metric"] for column in cut["columns"]] == [title] and len(cut["rows"][0]["cells"]) == 1
    assert "did you mean" in guieval.sentence("leaderboard", pair, "--sort", title[:-1])
    assert "did you mean" in guieval.sentence("leaderboard", pair, "--metrics", title[:-1])
    assert "needs run directories" in guieval.sentence("leaderboard")
    assert "nothing' does not exist" in guieval.sentence("leaderboard", tmp_path / "nothing")
    assert "is not a run directory" in guieval.sentence("leaderboard", tmp_path)
    assert "did you mean 'html'" in guieval.sentence("leaderboard", pair, "--format", "htm")
    assert "must end in" in guieval.sentence("leaderboard", pair, "--out", tmp_path / "board.pdf")
    assert "is a folder" in guieval.sentence("leaderboard", pair, "--out", tmp_path, "--format", "md")
    assert "there is no folder" in guieval.sentence("leaderboard", pair, "--out", tmp_path / "no" / "board.md")
    assert "did you mean 'ui-s1-table-1'" in guieval.sentence("leaderboard", pair, "--reference", "ui-s1-tabel-1")
    assert "did you mean 'guievalkit'" in guieval.sentence("leaderboard", pair, "--protocol", "guieval-kit")


def test_a_table_of_ends_has_no_column_of_one_value(pair: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    several = guieval("leaderboard", pair, "--protocol", "all", "--format", "text").out.split("How steps ended")[1]
    one = guieval("leaderboard", pair, "--format", "text").out.split("How steps ended")[1]
    heads, alone = (text[: text.index("───")].split() for text in (several, one))
    assert "protocol" in heads and alone == ["model", "coverage", "(%)", "right", "wrong"]  # nor one that is zero
    assert not {"demo", "offline"} & {*several.split(), *one.split()}


def test_prices_give_costs_and_intervals_are_left_out_on_request(tmp_path: Path, pair: Path, guieval: CommandLine) -> None:
    for name, words in (("long", 3000), ("short", 1000)):
        made_run(tmp_path / name, episodes=EPISODES[:6], rewrite=named(name), usage=reported(words, 0))
    prices = tmp_path / "prices.yaml"
    prices.write_text("[{models: [long, short], currency: EUR, input: 2, output: 9, source: ours, as_of: 2026-03}]")
    done = guieval("leaderboard", tmp_path, "--prices", prices, "--no-intervals", "--format", "md")
    assert done.code == 0 and "6.00 EUR" in done.out and "2.00 EUR" in done.out and "95 %" not in done.out
    assert "tokens" not in guieval("leaderboard", pair).out
    prices.write_text("[{models: [long]}]")
    assert "price 1, field currency" in guieval.sentence("leaderboard", tmp_path, "--prices", prices)
