"""Writers of the published benchmarks' native formats, from episodes on the simulated phone: one module per format."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def written_by(function: str) -> Any:
    """The ``write_example`` of a loader that calls ``module.function`` of this package, imported when it is needed."""

    def write_example(kind: type, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        module, name = function.split(".")
        getattr(import_module(f".{module}", __package__), name)(folder, episodes=episodes, seed=seed)

    return classmethod(write_example)
