"""``guieval leaderboard`` at the command line: formats, files, references, and what it says of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.reports.scripted_runs import EPISODES, made_run, named, reported


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds two runs."""
    folder = tmp_path_factory.mktemp("runs")
    made_run(folder / "x", [("e00", 0)], episodes=EPISODES[:6], rewrite=named("x"))
    made_run(folder / "y", lambda _, step: step > 0, episodes=EPISODES[:6], rewrite=named("y"))
    return folder


def test_a_folder_of_runs_is_a_table_of_them_the_same_again_with_references_beside(runs: Path, guieval: CommandLine) -> None:
    done = guieval("leaderboard", runs)
    assert done.code == 0, done.err
    assert [line.split(" | ")[0] for line in done.out.splitlines()[2:6]] == ["| model", "| ---", "| x", "| y"]
    assert guieval("leaderboard", runs / "x", runs / "y", runs).out == done.out  # each run once
    asked = ("leaderboard", runs, "--protocol", "all", "--format", "json")
    first = guieval(*asked).out
    assert first == guieval(*asked).out
    assert len({column["protocol"] for column in json.loads(first)["columns"]}) >= 2
    listed = guieval("leaderboard", "--list-references")
    assert listed.code == 0 and "guievalkit-table-20" in listed.out and "UI-S1, Table 1" in listed.out
    done = guieval("leaderboard", runs, "--reference", "ui-r1-table-6")
    assert done.code == 0 and "UI-R1, Table 6 has none of these metrics" in done.out


def test_every_format_goes_to_a_file(runs: Path, tmp_path: Path, guieval: CommandLine) -> None:
    named = guieval("leaderboard", runs, "--format", "csv", "--out", tmp_path / "named.html")
    assert named.code == 0 and (tmp_path / "named.html").read_text(encoding="utf-8").startswith("model,mode")
    begins = {"md": "### scripted", "txt": "scripted (", "csv": "model,mode"}
    begins |= {"tex": "% needs", "json": "{", "html": "<!doctype"}
    for ending in begins:
        assert guieval("leaderboard", runs, "--out", tmp_path / f"board.{ending}").code == 0
    found = {ending: (tmp_path / f"board.{ending}").read_text(encoding="utf-8") for ending in begins}
    assert {ending: found[ending][: len(begin)] for ending, begin in begins.items()} == begins


def test_figures_and_the_order_are_chosen_and_mistakes_told(runs: Path, guieval: CommandLine, tmp_path: Path) -> None:
    whole = json.loads(guieval("leaderboard", runs, "--json").out)
    title = whole["columns"][1]["metric"]
    done = guieval("leaderboard", runs, "--metrics", title, "--sort", title, "--format", "text")
    assert done.code == 0 and title in " ".join(done.out.split()) and done.out.index("\nx ") < done.out.index("\ny ")
    cut = json.loads(guieval("leaderboard", runs, "--metrics", title, "--json").out)
    assert [column["metric"] for column in cut["columns"]] == [title] and len(cut["rows"][0]["cells"]) == 1
    assert "did you mean" in guieval.sentence("leaderboard", runs, "--sort", title[:-1])
    assert "did you mean" in guieval.sentence("leaderboard", runs, "--metrics", title[:-1])
    assert "needs run directories" in guieval.sentence("leaderboard")
    assert "nothing' does not exist" in guieval.sentence("leaderboard", tmp_path / "nothing")
    assert "is not a run directory" in guieval.sentence("leaderboard", tmp_path)
    assert "did you mean 'html'" in guieval.sentence("leaderboard", runs, "--format", "htm")
    assert "must end in" in guieval.sentence("leaderboard", runs, "--out", tmp_path / "board.pdf")
    assert "is a folder" in guieval.sentence("leaderboard", runs, "--out", tmp_path, "--format", "md")
    assert "there is no folder" in guieval.sentence("leaderboard", runs, "--out", tmp_path / "no" / "board.md")
    assert "did you mean 'ui-s1-table-1'" in guieval.sentence("leaderboard", runs, "--reference", "ui-s1-tabel-1")
    assert "did you mean 'guievalkit'" in guieval.sentence("leaderboard", runs, "--protocol", "guieval-kit")


def test_a_table_of_ends_has_no_column_of_one_value(runs: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    several = guieval("leaderboard", runs, "--protocol", "all", "--format", "text").out.split("How steps ended")[1]
    one = guieval("leaderboard", runs, "--format", "text").out.split("How steps ended")[1]
    heads, alone = (text[: text.index("───")].split() for text in (several, one))
    assert "protocol" in heads and alone == ["model", "coverage", "(%)", "right", "wrong"]  # nor one that is zero
    assert not {"demo", "offline"} & {*several.split(), *one.split()}


def test_prices_give_costs_and_intervals_are_left_out_on_request(tmp_path: Path, runs: Path, guieval: CommandLine) -> None:
    for name, words in (("long", 3000), ("short", 1000)):
        made_run(tmp_path / name, episodes=EPISODES[:6], rewrite=named(name), usage=reported(words, 0))
    prices = tmp_path / "prices.yaml"
    prices.write_text("[{models: [long, short], currency: EUR, input: 2, output: 9, source: ours, as_of: 2026-03}]")
    done = guieval("leaderboard", tmp_path, "--prices", prices, "--no-intervals", "--format", "md")
    assert done.code == 0 and "6.00 EUR" in done.out and "2.00 EUR" in done.out and "95 %" not in done.out
    assert "tokens" not in guieval("leaderboard", runs).out
    prices.write_text("[{models: [long]}]")
    assert "price 1, field currency" in guieval.sentence("leaderboard", tmp_path, "--prices", prices)
