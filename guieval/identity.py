"""What makes two sessions one run: the parts of a manifest that must be equal for their records to belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from guieval.config import parse
from guieval.errors import UsageError

_TOLD = frozenset({"notes", "licence", "frame", "context_length", "vllm"})
"""What a checkpoint's file tells its reader; none of it changes what is asked or how a reply is read."""

PROMPTS = "prompts fingerprint"
"""Name of the field that differs when an adapter no longer asks in the same words."""

THOUGHT = "thought prompt fingerprint"
"""Name of the field that differs when the thoughts of patches are no longer asked for in the same words."""


FIXED_THOUGHTS = "fixed thoughts fingerprint"
"""Name of the field that differs when a model is made to think other thoughts, or the same in another form."""

ARTIFACTS = "artifacts fingerprint"
"""Name of the field that differs when the answers that a mixed history holds are no longer the same."""


def digest(value: Any) -> str:
    """A short fingerprint of a JSON-able value, equal for equal values."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def refuse_unlike(old: Mapping[str, Any], new: Mapping[str, Any], directory: Path) -> None:
    """Raise :class:`UsageError` naming every field in which a resume would differ from the run it resumes."""
    differences: list[str] = []
    before, after = identity(old), identity(new)
    if before[PROMPTS] is None:  # begun before prompts were fingerprinted
        del before[PROMPTS], after[PROMPTS]
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            differences.append(f"{name} (was {before.get(name)!r}, now {after.get(name)!r})")
    if differences:
        raise UsageError(f"{str(directory)!r} cannot be resumed, because it differs in " + ", ".join(sorted(differences)))


def identity(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What two manifests must share for their records to belong to one run."""
    config = parse(manifest["config"]).identity()
    checkpoint = {name: value for name, value in manifest["model"].items() if name not in _TOLD}
    return {
        **_flat(config),
        **_flat({"checkpoint": checkpoint}),
        "benchmark fingerprint": manifest["benchmark"]["fingerprint"],
        "overlay fingerprint": manifest.get("overlay", {}).get("sha256"),
        PROMPTS: manifest.get("prompts", {}).get("fingerprint"),
        **({THOUGHT: said} if (said := manifest.get("prompts", {}).get("thought")) is not None else {}),
        **({FIXED_THOUGHTS: [fixed["sha256"], fixed["form"]]} if (fixed := manifest.get("fixed_thoughts")) is not None else {}),
        **({ARTIFACTS: said["artifacts"]["sha256"]} if (said := manifest.get("mixing")) is not None else {}),
        "protocol": manifest["protocol"]["name"],
        "protocol fingerprint": manifest["protocol"]["fingerprint"],
    }


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
        flat.update(inner)
    return flat
