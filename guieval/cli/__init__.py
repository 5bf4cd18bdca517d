"""The ``guieval`` command: one Typer app, one module per command, and the one place where errors become sentences.

A user's mistake ends with one sentence on stderr and exit code 2; a run that could not be finished ends with exit code 1, one
that was stopped with 130.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import NoReturn

import typer

from guieval.cli import (
    audit,
    benchmarks,
    check,
    compare,
    consistency,
    correlate,
    decisions,
    doctor,
    export,
    fit_scaling,
    import_predictions,
    leaderboard,
    mix,
    mock_server,
    models,
    new_adapter,
    plot,
    prepare,
    probe_reward,
    prompt,
    protocols,
    report,
    rollout,
    run,
    sample_sets,
    score,
    select,
    train,
)

STOPPED = 130
"""Exit code of a run that Ctrl-C ended, as shells have it."""
CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""What an option that cannot be read raises (click's ClickException, which Typer has a copy of but does not export)."""

app = typer.Typer(
    name="guieval",
    help="Evaluate GUI agents offline and semi-online; score one prediction under every published protocol.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("rollout")(rollout.rollout)
app.command("mix")(mix.mix)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("correlate")(correlate.correlate)
app.command("decisions")(decisions.decisions)
app.command("consistency")(consistency.consistency)
app.command("report")(report.report)
app.command("plot")(plot.plot)
app.command("models")(models.models)
app.command("prompt")(prompt.prompt)
app.command("benchmarks")(benchmarks.benchmarks)
app.command("audit")(audit.audit)
app.command("protocols")(protocols.protocols)
app.command("sample-sets")(sample_sets.sample_sets)
app.command("prepare")(prepare.prepare)
app.command("export")(export.export)
app.command("select")(select.select)
app.command("fit-scaling")(fit_scaling.fit_scaling)
app.command("import")(import_predictions.import_predictions)
app.command("doctor")(doctor.doctor)
app.command("check")(check.check)
app.command("mock-server")(mock_server.mock_server)
app.command("probe-reward")(probe_reward.probe_reward)
app.command("train")(train.train)
app.command("new-adapter")(new_adapter.new_adapter)


def main() -> None:
    """Entry point of the ``guieval`` script."""
    from guieval.errors import DataError, FatalEngineError, GuievalError, UsageError

    _open_streams()
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.stdout.flush()
    except (UsageError, DataError, FatalEngineError) as error:
        _leave(2, str(error))
    except GuievalError as error:
        _leave(1, str(error))
    except CommandLineError as error:
        _leave(2, error.format_message())  # type: ignore[attr-defined]  # see CommandLineError
    except (KeyboardInterrupt, typer.Abort):
        _leave(STOPPED, "stopped")
    except BrokenPipeError:  # the reader of our output (head, less) went away
        _drop_output()
        _leave(1)
    except OSError as error:  # a path that nothing above looked at, or a disk too full for our own output
        if error.filename is not None:
            _leave(2, f"{error.filename!r}: {error.strerror}")
        _drop_output()
        _leave(1, f"the operating system refuses: {error.strerror or error}")
    if code == STOPPED:  # an agent's thread may be busy yet: a second Ctrl-C must not wait for it, and all is written
        signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))
    raise SystemExit(code if isinstance(code, int) else 0)


def _leave(code: int, sentence: str | None = None) -> NoReturn:
    if sentence is not None:
        print(f"guieval: {' '.join(sentence.split())}", file=sys.stderr)
    raise SystemExit(code) from None


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
    """Send what is still unwritten nowhere, lest Python fail on it once more at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
