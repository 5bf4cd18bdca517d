"""What a list of checkpoints says of their family: its tasks, its year, and how its adapter was proven."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from guieval.models.config import ModelConfig

Task: TypeAlias = Literal["phone", "desktop", "web", "grounding"]
TASKS: tuple[Task, ...] = get_args(Task)
OLD = 2024
"""Families of this year and before are not in the front of a list."""
_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?b)((?:-a\d+(?:\.\d+)?b)?)(?![a-z\d])", re.IGNORECASE)


@dataclass(frozen=True)
class Family:
    """What an adapter states of its family; tests prove ``reader`` and ``recorded``.

    ``year``: of its newest checkpoint. ``tasks``: what its prompts are for. ``reader``: whose reader of responses the adapter
    was compared with on damaged ones, "makers" or another's name; empty if none was. ``recorded``: how many public responses of
    its models are read in tests. ``grounders``: what is in the names of its checkpoints that only ground.
    """

    year: int
    tasks: tuple[Task, ...]
    reader: str = ""
    recorded: int = 0
    grounders: str = ""

    @property
    def proof(self) -> str:
        """How the adapter was proven, in words; a golden prompt belongs to every shipped family."""
        words = ["makers' reader" if self.reader == "makers" else f"{self.reader}'s reader"] if self.reader else []
        return ", ".join([*words, f"{self.recorded} recorded"] if self.recorded else words) or "golden prompt only"


@dataclass(frozen=True)
class KnownModel:
    """A checkpoint in a list. ``size`` is the one in its name or id, e.g. "7b" or "30b-a3b"; ``None`` if they have none."""

    name: str
    family: str
    year: int | None
    tasks: tuple[Task, ...]
    size: str | None
    proof: str
    reader: str
    recorded: int
    hf_id: str | None

    @classmethod
    def of(cls, config: ModelConfig, family: Family | None) -> KnownModel:
        """The checkpoint of a family; ``family`` is ``None`` if its adapter states nothing."""
        found = _SIZE.search(config.name) or _SIZE.search(config.hf_id or "")
        known = family or Family(0, ())
        only_grounds = known.grounders and known.grounders in config.name
        return cls(
            name=config.name,
            family=config.adapter,
            year=known.year or None,
            tasks=("grounding",) if only_grounds else known.tasks,
            size=found and found[0].lower(),
            proof=known.proof if family else "",
            reader=known.reader,
            recorded=known.recorded,
            hf_id=config.hf_id,
        )

    def is_of(self, size: str) -> bool:
        """Whether the checkpoint is of this size, with or without its unit and its active weights: "30b-a3b", "30b" or "30"."""
        asked = size.lower()
        return self.size is not None and asked in (self.size, self.size.split("-")[0], self.size.split("b")[0])
