"""The images of a report: the screenshots as a model is sent them, as hard links if possible, or small copies.

File names are hashes of path, size and time, so that a second report reuses existing images, and a data set's file names, which
may contain anything, do not appear in the report.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from guieval.data.screenshots import read_picture, read_screenshot, resolve
from guieval.errors import ScreenshotError
from guieval.steps import StepTaskModel

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST_SIDE = 1600
THUMB = (240, 180)
QUALITY, THUMB_QUALITY = 82, 70
FULL_FOLDER, THUMB_FOLDER = "images", "thumbs"
_ENDINGS = {"png": "png", "jpeg": "jpg", "webp": "webp"}


@dataclass(frozen=True)
class Picture:
    """A step's image: the ``name`` of its file, or ``""`` with the reason; ``thumb`` is its thumbnail's, if there is one.

    ``clean`` is the image of a perturbed step without what was drawn.
    """

    name: str
    why: str = ""
    thumb: str = ""
    clean: str = ""


def clean_twin(task: StepTaskModel) -> StepTaskModel | None:
    """A perturbed step with the screenshot that was not drawn on; ``None`` of any other step."""
    how = task.perturbation
    if how is None or how.clean == task.screenshot:
        return None
    return task.model_copy(update={"screenshot": how.clean, "screenshot_size": how.clean_size, "perturbation": None})


class Pictures:
    """Puts the images of a report into ``out`` from screenshots in ``root``; without a root there are none.

    They are what a model is sent: the original files, linked or else copied, or PNG files. ``small`` makes JPEGs with a longest
    side of at most 1600 pixels instead, and thumbnails. A screenshot that is missing, damaged or not of its
    recorded size is left out with the reason.
    """

    def __init__(
        self, root: Path | None, out: Path, absent: str = "the report was written without images", *, small: bool = False
    ) -> None:
        self._small = small
        self.root = root
        self._out = out
        self._absent = absent
        self._known: dict[tuple[str, tuple[int, int]], Picture] = {}

    def of(self, tasks: Sequence[StepTaskModel]) -> list[Picture]:
        """The images of the steps; missing ones are made, several at a time."""
        root = self.root
        if root is None:
            return [Picture("", self._absent) for _ in tasks]
        fresh = {_wanted(task): task for task in tasks if _wanted(task) not in self._known}
        if fresh:
            for folder in (FULL_FOLDER, THUMB_FOLDER) if self._small else (FULL_FOLDER,):
                (self._out / folder).mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # Pillow, hashes and checksums release the GIL
                made = pool.map(lambda task: self._make(root, task), fresh.values())
                self._known.update(zip(fresh, made, strict=True))
        return [self._known[_wanted(task)] for task in tasks]

    @property
    def made(self) -> int:
        """The number of images in the report."""
        return len({picture.name for picture in self._known.values() if picture.name})

    @property
    def lacking(self) -> list[str]:
        """The reasons for missing images, one per screenshot."""
        return [picture.why for picture in self._known.values() if not picture.name]

    def _make(self, root: Path, task: StepTaskModel) -> Picture:
        from PIL.Image import Resampling

        clean = "" if (twin := clean_twin(task)) is None else self._make(root, twin).name
        try:
            path = resolve(root, task.screenshot)
            state = path.stat()
            identity = f"{task.screenshot}\0{state.st_size}\0{state.st_mtime_ns}\0{task.screenshot_size}"
            name = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            if self._small:
                full, thumb = (self._out / folder / f"{name}.jpg" for folder in (FULL_FOLDER, THUMB_FOLDER))
                if not (full.is_file() and thumb.is_file()):
                    most = LONGEST_SIDE, LONGEST_SIDE
                    image = read_picture(root, task.screenshot, task.screenshot_size, at_most=most)
                    _save(image, full, QUALITY)
                    image.thumbnail(THUMB, Resampling.BICUBIC)
                    _save(image, thumb, THUMB_QUALITY)
                return Picture(full.name, thumb=thumb.name, clean=clean)
            original = read_screenshot(root, task.screenshot, task.screenshot_size)
            full = self._out / FULL_FOLDER / f"{name}.{_ENDINGS[original.format]}"
            link(original.path, full, lambda: original.data)
            return Picture(full.name, clean=clean)
        except ScreenshotError as error:
            return Picture("", str(error))
        except (OSError, SyntaxError, ValueError) as error:
            return Picture("", f"the screenshot cannot be shown: {error}")


def _wanted(task: StepTaskModel) -> tuple[str, tuple[int, int]]:
    return task.screenshot, task.screenshot_size


def link(original: Path | None, target: Path, data: Callable[[], bytes]) -> None:
    """The file itself under another name, or its data: on another file system, or if its owner forbids links."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if original is None:
            raise OSError
        os.link(original, target)
    except OSError:
        _written(target, lambda temporary: temporary.write_bytes(data()))


def _save(image: Image, path: Path, quality: int) -> None:
    _written(path, lambda temporary: image.save(temporary, format="JPEG", quality=quality))


def _written(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically, so that an interrupted report can be continued."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
