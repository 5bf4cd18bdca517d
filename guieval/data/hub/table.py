"""The table of what is downloaded for each benchmark, ``downloads.yaml`` next to the loaders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml

Text = Annotated[str, Field(min_length=1)]


class Download(BaseModel):
    """The files of a data set on the hub that a loader reads."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Text
    files: Annotated[tuple[Text, ...], Field(min_length=1)]
    unpack: tuple[Text, ...] = ()
    gigabytes: Annotated[float, Field(gt=0)] | None = None
    then: str = ""


def read_downloads(file: Path) -> Mapping[str, Download]:
    """Where each benchmark's files are on the Hub, by the benchmark's name. Raises pydantic's error for another form."""
    return TypeAdapter(dict[str, Download]).validate_python(read_yaml(read_text(file)))
