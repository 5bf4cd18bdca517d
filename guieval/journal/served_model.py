"""Records the model that a run's servers serve, and compares it with the checkpoint that the run is named after.

If a server has a single model, that model is requested whatever its name is, so another checkpoint may answer than the one
that the user named. The manifest records the requested model with the set-up of each session (:mod:`guieval.journal.setup`).
Until ``--served-model`` names such a model, all labels of the run show it (:mod:`guieval.journal.caveats`).
"""

from __future__ import annotations

from guieval.errors import one_line
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Setup


def same_checkpoint(one: str, other: str) -> bool:
    """Whether two names mean the same checkpoint: case and the organization or folder before the last part are ignored."""
    return _bare(one) == _bare(other) != ""


def _is_checkpoint(name: str, manifest: Manifest) -> bool:
    """Whether a name means the checkpoint that a run is named after."""
    return any(same_checkpoint(name, known) for known in _checkpoint_names(manifest))


def unconfirmed_models(manifest: Manifest) -> list[str]:
    """Models that a run requested although they do not have its checkpoint's name and the user has not named them."""
    known = _checkpoint_names(manifest)
    requested = [setup for setup in manifest.setups if setup.model]
    named = {setup.model for setup in requested if setup.named}
    unconfirmed: dict[str, None] = {}
    for setup in requested:
        names = [setup.model, *filter(None, (engine.root for engine in setup.engines))]
        if setup.model not in named and not any(same_checkpoint(name, other) for name in names for other in known):
            unconfirmed[setup.model] = None
    return list(unconfirmed)


def other_model(manifest: Manifest, now: Setup) -> str | None:
    """How the model that is queried now differs from that of earlier sessions, in words; ``None`` if it is the same."""
    last = next((setup for setup in reversed(manifest.setups) if setup.engines and setup.model), None)
    if last is None or not now.engines:
        return None
    if last.model != now.model and not (_is_checkpoint(last.model, manifest) and _is_checkpoint(now.model, manifest)):
        return f"model asked of the servers (was {last.model!r}, now {now.model!r})"
    before, after = ({engine.root for engine in setup.engines if engine.root} for setup in (last, now))
    if before and after and not any(same_checkpoint(one, other) for one in before for other in after):
        return f"checkpoint that the servers loaded (was {', '.join(sorted(before))!r}, now {', '.join(sorted(after))!r})"
    return None


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


def describe_served(manifest: Manifest) -> list[str]:
    """The requested model and its servers in one line, for each set-up of the run with servers."""
    lines: dict[str, None] = {}
    for setup in manifest.setups:
        places = []
        for engine in filter(lambda each: each.url, setup.engines):
            root = f" (loaded from {one_line(engine.root, 120)})" if engine.root not in (None, setup.model) else ""
            if not root and engine.models and setup.model not in engine.models:  # of a composition's grounder
                root = f" (with {one_line(' and '.join(engine.models), 120)})"
            places.append(f"{one_line(engine.url)}{root}")
        if places:
            lines[f"{one_line(setup.model, 120)} at {', '.join(places)}"] = None
    return list(lines)


def _checkpoint_names(manifest: Manifest) -> list[str]:
    planner = (manifest.model.model_extra or {}).get("served_as") if "=" in manifest.model.name else None
    names = (manifest.model.name, manifest.config.model.name, manifest.model.hf_id, planner)
    return list(dict.fromkeys(name for name in names if name))


def _bare(name: str) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part]
    cached = next((part for part in parts if part.startswith("models--")), None)  # a folder of Hugging Face's cache
    last = cached.rpartition("--")[2] if cached else parts[-1] if parts else ""
    return last.casefold()
