"""Options made from the fields of a settings class, so that a setting is declared once: where it is checked.

The class is read from its source. Importing it would load pydantic and numpy, which takes longer than showing the help.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from guieval.data.files import read_text

if TYPE_CHECKING:
    from pydantic import ValidationError

    from guieval.errors import UsageError

Given: TypeAlias = dict[str, Any]
"""The settings that were given on the command line, by the names of their fields."""
Command: TypeAlias = Callable[..., None]

_PACKAGE = Path(__file__).parents[1]
_BY_NAME = Parameter.KEYWORD_ONLY
_PATHS = ("Path", "_File")
"""Types of fields that hold a path."""


def path(text: str) -> Path:
    """A path option's value; an empty one, as an unset shell variable gives it, is not the current folder."""
    if not text.strip():
        raise typer.BadParameter("a path must not be empty")
    return Path(text)


def path_option(help: str, *names: str, metavar: str = "PATH") -> Any:
    """The mark of an option that takes a path."""
    return typer.Option(*names, parser=path, metavar=metavar, help=help)


def path_argument(metavar: str, help: str) -> Any:
    """The mark of an argument that takes a path."""
    return typer.Argument(parser=path, metavar=metavar, help=help)


class Setting(NamedTuple):
    """A field as its class declares it. ``default`` is ``None`` where it is not a plain value."""

    name: str
    type: ast.expr
    default: Any
    description: str

    @property
    def option(self) -> str:
        """The name of the option, which is repeated where the field is a list: ``base_urls`` is set by ``base_url``."""
        return self.name.removesuffix("s") if self._is("tuple") else self.name

    @property
    def help(self) -> str:
        """The description as a sentence, with what a reader of the help needs to know besides."""
        repeated = "; may be repeated" if self._is("tuple") else ""
        default = "yes" if self.default is True else f"{self.default:g}" if isinstance(self.default, float) else self.default
        unneeded = default is False or default in (None, "", ()) or "default" in self.description
        known = "" if unneeded else f" (default: {default})"
        return f"{self.description[:1].upper()}{self.description[1:]}{repeated}{known}."

    def mark(self, words: str | None = None) -> Any:
        """The mark of the option, with other ``words`` than the field's own."""
        words = words or self.help
        if self._is(*_PATHS):
            return path_option(words)
        others = self._literals() if self._is("int") else []
        return typer.Option(help=words, metavar="|".join(("N", *others)) if others else None)

    def annotation(self, words: str | None) -> Any:
        """The annotation from which Typer makes the option."""
        kinds = {"tuple": list[str], **dict.fromkeys(_PATHS, Path), "bool": bool, "Literal": str, "float": float, "int": int}
        kind: Any = next((kind for name, kind in kinds.items() if self._is(name)), str)
        return Annotated[kind | None, self.mark(words)]

    def _is(self, *names: str) -> bool:
        return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(self.type))

    def _literals(self) -> list[str]:
        return [node.value for node in ast.walk(self.type) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


class SettingsClass(NamedTuple):
    """A class of settings: its file within the package, its name, and the fields whose option has another name."""

    file: str
    name: str
    renamed: Mapping[str, str] = {}

    @property
    def fields(self) -> dict[str, Setting]:
        return _fields(self.file, self.name)

    def option(self, field: str) -> str:
        """The option of a field, as the parameter of a function."""
        return self.renamed.get(field, self.fields[field].option)

    def flag(self, field: str) -> str:
        """The option of a field, as it is typed; the name itself where it is not a field."""
        return "--" + (self.option(field) if field in self.fields else field).replace("_", "-")

    def refusal(self, error: ValidationError) -> UsageError:
        """The error for settings that the class refuses: the option, its value and what was expected."""
        from guieval.errors import UsageError, first_problem

        problem = first_problem(error)
        flag = self.flag(str(problem.path[0]) if problem.path else "setting")
        return UsageError(f"{flag} is {problem.value!r}: {problem.message}")

    def options(
        self, *names: str, without: Collection[str] = (), into: str = "settings", **words: str
    ) -> Callable[[Command], Command]:
        """Give a command an option for each field in ``names`` (default: all, ``without`` some).

        The command receives the settings that were given as the parameter called ``into``. ``words`` are help texts that differ
        from the field's own.
        """

        def extended(function: Command) -> Command:
            named = {name: self.option(name) for name in names or self.fields if name not in without}
            own = [each for each in signature(function, eval_str=True).parameters.values() if each.name != into]
            made = [
                Parameter(option, _BY_NAME, default=None, annotation=self.fields[name].annotation(words.get(name)))
                for name, option in named.items()
            ]

            def command(**values: Any) -> None:
                given = {name: _plain(values.pop(option)) for name, option in named.items()}
                function(**{into: {name: value for name, value in given.items() if value is not None}}, **values)

            command.__name__, command.__doc__, command.__annotations__ = function.__name__, function.__doc__, {}
            every = Signature([*made, *(each.replace(kind=_BY_NAME) for each in own)])
            setattr(command, "__signature__", every)  # noqa: B010  # mypy knows no such attribute of a function
            return command

        return extended


RUN = SettingsClass("running/config.py", "RunConfig", {"mix_artifacts": "artifacts"})
"""The settings of a run."""


@cache
def run_panels() -> dict[str, list[str]]:
    """The settings of a run that have an option of their own, by the panel of the help that they stand in."""
    for node in _source(RUN.file).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PANELS":
            return {panel: names.split() for panel, names in ast.literal_eval(node.value).items()}
    raise AssertionError(f"{RUN.file} declares no PANELS")


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return (tuple(value) or None) if isinstance(value, list) else value


@cache
def _source(file: str) -> ast.Module:
    return ast.parse(read_text(_PACKAGE / file))


@cache
def _fields(file: str, name: str) -> dict[str, Setting]:
    [declared] = [node for node in _source(file).body if isinstance(node, ast.ClassDef) and node.name == name]
    return {field.name: field for field in map(_field, declared.body) if field is not None}


def _field(node: ast.stmt) -> Setting | None:
    if not isinstance(node, ast.AnnAssign):
        return None
    value, description = node.value, None
    if isinstance(value, ast.Call):  # Field(default, ..., description=...)
        description = next((_literal(each.value) for each in value.keywords if each.arg == "description"), None)
        value = value.args[0] if value.args else None
    return Setting(ast.unparse(node.target), node.annotation, _literal(value), description or "")


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:  # a constant by its name
        return None
