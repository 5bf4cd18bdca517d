"""Names that the shell completes: checkpoints, benchmarks and what else is listed by a command of its own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.core import TyperCommand, TyperGroup

LISTED_BY = {"models": "model", "benchmarks": "bench", "protocols": "protocol", "sample-sets": "sample_set"}
"""Commands that list names of one kind, and how options that take such a name are called."""

_NAMES = {
    "model": ("guieval.registry", "list_models"),
    "adapter": ("guieval.registry", "list_adapters"),
    "bench": ("guieval.registry", "list_benchmarks"),
    "protocol": ("guieval.evaluation", "list_protocols"),
    "sample_set": ("guieval.data.sample_sets", "list_sample_sets"),
    "mode": ("guieval.history.modes", "MODES"),
}
"""What lists the names that an option or argument takes, a function or a mapping; imported only to complete one."""


def complete_names(command: TyperCommand | TyperGroup) -> None:
    """Let the shell complete the names that a command's options and arguments take."""
    for parameter in command.params:
        name = LISTED_BY.get(command.name or "") if parameter.name == "name" else parameter.name
        if name in _NAMES:
            # Typer sets the same attribute for its own `autocompletion`, which every option would have to repeat
            parameter._custom_shell_complete = _beginning(*_NAMES[name])


def _beginning(module: str, attribute: str) -> Callable[[Any, Any, str], list[str]]:
    def names(context: Any, parameter: Any, incomplete: str) -> list[str]:
        listed = getattr(import_module(module), attribute)
        return [name for name in (listed() if callable(listed) else listed) if name.startswith(incomplete)]

    return names
