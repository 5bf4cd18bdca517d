"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path, PurePosixPath

import pytest

from guieval.engines.http.patience import REACHED
from guieval.wings import WINGS
from tests.command_line import CommandLine
from tests.cost import BUDGETS, Cost
from tests.tiers import TIERS, tier_of

with contextlib.suppress(ImportError):  # the environment in which vLLM is tried has no hypothesis, and no test that needs it
    from hypothesis import settings

    # how long an example takes is the machine's affair, not the test's
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts its background jobs
    # the programs under test inherit it, and many tests send them Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, help="only the tests of this tier (tests/tiers.py); without it, all but full")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Cost(budgets=config.getoption("tier") == "core"), "cost")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the core tier, what belongs to a larger one is not even imported."""
    if config.getoption("tier") == "core" and TESTS in collection_path.parents:
        return tier_of(PurePosixPath(collection_path.relative_to(TESTS).as_posix())) != "core" or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tier, and begin with the folders that cost most, so that no worker is left alone with one of them."""
    chosen = config.getoption("tier")
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        marks = frozenset(mark.name for mark in item.iter_markers())
        tier = tier_of(PurePosixPath(item.path.relative_to(TESTS).as_posix()), marks)
        (kept if tier == chosen or (chosen is None and tier != "full") else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = sorted(kept, key=lambda item: -BUDGETS.get(item.path.relative_to(TESTS).parts[0], 0))


def lacking(text: str) -> str | None:
    """Why a test cannot run in a copy without wings (:mod:`tests.alone`), by its text or its error; ``None`` if it can."""
    gone = [wing for wing in WINGS if not (REPOSITORY / "guieval" / wing).is_dir()]
    needed = re.search(rf"(?:guieval|tests)[./](?:{'|'.join(gone)})\b", text) if gone else None
    if needed is not None:
        return f"needs {needed[0]}, whose folder is deleted"
    return "needs the playground's demo, whose folder is deleted" if "playground" in gone and "demo" in text else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Module):
        failed = str(report.longrepr) if report.failed else ""
        if why := lacking(collector.path.read_text(encoding="utf-8")) or (failed and lacking(failed)):
            report.outcome, report.longrepr, report.result = "skipped", (str(collector.path), 0, why), []
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (why := lacking(str(report.longrepr))):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, why)
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real annotations and screenshots; tests that use it skip where it is absent."""
    folder = Path(os.environ.get("GUIEVAL_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder} (set GUIEVAL_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What guieval remembers of its user stays out of the home folder, and no terminal's width folds what tests read."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")  # readline, which pytest imports, sets it past os.environ


@pytest.fixture(autouse=True)
def no_server_reached() -> None:
    """A port may be given again: what answered there in an earlier test says nothing."""
    REACHED.clear()


@pytest.fixture
def guieval(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The program, on a terminal wide enough for its tables."""
    monkeypatch.setenv("COLUMNS", "200")
    return CommandLine(capsys, monkeypatch)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file; needs the openssl command."""
    folder = tmp_path_factory.mktemp("certificate")
    key, made = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    try:
        subprocess.run(
            [*command, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", made], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")
    (folder / "both.pem").write_text(key.read_text() + made.read_text(), encoding="utf-8")
    return folder / "both.pem"
