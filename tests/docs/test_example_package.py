"""``examples/guieval-kiosk``: a package of somebody else's is installed, and every command knows what it adds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

PACKAGE = REPOSITORY / "examples" / "guieval-kiosk"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which Python finds the package, built from a copy and installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("kiosk")
    source = shutil.copytree(PACKAGE, folder / "source")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "site"), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return {**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "120"}


def test_its_own_tests_pass(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("benchmarks kiosk", "Kiosk (example of a plug-in)"),
        ("protocols kiosk-strict", "written for: kiosk"),
        ("dev check kiosk kiosk_agent", "no problem found"),
    ],
)
def test_the_commands_know_it(environment: dict[str, str], command: str, shown: str) -> None:
    done = subprocess.run([sys.executable, "-m", "guieval", *command.split()], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and shown in done.stdout, done.stdout + done.stderr
