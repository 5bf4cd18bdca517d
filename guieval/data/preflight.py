"""Checks before a run whether the screenshots of the chosen steps exist and look like complete images.

Reading all screenshots would take minutes, so only the first and last bytes of a file are read; a suspicious file is then
read as a run reads it, to get the error message, and so is one with metadata that may turn it. Damage inside a file is
detected when a request needs it.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.data.benchmark import EpisodeRef, Listing
from guieval.data.files import open_descriptor
from guieval.data.names import parts_inside
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, ScreenshotError, UsageError
from guieval.steps import EpisodeKey, Plan, StepTaskModel

SECONDS = 10.0
"""Time limit while no problem is found, so that the check does not delay a large run much."""
SHOWN = 3
"""Examples in the error."""
_BATCH = 32
_THREADS = 16
_END = 4096
_MAY_TURN = re.compile(rb"Exif\0\0|EXIF|eXIf|Raw profile type exif|adobe[.:]")
"""What the EXIF data or XMP of a JPEG, a WebP and a PNG begins with."""


@dataclass
class Inspection:
    """The number of checked steps, of those that cannot be asked, and the first reason for every episode with such steps.

    Their screenshot is ``missing`` or ``damaged``, or the episode is ``refused`` by its loader, e.g. for its labels.
    """

    steps: int = 0
    missing: int = 0
    damaged: int = 0
    refused: dict[EpisodeKey, int] = field(default_factory=dict)
    reasons: dict[EpisodeKey, str] = field(default_factory=dict)

    @property
    def unusable(self) -> int:
        """The steps that cannot be asked."""
        return self.missing + self.damaged + sum(self.refused.values())

    def __str__(self) -> str:
        counts = {"missing": self.missing, "damaged": self.damaged}
        problems = ", ".join(f"{what}: {count:,}" for what, count in counts.items() if count)
        said = {
            "cannot be loaded": (sum(self.refused.values()), [self.reasons[key] for key in self.refused]),
            f"have no usable screenshot ({problems})": (
                self.missing + self.damaged,
                [reason for key, reason in self.reasons.items() if key not in self.refused],
            ),
        }
        return "; ".join(
            f"{count:,} of {self.steps:,} chosen steps {what}: {'; '.join(list(dict.fromkeys(reasons))[:SHOWN])}"
            for what, (count, reasons) in said.items()
            if count
        )

    def refusal(self, benchmark: Listing[Any]) -> UsageError:
        """The error that ends a run before its first request."""
        episodes = "the 1 episode" if len(self.reasons) == 1 else f"the {len(self.reasons):,} episodes"
        leave_out = f", or leave out {episodes} with --skip-damaged" if self.unusable < self.steps else ""
        examine = f"guieval doctor {benchmark.name} --data {shlex.quote(str(benchmark.root))}"
        mend = "correct the data" if self.refused else "complete the folder"
        return UsageError(f"{self}; {mend} (`{examine}` examines all of it){leave_out}")


def inspect(benchmark: Listing[Any], refs: Sequence[EpisodeRef], plan: Plan, *, seconds: float | None = None) -> Inspection:
    """Check the screenshots of the planned steps.

    While no problem is found, the check ends after ``seconds`` (``None``: it checks all); episodes then have a random order.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    order = list(refs)
    if deadline is not None:
        random.Random(0).shuffle(order)
    inspection = Inspection()
    known: dict[tuple[str, tuple[int, int]], tuple[bool, str] | None] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="preflight") as threads:
        for start in range(0, len(order), _BATCH):
            if deadline is not None and not inspection.reasons and time.monotonic() > deadline:
                break
            batch = order[start : start + _BATCH]
            tasks = [task for ref in batch for task in _planned_steps(benchmark, ref, plan[ref.key], inspection)]
            new = list({(task.screenshot, task.screenshot_size) for task in tasks} - known.keys())
            parts = [new[place::_THREADS] for place in range(min(_THREADS, len(new)))]
            for part in threads.map(lambda part: {image: _problem(benchmark.root, *image) for image in part}, parts):
                known.update(part)
            for task in tasks:
                problem = known[task.screenshot, task.screenshot_size]
                inspection.steps += 1
                if problem is not None:
                    missing, reason = problem
                    inspection.missing += missing
                    inspection.damaged += not missing
                    inspection.reasons.setdefault(task.episode_key, reason)
    inspection.reasons = {ref.key: inspection.reasons[ref.key] for ref in refs if ref.key in inspection.reasons}
    return inspection


def _planned_steps(
    benchmark: Listing[Any], ref: EpisodeRef, planned: Sequence[int], inspection: Inspection
) -> Iterator[StepTaskModel]:
    """The planned steps of an episode; if it cannot be loaded, none, and ``inspection`` records that."""
    try:
        steps = benchmark.load(ref).steps
    except DataError as error:
        inspection.steps += len(planned)
        inspection.refused[ref.key] = len(planned)
        inspection.reasons[ref.key] = str(error)
    else:
        yield from (steps[index] for index in planned if index < len(steps))


def _problem(root: Path, screenshot: str, size: tuple[int, int]) -> tuple[bool, str] | None:
    """Whether an unusable screenshot is missing, and why it cannot be used; ``None`` if no problem shows."""
    if _looks_whole(root, screenshot, size):
        return None
    try:
        read_screenshot(root, screenshot, size)
    except ScreenshotError as error:
        return not os.path.exists(root / screenshot), str(error)
    return None


def _looks_whole(root: Path, screenshot: str, size: tuple[int, int]) -> bool:
    """Whether a file begins and ends like an image file that nothing turns, and a PNG has the right size.

    Takes about 20 microseconds.
    """
    try:
        file = open_descriptor(root.joinpath(*parts_inside(screenshot)), os.O_RDONLY)
    except (OSError, ValueError):
        return False
    try:
        length = os.fstat(file).st_size
        first = os.pread(file, _END, 0)
        last = os.pread(file, _END, max(0, length - _END))
    except OSError:
        return False
    finally:
        os.close(file)
    if _MAY_TURN.search(first) or _MAY_TURN.search(last):
        return False
    if first.startswith(b"\x89PNG\r\n\x1a\n"):
        shape = (int.from_bytes(first[16:20], "big"), int.from_bytes(first[20:24], "big"))
        return shape == tuple(size) and b"IEND" in last
    if first.startswith(b"\xff\xd8\xff"):
        return b"\xff\xd9" in last
    return first[:4] == b"RIFF" and first[8:12] == b"WEBP" and int.from_bytes(first[4:8], "little") + 8 <= length
