"""The named protocols: every published scorer that guieval knows, and those that installed packages add.

Adding one is adding an entry to a table in :mod:`guieval.evaluation.table`, or an entry point in the group
``guieval.protocols`` that loads to a :class:`guieval.evaluation.protocol.Protocol` of the entry's name.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from guieval.errors import UsageError, nearest
from guieval.evaluation.protocol import Protocol
from guieval.evaluation.table import aitz, androidcontrol, desktop_web, grounding, gui_odyssey, mobile
from guieval.evaluation.table.online import ENVIRONMENT

PROTOCOLS_GROUP = "guieval.protocols"

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for table in (mobile, androidcontrol, aitz, gui_odyssey, grounding, desktop_web)
    for protocol in table.PROTOCOLS
}


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=PROTOCOLS_GROUP) if entry.name not in PROTOCOLS}


def list_protocols(dataset: str | None = None) -> list[str]:
    """Names of all protocols, or of those written for ``dataset``: the tables' in their order, then entry points by name."""
    names = [*PROTOCOLS, *sorted(_entries())]
    return names if dataset is None else [name for name in names if get_protocol(name).applies_to(dataset)]


def get_protocol(name: str) -> Protocol:
    """The protocol called ``name``; ``environment`` is that of online runs, which :func:`list_protocols` leaves out.

    Raises :class:`UsageError` with the nearest name when there is none, or when an entry point of that name cannot be
    imported or does not have that name.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if name == ENVIRONMENT.name:
        return ENVIRONMENT
    entry = _entries().get(name)
    if entry is None:
        known = list_protocols()
        raise UsageError(f"unknown protocol {name!r}{nearest(name, known)}; `guieval protocols` lists them")
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the protocol {name!r} ({entry.value}) cannot be imported: {error}") from error
    if not isinstance(loaded, Protocol) or loaded.name != name:
        raise UsageError(f"the entry point {entry.value!r} must be a guieval Protocol named {name!r}, got {loaded!r:.120}")
    return loaded
