"""The first commands of the README, executed as they are written, and the package imported from unfavourable places."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def commands(section: str) -> list[str]:
    """The lines of code in a section of the README."""
    found = re.search(rf"^## {section}\n(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the README has no section {section}"
    return re.findall(r"^    (.*)$", found.group(1), re.MULTILINE)


@pytest.mark.skipif(not Path(sys.prefix, "bin", "activate").exists(), reason="these tests do not run in a virtual environment")
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_first_commands_of_the_readme(tmp_path: Path) -> None:
    """In a new home, with nothing on the PATH; the demo is shorter, and finds its environment ready."""
    pytest.importorskip("onnxruntime")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    script = "\n".join(commands("Install") + commands("First run"))
    assert script.startswith("make demo ") and "\nsource .venv/bin/activate " in script
    script = script.replace("make demo ", "make --old-file .venv/.demo DEMO='--limit 1' demo ", 1)
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/local/bin:/usr/bin:/bin", "COLUMNS": "80"}
    done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    opened = re.findall(r"^open: +file://(\S+)", done.stdout, re.MULTILINE)
    assert len(opened) == 2 and all(Path(page).is_file() for page in opened)
    assert (tmp_path / "runs" / "first" / "actions.pdf").read_bytes().startswith(b"%PDF")


def test_a_folder_named_guieval_does_not_hide_the_package(tmp_path: Path) -> None:
    """As in the parent folder of a clone. Where this fails, the editable install is old: `pip install -e .` renews it."""
    (tmp_path / "guieval" / "benchmarks").mkdir(parents=True)
    code = "import guieval.benchmarks.demo; print(guieval.load_benchmark('demo').name)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "demo\n", done.stderr
