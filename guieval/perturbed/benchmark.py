"""A benchmark with something drawn into its screenshots; everything else is the benchmark's own.

Pictures are drawn when an episode is loaded and kept in the user's cache, each with the step's record next to it, so nothing
is written into a data folder and no picture is drawn twice. A step on which nothing can be drawn keeps its screenshot and says
why.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from guieval.actions import Boxes
from guieval.data.benchmark import CLASS_ATTRIBUTES, ABCBenchmark, EpisodeRef
from guieval.data.files import read_bytes
from guieval.data.screenshots import png, read_picture, resolve
from guieval.errors import DataError, ScreenshotError, UsageError
from guieval.frames import Frame
from guieval.perturbed.kinds import VERSION, kind_of_variant
from guieval.perturbed.scenes import DrawingSettings, draw
from guieval.registry import default_data_folder
from guieval.steps import Episode, Perturbation, StepTaskModel


class Perturbed(ABCBenchmark):
    """A benchmark of recorded steps with a perturbation; ``frame`` is that of the responses to a step."""

    def __init__(self, benchmark: ABCBenchmark, drawing: DrawingSettings, frame: Callable[[StepTaskModel], Frame]) -> None:
        super().__init__(default_data_folder("perturbed"))
        self._inner, self._drawing, self._frame = benchmark, drawing, frame
        vars(self).update({name: getattr(benchmark, name) for name in CLASS_ATTRIBUTES})
        self.skip_damaged, self.skipped = benchmark.skip_damaged, benchmark.skipped
        self.perturbation = _described(drawing)
        self._framed = kind_of_variant(drawing.variant)[0].framed

    @classmethod
    def of(cls, benchmark: ABCBenchmark, settings: object, frame: Callable[[StepTaskModel], Frame]) -> Self:
        """With the settings ``perturb`` and ``perturb_...``; raises :class:`UsageError` for an unknown kind, or for several."""
        name, strength, placement, seed = (
            getattr(settings, f"perturb{each}") for each in ("", "_strength", "_placement", "_seed")
        )
        if "," in name:
            raise UsageError(f"perturb is {name!r}, and a run has one kind of perturbation: only `guieval run` takes several")
        kind_of_variant(name)
        return cls(benchmark, DrawingSettings(name, strength, placement, seed), frame)

    def skipping_damaged(self) -> Perturbed:
        return Perturbed(self._inner.skipping_damaged(), self._drawing, self._frame)

    def index(self) -> Sequence[EpisodeRef]:
        return self._inner.index()

    def load(self, ref: EpisodeRef) -> Episode:
        """The episode of ``ref``; draws its missing pictures. :class:`DataError` for a screenshot that cannot be read."""
        return Episode(steps=tuple(map(self._drawn, self._inner.load(ref).steps)))

    def _drawn(self, task: StepTaskModel) -> StepTaskModel:
        try:
            source = resolve(self._inner.root, task.screenshot)
            state, frame = source.stat(), self._frame(task) if self._framed else None
            known = [task.model_dump_json(), *self.perturbation.values(), _pillow(), str(source)]
            known += [] if frame is None else [frame.name, str(frame.extent(task.screenshot_size))]
            stem = _digest(*known, str(state.st_size), str(state.st_mtime_ns))
            record = self.root / stem[:2] / f"{stem}.json"
            try:
                return StepTaskModel.model_validate_json(read_bytes(record))
            except OSError:
                pass
            except ValidationError:  # of a version whose records had other fields
                record.unlink(missing_ok=True)
            image = read_picture(self._inner.root, task.screenshot, task.screenshot_size)
        except (ScreenshotError, UsageError) as error:
            raise DataError(str(error)) from None
        clean = f"clean/{_digest(str(source), str(state.st_size), str(state.st_mtime_ns))}{source.suffix}"
        _write(self.root / clean, read_bytes(source))
        scene = draw(task, image, self._drawing, frame)
        shown = clean
        if scene.image is not None:
            shown = f"{stem[:2]}/{stem}.png"
            _write(self.root / shown, png(scene.image))
        size = image.size if scene.image is None else scene.image.size
        boxes = {name: Boxes([box.within(size) for box in getattr(scene, name)]) for name in ("lure", "close")}
        asked = {"variant": self._drawing.variant, "skipped": scene.skipped, "obeys": scene.obeys}
        own = Perturbation(**asked, clean=clean, clean_size=image.size, **boxes)
        drawn = task.model_copy(update={**scene.changes, "screenshot": shown, "perturbation": own})
        _write(record, drawn.model_dump_json().encode())
        return drawn


def _described(drawing: DrawingSettings) -> Mapping[str, str]:
    """How it is drawn, for a manifest: the variant first, then what is not as usual, and the version."""
    given = {"strength": f"{drawing.strength:g}", "placement": drawing.placement, "seed": str(drawing.seed)}
    return {"variant": drawing.variant, **given, "version": VERSION}


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _pillow() -> str:
    from PIL import __version__

    return __version__


def _write(path: Path, data: bytes) -> None:
    """Write a file that no reader can see half-written, unless it is there."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(name, path)
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror}") from None
