"""Options made from the fields of a settings class, so that a setting is declared once: where it is checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

import typer

from guieval.settings import GROUPS, SETTINGS, own_names
from guieval.settings.fields import FLAG, PATH, marks_of
from guieval.settings.sampling import OPTIONS, SamplingSettings

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

    from guieval.errors import UsageError

Given: TypeAlias = dict[str, Any]
"""The settings that were given on the command line, by their own names."""
Command: TypeAlias = Callable[..., None]

_BY_NAME = Parameter.KEYWORD_ONLY
_KINDS: tuple[tuple[Any, Any], ...] = (
    *((tuple, list[str]), (Path, Path), (PATH, Path), (bool, bool)),
    *((Literal, str), (float, float), (int, int)),
)
"""The type of an option by what the type of its field is made of; else it is text."""


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
    """A setting: its own name, and its field."""

    name: str
    field: FieldInfo

    @property
    def option(self) -> str:
        """The name of the option, which is repeated if the field is a list: ``base_urls`` is set by ``base_url``."""
        return self.name.removesuffix("s") if self._is(tuple) else self.name

    @property
    def help(self) -> str:
        """The description as a sentence, with what a reader of the help needs to know besides."""
        repeated = "; may be repeated" if self._is(tuple) else ""
        described, value = self.field.description or "", self.field.default
        default = "yes" if value is True else f"{value:g}" if isinstance(value, float) else value
        unneeded = self.field.is_required() or value is False or value in (None, "", (), {}) or "default" in described
        known = "" if unneeded else f" (default: {default})"
        return f"{described[:1].upper()}{described[1:]}{repeated}{known}."

    def mark(self, words: str | None = None) -> Any:
        """The mark of the option, with other ``words`` than the field's own."""
        words = words or self.help
        if self._is(Path) or self._is(PATH):
            return path_option(words)
        others = [each for part in self._parts() if get_origin(part) is Literal for each in get_args(part)]
        return typer.Option(help=words, metavar="|".join(("N", *others)) if others and self._is(int) else None)

    def annotation(self, words: str | None) -> Any:
        """The annotation from which Typer makes the option."""
        kind: Any = next((kind for part, kind in _KINDS if self._is(part)), str)
        return Annotated[kind | None, self.mark(words)]

    def _is(self, kind: Any) -> bool:
        return any(part is kind or get_origin(part) is kind for part in self._parts())

    def _parts(self) -> Iterator[Any]:
        yield from self.field.metadata
        parts = [self.field.annotation]
        for part in parts:
            yield part
            parts += [] if get_origin(part) is Literal else get_args(part)


class Settings(NamedTuple):
    """Settings that options are made from, by their own names; ``renamed`` are those whose option has another name."""

    fields: Mapping[str, Setting]
    renamed: Mapping[str, str] = {}

    @classmethod
    def of(cls, kind: type[BaseModel], renamed: Mapping[str, str]) -> Settings:
        return cls({name: Setting(name, field) for name, field in kind.model_fields.items()}, renamed)

    def option(self, field: str) -> str:
        """The option of a field, as the parameter of a function."""
        return self.renamed.get(field, self.fields[field].option)

    def flag(self, field: str) -> str:
        """The option of a field, as it is typed; the name itself if it is not a field."""
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


RUN = Settings(
    {
        name: Setting(name, field)
        for name, field in (SETTINGS | {name: SamplingSettings.model_fields[of] for name, of in OPTIONS.items()}).items()
    },
    {"mix_artifacts": "artifacts", "mix_decisions": "decisions"},
)
"""The settings of a run, and the parameters of requests that have an option."""


def run_panels() -> dict[str, list[str]]:
    """The settings of a run that have an option of their own, by the panel of the help that they are in: their group."""
    panels = {group.title(): [name for name in own_names(group) if FLAG in marks_of(SETTINGS[name])] for group in GROUPS}
    return panels | {"Sampling": [*OPTIONS, *panels["Sampling"]]}


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return (tuple(value) or None) if isinstance(value, list) else value
