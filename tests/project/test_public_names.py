"""``import guieval``: every public name is the one that type checkers see."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import guieval


def declared() -> dict[str, str]:
    """The names that the package imports for type checkers, each with its module."""
    block, _ = [node for node in ast.parse(Path(guieval.__file__).read_text("utf-8")).body if isinstance(node, ast.If)]
    return {alias.name: node.module or "" for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def test_the_public_names_are_those_declared_for_type_checkers() -> None:
    assert declared().keys() == set(guieval.__all__) == set(dir(guieval))


def test_each_name_is_that_of_its_module() -> None:
    for name, module in declared().items():
        assert getattr(guieval, name) is getattr(import_module(module), name), name
