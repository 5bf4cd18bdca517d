"""Caveats of a run's metrics, from its manifest: a mark for the run's label, and notes below the table.

There are two: the served model may differ from the one that the run is named after (:mod:`guieval.journal.served_model`), and
a run is *mixed* if a session continued it under changes that the user accepted or under another set-up, or if responses named
several models.
"""

from __future__ import annotations

from itertools import pairwise

from guieval.errors import one_line
from guieval.journal.run_files import Manifest
from guieval.journal.served_model import served_mark, served_note
from guieval.journal.setup import Change, differences


def model_label(manifest: Manifest) -> str:
    """The checkpoint's name for tables and titles, with the :func:`mark`."""
    return f"{manifest.model_name} ({shown})" if (shown := mark(manifest)) else manifest.model_name


def mark(manifest: Manifest) -> str:
    """The addition to a run's label in every table; empty without caveats."""
    mixed = manifest.changes or len(manifest.answered_as) > 1 or _changed_setups(manifest)
    return "; ".join(filter(None, [served_mark(manifest), "mixed" if mixed else ""]))


def notes(manifest: Manifest) -> list[str]:
    """The notes below a run's table: one for each caveat, and the frame audit of an unlisted checkpoint."""
    lines = [served_note(manifest)]
    if manifest.frame_audit is not None:
        lines.append(f"frame of the unlisted checkpoint: {one_line(manifest.frame_audit, 600)}")
    for change in manifest.changes or ():
        lines.append(
            f"mixed: resumed on {one_line(change.when)} although it differed in {one_line('; '.join(change.what), 600)}"
        )
    if changed := _changed_setups(manifest):
        lines.append(
            f"mixed: sessions were answered under different set-ups: {'; '.join(each.said(', then ') for each in changed)}"
        )
    if len(names := manifest.answered_as) > 1:
        lines.append(f"mixed: responses named {len(names)} models: {', '.join(one_line(name, 60) for name in names[:5])}")
    return [line for line in lines if line is not None]


def _changed_setups(manifest: Manifest) -> list[Change]:
    """In what the sessions' set-ups differ, but for the names of models, which have a note of their own."""
    pairs = pairwise(manifest.setups)
    changed = (change for one, other in pairs for change in differences([one], [other]) if change.fact != "answered as")
    return list(dict.fromkeys(changed))
