"""``guieval data download`` from a hub on this machine, with the real client."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guieval.cli.data.download import downloads
from guieval.online.find import environments
from guieval.registry import benchmarks
from tests.command_line import CommandLine, Done
from tests.data.hub.local_hub import COMMIT, LocalHub, serving
from tests.rows import every_row

pytest.importorskip("huggingface_hub")

REPOSITORY = "OS-Copilot/ScreenSpot-v2"
ARCHIVE = "screenspotv2_image.zip"


def released(folder: Path, filler: int = 0) -> dict[str, bytes]:
    """The loader's example as its authors publish it: lists, an archive of the images, and files that nobody needs."""
    benchmarks()["screenspot-v2"].write_example(folder)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for image in sorted((folder / "screenspotv2_image").rglob("*.png")):
            archive.write(image, image.relative_to(folder))
        archive.writestr("screenspotv2_image/filler.bin", bytes(filler))
    lists = {file.name: file.read_bytes() for file in folder.glob("*.json")}
    return {**lists, ARCHIVE: packed.getvalue(), "README.md": b"license: apache-2.0", "other.bin": b"x" * 1000}


@pytest.fixture
def download(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Done]]:
    """The command in this process, as it would be started with this hub; the client reads its variables when it is imported."""
    from huggingface_hub import close_session, constants

    for name in foreign():
        monkeypatch.delenv(name)
    close_session()  # it keeps the proxies that it found

    def command(hub: str, *arguments: str | Path, answer: str = "", offline: bool = False) -> Done:
        monkeypatch.setattr(constants, "ENDPOINT", hub)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        return guieval("data", "download", *arguments)

    yield command
    close_session()


def foreign() -> list[str]:
    """The variables of this environment that would change where the client goes."""
    return [name for name in os.environ if name.startswith("HF_") or "proxy" in name.lower()]


def test_a_download_that_broke_off_is_continued_and_checked(tmp_path: Path) -> None:
    """By the program itself, to which a variable names the hub."""

    def run() -> subprocess.CompletedProcess[str]:
        names = {name: value for name, value in os.environ.items() if name not in foreign()}
        own = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        command = ["-m", "guieval", "data", "download", "screenspot-v2", "--out", str(out), "--yes"]
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=names | own)

    files, out = released(tmp_path / "release", filler=24_000_000), tmp_path / "out"  # the client keeps pieces of 10 MiB
    with serving(LocalHub(REPOSITORY, files, cut=ARCHIVE)) as hub:
        done = run()
        assert done.returncode == 0, done.stderr
        ranges = [asked for name, asked in hub.transfers if name == ARCHIVE]
        assert len(ranges) == 2 and ranges[0] == "" and int(ranges[1].removeprefix("bytes=").split("-")[0]) > 0
        assert {name for name, _ in hub.transfers} == files.keys() - {"README.md", "other.bin"}
        assert (out / ARCHIVE).read_bytes() == files[ARCHIVE]
        assert f"{hub.url}/datasets/{REPOSITORY} at main ({COMMIT[:12]})" in done.stdout
        assert "licence: Apache-2.0; the data set's card: apache-2.0" in done.stdout
        assert f"screenspot-v2 at {out}" in done.stdout and "no errors" in done.stdout  # doctor's own words

        hub.transfers.clear()
        again = run()
        assert again.returncode == 0 and not hub.transfers
        assert "all of it already there" in again.stdout


def test_nothing_is_downloaded_without_consent(download: Callable[..., Done], tmp_path: Path) -> None:
    with serving(LocalHub(REPOSITORY, released(tmp_path / "release"))) as hub:
        refused = download(hub.url, "screenspot-v2", "--out", tmp_path / "out", answer="n\n")
        silent = download(hub.url, "screenspot-v2", "--out", tmp_path / "out")
        assert not hub.transfers and not (tmp_path / "out").exists()
        assert refused.code == 1
        assert silent.code == 2 and "add --yes" in silent.err
        assert download(hub.url, "screenspot-v2", "--out", tmp_path / "out", answer="y\n").code == 0 and hub.transfers


