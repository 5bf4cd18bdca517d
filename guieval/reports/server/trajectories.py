"""The page of an online run and its files, made when the page asks for them."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval.data.files import read_bytes
from guieval.data.screenshots import resolve
from guieval.errors import ScreenshotError, UsageError
from guieval.online.trajectory import SCREENS
from guieval.reports.pages.kit import page
from guieval.reports.trajectories.reading import read_online
from guieval.reports.trajectories.writing import TEMPLATE, Screens, page_values, row_values, task_values
from guieval.reports.viewer.folder import numbered, script_text
from guieval.steps import EpisodeKey


class TrajectoryPages:
    """The trajectories of an online run."""

    folders = (SCREENS,)

    def __init__(self, directory: Path) -> None:
        self.online = read_online(directory)
        self._screens = Screens(directory)

    def page(self) -> str:
        return page(TEMPLATE, served=True, **page_values(self.online, [row for row, _, _ in self._rows]))

    def script(self, name: str) -> str:
        """A trajectory's data file; :class:`UsageError` for a name that is none."""
        number = numbered(name, ("task",), len(self._rows))
        row, key, repetition = self._rows[number]
        values = task_values(self.online.of(key)[repetition], row, self._screens)
        return script_text("task", number, json.dumps(values, separators=(",", ":"), allow_nan=False))

    def image(self, name: str, *, small: bool = False) -> tuple[bytes, str]:
        """A screenshot of the run by its name, whole, with its type; :class:`UsageError` if there is none."""
        found = self._screens.shown(f"{SCREENS}/{name}")
        if found is None or "name" not in found:
            raise UsageError("there is no such screenshot")
        try:
            data = read_bytes(resolve(self.online.run.directory / SCREENS, name))
        except (ScreenshotError, OSError) as error:
            raise UsageError(f"the screenshot cannot be read: {error}") from None
        return data, "image/png" if name.endswith(".png") else "image/jpeg"

    @cached_property
    def _rows(self) -> list[tuple[dict[str, Any], EpisodeKey, int]]:
        rows = []
        for key in self.online.run.plan:
            repetitions = self.online.of(key)
            rows += [(row_values(each, len(repetitions) > 1), key, number) for number, each in enumerate(repetitions)]
        return rows
