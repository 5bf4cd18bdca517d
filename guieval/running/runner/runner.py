"""Runs a model over a benchmark: asynchronous, no barrier, one journal line as soon as a step is answered.

One step's way: history -> ``prepare_input`` -> screenshots read and resized in threads -> ``generate`` -> parsed and scored
(:mod:`guieval.models.scored_response`) -> journal -> the episode's next step becomes ready. Every failure of a step is
stored on its record with its stage; failures of the run itself (the journal cannot be written, the server does not know the
model) end it with the journal intact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from guieval.engines.stop_signals import on_stop_signals
from guieval.errors import AdapterFault, DataError, FatalEngineError, ServersAway
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import RunProgress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.answered import EarlierRecords
from guieval.running.resume.changes import check_directory, open_journal
from guieval.running.resume.identity import manifest_of
from guieval.running.resume.setups import SessionSetups
from guieval.running.runner.session import Session


class Runner:
    """Does one resolved run in one directory. :meth:`execute` may be called once.

    ``on_progress`` is called after every step. ``halt`` is called before each step; once it returns a reason, no further step
    begins, and the runner waits for those in flight.
    """

    def __init__(
        self,
        run: ResolvedRun,
        directory: Path,
        *,
        on_progress: Callable[[RunProgress], None] = lambda progress: None,
        halt: Callable[[RunProgress], str | None] = lambda progress: None,
    ) -> None:
        self.run = run
        self.directory = directory
        self.broken_off: RunOutcome | None = None
        """The state of the run when :meth:`execute` raised an error that no further step could survive."""
        self._on_progress = on_progress
        self._halt = halt
        self._session: Session | None = None
        self._stop_asked = False

    def begin(self) -> None:
        """Write down what the run will do, and nothing more, so that :meth:`execute` with ``resume`` may come at any time.

        Raises :class:`UsageError`, and writes nothing, if screenshots cannot be used.
        """
        self.run.screenshots.look(self.run, resume=False)
        with open_journal(self.run, self.directory, resume=False):
            pass

    def left(self) -> bool:
        """Whether :meth:`execute` with ``resume`` would ask for any step; reads the journal, and changes nothing.

        Raises :class:`UsageError` if that would: there is no run, or it is another one.
        """
        check_directory(self.run, self.directory, manifest_of(self.run), resume=True)
        return EarlierRecords(self.run, self.directory).has_work()

    def execute(self, *, resume: bool) -> RunOutcome:
        """Run to the end, to the user's Ctrl-C, to :meth:`stop`, or to an error that no further step could survive.

        Raises :class:`UsageError` (unlike resume, empty plan), :class:`guieval.errors.JournalError` (the directory is held
        or full), :class:`FatalEngineError` (wrong key, unknown model, no server any more) and :class:`AdapterFault`.
        What was answered before is in the journal.
        """
        if not resume:
            self.run.screenshots.look(self.run, resume=False)
        with open_journal(self.run, self.directory, resume=resume) as journal:
            setups = SessionSetups(self.run, journal)
            if resume:
                setups.confirm()
            answered = EarlierRecords(self.run, self.directory)
            progress = answered.progress()
            resumed = progress.resumed
            progress.warnings += self.run.answering.notes
            if answered.has_work() and (warning := self.run.screenshots.look(self.run, resume=True)) is not None:
                progress.warnings.append(warning)
            if answered.damage is not None:
                progress.warnings.append(answered.damage)
            session = self._session = Session(
                self.run, journal, setups, answered, progress, on_progress=self._on_progress, halt=self._halt
            )
            if self._stop_asked:  # before there was a session
                session.stop_soon()
            try:
                with on_stop_signals(session.stop_soon):
                    asyncio.run(session.drive())
            except (DataError, FatalEngineError, AdapterFault) as error:
                if not resumed and not journal.appended and not isinstance(error, ServersAway):
                    raise
                self.broken_off = session.outcome()
                changed = " --accept-changes" * isinstance(error, AdapterFault)
                command = f"guieval run --resume {self.directory}{changed}"
                kept = f"{error}; every answer before is kept, and `{command}` continues from there"
                raise type(error)(kept) from error
        return session.outcome()

    def stop(self) -> None:
        """Stop in order, as Ctrl-C does; may be called from any thread, also before the run has begun."""
        self._stop_asked = True
        if self._session is not None:
            self._session.stop_soon()
