"""Caveats of a run's metrics, from its manifest: a mark for the run's label, and notes below the table.

There are two: the served model may differ from the one that the run is named after (:mod:`guieval.journal.served_model`), and
a run is *mixed* if a session continued it under changes that the user accepted, or if replies named several models.
"""

from __future__ import annotations

from guieval.errors import one_line
from guieval.journal.run_files import Manifest
from guieval.journal.served_model import served_mark, served_note


def model_label(manifest: Manifest) -> str:
    """The checkpoint's name for tables and titles, with the :func:`mark`."""
    return f"{manifest.model_name} ({shown})" if (shown := mark(manifest)) else manifest.model_name


def mark(manifest: Manifest) -> str:
    """The addition to a run's label in every table; empty without caveats."""
    mixed = manifest.changes or len(manifest.reply_models or ()) > 1
    return "; ".join(filter(None, [served_mark(manifest), "mixed" if mixed else ""]))


def notes(manifest: Manifest) -> list[str]:
    """The notes below a table in which the run has a :func:`mark`."""
    lines = [served_note(manifest)]
    for change in manifest.changes or ():
        lines.append(
            f"mixed: resumed on {one_line(change.when)} although it differed in {one_line('; '.join(change.what), 600)}"
        )
    if len(names := manifest.reply_models or ()) > 1:
        lines.append(f"mixed: replies named {len(names)} models: {', '.join(one_line(name, 60) for name in names[:5])}")
    return [line for line in lines if line is not None]
