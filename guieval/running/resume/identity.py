"""The identity of a run: its manifest, and the parts that two manifests must share for their records to belong together."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.shipped import __version__
from guieval.errors import UsageError
from guieval.journal import SCHEMA, RunFolder, plan_rows
from guieval.journal.run_files import Manifest
from guieval.models.patch_thoughts import thought_fingerprint
from guieval.models.scaffold import ACTING, flat
from guieval.models.written_prompts import example_requests, fixed_thought_form
from guieval.running.config import parse
from guieval.running.kinds import kind_of
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.trust import code_digests

_DESCRIPTIVE = frozenset({"notes", "licence", "frame", "context_length", "vllm", "resolved"})
"""Fields of a checkpoint's file for its reader; none of them changes a request or how a response is read."""

SCAFFOLD = "scaffold"
PROMPTS = "prompts fingerprint"
THOUGHT = "thought prompt fingerprint"
FIXED_THOUGHTS = "fixed thoughts fingerprint"
ARTIFACTS = "artifacts fingerprint"
DECISIONS = "decisions fingerprint"
CONTENT = "data of the chosen steps"
"""Names of what may differ: the scaffold, the wording of requests, the wording of those for the thoughts of patches, the
thoughts that a model is given or their form, the responses in a mixed history, the decisions of an adaptive one, and the
content of the chosen steps."""


