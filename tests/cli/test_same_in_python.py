"""Python is the command line: each function has the names and the types of its command's arguments and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import guieval
from guieval.cli import place_of
from guieval.running.keywords import RunSettings

FUNCTIONS = ["run", "campaign", "compare", "leaderboard", "plot", "view", "dev audit"]
FUNCTIONS += ["study rollout", "study mix", "study power"]
"""The commands that are functions too, named by the last word."""
ONLY_PRINTING = {"json", "quiet", "dry_run", "pace", "list_references", "progress", "announce"}
"""What says how a command, or a function, shows what it does, and nothing else."""
ELSEWHERE = {"set": ("bench_options", "options")}
"""Options that Python has under other names; of a run, ``set`` is all its settings."""
AS_TEXT = {"seeds", "pair"}
"""Options whose values are numbers in Python, and texts with commas or colons on the command line."""
ONLY_COMMANDS = {"parallel"}
"""Options that start further commands."""
SCALARS = {int, float, bool, Path, str}


def parts(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of; of a literal, those of its values."""
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from ([type(part)] if get_origin(annotation) is Literal else parts(part))


def of_command(name: str) -> Iterator[tuple[str, Any]]:
    """The arguments and options of a command, as Python would name them, with their types."""
    module, function = place_of(name)
    for each in signature(getattr(import_module(module), function), eval_str=True).parameters.values():
        kind, mark = get_args(each.annotation)
        decls = [decl for decl in (mark.default, *(mark.param_decls or ())) if str(decl).startswith("--")]
        yield (decls[0].partition("/")[0].removeprefix("--").replace("-", "_") if decls else each.name), kind


def of_function(name: str) -> Mapping[str, Any]:
    """The arguments of a function with their types, and the settings of runs if it takes them."""
    function = getattr(guieval, name)
    hints, parameters = get_type_hints(function), signature(function).parameters.values()
    own = {each.name: hints[each.name] for each in parameters if each.kind is not Parameter.VAR_KEYWORD}
    several: Any = Sequence
    own |= {each.name: several[own[each.name]] for each in parameters if each.kind is Parameter.VAR_POSITIONAL}
    return own if len(own) == len(parameters) else {**get_type_hints(RunSettings), **own}


def differences(command: str, function: str) -> Iterator[str]:
    python, options = of_function(function), dict(of_command(command))
    of_runs = set(RunSettings.__annotations__) if "sampling" in python else set()
    for name, kind in options.items():
        if name in ONLY_PRINTING | ONLY_COMMANDS or (name == "set" and of_runs):
            continue
        if missing := {*ELSEWHERE.get(name, (name,))} - python.keys():
            yield f"guieval.{function} has no {', '.join(missing)}"
        elif name not in {*ELSEWHERE, *AS_TEXT}:
            given, held = set(parts(kind)), set(parts(python[name]))
            if not given & held & SCALARS or (list in given) != (Sequence in held):
                yield f"guieval {command} has --{name} {kind}, and guieval.{function} {name}: {python[name]}"
    taken = {*options, *ONLY_PRINTING, *of_runs, *(ELSEWHERE["set"] if "set" in options else ())}
    yield from (f"guieval {command} has no --{name}" for name in python.keys() - taken)


def test_each_function_has_the_names_and_types_of_its_command() -> None:
    assert [line for command in FUNCTIONS for line in differences(command, command.split()[-1])] == []
