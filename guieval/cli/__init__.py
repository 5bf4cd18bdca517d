"""The ``guieval`` command: one Typer app, one module per command, and the one place where errors become sentences.

A user's mistake ends with one sentence on stderr and exit code 2; a run that could not be finished ends with exit code 1.
"""

from __future__ import annotations

import sys

import typer

from guieval.cli import benchmarks, doctor, mock_server, models, protocols, run, score

app = typer.Typer(
    name="guieval",
    help="Evaluate GUI agents offline and semi-online; score one prediction under every published protocol.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("score")(score.score)
app.command("models")(models.models)
app.command("benchmarks")(benchmarks.benchmarks)
app.command("protocols")(protocols.protocols)
app.command("doctor")(doctor.doctor)
app.command("mock-server")(mock_server.mock_server)


def main() -> None:
    """Entry point of the ``guieval`` script."""
    from guieval.errors import DataError, FatalEngineError, GuievalError, UsageError

    try:
        app()
    except (UsageError, DataError, FatalEngineError) as error:
        print(f"guieval: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except GuievalError as error:
        print(f"guieval: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:  # the reader of our output (head, less) went away
        sys.stderr.close()
        raise SystemExit(1) from None