def digest(value: Any) -> str:
    """A short fingerprint of a JSON-able value, equal for equal values."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class Difference(NamedTuple):
    """One thing in which a resume differs from its run: in words, and whether a user may accept it."""

    text: str
    acceptable: bool


_ACCEPTABLE = (
    *("model", "adapter", "thinking", "options", "sampling", "resampling", "vllm", "model_path", "engine", "checkpoint."),
    SCAFFOLD,
    *(PROMPTS, THOUGHT, CONTENT, "overlay fingerprint"),
)
"""First words of the names of what a user may accept: the model, how it is queried, and the content of the data; an
environment's version too. The choice of steps, the mode, the protocol and the number of samples are not: with others it is
another run."""


def manifest_of(run: ResolvedRun) -> dict[str, Any]:
    """The manifest: what identifies a run, and what it ran with."""
    plan, mode, model, benchmark, protocol = run.plan, run.mode, run.model, run.benchmark, run.protocol
    more: dict[str, Any] = {} if run.overlay is None else {"overlay": run.overlay.to_json()}
    if run.config.server.replay is not None:  # the servers of the earlier run gave the answers
        recorded = RunFolder(Path(run.config.server.replay)).manifest.to_json()
        more |= {name: recorded[name] for name in ("setups", "patch_setups") if name in recorded}
    if run.fixed is not None:
        more["fixed_thoughts"] = {**run.fixed.to_json(), "form": digest(fixed_thought_form(model))}
    return {
        "schema": SCHEMA,
        "guieval": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "config": run.config.model_dump(mode="json"),
        "model": model.config.model_dump(mode="json", exclude={"scaffold"}),
        "scaffold": model.config.scaffold.to_json(),
        "benchmark": {
            "name": benchmark.name,
            "episodes": len(plan),
            "steps": sum(map(len, plan.values())),
            "fingerprint": digest(plan_rows(plan)),
            "content": run.content.sha256,
            "edition": None if run.content.edition is None else run.content.edition.model_dump(mode="json"),
            **kind_of(run.config).about(benchmark),
        },
        "selection": run.selection.to_json(),
        **more,
        **({"code": code} if (code := code_digests(run.config)) else {}),
        **({"mixing": run.mixture.to_json()} if run.mixture is not None else {}),
        "prompts": {
            "fingerprint": digest(example_requests(model)),
            **({"thought": digest(thought_fingerprint())} if mode.patch.asks else {}),
        },
        "options": dict(model.resolved_options),
        "rules": dict(model.reply_rules),
        "protocol": {"name": protocol.name, "fingerprint": protocol.fingerprint},
        "mode": mode.to_json(),
        "action_spaces": {"model": model.action_space.to_json(), "benchmark": benchmark.action_space.to_json()},
    }


def in_terms_of(old: Manifest, new: Manifest, run: ResolvedRun) -> Manifest:
    """``new``, of ``run``, as the version that wrote ``old`` would have written it, if a step had one list of boxes there, or a
    task was written as a step."""
    protocol, benchmark = new.protocol, new.benchmark
    if old.protocol.fingerprint == run.protocol.earlier_fingerprint:
        protocol = protocol.model_copy(update={"fingerprint": old.protocol.fingerprint})
    was = old.benchmark.content
    if None not in (was, benchmark.content) and was != benchmark.content and was in kind_of(run.config).earlier_contents(run):
        benchmark = benchmark.model_copy(update={"content": was})
    return new.model_copy(update={"protocol": protocol, "benchmark": benchmark})


def differences(old: Manifest, new: Manifest) -> list[Difference]:
    """Every field in which a resume would differ from the run that it resumes."""
    differing: list[Difference] = []
    before, after = identity(old), identity(new)
    for name in (SCAFFOLD, PROMPTS, CONTENT):
        if before[name] is None or after[name] is None:  # begun before it was recorded, or an episode cannot be loaded
            del before[name], after[name]
    if old.code is not None and new.code is not None:
        differing += [
            Difference(f"the {what}, whose content has changed", True)
            for what, was in old.code.items()
            if new.code.get(what, was) != was
        ]
        if "adapter file" in old.code.keys() & new.code.keys():  # its content counts, not its place
            for values in (before, after):
                values.pop("adapter", None)
                values.pop("checkpoint.adapter", None)
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    version, latest = old.benchmark.environment, new.benchmark.environment
    if version is not None and latest is not None and version != latest:
        differing.append(Difference(f"the environment's version, which was {version!r} and is {latest!r}", True))
    for name, (one, other) in old.benchmark.unlike(new.benchmark).items():
        differing.append(Difference(f"the environment's {name}, which was {one!r} and is {other!r}", True))
    if CONTENT in changed and latest is not None and len(changed) + len(differing) > 1:
        changed.remove(CONTENT)  # a task's data are its goal, the version and the most steps, which another one explains
    for name in changed:
        text = f"{name} (was {before.get(name)!r}, now {after.get(name)!r})"
        differing.append(Difference(text, name.startswith(_ACCEPTABLE)))
    explained = {name.rpartition("options.")[2] for name in changed}  # the others differ in a default
    for kind, was, now in (("option", old.options or {}, new.options or {}), ("rule", old.rules or {}, new.rules or {})):
        for name in was.keys() & now.keys() - explained:
            if was[name] != now[name]:
                differing.append(Difference(f"the {kind} {name!r} (was {was[name]!r}, now {now[name]!r})", True))
    return sorted(differing)


def refuse_unlike(
    old: Manifest, new: Manifest, directory: Path, *, accept: bool = False, hint: str = "", example: Callable[[], str] = str
) -> list[Difference]:
    """Raise :class:`UsageError` naming every field in which a resume would differ from the run it resumes.

    With ``accept``, those that a user may accept are returned instead; ``hint`` tells the user how to accept them. ``example``
    returns an example of changed data, in words.
    """
    differing = differences(old, new)
    differing = [one._replace(text=f"the {CONTENT}{example()}") if one.text.startswith(CONTENT) else one for one in differing]
    refused = [one for one in differing if not (accept and one.acceptable)]
    if refused:
        raise UsageError(
            f"{str(directory)!r} cannot be resumed, because it differs in {', '.join(one.text for one in refused)}"
            + f"; {hint}" * (bool(hint) and all(one.acceptable for one in differing))
        )
    return differing


def identity(manifest: Manifest) -> dict[str, Any]:
    """The fields that two manifests must share for their records to belong to one run."""
    settings = manifest.config.to_json()
    config = parse(settings, kept=settings).identity()
    checkpoint = {name: value for name, value in manifest.checkpoint.items() if name not in _DESCRIPTIVE}
    scaffold = checkpoint.pop("scaffold")
    checkpoint |= {name: scaffold.get(name) for name in ("sampling", "thinking")}
    acting = {name: scaffold[name] for name in ACTING if name in scaffold}
    fixed, mixing, thought = manifest.fixed_thoughts, manifest.mixing, manifest.prompts.thought
    return {
        **flat(config),
        **flat({"checkpoint": checkpoint}),
        SCAFFOLD: None if manifest.scaffold is None else manifest.scaffold.name,
        **flat({SCAFFOLD: acting}),
        "benchmark fingerprint": manifest.benchmark.fingerprint,
        "overlay fingerprint": None if manifest.overlay is None else manifest.overlay.sha256,
        CONTENT: manifest.benchmark.content,
        PROMPTS: manifest.prompts.fingerprint,
        **({} if thought is None else {THOUGHT: thought}),
        **({"perturbation": line} if (line := manifest.benchmark.perturbation_line) else {}),
        **({} if fixed is None else {FIXED_THOUGHTS: [fixed.sha256, fixed.form]}),
        **({} if mixing is None else {ARTIFACTS: mixing.artifacts.sha256}),
        **({} if mixing is None or mixing.decisions is None else {DECISIONS: mixing.decisions.sha256}),
        "protocol": manifest.protocol.name,
        "protocol fingerprint": manifest.protocol.fingerprint,
    }
