"""``guieval study fit-scaling``: the fits of a CSV file's series, and their picture."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.rows import every_row


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two exact log-linear series; one line has no value yet."""
    lines = [f"{size},SFT,{10 + place}\n{size},RL,{12 + 2 * place}\n" for place, size in enumerate((16, 32, 64, 128, 256))]
    file = tmp_path / "scores.csv"
    file.write_text("episodes,method,exact match\n" + "".join(lines) + "512,RL,-\n")
    return file


def test_each_series_has_its_own_law(guieval: CommandLine, table: Path) -> None:
    done = guieval("study", "fit-scaling", table, "--by", "method")
    assert done.code == 0 and "SFT: y = 6 + 1 log2(x)" in done.out and "RL: y = 4 + 2 log2(x)" in done.out
    assert "R² 1.0000, residual standard deviation 0, n = 5" in done.out


def test_an_exponential_law_states_its_unit_and_its_letters(guieval: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("size,sop\n" + "".join(f"{1000 * x},{30 - 12 * exp(-0.73 * x)!r}\n" for x in (1, 2, 3, 4, 6)))
    done = guieval("study", "fit-scaling", file, "--form", "exponential", "--unit", "1000")
    assert "sop: y = 30 - 12 e^(-0.73 x)" in done.out
    assert "x is counted in units of 1000: k is per 1000 of the sizes, and B stands for B e^C" in done.out


def test_the_picture_shows_points_and_curves_of_every_series(guieval: CommandLine, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / name for name in ("one.svg", "two.svg")]
    for file in files:
        assert guieval("study", "fit-scaling", table, "--by", "method", "--y", "exact match", "--out", file).code == 0
    first, second = (file.read_bytes() for file in files)
    assert b"<svg" in first and first == second, "equal input gives equal bytes"


@every_row(
    ("arguments", "message"),
    [
        (("--by", "methd"), "has no column 'methd' (did you mean 'method'?)"),
        (("--y", "method"), "column method: expected a number, got 'SFT'"),
        (("--form", "power", "--by", "method"), "SFT: unknown form 'power'; known: log-linear, exponential"),
        (("--form", "loglinear", "--by", "method"), "unknown form 'loglinear' (did you mean 'log-linear'?)"),
        (("--by", "method", "--unit", "10"), "--unit is for --form exponential"),
        (("--form", "exponential", "--unit", "inf"), "--unit is a number above 0, got inf"),
        (("--x", "episodes", "--y", "episodes"), "the column 'episodes' cannot be both the sizes and the values"),
        (("--by", "method", "--level", "1.5"), "the level of an interval is between 0 and 1, got 1.5"),
        (("--by", "method", "--out", "x.gif"), ".gif"),
    ],
)
def test_mistakes_end_with_one_sentence(guieval: CommandLine, table: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in guieval.sentence("study", "fit-scaling", table, *arguments)


def test_a_file_without_points_or_columns_is_refused(guieval: CommandLine, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in guieval.sentence("study", "fit-scaling", tmp_path / "none.csv")
    wrong = {"": "it has: none", "size\n1\n": "it has: size", "size,y\n1,\n": "no line with a value in column 'y'"}
    for text, message in wrong.items():
        (tmp_path / "some.csv").write_text(text)
        assert message in guieval.sentence("study", "fit-scaling", tmp_path / "some.csv")
