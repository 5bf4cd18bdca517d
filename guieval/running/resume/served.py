"""Which model answers a run: written into its manifest, and compared with the model of earlier sessions."""

from __future__ import annotations

from guieval.errors import FatalEngineError
from guieval.journal import Journal, RunFolder
from guieval.journal.run_files import Manifest, ServedEntry
from guieval.journal.served_model import (
    add_served,
    is_checkpoint,
    same_checkpoint,
    served_entry,
    served_note,
    unconfirmed_models,
)
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import ACCEPT, with_changes
from guieval.steps import Record


class ServedModels:
    """Writes into the manifest of ``journal`` which models a run's servers and replies name."""

    def __init__(self, run: ResolvedRun, journal: Journal) -> None:
        self._run = run
        self._journal = journal
        self._named: set[str] = set()
        """The names that replies gave their model."""

    def confirm(self) -> None:
        """Let ``--served-model`` name what an earlier session asked, even where no step is left to ask about."""
        name = self._run.config.server.served_model
        if name is not None and name in unconfirmed_models(RunFolder(self._journal.directory).manifest):
            self.note_served(served_entry(name, True, {}), resumed=True)

    def note_served(self, served: ServedEntry, *, resumed: bool) -> str | None:
        """Record which model is queried; returns a warning where it may not be the run's checkpoint.

        Raises :class:`FatalEngineError` where earlier sessions have answers of another one, unless the user accepts that.
        """
        manifest = RunFolder(self._journal.directory).manifest
        if resumed and served.servers and (other := other_model(manifest, served)) is not None:
            manifest = self._accepted(manifest, other)
            self._journal.amend(manifest)
        entries = add_served(manifest.served or (), served)
        if entries != manifest.served:
            manifest = manifest.model_copy(update={"served": entries})
            self._journal.amend(manifest)
        return served_note(manifest)

    def note_replies(self, record: Record, *, resumed: bool) -> str | None:
        """Record how replies name their model; returns a warning where they name several.

        Raises :class:`FatalEngineError` where a resumed run's replies name another one, unless the user accepts that.
        """
        if self._named.issuperset(record.models):
            return None
        manifest = RunFolder(self._journal.directory).manifest
        known = manifest.reply_models or []
        new = [name for name in record.models if name not in known]
        if known and new and resumed:
            manifest = self._accepted(manifest, f"model that replies name (was {', '.join(known)!r}, now {new[0]!r})")
        names = [*known, *new]
        self._named = set(names)
        if new:
            self._journal.amend(manifest.model_copy(update={"reply_models": names}))
        several = len(self._named) > 1 and bool(new)
        return f"replies name several models ({', '.join(map(repr, names))})" if several else None

    def _accepted(self, manifest: Manifest, change: str) -> Manifest:
        if not self._run.accept_changes:
            raise FatalEngineError(f"the run would be mixed, because it differs in the {change}; {ACCEPT}")
        return with_changes(manifest, manifest, [change])


def other_model(manifest: Manifest, served: ServedEntry) -> str | None:
    """How the model that is queried now differs from that of earlier sessions, in words; ``None`` where it is the same."""
    asked = [entry for entry in manifest.served or () if entry.servers]
    if not asked:
        return None
    last, now = asked[-1], served
    if last.asked != now.asked and not (is_checkpoint(last.asked, manifest) and is_checkpoint(now.asked, manifest)):
        return f"model asked of the servers (was {last.asked!r}, now {now.asked!r})"
    before, after = ({server.root for server in entry.servers if server.root} for entry in (last, now))
    if before and after and not any(same_checkpoint(one, other) for one in before for other in after):
        return f"checkpoint that the servers loaded (was {', '.join(sorted(before))!r}, now {', '.join(sorted(after))!r})"
    return None
