"""Who answers a run, and how: written into its manifest session by session, and compared with earlier sessions."""

from __future__ import annotations

from guieval.errors import FatalEngineError
from guieval.journal import Journal, RunFolder
from guieval.journal.caveats import other_model, served_note, unconfirmed_models
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Setup, differences
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import ACCEPT, with_changes
from guieval.steps import Record


class SessionSetups:
    """Writes the set-up of this session into the manifest of ``journal``; several, if its workers query several models."""

    def __init__(self, run: ResolvedRun, journal: Journal) -> None:
        self._run = run
        self._journal = journal
        self._earlier: list[Setup] | None = None
        """Those of earlier sessions, once this one has a set-up."""
        self._own: list[Setup] = []
        self._noted: Setup | None = None
        self._named: set[str] = set()
        """The names that responses gave their model."""
        self._said: set[str] = set()

    def confirm(self) -> None:
        """Let ``--served-model`` name what an earlier session requested, even if no step is left to be queried."""
        name = self._run.config.server.served_model
        manifest = RunFolder(self._journal.directory).manifest
        if name is not None and name in unconfirmed_models(manifest):
            setups = [each.model_copy(update={"named": each.named or each.model == name}) for each in manifest.setups]
            self._journal.amend(manifest.model_copy(update={"setups": setups}))

    def note(self, setup: Setup, *, resumed: bool) -> list[str]:
        """Record what is known of this session's set-up by now; returns new warnings on it.

        They say that another checkpoint than the run's may answer, and in what the session before had another set-up.
        Raises :class:`FatalEngineError` if earlier sessions have responses of another model, unless the user accepts that.
        """
        if setup is self._noted:
            return []
        manifest = RunFolder(self._journal.directory).manifest
        if resumed and self._noted is None and (other := other_model(manifest, setup)) is not None:
            manifest = self._accepted(manifest, other)
        self._noted = setup
        manifest = self._written(manifest, setup)
        changed = differences((self._earlier or [])[-1:], self._own) if resumed else []
        warnings = [f"the set-up differs from that of the session before in {change.said(', now ')}" for change in changed]
        return self._new([*filter(None, [served_note(manifest)]), *warnings])

    def note_replies(self, record: Record, *, resumed: bool) -> list[str]:
        """Record how responses name their model; returns a warning if they name several.

        Raises :class:`FatalEngineError` if a resumed run's responses name another one, unless the user accepts that.
        """
        if self._named.issuperset(record.models):
            return []
        manifest = RunFolder(self._journal.directory).manifest
        known = manifest.answered_as
        new = [name for name in record.models if name not in known]
        if known and new and resumed:
            manifest = self._accepted(manifest, f"model that responses name (was {', '.join(known)!r}, now {new[0]!r})")
        if not self._own and not new:  # of an earlier session, whose set-up is not this one's
            return []
        here = tuple(name for name in record.models if name not in self._named)
        self._named |= {*known, *here}
        manifest = self._written(manifest, Setup(model=self._own[-1].model if self._own else "", answered_as=here))
        names = manifest.answered_as
        several = len(names) > 1 and bool(new)
        return [f"responses name several models ({', '.join(map(repr, names))})"] if several else []

    def note_patches(self, setup: Setup, *, resumed: bool) -> list[str]:
        """Record the set-up of the model that writes the thoughts of patches; returns a new warning if it differs."""
        manifest = RunFolder(self._journal.directory).manifest
        changed = differences(manifest.patch_setups[-1:], [setup]) if resumed else []
        setups = _followed(manifest.patch_setups, [setup])
        if setups != manifest.patch_setups:
            self._journal.amend(manifest.model_copy(update={"patch_setups": setups}))
        return self._new([f"the set-up of patches differs from that before in {each.said(', now ')}" for each in changed])

    def _written(self, manifest: Manifest, setup: Setup) -> Manifest:
        """The manifest with ``setup`` as part of this session's, in place of a like one of the session before."""
        if self._earlier is None:
            self._earlier = list(manifest.setups)
        place = next((place for place, own in enumerate(self._own) if own.model == setup.model), None)
        if place is None:
            self._own.append(setup)
        else:
            self._own[place] = self._own[place].joined(setup)
        setups = _followed(self._earlier, self._own)
        if setups != manifest.setups:
            manifest = manifest.model_copy(update={"setups": setups})
            self._journal.amend(manifest)
        return manifest

    def _new(self, warnings: list[str]) -> list[str]:
        new = [warning for warning in dict.fromkeys(warnings) if warning not in self._said]
        self._said.update(new)
        return new

    def _accepted(self, manifest: Manifest, change: str) -> Manifest:
        if not self._run.accept_changes:
            raise FatalEngineError(f"the run would be mixed, because it differs in the {change}; {ACCEPT}")
        accepted = with_changes(manifest, manifest, [change])
        self._journal.amend(accepted)
        return accepted


def _followed(earlier: list[Setup], own: list[Setup]) -> list[Setup]:
    """The set-ups of earlier sessions and then ``own`` ones, whose first is joined with a like one that comes before it."""
    last = earlier[-1:]
    if last and last[0].is_like(own[0]) and not differences(last, own[:1]):
        return [*earlier[:-1], last[0].joined(own[0]), *own[1:]]
    return [*earlier, *own]
