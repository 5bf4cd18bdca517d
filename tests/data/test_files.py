"""Files that are none, names that lead elsewhere, files that expand to gigabytes, and patterns that would take for ever."""

from __future__ import annotations

import ast
import base64
import gzip
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from guieval.actions import Stop
from guieval.data.files import open_descriptor, open_file, open_gzip, read_bytes, read_text
from guieval.data.hub import unpack
from guieval.data.names import path_inside
from guieval.data.patterns import matches_whole, pattern_problem
from guieval.data.preflight import _looks_whole
from guieval.data.screenshots import read_screenshot
from guieval.data.text_files import lines, read_whole, rest, sized_lines
from guieval.data.yaml_text import MOST_CHARACTERS, AliasError, read_yaml
from guieval.errors import DataError, GuievalError, UsageError
from guieval.exchange.atif_reading import make_run
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import MANIFEST, STEPS, Records, RunFolder
from guieval.journal.directory import Journal
from guieval.journal.lines import read_line, read_name
from guieval.journal.run_files import Manifest, read_file
from guieval.online.record import record
from guieval.online.trajectory import TRAJECTORIES
from guieval.running.resume.changes import changed_screenshots
from guieval.steps import StepRecord
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.data.test_screenshots import drawn
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row
from tests.scripted import make_episode

OPENERS: list[Callable[[Path], object]] = [open_descriptor, open_file, open_gzip, read_bytes, read_text]


def sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(40 << 30)


