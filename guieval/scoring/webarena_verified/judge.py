"""Has WebArena-Verified's evaluator judge the folders that an agent's run left behind, one a task.

The package pins the versions of its dependencies, so it may be in an environment of its own: the evaluator runs in a process of
the Python that has it (:mod:`guieval.scoring.webarena_verified.worker`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

from guieval.errors import UsageError

WORKER = Path(__file__).with_name("worker.py")
PACKAGE = "webarena-verified"


@dataclass(frozen=True, kw_only=True)
class Judge:
    """The evaluator of the interpreter ``python``, with the package's own settings in ``config``.

    ``tasks`` are those that count: "all" of the 812, or the 258 of the authors' "hard" subset.
    """

    python: str = ""
    config: str = ""
    tasks: Literal["all", "hard"] = "all"

    def rows(self, folder: Path) -> Iterator[dict[str, Any]]:
        """The judgement of every task that counts, also of those that ``folder`` does not have."""
        _check(folder)
        if self.config and not Path(self.config).is_file():
            raise UsageError(f"option config is {self.config!r}, which is not a file; expected {PACKAGE}'s settings in JSON")
        found = shutil.which(self.python) if self.python else sys.executable
        if found is None:
            raise UsageError(f"option python is {self.python!r}, which is not a program; expected a Python with {PACKAGE}")
        command = [found, "-P", str(WORKER), str(folder), self.config]
        with TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout is not None, "it is piped"
            for line in process.stdout:
                row: dict[str, Any] = json.loads(line)
                if self.tasks == "all" or row["hard"]:
                    yield row
            process.wait()
            errors.seek(0)
            told = errors.read().decode(errors="replace").strip()
        if process.returncode:
            raise UsageError(_failure(found, told))


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is not a folder; expected the one in which the agent left a folder a task")
    if not any(child.name.isdecimal() and any(child.iterdir()) for child in folder.iterdir() if child.is_dir()):
        raise UsageError(f"{str(folder)!r} holds no task; expected <task id>/agent_response.json with <task id>/network.har")


def _failure(python: str, told: str) -> str:
    last = told.splitlines()[-1] if told else "it gives no reason"
    if "No module named 'webarena_verified'" in last:
        return (
            f"{python!r} does not have {PACKAGE}: pip install 'guieval[{PACKAGE}]', or install {PACKAGE} elsewhere and add "
            "--set python=PATH, the Python that has it"
        )
    return f"{PACKAGE} in {python!r} failed: {last:.300}"