@every_row(
    ("error", "arguments", "words"),
    [
        (None, ("--revision", "mainn"), "has no revision 'mainn' (did you mean 'main'?); known: main, or a commit"),
        (None, (), "has none of the expected files"),
        ((401, "RepoNotFound"), (), "does not exist, or is private"),
        ((403, "GatedRepo"), (), "asks for its terms to be accepted"),
        ((500, ""), (), "could not be read"),
    ],
)
def test_what_the_hub_refuses_is_one_sentence(
    download: Callable[..., Done], tmp_path: Path, error: tuple[int, str] | None, arguments: tuple[str, ...], words: str
) -> None:
    with serving(LocalHub(REPOSITORY, {"README.md": b""}, error=error)) as hub:
        done = download(hub.url, "screenspot-v2", "--yes", "--out", tmp_path / "out", *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and words in done.err, done.err


def test_a_hub_that_is_away_a_folder_below_a_file_and_a_client_told_to_stay_offline(
    download: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    below = f"guieval: '{tmp_path / 'file'}' is a file, not a folder\n"
    for out, offline, words in (
        ("out", False, "could not be read"),
        ("file/out", False, below),
        ("out", True, "HF_HUB_OFFLINE"),
    ):
        done = download("http://127.0.0.1:1", "screenspot-v2", "--yes", "--out", tmp_path / out, offline=offline)
        assert done.code == 2 and done.err.count("\n") == 1 and words in done.err, done.err


@every_row(("name", "inside"), [("ui-i2e-bench", ""), ("venusbench-gd", ""), ("androidcontrol-curated", "benchmark_resource/")])
def test_files_in_folders_arrive_where_the_loader_looks(
    download: Callable[..., Done], name: str, inside: str, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    benchmarks()[name].write_example(release)
    files = {inside + file.relative_to(release).as_posix(): file.read_bytes() for file in release.rglob("*") if file.is_file()}
    with serving(LocalHub(downloads()[name].repository, files)) as hub:
        done = download(hub.url, name, "--out", tmp_path / "out", "--yes")
    assert done.code == 0 and "no errors" in done.out, done.err


def archive(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as written:
        written.writestr(name, content)
    return packed.getvalue()


def test_an_archive_cannot_write_outside_the_folder(download: Callable[..., Done], tmp_path: Path) -> None:
    with serving(LocalHub(REPOSITORY, {ARCHIVE: archive("../escaped.txt", b"x")})) as hub:
        done = download(hub.url, "screenspot-v2", "--yes", "--out", tmp_path / "a" / "out")
    assert done.code == 2 and "leads out of its folder" in done.err
    assert not (tmp_path / "a" / "escaped.txt").exists()


def test_what_is_not_on_the_hub(download: Callable[..., Done], tmp_path: Path) -> None:
    elsewhere = download("http://127.0.0.1:1", "osworld-g")
    assert elsewhere.code == 1 and "github.com/xlang-ai/OSWorld-G" in elsewhere.out
    assert download("http://127.0.0.1:1", "demo").out == "demo needs no download: it makes its own data.\n"
    wrong = download("http://127.0.0.1:1", "screenspot-v3")
    assert wrong.code == 2 and "did you mean 'screenspot-v2'?" in wrong.err


def test_every_repository_is_the_one_that_the_loader_names_and_every_one_on_the_hub_is_in_the_table(
    guieval: CommandLine,
) -> None:
    for name, download in downloads().items():
        assert f"huggingface.co/datasets/{download.repository}" in (environments() | benchmarks())[name].source, name
    assert ": guieval data download screenspot-v2 --out DIR (about 1.33 GB)" in guieval("benchmarks", "screenspot-v2").out
    assert "guieval data download" not in guieval("benchmarks", "osworld-g").out
    on_hub = {name for name, kind in benchmarks().items() if kind.source.startswith("huggingface.co/datasets/")}
    assert on_hub <= downloads().keys()


def damaged() -> bytes:
    whole = bytearray(archive("screenspotv2_image/a.bin", os.urandom(500) + b"a" * 90_000))
    whole[100:400] = bytes(300)
    return bytes(whole)


def encrypted() -> bytes:
    whole = bytearray(archive("screenspotv2_image/a.bin", b"a" * 9_000, zipfile.ZIP_STORED))
    entry = whole.index(b"PK\x01\x02")
    whole[6] |= 1
    whole[entry + 8] |= 1
    return bytes(whole)


@every_row(
    ("files", "words"),
    [
        ({ARCHIVE: damaged()}, "cannot be unpacked: "),
        ({ARCHIVE: encrypted()}, "cannot be unpacked: it is encrypted; delete it"),
        ({ARCHIVE: archive("screenspotv2_image/a.bin", bytes(64_000_000))}, "would unpack to 64 MB"),
        ({"screenspot_/../../../escape_v2.json": b"[]"}, "which leads out of its folder"),
        ({"screenspot_\x1b]52;c;AAAA\x07_v2.json": b"[]"}, "which is no name of a file"),
    ],
    ids=["damaged", "encrypted", "bomb", "dots", "control characters"],
)
def test_a_hostile_hub_ends_in_one_sentence(
    download: Callable[..., Done], tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    out = tmp_path / "a" / "b" / "out"
    with serving(LocalHub(REPOSITORY, {"screenspot_web_v2.json": b"[]", **files})) as hub:
        done = download(hub.url, "screenspot-v2", "--yes", "--out", out)
    assert done.code == 2 and words in done.err and "Traceback" not in done.err and "\x1b" not in done.err, done.err
    assert {path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(out)} == set()