@every_row("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), sparse, Path.mkdir])
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
    apart = {"guieval/data/files.py", "guieval/exchange/webarena_verified/worker.py"}
    apart.add("guieval/connectors/pages/browsergym_worker.py")
    found = []
    for source in (path for part in ("guieval", "benchmarks", "model_adapters") for path in (REPOSITORY / part).rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_bytes())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            reads = node.func.attr == "open" and [ast.unparse(each) for each in node.args] == ["'rb'"]
            place = source.relative_to(REPOSITORY).as_posix()
            if (reads or node.func.attr in ("read_bytes", "read_text")) and place not in apart:
                found.append(f"{place}:{node.lineno}")
    assert found == []


@every_row(
    "name",
    [
        *("../x", "a/../../x", "/x", "", ".", "/", "\\x", "\ud800", "a\\..\\x", "C:/x", "a\0b", "a\x1b[2Jb"),
        *("n" * 256, "a/" * 600 + "x", "link/x", "circle/x"),
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


# --- one sentence, and memory stays bounded ---

GIBIBYTE = 1 << 30
PACKED = b"c-nJ{%CIzaj8qGbe6f8QKVy6!2g3md1`Y)Vg9cwWrv<7jxf-Sq4f&ttx>Fc+gg97$@{C{=XIM3tDX}Uixp296?^K$j;bGrbI+FnaLV!r{"
"""300 MiB of zeros in bz2's format, which takes seconds to pack them, and packed once more."""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A line of 3 GB in a file of 3 MB."""
    file = tmp_path_factory.mktemp("bombs") / "predictions.jsonl.gz"
    block = b"x" * (1 << 24)  # packed once: gzip's members follow each other
    file.write_bytes(gzip.compress(b'{"text": "') + gzip.compress(block) * (3 * GIBIBYTE // len(block)))
    return file


def started(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The program with no more memory than 2 GiB of addresses."""
    return subprocess.run(
        [sys.executable, "-m", "guieval", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * GIBIBYTE, 2 * GIBIBYTE)),
    )


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2 and done.stderr.startswith("guieval: ") and done.stderr.count("\n") == 1, done
    return done.stderr


@pytest.mark.ci
def test_a_line_of_3_gb_in_a_gzip_is_one_sentence(endless: Path, tmp_path: Path) -> None:
    where = ("--data", tmp_path / "demo", "--out", tmp_path / "run")
    message = sentence(started(tmp_path, "data", "import", endless, "--bench", "demo", *where))
    assert f"{endless}, line 1: is longer than 128 MiB" in message
    with pytest.raises(DataError, match="unpacks to more than 512 MiB"):
        read_whole(endless)


def test_lines_and_what_follows_have_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    assert list(lines(file, io.BytesIO(b"one\ntwo"), 4)) == [b"one\n", b"two"]
    assert list(lines(file, io.BytesIO(b"four\nfive\n"), 4)) == [b"four\n", b"five\n"]
    with pytest.raises(DataError, match=r"a\.jsonl, line 2: is longer"):
        list(lines(file, io.BytesIO(b"four\nseven\n"), 4))
    assert list(sized_lines(io.BytesIO(b"1\n" + b"2" * 300 + b"\n3\n"), 200)) == [(b"1\n", 2), (b"2" * 100, 301), (b"3\n", 2)]
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(b"x" * (5 << 20)))
    assert len(rest(packed, io.BytesIO(b"x" * (4 << 20)), 5 << 20)) == 4 << 20
    with gzip.open(packed) as stream, pytest.raises(DataError, match="unpacks to more than 4 MiB"):
        rest(packed, stream, 4 << 20)  # type: ignore[arg-type]


def test_a_packed_record_that_unpacks_to_gigabytes_is_damaged() -> None:
    head = b'["b","","e",0,1]'
    body = b"b" + zlib.decompress(base64.b85decode(PACKED))
    stuffed = (zlib.crc32(body, zlib.crc32(head)).to_bytes(4) + body).replace(b"\x1b", b"\x1be").replace(b"\n", b"\x1bn")
    line = b"\x01" + head + b"\0" + stuffed + b"\n"
    assert len(line) < 10_000 and read_name(line)[1]  # its checksum fits
    with pytest.raises(ValueError, match="unpacks to more than a record can hold"):
        read_line(line)


def test_a_line_of_a_journal_longer_than_any_record_is_passed_over(tmp_path: Path) -> None:
    with (tmp_path / STEPS).open("wb") as stream:
        stream.write(b"{}\n")
        stream.seek(200 << 20)  # zeros that take no place on the disk
        stream.write(b"\n{}\n")
    records = RunFolder(tmp_path).records
    assert list(records) == [] and records.damaged == [1, 2, 3]


def test_numbers_of_yaml_are_those_of_yaml_1_2_and_aliases_are_refused() -> None:
    assert read_yaml("a: 1e-3\nb: [1, yes]") == {"a": 0.001, "b": [1, True]}
    assert read_yaml("a: 2024-01-01", texts=True) == {"a": "2024-01-01"}
    assert read_yaml("a: &a [1]\nb: 0x10") == {"a": [1], "b": 16}
    with pytest.raises(AliasError, match=r"the alias \*a is not accepted"):
        read_yaml(BOMB)
    absurd = ("[" * 5000, "seed: 0x" + "f" * 5000, "seed: " + "9" * 5000, "# " + "x" * MOST_CHARACTERS)
    for text in ("*.png", "a: [", "a: !!python/object:os.system x", "2024-02-45", *absurd):
        with pytest.raises(ValueError):
            read_yaml(text)


def test_an_alias_bomb_is_one_sentence_wherever_yaml_is_read(tmp_path: Path, guieval: CommandLine) -> None:
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text(BOMB)
    inline = "{" + ", ".join(BOMB.strip().split("\n")) + "}"
    run = ("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", tmp_path / "demo", "--out", tmp_path / "run")
    for arguments in (
        (*run, "--set", f"sampling={inline}"),
        (*run, "--set", f"bench_options={inline}"),
        (*run, "--config", bomb),
        ("doctor", "demo", "--data", tmp_path / "demo", "--set", f"episodes={inline}"),
        ("leaderboard", "--reference", bomb, tmp_path),
        ("train", "grpo", "--config", bomb),
    ):
        message = guieval.sentence(*arguments)
        assert "alias" in message and len(message) < 500, message
    assert guieval("doctor", "demo", "--data", tmp_path / "demo", "--set", "episodes=*.png").code == 2


def test_a_file_name_cannot_plan_a_hundred_billion_shards(tmp_path: Path, guieval: CommandLine) -> None:
    source = tmp_path / "release"
    source.mkdir()
    (source / "android_control-00000-of-99999999999").write_bytes(b"")
    (source / "splits.json").write_text('{"test": [1], "validation": []}')
    message = guieval.sentence("data", "prepare", "androidcontrol", "--source", source, "--out", tmp_path / "out")
    assert "99,999,999,999 shards; expected 10,000 at most" in message


SIZE = (40, 60)
NAMES = (
    *("../secret.png", "a/../../secret.png", "ABSOLUTE", "..\\secret.png", "C:\\secret.png", "C:secret.png"),
    *("\\\\host\\secret.png", "link/secret.png", "a\0b.png", "a\x1b[2Jb.png", "\ud800.png", "", ".", "x...", "CON"),
    *("x" * 300 + ".png", "海" * 120 + ".png", "a/" * 700 + "x.png"),
)


def found(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return online_run(tmp_path_factory.mktemp("online"))


def named(played: Path, folder: Path, name: str) -> Path:
    """A copy of an online run whose first steps saw the screenshot ``name``."""
    run = Path(shutil.copytree(played, folder / "run"))
    lines = [json.loads(line) for line in (run / TRAJECTORIES).read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line.pop("crc32", None)
        if line["index"] == 0:
            line["screenshot"] = name
    (run / TRAJECTORIES).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return run


def to_read(played: Path, folder: Path, name: str) -> None:
    assert path_inside(folder / "in", name).is_relative_to(folder / "in")


def to_show(played: Path, folder: Path, name: str) -> None:
    assert name.startswith("link/") or not _looks_whole(folder / "in", name, SIZE)  # reading follows links
    read_screenshot(folder / "in", name, SIZE)


def to_compare(played: Path, folder: Path, name: str) -> None:
    task = make_episode("a", [Stop()]).steps[0].model_copy(update={"screenshot": name})
    seen = StepRecord.model_construct(task=task, samples=(), screen=(1, "0" * 16))
    assert changed_screenshots(folder / "in", [seen]) == []


def to_unpack(played: Path, folder: Path, name: str) -> None:
    with zipfile.ZipFile(folder / "in" / "a.zip", "w") as archive:
        archive.writestr(name.encode("utf-8", "replace").decode() or "x", b"unpacked")
    unpack(folder / "in" / "a.zip")


def to_record(played: Path, folder: Path, name: str) -> None:
    run = named(played, folder / "in", name)
    record({run: list(Records(run))}, folder / "in" / "recorded")


def to_export(played: Path, folder: Path, name: str) -> None:
    format_named("atif").write(exported(named(played, folder / "in", name)), folder / "in" / "atif", images=True)


def to_import(played: Path, folder: Path, name: str) -> None:
    for path in format_named("atif").write(exported(played), folder / "in" / "atif", images=True):
        if path.suffix == ".json":
            values = json.loads(path.read_text(encoding="utf-8"))
            values["steps"][1]["extra"]["screenshot"] = name
            path.write_text(json.dumps(values), encoding="utf-8")
    make_run(folder / "in" / "atif", folder / "in" / "back")


def to_name_files(played: Path, folder: Path, name: str) -> None:
    run = Path(shutil.copytree(played, folder / "in" / "run"))
    manifest = json.loads((run / MANIFEST).read_text(encoding="utf-8"))
    manifest["created"] = manifest["model"]["name"] = manifest["benchmark"]["name"] = name
    (run / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    for kind in ("inspect", "every-eval-ever", "atif"):
        format_named(kind).write(exported(run), folder / "in" / kind)


DOORS = (to_read, to_show, to_compare, to_unpack, to_record, to_export, to_import, to_name_files)


@every_row("door", DOORS, ids=[door.__name__ for door in DOORS])
def test_a_hostile_name_reaches_nothing_outside_of_its_folder(
    door: Callable[[Path, Path, str], None], played: Path, tmp_path: Path
) -> None:
    for number, name in enumerate(NAMES):
        what, folder = f"{name!r:.40}", tmp_path / str(number)
        (folder / "in").mkdir(parents=True)
        (folder / "secret.png").write_bytes(drawn())
        (folder / "in" / "link").symlink_to(folder)
        before = found(folder)
        try:
            door(played, folder, name if name != "ABSOLUTE" else str(folder / "secret.png"))
        except (GuievalError, ValueError) as error:
            assert len(str(error)) < 2000, what
        after = found(folder)
        assert {path: data for path, data in after.items() if not path.startswith(str(folder / "in"))} == before, what
        copied = [path for path, data in after.items() if data == before[str(folder / "secret.png")] and path not in before]
        assert not copied, what


@every_row("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}", "(a*)*b", r"(\w+\s?)*!"])
def test_no_pattern_can_hold_a_run_up(pattern: str) -> None:
    """Python's ``re`` takes longer than the universe for these; a test that hangs here has failed."""
    assert pattern_problem(pattern) is None
    assert matches_whole(pattern, "a" * 20_000 + "!") in (True, False)
    assert not matches_whole(pattern, "a" * 20_000 + "?")


@every_row("pattern", ["(?=x)y", r"(a)\1", "(?<!x)y", "[", "a{1000}{1000}", "a{99999999999999}", "\ud800"])
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    problem = pattern_problem(pattern)
    assert problem is not None and "is not a regular expression of RE2" in problem and len(problem) < 250
    assert not matches_whole(pattern, pattern)


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    assert matches_whole("a.", "a\ud800") and not matches_whole("ab", "a\ud800")


@every_row("pattern", ["tea( shop)?", ".*周杰伦.*", "(?i)Über.*", r"\d{3}-\d+", "", "a|b", "[^x]*"])
@every_row("text", ["tea", "tea shop", "放周杰伦的歌", "übermorgen", "555-1", "", "a", "b\n", "x"])
def test_ordinary_patterns_mean_what_python_means(pattern: str, text: str) -> None:
    assert matches_whole(pattern, text) is (re.fullmatch(pattern, text) is not None)


def test_every_published_pattern_is_read(shared_data: Path) -> None:
    """OneKey's annotations are the public ones that hold patterns."""
    from guieval.registry import load_benchmark

    patterns = {
        pattern
        for episode in load_benchmark("onekey", shared_data / "zte_onekey")
        for task in episode.steps
        for pattern in json.loads(json.dumps(task.extras.get("text_patterns", [])))
    }
    assert patterns
    assert [pattern for pattern in patterns if pattern_problem(pattern)] == []
