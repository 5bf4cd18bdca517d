"""The ``guieval`` command: its commands in groups, one module each, and the one place where errors become sentences.

A user's mistake ends with one sentence on stderr and exit code 2; a run that could not be finished ends with exit code 1, one
that was stopped with 130.
"""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from guieval.cli.tables import echo, say
from guieval.data.files import read_text
from guieval.errors import DataError, FatalEngineError, GuievalError, ServersAway, UsageError, first_problem
from guieval.wings import WINGS, offers

STOPPED = 130
"""Exit code of a run that Ctrl-C ended, as shells have it."""
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""The exception of an option that cannot be read (click's ClickException, which Typer has a copy of but does not export)."""

COMMANDS = {
    **{name: f"guieval.cli.running.{name}" for name in ("run", "runs", "campaign")},
    **{name: f"guieval.cli.results.{name}" for name in ("score", "compare", "leaderboard", "plot", "view", "report", "step")},
    **{"models": "guieval.cli.models.models", "benchmarks": "guieval.cli.data.benchmarks"},
    **{"protocols": "guieval.cli.models.protocols", "doctor": "guieval.cli.data.doctor"},
    **{f"data {name}": f"guieval.cli.data.{name}" for name in ("download", "prepare", "record", "export")},
    "data sample-sets": "guieval.cli.data.sample_sets",
    **{"dev prompt": "guieval.cli.running.prompt", "dev scaffolds": "guieval.cli.models.scaffolds"},
    "dev help-config": "guieval.cli.running.help_config",
    **{"dev audit": "guieval.cli.models.audit", "dev audit-engine": "guieval.cli.models.audit_engine"},
    **offers("commands"),
}
"""The commands and their modules, with those of the wings, in the order of the help; ``study mix`` is the ``mix`` of a group.

A module has a function of its own name (another one is named behind a colon), or a Typer application called ``app``; it is
imported when its command is called, since all of them together take a second.
"""

_GROUPS = {
    "data": "Get, convert and write data: benchmarks, recorded trajectories, predictions and results of other tools.",
    "study": "Study a model: many samples of a step, mixed histories, decisions, consistency, correlation, power, selection.",
    "train": "Train a model with TRL; plan, evaluate and export trainings.",
    "dev": "Extend and check: adapters, prompts, scaffolds, settings, audits, servers.",
}
GROUPS = {group: does for group, does in _GROUPS.items() if any(name.startswith(f"{group} ") for name in COMMANDS)}
"""The groups of commands, and what their commands do; one whose folder is deleted is not there."""

PANELS = {
    "Runs": ("run", "runs", "campaign"),
    "Results": ("score", "compare", "leaderboard", "plot", "view", "report", "step"),
    "Models and data": ("models", "benchmarks", "protocols", "doctor"),
    "Groups of commands": tuple(GROUPS),
}
"""The panels of ``guieval --help``."""

LISTED_BY = {
    **{"models": "model", "dev scaffolds": "scaffold", "benchmarks": "bench", "protocols": "protocol"},
    "data sample-sets": "sample_set",
}
"""Commands that list names of one kind, and how options that take such a name are called."""

_NAMES = {
    "model": ("guieval.registry", "list_models"),
    "adapter": ("guieval.registry", "list_adapters"),
    "scaffold": ("guieval.registry", "list_scaffolds"),
    "bench": ("guieval.registry", "list_benchmarks"),
    "protocol": ("guieval.evaluation", "list_protocols"),
    "sample_set": ("guieval.data.sample_sets", "list_sample_sets"),
    "mode": ("guieval.history.modes", "MODES"),
}
"""The source of names that an option or argument takes, a function or a mapping; imported only to complete one."""


class Command(TyperCommand):
    """A command that refuses an option that is given several times and takes one value; click takes the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for option in order:
            if isinstance(option, TyperOption) and not (option.multiple or option.is_flag) and order.count(option) > 1:
                more = "; `guieval campaign` runs several" * (self.name == "run" and option.name in ("model", "bench"))
                given = f"{order.count(option)} times, the last as {values[option.name]!r}"
                raise UsageError(f"{option.opts[0]} is given {given}, and takes one value{more}")
        return super().parse_args(ctx, args)


@contextmanager
def _interrupt_as_abort() -> Iterator[None]:
    """Pass a Ctrl-C on as an abort, since Typer would end the program without a word."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Abort from None


class Commands(TyperGroup):
    """All commands, or those of a group. Each is imported when it is called; a list needs the first sentences of their help."""

    group: str | None = None

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _interrupt_as_abort():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _interrupt_as_abort():
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        assert option is not None
        option.default = False  # in place of None, which Typer reads with pydantic
        return option

    def list_commands(self, ctx: Any) -> list[str]:
        if self.group is None:
            return [name for names in PANELS.values() for name in names]
        return [name.removeprefix(f"{self.group} ") for name in COMMANDS if name.startswith(f"{self.group} ")]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.list_commands(ctx) or cmd_name in self.commands:
            return self.commands.get(cmd_name)
        if self.group is not None:
            return TyperCommand(cmd_name, help=_summary(f"{self.group} {cmd_name}"))
        panel = next(panel for panel, names in PANELS.items() if cmd_name in names)
        if cmd_name in GROUPS:
            return _group(cmd_name, panel)
        return TyperCommand(cmd_name, help=_summary(cmd_name), rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if self.group is None else f"{self.group} {args[0]}"
        if name in COMMANDS:
            self.commands[args[0]] = load(name)
        elif name not in GROUPS and not ctx.resilient_parsing:  # as it is while the shell completes a name
            raise _no_command(args[0], "guieval" if self.group is None else f"guieval {self.group}")
        return super().resolve_command(ctx, args)


def _group(name: str, panel: str) -> Commands:
    made = Commands(name=name, help=GROUPS[name], rich_help_panel=panel)
    made.group = name
    return made


def _no_command(word: str, parent: str) -> UsageError:
    """The sentence of a wrong name: where a command of this name is (most were once in no group), or the nearest one."""
    places = {name.split()[-1]: name for name in reversed([*GROUPS, *COMMANDS])}  # of two names the first one: `data export`
    places |= {f"{name}-training": f"train {name}" for name in ("evaluate", "export")}
    if word in places:
        return UsageError(f"there is no `{parent} {word}`: it is `guieval {places[word]}`")
    near = get_close_matches(word, places, 1)
    known = f"did you mean `guieval {places[near[0]]}`?" if near else f"`{parent} --help` lists them"
    if absent := [wing for wing in WINGS if find_spec(f"guieval.{wing}") is None]:
        known += f"; this copy of guieval lacks the folders {', '.join(absent)}"
    return UsageError(f"there is no `{parent} {word}`; {known}")


def place_of(name: str) -> tuple[str, str]:
    """A command's module, and the name of its function."""
    module, _, function = COMMANDS[name].partition(":")
    return module, function or module.rpartition(".")[2]


def load(name: str) -> TyperCommand | TyperGroup:
    """A command with its options, its help as it is laid out."""
    from guieval.cli.help_panels import arrange  # it knows the settings of a run, which a list of commands does not need

    place, function = place_of(name)
    module = import_module(place)
    single = getattr(module, "app", None)
    if single is None:
        single = typer.Typer(add_completion=False)
        single.command(name, cls=Command)(getattr(module, function))
    command = get_command(single)
    command.name = name
    assert isinstance(command, TyperCommand | TyperGroup)
    arrange(command)
    _complete_names(command)
    return command


def _complete_names(command: TyperCommand | TyperGroup) -> None:
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


def _summary(name: str) -> str:
    """The first paragraph of a command's docstring, without parsing its module, which took half of the help's time."""
    module, function = place_of(name)
    text = read_text(Path(__file__).parents[2] / f"{module.replace('.', '/')}.py")
    docstring = rf'^def {function}\(.*?\n    """(.*?)(?:\n\n|""")'
    own = re.search(docstring, text, re.DOTALL | re.MULTILINE)
    assert own is not None, f"{module} has no function {function} with a docstring"
    return re.sub(r"\n +", "\n", own[1]).strip()


app = typer.Typer(
    cls=Commands,
    name="guieval",
    help="Evaluate GUI agents offline, semi-online and online; score one prediction under every published protocol.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Completion of commands and names in the shell: guieval --install-completion",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from guieval.data.shipped import __version__

        say(f"guieval {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None: ...


def program() -> Commands:
    """The ``guieval`` command. It has Typer's options for completion if one is given: to read them imports pydantic."""
    group = get_command(app)
    assert isinstance(group, Commands)
    group.params = [
        each for each in group.params if not (each.name or "").endswith("_completion") or {*each.opts} & {*sys.argv}
    ]
    return group


def _refusal(error: Exception) -> str:
    """What is wrong with an option, with its value if Typer's own sentence (pydantic's) lacks it."""
    from pydantic import ValidationError  # only here, so that help does not wait for it

    sentence: str = error.format_message()  # type: ignore[attr-defined]  # see CommandLineError
    if not isinstance(error.__cause__, ValidationError):
        return sentence
    problem = first_problem(error.__cause__)
    return f"{sentence.partition(': ')[0]}: {problem.message}, got {problem.value!r}"


def main() -> None:
    """Entry point of the ``guieval`` script."""
    _open_streams()
    sys.unraisablehook = _interrupt_again
    assert logging.lastResort is not None
    logging.getLogger("guieval").addHandler(logging.lastResort)  # the library prints no warnings; a command does
    output = sys.stdout
    try:
        code = program()(sys.argv[1:], standalone_mode=False)
        if code == STOPPED:
            _end_at_once_on_interrupt()
        sys.stdout.flush()
    except (UsageError, DataError, FatalEngineError) as error:
        _leave(1 if isinstance(error, ServersAway) else 2, str(error))
    except GuievalError as error:
        _leave(1, str(error))
    except CommandLineError as error:
        _leave(2, _refusal(error))
    except (KeyboardInterrupt, typer.Abort):
        _end_at_once_on_interrupt()
        _leave(STOPPED, "stopped")
    except BrokenPipeError:  # the reader of our output (head, less) went away
        _drop_output()
        _leave(1)
    except OSError as error:  # a path that nothing above looked at, or a disk too full for our own output
        if error.filename is not None:
            _leave(2, f"{error.filename!r}: {error.strerror}")
        _drop_output()
        _leave(1, f"the operating system reports: {error.strerror or error}")
    finally:
        sys.stdout = output  # --json leaves it to JSON alone
        logging.getLogger("guieval").removeHandler(logging.lastResort)
    raise SystemExit(code if isinstance(code, int) else 0)


def _leave(code: int, sentence: str | None = None) -> NoReturn:
    if sentence is not None:
        write = say if sys.stderr.isatty() else echo  # a program that reads it looks for whole sentences
        write(f"guieval: {' '.join(sentence.split())}", err=True)
    raise SystemExit(code) from None


def _end_at_once_on_interrupt() -> None:
    """Let a further Ctrl-C end the process on the spot: all is written, and an agent's thread may still be busy."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Deliver a Ctrl-C again that arrived inside a finalizer or a weak reference's callback, in which Python only prints it.

    An event loop that a second Ctrl-C left half closed fails once more in its finalizer, which is not printed.
    """
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        Timer(0.02, interrupt_main).start()  # at once, it would arrive inside this function and be dropped too
    elif getattr(dropped.object, "__qualname__", "") != "BaseEventLoop.__del__":
        sys.__unraisablehook__(dropped)


def _open_streams() -> None:
    """Make standard output and error usable in every case: there may be none (``>&-``), and a name may not be valid text."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discard what is still unwritten, so that Python does not fail on it once more when it exits."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
