"""The ``guieval`` command: one Typer app, one module per command, and the one place where errors become sentences.

A user's mistake ends with one sentence on stderr and exit code 2; a run that could not be finished ends with exit code 1, one
that was stopped with 130.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from _thread import interrupt_main
from threading import Timer
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from guieval.cli.completion import complete_names
from guieval.cli.data import benchmarks, doctor, export, prepare, sample_sets, select
from guieval.cli.help_panels import arrange
from guieval.cli.models import audit, check, models, new_adapter, protocols
from guieval.cli.results import compare, consistency, correlate, decisions, import_predictions, leaderboard, plot, report, score
from guieval.cli.running import help_config, mix, mock_server, prompt, rollout, run, runs
from guieval.cli.tables import echo
from guieval.cli.training import fit_scaling, probe_reward, train

if TYPE_CHECKING:
    from typer.core import TyperGroup

STOPPED = 130
"""Exit code of a run that Ctrl-C ended, as shells have it."""
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""What an option that cannot be read raises (click's ClickException, which Typer has a copy of but does not export)."""

app = typer.Typer(
    name="guieval",
    help="Evaluate GUI agents offline and semi-online; score one prediction under every published protocol.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Completion of commands and names in the shell: guieval --install-completion",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from guieval import __version__

        echo(f"guieval {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None: ...


app.add_typer(runs.app, name="runs")
for command in (
    *(run.run, rollout.rollout, mix.mix),
    *(score.score, compare.compare, leaderboard.leaderboard, correlate.correlate, decisions.decisions),
    *(consistency.consistency, report.report, plot.plot, models.models, prompt.prompt, benchmarks.benchmarks, audit.audit),
    *(protocols.protocols, sample_sets.sample_sets, prepare.prepare, export.export, select.select, fit_scaling.fit_scaling),
):
    app.command()(command)
app.command("import")(import_predictions.import_predictions)
for command in (
    *(doctor.doctor, check.check, mock_server.mock_server, probe_reward.probe_reward, help_config.help_config, train.train),
    new_adapter.new_adapter,
):
    app.command()(command)


def program() -> TyperGroup:
    """All commands, with their help as it is laid out."""
    from typer.core import TyperGroup
    from typer.main import get_command

    group = get_command(app)
    assert isinstance(group, TyperGroup)  # it has several commands
    arrange(group)
    complete_names(group)
    return group


def main() -> None:
    """Entry point of the ``guieval`` script."""
    from guieval.errors import DataError, FatalEngineError, GuievalError, ServersAway, UsageError

    _open_streams()
    sys.unraisablehook = _interrupt_again
    assert logging.lastResort is not None
    logging.getLogger("guieval").addHandler(logging.lastResort)  # the library prints no warnings; a command does
    output = sys.stdout
    try:
        code = program()(sys.argv[1:] or ["--help"], standalone_mode=False)
        if code == STOPPED:
            _end_at_once_on_interrupt()
        sys.stdout.flush()
    except (UsageError, DataError, FatalEngineError) as error:
        _leave(1 if isinstance(error, ServersAway) else 2, str(error))
    except GuievalError as error:
        _leave(1, str(error))
    except CommandLineError as error:
        _leave(2, error.format_message())  # type: ignore[attr-defined]  # see CommandLineError
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
        echo(f"guieval: {' '.join(sentence.split())}", err=True)
    raise SystemExit(code) from None


def _end_at_once_on_interrupt() -> None:
    """Let a further Ctrl-C end the process on the spot: all is written, and an agent's thread may still be busy."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Deliver a Ctrl-C again that arrived inside a finalizer or a weak reference's callback, where Python only prints it."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        Timer(0.02, interrupt_main).start()  # at once, it would arrive inside this function and be dropped too
    else:
        sys.__unraisablehook__(dropped)


def _open_streams() -> None:
    """Make standard output and error usable in every case: there may be none (``>&-``), and a name may be no valid text."""
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
