"""Editions of a data set: which labels a number is computed against, identified by digests.

Some data sets exist with the same steps and other labels: corrected boxes, refined instructions, other candidate boxes. The
counts agree then, and the numbers do not. A step's label has four digests (:class:`LabelDigest`), and an edition those of all
its steps. Editions whose files are known are in ``configs/editions``, one JSON file a data set; labels of no known edition are
called unknown, with their digest. Points and boxes are compared in pixels of the screenshot, rounded to a thousandth, so that
neither the unit of a file nor the order of a loader's arithmetic makes another edition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from hashlib import blake2b, sha256
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from guieval.actions import Action, Boxes, Frozen
from guieval.data.files import exists
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.frames import Size
from guieval.steps import StepKey, StepTaskModel

_MARK = 8
"""Hexadecimal digits by which a known edition remembers the label of a step."""
_TARGETS_IN_EXTRAS = ("polygon", "unsupported_boxes", "drag_end_boxes")


class LabelDigest(NamedTuple):
    """The label of a step as four numbers of 64 bits, equal for equal content.

    ``instructions``: goal or query, and the step's own instruction; ``references``: the accepted actions and text patterns;
    ``targets`` and ``elements``: their boxes, those of a target in ``extras`` among them.
    """

    instructions: int
    references: int
    targets: int
    elements: int

    @classmethod
    def of(cls, task: StepTaskModel) -> Self:
        size, extras = task.screenshot_size, task.extras
        actions = [_in_pixels(action, size) for action in (task.action, *task.alternatives)]
        shapes = {name: extras[name] for name in _TARGETS_IN_EXTRAS if name in extras}
        return cls(
            _number(_json([task.instruction, task.low_level_instruction])),
            _number(_json([actions, extras.get("text_patterns")])),
            _number(_pixels(task.targets, size) + (_json(shapes) if shapes else b"")),
            _number(_pixels(task.elements, size)),
        )


PARTS = LabelDigest._fields


class Edition(BaseModel):
    """The labels of some steps of a data set: a digest of 12 hexadecimal digits for each part of a label.

    ``names`` are the known editions that all these labels are of: several if these steps have the same label in each, none
    if the labels are of no known edition.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    dataset: str
    names: tuple[str, ...] = ()
    steps: int
    instructions: str
    references: str
    targets: str
    elements: str

    @classmethod
    def of(cls, dataset: str, labels: Mapping[StepKey, LabelDigest]) -> Self:
        """The edition of these steps, recognised if it is known."""
        ordered = sorted((_name(key), digest) for key, digest in labels.items())
        parts = {
            part: sha256("".join(f"{name} {digest[place]}\n" for name, digest in ordered).encode(errors="replace")).hexdigest()[
                :12
            ]
            for place, part in enumerate(PARTS)
        }
        marks = [_mark(name, digest) for name, digest in ordered]
        names = tuple(known.name for known in known_editions(dataset) if known.marked.issuperset(marks)) if marks else ()
        return cls(dataset=dataset, names=names, steps=len(ordered), **parts)

    @property
    def digest(self) -> str:
        """One SHA-256 of the four parts, which identifies the edition."""
        return sha256(" ".join(getattr(self, part) for part in PARTS).encode()).hexdigest()[:12]

    @property
    def line(self) -> str:
        """The edition in words, next to a number; "" for a data set of which only one edition is known to exist."""
        return "" if _file(self.dataset) is None else str(self)

    def __str__(self) -> str:
        if not self.names:
            return f"an unknown edition of {self.dataset} (digest {self.digest})"
        words = " or ".join(map(repr, self.names))
        return f"edition {words} of {self.dataset}" + " (the same labels at these steps)" * (len(self.names) > 1)


class KnownEdition(Frozen):
    """An edition whose files were read: where they are from, its four digests, and a mark for the label of each step."""

    name: str
    source: str = Field(description="the files that were read")
    note: str = ""
    steps: int = Field(ge=1)
    instructions: str
    references: str
    targets: str
    elements: str
    marks: str = Field(description="eight hexadecimal digits for each step, sorted")

    @classmethod
    def of(cls, name: str, source: str, labels: Mapping[StepKey, LabelDigest], note: str = "") -> Self:
        """The edition of these steps, to be written into ``configs/editions``."""
        digests = Edition.of("", labels).model_dump(include={"steps", *PARTS})
        marks = "".join(sorted(_mark(_name(key), digest) for key, digest in labels.items()))
        return cls(name=name, source=source, note=note, marks=marks, **digests)

    @cached_property
    def marked(self) -> frozenset[str]:
        return frozenset(self.marks[start : start + _MARK] for start in range(0, len(self.marks), _MARK))

    def unlike(self, labels: Mapping[StepKey, LabelDigest]) -> list[StepKey]:
        """Keys of the steps, in the given order, whose label's digest is not among those that the edition lists."""
        return [key for key, digest in labels.items() if _mark(_name(key), digest) not in self.marked]


class _EditionFile(Frozen):
    """A file of ``configs/editions``: the editions of one data set."""

    dataset: str
    note: str = Field("", description="which editions exist whose files were not read")
    editions: tuple[KnownEdition, ...] = ()


def known_editions(dataset: str) -> tuple[KnownEdition, ...]:
    """The known editions of a data set, the earliest first."""
    file = _file(dataset)
    return () if file is None else file.editions


@cache
def _file(dataset: str) -> _EditionFile | None:
    path = config_folder() / "editions" / f"{dataset}.json"
    return read_record(path, _EditionFile, "the file of editions") if exists(path) else None


def labels_of(steps: Iterable[StepTaskModel]) -> dict[StepKey, LabelDigest]:
    """The digests of the labels of some steps."""
    return {step.key: LabelDigest.of(step) for step in steps}


def _name(key: StepKey) -> str:
    """A step's name without its benchmark: two benchmarks may be editions of one data set."""
    return f"{key.subset}/{key.episode_id}#{key.step_index}"


def _mark(name: str, digest: LabelDigest) -> str:
    return blake2b(f"{name} {digest}".encode(errors="replace"), digest_size=_MARK // 2).hexdigest()


def _number(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest())


_ENCODER = json.JSONEncoder(sort_keys=True, default=repr)


def _json(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def _pixels(boxes: Boxes, size: Size) -> bytes:
    if not len(boxes):
        return b""
    width, height = size
    with np.errstate(over="ignore"):  # a box may be as far off the screen as it likes
        pixels = boxes.array * (width, height, width, height)
        pixels /= 1000.0
        pixels = pixels.round(3)
    pixels += 0.0  # without a minus before a zero
    return pixels.tobytes()


def _in_pixels(action: Action, size: Size) -> dict[str, Any]:
    values: dict[str, Any] = action.model_dump(mode="json")
    if (point := getattr(action, "point", None)) is not None:
        values["point"] = [round(at * side / 1000.0, 3) + 0.0 for at, side in zip(point, size, strict=True)]
    return values
