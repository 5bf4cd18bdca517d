"""Files that are none, and names that lead elsewhere."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guieval.data.files import open_descriptor, open_file, open_gzip, read_bytes, read_text
from guieval.data.names import path_inside
from guieval.data.text_files import read_whole
from guieval.data.yaml_text import MOST_CHARACTERS, read_yaml
from guieval.errors import DataError, UsageError
from guieval.journal.directory import Journal
from guieval.journal.run_files import Manifest, read_file
from tests.conftest import REPOSITORY
from tests.rows import every_row

OPENERS: list[Callable[[Path], object]] = [open_descriptor, open_file, open_gzip, read_bytes, read_text]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(40 << 30)


def folder(path: Path) -> None:
    path.mkdir()


@every_row("make", [fifo, device, sparse, folder])
def test_a_file_that_is_none_fails_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    for opener in OPENERS:
        with pytest.raises(OSError, match=r"not a regular file|sparse file of 42,949,672,960 bytes|directory"):
            opener(tmp_path / "x")
    with pytest.raises(UsageError, match="cannot be read: "):
        read_file(tmp_path / "x", Manifest)
    with pytest.raises(DataError, match="cannot be read: "):
        read_whole(tmp_path / "x")


def test_a_file_is_read_up_to_what_it_may_have(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("\u00e9\r\nb\r".encode())
    assert read_bytes(tmp_path / "x", 6) == (tmp_path / "x").read_bytes() and read_text(tmp_path / "x") == "\u00e9\nb\n"
    with pytest.raises(OSError, match="more than 0 MiB"):
        read_bytes(tmp_path / "x", 5)


@every_row("name", ["lock", "steps.jsonl"])
def test_a_run_is_not_written_into_a_pipe(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(Exception, match="not a regular file"):
        Journal(tmp_path)


def test_every_file_is_opened_by_the_one_opener() -> None:
    """Those that open for themselves read what is no file, or run alone in another program."""
    apart = {
        "guieval/data/files.py",
        "guieval/scoring/webarena_verified/worker.py",
        "guieval/online/pages/browsergym_worker.py",
    }
    found = []
    for source in (path for part in ("guieval", "benchmarks", "model_adapters") for path in (REPOSITORY / part).rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_bytes())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            reads = node.func.attr == "open" and [ast.unparse(each) for each in node.args] == ["'rb'"]
            if (reads or node.func.attr in ("read_bytes", "read_text")) and source.relative_to(
                REPOSITORY
            ).as_posix() not in apart:
                found.append(f"{source.relative_to(REPOSITORY)}:{node.lineno}")
    assert found == []


@every_row(
    "name",
    [
        *(
            "../x",
            "a/../../x",
            "/x",
            "",
            ".",
            "/",
            "\\x",
            "\ud800",
            "a\\..\\x",
            "C:/x",
            "a\0b",
            "a\x1b[2Jb",
            "n" * 256,
            "a/" * 600 + "x",
        ),
        *("link/x", "circle/x"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path)
    (tmp_path / "in" / "circle").symlink_to("circle")
    with pytest.raises(ValueError, match=r"leads out of its folder|no name of a file|too long|cannot be followed"):
        path_inside(tmp_path / "in", name)


def test_other_names_are_paths(tmp_path: Path) -> None:
    """Screenshots of a Mac have a narrow no-break space in their names, and unpacked archives a backslash."""
    for name in ("x", "a/b.png", "ä ö/..x", "b/c:d", "folder/", "./a//b", " a", "at 10.00\u202fAM.png", "a\\b", "CON", "x."):
        assert path_inside(tmp_path, name) == tmp_path / name


def test_yaml_of_absurd_size_is_a_value_error() -> None:
    for text in ("seed: 0x" + "f" * 5000, "seed: " + "9" * 5000, "# " + "x" * MOST_CHARACTERS):
        with pytest.raises(ValueError):
            read_yaml(text)
    assert read_yaml("seed: 0x10") == {"seed": 16}
