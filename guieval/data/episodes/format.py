"""The records of our own episode format, ``guieval-episodes-1``: a line of ``episodes.jsonl``, and ``prepared.json``.

``docs/episodes.md`` describes the format. ``guieval data prepare`` also writes ``prepared.json``, which names the benchmark and
the release that a folder was made from.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import to_json

from guieval.data.patterns import pattern_problem
from guieval.data.user_files import read_record
from guieval.errors import DataError, UsageError, first_problem
from guieval.steps import Setting

FORMAT = "guieval-episodes-1"
EPISODES, PACKED, PREPARED, INDEX = "episodes.jsonl", "episodes.jsonl.gz", "prepared.json", "episodes.index.json"

EpisodesFrame: TypeAlias = Literal["unified", "pixels", "relative"]
FRAMES = ", ".join(get_args(EpisodesFrame))

Side: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]
"""A width or height in pixels; no image format has larger ones."""


Corners: TypeAlias = tuple[float, float, float, float]
"""x1, y1, x2, y2 in the line's frame."""


class StepLine(BaseModel):
    """One step as a line of the format has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    screenshot: str = Field(description="path of the image, relative to the folder")
    screenshot_size: tuple[Side, Side] | None = Field(
        None, description="[width, height] in pixels; read from the image when not given"
    )
    action: dict[str, Any] = Field(description="reference action, in unified words")
    alternatives: list[dict[str, Any]] = Field([], description="further actions that are as right as the reference")
    targets: list[Corners] = Field([], description="boxes [x1, y1, x2, y2] where a right click may land")
    elements: list[Corners] = Field([], description="boxes [x1, y1, x2, y2] of what else is on the screen")
    instruction: str | None = Field(None, description="takes the place of the episode's instruction at this step")
    low_level_instruction: str | None = Field(None, description="what to do at this step")
    groups: dict[str, str] = Field({}, description="labels to report apart")
    extras: dict[str, Any] = Field({}, description="anything else, kept as it is")

    @field_validator("extras")
    @classmethod
    def _read_by_rules(cls, extras: dict[str, Any]) -> dict[str, Any]:
        patterns = extras.get("text_patterns", [])
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise ValueError(f"text_patterns must be a list of regular expressions, got {patterns!r:.80}")
        if problem := next(filter(None, map(pattern_problem, patterns)), None):
            raise ValueError(problem)
        corners = extras.get("polygon", [[0, 0]] * 3)
        numbers = (
            [side for corner in corners if isinstance(corner, list) for side in corner] if isinstance(corners, list) else []
        )
        if len(numbers) < 6 or len(numbers) != 2 * len(corners) or not all(type(side) in (int, float) for side in numbers):
            raise ValueError(f"polygon must be a list of at least three [x, y] in thousandths, got {corners!r:.80}")
        return extras


class EpisodeLine(BaseModel):
    """One line of ``episodes.jsonl``."""

    model_config = ConfigDict(strict=True, extra="forbid")

    episode_id: str = Field(min_length=1)
    subset: str = ""
    split: str = "test"
    dataset: str | None = Field(None, min_length=1, description="data set by which protocols choose their rules")
    setting: Setting | None = Field(None, description="what the model is given: high, low or grounding")
    instruction: str
    frame: EpisodesFrame | None = Field(None, description="frame of all points and boxes; needed if there are any")
    steps: list[StepLine] = Field(min_length=1)


def parsed_line(where: str, line: bytes) -> EpisodeLine:
    """One line as a record; :class:`DataError` with place and field if it is invalid."""
    try:
        return EpisodeLine.model_validate_json(line)
    except ValidationError as error:
        raise at_first_problem(f"{where}, field ", error, EpisodeLine) from None


def at_first_problem(place: str, error: ValidationError, model: type[BaseModel]) -> DataError:
    """The error for a record that does not validate: its place, its first wrong field, and what is wrong."""
    problem = first_problem(error, model)
    return DataError(f"{f'{place}{problem.field}'.removesuffix(', field ')}: {problem.sentence}")


class Preparation(BaseModel):
    """``prepared.json``: the content of a prepared folder, its release, and whether it is complete."""

    model_config = ConfigDict(extra="ignore")

    format: str
    benchmark: str
    dataset: str
    setting: Setting = "high"
    source: str
    options: dict[str, Any] = Field(default_factory=dict)
    limit: int | None = None
    screenshots: bool = True
    complete: bool = False
    parts: list[str] = Field(default_factory=list, description="parts of the release that were read to their end")
    expected: int | None = Field(None, description="episodes that the release declared when all of it had been read")
    episodes: int = 0
    steps: int = 0
    sha256: str = ""
    skipped: list[str] = Field(default_factory=list, description="damaged records that were left out")
    version: str = ""

    def command(self, out: Path) -> str:
        parts = ["guieval", "data", "prepare", self.benchmark, "--source", self.source, "--out", str(out)]
        for name, value in self.options.items():
            parts += ["--set", f"{name}={value if isinstance(value, str) else to_json(value).decode()}"]
        if self.limit is not None:
            parts += ["--limit", str(self.limit)]
        return shlex.join(parts + ([] if self.screenshots else ["--without-screenshots"]))


def is_prepared(folder: Path) -> bool:
    """Whether ``guieval data prepare`` wrote this folder, to the end or not."""
    return (folder / PREPARED).is_file()


def read_preparation(folder: Path) -> Preparation:
    """The content of ``prepared.json``; :class:`UsageError` when this version cannot read it."""
    file = folder / PREPARED
    preparation = read_record(file, Preparation, "the file")
    if preparation.format != FORMAT:
        raise UsageError(f"{str(file)!r} is of format {preparation.format!r}; this version reads {FORMAT!r}")
    return preparation
