"""A screen that was sent to an engine, and what came back: what all parts of the audit look at."""

from __future__ import annotations

from dataclasses import dataclass

from guieval.frames import Size
from guieval.steps import Sample, StepTaskModel


@dataclass(frozen=True)
class SentScreen:
    """A screen as it was sent, and its answers.

    ``size`` is the (width, height) in pixels of the sent picture, ``request`` a digest of its pixels, the prompt and the
    sampling parameters. ``with_common`` is the answer to the same prompt with a picture of ``common`` (width, height) in its
    place, ``again`` that to the same request, if it was sent twice.
    """

    task: StepTaskModel
    size: Size
    common: Size
    request: str
    sample: Sample
    with_common: Sample
    again: Sample | None = None

    @property
    def orientation(self) -> int:
        """The EXIF orientation of the sent picture, 1 if it has none."""
        return orientation_of(self.task)

    @property
    def hit(self) -> bool:
        return self.sample.outcome.verdict == "right"

    @property
    def beyond_common(self) -> int | None:
        """How many more prompt tokens the picture takes than the common one; ``None`` if the server does not state them."""
        both = (_prompt_tokens(self.sample), _prompt_tokens(self.with_common))
        return None if both[0] is None or both[1] is None else both[0] - both[1]


def orientation_of(task: StepTaskModel) -> int:
    """The EXIF orientation in which a step's file has its picture."""
    orientation: int = task.extras.get("orientation", 1)
    return orientation


def _prompt_tokens(sample: Sample) -> int | None:
    return None if sample.usage is None else sample.usage.prompt_tokens
