"""Names from files and servers, at every door where they become paths: each is a file in its folder, or refused."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from guieval.actions import Stop
from guieval.data.hub import unpack
from guieval.data.names import path_inside
from guieval.data.preflight import _looks_whole
from guieval.data.screenshots import read_screenshot
from guieval.errors import GuievalError
from guieval.exchange.atif_reading import make_run
from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import MANIFEST, Records
from guieval.online.record import record
from guieval.online.trajectory import TRAJECTORIES
from guieval.running.resume.changes import changed_screenshots
from guieval.steps import StepRecord
from tests.data.test_screenshots import drawn
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row
from tests.scripted import make_episode

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
