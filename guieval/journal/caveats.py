"""Caveats of a run's metrics, from its manifest: a mark for the run's label, and notes below the table.

There are two. A run is *mixed* if a session continued it under changes that the user accepted or under another set-up, or if
responses named several models. And another checkpoint may have answered than the one that the run is named after: if a server
has a single model, that model is requested whatever its name is. The manifest records the requested model with the set-up of
each session (:mod:`guieval.journal.setup`), and until ``--served-model`` names it, all labels of the run show it.
"""

from __future__ import annotations

from itertools import pairwise

from guieval.errors import one_line
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Change, Setup, differences


def model_label(manifest: Manifest) -> str:
    """The checkpoint's name for tables and titles, with the :func:`mark`."""
    return f"{manifest.model_name} ({shown})" if (shown := mark(manifest)) else manifest.model_name


def mark(manifest: Manifest) -> str:
    """The addition to a run's label in every table; empty without caveats."""
    mixed = manifest.changes or len(manifest.answered_as) > 1 or _changed_setups(manifest)
    names = ", ".join(one_line(name, 60) for name in unconfirmed_models(manifest))
    drawn = manifest.benchmark.perturbation.get("variant", "")
    return "; ".join([f"perturbed: {drawn}"] * bool(drawn) + [f"served: {names}"] * bool(names) + ["mixed"] * bool(mixed))


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
