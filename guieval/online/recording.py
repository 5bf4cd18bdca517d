"""The folder of a recording in the making: what is finished is kept, so the same command goes on after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from guieval.data.files import becoming, read_text
from guieval.data.names import path_inside
from guieval.errors import UsageError
from guieval.online.attempt import screen_name
from guieval.online.contract import ABCEnvironment, EnvironmentTask
from guieval.online.trajectory import SCREENS

Progress = Callable[[int, int | None], None]
RECORDING = "recording.jsonl"
"""The file of a recording that is not finished: what is recorded, and a line ``[part, value]`` for each finished part."""


class Recording:
    """The folder ``out`` while an environment's expert does ``tasks`` with every seed, and, with a ``depth``, graphs are made.

    Goes on with a recording of the same that was stopped. ``on_progress`` is called with the number of finished parts and of
    all. Raises :class:`UsageError` if ``out`` has anything else.
    """

    def __init__(
        self,
        environment: ABCEnvironment,
        out: Path,
        seeds: Sequence[int],
        tasks: Sequence[EnvironmentTask],
        *,
        depth: int | None = None,
        on_progress: Progress = lambda done, total: None,
    ) -> None:
        self.out, self._file = out, out / RECORDING
        about = {
            "environment": f"{environment.name} {environment.version}",
            "screens": dict(environment.identity()),
            "tasks": [task.id for task in tasks],
            "seeds": list(seeds),
            "depth": depth,
        }
        self._on_progress, self._parts = on_progress, len(tasks) * (len(seeds) + (depth is not None))
        lines = [json.dumps(about) + "\n"]
        self._finished: dict[str, Any] = {}
        if self._file.is_file():
            lines = [line for line in read_text(self._file).splitlines(keepends=True) if line.endswith("\n")] or lines
            try:
                begun, *finished = map(json.loads, lines)
                self._finished = dict(finished)
            except ValueError:
                raise UsageError(f"{str(self._file)!r} is damaged; name a new folder") from None
            if other := [name for name in {**about, **begun} if begun.get(name) != about.get(name)]:
                raise UsageError(
                    f"{str(out)!r} has a recording that was stopped, of other {' and '.join(other)}; repeat its command to go "
                    "on with it, or name a new folder"
                )
        elif out.exists():
            raise UsageError(f"{str(out)!r} exists; name a new folder")
        (out / SCREENS).mkdir(parents=True, exist_ok=True)
        self._write(self._file, "".join(lines).encode())  # without a line that the kill tore
        self._on_progress(len(self._finished), self._parts)

    def finished(self, part: str) -> Any | None:
        """The value of a part, if it is finished."""
        return self._finished.get(part)

    def add(self, part: str, value: Any) -> None:
        """Keep the value of a finished part; it is on the disk when this returns."""
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([part, value]) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._finished[part] = None
        self._on_progress(len(self._finished), self._parts)

    def keep(self, screenshot: bytes) -> str:
        """Write a screenshot, unless it is there; its path in the folder."""
        path = f"{SCREENS}/{screen_name(screenshot)}"
        file = path_inside(self.out, path)
        if not file.exists():
            self._write(file, screenshot)
        return path

    def finish(self, files: Mapping[str, str]) -> None:
        """Write the recording's files, by name."""
        for name, text in files.items():
            self._write(self.out / name, text.encode())
        self._file.unlink()

    @staticmethod
    def _write(file: Path, content: bytes) -> None:
        with becoming(file) as partial:
            partial.write_bytes(content)
