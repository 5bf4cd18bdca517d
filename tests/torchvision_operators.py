"""Lets torchvision be imported beside a torch for CPUs: its compiled part does not load there, so two operators are missing.

They need only be known by name, for nothing here calls them. Every Python of the environment runs this at its start (a ``.pth``
file names it), so it waits until torchvision is really wanted: importing torch takes seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_kept: list[Any] = []  # a library's definitions go when it is collected


class _BeforeTorchvision(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            _kept.append(library)
        return None


sys.meta_path.insert(0, _BeforeTorchvision())
