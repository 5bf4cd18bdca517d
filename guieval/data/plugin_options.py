"""Checks the options that a user sets for a plug-in: the keyword-only arguments of its constructor."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from guieval.errors import UsageError, nearest

_PLAIN = {str: "text", bool: "true or false", int: "a whole number", float: "a number", NoneType: "nothing"}
"""Types of options that can be checked for every plug-in, and their names in errors."""


def at_least(least: int, **options: int) -> None:
    """Raise :class:`UsageError` for an option below ``least``."""
    for name, value in options.items():
        if value < least:
            raise UsageError(f"option {name} is {value!r}; expected at least {least}")


def seconds(most: int, **options: float) -> None:
    """Raise :class:`UsageError` for an option that is not a time of up to ``most`` seconds."""
    for name, value in options.items():
        if not 0 <= value <= most:
            raise UsageError(f"option {name} is {value:g}; expected 0 to {most} seconds")


def option_names(kind: type) -> list[str]:
    """Names of a plug-in's options."""
    return [parameter.name for parameter in signature(kind).parameters.values() if parameter.kind is Parameter.KEYWORD_ONLY]


def unknown_option(kind: type, name: str, what: str) -> UsageError:
    """The error for an option that ``kind`` does not have; ``what`` names the plug-in, e.g. ``benchmark 'demo'``."""
    return UsageError(f"{what} has no option {name!r}{nearest(name, option_names(kind))}")


def check_options(kind: type, options: Mapping[str, Any], what: str) -> None:
    """Raise :class:`UsageError` for an option that the constructor does not have, or with a value of the wrong type."""
    known, parameters = option_names(kind), signature(kind, eval_str=True).parameters
    for name, value in options.items():
        if name not in known:
            raise unknown_option(kind, name, what)
        hint = parameters[name].annotation
        types = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
        words = [word for type_ in types if get_origin(type_) is Literal for word in get_args(type_)]
        if words and value not in words and not (value is None and NoneType in types):
            raise UsageError(f"option {name} is {value!r}; expected {' or '.join(words)}{nearest(str(value), words)}")
        if set(types) <= _PLAIN.keys() and type(value) not in types:
            expected = " or ".join(_PLAIN[type_] for type_ in types if type_ is not NoneType)
            raise UsageError(f"option {name} is {value!r}; expected {expected}")
