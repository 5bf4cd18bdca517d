"""What is installed with guieval: its version, and the files of ``configs/``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"


def config_folder() -> Path:
    """The folder of the files that come with guieval: checkpoints, settings, sample sets, published results, prices."""
    return Path(next(iter(import_module("guieval.configs").__path__)))
