"""Reads a checkpoint's ``options`` (YAML) into a family's own pydantic model, with errors a user can act on."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.errors import UsageError, nearest
from guieval.models import ModelConfig


class Options(BaseModel):
    """Base of every family's options, and all of them where a family has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ImageLimits(Options):
    """Options of families that resize screenshots: limits in pixels of the image the model sees."""

    min_pixels: int | None = Field(None, ge=1, description="smaller screenshots are enlarged to this many pixels")
    max_pixels: int | None = Field(None, ge=1, description="larger screenshots are shrunk to this many pixels")


Kind = TypeVar("Kind", bound=Options)


def read_options(kind: type[Kind], config: ModelConfig) -> Kind:
    """``config.options`` as ``kind``; :class:`UsageError` naming the option, its value and what was expected."""
    try:
        return kind.model_validate(config.options)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = kind.model_fields
            message = f"has no option {name!r}{nearest(name, known)}; known: {', '.join(known) or 'none'}"
        else:
            message = f"cannot use {first['input']!r} as option {name!r}: {first['msg'].lower()}"
        raise UsageError(f"model {config.name!r} {message}") from None
