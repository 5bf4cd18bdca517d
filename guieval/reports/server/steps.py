"""The step viewer's files, made when the page asks for them: its index once, its chunks and images each time.

A step's image is named by the step's number, so that nothing of the data folder is in an address.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

from guieval.data.screenshots import header, read_picture, read_screenshot, resolve
from guieval.errors import ScreenshotError, UsageError
from guieval.reports.pages.kit import page
from guieval.reports.viewer.content import SEARCH_CHUNK, Chunk, RunSteps, searched
from guieval.reports.viewer.folder import numbered, script_text
from guieval.reports.viewer.pictures import FULL_FOLDER, THUMB, THUMB_FOLDER, THUMB_QUALITY, Picture, clean_twin
from guieval.reports.viewer.reading import protocols_to_show, shown_run
from guieval.reports.viewer.sources import PlannedTasks, open_data, prompter
from guieval.reports.viewer.writing import TEMPLATE
from guieval.steps import StepTaskModel

CHUNK = 50
KEPT_THUMBNAILS = 512
CLEAN = 1 << 60
"""Added to the number of a perturbed step: its screenshot without what was drawn."""
KINDS = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}


class StepPages:
    """The steps of some runs, the first of which decides which ones; ``protocols`` judge them, the run's own by default."""

    def __init__(
        self, directories: Sequence[Path], data: Path | None, adapter: str | None, protocols: Sequence[str] | None = None
    ) -> None:
        runs = [shown_run(directory) for directory in directories]
        try:
            benchmark, self._absent = open_data(runs[0].manifest, data)
        except UsageError as error:  # --data is one folder, and the runs may be of several benchmarks
            benchmark, absent = open_data(runs[0].manifest, None)
            self._absent = absent and str(error)
        prompters = [prompter(run.manifest, adapter) for run in runs]
        self._root = None if benchmark is None else benchmark.root
        self.content = RunSteps(runs, protocols_to_show(runs[0], protocols or ()), PlannedTasks(benchmark), CHUNK, prompters)
        self._thumbnails: OrderedDict[int, bytes] = OrderedDict()
        self._guard = Lock()

    folders = (FULL_FOLDER, THUMB_FOLDER)

    def page(self) -> str:
        """The page, whose script asks for the rest."""
        return page(TEMPLATE, title=self.content.title, served=True)

    def script(self, name: str) -> str:
        """A data file of the page; :class:`UsageError` for a name that is none."""
        if name == "index.js":
            values = {**self._index, **self.content.head(), "writable": True}
            return script_text("index", 0, json.dumps(values, separators=(",", ":"), allow_nan=False))
        part = name.partition("-")[0]
        size = {"steps": CHUNK, "text": SEARCH_CHUNK}.get(part, 1)
        number = numbered(name, ("steps", "text"), len(self.content), size)
        first, last = number * size, (number + 1) * size
        texts = [] if part == "steps" else [searched(row) for row in self.content.rows(first, last)]
        text = json.dumps(texts or self._steps(first, last), separators=(",", ":"), allow_nan=False)
        return script_text("text" if texts else "chunk", number, text)

    def image(self, name: str, *, small: bool = False) -> tuple[bytes, str]:
        """The screenshot of a step, or a thumbnail, with its type; :class:`UsageError` with the reason if there is none."""
        number = int(name, 16) if len(name) == 16 and set(name) <= set("0123456789abcdef") else -1
        clean, number = number >= CLEAN, number % CLEAN if number >= CLEAN else number
        if small and (kept := self._thumbnails.get(number)) is not None:
            return kept, "image/jpeg"
        task = self.content.task(number)
        if clean and task is not None:
            task = clean_twin(task)
        if task is None or self._root is None:
            raise UsageError("there is no screenshot of this step")
        try:
            if not small:
                screenshot = read_screenshot(self._root, task.screenshot, task.screenshot_size)
                return screenshot.data, KINDS[screenshot.format]
            image = read_picture(self._root, task.screenshot, task.screenshot_size, at_most=THUMB)
        except ScreenshotError as error:
            raise UsageError(str(error)) from None
        stream = BytesIO()
        image.save(stream, format="JPEG", quality=THUMB_QUALITY)
        made = stream.getvalue()
        with self._guard:
            self._thumbnails[number] = made
            while len(self._thumbnails) > KEPT_THUMBNAILS:
                self._thumbnails.popitem(last=False)
        return made, "image/jpeg"

    @cached_property
    def _index(self) -> dict[str, Any]:
        return self.content.index()

    def _steps(self, first: int, last: int) -> dict[str, Any]:
        chunk = Chunk(self.content)
        for row in self.content.rows(first, last):
            chunk.add(row)
        return chunk.values([self._picture(first + place, task) for place, task in chunk.tasks.items()])

    def _picture(self, number: int, task: StepTaskModel) -> Picture:
        """The name of a step's image after a look at its header; the page asks for the image when it is seen."""
        if self._root is None:
            return Picture("", self._absent)
        try:
            found = header(resolve(self._root, task.screenshot))
        except (ScreenshotError, ValueError) as error:
            return Picture("", str(error))
        if other := found.other_size(task.screenshot_size):
            return Picture("", f"the screenshot {other}")
        name = f"{number:016x}"
        return Picture(name, thumb=name, clean="" if clean_twin(task) is None else f"{CLEAN + number:016x}")
