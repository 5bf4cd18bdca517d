"""Presets for rollouts: the number of episodes that a published study drew from each data set."""

from __future__ import annotations

from functools import cache

import yaml

from guieval.actions import Frozen
from guieval.data.files import read_text
from guieval.data.shipped import config_folder
from guieval.errors import UsageError, nearest


class Subset(Frozen):
    """A study's composition: ``episodes`` drawn from each data set, and the number of their ``steps``."""

    name: str
    source: str
    episodes: dict[str, int]
    steps: dict[str, int]

    def limit(self, dataset: str) -> int:
        """The number of episodes of a data set; :class:`UsageError` for one that the study did not use."""
        if dataset not in self.episodes:
            known = ", ".join(self.episodes)
            raise UsageError(
                f"{self.source} has no data set {dataset!r}{nearest(dataset, self.episodes)}; it has {known}. "
                "For another one use --limit N"
            )
        return self.episodes[dataset]


def list_subsets() -> list[str]:
    """The names of the shipped presets."""
    return sorted(path.stem for path in (config_folder() / "subsets").glob("*.yaml"))


@cache
def get_subset(name: str) -> Subset:
    """The shipped preset ``name``; :class:`UsageError` with the nearest name for an unknown one."""
    if name not in (known := list_subsets()):
        raise UsageError(f"there is no preset {name!r}{nearest(name, known)}; known: {', '.join(known)}")
    return Subset.model_validate(yaml.safe_load(read_text(config_folder() / "subsets" / f"{name}.yaml")))
