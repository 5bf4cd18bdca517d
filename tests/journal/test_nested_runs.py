"""A new run inside or above another run's directory would hide one of them; it is refused before anything is made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from guieval.journal import MANIFEST, ROLLOUT, SWEEP, is_run
from tests.command_line import CommandLine
from tests.pinned.place import RUNS

RUN = ("run", "--model", "ocr-baseline", "--bench", "demo", "--set", "bench_options.episodes=2", "--quiet", "--out")
ROLL = ("study", "rollout", "--model", "ocr-baseline", "--bench", "demo", "--rounds", "2", "--samples", "2", "--quiet", "--out")
MIX = ("study", "mix", "--model", "ocr-baseline", "--bench", "demo", "--artifacts", "x", "--quiet", "--out")
EACH = pytest.mark.parametrize("command", [RUN, ROLL, MIX], ids=["run", "rollout", "mix"])


@pytest.fixture(autouse=True, scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The demo's screenshots are drawn once for all of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a finished run of two modes in it."""
    for mode in ("offline", "sop"):
        shutil.copytree(RUNS / "hasty" / mode, tmp_path / "runs" / "first" / mode)
    return tmp_path / "runs"


@EACH
def test_inside_or_above_a_run(guieval: CommandLine, runs: Path, command: tuple[str, ...]) -> None:
    before = sorted(runs.rglob("*"))
    inside = runs / "first" / "sop" / "again" / "deeper"
    sentence = guieval.sentence(*command, inside)
    assert f"{str(inside)!r} is inside the run {str(runs / 'first' / 'sop')!r}; give an --out outside" in sentence
    for above in (runs, runs / "first"):
        sentence = guieval.sentence(*command, above)
        assert f"{str(above)!r} holds the run '{runs / 'first'}/" in sentence and "not above other runs" in sentence
    assert sorted(runs.rglob("*")) == before


@EACH
@pytest.mark.parametrize(("marker", "what"), [(ROLLOUT, "the rollout"), (SWEEP, "the sweep")])
def test_inside_and_above_a_rollout_or_a_sweep(
    guieval: CommandLine, tmp_path: Path, command: tuple[str, ...], marker: str, what: str
) -> None:
    group = tmp_path / "all" / "group"
    group.mkdir(parents=True)
    (group / marker).write_text("{}")
    assert f"is inside {what} {str(group)!r}" in guieval.sentence(*command, group / "new")
    assert f"holds {what} {str(group)!r}" in guieval.sentence(*command, tmp_path / "all")
    if command is RUN:
        assert "give an --out that is not above other runs" in guieval.sentence(*RUN, group)


def test_a_run_through_a_link_lies_where_the_link_leads(guieval: CommandLine, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs / "first" / "offline")
    assert "is inside the run" in guieval.sentence(*RUN, tmp_path / "link" / "new")


@pytest.mark.ci
def test_side_by_side_and_a_further_mode_are_fine(guieval: CommandLine, runs: Path) -> None:
    assert guieval(*RUN, runs / "second").code == 0
    assert guieval(*RUN, runs / "first" / "soeval", "--mode", "soeval").code == 0
    assert guieval(*RUN, runs, "--mode", "offline", "--mode", "sop").code == 0
    assert is_run(runs / "offline") and is_run(runs / "first" / "soeval")
    assert "already has a run" in guieval.sentence(*RUN, runs / "second")


@pytest.mark.ci
def test_the_manifest_of_another_program_is_no_run(
    guieval: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / MANIFEST).write_text('{"name": "a web page"}')
    assert guieval(*RUN, tmp_path / "runs" / "new").code == 0
