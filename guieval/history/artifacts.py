"""On-policy artifacts: a model's own answers at steps that it got exactly right, for mixed histories.

Source: GUIEvalKit paper, section 5.3 ("we record successful step-level outcomes, yielding a pool of on-policy step artifacts")
and equation 10, which lets an action and its reasoning into a history only where the action equals the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from guieval.actions import Action
from guieval.history.memory import HistoryEntry
from guieval.steps import StepKey, StepTaskModel

Pick: TypeAlias = Literal["first", "seeded"]


class Artifact(NamedTuple):
    """One exact answer: its action (coordinates in [0, 1000]), its texts without tags, and the unchanged reply."""

    action: Action
    thought: str | None
    conclusion: str | None
    raw_response: str | None


@dataclass(frozen=True, eq=False)
class Artifacts:
    """The artifacts of one checkpoint on one benchmark by step, with a fingerprint of them all."""

    directory: Path
    model: str
    benchmark: str
    steps: Mapping[StepKey, Artifact]
    sha256: str

    def entry(self, task: StepTaskModel) -> HistoryEntry | None:
        """The model's own entry for a step, varphi of equation 10; ``None`` if it was never exactly right."""
        artifact = self.steps.get(task.key)
        return None if artifact is None else HistoryEntry(task, *artifact, "model")


def drawn(*parts: object) -> int:
    """64 pseudo-random bits that are a pure function of ``parts``, independent of the order of work."""
    return int.from_bytes(blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def uniform(*parts: object) -> float:
    """:func:`drawn` as a number in [0, 1)."""
    return float(np.ldexp(drawn(*parts) >> 11, -53))
