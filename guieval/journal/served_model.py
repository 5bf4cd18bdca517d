"""Records the model that a run's servers serve, and compares it with the checkpoint that the run is named after.

If a server has a single model, that model is requested whatever its name is, so another checkpoint may answer than the one
that the user named. The manifest records the requested model in a list ``served``, with an entry for every session that
differs from the one before. Until ``--served-model`` names such a model, all labels of the run show it
(:mod:`guieval.journal.caveats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from guieval.errors import one_line
from guieval.journal.run_files import Manifest, ServedBy, ServedEntry

MOST_LISTED = 20
"""Number of model names that are recorded per server; hosted servers list hundreds."""


class ServedModel(NamedTuple):
    """A model in a server's list. ``root`` is the checkpoint that it was loaded from, if the server reports it (vLLM does)."""

    name: str
    root: str | None = None


def served_entry(asked: str, named: bool, servers: Mapping[str, Sequence[ServedModel]]) -> ServedEntry:
    """The manifest's entry for the requested model; ``servers`` are the models that each server lists (empty if unknown)."""
    listed = []
    for url, models in servers.items():
        root = next((model.root for model in models if model.name == asked), None)
        listed.append(ServedBy(url=url, root=root, models=[model.name for model in models[:MOST_LISTED]]))
    return ServedEntry(asked=asked, named=named, servers=listed)


def same_checkpoint(one: str, other: str) -> bool:
    """Whether two names mean the same checkpoint: case and the organization or folder before the last part are ignored."""
    return _bare(one) == _bare(other) != ""


def is_checkpoint(name: str, manifest: Manifest) -> bool:
    """Whether a name means the checkpoint that a run is named after."""
    return any(same_checkpoint(name, known) for known in _checkpoint_names(manifest))


def add_served(entries: Sequence[ServedEntry], entry: ServedEntry) -> list[ServedEntry]:
    """The manifest's entries with a new one, unless it equals the last entry except for the URLs."""
    if entries and _without_urls(entries[-1]) == _without_urls(entry):
        return list(entries)
    return [*entries, entry]


def unconfirmed_models(manifest: Manifest) -> list[str]:
    """Models that a run requested although they do not have its checkpoint's name and the user has not named them."""
    known = _checkpoint_names(manifest)
    entries = manifest.served or ()
    named = {entry.asked for entry in entries if entry.named}
    unconfirmed: dict[str, None] = {}
    for entry in entries:
        names = [entry.asked, *filter(None, (server.root for server in entry.servers))]
        if entry.asked not in named and not any(same_checkpoint(name, other) for name in names for other in known):
            unconfirmed[entry.asked] = None
    return list(unconfirmed)


def served_mark(manifest: Manifest) -> str:
    """The names of the :func:`unconfirmed_models`, as a mark for a run's label; empty without any."""
    names = ", ".join(one_line(name, 60) for name in unconfirmed_models(manifest))
    return f"served: {names}" if names else ""


def served_note(manifest: Manifest) -> str | None:
    """The note on the :func:`unconfirmed_models` below a table; ``None`` without any."""
    names = [one_line(name, 60) for name in unconfirmed_models(manifest)]
    if not names:
        return None
    known = list(map(repr, _checkpoint_names(manifest)))
    either = known[0] if len(known) == 1 else f"either {' or '.join(known)}"
    return (
        f"the server calls its model {' and '.join(map(repr, names))}, which does not match {either}: the answers may be of "
        f"another checkpoint; if it is the right one, confirm it with --served-model {names[0]} (and --resume for this run)"
    )


def describe_served(entry: ServedEntry) -> str:
    """An entry of the manifest in one line: the requested model and its servers."""
    parts = []
    for server in entry.servers:
        root = f" (loaded from {one_line(server.root, 120)})" if server.root not in (None, entry.asked) else ""
        parts.append(f"{one_line(server.url)}{root}")
    return f"{one_line(entry.asked, 120)} at {', '.join(parts)}"


def _checkpoint_names(manifest: Manifest) -> list[str]:
    names = (manifest.model.name, manifest.config.model.name, manifest.model.hf_id)
    return list(dict.fromkeys(name for name in names if name))


def _bare(name: str) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)  # a folder of Hugging Face's cache
    last = cached.rpartition("--")[2] if cached else parts[-1] if parts else ""
    return last.casefold()


def _without_urls(entry: ServedEntry) -> tuple[object, ...]:
    return entry.asked, entry.named, {(server.root, tuple(sorted(server.models))) for server in entry.servers}
